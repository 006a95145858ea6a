//! The requests of a workload as bytes (`{random}` filled in, `Host` and `Content-Length` added) with the answer that each
//! must get; and one exchange over HTTP/1.1: a request is written, its answer read until it is whole, with a time-out on every
//! wait. Plain blocking sockets, as what is verified or counted must not depend on what is measured.
//!
//! Not for: load, or what an answer must be ([`crate::verify`]). A strategy of receiving (`prony_bench::io`) has a loop of
//! its own: it is the loop that is measured, and it counts bodies that it never sees.

mod stream;

use std::io::ErrorKind;
use std::time::Duration;

use prony_base::Random;
use prony_load::prepare::{RequestParts, write};
use prony_record::{ExpectedAnswer, PlannedWorkload, PreparedRequest};
use prony_tls::Offer;
use prony_wire::{EndOfInput, Limits, Method, ResponseEvent, ResponseReader};

use stream::BlockingStream;
pub use stream::{Destination, Trust, name_in};

/// What stands for a random number in a path, a body or an expected body.
pub const PLACEHOLDER: &str = "{random}";
/// The largest number that every language's JSON keeps exact: 2^53 - 1.
pub const RANDOM_MAX: u64 = (1 << 53) - 1;
/// Different requests that a workload with random numbers is given.
const VARIANTS: usize = 64;

/// Whether the requests of `workload` differ from each other.
pub fn varies(workload: &PlannedWorkload) -> bool {
    workload.request.path.contains(PLACEHOLDER) || workload.request.body.contains(PLACEHOLDER)
}

/// The requests that the generator sends in turn: 64 with random numbers of
/// `seed`, or a single one where nothing is random.
pub fn variants(workload: &PlannedWorkload, host: &str, seed: u64) -> Vec<PreparedRequest> {
    if !varies(workload) {
        return vec![prepare(workload, host, 0, &workload.request.method)];
    }
    let mut random = Random::of(seed, "requests");
    let mut one = || {
        prepare(
            workload,
            host,
            random.below(RANDOM_MAX + 1),
            &workload.request.method,
        )
    };
    (0..VARIANTS).map(|_| one()).collect()
}

/// One request with `number` filled in, by `method` (for a HEAD in place of a GET).
pub fn prepare(
    workload: &PlannedWorkload,
    host: &str,
    number: u64,
    method: &str,
) -> PreparedRequest {
    let fill = |text: &str| text.replace(PLACEHOLDER, &number.to_string());
    let request = &workload.request;
    let body = fill(&request.body);
    let parts = RequestParts {
        method,
        path: &fill(&request.path),
        authority: host,
        headers: &request.headers,
        body: body.as_bytes(),
    };
    let bytes = write(&parts);
    let expected = workload.expect_body.as_deref().filter(|_| method != "HEAD");
    PreparedRequest {
        method: method.to_owned(),
        bytes,
        expect: expected.map(|text| ExpectedAnswer {
            body: Some(fill(text).into_bytes()),
        }),
        weight: 0,
    }
}

/// How much of a body is kept.
#[derive(Clone, Copy, Debug)]
pub enum KeptBody {
    /// All of it, up to so many bytes; a longer one is an error.
    Whole(usize),
    /// The first bytes, so many at most. The others are counted, so that the longest body costs no memory.
    Start(usize),
}

/// An answer as it came.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its `Content-Type`.
    pub content_type: Option<String>,
    /// Its `Content-Length`; the answer to a HEAD has one and no body.
    pub content_length: Option<u64>,
    /// Its `Set-Cookie`s, in order.
    pub cookies: Vec<Vec<u8>>,
    /// Its `Content-Encoding`s, in order.
    pub codings: Vec<String>,
    /// Its `Location`.
    pub location: Option<Vec<u8>>,
    /// Bytes of its head as they came.
    pub head_bytes: u64,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// What is kept of them.
    pub body: Vec<u8>,
    /// Whether the connection is open for another request.
    pub keep_alive: bool,
}

