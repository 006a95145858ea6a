//! A thread of the generator against a server of a few lines in a simulated network: what it counted is held
//! against what the server did, request by request and to the byte, by a clock that only the simulation moves.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prony_base::{Instant, Nanos};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_record::{
    Counts, ExpectedAnswer, HttpProtocol, LatencyOrigin, LoadSpec, LoadTarget, Pace,
    PreparedRequest, Timestamps, Turn, Turned,
};

use crate::arrivals::ArrivalCounts;
use crate::connection::connect_all;
use crate::control::{Counted, Turns};
use crate::expected::ExpectedStatus;
use crate::recorder::Recorder;
use crate::source::Cycle;
use crate::thread_spec::{RunState, ThreadSpec};
use crate::trace::RequestTimes;
use crate::window::Window;
use crate::worker::Worker;

const LIMIT: Nanos = Nanos::from_secs(600);
/// Between two turns.
const PAUSE: Nanos = Nanos::from_secs(10);

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
    pace: Pace,
    queue_max: usize,
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
            pace: Pace::default(),
            queue_max: 1_000_000,
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
                weight: 0,
            }],
            expected_status: self.expected_status.clone(),
            driver: "sim".to_owned(),
            exact: false,
            pace: self.pace.clone(),
            latency_from: if self.pace.is_open() {
                LatencyOrigin::Intended
            } else {
                LatencyOrigin::Submitted
            },
            ..LoadSpec::default()
        }
    }

    fn thread_spec(&self) -> ThreadSpec {
        ThreadSpec {
            thread: 0,
            threads: 1,
            connections: self.connections,
            depth: 1,
            cookies: false,
            checks: None,
            followers: None,
            protocol: HttpProtocol::Http1,
            unix: None,
            tunnel: None,
            expects_continue: false,
            requests_max: self.requests_max,
            first: 0,
            addresses: vec![address()],
            timeout: self.timeout,
            first_timeout: self.timeout,
            connecting_max: 64,
            expected_status: ExpectedStatus::new(std::iter::once(&self.expected_status[..])),
            follow_max: None,
            coded: None,
            scenario: None,
            queue_max: self.queue_max,
            timestamps: Some(Timestamps::User),
            trace_max: 1_000,
            served_max: u64::MAX,
            sources: Vec::new(),
            secure: None,
            readings: None,
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
    shared: Arc<RunState>,
    /// When the load began, before the warm-up.
    begin: Instant,
    arrivals: Option<ArrivalCounts>,
    unsent: u64,
    trace: Vec<RequestTimes>,
}

/// Two turns with a pause between them: what was counted, and what came of the second.
async fn drive_in_turns(
    handle: Handle,
    setting: Setting,
    shared: Arc<RunState>,
) -> (Counted, Turned) {
    handle.sleep(Nanos::from_millis(1)).await;
    let (thread_spec, spec) = (setting.thread_spec(), setting.spec());
    let recorder = Rc::new(RefCell::new(Recorder::new(
        Instant::ZERO,
        spec.latency_from,
    )));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let next_window = {
        let (handle, setting) = (handle.clone(), setting.clone());
        move || {
            let now = handle.now();
            let start = now + setting.warmup;
            let turn = Turn {
                window_start_ns: start.0,
                window_end_ns: (start + setting.duration).0,
            };
            Arc::new(Window::of(now, &turn))
        }
    };
    let window = next_window();
    let mut counts = Recorder::new(window.start(), spec.latency_from);
    counts.merge(&recorder.borrow());
    let source = Box::new(Cycle::new(&spec.requests, thread_spec.connections));
    let worker = Rc::new(Worker::new(
        handle.clone(),
        &spec,
        thread_spec,
        source,
        window,
        counts,
    ));
    let (go, next) = prony_engine::mailbox(1);
    let (said, over) = std::sync::mpsc::channel();
    let turns = Turns {
        next,
        counts: said,
        before: Turned::default(),
    };
    let other = handle.clone().spawn(async move {
        handle.sleep(PAUSE).await;
        let first = over.try_recv().expect("the first turn is over");
        assert!(over.try_recv().is_err(), "nothing happens in a pause");
        let _ = go.send(next_window());
        handle.sleep(PAUSE).await;
        (first, over.try_recv().expect("the second turn is over"))
    });
    let counted = worker.work(streams, shared, Some(turns)).await;
    let (first, second) = other.await;
    let recorder = &counted.recorder;
    for turned in [first, second] {
        assert!(turned.completed > 0 && turned.answered > turned.completed);
    }
    assert_eq!(
        first.completed + second.completed,
        recorder.counts().completed
    );
    (counted, second)
}

async fn drive(handle: Handle, setting: Setting, shared: Arc<RunState>) -> (Counted, Instant) {
    // Time for the server to listen.
    handle.sleep(Nanos::from_millis(1)).await;
    let thread_spec = setting.thread_spec();
    let spec = setting.spec();
    let recorder = Recorder::new(Instant::ZERO, spec.latency_from);
    let recorder = Rc::new(RefCell::new(recorder));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let window = Window::new(handle.now(), setting.warmup, setting.duration);
    let (begin, start) = (window.begin(), window.start());
    let mut counts = Recorder::new(start, spec.latency_from);
    counts.merge(&recorder.borrow());
    let source = Box::new(Cycle::new(&spec.requests, thread_spec.connections));
    let worker = Worker::new(handle, &spec, thread_spec, source, Arc::new(window), counts);
    (Rc::new(worker).work(streams, shared, None).await, begin)
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
    let shared = Arc::new(RunState::default());
    shared.stop.store(setting.stopped, Relaxed);
    let (own, told) = (setting.clone(), Arc::clone(&shared));
    let outcome = world.spawn_loop(&Config::default(), |handle| drive(handle, own, told));
    world
        .run(LIMIT)
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let (counted, begin) = outcome.take().expect("the load has ended");
    let counts = counted.recorder.counts();
    let in_its_part = counts.warmup_completed
        + counts.warmup_failed
        + counts.completed
        + counts.failed.total()
        + counts.in_flight;
    assert_eq!(counts.sent, in_its_part, "seed {seed}: {counts:?}");
    assert_eq!(counts.sent, seen.requests.get(), "seed {seed}: {counts:?}");
    if let Some(arrivals) = counted.arrivals {
        let became = counts.sent + arrivals.waiting + arrivals.dropped;
        assert_eq!(arrivals.scheduled, became, "seed {seed}: {arrivals:?}");
    }
    // One that was being opened when the load ended is dropped, but the server may have seen it.
    let (opened, seen_opened) = (counted.recorder.connections_opened, seen.connections.get());
    let being_opened = opened..=opened + setting.connections as u64;
    assert!(
        being_opened.contains(&seen_opened),
        "seed {seed}: {opened} {seen_opened}"
    );
    Ended {
        counts,
        recorder: counted.recorder,
        lasted: counted.finished.since(begin + setting.warmup),
        seen,
        shared,
        begin,
        arrivals: counted.arrivals,
        unsent: counted.unsent,
        trace: counted.trace,
    }
}

/// Two turns in the world of `seed`: what was counted, what came of the second, and how many requests the server saw.
fn play_in_turns(seed: u64, setting: &Setting, behaviour: Behaviour) -> (Counted, Turned, u64) {
    let mut world = World::new(seed, SimOptions::default());
    let seen = Rc::new(Seen::default());
    let theirs = Rc::clone(&seen);
    world.spawn_loop(&Config::default(), move |handle| async move {
        let forever = serve(handle.clone(), behaviour, theirs);
        let _ = handle.timeout(PAUSE * 3, forever).await;
    });
    let (own, shared) = (setting.clone(), Arc::new(RunState::default()));
    let outcome = world.spawn_loop(&Config::default(), |handle| {
        drive_in_turns(handle, own, shared)
    });
    let ran = world.run(LIMIT);
    ran.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let (counted, second) = outcome.take().expect("the load has ended");
    (counted, second, seen.requests.get())
}

fn in_turns() -> Setting {
    Setting {
        warmup: Nanos::from_millis(3),
        duration: Nanos::from_millis(150),
        requests_max: u64::MAX,
        ..Setting::default()
    }
}

#[test]
fn no_latency_holds_the_pause_between_two_turns_and_the_counts_balance() {
    for seed in 0..prony_testkit::seeds(10, 1_000) {
        let (counted, second, seen) = play_in_turns(seed, &in_turns(), |_| Act::Answer(HELLO));
        assert_eq!(
            (second.opened, second.closed_by_server, second.lost),
            (0, 0, 0)
        );
        let counts = counted.recorder.counts();
        let in_its_part = counts.warmup_completed + counts.completed + counts.in_flight;
        assert_eq!(
            (counts.sent, counts.sent),
            (in_its_part, seen),
            "seed {seed}"
        );
        assert_eq!((counts.failed.total(), counts.abandoned), (0, 0));
        let latency = counted.recorder.latency().summary();
        assert_eq!(latency.infinite, 0);
        assert!(latency.max < PAUSE.0 / 100, "seed {seed}: {latency:?}");
        // Two windows of a slice and a half, laid end to end.
        let slices = counted.recorder.slices(Nanos::from_millis(300)).completed;
        assert_eq!(slices.iter().sum::<u64>(), counts.completed, "{slices:?}");
        assert!(slices.iter().all(|&slice| slice > 0), "{slices:?}");
    }
}

#[test]
fn connections_that_ended_before_a_pause_are_there_again_in_the_next_turn() {
    for seed in 0..prony_testkit::seeds(10, 1_000) {
        let (counted, second, seen) =
            play_in_turns(seed, &in_turns(), |_| Act::Last(HELLO_AND_CLOSE));
        assert!(second.opened > 0, "seed {seed}: {second:?}");
        let counts = counted.recorder.counts();
        assert_eq!(counts.sent, seen, "seed {seed}");
        assert!(counts.completed > 0 && counts.failed.total() == 0);
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
            // But for one whose answer came before the end and was looked at after it.
            let end = ended.begin + short.warmup + short.duration;
            let over_the_end =
                |times: &&RequestTimes| times.last_byte < end && times.processed >= end;
            let over = ended.trace.iter().filter(over_the_end).count() as u64;
            assert_eq!(counts.in_flight + over, 3, "{counts:?}");
            assert_eq!(counts.drained, counts.in_flight);
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
        let (first, last) = (
            ended.recorder.first_byte(),
            ended.recorder.latency().summary(),
        );
        assert_eq!((first.count, last.count), (60, 60));
        assert!(first.max < 2_000_000, "{first:?}");
        assert!(last.min > 9_900_000 && last.max < 13_000_000, "{last:?}");
    });
}

