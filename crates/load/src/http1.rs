//! HTTP/1.1 as a [`Protocol`]: requests that are outstanding on a connection are answered in order.

use std::collections::VecDeque;
use std::rc::Rc;

use prony_engine::SendBuf;
use prony_wire::{EndOfInput, LastHead, Limits, ResponseEvent, ResponseHead, SharingReader};

use crate::cookies::LaneCookies;
use crate::failure::{Failure, ProtocolFault};
use crate::follow::AnswerFollower;
use crate::protocol::{Answered, BufferSource, Progress, Protocol, Reuse};
use crate::source::EncodedRequest;

/// The status that asks for a body.
pub const CONTINUE: u16 = 100;
/// A change of protocol, which is never requested: what follows it has no end as HTTP.
const SWITCHING_PROTOCOLS: u16 = 101;
/// That it was made.
pub const SWITCHED: &str = "the server changes the protocol (101), which was not requested";

fn broken(error: prony_wire::Error) -> Failure {
    Failure::Protocol(ProtocolFault::Http1(error))
}

/// One connection.
pub struct Http1 {
    reader: SharingReader,
    /// The answer that is read.
    answer: PartialAnswer,
    /// Several requests may be outstanding.
    is_pipelined: bool,
    /// Place of the request whose answer is read, where one is outstanding.
    place: Option<usize>,
    /// Bytes of its answer have come.
    has_begun: bool,
    /// Status of the last interim answer, or 100.
    interim: Option<u16>,
    /// Those behind it, with the bodies that they expect.
    behind: VecDeque<(usize, Option<Rc<[u8]>>)>,
}

/// What is known of an answer so far, and who looks at it.
#[derive(Default)]
struct PartialAnswer {
    /// 0 before its head has come.
    status: u16,
    expected: Option<Rc<[u8]>>,
    /// Bytes of the body so far.
    body_bytes: usize,
    /// Some of them are not the expected ones.
    body_wrong: bool,
    /// The cookies of the connection, where they are kept.
    jar: Option<LaneCookies>,
    /// What answers are checked by.
    checker: Option<Box<dyn AnswerFollower>>,
}

impl PartialAnswer {
    /// Another one is read, to `request` where that is known.
    fn begin(&mut self, request: Option<&EncodedRequest>) {
        (self.status, self.body_bytes, self.body_wrong) = (0, 0, false);
        if let Some(checker) = &mut self.checker {
            checker.begin(request);
        }
    }

    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        if let Some(jar) = &mut self.jar {
            head.headers
                .get_all("set-cookie")
                .for_each(|of| jar.set(of));
        }
        if let Some(checker) = &mut self.checker {
            checker.head(&head.headers);
        }
    }

    /// Compares a part of the body with its place in the expected one.
    fn body(&mut self, data: &[u8]) {
        if let Some(checker) = &mut self.checker {
            checker.body(data);
        }
        let end = self.body_bytes + data.len();
        if let Some(expected) = &self.expected {
            self.body_wrong |= expected.get(self.body_bytes..end) != Some(data);
        }
        self.body_bytes = end;
    }

    /// It is whole: whether it is right, and the check that it failed.
    fn end(&mut self) -> (bool, Option<u16>) {
        let expected = self.expected.as_ref();
        let is_whole = expected.is_none_or(|expected| expected.len() == self.body_bytes);
        let is_right = is_whole && !self.body_wrong;
        match &mut self.checker {
            Some(checker) => checker.end(self.status).judged(is_right),
            None => (is_right, None),
        }
    }
}

impl Default for Http1 {
    fn default() -> Http1 {
        Http1::new(false, None, &LastHead::new(Limits::for_responses()))
    }
}