/// Requests `path` on a connection of its own. `timeout` is for each wait.
pub fn once(
    to: &Destination<'_>,
    (method, path): (&Method, &str),
    timeout: Duration,
    keep: KeptBody,
) -> Result<Answer, String> {
    let (name, authority) = (method.name(), to.authority);
    let bytes = format!("{name} {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    let mut connection = BlockingConnection::open(to, timeout)?;
    connection.send(bytes.as_bytes(), method)?;
    connection.answer(keep)
}

/// The first bytes of a connection of HTTP/2, with settings that change nothing.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Bytes of a frame's head, and the type that its fourth byte has in the first that a server sends.
const HTTP2_HEAD_BYTES: usize = 9;
const HTTP2_SETTINGS: u8 = 4;

/// Whether the server speaks HTTP/2: it chooses `h2` where there is TLS, and sends its settings.
///
/// # Errors
/// What it did instead.
pub fn speaks_http2(to: &Destination<'_>, timeout: Duration) -> Result<(), String> {
    let (mut stream, facts) = BlockingStream::open(to, Offer::Http2, timeout)?;
    if to.trust.is_some() && facts.protocol != b"h2" {
        return Err("it does not choose h2 where ALPN offers nothing else".to_owned());
    }
    let failed = |error: std::io::Error| format!("no settings of HTTP/2 came: {error}");
    stream.write_all(HTTP2_PREFACE).map_err(failed)?;
    let mut received = Vec::new();
    while received.len() < HTTP2_HEAD_BYTES {
        if !stream.read_more(&mut received).map_err(failed)? {
            return Err("it ends a connection of HTTP/2 without its settings".to_owned());
        }
    }
    match received[3] {
        HTTP2_SETTINGS if !received.starts_with(b"HTTP") => Ok(()),
        _ => Err("what it answers to HTTP/2 does not begin with its settings".to_owned()),
    }
}

/// One connection. Answers come in the order of their requests.
pub struct BlockingConnection {
    stream: BlockingStream,
    reader: ResponseReader,
    /// Received, and not taken yet.
    pending: Vec<u8>,
}

impl BlockingConnection {
    /// Connects; `timeout` is for each wait, from here on.
    pub fn open(to: &Destination<'_>, timeout: Duration) -> Result<BlockingConnection, String> {
        let (stream, _) = BlockingStream::open(to, Offer::Http1, timeout)?;
        Ok(BlockingConnection {
            stream,
            reader: ResponseReader::new(Limits::for_responses()),
            pending: Vec::new(),
        })
    }

    /// Announces a request by `method`, which its answer's framing depends on.
    pub fn expect(&mut self, method: &Method) -> Result<(), String> {
        self.reader
            .expect(method)
            .map_err(|error| error.to_string())
    }

    /// Writes bytes of announced requests.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(bytes)
            .map_err(|error| format!("sending failed: {error}"))
    }

    /// Sends one request.
    pub fn send(&mut self, bytes: &[u8], method: &Method) -> Result<(), String> {
        self.expect(method)?;
        self.write(bytes)
    }

    /// Reads one whole answer.
    pub fn answer(&mut self, keep: KeptBody) -> Result<Answer, String> {
        let mut answer = Answer::default();
        loop {
            if self.take_events(&mut answer, keep)? {
                return Ok(answer);
            }
            match self.stream.read_more(&mut self.pending) {
                Ok(true) => {}
                Ok(false) => return self.ended(answer),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Err("no answer in time".to_owned());
                }
                Err(error) => return Err(format!("receiving failed: {error}")),
            }
        }
    }

    /// Takes what has arrived; true when the answer is whole.
    fn take_events(&mut self, answer: &mut Answer, keep: KeptBody) -> Result<bool, String> {
        let mut used_in_all = 0;
        let mut complete = false;
        while !complete {
            let (used, event) = self
                .reader
                .next(&self.pending[used_in_all..])
                .map_err(|error| format!("the answer is not HTTP: {error}"))?;
            used_in_all += used;
            if answer.status == 0 {
                answer.head_bytes += used as u64;
            }
            match event {
                None => break,
                Some(ResponseEvent::Interim(_)) => answer.head_bytes = 0,
                Some(ResponseEvent::Head(head)) => {
                    let field = |name| {
                        let value = head.headers.get(name);
                        value.map(|value| String::from_utf8_lossy(value).into_owned())
                    };
                    answer.status = head.status;
                    answer.keep_alive = head.keep_alive;
                    let cookies = head.headers.get_all("set-cookie");
                    answer.cookies = cookies.map(<[u8]>::to_vec).collect();
                    let codings = head.headers.get_all("content-encoding");
                    let codings = codings.map(|of| String::from_utf8_lossy(of).into_owned());
                    answer.codings = codings.collect();
                    answer.location = head.headers.get("location").map(<[u8]>::to_vec);
                    answer.content_type = field("content-type");
                    answer.content_length =
                        field("content-length").and_then(|text| text.trim().parse().ok());
                }
                Some(ResponseEvent::Data(data)) => answer.add(data, keep)?,
                Some(ResponseEvent::End(end)) => {
                    answer.keep_alive = end.keep_alive;
                    complete = true;
                }
            }
        }
        self.pending.drain(..used_in_all);
        Ok(complete)
    }

    /// The stream ended: that may be the end of a body, or a lack of one.
    fn ended(&mut self, mut answer: Answer) -> Result<Answer, String> {
        match self.reader.end_of_input() {
            Ok(EndOfInput::Complete { .. }) => {
                answer.keep_alive = false;
                Ok(answer)
            }
            Ok(EndOfInput::Idle { .. }) => {
                Err("the server closed the connection without an answer".to_owned())
            }
            Err(error) => Err(format!(
                "the server closed the connection in the answer: {error}"
            )),
        }
    }
}

impl Answer {
    fn add(&mut self, data: &[u8], keep: KeptBody) -> Result<(), String> {
        self.body_bytes += data.len() as u64;
        let room = match keep {
            KeptBody::Whole(bytes_max) if self.body_bytes > bytes_max as u64 => {
                return Err(format!("a body of more than {bytes_max} bytes came"));
            }
            KeptBody::Whole(bytes_max) | KeptBody::Start(bytes_max) => {
                bytes_max.saturating_sub(self.body.len())
            }
        };
        self.body.extend_from_slice(&data[..data.len().min(room)]);
        Ok(())
    }
}

