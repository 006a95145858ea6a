//! Names by every way; the race by the simulated clock, to the nanosecond.

use std::cell::RefCell;
use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, ListenOptions};
use proptest::prelude::*;

use super::*;

fn v4(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

fn v6(last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last))
}

fn at(ip: IpAddr) -> SocketAddr {
    SocketAddr::new(ip, 80)
}

/// Runs on a simulated loop whose clock moves by timers alone.
fn simulated<T: 'static>(work: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    let options = SimOptions {
        slow_loops_one_in: 0,
        ..SimOptions::default()
    };
    let mut world = World::new(1, options);
    let done = world.spawn_loop(
        &Config::default(),
        |handle| async move { work(handle).await },
    );
    world.run(Nanos::from_secs(3_600)).expect("it ends");
    done.take().expect("it has ended")
}

/// Runs on a real loop, at most 20 seconds.
fn real<T: 'static>(work: impl AsyncFnOnce(Handle) -> T + 'static) -> T {
    prony_engine::run(&Config::default(), |handle| async move {
        let limit = Nanos::from_secs(20);
        let work = work(handle.clone());
        handle.timeout(limit, work).await.expect("in time")
    })
    .expect("a loop")
}

fn overrides(lines: &[&str]) -> ResolveSettings {
    ResolveSettings {
        overrides: lines
            .iter()
            .map(|line| Override::parse(line).expect("an override"))
            .collect(),
        ..ResolveSettings::default()
    }
}

fn counting(counter: &Arc<AtomicUsize>) -> Lookup {
    let counter = counter.clone();
    Arc::new(move |name| {
        counter.fetch_add(1, Ordering::Relaxed);
        match name {
            "none" => Ok(Vec::new()),
            "lost" => Err(io::Error::other("Name or service not known")),
            "panics" => panic!("as it was told"),
            _ => Ok(vec![v6(1), v6(2), v4(1)]),
        }
    })
}

#[test]
fn an_override_is_read_as_curl_reads_it() {
    let fine = |text: &str| {
        let read = Override::parse(text).expect(text);
        (read.host, read.port, read.addresses.len())
    };
    assert_eq!(fine("a:80:10.0.0.1"), ("a".into(), Some(80), 1));
    assert_eq!(fine("a:10.0.0.1,[fd00::1]"), ("a".into(), None, 2));
    assert_eq!(fine("a:443:fd00::1, ::1"), ("a".into(), Some(443), 2));
    assert_eq!(fine("a:fd00::1"), ("a".into(), None, 1));
    assert_eq!(fine("*:80:127.0.0.1"), ("*".into(), Some(80), 1));
    for text in [
        "",
        "a",
        "a:80",
        "a:80:",
        ":80:10.0.0.1",
        "a:80:b",
        "a:x:10.0.0.1",
    ] {
        let error = Override::parse(text).unwrap_err();
        assert!(error.to_string().contains("HOST:PORT:ADDRESS"), "{error}");
    }
}

#[test]
fn overrides_go_first_and_the_port_decides() {
    let settings = overrides(&["A:10.0.0.1", "a:81:10.0.0.2", "10.9.9.9:10.0.0.3"]);
    let found = simulated(async move |handle| {
        let resolver = Resolver::new(&handle, settings);
        let mut found = Vec::new();
        for (host, port) in [("a", 80), ("A", 81), ("10.9.9.9", 80)] {
            found.push(resolver.resolve(host, port).await.expect("known"));
        }
        found
    });
    let expected: [SocketAddr; 3] = [
        "10.0.0.1:80".parse().unwrap(),
        "10.0.0.2:81".parse().unwrap(),
        "10.0.0.3:80".parse().unwrap(),
    ];
    assert_eq!(found, expected.map(|address| vec![address]));
}

