//! Opens connections and reopens those that are gone; what they receive goes to the worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::{Handle, Stream, Task};
use prony_record::HttpProtocol;
use prony_wire::{LastHead, Limits};

use crate::answer_fields::{AllFields, NoFields};
use crate::coded::DecodingFollower;
use crate::expect::ExpectContinue;
use crate::failure::{Failure, ProtocolFault};
use crate::follow::AnswerFollower;
use crate::http1::Http1;
use crate::http2::Http2Client;
use crate::protocol::{Progress, Protocol};
use crate::reach;
use crate::recorder::Recorder;
use crate::redirect::follower::HopFollower;
use crate::scenario::follower::StepFollower;
use crate::secure::Secure;
use crate::thread_spec::ThreadSpec;
use crate::window::LoadPhase;
use crate::worker::Worker;

/// First pause after a failed attempt to connect; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Longest pause between two attempts to connect.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// A connection that is open, and what is spoken on it.
pub struct OpenConnection {
    pub stream: Rc<Stream>,
    pub protocol: Box<dyn Protocol>,
}

/// Opens connection `index` of a thread, up to where requests can be sent, and records the result.
pub async fn open(
    handle: &Handle,
    thread_spec: &ThreadSpec,
    index: usize,
    timeout: Nanos,
    recorder: &RefCell<Recorder>,
    last: &LastHead,
) -> Result<OpenConnection, Failure> {
    let due = handle.now() + timeout;
    let opening = open_in_time(handle, thread_spec, index, recorder, last);
    let opened = match handle.timeout_at(due, opening).await {
        Ok(opened) => opened,
        Err(_elapsed) => Err(Failure::Timeout),
    };
    if let Err(failure) = &opened {
        recorder.borrow_mut().connect_failed(*failure);
    }
    opened
}

async fn open_in_time(
    handle: &Handle,
    thread_spec: &ThreadSpec,
    index: usize,
    recorder: &RefCell<Recorder>,
    last: &LastHead,
) -> Result<OpenConnection, Failure> {
    let began = handle.now();
    let stream = reach::reach(handle, thread_spec, index).await?;
    let connected = handle.now();
    let session = match &thread_spec.secure {
        None => None,
        Some(target) => {
            let shaken = target.handshake(handle, &stream).await;
            let (session, facts) = shaken.map_err(|fault| {
                recorder.borrow_mut().tls_failed(&fault);
                Failure::from(&fault)
            })?;
            let length = handle.now().since(connected);
            recorder.borrow_mut().secured(length, facts);
            Some(session)
        }
    };
    let is_secure = thread_spec.secure.is_some();
    let checks = thread_spec.checks.as_ref();
    let needs_fields = thread_spec.cookies
        || thread_spec.follow_max.is_some()
        || thread_spec.coded.is_some()
        || checks.is_some_and(|of| of.looks_at_headers());
    let follower = || follower(thread_spec);
    let http1 = || {
        let http = Http1::new(thread_spec.cookies, follower(), last);
        http.pipelined(thread_spec.depth > 1)
    };
    let http2 = || Http2Client::new(thread_spec.depth, is_secure, NoFields).followed(follower);
    let with_fields = || {
        let fields = AllFields::new(thread_spec.cookies);
        let http = Http2Client::new(thread_spec.depth, is_secure, fields);
        http.followed(follower)
    };
    let mut protocol: Box<dyn Protocol> = match (session, thread_spec.protocol) {
        (None, HttpProtocol::Http1) if thread_spec.expects_continue => {
            Box::new(ExpectContinue::new(http1(), recorder.borrow().continued()))
        }
        (Some(session), HttpProtocol::Http1) if thread_spec.expects_continue => {
            let http = ExpectContinue::new(http1(), recorder.borrow().continued());
            Box::new(Secure::new(session, http))
        }
        (None, HttpProtocol::Http1) => Box::new(http1()),
        (None, HttpProtocol::Http2) if needs_fields => Box::new(with_fields()),
        (Some(session), HttpProtocol::Http2) if needs_fields => {
            Box::new(Secure::new(session, with_fields()))
        }
        (None, HttpProtocol::Http2) => Box::new(http2()),
        (Some(session), HttpProtocol::Http1) => Box::new(Secure::new(session, http1())),
        (Some(session), HttpProtocol::Http2) => Box::new(Secure::new(session, http2())),
    };
    begin(handle, &stream, &mut *protocol).await?;
    let mut recorder = recorder.borrow_mut();
    recorder.connected(connected.since(began));
    recorder.places(protocol.places());
    let stream = Rc::new(stream);
    Ok(OpenConnection { stream, protocol })
}

