//! A thread of the generator against a server of a few lines in a simulated network: what it counted is held
//! against what the server did, request by request and to the byte, by a clock that nobody else moves.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_base::{Instant, Nanos};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_record::{Counts, ExpectedAnswer, LoadSpec, LoadTarget, PreparedRequest};

use crate::recorder::Recorder;
use crate::window::Window;
use crate::worker::{Counted, Share, Shared, Worker, connect_all};

const LIMIT: Nanos = Nanos::from_secs(600);

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello";
const HELLO_AND_CLOSE: &str =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nHello";

/// What the server does with a request.
#[derive(Clone, Copy)]
enum Act {
    /// Sends this and waits for the next.
    Answer(&'static str),
    /// Sends this and closes.
    Last(&'static str),
    /// Sends the one part, and after this time the other.
    InTwo(&'static str, Nanos, &'static str),
    Nothing,
}

/// By the number of the request on its connection, from 0.
type Behaviour = fn(u64) -> Act;

/// What the server saw.
#[derive(Default)]
struct Seen {
    connections: Cell<u64>,
    requests: Cell<u64>,
}

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

async fn serve(handle: Handle, behaviour: Behaviour, seen: Rc<Seen>) {
    let listener = handle
        .listen(address(), &ListenOptions::default())
        .expect("a free port");
    while let Ok((stream, _)) = listener.accept().await {
        seen.connections.set(seen.connections.get() + 1);
        let work = converse(handle.clone(), stream, behaviour, Rc::clone(&seen));
        handle.spawn(work).detach();
    }
}

async fn converse(handle: Handle, stream: Stream, behaviour: Behaviour, seen: Rc<Seen>) {
    let mut pending = Vec::new();
    for n in 0.. {
        while !pending.ends_with(b"\r\n\r\n") {
            match stream.recv().await {
                Ok(bytes) if !bytes.is_empty() => pending.extend_from_slice(&bytes),
                _ => return,
            }
        }
        pending.clear();
        seen.requests.set(seen.requests.get() + 1);
        let said = match behaviour(n) {
            Act::Answer(text) => stream.post(text),
            Act::Last("") => return,
            Act::Last(text) => {
                let _ = stream.post(text);
                let _ = stream.flush().await;
                return;
            }
            Act::InTwo(one, pause, other) => {
                let first = stream.post(one);
                handle.sleep(pause).await;
                first.and_then(|()| stream.post(other))
            }
            Act::Nothing => Ok(()),
        };
        if said.is_err() {
            return;
        }
    }
}

/// A load; by default one of 60 requests on three connections, which has all the time that it needs.
#[derive(Clone)]
struct Setting {
    connections: usize,
    warmup: Nanos,
    duration: Nanos,
    requests_max: u64,
    timeout: Nanos,
    request: &'static str,
    expected_body: Option<&'static str>,
    expected_status: Vec<u16>,
    /// Whether the network hands bytes over in parts.
    splits: bool,
    /// Whether it is told to end before it begins.
    stopped: bool,
}

impl Default for Setting {
    fn default() -> Setting {
        Setting {
            connections: 3,
            warmup: Nanos::ZERO,
            duration: Nanos::from_secs(20),
            requests_max: 60,
            timeout: Nanos::from_secs(1),
            request: REQUEST,
            expected_body: None,
            expected_status: Vec::new(),
            splits: true,
            stopped: false,
        }
    }
}

impl Setting {
    fn spec(&self) -> LoadSpec {
        LoadSpec {
            target: LoadTarget {
                url: format!("http://{}/", address()),
                address: address().to_string(),
            },
            further: Vec::new(),
            threads: 1,
            connections: self.connections as u32,
            warmup_ns: self.warmup.0,
            duration_ns: self.duration.0,
            requests_max: Some(self.requests_max),
            timeout_ns: self.timeout.0,
            requests: vec![PreparedRequest {
                method: "GET".to_owned(),
                bytes: self.request.into(),
                expect: self.expected_body.map(|body| ExpectedAnswer {
                    body: Some(body.into()),
                }),
            }],
            expected_status: self.expected_status.clone(),
            driver: "sim".to_owned(),
            exact: false,
            ..LoadSpec::default()
        }
    }

    fn share(&self) -> Share {
        Share {
            thread: 0,
            connections: self.connections,
            requests_max: self.requests_max,
            first: 0,
            addresses: vec![address()],
            timeout: self.timeout,
            expected_status: self.expected_status.clone(),
        }
    }
}

/// What became of a load.
struct Ended {
    counts: Counts,
    recorder: Recorder,
    /// From the start of the window until the last connection had nothing left to do.
    lasted: Nanos,
    seen: Rc<Seen>,
    shared: Arc<Shared>,
}

async fn drive(handle: Handle, setting: Setting, shared: Arc<Shared>) -> (Counted, Instant) {
    // Time for the server to listen.
    handle.sleep(Nanos::from_millis(1)).await;
    let share = setting.share();
    let recorder = Rc::new(RefCell::new(Recorder::new(Instant::ZERO)));
    let streams = connect_all(&handle, &share, &recorder).await;
    let window = Window::new(handle.now(), setting.warmup, setting.duration);
    let start = window.start();
    let mut counts = Recorder::new(start);
    counts.merge(&recorder.borrow());
    let worker = Worker::new(handle, &setting.spec(), share, Arc::new(window), counts);
    (Rc::new(worker).work(streams, shared).await, start)
}

/// Plays `setting` in the world of `seed`; every request that the server saw is counted once, whatever it did.
fn play(seed: u64, setting: &Setting, behaviour: Option<Behaviour>) -> Ended {
    let options = SimOptions {
        short_reads: setting.splits,
        short_writes: setting.splits,
        ..SimOptions::default()
    };
    let mut world = World::new(seed, options);
    let seen = Rc::new(Seen::default());
    if let Some(behaviour) = behaviour {
        let seen = Rc::clone(&seen);
        world.spawn_loop(&Config::default(), move |handle| async move {
            let forever = serve(handle.clone(), behaviour, seen);
            let _ = handle.timeout(Nanos::from_secs(30), forever).await;
        });
    }
    let shared = Arc::new(Shared::default());
    shared.stop.store(setting.stopped, Relaxed);
    let (own, told) = (setting.clone(), Arc::clone(&shared));
    let outcome = world.spawn_loop(&Config::default(), |handle| drive(handle, own, told));
    world
        .run(LIMIT)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let (counted, start) = outcome.take().expect("the load has ended");
    let counts = counted.recorder.counts();
    let in_its_part = counts.warmup_completed
        + counts.warmup_failed
        + counts.completed
        + counts.failed.total()
        + counts.in_flight;
    assert_eq!(counts.sent, in_its_part, "seed {seed}: {counts:?}");
    assert_eq!(counts.sent, seen.requests.get(), "seed {seed}: {counts:?}");
    assert_eq!(
        counted.recorder.connections_opened,
        seen.connections.get(),
        "seed {seed}"
    );
    Ended {
        counts,
        recorder: counted.recorder,
        lasted: counted.finished.since(start),
        seen,
        shared,
    }
}

fn in_each_world(setting: &Setting, behaviour: Behaviour, check: impl Fn(&Ended)) {
    for seed in 0..prony_testkit::seeds(10, 1_000) {
        check(&play(seed, setting, Some(behaviour)));
    }
}

#[test]
fn a_load_without_fault_is_counted_to_the_byte() {
    in_each_world(
        &Setting::default(),
        |_| Act::Answer(HELLO),
        |ended| {
            let counts = &ended.counts;
            let expected = Counts {
                sent: 60,
                completed: 60,
                acknowledged: 60,
                ..Counts::default()
            };
            assert_eq!(*counts, expected);
            let recorder = &ended.recorder;
            assert_eq!(recorder.sent_bytes, 60 * REQUEST.len() as u64);
            assert_eq!(recorder.received_bytes, 60 * HELLO.len() as u64);
            assert_eq!(recorder.connections_opened, 3);
            assert_eq!(recorder.connections_closed_by_server, 0);
            assert_eq!(recorder.connect().count, 3);
            assert!(ended.lasted < Nanos::from_millis(100));
        },
    );
}

#[test]
fn each_connection_has_one_request_in_flight_when_the_window_ends() {
    let short = Setting {
        warmup: Nanos::from_millis(3),
        duration: Nanos::from_millis(5),
        requests_max: u64::MAX,
        ..Setting::default()
    };
    in_each_world(
        &short,
        |_| Act::Answer(HELLO),
        |ended| {
            let counts = &ended.counts;
            assert!(
                counts.warmup_completed >= 9 && counts.completed >= 15,
                "{counts:?}"
            );
            assert_eq!((counts.drained, counts.in_flight), (3, 3));
            assert_eq!(counts.acknowledged, counts.sent);
            assert!(ended.recorder.received_bytes >= (counts.completed - 3) * HELLO.len() as u64);
            assert!(ended.recorder.received_bytes <= (counts.completed + 3) * HELLO.len() as u64);
        },
    );
}

#[test]
fn more_connections_than_are_opened_at_once_are_all_opened() {
    let many = Setting {
        connections: 150,
        requests_max: 300,
        ..Setting::default()
    };
    let ended = play(1, &many, Some(|_| Act::Answer(HELLO)));
    assert_eq!(
        (ended.seen.connections.get(), ended.counts.completed),
        (150, 300)
    );
}

#[test]
fn a_server_that_says_that_it_closes_is_counted_and_nothing_fails() {
    for last in [
        HELLO_AND_CLOSE,
        "HTTP/1.1 200 OK\r\n\r\nHello, until I close",
    ] {
        for seed in 0..prony_testkit::seeds(10, 1_000) {
            let (setting, behaviour): (_, Behaviour) = match last {
                HELLO_AND_CLOSE => (Setting::default(), |_| Act::Last(HELLO_AND_CLOSE)),
                _ => (Setting::default(), |_| {
                    Act::Last("HTTP/1.1 200 OK\r\n\r\nHello, until I close")
                }),
            };
            let ended = play(seed, &setting, Some(behaviour));
            assert_eq!(
                (ended.counts.completed, ended.counts.failed.total()),
                (60, 0)
            );
            assert_eq!(ended.recorder.connections_closed_by_server, 60, "{last}");
            assert!(ended.recorder.connections_opened >= 60);
        }
    }
}

#[test]
fn a_connection_that_was_to_be_closed_is_not_held_against_the_server() {
    let closing = Setting {
        request: "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        ..Setting::default()
    };
    in_each_world(
        &closing,
        |_| Act::Last(HELLO_AND_CLOSE),
        |ended| {
            assert_eq!(ended.counts.completed, 60);
            assert_eq!(ended.recorder.connections_closed_by_server, 0);
        },
    );
}

#[test]
fn a_server_that_closes_without_saying_so_fails_the_next_request_and_is_counted() {
    let behaviour: Behaviour = |n| match n {
        0 | 1 => Act::Answer(HELLO),
        _ => Act::Last(""),
    };
    in_each_world(&Setting::default(), behaviour, |ended| {
        let (counts, failed) = (&ended.counts, &ended.counts.failed);
        assert_eq!(failed.closed + failed.reset, failed.total(), "{counts:?}");
        assert!((18..=20).contains(&failed.total()), "{counts:?}");
        assert_eq!(ended.recorder.connections_closed_by_server, failed.total());
    });
}

#[test]
fn what_breaks_before_or_within_the_first_answer_is_no_lack_of_keep_alive() {
    let never: Behaviour = |_| Act::Last("");
    let cut: Behaviour = |n| match n {
        0 => Act::Answer(HELLO),
        _ => Act::Last("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHel"),
    };
    for (behaviour, completed) in [(never, 0..=0), (cut, 30..=32)] {
        in_each_world(&Setting::default(), behaviour, |ended| {
            let (counts, failed) = (&ended.counts, &ended.counts.failed);
            assert!(completed.contains(&counts.completed), "{counts:?}");
            assert_eq!(
                failed.closed + failed.reset,
                60 - counts.completed,
                "{counts:?}"
            );
            assert_eq!(ended.recorder.connections_closed_by_server, 0);
        });
    }
}

#[test]
fn garbage_fails_as_a_fault_of_the_protocol() {
    let behaviour: Behaviour = |n| match n {
        0 => Act::Answer(HELLO),
        _ => Act::Last("SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    };
    in_each_world(&Setting::default(), behaviour, |ended| {
        let counts = &ended.counts;
        assert_eq!(counts.failed.protocol, 60 - counts.completed, "{counts:?}");
        assert_eq!(ended.recorder.connections_closed_by_server, 0);
    });
}

#[test]
fn an_unanswered_request_is_a_time_out_after_its_time_and_the_connection_is_opened_anew() {
    let patient = Setting {
        connections: 2,
        requests_max: 8,
        timeout: Nanos::from_millis(80),
        ..Setting::default()
    };
    let behaviour: Behaviour = |n| match n {
        0 => Act::Answer(HELLO),
        _ => Act::Nothing,
    };
    in_each_world(&patient, behaviour, |ended| {
        let counts = &ended.counts;
        assert_eq!(
            (counts.completed, counts.failed.timeout),
            (4, 4),
            "{counts:?}"
        );
        assert_eq!(counts.failed.total(), 4);
        assert_eq!(ended.recorder.connections_closed_by_server, 0);
        assert_eq!(ended.recorder.connections_opened, 4);
        // Two on each connection. It is looked for them eight times in 80 ms, and no more often, because a
        // look costs a turn of the loop: at 90 and at 180 ms.
        let bounds = Nanos::from_millis(175)..Nanos::from_millis(190);
        assert!(bounds.contains(&ended.lasted), "{}", ended.lasted);
    });
}

#[test]
fn what_is_never_answered_after_the_window_is_abandoned() {
    let short = Setting {
        duration: Nanos::from_millis(50),
        timeout: Nanos::from_millis(100),
        ..Setting::default()
    };
    in_each_world(
        &short,
        |_| Act::Nothing,
        |ended| {
            let expected = Counts {
                sent: 3,
                abandoned: 3,
                in_flight: 3,
                ..Counts::default()
            };
            assert_eq!(ended.counts, expected);
            assert!(ended.lasted >= Nanos::from_millis(100), "{}", ended.lasted);
        },
    );
}

#[test]
fn bytes_that_follow_an_answer_belong_to_no_other() {
    let unsplit = Setting {
        splits: false,
        ..Setting::default()
    };
    let stray: Behaviour = |_| Act::Answer("HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n");
    in_each_world(&unsplit, stray, |ended| {
        assert_eq!(
            (ended.counts.completed, ended.counts.failed.total()),
            (60, 0)
        );
        assert!(ended.recorder.connections_opened >= 60);
        assert_eq!(ended.recorder.connections_closed_by_server, 0);
    });
}

#[test]
fn an_interim_answer_is_no_answer() {
    let behaviour: Behaviour = |_| {
        Act::Answer(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        )
    };
    in_each_world(&Setting::default(), behaviour, |ended| {
        assert_eq!(ended.counts.completed, 60);
        let status: Vec<_> = ended.recorder.status().collect();
        assert_eq!(status, [("404".to_owned(), 60)]);
    });
}

#[test]
fn a_body_counts_only_if_it_is_the_expected_one_to_the_last_byte() {
    let strict = Setting {
        expected_body: Some("Hello"),
        requests_max: 12,
        ..Setting::default()
    };
    let chunked: Behaviour = |_| {
        Act::Answer(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHe\r\n3\r\nllo\r\n0\r\n\r\n",
        )
    };
    for right in [chunked, |_| Act::Answer(HELLO)] {
        in_each_world(&strict, right, |ended| {
            assert_eq!(
                (ended.counts.completed, ended.counts.acknowledged),
                (12, 12)
            );
        });
    }
    let wrong: [Behaviour; 5] = [
        |_| Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nJello"),
        |_| Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHellO"),
        |_| Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nHell"),
        |_| Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello!"),
        |_| Act::Answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    ];
    for wrong in wrong {
        in_each_world(&strict, wrong, |ended| {
            assert_eq!((ended.counts.completed, ended.counts.acknowledged), (0, 0));
            assert_eq!(ended.counts.failed.wrong_answer, 12);
            assert_eq!(ended.recorder.connections_closed_by_server, 0);
        });
    }
}

#[test]
fn without_a_choice_the_statuses_from_200_to_399_are_expected() {
    let bounds: [(Behaviour, u64); 4] = [
        (
            |_| Act::Answer("HTTP/1.1 200 A\r\nContent-Length: 0\r\n\r\n"),
            60,
        ),
        (
            |_| Act::Answer("HTTP/1.1 399 B\r\nContent-Length: 0\r\n\r\n"),
            60,
        ),
        (
            |_| Act::Answer("HTTP/1.1 400 C\r\nContent-Length: 0\r\n\r\n"),
            0,
        ),
        (
            |_| Act::Answer("HTTP/1.1 503 D\r\nContent-Length: 0\r\n\r\n"),
            0,
        ),
    ];
    for (behaviour, right) in bounds {
        let counts = play(1, &Setting::default(), Some(behaviour)).counts;
        assert_eq!((counts.completed, counts.acknowledged), (60, right));
        assert_eq!(counts.unexpected_status, 60 - right);
    }
    let chosen = Setting {
        expected_status: vec![404, 503],
        ..Setting::default()
    };
    assert_eq!(play(1, &chosen, Some(bounds[3].0)).counts.acknowledged, 60);
    assert_eq!(play(1, &chosen, Some(bounds[0].0)).counts.acknowledged, 0);
}

#[test]
fn the_first_byte_and_the_last_have_their_own_times() {
    let behaviour: Behaviour = |_| {
        let pause = Nanos::from_millis(10);
        Act::InTwo(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHe",
            pause,
            "llo",
        )
    };
    in_each_world(&Setting::default(), behaviour, |ended| {
        let (first, last) = (ended.recorder.first_byte(), ended.recorder.latency().0);
        assert_eq!((first.count, last.count), (60, 60));
        assert!(first.max < 2_000_000, "{first:?}");
        assert!(last.min > 9_900_000 && last.max < 13_000_000, "{last:?}");
    });
}

#[test]
fn attempts_to_connect_pause_longer_each_time_up_to_a_tenth_of_a_second() {
    let lonely = Setting {
        connections: 1,
        duration: Nanos::from_secs(1),
        ..Setting::default()
    };
    for seed in 0..prony_testkit::seeds(10, 1_000) {
        let ended = play(seed, &lonely, None);
        // One before the window; then after 0, 1, 3, 7, … 127 ms, and eight more.
        assert_eq!(ended.counts.connect_failed.refused, 17);
        assert_eq!(ended.counts.connect_failed.total(), 17);
        assert_eq!(ended.lasted, Nanos::from_secs(1));
    }
}

#[test]
fn a_load_that_is_told_to_end_ends_and_counts_what_is_in_flight() {
    let stopped = Setting {
        stopped: true,
        requests_max: u64::MAX,
        ..Setting::default()
    };
    in_each_world(
        &stopped,
        |_| Act::Answer(HELLO),
        |ended| {
            assert!(ended.counts.sent <= 3, "{:?}", ended.counts);
            assert!(ended.lasted < Nanos::from_millis(2), "{}", ended.lasted);
        },
    );
}

#[test]
fn how_far_a_load_has_come_is_told_while_it_runs() {
    let told_often = Setting {
        duration: Nanos::from_millis(40),
        requests_max: u64::MAX,
        timeout: Nanos::from_millis(8),
        ..Setting::default()
    };
    let behaviour: Behaviour = |n| match n {
        0 | 1 => Act::Answer(HELLO),
        _ => Act::Last(""),
    };
    in_each_world(&told_often, behaviour, |ended| {
        let (counts, shared) = (&ended.counts, &ended.shared);
        for (told, counted) in [
            (shared.completed.load(Relaxed), counts.completed),
            (shared.failed.load(Relaxed), counts.failed.total()),
        ] {
            // Within the last of forty moments, a millisecond each.
            assert!(
                told <= counted && told * 10 >= counted * 8,
                "{told} of {counted}"
            );
        }
    });
}