/// The start of a body as a message shows it.
pub fn shown(body: &[u8]) -> String {
    const SHOWN_MAX: usize = 80;
    let text = String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]);
    let more = if body.len() > SHOWN_MAX { " …" } else { "" };
    format!("`{}`{more}", text.escape_debug())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use prony_record::RequestTemplate;

    use super::*;

    /// What is made of one answer, cut into pieces of `size`.
    fn read(
        answer: &'static str,
        size: usize,
        method: &Method,
        keep: KeptBody,
    ) -> Result<Answer, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let count = stream.read(&mut request).unwrap();
            for piece in answer.as_bytes().chunks(size) {
                // A client that has seen enough is gone.
                let _ = stream.write_all(piece);
            }
            String::from_utf8_lossy(&request[..count]).into_owned()
        });
        let to = Destination {
            address,
            authority: &address.to_string(),
            trust: None,
        };
        let timeout = Duration::from_secs(60);
        let answer = once(&to, (method, "/x?y"), timeout, keep);
        let request = serving.join().unwrap();
        assert!(
            request.contains(" /x?y HTTP/1.1\r\nHost: 127.0.0.1:"),
            "{request}"
        );
        answer
    }

    const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    const OPEN: &str = "HTTP/1.0 200 OK\r\n\r\nhello";

    #[test]
    fn heads_and_bodies_are_counted_however_they_arrive() {
        for (text, head_bytes) in [(SIZED, 38), (CHUNKED, 47), (OPEN, 19)] {
            for size in [1, 7, 1_000] {
                let answer = read(text, size, &Method::Get, KeptBody::Start(1_000)).unwrap();
                assert_eq!(
                    (answer.status, answer.head_bytes, answer.body_bytes),
                    (200, head_bytes, 5)
                );
                assert_eq!(answer.body, b"hello");
            }
        }
    }

    #[test]
    fn a_body_over_the_limit_is_counted_or_refused() {
        for text in [SIZED, CHUNKED, OPEN] {
            let start = read(text, 1, &Method::Get, KeptBody::Start(3)).unwrap();
            assert_eq!((start.body_bytes, start.body.as_slice()), (5, &b"hel"[..]));
            let complete = read(text, 1, &Method::Get, KeptBody::Whole(3)).unwrap_err();
            assert_eq!(complete, "a body of more than 3 bytes came");
        }
    }

    #[test]
    fn a_head_says_how_long_the_body_would_be() {
        let of = |text| read(text, 100, &Method::Head, KeptBody::Start(9)).unwrap();
        let answer = of("HTTP/1.1 200 OK\r\nContent-Length: 209715200\r\n\r\n");
        assert_eq!(
            (answer.content_length, answer.body_bytes),
            (Some(200 << 20), 0)
        );
        assert_eq!(of("HTTP/1.1 200 OK\r\n\r\n").content_length, None);
    }

    #[test]
    fn what_is_no_answer_is_named() {
        let of = |text| read(text, 100, &Method::Get, KeptBody::Whole(99)).unwrap_err();
        assert!(of("").contains("without an answer"));
        assert!(of("SSH-2.0-x\r\n\r\n").contains("not HTTP"));
        let cut = of("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
        assert!(cut.contains("in the answer"), "{cut}");
    }

    fn ping() -> PlannedWorkload {
        PlannedWorkload {
            request: RequestTemplate {
                method: "POST".into(),
                path: "/ping".into(),
                headers: vec![("Content-Type".into(), "application/json".into())],
                body: r#"{"sequence":{random}}"#.into(),
            },
            expect_body: Some(r#"{"sequence":{random}}"#.into()),
            ..PlannedWorkload::default()
        }
    }

    #[test]
    fn a_request_is_whole_and_expects_its_own_number() {
        let request = prepare(&ping(), "127.0.0.1:8080", 7, "POST");
        assert_eq!(
            String::from_utf8_lossy(&request.bytes),
            "POST /ping HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n\
             Content-Length: 14\r\n\r\n{\"sequence\":7}"
        );
        let body = request.expect.and_then(|expect| expect.body);
        assert_eq!(body.as_deref(), Some(&b"{\"sequence\":7}"[..]));
    }

    #[test]
    fn variants_differ_and_a_seed_repeats_them() {
        let first = variants(&ping(), "h", 1);
        assert_eq!(first.len(), VARIANTS);
        assert_ne!(first[0], first[1]);
        assert_eq!(first, variants(&ping(), "h", 1));
        assert_ne!(first, variants(&ping(), "h", 2));
    }

    #[test]
    fn a_request_without_random_numbers_has_no_variants() {
        let mut hello = ping();
        hello.request = RequestTemplate {
            method: "GET".into(),
            path: "/hello".into(),
            ..RequestTemplate::default()
        };
        let only = variants(&hello, "h", 1);
        assert_eq!(only.len(), 1);
        assert_eq!(only[0].bytes, b"GET /hello HTTP/1.1\r\nHost: h\r\n\r\n");
    }
}
