//! From what an application gives to an answer of the server: whole, in pieces, or an
//! account of what went wrong.

use std::future::Future;
use std::io;
use std::mem;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use prony_engine::Handle;
use prony_http::{BodyWriter, Handler, Header, Interruption, Method, Request, Response};
use rustix::process::{Signal, getpid, kill_process};

use crate::head::Head;
use crate::machine::{CallOutcome, Failure, Machine, Pieces};
use crate::page;

/// So many pieces in a row may be empty before it is looked whether the client is still
/// there: looking takes off the connection what it sends next.
const EMPTY_PIECES_MAX: u32 = 100;

/// An application, loaded.
pub struct Application {
    pub(crate) machine: Machine,
    pub(crate) handle: Handle,
    pub(crate) is_development: bool,
    /// A supervisor replaces this process when it asks for it.
    pub(crate) is_replaceable: bool,
}

/// The end of an answer that cannot become whole.
enum Broken {
    /// The client has gone: there is no one to answer.
    Gone,
    /// The application failed.
    Failed(Failure),
}

impl Broken {
    fn failed(text: String) -> Broken {
        Broken::Failed(Failure::new(text))
    }

    /// The outcome of sending.
    fn new(error: &io::Error, length: Option<u64>, given: u64) -> Broken {
        match length {
            Some(length) if error.kind() == io::ErrorKind::InvalidInput => {
                let more = if given > length { " or more" } else { "" };
                Broken::failed(lengths(length, given) + more)
            }
            _ => Broken::Gone,
        }
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Broken {
        Broken::Failed(failure)
    }
}

impl Handler for Application {
    async fn handle(&self, request: &Request<'_>, response: &mut Response) {
        let peer = response.peer_addr();
        let outcome = self.machine.call(request, peer, |head, body| {
            send(head, body, request.method(), response)
        });
        let failure = match outcome {
            Ok(CallOutcome::Whole(Ok(()))) => return,
            Ok(CallOutcome::Whole(Err(text))) => Failure::new(text),
            Err(failure) => failure,
            Ok(CallOutcome::Pieces(pieces)) => match self.stream(pieces, request, response).await {
                Ok(()) | Err(Broken::Gone) => return,
                Err(Broken::Failed(failure)) => failure,
            },
        };
        self.fail(&failure, request, response);
    }
}

/// Sends an answer whose body is whole.
fn send(head: &Head, body: &[u8], method: Method, response: &mut Response) -> Result<(), String> {
    let given = body.len() as u64;
    if let Some(length) = head.length.filter(|&length| length != given) {
        let is_bodiless = matches!(head.code, 204 | 205 | 304);
        if method == Method::Head && given == 0 {
            // The length that GET's answer would have.
            announce(head, length, response);
            return Ok(());
        }
        if !is_bodiless {
            return Err(lengths(length, given));
        }
    }
    response.send(head.status(), &head.headers.as_headers(), body);
    Ok(())
}

fn lengths(announced: u64, given: u64) -> String {
    format!("the application announced a body of {announced} bytes, and gave {given}")
}

fn announce(head: &Head, length: u64, response: &mut Response) {
    let headers = head.headers.as_headers();
    let body = response.stream(head.status(), &headers, Some(length));
    // There is no body, so there is nothing to wait for.
    let finishing = pin!(body.finish());
    let _ = finishing.poll(&mut Context::from_waker(Waker::noop()));
}

/// Whether the client has closed the connection.
fn has_left(body: &mut BodyWriter<'_>) -> bool {
    let seen = body.poll_interrupted(&mut Context::from_waker(Waker::noop()));
    seen == Poll::Ready(Interruption::Gone)
}

impl Application {
    /// Sends a body as it comes. The head goes out with the first piece that is not
    /// empty: until then an error can be answered.
    async fn stream(
        &self,
        mut pieces: Pieces<'_>,
        request: &Request<'_>,
        response: &mut Response,
    ) -> Result<(), Broken> {
        let mut is_over = !pieces.advance()?;
        while !is_over && pieces.current().is_empty() && pieces.head.written.is_empty() {
            self.handle.yield_now().await;
            is_over = !pieces.advance()?;
        }
        if !pieces.head.is_started() {
            return Err(Broken::failed(
                "the application's iterator came to its first piece, or its end, and \
                 start_response was not called"
                    .to_owned(),
            ));
        }
        if is_over && pieces.head.written.is_empty() {
            return send(&pieces.head, b"", request.method(), response).map_err(Broken::failed);
        }
        pieces.head.is_sent = true;
        let length = pieces.head.length;
        let headers = pieces.head.headers.as_headers();
        let mut body = response.stream(pieces.head.status(), &headers, length);
        let (mut given, mut empty_pieces) = (0, 0);
        while body.is_wanted() {
            let given_before = given;
            let written = mem::take(&mut pieces.head.written);
            for piece in [&written, pieces.current()] {
                given += piece.len() as u64;
                let sent = body.write(piece).await;
                sent.map_err(|error| Broken::new(&error, length, given))?;
            }
            if is_over {
                break;
            }
            if given == given_before {
                // Nobody waits for anything here: without this, all others would wait for it.
                self.handle.yield_now().await;
                empty_pieces += 1;
                if empty_pieces >= EMPTY_PIECES_MAX && has_left(&mut body) {
                    return Err(Broken::Gone);
                }
            } else {
                empty_pieces = 0;
                // Nothing is held back until more comes (PEP 3333, "Buffering and Streaming").
                body.flush().await.map_err(|_| Broken::Gone)?;
            }
            is_over = !pieces.advance()?;
        }
        let finished = body.finish().await;
        finished.map_err(|error| Broken::new(&error, length, given))
    }

    /// Answers that the application failed, or breaks the answer off that has begun.
    fn fail(&self, failure: &Failure, request: &Request<'_>, response: &mut Response) {
        let (method, target) = (request.method(), request.target());
        crate::say(&format!("{method} {target}"), &failure.text);
        if failure.is_memory {
            self.give_up();
        }
        if response.is_started() {
            return;
        }
        if self.is_development {
            let page = page::trouble(method.name(), target, &failure.text);
            let html = Header::new("content-type", b"text/html; charset=utf-8");
            response.send(500, [html], page.as_bytes());
        } else if failure.is_memory {
            response.text(500, "not enough memory\n");
        } else {
            response.text(500, "Internal Server Error\n");
        }
    }

    /// Memory was exhausted: what was interrupted may be in any state. A worker asks to be
    /// replaced, as by SIGTERM, and answers meanwhile as well as it can.
    fn give_up(&self) {
        self.machine.collect();
        if self.is_replaceable {
            // A signal to this process itself cannot fail.
            let _ = kill_process(getpid(), Signal::TERM);
        }
    }
}
