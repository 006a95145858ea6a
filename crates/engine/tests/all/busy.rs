//! A loop that always has a task to run still takes in what sockets and timers bring, on
//! each driver, whether it sleeps or spins: counted in turns, not in time. And one whose
//! tasks panic as they are dropped still ends in order.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;

use prony_base::Nanos;
use prony_engine::{Config, DriverChoice, Error, Handle, ListenOptions, run};

/// Turns after which what the kernel has must be seen: the most that may go without
/// asking it, twice, because a connection is accepted in one turn and read in a later one.
const TURNS_MAX: u64 = 2 * 16 + 8;

fn on_each(case: impl AsyncFn(Handle)) {
    for driver in [DriverChoice::Ring, DriverChoice::Epoll] {
        for spin in [false, true] {
            let config = Config {
                driver,
                spin,
                ..Config::default()
            };
            match run(&config, async |handle| case(handle).await) {
                Err(error @ Error::RingUnavailable { .. }) => {
                    prony_testkit::skip_ring(&error.to_string())
                }
                result => result.expect("the loop runs"),
            }
        }
    }
}

/// A task that is due again as soon as it has run, as its waker says at once.
fn keep_busy(handle: &Handle) {
    let work = poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    handle.spawn(work).detach();
}

/// The turns that `work` takes.
async fn turns<T>(handle: &Handle, work: impl Future<Output = T>) -> (T, u64) {
    let before = handle.turns();
    let done = work.await;
    (done, handle.turns() - before)
}

/// Bytes and connections of peers are taken in within so many turns, again and again.
async fn accepts_and_receives(handle: Handle) {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = handle.listen(anywhere, &ListenOptions::default()).unwrap();
    for round in 0..20 {
        // Loopback has delivered it when the call returns.
        let mut peer = TcpStream::connect(listener.local_addr()).unwrap();
        let (stream, accepting) = turns(&handle, listener.accept()).await;
        let (stream, _) = stream.unwrap();
        assert!(accepting <= TURNS_MAX, "{round}: accepted in {accepting}");
        // The receive is under way before there is anything to receive.
        {
            let mut early = pin!(stream.recv());
            let pending = poll_fn(|cx| Poll::Ready(early.as_mut().poll(cx).is_pending())).await;
            assert!(pending);
        }
        for _ in 0..TURNS_MAX {
            handle.yield_now().await;
        }
        peer.write_all(b"x").unwrap();
        let (received, receiving) = turns(&handle, stream.recv()).await;
        assert_eq!(&*received.unwrap(), b"x");
        assert!(receiving <= TURNS_MAX, "{round}: received in {receiving}");
    }
}

#[test]
fn a_loop_whose_tasks_are_always_due_accepts_and_receives() {
    on_each(async |handle| {
        keep_busy(&handle);
        accepts_and_receives(handle).await;
    });
}

#[test]
fn a_loop_that_another_thread_wakes_all_the_time_accepts_and_receives() {
    on_each(async |handle| {
        let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone())).await;
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let other = thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                waker.wake_by_ref();
            }
        });
        keep_busy(&handle);
        accepts_and_receives(handle).await;
        over.store(true, Ordering::Relaxed);
        other.join().unwrap();
    });
}

#[test]
fn timers_of_a_loop_whose_tasks_are_always_due_fire() {
    on_each(async |handle| {
        keep_busy(&handle);
        let length = Nanos::from_millis(2);
        let before = handle.now();
        handle.sleep(length).await;
        assert!(handle.now().since(before) >= length);
    });
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

#[test]
fn panics_in_drops_at_the_end_leave_the_loop_with_everything_dropped() {
    for driver in [DriverChoice::Ring, DriverChoice::Epoll] {
        let config = Config {
            driver,
            ..Config::default()
        };
        let held = Rc::new(());
        let gone = catch_unwind(AssertUnwindSafe(|| {
            run(&config, async |handle| {
                for _ in 0..3 {
                    let theirs = (held.clone(), handle.clone());
                    let work = async move {
                        let _bomb = Bomb;
                        let (_held, handle) = theirs;
                        handle.sleep(Nanos::from_secs(600)).await;
                    };
                    handle.spawn(work).detach();
                }
                handle.yield_now().await;
            })
        }));
        match gone {
            Ok(Err(error @ Error::RingUnavailable { .. })) => {
                prony_testkit::skip_ring(&error.to_string())
            }
            Ok(ended) => panic!("nothing came of the panics: {ended:?}"),
            Err(_) => assert_eq!(Rc::strong_count(&held), 1),
        }
    }
}
