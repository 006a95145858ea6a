//! What the readers say of some bytes, as lines of text, and checks that must hold for all bytes: for tests, and for the fuzz targets
//! `request`, `response` and `chunked`, whose corpora the tests replay.

use prony_base::Random;

use prony_wire::{
    EndOfInput, Error, Framing, Header, Headers, LastHead, Limits, Method, RequestEvent,
    RequestHead, RequestReader, ResponseEvent, ResponseHead, ResponseReader, SharingReader,
    Version, WholeRequest, encode,
};

/// Limits small enough for a fuzzer to reach each.
pub const SMALL: Limits = Limits {
    head_bytes_max: 192,
    headers_max: 6,
    target_bytes_max: 48,
    body_bytes_max: 64,
    chunk_line_bytes_max: 12,
    trailer_bytes_max: 48,
    interim_responses_max: 2,
    empty_lines_max: 1,
    outstanding_max: 4,
};

/// What a reader said, one line per event; data in a row is one line.
#[derive(Debug, Default)]
struct Trace {
    lines: Vec<String>,
    data: Vec<u8>,
    body_bytes: u64,
}

impl Trace {
    fn line(&mut self, line: String) {
        if !self.data.is_empty() {
            let data = std::mem::take(&mut self.data);
            self.lines.push(format!("data {}", data.escape_ascii()));
        }
        self.lines.push(line);
    }

    fn head(&mut self, line: String, headers: &Headers<'_>, limits: &Limits) {
        assert!(headers.len() <= limits.headers_max);
        assert_eq!(headers.iter().count(), headers.len());
        self.body_bytes = 0;
        self.line(line);
    }

    fn data(&mut self, data: &[u8], limits: &Limits) {
        assert!(!data.is_empty());
        self.body_bytes += data.len() as u64;
        assert!(self.body_bytes <= limits.body_bytes_max);
        self.data.extend_from_slice(data);
    }

    fn whole_request(&mut self, request: &WholeRequest<'_>, limits: &Limits) {
        let head = &request.head;
        self.head(request_line(head), &head.headers, limits);
        if !request.body.is_empty() {
            self.data(request.body, limits);
        }
        self.end(head.keep_alive, &Headers::default());
    }

    fn end(&mut self, keep_alive: bool, trailers: &Headers<'_>) {
        self.line(format!("end{}{}", keep(keep_alive), headers(trailers)));
    }

    fn fault(mut self, error: Error) -> Vec<String> {
        self.line(format!("{error:?}"));
        self.lines
    }
}

fn keep(keep_alive: bool) -> &'static str {
    if keep_alive { " keep" } else { " close" }
}

fn headers(headers: &Headers<'_>) -> String {
    let line = |header: Header<'_>| format!(" {}={}", header.name, header.value.escape_ascii());
    headers.iter().map(line).collect()
}

/// `input` cut at `cuts`, which are ascending.
fn chunks<'a>(input: &'a [u8], cuts: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let ends = cuts.iter().copied().chain([input.len()]);
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    starts.zip(ends).map(|(start, end)| &input[start..end])
}

/// What a [`RequestReader`] says of `input`, fed in pieces cut at `cuts`, and
/// of the stream's end after it.
pub fn requests(limits: Limits, input: &[u8], cuts: &[usize]) -> Vec<String> {
    read_requests(limits, input, cuts, false)
}

/// As [`requests`], but takes requests with [`RequestReader::next_whole`] where
/// that goes.
pub fn whole_requests(limits: Limits, input: &[u8], cuts: &[usize]) -> Vec<String> {
    read_requests(limits, input, cuts, true)
}

