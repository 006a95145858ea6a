//! HTTP/2 of the generator against a server by hand in simulated worlds: whatever becomes of streams and connections,
//! each request is accounted for once. 1,000 worlds, 10,000 in the long tier.

use std::cell::Cell;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use prony_base::{Instant, Nanos, Random};
use prony_engine::sim::{SimOptions, World};
use prony_engine::{Config, Handle, ListenOptions, Stream};
use prony_record::{
    Counts, HttpProtocol, LatencyOrigin, LoadSpec, LoadTarget, PreparedRequest, Timestamps,
};
use prony_wire::http2::{FRAME_HEAD_BYTES, FrameHead, PREFACE, flag, kind, put_frame_head};

use crate::connection::connect_all;
use crate::expected::ExpectedStatus;
use crate::recorder::Recorder;
use crate::source::Cycle;
use crate::thread_spec::{RunState, ThreadSpec};
use crate::window::Window;
use crate::worker::Worker;

const REQUESTS: u64 = 60;

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 80))
}

/// What the server saw and did.
#[derive(Default)]
struct Tally {
    requests: Cell<u64>,
    answered: Cell<u64>,
    refused: Cell<u64>,
}

fn add(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

async fn serve(handle: Handle, seed: u64, has_faults: bool, tally: Rc<Tally>) {
    let listener = handle
        .listen(address(), &ListenOptions::default())
        .expect("a free port");
    let mut number = 0;
    while let Ok((stream, _)) = listener.accept().await {
        let random = Random::new(seed * 1_000 + number);
        let work = converse(
            handle.clone(),
            stream,
            random,
            has_faults,
            Rc::clone(&tally),
        );
        handle.spawn(work).detach();
        number += 1;
    }
}

/// One connection, until it ends or is ended.
async fn converse(
    handle: Handle,
    stream: Stream,
    mut random: Random,
    has_faults: bool,
    tally: Rc<Tally>,
) {
    let mut out = Vec::new();
    put_frame_head(&mut out, 0, kind::SETTINGS, 0, 0);
    let mut seen = Vec::new();
    let mut used = PREFACE.len();
    loop {
        if stream.post(std::mem::take(&mut out)).is_err() {
            return;
        }
        match stream.recv().await {
            Ok(bytes) if !bytes.is_empty() => seen.extend_from_slice(&bytes),
            _ => return,
        }
        while let Some((head, rest)) = seen.get(used..).and_then(<[u8]>::split_first_chunk) {
            let head = FrameHead::read(*head);
            if rest.len() < head.length {
                break;
            }
            used += FRAME_HEAD_BYTES + head.length;
            if head.kind != kind::HEADERS {
                continue;
            }
            add(&tally.requests);
            let fate = if has_faults { random.below(40) } else { 40 };
            if fate == 0 {
                return stream.reset();
            }
            become_of(head.stream, fate, &tally, &mut out);
            if random.below(5) == 0 {
                // What follows is in another part.
                let _ = stream.post(std::mem::take(&mut out));
                handle.sleep(Nanos::from_micros(random.below(3_000))).await;
            }
        }
    }
}

/// Writes what becomes of a request.
fn become_of(id: u32, fate: u64, tally: &Tally, out: &mut Vec<u8>) {
    match fate {
        // Nothing: it times out.
        1 => {}
        2..5 => {
            add(&tally.refused);
            put_frame_head(out, 4, kind::RST_STREAM, 0, id);
            out.extend_from_slice(&7_u32.to_be_bytes());
        }
        5 => {
            put_frame_head(out, 8, kind::GOAWAY, 0, 0);
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            answer(id, tally, out);
        }
        _ => answer(id, tally, out),
    }
}

fn answer(id: u32, tally: &Tally, out: &mut Vec<u8>) {
    add(&tally.answered);
    put_frame_head(out, 1, kind::HEADERS, flag::END_HEADERS, id);
    out.push(0x88);
    put_frame_head(out, 2, kind::DATA, 0, id);
    out.extend_from_slice(b"He");
    put_frame_head(out, 0, kind::PING, 0, 0);
    let ping = out.len();
    out[ping - FRAME_HEAD_BYTES + 2] = 8;
    out.extend_from_slice(&[0; 8]);
    put_frame_head(out, 3, kind::DATA, flag::END_STREAM, id);
    out.extend_from_slice(b"llo");
}

fn spec() -> LoadSpec {
    LoadSpec {
        target: LoadTarget {
            url: format!("http://{}/", address()),
            address: address().to_string(),
        },
        threads: 1,
        connections: 3,
        duration_ns: Nanos::from_secs(20).0,
        requests_max: Some(REQUESTS),
        timeout_ns: Nanos::from_secs(1).0,
        requests: vec![PreparedRequest {
            method: "GET".to_owned(),
            bytes: b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            ..PreparedRequest::default()
        }],
        driver: "sim".to_owned(),
        protocol: HttpProtocol::Http2,
        depth: 5,
        ..LoadSpec::default()
    }
}

fn thread_spec() -> ThreadSpec {
    ThreadSpec {
        thread: 0,
        threads: 1,
        connections: 3,
        depth: 5,
        protocol: HttpProtocol::Http2,
        cookies: false,
        checks: None,
        followers: None,
        readings: None,
        unix: None,
        tunnel: None,
        expects_continue: false,
        requests_max: REQUESTS,
        first: 0,
        addresses: vec![address()],
        timeout: Nanos::from_secs(1),
        first_timeout: Nanos::from_secs(1),
        connecting_max: 64,
        expected_status: ExpectedStatus::new(std::iter::once(&[][..])),
        follow_max: None,
        coded: None,
        scenario: None,
        queue_max: 1_000,
        timestamps: Some(Timestamps::User),
        trace_max: 0,
        served_max: u64::MAX,
        sources: Vec::new(),
        secure: None,
    }
}

async fn drive(handle: Handle) -> Counts {
    // Time for the server to listen.
    handle.sleep(Nanos::from_millis(1)).await;
    let (spec, thread_spec) = (spec(), thread_spec());
    let recorder = Recorder::new(Instant::ZERO, LatencyOrigin::Submitted);
    let recorder = Rc::new(RefCell::new(recorder));
    let streams = connect_all(&handle, &thread_spec, &recorder).await;
    let window = Window::new(handle.now(), Nanos::ZERO, Nanos(spec.duration_ns));
    let mut counts = Recorder::new(window.start(), spec.latency_from);
    counts.merge(&recorder.borrow());
    let source = Box::new(Cycle::new(&spec.requests, thread_spec.slots()));
    let worker = Worker::new(handle, &spec, thread_spec, source, Arc::new(window), counts);
    let counted = Rc::new(worker)
        .work(streams, Arc::new(RunState::default()), None)
        .await;
    counted.recorder.counts()
}

fn play(seed: u64) {
    let has_faults = !seed.is_multiple_of(3);
    let options = SimOptions {
        short_reads: true,
        short_writes: true,
        ..SimOptions::default()
    };
    let mut world = World::new(seed, options);
    let tally = Rc::new(Tally::default());
    let served = Rc::clone(&tally);
    world.spawn_loop(&Config::default(), move |handle| async move {
        let forever = serve(handle.clone(), seed, has_faults, served);
        let _ = handle.timeout(Nanos::from_secs(60), forever).await;
    });
    let outcome = world.spawn_loop(&Config::default(), drive);
    let ran = world.run(Nanos::from_secs(600));
    ran.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let counts = outcome.take().expect("the load has ended");
    let (failed, requests) = (counts.failed.total(), tally.requests.get());
    let parts = counts.completed + failed + counts.in_flight;
    assert_eq!(counts.sent, parts, "seed {seed}: {counts:?}");
    // What was on its way to a connection that broke was not seen.
    assert!(requests <= counts.sent, "seed {seed}: {counts:?}");
    assert!(
        counts.completed <= tally.answered.get(),
        "seed {seed}: {counts:?}"
    );
    assert!(
        counts.failed.refused_stream <= tally.refused.get(),
        "seed {seed}: {counts:?}"
    );
    if !has_faults {
        let all = (counts.completed, requests, failed);
        assert_eq!(all, (REQUESTS, REQUESTS, 0), "seed {seed}: {counts:?}");
    }
}

#[test]
fn each_request_of_http2_is_accounted_for_in_a_thousand_worlds() {
    (0..prony_testkit::seeds(1_000, 10_000)).for_each(play);
}
