//! No request is lost when all workers are replaced, and connections at rest hold up
//! nobody.
//!
//! `PRONY_HUP_REQUESTS` sets how many requests are sent (20,000, or 200,000 in the long tier).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::by_hand;
use crate::common::{Host, who};
use prony_engine::{Config, Handle};
use rustix::process::Signal;

/// Connections that send one request after another.
const CONNECTIONS: usize = 20;
/// Connections of which each has one request.
const SHORT: usize = 10;

/// What came of the requests.
#[derive(Default)]
struct Count {
    left: Cell<u64>,
    /// Whether it goes on when none is left.
    goes_on: Arc<AtomicBool>,
    taken: Cell<u64>,
    answered: Cell<u64>,
    failed: RefCell<BTreeMap<String, u64>>,
}

impl Count {
    fn take(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        let is_taken = left > 0 || self.goes_on.load(Ordering::Acquire);
        self.taken.set(self.taken.get() + u64::from(is_taken));
        is_taken
    }

    fn failed(&self, why: String) {
        *self.failed.borrow_mut().entry(why).or_default() += 1;
    }
}

/// Sends requests one after another, on a new connection where the old one is used up.
async fn drive(handle: Handle, address: SocketAddr, keeps: bool, count: Rc<Count>) {
    let mut connection: Option<by_hand::Connection> = None;
    while count.take() {
        let request = by_hand::RawRequest {
            keep_alive: keeps,
            ..by_hand::RawRequest::get("/")
        };
        let mut open = match connection.take() {
            Some(open) => open,
            None => match by_hand::Connection::connect(&handle, address).await {
                Ok(open) => open,
                Err(error) => {
                    count.failed(error.to_string());
                    continue;
                }
            },
        };
        match open.exchange(&request).await {
            Ok(response) if response.status == 200 && response.body == b"hello world" => {
                count.answered.set(count.answered.get() + 1);
                connection = response.keep_alive.then_some(open);
            }
            Ok(response) => count.failed(format!("status {}", response.status)),
            Err(error) => count.failed(error.to_string()),
        }
    }
}

/// Requests that were sent, those that were answered, and what the others met.
type Done = (u64, u64, BTreeMap<String, u64>);

/// Sends so many requests, and more as long as `goes_on`.
fn load(address: SocketAddr, requests: u64, goes_on: Arc<AtomicBool>) -> Done {
    let config = Config::default();
    let done = prony_engine::run(&config, |handle| async move {
        let count = Rc::new(Count {
            goes_on,
            ..Count::default()
        });
        count.left.set(requests);
        let tasks: Vec<_> = (0..CONNECTIONS + SHORT)
            .map(|place| {
                let keeps = place < CONNECTIONS;
                handle.spawn(drive(handle.clone(), address, keeps, Rc::clone(&count)))
            })
            .collect();
        for task in tasks {
            task.await;
        }
        (count.taken.get(), count.answered.get(), count.failed.take())
    });
    done.expect("the loop runs")
}

fn requests() -> u64 {
    prony_testkit::repeats("PRONY_HUP_REQUESTS", 20_000, 200_000)
}

/// Replaces all workers again and again under load.
fn renew_under_load(way: &str) {
    let requests = requests();
    let mut host = Host::start(&["--workers", "3", "--distribution", way]);
    let address = host.address;
    let over = AtomicBool::new(false);
    // Two renewals at the least, however long they take.
    let goes_on = Arc::new(AtomicBool::new(true));
    let (sent, answered, failed, renewals) = thread::scope(|scope| {
        let driver = scope.spawn(|| {
            let done = load(address, requests, Arc::clone(&goes_on));
            over.store(true, Ordering::Release);
            done
        });
        let mut renewals = 0;
        while !over.load(Ordering::Acquire) {
            host.signal(Signal::HUP);
            host.hears("all workers are new");
            renewals += 1;
            goes_on.store(renewals < 2, Ordering::Release);
        }
        let (sent, answered, failed) = driver.join().expect("the load ends");
        (sent, answered, failed, renewals)
    });
    println!("{way}: {answered} of {sent} answered, workers replaced {renewals} times");
    assert_eq!(failed, BTreeMap::new(), "{way}");
    assert_eq!(answered, sent);
    assert!(sent >= requests && renewals >= 2, "{sent} {renewals}");
}

#[test]
fn no_request_is_lost_in_a_renewal_with_one_shared_socket() {
    renew_under_load("shared");
}

#[test]
fn no_request_is_lost_in_a_renewal_with_a_socket_for_each() {
    renew_under_load("reuseport");
}

#[test]
fn no_request_is_lost_in_a_renewal_where_connections_are_passed() {
    renew_under_load("least");
}

#[test]
fn no_request_is_lost_when_workers_are_replaced_after_their_requests() {
    let options = [
        "--workers",
        "3",
        "--max-requests",
        "1500",
        "--max-requests-jitter",
        "500",
    ];
    let host = Host::start(&options);
    let (sent, answered, failed) = load(host.address, requests(), Arc::default());
    assert_eq!((sent, answered), (requests(), requests()));
    assert_eq!(failed, BTreeMap::new());
}

#[test]
fn ten_thousand_connections_at_rest_do_not_hold_up_the_others() {
    const AT_REST: usize = 10_000;
    raise_descriptor_limit();
    for way in ["shared", "least"] {
        let host = Host::start(&["--workers", "1", "--distribution", way]);
        let address = host.address;
        let config = Config::default();
        let served = prony_engine::run(&config, |handle| async move {
            let mut at_rest = Vec::with_capacity(AT_REST);
            while at_rest.len() < AT_REST {
                at_rest.push(handle.connect(address).await.expect("a connection"));
            }
            let connection = by_hand::Connection::connect(&handle, address).await;
            let mut connection = connection.expect("one more");
            for _ in 0..100 {
                let answer = connection.exchange(&by_hand::RawRequest::get("/")).await;
                assert_eq!(answer.expect("an answer").status, 200);
            }
            // Those at rest are served, too, when they have something to say.
            for stream in at_rest.iter().step_by(1000) {
                stream
                    .post("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
                    .expect("room for a request");
                let answer = stream.recv().await.expect("an answer");
                assert!(answer.starts_with(b"HTTP/1.1 200"), "{way}");
            }
        });
        served.expect("the loop runs");
        who(&mut host.connect());
    }
}

fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("more descriptors");
    let enough = limit.maximum.is_none_or(|maximum| maximum > 10_500);
    assert!(
        enough,
        "this test opens 10,000 connections; raise ulimit -n"
    );
}
