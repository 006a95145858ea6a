//! A small server on plain sockets, which counts what it sees, and a load on it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use prony_base::Nanos;
use prony_load::prepare::{RequestParts, prepare};
use prony_load::{LoadError, LoadResult, LoadSpec, Observer, run};
use prony_record::LoadTarget;

/// What the server does with request number `n` (from 0) of a connection.
pub type Behaviour = fn(n: u64, stream: &mut TcpStream) -> Then;

/// What the server does after an answer.
pub enum Then {
    Next,
    Close,
}

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
    requests: Arc<AtomicU64>,
    conversations: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Server {
    /// How many requests clients have sent that have ended: the last ones may still have to be read.
    pub fn requests(&self) -> u64 {
        let last = TcpStream::connect(self.address).unwrap();
        last.shutdown(Shutdown::Write).unwrap();
        // Connections are accepted in their order, and this one is closed when it was its turn.
        let _ = (&last).read(&mut [0]);
        let conversations = std::mem::take(&mut *self.conversations.lock().unwrap());
        for conversation in conversations {
            conversation.join().unwrap();
        }
        self.requests.load(SeqCst)
    }
}

/// A thread for each connection; requests end with an empty line.
pub fn serve(behaviour: Behaviour) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server {
        address: listener.local_addr().unwrap(),
        connections: Arc::default(),
        requests: Arc::default(),
        conversations: Arc::default(),
    };
    let requests = Arc::clone(&server.requests);
    let conversations = Arc::clone(&server.conversations);
    let connections = Arc::clone(&server.connections);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            connections.fetch_add(1, SeqCst);
            let requests = Arc::clone(&requests);
            let conversation = thread::spawn(move || converse(stream, &requests, behaviour));
            conversations.lock().unwrap().push(conversation);
        }
    });
    server
}

fn converse(mut stream: TcpStream, requests: &AtomicU64, behaviour: Behaviour) {
    stream.set_nodelay(true).unwrap();
    let mut bytes = [0; 4_096];
    let mut pending = Vec::new();
    for n in 0.. {
        while !pending.ends_with(b"\r\n\r\n") {
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => pending.extend_from_slice(&bytes[..length]),
            }
        }
        pending.clear();
        requests.fetch_add(1, SeqCst);
        if matches!(behaviour(n, &mut stream), Then::Close) {
            return;
        }
    }
}

pub fn answer(stream: &mut TcpStream, bytes: &[u8]) -> Then {
    match stream.write_all(bytes) {
        Ok(()) => Then::Next,
        Err(_) => Then::Close,
    }
}

pub fn spec(address: SocketAddr, driver: &str) -> LoadSpec {
    let parts = RequestParts {
        method: "GET",
        path: "/",
        authority: "a",
        headers: &[],
        body: b"",
    };
    LoadSpec {
        target: LoadTarget {
            url: format!("http://{address}/"),
            address: address.to_string(),
        },
        further: Vec::new(),
        threads: 2,
        connections: 8,
        warmup_ns: Nanos::from_millis(50).0,
        duration_ns: Nanos::from_millis(300).0,
        requests_max: None,
        timeout_ns: Nanos::from_secs(60).0,
        requests: vec![prepare(&parts, None).unwrap()],
        expected_status: Vec::new(),
        driver: driver.to_owned(),
        exact: false,
        ..LoadSpec::default()
    }
}

pub struct Silent;
impl Observer for Silent {}

pub fn drive(spec: &LoadSpec) -> LoadResult {
    let outcome = run(spec, &mut Silent).unwrap();
    if spec.driver != "auto" {
        assert_eq!(outcome.report.driver, spec.driver);
    }
    let counts = &outcome.report.counts;
    let accounted = counts.warmup_completed
        + counts.warmup_failed
        + counts.completed
        + counts.failed.total()
        + counts.in_flight;
    assert_eq!(counts.sent, accounted, "{counts:?}");
    assert_eq!(
        counts.in_flight,
        counts.drained + counts.drain_failed + counts.abandoned,
        "{counts:?}"
    );
    let latency = outcome.report.latency_ns;
    assert_eq!(outcome.histogram.total(), latency.count - latency.infinite);
    // Requests of the window end in it or in the drain; those that began before it may end in it.
    let ended = counts.completed + counts.failed.total() + counts.in_flight;
    assert!(latency.count <= ended, "{latency:?}, {counts:?}");
    assert_eq!(
        outcome.report.slices.completed.iter().sum::<u64>(),
        counts.completed,
        "a window of whole slices"
    );
    outcome
}

/// On each driver that the machine allows.
pub fn on_each_driver(test: impl Fn(&str)) {
    for driver in ["epoll", "ring"] {
        let probe = serve(|_, stream| answer(stream, HELLO));
        match run(
            &LoadSpec {
                requests_max: Some(2),
                ..spec(probe.address, driver)
            },
            &mut Silent,
        ) {
            Err(LoadError::Engine(error)) => {
                prony_testkit::skip_ring(&format!("driver {driver}: {error}"))
            }
            _ => test(driver),
        }
    }
}
