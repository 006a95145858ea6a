//! One connection: send, read the answer, send again; reopen when it is gone.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_engine::{Handle, SendBuf, Stream};
use prony_wire::{EndOfInput, Limits, ResponseEvent, ResponseReader};

use crate::recorder::{Answer, Failure, Recorder};
use crate::source::Request;
use crate::worker::Worker;

/// First pause after a failed attempt to connect; doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Longest pause between two attempts to connect.
const PAUSE_MAX: Nanos = Nanos::from_millis(100);

/// Opens one connection and counts how that went.
pub async fn open(
    handle: &Handle,
    address: SocketAddr,
    timeout: Nanos,
    recorder: &RefCell<Recorder>,
) -> Result<Stream, Failure> {
    let began = handle.now();
    let opened = match handle.timeout(timeout, handle.connect(address)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(Failure::from(&error)),
        Err(_elapsed) => Err(Failure::Timeout),
    };
    let mut recorder = recorder.borrow_mut();
    match &opened {
        Ok(_) => recorder.connected(handle.now().since(began)),
        Err(failure) => recorder.connect_failed(*failure),
    }
    opened
}

/// Keeps connection `index` busy until nothing may start any more.
pub async fn drive(worker: Rc<Worker>, index: usize, mut stream: Option<Stream>) {
    let mut pause = PAUSE_MIN;
    while worker.may_start(worker.handle.now()) {
        if let Some(open) = stream.take() {
            converse(&worker, index, open).await;
            continue;
        }
        let Worker {
            handle,
            share,
            recorder,
            ..
        } = &*worker;
        match open(handle, share.address(index), share.timeout, recorder).await {
            Ok(opened) => {
                stream = Some(opened);
                pause = PAUSE_MIN;
            }
            Err(_counted) => {
                handle
                    .sleep_until(worker.end().min(handle.now() + pause))
                    .await;
                pause = PAUSE_MAX.min(pause * 2);
            }
        }
    }
}

/// Requests and answers over one connection, until it closes or fails.
async fn converse(worker: &Worker, index: usize, stream: Stream) {
    let stream = Rc::new(stream);
    worker.occupy(index, &stream);
    let mut reader = ResponseReader::new(Limits::for_responses());
    let mut served = 0_u64;
    let mut now = worker.handle.now();
    while let Some(request) = worker.start(index, now) {
        match exchange(worker, &stream, &mut reader, &request, now).await {
            Ok((answer, reusable)) => {
                worker
                    .recorder
                    .borrow_mut()
                    .completed(worker.part(answer.done), &answer);
                served += 1;
                now = answer.done;
                if reusable == Reusable::ClosedByServer && !request.closes {
                    worker.recorder.borrow_mut().connections_closed_by_server += 1;
                }
                if reusable != Reusable::Yes {
                    break;
                }
            }
            Err(Broken {
                failure,
                unanswered,
            }) => {
                let expired = worker.vacate(index);
                worker.failed(if expired { Failure::Timeout } else { failure });
                let closed = matches!(failure, Failure::Closed | Failure::Reset);
                if served > 0 && unanswered && closed && !expired {
                    worker.recorder.borrow_mut().connections_closed_by_server += 1;
                }
                return;
            }
        }
    }
    worker.vacate(index);
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reusable {
    Yes,
    /// The server said or showed that it closes.
    ClosedByServer,
    /// More bytes followed than the answer had: they belong to no request.
    Stray,
}

/// A request that got no whole answer.
struct Broken {
    failure: Failure,
    /// Not one byte of an answer had come.
    unanswered: bool,
}

/// The answer as far as it has come.
struct Incoming<'a> {
    first_byte: Option<Instant>,
    status: u16,
    expected: Option<&'a [u8]>,
    /// Bytes of the body so far.
    body_bytes: usize,
    body_right: bool,
}

impl Incoming<'_> {
    /// Compares a part of the body with its place in the expected one.
    fn body(&mut self, data: &[u8]) {
        if let Some(expected) = self.expected {
            let place = expected.get(self.body_bytes..self.body_bytes + data.len());
            self.body_right &= place == Some(data);
        }
        self.body_bytes += data.len();
    }

    fn is_right(&self) -> bool {
        self.body_right
            && self
                .expected
                .is_none_or(|expected| expected.len() == self.body_bytes)
    }

    fn broken(&self, failure: Failure) -> Broken {
        Broken {
            failure,
            unanswered: self.first_byte.is_none(),
        }
    }

    fn end(
        &self,
        worker: &Worker,
        sent: Instant,
        done: Instant,
        reusable: Reusable,
    ) -> Result<(Answer, Reusable), Broken> {
        if !self.is_right() {
            return Err(self.broken(Failure::WrongAnswer));
        }
        let first_byte = self.first_byte.unwrap_or(done);
        let expected = worker.expects(self.status);
        Ok((
            Answer {
                sent,
                first_byte,
                done,
                status: self.status,
                expected,
            },
            reusable,
        ))
    }
}

async fn exchange(
    worker: &Worker,
    stream: &Stream,
    reader: &mut ResponseReader,
    request: &Request,
    sent: Instant,
) -> Result<(Answer, Reusable), Broken> {
    let expected = request.expected_body.as_deref();
    let mut incoming = Incoming {
        first_byte: None,
        status: 0,
        expected,
        body_bytes: 0,
        body_right: true,
    };
    let posted = stream.post(SendBuf::from(Rc::clone(&request.bytes)));
    posted.map_err(|error: io::Error| incoming.broken(Failure::from(&error)))?;
    if reader.expect(&request.method).is_err() {
        return Err(incoming.broken(Failure::Protocol));
    }
    loop {
        let received = stream
            .recv()
            .await
            .map_err(|error| incoming.broken(Failure::from(&error)))?;
        let now = worker.handle.now();
        worker
            .recorder
            .borrow_mut()
            .received(worker.part(now), received.len());
        if received.is_empty() {
            return match reader.end_of_input() {
                Ok(EndOfInput::Complete { .. }) => {
                    incoming.end(worker, sent, now, Reusable::ClosedByServer)
                }
                _ => Err(incoming.broken(Failure::Closed)),
            };
        }
        incoming.first_byte.get_or_insert(now);
        if let Some(reusable) = read(reader, &received, &mut incoming)? {
            return incoming.end(worker, sent, now, reusable);
        }
    }
}

/// Feeds one received chunk; `Some` at the end of the answer.
fn read(
    reader: &mut ResponseReader,
    mut rest: &[u8],
    incoming: &mut Incoming<'_>,
) -> Result<Option<Reusable>, Broken> {
    loop {
        let (used, event) = reader.next(rest).map_err(|_wire| Broken {
            failure: Failure::Protocol,
            unanswered: false,
        })?;
        rest = &rest[used..];
        match event {
            None => return Ok(None),
            Some(ResponseEvent::Head(head)) => incoming.status = head.status,
            Some(ResponseEvent::Interim(_)) => {}
            Some(ResponseEvent::Data(data)) => incoming.body(data),
            Some(ResponseEvent::End(_)) if !rest.is_empty() => return Ok(Some(Reusable::Stray)),
            Some(ResponseEvent::End(end)) if end.keep_alive => return Ok(Some(Reusable::Yes)),
            Some(ResponseEvent::End(_)) => return Ok(Some(Reusable::ClosedByServer)),
        }
    }
}