fn read_requests(limits: Limits, input: &[u8], cuts: &[usize], whole: bool) -> Vec<String> {
    let mut reader = RequestReader::new(limits);
    let mut trace = Trace::default();
    for mut rest in chunks(input, cuts) {
        loop {
            if whole && let Some(request) = reader.next_whole(rest) {
                trace.whole_request(&request, &limits);
                rest = &rest[request.used..];
                continue;
            }
            let length = rest.len();
            let (used, event) = match reader.next(rest) {
                Ok(found) => found,
                Err(error) => return trace.fault(error),
            };
            rest = &rest[used..];
            match event {
                Some(RequestEvent::Head(head)) => {
                    assert!(head.target.len() <= limits.target_bytes_max);
                    check_request_round_trip(&head);
                    trace.head(request_line(&head), &head.headers, &limits);
                }
                Some(RequestEvent::Data(data)) => trace.data(data, &limits),
                Some(RequestEvent::End(end)) => trace.end(end.keep_alive, &end.trailers),
                None => {
                    assert_eq!(used, length, "asking for more with bytes unused");
                    break;
                }
            }
        }
    }
    assert!(reader.bytes_examined() <= 3 * input.len() as u64);
    match reader.end_of_input() {
        Ok(()) => trace.line("idle".to_owned()),
        Err(error) => return trace.fault(error),
    }
    trace.lines
}

fn request_line(head: &RequestHead<'_>) -> String {
    let waits = if head.expects_continue { " waits" } else { "" };
    format!(
        "{} {} {} {:?}{}{waits}{}",
        head.method,
        head.target,
        head.version,
        head.framing,
        keep(head.keep_alive),
        headers(&head.headers)
    )
}

/// What a reader of responses that expects `methods` says of `input`, fed in
/// pieces cut at `cuts`, and of the stream's end after it. It is the same where it takes those whole whose head it knows.
pub fn responses(limits: Limits, methods: &[Method], input: &[u8], cuts: &[usize]) -> Vec<String> {
    let last = LastHead::new(limits);
    let read = |whole: bool| read_responses(&last, whole, methods, input, cuts);
    let lines = read(false);
    for _ in 0..2 {
        assert_eq!(read(true), lines);
    }
    lines
}

fn read_responses(
    last: &LastHead,
    whole: bool,
    methods: &[Method],
    input: &[u8],
    cuts: &[usize],
) -> Vec<String> {
    let (mut reader, limits) = (SharingReader::new(last.clone()), last.limits());
    let mut trace = Trace::default();
    for method in methods {
        if let Err(error) = reader.expect(method) {
            return trace.fault(error);
        }
    }
    for mut rest in chunks(input, cuts) {
        loop {
            if whole && let Some(whole) = reader.next_whole(rest) {
                trace.head(response_line(&whole.head), &whole.head.headers, &limits);
                if !whole.body.is_empty() {
                    trace.data(whole.body, &limits);
                }
                trace.end(whole.head.keep_alive, &Headers::default());
                rest = &rest[whole.used..];
                continue;
            }
            let length = rest.len();
            let (used, event) = match reader.next(rest) {
                Ok(found) => found,
                Err(error) => return trace.fault(error),
            };
            rest = &rest[used..];
            match event {
                Some(ResponseEvent::Interim(head)) => {
                    let line = format!("interim {}", response_line(&head));
                    trace.head(line, &head.headers, &limits);
                }
                Some(ResponseEvent::Head(head)) => {
                    check_response_round_trip(&head);
                    trace.head(response_line(&head), &head.headers, &limits);
                }
                Some(ResponseEvent::Data(data)) => trace.data(data, &limits),
                Some(ResponseEvent::End(end)) => trace.end(end.keep_alive, &end.trailers),
                None => {
                    assert_eq!(used, length, "asking for more with bytes unused");
                    break;
                }
            }
        }
    }
    assert!(reader.bytes_examined() <= 3 * input.len() as u64);
    match reader.end_of_input() {
        Ok(EndOfInput::Idle { unanswered }) => trace.line(format!("idle {unanswered}")),
        Ok(EndOfInput::Complete { unanswered }) => trace.line(format!("complete {unanswered}")),
        Err(error) => return trace.fault(error),
    }
    trace.lines
}