impl Http1 {
    /// A connection that keeps cookies if told to, and whose answers `checker` follows; `last`: the head that was read last
    /// on any connection that shares it.
    pub fn new(
        keeps_cookies: bool,
        checker: Option<Box<dyn AnswerFollower>>,
        last: &LastHead,
    ) -> Http1 {
        Http1 {
            reader: SharingReader::new(last.clone()),
            answer: PartialAnswer {
                jar: keeps_cookies.then(LaneCookies::default),
                checker,
                ..PartialAnswer::default()
            },
            place: None,
            has_begun: false,
            interim: None,
            is_pipelined: false,
            behind: VecDeque::new(),
        }
    }

    /// A connection on which several requests may be outstanding, where that is so. What is sent while others wait to be
    /// sent joins them, which shared bytes cannot.
    pub fn pipelined(mut self, is_pipelined: bool) -> Http1 {
        self.is_pipelined = is_pipelined;
        self
    }

    /// Reads the answer to `request`, of `place`, after those that are outstanding.
    pub fn expect(&mut self, place: usize, request: &EncodedRequest) -> Result<(), Failure> {
        let expected = self.reader.expect(&request.method);
        expected.map_err(broken)?;
        if self.place.is_none() {
            self.answer.expected.clone_from(&request.expected_body);
            self.read_next(place, Some(request));
        } else {
            self.behind
                .push_back((place, request.expected_body.clone()));
        }
        Ok(())
    }

    /// Whether the head of the answer that is read has come.
    pub fn has_head(&self) -> bool {
        self.answer.status != 0
    }

    /// The status of the last interim answer since this was asked; 100 where that was among them.
    pub fn take_interim(&mut self) -> Option<u16> {
        self.interim.take()
    }

    fn read_next(&mut self, place: usize, request: Option<&EncodedRequest>) {
        (self.place, self.has_begun) = (Some(place), false);
        self.answer.begin(request);
    }

    /// The answer that was read, to the request of `place`, is whole, and `rest` came behind it; the next one is that of the
    /// request behind.
    fn answered(&mut self, place: usize, keep_alive: bool, rest: &[u8]) -> Answered {
        let reuse = match keep_alive {
            _ if !rest.is_empty() && self.behind.is_empty() => Reuse::Stray,
            true => Reuse::Yes,
            false => Reuse::ClosedByServer,
        };
        let (is_right, check) = self.answer.end();
        let answered = Answered {
            place,
            status: self.answer.status,
            check,
            is_right,
            reuse,
        };
        self.place = None;
        if let Some((place, expected)) = self.behind.pop_front() {
            self.answer.expected = expected;
            self.read_next(place, None);
        }
        answered
    }
}

impl Protocol for Http1 {
    fn send(
        &mut self,
        place: usize,
        request: &EncodedRequest,
        buffer: BufferSource<'_>,
    ) -> Result<SendBuf, Failure> {
        self.expect(place, request)?;
        if request.filled.is_some() || self.answer.jar.is_some() || self.is_pipelined {
            let mut out = buffer();
            match &request.filled {
                Some(filled) => filled.write_http1(&mut out),
                None => out.extend_from_slice(&request.bytes),
            }
            if let Some(jar) = &self.answer.jar {
                jar.add_to(&mut out);
            }
            return Ok(SendBuf::Owned(out));
        }
        Ok(SendBuf::from(Rc::clone(&request.bytes)))
    }