#[test]
fn an_address_needs_no_question() {
    let asked = Arc::new(AtomicUsize::new(0));
    let lookup = counting(&asked);
    real(async move |handle| {
        let resolver = Resolver::with_lookup(&handle, ResolveSettings::default(), lookup);
        for (host, ip) in [
            ("10.0.0.7", v4(7)),
            ("fd00::7", v6(7)),
            ("[fd00::7]", v6(7)),
        ] {
            assert_eq!(resolver.resolve(host, 80).await, Ok(vec![at(ip)]));
        }
        for name in ["", "a b", "a/b", &"x".repeat(255)] {
            let error = resolver.resolve(name, 80).await.unwrap_err();
            assert!(matches!(error, ResolveError::BadName(_)), "{error}");
        }
    });
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn what_goes_wrong_has_a_name() {
    let lookup = counting(&Arc::default());
    real(async move |handle| {
        let resolver = Resolver::with_lookup(&handle, ResolveSettings::default(), lookup);
        let error = async |name| resolver.resolve(name, 80).await.unwrap_err().to_string();
        let lost = error("lost").await;
        assert_eq!(lost, "name not found: `lost` (Name or service not known)");
        assert_eq!(error("NONE").await, "name not found: `none` has no address");
        // A panic takes its thread along, and neither the loop nor the next question.
        assert!(error("panics").await.contains("the look-up panicked"));
        assert!(resolver.resolve("fine", 80).await.is_ok());
    });
}

#[test]
fn the_system_is_asked() {
    real(async |handle| {
        let resolver = Resolver::new(&handle, ResolveSettings::default());
        let addresses = resolver.resolve("localhost", 80).await.expect("known");
        assert!(addresses.iter().all(|address| address.ip().is_loopback()));
        let error = resolver.resolve("no.such.name.invalid", 80).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("name not found: `no.such.name.invalid` ("),
            "{error}"
        );
    });
}

#[test]
fn an_answer_is_used_again_for_its_time() {
    let asked = Arc::new(AtomicUsize::new(0));
    let lookup = counting(&asked);
    let counter = asked.clone();
    simulated(async move |handle| {
        let settings = ResolveSettings {
            cache_names_max: 2,
            ..ResolveSettings::default()
        };
        let resolver = Resolver::with_lookup(&handle, settings, lookup);
        let ask = async |name| {
            let before = counter.load(Ordering::Relaxed);
            let expected = vec![at(v6(1)), at(v4(1)), at(v6(2))];
            assert_eq!(resolver.resolve(name, 80).await, Ok(expected));
            counter.load(Ordering::Relaxed) - before
        };
        assert_eq!((ask("a").await, ask("A").await), (1, 0));
        handle.sleep(Nanos::from_millis(9_999)).await;
        assert_eq!((ask("a").await, ask("b").await), (0, 1));
        handle.sleep(Nanos::from_millis(1)).await;
        assert_eq!((ask("a").await, ask("a").await), (1, 0));
        // A third name: the one that ends first goes.
        assert_eq!((ask("c").await, ask("a").await, ask("b").await), (1, 0, 1));
        resolver.forget();
        assert_eq!(ask("b").await, 1);
    });
}

#[test]
fn a_simulated_network_has_no_names() {
    let error = simulated(async |handle| {
        let resolver = Resolver::new(&handle, ResolveSettings::default());
        resolver.resolve("localhost", 80).await.unwrap_err()
    });
    assert!(error.to_string().contains("no names but overrides"));
}

/// A look-up that waits until it is let go, and tells which name it is at.
fn gated() -> (Lookup, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (tell, told) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let lookup: Lookup = Arc::new(move |name| {
        let _ = tell.send(name.to_owned());
        let _ = gate.lock().expect("no panic").recv();
        Ok(vec![v4(1)])
    });
    (lookup, told, go)
}

