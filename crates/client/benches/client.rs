//! CPU per request of the client, beside the least that a request can cost: a stream, one
//! post, the reader of answers. A GET of a short text; one client thread, one server thread.
//!
//! `cargo bench -p prony-client --bench client` prints the client's CPU time per request for
//! both, taking turns; without `--bench` (as in a test run) it makes a few requests, to show
//! that it still works. `client URL CONNECTIONS SECONDS` asks a stranger, and
//! `client --download URL AUTHORITY.pem BYTES` downloads from one three times, receiving
//! so many bytes at once and throwing them away, as `curl -o /dev/null` does.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Nanos, clock};
use prony_client::{Client, Settings};
use prony_engine::{Config, Handle, ListenOptions, SendBuf, mailbox, run};
use prony_http::{Handler, Header, Request, Response, Server, ServerOptions, Source};
use prony_wire::{Limits, Method, ResponseEvent, ResponseReader};

struct Hello;

impl Handler for Hello {
    async fn handle(&self, _: &Request<'_>, response: &mut Response) {
        let kind = Header::new("content-type", b"text/plain; charset=utf-8");
        response.send(200, [kind], b"Hello, World!");
    }
}

/// One way to ask.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// A stream and a reader, nothing else.
    Bare,
    /// The client.
    Client,
}

/// Requests done and CPU time of the thread.
struct Measured {
    requests: u64,
    cpu: Nanos,
    length: Nanos,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [url, connections, seconds] if url.starts_with("http") => {
            let connections = connections.parse().expect("a number");
            let length = Nanos::from_secs(seconds.parse().expect("seconds"));
            for way in [Way::Bare, Way::Client] {
                tell(way, connections, &measure(way, url, connections, length));
            }
        }
        ["--download", url, authority, bytes] => download(url, authority, bytes),
        _ if words.contains(&"--bench") => beside_each_other(&[10, 100], Nanos::from_secs(1), 5),
        _ => beside_each_other(&[3], Nanos::from_millis(5), 1),
    }
}

fn download(url: &str, authority: &str, bytes: &str) {
    let mut settings = Settings::default();
    let trusted = settings.tls.add_roots_file(authority);
    trusted.expect("a certificate");
    let recv_buffer_bytes = bytes.parse().expect("a number");
    let config = Config {
        recv_buffer_bytes,
        recv_buffers: (16 << 20) / recv_buffer_bytes,
        ..Config::default()
    };
    let work = async move |handle: Handle| {
        let client = Client::new(&handle, settings);
        for _ in 0..3 {
            let (begun, cpu) = (handle.now(), clock::thread_cpu());
            let mut answer = client.get(url).send().await.expect("an answer");
            let (mut bytes, mut pieces) = (0, 0);
            while let Some(piece) = answer.chunk().await.expect("a body") {
                bytes += piece.len();
                pieces += 1;
            }
            let seconds = handle.now().since(begun).as_secs_f64();
            let cpu = (clock::thread_cpu() - cpu).as_secs_f64();
            println!("{bytes} bytes in {pieces} pieces: {seconds:.3} s, {cpu:.3} s CPU");
        }
    };
    run(&config, work).expect("the loop runs");
}

fn tell(way: Way, connections: usize, measured: &Measured) {
    let each = measured.cpu.as_micros_f64() / measured.requests.max(1) as f64;
    let rate = measured.requests as f64 / measured.length.as_secs_f64();
    println!(
        "{way:?} {connections} connections: {each:.3} us CPU per request, {rate:.0} requests/s"
    );
}

