//! `Expect: 100-continue` of HTTP/1.1 as a [`Protocol`]: a head, then its body once the server has answered with 100.
//! Not for: the rest of HTTP/1.1, which is [`Http1`]'s.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prony_engine::SendBuf;

use crate::failure::Failure;
use crate::form::head_and_body;
use crate::http1::{CONTINUE, Http1};
use crate::protocol::{Answered, BufferSource, Progress, Protocol, Reuse};
use crate::source::EncodedRequest;

/// One connection, on which one request at a time is outstanding.
pub struct ExpectContinue {
    http: Http1,
    /// The request whose body is not sent, and where that begins.
    held: Option<(Rc<[u8]>, usize)>,
    /// The server has asked for it.
    is_wanted: bool,
    /// Bodies that were asked for on all connections of the thread.
    continued: Arc<AtomicU64>,
}

impl ExpectContinue {
    /// A connection that counts in `continued`.
    pub fn new(http: Http1, continued: &Arc<AtomicU64>) -> ExpectContinue {
        ExpectContinue {
            http,
            held: None,
            is_wanted: false,
            continued: Arc::clone(continued),
        }
    }

    /// A connection whose server may still wait for a body carries no further request.
    fn checked(&mut self, answered: Answered) -> Answered {
        let is_unsent = self.held.take().is_some();
        match answered.reuse {
            Reuse::Yes if is_unsent => Answered {
                reuse: Reuse::Unsent,
                ..answered
            },
            _ => answered,
        }
    }
}

impl Protocol for ExpectContinue {
    fn send(
        &mut self,
        place: usize,
        request: &EncodedRequest,
        buffer: BufferSource<'_>,
    ) -> Result<SendBuf, Failure> {
        let bytes = &request.bytes;
        let head = head_and_body(bytes).0.len();
        self.http.expect(place, request)?;
        self.is_wanted = false;
        self.held = (head < bytes.len()).then(|| (Rc::clone(bytes), head));
        let mut out = buffer();
        out.extend_from_slice(&bytes[..head]);
        Ok(SendBuf::Owned(out))
    }

    fn received(&mut self, bytes: &mut &[u8]) -> Result<Progress, Failure> {
        let progress = self.http.received(bytes)?;
        if self.http.take_interim() == Some(CONTINUE) && self.held.is_some() && !self.is_wanted {
            self.is_wanted = true;
            self.continued.fetch_add(1, Relaxed);
        }
        Ok(match progress {
            Progress::Answered(answered) => Progress::Answered(self.checked(answered)),
            other => other,
        })
    }

    fn begun(&mut self, note: &mut dyn FnMut(usize)) {
        // The 100 is not yet the answer.
        if self.http.has_head() {
            self.http.begun(note);
        }
    }

    fn output(&mut self, buffer: BufferSource<'_>) -> Option<SendBuf> {
        let (bytes, from) = self.held.take_if(|_| self.is_wanted)?;
        let mut out = buffer();
        out.extend_from_slice(&bytes[from..]);
        Some(SendBuf::Owned(out))
    }

    fn expects_nothing(&self) -> bool {
        self.http.expects_nothing()
    }

    fn ended(&mut self) -> Result<Answered, Failure> {
        let answered = self.http.ended()?;
        Ok(self.checked(answered))
    }
}

#[cfg(test)]
mod tests {
    use prony_wire::Method;

    use super::*;

    const REQUEST: &[u8] =
        b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    fn asked() -> (ExpectContinue, Arc<AtomicU64>) {
        let continued = Arc::default();
        let mut expecting = ExpectContinue::new(Http1::default(), &continued);
        let request = EncodedRequest {
            method: Method::Post,
            bytes: REQUEST.into(),
            expected_body: None,
            closes: false,
            http2: None,
            filled: None,
            step: 0,
            user: None,
            chain: None,
        };
        let sent = expecting.send(0, &request, &mut Vec::new).unwrap();
        assert_eq!(sent.as_slice(), &REQUEST[..REQUEST.len() - 2]);
        assert!(expecting.output(&mut Vec::new).is_none());
        (expecting, continued)
    }

    fn reuse(progress: Result<Progress, Failure>) -> Reuse {
        match progress {
            Ok(Progress::Answered(answered)) => answered.reuse,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_body_follows_the_100_however_that_is_split() {
        let interim = b"HTTP/1.1 100 Continue\r\n\r\n";
        for cut in 0..interim.len() {
            let (mut expecting, continued) = asked();
            for mut part in [&interim[..cut], &interim[cut..]] {
                assert_eq!(expecting.received(&mut part), Ok(Progress::Pending));
            }
            let body = expecting.output(&mut Vec::new).unwrap();
            assert_eq!((body.as_slice(), continued.load(Relaxed)), (&b"{}"[..], 1));
            assert!(expecting.output(&mut Vec::new).is_none());
            assert_eq!(reuse(expecting.received(&mut &ANSWER[..])), Reuse::Yes);
        }
    }

    #[test]
    fn another_interim_answer_is_no_100() {
        let (mut expecting, continued) = asked();
        let early = b"HTTP/1.1 103 Early Hints\r\n\r\n";
        assert_eq!(expecting.received(&mut &early[..]), Ok(Progress::Pending));
        assert!(expecting.output(&mut Vec::new).is_none() && continued.load(Relaxed) == 0);
    }

    #[test]
    fn after_an_answer_without_100_the_connection_is_not_used_again() {
        let (mut expecting, continued) = asked();
        assert_eq!(reuse(expecting.received(&mut &ANSWER[..])), Reuse::Unsent);
        assert_eq!(continued.load(Relaxed), 0);
    }
}