#[test]
fn many_that_ask_the_same_are_one_question_and_a_dropped_one_is_none() {
    let (lookup, told, go) = gated();
    real(async move |handle| {
        let settings = ResolveSettings {
            threads_max: 1,
            waiting_names_max: 1,
            ..ResolveSettings::default()
        };
        let resolver = Resolver::with_lookup(&handle, settings, lookup);
        let ask = |name: &'static str| {
            let resolver = resolver.clone();
            handle.spawn(async move { resolver.resolve(name, 80).await })
        };
        let same: Vec<_> = (0..10).map(|_| ask("a")).collect();
        handle.yield_now().await;
        assert_eq!(told.recv().as_deref(), Ok("a"));
        // The thread is busy: one name may wait, the next may not.
        let waits = ask("b");
        handle.yield_now().await;
        let busy = resolver.resolve("c", 80).await.unwrap_err();
        assert!(busy.to_string().contains("waiting_names_max = 1"), "{busy}");
        handle.cancel(waits.id());
        handle.yield_now().await;
        go.send(()).expect("the thread waits");
        for task in same {
            assert_eq!(task.await, Ok(vec![at(v4(1))]));
        }
        go.send(()).expect("the look-up is there");
        assert_eq!(resolver.resolve("d", 80).await, Ok(vec![at(v4(1))]));
        // No request waited for b any more, so it was not looked up.
        assert_eq!(told.recv().as_deref(), Ok("d"));
    });
}

#[test]
fn addresses_go_by_turns() {
    let order = |ips: &[IpAddr]| interleave(ips.iter().map(|&ip| at(ip)));
    let to = |ips: &[IpAddr]| ips.iter().map(|&ip| at(ip)).collect::<Vec<_>>();
    let six_first = [v6(1), v6(2), v6(3), v4(1), v4(2)];
    assert_eq!(order(&six_first), to(&[v6(1), v4(1), v6(2), v4(2), v6(3)]));
    let four_first = [v4(1), v4(2), v6(1)];
    assert_eq!(order(&four_first), to(&[v4(1), v6(1), v4(2)]));
    assert_eq!(order(&[v4(1), v4(1)]), to(&[v4(1)]));
    assert_eq!(order(&[]), []);
    let many: Vec<IpAddr> = (0..99).map(v4).collect();
    assert_eq!(in_order(&many, 80).len(), ADDRESSES_MAX);
}

/// What an attempt does, and after how many milliseconds.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Connects(u64),
    Fails(u64),
    Hangs,
}

/// The winner, what failed, when it was over and when each attempt began, in milliseconds.
#[derive(Debug, PartialEq)]
struct Story {
    won: Option<usize>,
    failed: Vec<usize>,
    over: u64,
    begun: Vec<u64>,
}

fn told(fates: Vec<Fate>) -> Story {
    simulated(async move |handle| {
        let start = handle.now();
        let millis = |handle: &Handle| {
            let since = handle.now().since(start).0;
            assert_eq!(since % 1_000_000, 0, "exactly");
            since / 1_000_000
        };
        let begun = RefCell::new(Vec::new());
        let addresses: Vec<SocketAddr> = (0..fates.len()).map(|n| at(v4(n as u8))).collect();
        let place = |address: SocketAddr| addresses.iter().position(|one| *one == address);
        let raced = race(&handle, &addresses, Nanos::from_millis(250), |address| {
            begun.borrow_mut().push(millis(&handle));
            let place = place(address).expect("one of them");
            let (handle, fate) = (handle.clone(), fates[place]);
            async move {
                match fate {
                    Fate::Connects(after) => {
                        handle.sleep(Nanos::from_millis(after)).await;
                        Ok(())
                    }
                    Fate::Fails(after) => {
                        handle.sleep(Nanos::from_millis(after)).await;
                        Err(io::ErrorKind::ConnectionRefused.into())
                    }
                    Fate::Hangs => pending().await,
                }
            }
        });
        let raced = raced.await;
        let over = millis(&handle);
        Story {
            won: raced.as_ref().ok().and_then(|won| place(won.1)),
            failed: raced.err().map_or(Vec::new(), |failed| {
                failed.iter().filter_map(|one| place(one.0)).collect()
            }),
            over,
            begun: begun.take(),
        }
    })
}