/// Both ways against a server on a thread of its own, in turns; the best of each counts.
fn beside_each_other(connections: &[usize], length: Nanos, rounds: usize) {
    let (say, hear) = std::sync::mpsc::channel();
    let (stop, mut stopped) = mailbox::<()>(1);
    let server = std::thread::spawn(move || {
        let cores = prony_engine::thread::cores().unwrap_or_default();
        let _ = prony_engine::thread::pin(&cores[..1]);
        run(&Config::default(), async move |handle: Handle| {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = handle.listen(any, &ListenOptions::default());
            let listener = listener.expect("a free port");
            say.send(listener.local_addr()).expect("somebody hears");
            let server = Server::new(&handle, ServerOptions::default(), Hello);
            let stop = async {
                stopped.recv().await;
            };
            server.run(Source::Listener(listener), stop).await;
        })
    });
    let cores = prony_engine::thread::cores().unwrap_or_default();
    let _ = prony_engine::thread::pin(&cores[cores.len() - 1..]);
    let url = format!("http://{}/", hear.recv().expect("an address"));
    for &connections in connections {
        let mut best: [Option<Measured>; 2] = [None, None];
        for _ in 0..rounds {
            for way in [Way::Bare, Way::Client] {
                let measured = measure(way, &url, connections, length);
                let each = |one: &Measured| one.cpu.0 as f64 / one.requests.max(1) as f64;
                let place = &mut best[way as usize];
                if place
                    .as_ref()
                    .is_none_or(|known| each(known) > each(&measured))
                {
                    *place = Some(measured);
                }
            }
        }
        for (way, measured) in [Way::Bare, Way::Client]
            .into_iter()
            .zip(best.iter().flatten())
        {
            assert!(measured.requests > 0, "{way:?} asked nothing");
            tell(way, connections, measured);
        }
    }
    stop.send(()).expect("the server runs");
    let served = server.join().expect("the server's thread");
    served.expect("the server's loop");
}

fn measure(way: Way, url: &str, connections: usize, length: Nanos) -> Measured {
    let url = url.to_owned();
    let measured = run(&Config::default(), async move |handle: Handle| {
        let done = Rc::new(Cell::new(0_u64));
        let client = Client::new(&handle, Settings::default());
        let cpu = clock::thread_cpu();
        let start = handle.now();
        let end = start + length;
        let tasks: Vec<_> = (0..connections)
            .map(|_| {
                let (handle, url, done) = (handle.clone(), url.clone(), done.clone());
                let client = client.clone();
                handle.clone().spawn(async move {
                    match way {
                        Way::Bare => bare(&handle, &url, &done, end).await,
                        Way::Client => {
                            while handle.now() < end {
                                let mut answer = client.get(&url).send().await.expect("an answer");
                                while let Some(piece) = answer.chunk().await.expect("a body") {
                                    assert!(!piece.is_empty());
                                }
                                done.set(done.get() + 1);
                            }
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        Measured {
            requests: done.get(),
            cpu: clock::thread_cpu() - cpu,
            length: handle.now().since(start),
        }
    });
    measured.expect("the loop runs")
}

async fn bare(handle: &Handle, url: &str, done: &Cell<u64>, end: prony_base::Instant) {
    let authority = url.trim_start_matches("http://").split('/').next();
    let address: SocketAddr = authority.unwrap_or_default().parse().expect("an address");
    let bytes = format!("GET / HTTP/1.1\r\nHost: {address}\r\nUser-Agent: prony\r\n\r\n");
    let bytes: Rc<[u8]> = Rc::from(bytes.into_bytes());
    let stream = handle.connect(address).await.expect("a connection");
    let mut reader = ResponseReader::new(Limits::for_responses());
    while handle.now() < end {
        stream.post(SendBuf::Shared(bytes.clone())).expect("room");
        reader.expect(&Method::Get).expect("one at a time");
        'answer: loop {
            let received = stream.recv().await.expect("an answer");
            assert!(!received.is_empty(), "the server closed");
            let mut rest = &received[..];
            loop {
                let (used, event) = reader.next(rest).expect("HTTP");
                rest = &rest[used..];
                match event {
                    None => break,
                    Some(ResponseEvent::End(_)) => break 'answer,
                    Some(_) => {}
                }
            }
        }
        done.set(done.get() + 1);
    }
}
