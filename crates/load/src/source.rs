//! What to send: each thread takes its requests from a [`RequestSource`], and reports their results to it.

use std::cell::RefCell;
use std::rc::Rc;

use prony_base::{Instant, Nanos};
use prony_record::{ExpectedAnswer, PreparedRequest};
use prony_wire::Method;

use crate::failure::Failure;
use crate::filled::FilledRequest;
use crate::form::head_and_body;
use crate::hpack::{self, Http2Request};
use crate::interval::StepTotals;
use crate::recorder::{Answer, Phases};
use crate::redirect::chain::HopChain;
use crate::redirect::figures::HopFigures;
use crate::scenario::figures::ScenarioFigures;
use crate::scenario::memory::UserMemory;
use crate::window::LoadPhase;

/// A request as the bytes to send. Cheap to clone: its bytes are shared.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    /// Its method, which decides how the answer is framed.
    pub method: Method,
    /// The whole request.
    pub bytes: Rc<[u8]>,
    /// The body that the response must have, where that is known.
    pub expected_body: Option<Rc<[u8]>>,
    /// Whether the request itself asks for the connection to be closed.
    pub closes: bool,
    /// The same for HTTP/2; `None`: it is for HTTP/1.1 alone.
    pub http2: Option<Http2Request>,
    /// Its fields with their values, where it has some: it is sent as these say, and not as `bytes` and `http2` do.
    pub filled: Option<Box<FilledRequest>>,
    /// The step of a scenario that it is, by its number; 0 without one.
    pub step: u16,
    /// The user whose step it is: what is taken from the answer goes there. `None` without a scenario.
    pub user: Option<Rc<RefCell<UserMemory>>>,
    /// The chain of redirects that it is of, where they are followed.
    pub chain: Option<Rc<RefCell<HopChain>>>,
}

impl EncodedRequest {
    /// It as HTTP/1.1 has it, with the values that its fields have now.
    pub fn prepared(&self) -> PreparedRequest {
        let mut bytes = Vec::new();
        match &self.filled {
            Some(filled) => filled.write_http1(&mut bytes),
            None => bytes.extend_from_slice(&self.bytes),
        }
        let body = self.expected_body.as_deref();
        PreparedRequest {
            method: self.method.name().to_owned(),
            bytes,
            expect: body.map(|body| ExpectedAnswer {
                body: Some(body.to_vec()),
            }),
            weight: 0,
        }
    }
}

/// What a slot does next.
#[derive(Debug)]
pub enum Next<'a> {
    /// Send this now.
    Send(&'a mut EncodedRequest),
    /// Nothing for this time, such as a user's think time; the slot is taken until then.
    After(Nanos),
    /// Send nothing any more on this slot.
    Nothing,
    /// There is nothing more to send on any slot of the thread: the load ends there once its answers are in.
    Ended,
    /// All slots of this one's connection send now: each is asked, in the order of its places.
    Together,
    /// The load ends on this thread now: what is outstanding there counts as in flight at the end.
    Stopped,
}

impl EncodedRequest {
    /// A request of HTTP/1.1 whose bytes are set anew each time by [`EncodedRequest::set_bytes`].
    pub fn rewritten() -> EncodedRequest {
        EncodedRequest {
            method: Method::Get,
            bytes: Rc::from([]),
            expected_body: None,
            closes: false,
            http2: None,
            filled: Some(Box::new(FilledRequest::whole())),
            step: 0,
            user: None,
            chain: None,
        }
    }

    /// Sets the bytes of a rewritten request, its method, and whether it asks for the connection to be closed. Allocates nothing
    /// once the buffer has its size.
    pub fn set_bytes(&mut self, method: Method, closes: bool, bytes: &[u8]) {
        (self.method, self.closes) = (method, closes);
        if let Some(filled) = &mut self.filled {
            filled.fill(|_whole, out| out.extend_from_slice(bytes));
        }
    }
}

/// How a request ended.
#[derive(Debug)]
pub struct EndedRequest<'a> {
    /// Its answer, as whole as it should be, or why there is none.
    pub outcome: Result<&'a Answer, Failure>,
    /// What its latency counts from.
    pub origin: Instant,
    /// The phases that it lies in.
    pub phases: Phases,
    /// When the generator had dealt with it.
    pub at: Instant,
}

/// What comes next in a slot of a source with users.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UserTurn {
    /// Its user's next request, which is due then.
    GoesOn(Instant),
    /// Another user, or the same one from the start, from then on.
    Free(Instant),
}

/// Decides what each slot sends. A slot is one request outstanding. One source for each thread; it never leaves it.
///
/// A source may have users. The user in a slot goes on there, request by request, until its last one has ended; only then is the slot
/// free for another.
pub trait RequestSource {
    /// What slot `slot` (counted from 0 on this thread) does next. A request that is yielded is sent.
    fn next(&mut self, slot: usize) -> Next<'_>;

    /// The request that slot `slot` sent last has ended.
    fn ended(&mut self, slot: usize, request: &EndedRequest<'_>) {
        let _ = (slot, request);
    }

    /// Whether it has users; asked once.
    fn has_users(&self) -> bool {
        false
    }

