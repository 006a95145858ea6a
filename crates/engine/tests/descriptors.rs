//! No loop leaves a descriptor open, however it ends. One test alone in its
//! process, because it counts the descriptors of the process.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use prony_base::Nanos;
use prony_engine::{Config, DriverChoice, Error, Handle, ListenOptions, run};

fn open_descriptors() -> usize {
    let listed = std::fs::read_dir("/proc/self/fd").expect("proc is mounted");
    listed.count()
}

/// Leaves connections in every state, and a listener with some that nobody took.
async fn leave_everything_open(handle: Handle) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = handle.listen(any, &ListenOptions::default());
    let listener = listener.expect("a free port");
    let address = listener.local_addr();
    for number in 0..20 {
        let stream = handle.connect(address).await.expect("the backlog takes it");
        if number % 3 == 0 {
            let (other, _) = listener.accept().await.expect("a connection");
            handle
                .spawn(async move { other.recv().await.map(|bytes| bytes.len()) })
                .detach();
        }
        if number % 2 == 0 {
            stream.post(vec![0; 3 << 20]).expect("posted");
        }
        handle
            .spawn(async move { stream.recv().await.map(|bytes| bytes.len()) })
            .detach();
    }
    let own = handle.clone();
    handle
        .spawn(async move { own.connect(address).await.map(drop) })
        .detach();
    handle.yield_now().await;
}

#[test]
fn no_descriptor_is_left_open() {
    for driver in [DriverChoice::Ring, DriverChoice::Epoll] {
        let config = Config {
            driver,
            linger: Nanos::from_millis(5),
            ..Config::default()
        };
        let before = open_descriptors();
        match run(&config, leave_everything_open) {
            Err(error @ Error::RingUnavailable { .. }) => {
                prony_testkit::skip_ring(&error.to_string())
            }
            result => result.expect("the loop runs"),
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            run(&config, |handle| async move {
                leave_everything_open(handle).await;
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err() || matches!(panicked, Ok(Err(_))));
        assert_eq!(open_descriptors(), before, "{driver:?}");
    }
}