#[test]
fn an_answer_that_ends_with_its_connection_ends_when_that_is_seen() {
    let behaviour: Behaviour = |_| Act::Last("HTTP/1.1 200 OK\r\n\r\nHello");
    in_each_world(&Setting::default(), behaviour, |ended| {
        assert_eq!((ended.counts.completed, ended.trace.len()), (60, 60));
        for times in &ended.trace {
            assert!(times.first_byte <= times.last_byte, "{times:?}");
            assert!(times.last_byte <= times.processed, "{times:?}");
            assert_eq!(times.picked_up_within, Nanos::ZERO, "{times:?}");
        }
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

/// An open load of so many requests a second for a second, on `connections`.
fn open(pace: Pace, connections: usize) -> Setting {
    Setting {
        connections,
        duration: Nanos::from_secs(1),
        requests_max: u64::MAX,
        pace,
        ..Setting::default()
    }
}

fn constant(rate_per_s: f64) -> Pace {
    Pace::Constant { rate_per_s }
}

#[test]
fn a_rate_that_the_server_keeps_is_sent_as_it_is_scheduled() {
    in_each_world(
        &open(constant(200.0), 5),
        |_| Act::Answer(HELLO),
        |ended| {
            let arrivals = ended.arrivals.unwrap();
            assert_eq!((arrivals.scheduled, arrivals.in_window), (200, 200));
            assert_eq!((ended.counts.sent, ended.counts.completed), (200, 200));
            assert_eq!(
                (arrivals.waiting_max, arrivals.dropped, arrivals.had_idle),
                (0, 0, true)
            );
            let delay = ended.recorder.delay();
            assert_eq!(delay.slot_wait_ns.count, 0);
            assert!(delay.lateness_ns.max < 1_000_000, "{delay:?}");
            let intended = ended
                .trace
                .iter()
                .map(|times| times.intended.since(ended.begin).0);
            assert!(intended.eq((0..200).map(|n| n * 5_000_000)));
        },
    );
}

/// One slot, a request each 10 ms, and each takes 25 ms and the way there and back: the n-th waits for those before it.
#[test]
fn latency_counts_from_the_intended_start_and_what_waits_is_the_servers_doing() {
    let slow: Behaviour = |_| {
        Act::InTwo(
            "HTTP/1.1 200 OK\r\n",
            Nanos::from_millis(25),
            "Content-Length: 0\r\n\r\n",
        )
    };
    let setting = Setting {
        duration: Nanos::from_millis(100),
        splits: false,
        ..open(constant(100.0), 1)
    };
    in_each_world(&setting, slow, |ended| {
        let trace = &ended.trace;
        assert_eq!((ended.counts.sent, trace.len()), (10, 10));
        assert_eq!(ended.counts.sent_in_drain + ended.counts.completed, 9);
        for (n, times) in trace.iter().enumerate() {
            assert_eq!(
                times.intended.since(ended.begin),
                Nanos::from_millis(10 * n as u64)
            );
            if n > 0 {
                let idle = times.submitted.since(trace[n - 1].last_byte);
                assert!(times.submitted >= trace[n - 1].last_byte && idle < Nanos::from_millis(1));
            }
        }
        let latency = ended.recorder.latency().summary();
        let last = trace[9].last_byte.since(trace[9].intended).0 as f64;
        assert!(
            (latency.max as f64 / last - 1.0).abs() < 0.001 && last > 160e6,
            "{latency:?}"
        );
        let delay = ended.recorder.delay();
        assert_eq!(delay.slot_wait_ns.count, 9);
        assert!(delay.lateness_ns.max < 1_000_000, "{delay:?}");
        // Who takes 25 ms for what comes every 10 ms has a queue of six in the end.
        assert_eq!(ended.arrivals.unwrap().waiting_max, 6);
    });
}

#[test]
fn a_queue_at_its_limit_drops_arrivals_which_are_never_answered() {
    let never: Behaviour = |_| Act::Nothing;
    let setting = Setting {
        duration: Nanos::from_millis(100),
        timeout: Nanos::from_secs(1),
        queue_max: 7,
        ..open(constant(1_000.0), 2)
    };
    in_each_world(&setting, never, |ended| {
        let (counts, arrivals) = (&ended.counts, ended.arrivals.unwrap());
        assert_eq!(
            (arrivals.scheduled, counts.sent),
            (100, 2 + counts.sent_in_drain)
        );
        assert_eq!(
            arrivals.scheduled,
            counts.sent + arrivals.waiting + arrivals.dropped
        );
        assert_eq!((arrivals.dropped, arrivals.waiting_max), (91, 7));
        let latency = ended.recorder.latency().summary();
        assert_eq!((latency.count, latency.infinite), (100, 100));
        assert!(!arrivals.had_idle);
    });
}

#[test]
fn users_who_think_send_as_often_as_their_thinking_and_the_server_allow() {
    let pace = Pace::Closed {
        think_ns: Nanos::from_millis(10).0,
    };
    let setting = Setting {
        connections: 10,
        ..open(pace, 10)
    };
    in_each_world(
        &setting,
        |_| Act::Answer(HELLO),
        |ended| {
            let mean = ended.recorder.latency().summary().mean;
            let expected = 10.0 * 1e9 / (10e6 + mean);
            let completed = ended.counts.completed as f64;
            assert!(
                (completed - expected).abs() <= 10.0,
                "{completed} {expected}"
            );
            // They do not go in step: the ten begin a millisecond apart.
            let mut first: Vec<u64> = ended
                .trace
                .iter()
                .take(10)
                .map(|times| times.intended.since(ended.begin).0)
                .collect();
            // The trace has them in the order of their answers.
            first.sort_unstable();
            assert!(
                first.iter().zip(0..).all(|(at, n)| at / 1_000_000 == n),
                "{first:?}"
            );
        },
    );
}

#[test]
fn a_number_of_requests_ends_an_open_load_too() {
    let setting = Setting {
        requests_max: 25,
        duration: Nanos::MAX,
        ..open(constant(1_000.0), 4)
    };
    in_each_world(
        &setting,
        |_| Act::Answer(HELLO),
        |ended| {
            assert_eq!(
                (ended.counts.sent, ended.counts.completed, ended.unsent),
                (25, 25, 0)
            );
            assert!(ended.lasted < Nanos::from_millis(30), "{}", ended.lasted);
        },
    );
}

#[test]
fn a_load_by_number_ends_when_nobody_is_there_any_more_and_tells_what_was_not_sent() {
    let setting = Setting {
        requests_max: 60,
        duration: Nanos::MAX,
        timeout: Nanos::from_secs(2),
        ..Setting::default()
    };
    for seed in 0..prony_testkit::seeds(10, 1_000) {
        let ended = play(seed, &setting, None);
        assert_eq!((ended.counts.sent, ended.unsent), (0, 60));
        let bounds = Nanos::from_millis(1_990)..Nanos::from_millis(2_300);
        assert!(bounds.contains(&ended.lasted), "{}", ended.lasted);
    }
}

#[test]
fn an_answer_that_nobody_asked_for_is_stray_and_its_connection_is_opened_anew() {
    // The server speaks first, and again after each answer.
    let twice: Behaviour = |_| {
        let later = Nanos::from_millis(5);
        Act::InTwo(HELLO, later, HELLO)
    };
    let setting = Setting {
        splits: false,
        ..open(constant(10.0), 1)
    };
    in_each_world(&setting, twice, |ended| {
        assert_eq!(
            (ended.counts.completed, ended.counts.failed.total()),
            (10, 0)
        );
        assert_eq!(ended.recorder.connections_stray, 10);
    });
}

#[test]
fn another_protocol_that_nobody_asked_for_is_a_failure_and_no_wait() {
    let switching: Behaviour = |_| Act::Answer("HTTP/1.1 101 Switching Protocols\r\n\r\n");
    in_each_world(&Setting::default(), switching, |ended| {
        assert_eq!(ended.counts.failed.protocol, 60);
        assert!(ended.lasted < Nanos::from_secs(1), "{}", ended.lasted);
    });
}

/// Any pace against a server of any mood: `play` checks that each request was counted once, by the server's count.
#[test]
fn whatever_the_pace_and_the_server_every_request_is_counted_once() {
    for seed in 0..prony_testkit::seeds(1_000, 100_000) {
        let mut random = prony_base::Random::of(seed, "accounts");
        let rate_per_s = 1.0 + random.below(2_000) as f64;
        let pace = match random.below(4) {
            0 => Pace::Closed {
                think_ns: random.below(5_000_000),
            },
            1 => Pace::Constant { rate_per_s },
            2 => Pace::Poisson { rate_per_s },
            _ => Pace::default(),
        };
        let moods: [Behaviour; 6] = [
            |_| Act::Answer(HELLO),
            |n| {
                if n % 3 == 2 {
                    Act::Last("")
                } else {
                    Act::Answer(HELLO)
                }
            },
            |n| {
                if n % 5 == 4 {
                    Act::Nothing
                } else {
                    Act::Answer(HELLO)
                }
            },
            |n| {
                if n % 4 == 3 {
                    Act::Last(HELLO_AND_CLOSE)
                } else {
                    Act::Answer(HELLO)
                }
            },
            |n| {
                if n % 2 == 1 {
                    Act::Answer("what?\r\n\r\n")
                } else {
                    Act::Answer(HELLO)
                }
            },
            |_| {
                Act::InTwo(
                    "HTTP/1.1 200 OK\r\nContent-",
                    Nanos::from_millis(3),
                    "Length: 0\r\n\r\n",
                )
            },
        ];
        let setting = Setting {
            connections: 1 + random.below(4) as usize,
            warmup: Nanos::from_millis(random.below(20)),
            duration: Nanos::from_millis(1 + random.below(40)),
            requests_max: if random.chance(1, 2) {
                1 + random.below(50)
            } else {
                u64::MAX
            },
            timeout: Nanos::from_millis(5 + random.below(30)),
            splits: random.chance(1, 2),
            queue_max: random.below(12) as usize,
            pace,
            ..Setting::default()
        };
        let behaviour = moods[random.below(6) as usize];
        play(seed, &setting, Some(behaviour));
    }
}