    /// What `slot`, which has no request outstanding, waits for.
    fn turn(&self, slot: usize) -> UserTurn {
        let _ = slot;
        UserTurn::Free(Instant::ZERO)
    }

    /// How many users there are now.
    fn users(&self) -> usize {
        0
    }

    /// The user in `slot` does not go on: nothing more is sent.
    fn stopped(&mut self, slot: usize) {
        let _ = slot;
    }

    /// The run was cut short while a request of `slot` was outstanding, which took at least `so_far`. Its origin lies in `origin`.
    fn abandoned(&mut self, slot: usize, origin: LoadPhase, so_far: Nanos) {
        let _ = (slot, origin, so_far);
    }

    /// The answer to the request that `slot` sent last leads to another one, which belongs to the same step of its user.
    fn led_on(&mut self, slot: usize, request: &EndedRequest<'_>) {
        let _ = (slot, request);
    }

    /// That other one is sent.
    fn hop_sent(&mut self, slot: usize) {
        let _ = slot;
    }

    /// What came of each step so far, in the window: asked once a second, where anybody wants to know. Empty without a scenario.
    fn steps_so_far(&self) -> Vec<StepTotals> {
        Vec::new()
    }

    /// The run is over: what came of each step. `None` without a scenario.
    fn finish(&mut self) -> Option<ScenarioFigures> {
        None
    }

    /// Likewise, what came of redirects; `None` where none are followed.
    fn finish_hops(&mut self) -> Option<HopFigures> {
        None
    }
}

/// A fixed list of requests, which each slot goes through in turn from its own place.
pub struct Cycle {
    requests: Vec<EncodedRequest>,
    /// Next place of each slot.
    places: Vec<usize>,
}

impl Cycle {
    /// The cycle over `requests`, of which there is at least one, for `slots`.
    pub fn new(requests: &[PreparedRequest], slots: usize) -> Cycle {
        let requests: Vec<EncodedRequest> = requests.iter().map(decode).collect();
        assert!(!requests.is_empty(), "a load has at least one request");
        let places = (0..slots).map(|slot| slot % requests.len()).collect();
        Cycle { requests, places }
    }
}

impl RequestSource for Cycle {
    fn next(&mut self, slot: usize) -> Next<'_> {
        let count = self.requests.len();
        let place = &mut self.places[slot];
        let request = &mut self.requests[*place];
        *place = if *place + 1 == count { 0 } else { *place + 1 };
        Next::Send(request)
    }
}

/// A request as the bytes to send, its fields not filled in.
pub fn decode(prepared: &PreparedRequest) -> EncodedRequest {
    let expected = prepared
        .expect
        .as_ref()
        .and_then(|answer| answer.body.as_deref());
    EncodedRequest {
        method: Method::from_name(&prepared.method).unwrap_or(Method::Get),
        bytes: Rc::from(prepared.bytes.as_slice()),
        expected_body: expected.map(Rc::from),
        closes: asks_to_close(&prepared.bytes),
        http2: Some(hpack::of_http1(&prepared.bytes)),
        filled: None,
        step: 0,
        user: None,
        chain: None,
    }
}

/// Whether the head has `Connection: close`.
fn asks_to_close(request: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head_and_body(request).0).to_ascii_lowercase();
    head.lines().any(|line| {
        line.strip_prefix("connection:")
            .is_some_and(|value| value.split(',').any(|token| token.trim() == "close"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(text: &str) -> PreparedRequest {
        PreparedRequest {
            method: "GET".to_owned(),
            bytes: text.as_bytes().to_vec(),
            ..PreparedRequest::default()
        }
    }

    #[test]
    fn each_slot_goes_through_all_requests_from_its_own_place() {
        let mut cycle = Cycle::new(&["a", "b", "c"].map(prepared), 2);
        let mut sent = |slot| {
            let mut letter = |_| match cycle.next(slot) {
                Next::Send(request) => request.bytes[0] as char,
                other => panic!("{other:?}"),
            };
            (0..4).map(&mut letter).collect::<String>()
        };
        assert_eq!(sent(0), "abca");
        assert_eq!(sent(1), "bcab");
    }

    #[test]
    fn a_rewritten_request_is_sent_as_it_was_set_last() {
        let mut request = EncodedRequest::rewritten();
        for text in [
            "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n{a}",
            "HEAD /\u{e9} ",
        ] {
            request.set_bytes(Method::Head, true, text.as_bytes());
            let mut out = Vec::new();
            let filled = request.filled.as_ref().unwrap();
            filled.write_http1(&mut out);
            assert_eq!(out, text.as_bytes());
            assert!(!filled.needs_row() || request.closes);
        }
    }

    #[test]
    fn a_request_that_asks_to_close_is_known_by_its_head_alone() {
        let closes = |text: &str| asks_to_close(text.as_bytes());
        assert!(closes(
            "GET / HTTP/1.1\r\nConnection: Keep-Alive, Close\r\n\r\n"
        ));
        assert!(!closes(
            "POST / HTTP/1.1\r\nHost: x\r\n\r\nConnection: close\r\n"
        ));
    }
}