    fn received(&mut self, bytes: &mut &[u8]) -> Result<Progress, Failure> {
        let Some(place) = self.place else {
            return Ok(match bytes.is_empty() {
                true => Progress::Pending,
                false => Progress::Stray,
            });
        };
        if let Some(whole) = self.reader.next_whole(bytes) {
            *bytes = &bytes[whole.used..];
            self.answer.head(&whole.head);
            if !whole.body.is_empty() {
                self.answer.body(whole.body);
            }
            let answered = self.answered(place, whole.head.keep_alive, bytes);
            return Ok(Progress::Answered(answered));
        }
        self.has_begun |= !bytes.is_empty();
        loop {
            let (used, event) = self.reader.next(bytes).map_err(broken)?;
            *bytes = &bytes[used..];
            match event {
                None => return Ok(Progress::Pending),
                Some(ResponseEvent::Interim(head)) => {
                    // What follows a 100 does not take it back.
                    if self.interim != Some(CONTINUE) {
                        self.interim = Some(head.status);
                    }
                }
                Some(ResponseEvent::Head(head)) if head.status == SWITCHING_PROTOCOLS => {
                    return Err(Failure::Protocol(ProtocolFault::Rule(SWITCHED)));
                }
                Some(ResponseEvent::Head(head)) => self.answer.head(&head),
                Some(ResponseEvent::Data(data)) => self.answer.body(data),
                Some(ResponseEvent::End(end)) => {
                    let keep_alive = end.keep_alive;
                    return Ok(Progress::Answered(self.answered(place, keep_alive, bytes)));
                }
            }
        }
    }

    fn begun(&mut self, note: &mut dyn FnMut(usize)) {
        if let Some(place) = self.place.filter(|_| self.has_begun) {
            note(place);
        }
    }

    fn expects_nothing(&self) -> bool {
        self.place.is_none()
    }

