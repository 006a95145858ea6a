//! One request to a peer, beside the client that is measured: what its page is like, and
//! what it has counted. Plain blocking sockets, as in [`crate::verify`]; a body is counted
//! and only its start is kept, so that the largest payload costs no memory.
//!
//! Not for: what the counts mean ([`crate::counts`]).

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prony_wire::{EndOfInput, Limits, Method, ResponseEvent, ResponseReader};

use super::start::Place;
use crate::counts;

/// How long each part of an answer may be waited for.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An answer, as far as it is looked at.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Page {
    /// Its status.
    pub status: u16,
    /// Bytes of its head as they came.
    pub head_bytes: u64,
    /// Bytes of its body; of a HEAD, those that it says a GET has, where it says so.
    pub body_bytes: Option<u64>,
    /// The first of them, at most [`counts::ANSWER_BYTES_MAX`].
    pub body: Vec<u8>,
}

/// Asks for `path` by `method` on a connection of its own and reads to the end.
pub fn ask(place: &Place, method: &Method, path: &str) -> Result<Page, String> {
    let failed = |error: std::io::Error| format!("cannot connect to {}: {error}", place.address);
    let mut stream = TcpStream::connect_timeout(&place.address, TIMEOUT).map_err(failed)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(failed)?;
    stream.set_write_timeout(Some(TIMEOUT)).map_err(failed)?;
    let mut reader = ResponseReader::new(Limits::for_responses());
    reader.expect(method).map_err(|error| error.to_string())?;
    let (name, host) = (method.name(), &place.authority);
    let request = format!("{name} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let sent = stream.write_all(request.as_bytes());
    sent.map_err(|error| format!("sending failed: {error}"))?;
    let mut page = Page::default();
    let mut pending = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if take(&mut reader, &mut pending, &mut page, method)? {
            return Ok(page);
        }
        match stream.read(&mut buffer) {
            Ok(0) => return ended(&mut reader, page),
            Ok(count) => pending.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("no answer in time: {error}")),
        }
    }
}

/// Takes what has arrived; true when the answer is whole.
fn take(
    reader: &mut ResponseReader,
    pending: &mut Vec<u8>,
    page: &mut Page,
    method: &Method,
) -> Result<bool, String> {
    let mut used_in_all = 0;
    let mut whole = false;
    while !whole {
        let (used, event) = reader
            .next(&pending[used_in_all..])
            .map_err(|error| format!("the answer is not HTTP: {error}"))?;
        used_in_all += used;
        if page.status == 0 {
            page.head_bytes += used as u64;
        }
        match event {
            None => break,
            Some(ResponseEvent::Interim(_)) => page.head_bytes = 0,
            Some(ResponseEvent::Head(head)) => {
                page.status = head.status;
                page.body_bytes = Some(0);
                if *method == Method::Head {
                    let said = head.headers.get("content-length");
                    let said = said.and_then(|value| std::str::from_utf8(value).ok());
                    page.body_bytes = said.and_then(|text| text.trim().parse().ok());
                }
            }
            Some(ResponseEvent::Data(data)) => {
                page.body_bytes = page.body_bytes.map(|bytes| bytes + data.len() as u64);
                let left = counts::ANSWER_BYTES_MAX.saturating_sub(page.body.len());
                page.body.extend_from_slice(&data[..data.len().min(left)]);
            }
            Some(ResponseEvent::End(_)) => whole = true,
        }
    }
    pending.drain(..used_in_all);
    Ok(whole)
}

/// The stream ended: that may be the end of a body, or a lack of one.
fn ended(reader: &mut ResponseReader, page: Page) -> Result<Page, String> {
    match reader.end_of_input() {
        Ok(EndOfInput::Complete { .. }) => Ok(page),
        Ok(EndOfInput::Idle { .. }) => {
            Err("the server closed the connection without an answer".to_owned())
        }
        Err(error) => Err(format!(
            "the server closed the connection in the answer: {error}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// What is made of one answer, cut into pieces of `size`.
    fn page(answer: &'static str, size: usize, method: Method) -> Result<Page, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            for piece in answer.as_bytes().chunks(size) {
                stream.write_all(piece).unwrap();
            }
            String::from_utf8_lossy(&request[..count]).into_owned()
        });
        let authority = address.to_string();
        let page = ask(&Place { address, authority }, &method, "/x?y");
        let asked = serving.join().unwrap();
        assert!(
            asked.contains(" /x?y HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{asked}"
        );
        page
    }

    #[test]
    fn heads_and_bodies_are_counted_however_they_arrive() {
        const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        const CHUNKED: &str =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
        const OPEN: &str = "HTTP/1.0 200 OK\r\n\r\nhello";
        for (answer, head_bytes) in [(SIZED, 38), (CHUNKED, 47), (OPEN, 19)] {
            for size in [1, 7, 1_000] {
                let page = page(answer, size, Method::Get).unwrap();
                assert_eq!(
                    (
                        page.status,
                        page.head_bytes,
                        page.body_bytes,
                        page.body.as_slice()
                    ),
                    (200, head_bytes, Some(5), &b"hello"[..])
                );
            }
        }
    }

    #[test]
    fn a_head_says_how_long_the_body_would_be() {
        let of = |answer| page(answer, 100, Method::Head).unwrap().body_bytes;
        assert_eq!(
            of("HTTP/1.1 200 OK\r\nContent-Length: 209715200\r\n\r\n"),
            Some(200 << 20)
        );
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n"), None);
    }

    #[test]
    fn what_is_no_answer_is_named() {
        let of = |answer| page(answer, 100, Method::Get).unwrap_err();
        assert!(of("").contains("without an answer"));
        assert!(of("SSH-2.0-x\r\n\r\n").contains("not HTTP"));
        let cut = of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
        assert!(cut.contains("in the answer"), "{cut}");
    }
}