fn response_line(head: &ResponseHead<'_>) -> String {
    format!(
        "{} {} \"{}\" {:?}{}{}",
        head.version,
        head.status,
        head.reason.escape_default(),
        head.framing,
        keep(head.keep_alive),
        headers(&head.headers)
    )
}

/// The lines that the encoder does not write of itself.
fn plain_lines<'a>(headers: &Headers<'a>, but: &[&str]) -> Vec<Header<'a>> {
    let own = |header: &Header<'_>| !but.iter().any(|name| header.is(name));
    headers.iter().filter(own).collect()
}

/// What was read, written again, reads the same.
fn check_request_round_trip(head: &RequestHead<'_>) {
    const OWN: &[&str] = &["content-length", "transfer-encoding"];
    let mut out = Vec::new();
    encode::request(&mut out, &head.method, head.target, head.version)
        .headers(plain_lines(&head.headers, OWN))
        .finish(head.framing)
        .expect("what the reader accepts can be sent");
    let mut reader = RequestReader::new(UNBOUNDED);
    let read = reader.next(&out).expect("what was sent can be read");
    let (_, Some(RequestEvent::Head(again))) = read else {
        panic!("{read:?}");
    };
    assert_eq!(
        plain_lines(&again.headers, OWN),
        plain_lines(&head.headers, OWN)
    );
    let again = RequestHead {
        headers: head.headers,
        ..again
    };
    assert_eq!(again, *head);
}

/// As for requests; the reason and the connection's fate may differ.
fn check_response_round_trip(head: &ResponseHead<'_>) {
    const OWN: &[&str] = &["content-length", "transfer-encoding", "connection"];
    // Forgiven when read, never written; and 204 is a tunnel only to CONNECT,
    // which the encoder does not know of.
    let never_written = (head.version == Version::Http10 && head.framing == Framing::Chunked)
        || (head.status == 204 && head.framing == Framing::UntilClose);
    if never_written || head.headers.len() == prony_wire::HEADERS_CAP {
        return; // The latter has no room for the `connection: close` added.
    }
    let mut out = Vec::new();
    encode::response(&mut out, head.version, head.status)
        .headers(plain_lines(&head.headers, OWN))
        .finish(head.framing)
        .expect("what the reader accepts can be sent");
    let mut reader = ResponseReader::new(UNBOUNDED);
    reader.expect(&Method::Get).expect("one answer");
    let read = reader.next(&out).expect("what was sent can be read");
    let (_, Some(ResponseEvent::Head(again))) = read else {
        panic!("{read:?}");
    };
    assert_eq!((again.version, again.status), (head.version, head.status));
    assert_eq!(
        plain_lines(&again.headers, OWN),
        plain_lines(&head.headers, OWN)
    );
}

/// Encoding may add a connection line and lengthen separators.
const UNBOUNDED: Limits = Limits {
    head_bytes_max: usize::MAX,
    target_bytes_max: usize::MAX,
    headers_max: prony_wire::HEADERS_CAP,
    body_bytes_max: u64::MAX,
    ..Limits::for_requests()
};

/// The first bytes of fuzz input decide how, the rest is what is read.
fn split_plan(data: &[u8]) -> Option<(Limits, u8, Random, &[u8])> {
    let [plan, seed, input @ ..] = data else {
        return None;
    };
    let limits = if plan & 1 == 0 { UNBOUNDED } else { SMALL };
    Some((limits, plan >> 1, Random::new(u64::from(*seed)), input))
}

/// Ascending cuts at random: between few and all places.
fn random_cuts(random: &mut Random, length: usize) -> Vec<usize> {
    let one_in = 1 + random.below(24);
    (1..length).filter(|_| random.chance(1, one_in)).collect()
}

/// Asserts that `read` says the same of `length` bytes however they are cut.
fn check_cuts(length: usize, random: &mut Random, read: impl Fn(&[usize]) -> Vec<String>) {
    let whole = read(&[]);
    assert_eq!(
        read(&(1..length).collect::<Vec<_>>()),
        whole,
        "byte by byte"
    );
    let cuts = random_cuts(random, length);
    assert_eq!(read(&cuts), whole, "cut at {cuts:?}");
}