/// What follows the answers on a connection, or in a place of it; `None`: nothing has to.
fn follower(thread_spec: &ThreadSpec) -> Option<Box<dyn AnswerFollower>> {
    let checks = thread_spec.checks.as_ref();
    let own: Option<Box<dyn AnswerFollower>> = match (&thread_spec.scenario, checks) {
        (Some(scenario), _) => Some(Box::new(StepFollower::new(scenario))),
        (None, Some(checks)) => {
            let checker = || -> Option<Box<dyn AnswerFollower>> { Some(checks.checker()?) };
            match &thread_spec.followers {
                None => checker(),
                Some(of) => Some(of.follower(thread_spec.thread, checker(), checks.followed())),
            }
        }
        (None, None) => None,
    };
    let led: Option<Box<dyn AnswerFollower>> = match (thread_spec.follow_max, checks) {
        (Some(_), Some(checks)) => Some(Box::new(HopFollower::new(own, checks.first_fault()))),
        _ => own,
    };
    match (&thread_spec.coded, checks) {
        (Some(coded), Some(checks)) => {
            let decoding = DecodingFollower::new(led, coded, checks.undecoded());
            Some(Box::new(decoding))
        }
        _ => led,
    }
}

/// Exchanges what a protocol exchanges before the first request.
async fn begin(
    handle: &Handle,
    stream: &Stream,
    protocol: &mut dyn Protocol,
) -> Result<(), Failure> {
    let Some(hello) = protocol.hello(&mut || handle.take_buffer()) else {
        return Ok(());
    };
    stream.post(hello).map_err(|error| Failure::from(&error))?;
    // Some of it may have come with the handshake.
    let mut progress = protocol.received(&mut &[][..])?;
    loop {
        if let Some(bytes) = protocol.output(&mut || handle.take_buffer()) {
            stream.post(bytes).map_err(|error| Failure::from(&error))?;
        }
        match progress {
            Progress::Pending if protocol.is_ready() => return Ok(()),
            Progress::Pending => {}
            Progress::Ended => return Err(Failure::Closed),
            Progress::Leaving => return Err(Failure::GoneAway),
            // Nothing was asked yet.
            _ => return Err(Failure::Protocol(ProtocolFault::NotHttp2)),
        }
        let received = stream.recv().await.map_err(|error| Failure::from(&error))?;
        if received.is_empty() {
            return Err(Failure::Closed);
        }
        progress = protocol.received(&mut &received[..])?;
    }
}

/// Opens the connections of a thread, a limited number at a time. A failed one is `None`; the recorder has its
/// failure, and how long each took.
pub async fn connect_all(
    handle: &Handle,
    thread_spec: &ThreadSpec,
    recorder: &Rc<RefCell<Recorder>>,
) -> Vec<Option<OpenConnection>> {
    let (next, last) = (Rc::new(Cell::new(0)), last_head());
    let mut none = Vec::new();
    none.resize_with(thread_spec.connections, || None);
    let opened = Rc::new(RefCell::new(none));
    let lanes: Vec<Task<()>> = (0..thread_spec.connecting_max.min(thread_spec.connections))
        .map(|_| {
            let (handle, recorder) = (handle.clone(), Rc::clone(recorder));
            let (next, opened) = (Rc::clone(&next), Rc::clone(&opened));
            let (thread_spec, last) = (thread_spec.clone(), last.clone());
            handle.clone().spawn(async move {
                while next.get() < thread_spec.connections {
                    let index = next.replace(next.get() + 1);
                    let timeout = thread_spec.first_timeout;
                    let one = open(&handle, &thread_spec, index, timeout, &recorder, &last);
                    let one = one.await;
                    opened.borrow_mut()[index] = one.ok();
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.await;
    }
    opened.take()
}

/// No head so far, of the connections of a thread.
pub fn last_head() -> LastHead {
    LastHead::new(Limits::for_responses())
}

/// Keeps connection `index` open and passes what it receives to the worker, until no connection is wanted.
pub async fn drive(worker: Rc<Worker>, index: usize, mut opened: Option<OpenConnection>) {
    let mut pause = PAUSE_MIN;
    let handle = worker.handle.clone();
    loop {
        if let Some(connection) = opened.take() {
            let stream = Rc::clone(&connection.stream);
            worker.connected(index, connection);
            while worker.received(index, stream.recv().await) {}
            worker.disconnected(index);
            continue;
        }
        if !worker.wants_connections(handle.now()) {
            worker.retired(index);
            return;
        }
        let (thread_spec, recorder) = (&worker.thread_spec, &worker.recorder);
        // In memory of its own, so that an open connection does not hold it.
        let (timeout, last) = (thread_spec.timeout, &worker.last_head);
        let opening = open(&handle, thread_spec, index, timeout, recorder, last);
        match Box::pin(opening).await {
            Ok(another) => {
                let is_measured = worker.phase(handle.now()) == LoadPhase::Measured;
                if thread_spec.secure.is_some() && is_measured {
                    recorder.borrow_mut().secured_in_window();
                }
                opened = Some(another);
                pause = PAUSE_MIN;
            }
            Err(_counted) => {
                handle.sleep(pause).await;
                pause = PAUSE_MAX.min(pause * 2);
            }
        }
    }
}