#[test]
fn the_next_is_tried_after_the_delay_or_at_once_after_a_failure() {
    use Fate::{Connects, Fails, Hangs};
    let won = |won, over, begun: &[u64]| Story {
        won: Some(won),
        failed: Vec::new(),
        over,
        begun: begun.to_vec(),
    };
    let cases = [
        (vec![Connects(3)], won(0, 3, &[0])),
        (vec![Connects(249), Hangs], won(0, 249, &[0])),
        (vec![Hangs, Connects(10)], won(1, 260, &[0, 250])),
        (vec![Fails(7), Connects(10)], won(1, 17, &[0, 7])),
        (vec![Connects(300), Connects(100)], won(0, 300, &[0, 250])),
        (
            vec![Connects(600), Fails(1), Connects(1)],
            won(2, 252, &[0, 250, 251]),
        ),
        (
            vec![Hangs, Hangs, Hangs, Connects(0)],
            won(3, 750, &[0, 250, 500, 750]),
        ),
        // A failure moves the next attempt forward, and the delay begins again.
        (
            vec![Fails(200), Hangs, Connects(1)],
            won(2, 451, &[0, 200, 450]),
        ),
        // The one before fails, while the next already runs.
        (
            vec![Fails(300), Hangs, Connects(5)],
            won(2, 305, &[0, 250, 300]),
        ),
    ];
    for (fates, story) in cases {
        assert_eq!(told(fates.clone()), story, "{fates:?}");
    }
}

#[test]
fn when_all_fail_each_is_named_in_order() {
    let fates = vec![Fate::Fails(900), Fate::Fails(100), Fate::Fails(5)];
    let story = Story {
        won: None,
        failed: vec![0, 1, 2],
        over: 900,
        begun: vec![0, 250, 350],
    };
    assert_eq!(told(fates), story);
    assert_eq!(told(Vec::new()).won, None);
}

#[test]
fn losers_are_dropped() {
    let dropped = Rc::new(RefCell::new(0));
    struct Counts(Rc<RefCell<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            *self.0.borrow_mut() += 1;
        }
    }
    let count = dropped.clone();
    simulated(async move |handle| {
        let addresses = [at(v4(0)), at(v4(1)), at(v4(2))];
        let won = race(&handle, &addresses, Nanos::from_millis(250), |address| {
            let loses = Counts(count.clone());
            async move {
                if address == at(v4(2)) {
                    std::mem::forget(loses);
                    return Ok(());
                }
                let _loses = loses;
                pending().await
            }
        });
        assert_eq!(won.await.expect("the last").1, at(v4(2)));
        assert_eq!(*count.borrow(), 2);
    });
}

#[test]
fn a_refused_address_is_passed_over_on_real_sockets() {
    real(async |handle| {
        let address = "127.0.0.1:0".parse().expect("an address");
        let good = handle.listen(address, &ListenOptions::default());
        let good = good.expect("a free port");
        // No socket listens on the port of a connection's other end, and none can begin to.
        let held = std::net::TcpStream::connect(good.local_addr()).expect("it listens");
        let gone = held.local_addr().expect("it is connected");
        let addresses = [gone, good.local_addr()];
        let connect = |address| {
            let handle = handle.clone();
            async move { handle.connect(address).await }
        };
        let delay = Nanos::from_secs(60);
        let (_stream, address) = race(&handle, &addresses, delay, connect)
            .await
            .expect("one");
        assert_eq!(address, good.local_addr());
        let failed = race(&handle, &[gone, gone], delay, connect)
            .await
            .unwrap_err();
        let kinds: Vec<_> = failed.iter().map(|one| (one.0, one.1.kind())).collect();
        assert_eq!(kinds, [(gone, io::ErrorKind::ConnectionRefused); 2]);
    });
}

proptest! {
    #[test]
    fn no_address_is_lost_or_doubled(bytes in proptest::collection::vec((any::<bool>(), 0_u8..20), 0..30)) {
        let given: Vec<SocketAddr> = bytes
            .iter()
            .map(|&(six, last)| at(if six { v6(last.into()) } else { v4(last) }))
            .collect();
        let ordered = interleave(given.clone());
        let sorted = |mut list: Vec<SocketAddr>| {
            list.sort();
            list.dedup();
            list
        };
        prop_assert_eq!(sorted(ordered.clone()).len(), ordered.len());
        prop_assert_eq!(ordered.first(), given.first());
        prop_assert_eq!(sorted(ordered), sorted(given));
    }

    #[test]
    fn any_text_is_an_override_or_none(text in ".{0,60}") {
        let _ = Override::parse(&text);
    }
}
