//! HTTP/1.1 as a [`Protocol`]: one request outstanding on a connection.

use std::rc::Rc;

use prony_wire::{EndOfInput, Limits, ResponseEvent, ResponseReader};

use crate::failure::Failure;
use crate::protocol::{Answered, Progress, Protocol, Reuse};
use crate::source::EncodedRequest;

/// A change of protocol, which is never requested: what follows it has no end as HTTP.
const SWITCHING_PROTOCOLS: u16 = 101;

/// One connection.
pub struct Http1 {
    reader: ResponseReader,
    status: u16,
    expected: Option<Rc<[u8]>>,
    /// Bytes of the body so far.
    body_bytes: usize,
    body_right: bool,
}

impl Default for Http1 {
    fn default() -> Http1 {
        Http1 {
            reader: ResponseReader::new(Limits::for_responses()),
            status: 0,
            expected: None,
            body_bytes: 0,
            body_right: true,
        }
    }
}

impl Http1 {
    /// Compares a part of the body with its place in the expected one.
    fn body(&mut self, length: usize, is_right: bool) {
        self.body_right &= is_right;
        self.body_bytes += length;
    }

    fn answered(&self, reuse: Reuse) -> Answered {
        let is_whole = self
            .expected
            .as_ref()
            .is_none_or(|expected| expected.len() == self.body_bytes);
        Answered {
            status: self.status,
            is_right: self.body_right && is_whole,
            reuse,
        }
    }
}

impl Protocol for Http1 {
    fn sent(&mut self, request: &EncodedRequest) -> Result<(), Failure> {
        self.status = 0;
        self.expected.clone_from(&request.expected_body);
        (self.body_bytes, self.body_right) = (0, true);
        let expected = self.reader.expect(&request.method);
        expected.map_err(|_outstanding| Failure::Protocol)
    }

    fn received(&mut self, mut rest: &[u8]) -> Result<Progress, Failure> {
        loop {
            let (used, event) = self.reader.next(rest).map_err(|_wire| Failure::Protocol)?;
            rest = &rest[used..];
            let reuse = match event {
                None => return Ok(Progress::Pending),
                Some(ResponseEvent::Interim(_)) => continue,
                Some(ResponseEvent::Head(head)) if head.status == SWITCHING_PROTOCOLS => {
                    return Err(Failure::Protocol);
                }
                Some(ResponseEvent::Head(head)) => {
                    self.status = head.status;
                    continue;
                }
                Some(ResponseEvent::Data(data)) => {
                    let length = data.len();
                    let end = self.body_bytes + length;
                    let is_right = self
                        .expected
                        .as_ref()
                        .is_none_or(|expected| expected.get(self.body_bytes..end) == Some(data));
                    self.body(length, is_right);
                    continue;
                }
                Some(ResponseEvent::End(_)) if !rest.is_empty() => Reuse::Stray,
                Some(ResponseEvent::End(end)) if end.keep_alive => Reuse::Yes,
                Some(ResponseEvent::End(_)) => Reuse::ClosedByServer,
            };
            return Ok(Progress::Answered(self.answered(reuse)));
        }
    }

    fn ended(&mut self) -> Result<Answered, Failure> {
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => Ok(self.answered(Reuse::ClosedByServer)),
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
        }
    }

    /// What becomes of a request whose answer comes in these parts, and the number of parts that were looked at.
    fn fed(expected: Option<&str>, parts: &[&[u8]]) -> Result<Progress, Failure> {
        let mut exchange = Http1::default();
        exchange.sent(&request(expected))?;
        for part in parts {
            let progress = exchange.received(part)?;
            if progress != Progress::Pending {
                return Ok(progress);
            }
        }
        Ok(Progress::Pending)
    }

    const CHUNKED: &[u8] =
        b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nHe\r\n3\r\nllo\r\n0\r\n\r\n";

    proptest! {
        #[test]
        fn an_answer_is_the_same_however_it_is_split(cuts in prop::collection::btree_set(1..CHUNKED.len(), 0..8)) {
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([CHUNKED.len()]) {
                parts.push(&CHUNKED[from..cut]);
                from = cut;
            }
            let whole = Answered { status: 404, is_right: true, reuse: Reuse::Yes };
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
        assert_eq!(fed(None, &[switching]), Err(Failure::Protocol));
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
        exchange.sent(&request(Some("Hello"))).unwrap();
        let progress = exchange.received(b"HTTP/1.1 200 OK\r\n\r\nHello");
        assert_eq!(progress, Ok(Progress::Pending));
        let answered = exchange.ended().unwrap();
        assert_eq!(
            (answered.is_right, answered.reuse),
            (true, Reuse::ClosedByServer)
        );

        exchange = Http1::default();
        exchange.sent(&request(None)).unwrap();
        let _ = exchange.received(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nHello");
        assert_eq!(exchange.ended(), Err(Failure::Closed));
        assert_eq!(Http1::default().ended(), Err(Failure::Closed));
    }
}
