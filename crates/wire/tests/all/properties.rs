//! What is written reads the same, however many messages follow each other and
//! however they are cut; and heads read as `httparse` reads them.

use crate::hooks::http1::{requests, responses};
use prony_wire::{Framing, Header, Limits, Method, Version, encode};
use proptest::prelude::*;

/// A message to write: its head's parts and its body in pieces.
#[derive(Clone, Debug)]
struct Message {
    method: Method,
    target: String,
    status: u16,
    headers: Vec<(String, String)>,
    chunked: bool,
    pieces: Vec<Vec<u8>>,
    trailers: Vec<(String, String)>,
}

fn methods() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just("GET".to_owned()),
        Just("HEAD".to_owned()),
        Just("POST".to_owned()),
        Just("DELETE".to_owned()),
        "[A-Z!#$%&'*+.^_`|~-]{1,23}",
    ]
    .prop_filter("CONNECT has no path", |name| name != "CONNECT")
    .prop_map(|name| Method::from_name(&name).expect("a token"))
}

/// Header lines whose names mean nothing.
fn lines() -> impl Strategy<Value = Vec<(String, String)>> {
    let value = "([!-~\u{80}-\u{2ff}]([ -~\t\u{80}-\u{2ff}]{0,20}[!-~])?)?";
    proptest::collection::vec(("x[a-zA-Z0-9!#$%&'*+.^_`|~-]{0,12}", value), 0..5)
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let piece = proptest::collection::vec(any::<u8>(), 0..40);
    let message = (
        methods(),
        "/[!-\"$-~]{0,30}",
        prop_oneof![200_u16..=599, Just(204_u16), Just(304_u16)],
        lines(),
        any::<bool>(),
        proptest::collection::vec(piece, 0..4),
        lines(),
    )
        .prop_map(
            |(method, target, status, headers, chunked, pieces, trailers)| Message {
                method,
                target,
                status,
                headers,
                chunked,
                pieces,
                trailers,
            },
        );
    proptest::collection::vec(message, 1..5)
}

fn as_headers(lines: &[(String, String)]) -> impl Iterator<Item = Header<'_>> {
    lines
        .iter()
        .map(|(name, value)| Header::new(name, value.as_bytes()))
}

fn as_text(lines: &[(String, String)]) -> String {
    lines
        .iter()
        .map(|(name, value)| format!(" {name}={}", value.as_bytes().escape_ascii()))
        .collect()
}

impl Message {
    fn has_body(&self) -> bool {
        self.method != Method::Head && !matches!(self.status, 204 | 304)
    }

    fn framing(&self) -> Framing {
        match self.chunked {
            true => Framing::Chunked,
            false => Framing::Length(self.pieces.concat().len() as u64),
        }
    }

    /// The header line that the encoder adds, as text.
    fn framing_line(&self) -> String {
        match self.framing() {
            Framing::Length(length) => format!(" content-length={length}"),
            _ => " transfer-encoding=chunked".to_owned(),
        }
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        if !self.chunked {
            return out.extend_from_slice(&self.pieces.concat());
        }
        for piece in &self.pieces {
            encode::chunk(out, piece);
        }
        encode::last_chunk(out, as_headers(&self.trailers)).expect("fine trailers");
    }

    fn body_lines(&self, lines: &mut Vec<String>) {
        let body = self.pieces.concat();
        if !body.is_empty() {
            lines.push(format!("data {}", body.escape_ascii()));
        }
        let trailers = if self.chunked {
            as_text(&self.trailers)
        } else {
            String::new()
        };
        lines.push(format!("end keep{trailers}"));
    }

    fn write_request(&self, out: &mut Vec<u8>) {
        encode::request(out, &self.method, &self.target, Version::Http11)
            .header("Host", "a")
            .headers(as_headers(&self.headers))
            .finish(self.framing())
            .expect("a fine request");
        self.write_body(out);
    }

    fn request_lines(&self, lines: &mut Vec<String>) {
        lines.push(format!(
            "{} {} HTTP/1.1 {:?} keep Host=a{}{}",
            self.method,
            self.target,
            self.framing(),
            as_text(&self.headers),
            self.framing_line()
        ));
        self.body_lines(lines);
    }