/// Fuzz target `request`: any bytes as requests.
pub fn request(data: &[u8]) {
    if let Some((limits, _, mut random, input)) = split_plan(data) {
        check_cuts(input.len(), &mut random, |cuts| {
            let lines = requests(limits, input, cuts);
            assert_eq!(whole_requests(limits, input, cuts), lines, "taken whole");
            lines
        });
    }
}

/// Fuzz target `response`: any bytes as responses.
pub fn response(data: &[u8]) {
    if let Some((limits, plan, mut random, input)) = split_plan(data) {
        let method = |shift: u8| match plan >> shift & 3 {
            0 => Method::Head,
            1 => Method::Connect,
            _ => Method::Get,
        };
        let methods = [method(0), method(2), method(4)];
        check_cuts(input.len(), &mut random, |cuts| {
            responses(limits, &methods, input, cuts)
        });
    }
}

/// The head before the chunked bodies of [`chunked`] in requests.
pub const CHUNKED_REQUEST: &[u8] =
    b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
/// The head before the chunked bodies of [`chunked`] in responses.
pub const CHUNKED_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Fuzz target `chunked`: any bytes as chunked coding, strict and lenient,
/// held against a plain decoder; and any bytes as data, coded and decoded.
pub fn chunked(data: &[u8]) {
    let Some((limits, _, mut random, input)) = split_plan(data) else {
        return;
    };
    let request = [CHUNKED_REQUEST, input].concat();
    check_cuts(request.len(), &mut random, |cuts| {
        requests(limits, &request, cuts)
    });
    let response = [CHUNKED_RESPONSE, input].concat();
    check_cuts(response.len(), &mut random, |cuts| {
        responses(limits, &[Method::Get], &response, cuts)
    });
    let generous = Limits {
        chunk_line_bytes_max: usize::MAX,
        ..UNBOUNDED
    };
    if let Some(body) = decode_plainly(input) {
        let lines = requests(generous, &request, &[]);
        if !body.is_empty() {
            assert_eq!(lines[1], format!("data {}", body.escape_ascii()));
        }
        assert!(
            lines.iter().any(|line| line.starts_with("end")),
            "{lines:?}"
        );
    }
    check_coding(&mut random, input, generous);
}

/// `input` coded in random chunks is `input` again when decoded.
fn check_coding(random: &mut Random, input: &[u8], limits: Limits) {
    let mut coded = CHUNKED_REQUEST.to_vec();
    for piece in chunks(input, &random_cuts(random, input.len())) {
        encode::chunk(&mut coded, piece);
    }
    encode::last_chunk(&mut coded, [Header::new("x", b"y")]).expect("a fine trailer");
    let lines = requests(limits, &coded, &random_cuts(random, coded.len()));
    let data = format!("data {}", input.escape_ascii());
    let body = if input.is_empty() {
        None
    } else {
        Some(data.as_str())
    };
    let expected: Vec<&str> = body.into_iter().chain(["end keep x=y", "idle"]).collect();
    assert_eq!(lines[1..], expected);
}

/// A second, slower opinion: the body, if `input` starts with one that is
/// coded without control bytes in extensions and without trailers.
fn decode_plainly(mut input: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = input.windows(2).position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(&input[..end]).ok()?;
        input = &input[end + 2..];
        let digits = line.split(';').next()?;
        if line.contains(|c: char| c.is_control()) || digits.starts_with('+') {
            return None;
        }
        let size = usize::from_str_radix(digits, 16).ok()?;
        let end = size.checked_add(2).filter(|end| *end <= input.len())?;
        if &input[size..end] != b"\r\n" {
            return None;
        }
        body.extend_from_slice(&input[..size]);
        input = &input[end..];
        if size == 0 {
            return Some(body);
        }
    }
}