    fn ended(&mut self) -> Result<Answered, Failure> {
        match (self.reader.end_of_input(), self.place) {
            (Ok(EndOfInput::Complete { .. }), Some(place)) => Ok(self.answered(place, false, &[])),
            _ => Err(Failure::Closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_wire::Method;
    use proptest::prelude::*;

    use super::*;

    fn request(expected: Option<&str>) -> EncodedRequest {
        EncodedRequest {
            method: Method::Get,
            bytes: Rc::from(&b"GET / HTTP/1.1\r\n\r\n"[..]),
            expected_body: expected.map(|body| Rc::from(body.as_bytes())),
            closes: false,
            http2: None,
            filled: None,
            step: 0,
            user: None,
            chain: None,
        }
    }

    /// What becomes of a request whose answer comes in these parts, and the number of parts that were looked at.
    fn fed(expected: Option<&str>, parts: &[&[u8]]) -> Result<Progress, Failure> {
        let mut exchange = Http1::default();
        exchange.expect(0, &request(expected))?;
        for part in parts {
            let progress = exchange.received(&mut &part[..])?;
            if progress != Progress::Pending {
                return Ok(progress);
            }
        }
        Ok(Progress::Pending)
    }

    const CHUNKED: &[u8] =
        b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHe\r\n3\r\nllo\r\n0\r\n\r\n";

    #[test]
    fn a_request_of_a_pipeline_can_be_joined_by_the_next_and_another_is_sent_without_a_copy() {
        let sent = |is_pipelined: bool| {
            let mut http = Http1::default().pipelined(is_pipelined);
            http.send(0, &request(None), &mut Vec::new).unwrap()
        };
        assert!(matches!(sent(true), SendBuf::Owned(_)));
        assert!(matches!(sent(false), SendBuf::Shared(_)));
        assert_eq!(sent(true).as_slice(), sent(false).as_slice());
    }

    proptest! {
        #[test]
        fn an_answer_is_the_same_however_it_is_split(cuts in prop::collection::btree_set(1..CHUNKED.len(), 0..8)) {
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([CHUNKED.len()]) {
                parts.push(&CHUNKED[from..cut]);
                from = cut;
            }
            let whole = Answered { place: 0, status: 404, is_right: true, check: None, reuse: Reuse::Yes };
            prop_assert_eq!(fed(Some("Hello"), &parts), Ok(Progress::Answered(whole)));
            let wrong = Answered { is_right: false, ..whole };
            prop_assert_eq!(fed(Some("Jello"), &parts), Ok(Progress::Answered(wrong)));
            prop_assert_eq!(fed(Some("Hello!"), &parts), Ok(Progress::Answered(wrong)));
            prop_assert_eq!(fed(None, &parts), Ok(Progress::Answered(whole)));
        }
    }

    #[test]
    fn another_protocol_that_nobody_asked_for_fails_at_once() {
        let switching = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
        assert_eq!(
            fed(None, &[switching]),
            Err(Failure::Protocol(ProtocolFault::Rule(SWITCHED)))
        );
    }

    #[test]
    fn bytes_that_follow_an_answer_are_stray() {
        let bytes = b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\n";
        let Ok(Progress::Answered(answered)) = fed(None, &[bytes]) else {
            panic!("no answer");
        };
        assert_eq!((answered.status, answered.reuse), (204, Reuse::Stray));
    }

    #[test]
    fn the_end_of_the_stream_ends_a_body_without_length_and_cuts_one_with() {
        let mut exchange = Http1::default();
        exchange.expect(0, &request(Some("Hello"))).unwrap();
        let progress = exchange.received(&mut &b"HTTP/1.1 200 OK\r\n\r\nHello"[..]);
        assert_eq!(progress, Ok(Progress::Pending));
        let answered = exchange.ended().unwrap();
        assert_eq!(
            (answered.is_right, answered.reuse),
            (true, Reuse::ClosedByServer)
        );

        exchange = Http1::default();
        exchange.expect(0, &request(None)).unwrap();
        let _ = exchange.received(&mut &b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello"[..]);
        assert_eq!(exchange.ended(), Err(Failure::Closed));
        assert_eq!(Http1::default().ended(), Err(Failure::Closed));
    }

    #[test]
    fn an_answer_whose_head_is_known_is_judged_as_any_other() {
        let last = LastHead::new(Limits::for_responses());
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
        let answer = |expected: &str, bytes: &str| {
            let mut exchange = Http1::new(false, None, &last);
            exchange.expect(5, &request(Some(expected))).unwrap();
            let progress = exchange.received(&mut bytes.as_bytes()).unwrap();
            let mut begun = Vec::new();
            exchange.begun(&mut |place| begun.push(place));
            match progress {
                Progress::Answered(of) => (Some((of.place, of.is_right, of.reuse)), begun),
                _ => (None, begun),
            }
        };
        // The first is parsed, the others are not.
        for _ in 0..2 {
            let whole = |is_right, reuse| (Some((5, is_right, reuse)), Vec::new());
            assert_eq!(answer("a", &format!("{head}a")), whole(true, Reuse::Yes));
            assert_eq!(answer("b", &format!("{head}a")), whole(false, Reuse::Yes));
            assert_eq!(answer("ab", &format!("{head}a")), whole(false, Reuse::Yes));
            assert_eq!(answer("a", &format!("{head}aH")), whole(true, Reuse::Stray));
            assert_eq!(answer("a", head), (None, vec![5]));
        }
        let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        for _ in 0..2 {
            let closes = (Some((5, true, Reuse::ClosedByServer)), Vec::new());
            assert_eq!(answer("", closing), closes);
        }
    }

    #[test]
    fn answers_to_requests_in_a_row_belong_to_them_in_order() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nb";
        for cut in 0..bytes.len() {
            let mut exchange = Http1::default();
            exchange.expect(3, &request(Some("a"))).unwrap();
            exchange.expect(1, &request(Some("b"))).unwrap();
            let mut seen = Vec::new();
            for mut part in [&bytes[..cut], &bytes[cut..]] {
                loop {
                    match exchange.received(&mut part).unwrap() {
                        Progress::Answered(answered) => seen.push(answered),
                        Progress::Pending => break,
                        other => panic!("{other:?}"),
                    }
                    if part.is_empty() {
                        break;
                    }
                }
            }
            let places: Vec<_> = seen
                .iter()
                .map(|one| (one.place, one.status, one.is_right, one.reuse))
                .collect();
            assert_eq!(
                places,
                [(3, 200, true, Reuse::Yes), (1, 404, true, Reuse::Yes)]
            );
            assert_eq!(exchange.received(&mut &b"H"[..]), Ok(Progress::Stray));
        }
    }
}