    fn write_response(&self, out: &mut Vec<u8>) {
        let framing = if self.status == 204 {
            Framing::None
        } else {
            self.framing()
        };
        encode::response(out, Version::Http11, self.status)
            .headers(as_headers(&self.headers))
            .finish(framing)
            .expect("a fine response");
        if self.has_body() {
            self.write_body(out);
        }
    }

    fn response_lines(&self, lines: &mut Vec<String>) {
        let framing = if self.has_body() {
            self.framing()
        } else {
            Framing::None
        };
        lines.push(format!(
            "HTTP/1.1 {} {:?} {framing:?} keep{}{}",
            self.status,
            prony_wire::reason(self.status),
            as_text(&self.headers),
            if self.status == 204 {
                String::new()
            } else {
                self.framing_line()
            }
        ));
        match self.has_body() {
            true => self.body_lines(lines),
            false => lines.push("end keep".to_owned()),
        }
    }
}

/// Places to cut `length` bytes, from numbers of any size.
fn cuts(places: &[usize], length: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = places.iter().map(|place| place % (length + 1)).collect();
    cuts.sort_unstable();
    cuts
}

fn places() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(any::<usize>(), 0..12)
}

proptest! {
    #[test]
    fn pipelined_requests_read_as_written(messages in messages(), places in places()) {
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        for message in &messages {
            message.write_request(&mut bytes);
            message.request_lines(&mut lines);
        }
        lines.push("idle".to_owned());
        let seen = requests(Limits::for_requests(), &bytes, &cuts(&places, bytes.len()));
        prop_assert_eq!(seen, lines);
    }

    #[test]
    fn pipelined_responses_read_as_written(messages in messages(), places in places()) {
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        for message in &messages {
            message.write_response(&mut bytes);
            message.response_lines(&mut lines);
        }
        lines.push("idle 0".to_owned());
        let methods: Vec<Method> = messages.iter().map(|message| message.method).collect();
        let cuts = cuts(&places, bytes.len());
        prop_assert_eq!(responses(Limits::for_responses(), &methods, &bytes, &cuts), lines);
    }

    #[test]
    fn a_stream_cut_off_anywhere_is_never_complete(messages in messages(), place in any::<usize>()) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for message in &messages {
            message.write_request(&mut bytes);
            ends.push(bytes.len());
        }
        let length = place % (bytes.len() + 1);
        let lines = requests(Limits::for_requests(), &bytes[..length], &[]);
        let idle = lines.last().is_some_and(|line| line == "idle");
        prop_assert_eq!(idle, ends.contains(&length));
    }

    #[test]
    fn heads_read_as_httparse_reads_them(message in messages()) {
        let mut bytes = Vec::new();
        message[0].write_request(&mut bytes);
        let mut table = [httparse::EMPTY_HEADER; 16];
        let mut theirs = httparse::Request::new(&mut table);
        let used = theirs.parse(&bytes).expect("a fine head").unwrap();
        let mut reader = prony_wire::RequestReader::new(Limits::for_requests());
        let Ok((ours_used, Some(prony_wire::RequestEvent::Head(ours)))) = reader.next(&bytes) else {
            return Err(TestCaseError::fail("no head"));
        };
        prop_assert_eq!(ours_used, used);
        prop_assert_eq!(Some(ours.method.name()), theirs.method);
        prop_assert_eq!(Some(ours.target), theirs.path);
        let lines = ours.headers.iter().map(|header| (header.name, header.value));
        prop_assert!(lines.eq(theirs.headers.iter().map(|header| (header.name, header.value))));
    }

    /// Any bytes as a value or name: refused, and then nothing is written, or
    /// read back as one line.
    #[test]
    fn nothing_can_be_injected(name in "[ -~\r\n\0]{0,6}", value in any::<Vec<u8>>(), target in "[ -~\r\n\0]{0,6}") {
        let before = b"before".to_vec();
        let mut out = before.clone();
        let written = encode::request(&mut out, &Method::Get, &target, Version::Http11)
            .header("host", "a")
            .header(&name, &value)
            .finish(Framing::None);
        match written {
            Err(_) => prop_assert_eq!(out, before),
            Ok(()) => {
                let feeds = out.iter().filter(|byte| **byte == b'\n').count();
                prop_assert_eq!(feeds, 4);
                prop_assert!(out.ends_with(b"\r\n\r\n"));
            }
        }
    }
}
