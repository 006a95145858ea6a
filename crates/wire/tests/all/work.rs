//! The work for a head does not grow with the number of its pieces, counted in
//! bytes looked at, not in time; and memory stays where the limits say.

use prony_wire::{
    EndOfInput, Error, Limit, Limits, Method, RequestEvent, RequestReader, ResponseEvent,
    ResponseReader,
};

/// A head of `bytes` bytes in lines of about `line` bytes.
fn head(bytes: usize, line: usize) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    while head.len() + line + 8 < bytes {
        head.extend_from_slice(format!("a: {}\r\n", "x".repeat(line - 5)).as_bytes());
    }
    let left = bytes - head.len() - 7;
    head.extend_from_slice(format!("b: {}\r\n\r\n", "y".repeat(left)).as_bytes());
    assert_eq!(head.len(), bytes);
    head
}

/// Bytes looked at for `input` in pieces of `piece` bytes.
fn examined(input: &[u8], piece: usize) -> u64 {
    let mut reader = RequestReader::new(Limits::for_requests());
    let mut heads = 0;
    for mut rest in input.chunks(piece) {
        loop {
            let (used, event) = reader.next(rest).expect("a fine head");
            rest = &rest[used..];
            match event {
                Some(RequestEvent::Head(_)) => heads += 1,
                Some(_) => {}
                None => break,
            }
        }
    }
    assert!(heads > 0);
    reader.bytes_examined()
}

#[test]
fn a_whole_head_is_searched_once() {
    let head = head(16 * 1024, 200);
    assert_eq!(examined(&head, head.len()), head.len() as u64);
}

#[test]
fn a_head_byte_by_byte_is_searched_and_copied_once() {
    for line in [20, 200, 16_000] {
        let head = head(if line == 20 { 1500 } else { 16 * 1024 }, line);
        let bytes = head.len() as u64;
        assert!(examined(&head, 1) <= 2 * bytes, "{}", examined(&head, 1));
    }
}

#[test]
fn pieces_of_any_size_cost_three_looks_a_byte_at_most() {
    let pipelined = head(150, 40).repeat(200);
    for piece in 1..400 {
        assert!(
            examined(&pipelined, piece) <= 3 * pipelined.len() as u64,
            "{piece}"
        );
    }
}

#[test]
fn the_limit_is_met_at_its_byte_and_the_fault_stays() {
    let limits = Limits {
        head_bytes_max: 100,
        ..Limits::for_requests()
    };
    let mut reader = RequestReader::new(limits);
    let mut fed = 0;
    let error = b"GET / HTTP/1.1\r\nA: "
        .iter()
        .chain(std::iter::repeat(&b'x'))
        .find_map(|byte| {
            fed += 1;
            reader.next(&[*byte]).err()
        });
    let limit = Error::Limit {
        limit: Limit::Head,
        max: 100,
    };
    assert_eq!((error, fed), (Some(limit), 100));
    assert_eq!(reader.next(b"GET / HTTP/1.0\r\n\r\n"), Err(limit));
    assert_eq!(reader.end_of_input(), Err(limit));
}

/// A response's head with lines enough for this many bytes, every third one folded.
fn long_response(lines: usize, line_bytes: usize) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n".to_vec();
    for place in 0..lines {
        let value = "v".repeat(line_bytes - 10);
        bytes.extend_from_slice(format!("x-{place:04}: {value}\r\n").as_bytes());
        if place % 3 == 2 {
            bytes.extend_from_slice(b"  folded\r\n");
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

#[test]
fn answers_with_long_heads_are_read_as_curl_reads_them() {
    for (lines, line_bytes) in [(101, 40), (129, 40), (4_900, 40), (30, 9_000), (280, 1_000)] {
        let bytes = long_response(lines, line_bytes);
        for piece in [bytes.len(), 1_000, 16_384] {
            let mut reader = ResponseReader::new(Limits::for_responses());
            reader.expect(&Method::Get).expect("room for one");
            let (mut found, mut ends) = (0, 0);
            for mut rest in bytes.chunks(piece) {
                while let (used, Some(event)) = reader.next(rest).expect("a fine head") {
                    rest = &rest[used..];
                    match event {
                        ResponseEvent::Head(head) => {
                            found = head.headers.len();
                            let last = head.headers.iter().nth(3).map(|line| line.value);
                            assert!(last.is_some_and(|value| value.ends_with(b"v folded")));
                        }
                        _ => ends += 1,
                    }
                    if rest.is_empty() && ends > 0 {
                        break;
                    }
                }
            }
            assert_eq!((found, ends), (lines + 1, 1), "{lines} in {piece}");
            assert!(reader.bytes_examined() <= 3 * bytes.len() as u64);
        }
    }
}

#[test]
fn an_answers_limits_are_met_and_named() {
    let refused = |bytes: &[u8]| {
        let mut reader = ResponseReader::new(Limits::for_responses());
        reader.expect(&Method::Get).expect("room for one");
        let mut rest = bytes;
        loop {
            match reader.next(rest) {
                Ok((used, Some(_))) => rest = &rest[used..],
                other => return other.map(|_| "taken").map_err(|error| error.to_string()),
            }
        }
    };
    let interim = |count: usize| b"HTTP/1.1 103 X\r\n\r\n".repeat(count);
    assert_eq!(refused(&interim(1_000)), Ok("taken"));
    for (bytes, why) in [
        (
            long_response(5_000, 40),
            "there are more header lines than headers_max allows (5000)",
        ),
        (
            long_response(310, 1_000),
            "the head has more bytes than head_bytes_max allows (307200)",
        ),
        (
            interim(1_001),
            "more interim responses came than interim_responses_max allows (1000)",
        ),
        (
            [
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n".to_vec(),
                b"a: b\r\n".repeat(129),
                b"\r\n".to_vec(),
            ]
            .concat(),
            "there are more header lines than headers_max allows (128)",
        ),
    ] {
        assert_eq!(refused(&bytes), Err(why.to_owned()));
    }
}

#[test]
fn a_body_thrown_away_by_the_kernel_counts_as_read() {
    for head in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n",
    ] {
        let mut reader = ResponseReader::new(Limits::for_responses());
        reader.expect(&Method::Get).expect("room for one");
        let mut rest = head;
        while let (used, Some(_)) = reader.next(rest).expect("a fine head") {
            rest = &rest[used..];
        }
        assert_eq!(reader.plain_bytes_left(), 1000);
        reader.skip(600);
        assert_eq!(reader.plain_bytes_left(), 400);
        reader.skip(400);
        assert_eq!(reader.plain_bytes_left(), 0);
        let (used, _) = reader.next(b"\r\n0\r\n\r\n").unwrap_or((0, None));
        assert_eq!(used, if head.ends_with(b"e8\r\n") { 7 } else { 0 });
    }
}

/// The fault of a request under the limits that a server has by default, if there is one.
fn refusal(request: &str) -> Option<Error> {
    let mut reader = RequestReader::new(Limits::for_requests());
    let mut rest = request.as_bytes();
    loop {
        match reader.next(rest) {
            Err(error) => return Some(error),
            Ok((_, None)) => return None,
            Ok((used, Some(_))) => rest = &rest[used..],
        }
    }
}

#[test]
fn a_server_takes_by_default_what_its_limits_say_and_no_byte_more() {
    let head = |bytes| String::from_utf8(head(bytes, 200)).expect("ASCII");
    let target = |bytes: usize| format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(bytes - 1));
    let chunked = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let trailers = |bytes: usize| format!("{chunked}0\r\na: {}\r\n\r\n", "b".repeat(bytes - 7));
    let line = |bytes: usize| format!("{chunked}0;{}\r\n\r\n", "c".repeat(bytes - 2));
    let lines = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "d:\r\n".repeat(count));
    let empty = |count: usize| format!("{}GET / HTTP/1.0\r\n\r\n", "\r\n".repeat(count));
    for (fits, too_much, limit, max) in [
        (head(16_384), head(16_385), Limit::Head, 16_384),
        (target(8_192), target(8_193), Limit::Target, 8_192),
        (trailers(4_096), trailers(4_097), Limit::Trailer, 4_096),
        (line(256), line(257), Limit::ChunkLine, 256),
        (lines(100), lines(101), Limit::Headers, 100),
        (empty(4), empty(5), Limit::EmptyLines, 4),
    ] {
        assert_eq!(refusal(&fits), None, "{limit:?}");
        assert_eq!(refusal(&too_much), Some(Error::Limit { limit, max }));
    }
}

#[test]
fn a_client_takes_a_body_of_any_length() {
    let mut reader = ResponseReader::new(Limits::for_responses());
    reader.expect(&Method::Get).expect("room for one");
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    let (_, event) = reader.next(answer.as_bytes()).expect("a fine head");
    assert!(matches!(event, Some(ResponseEvent::Head(_))));
    assert_eq!(reader.plain_bytes_left(), u64::MAX);
}

/// Whether a stream may end after its first event.
fn may_end(request: &[u8]) -> Result<(), Error> {
    let mut reader = RequestReader::new(Limits::for_requests());
    assert!(reader.next(request).expect("a fine head").1.is_some());
    reader.end_of_input()
}

#[test]
fn a_stream_may_end_after_a_head_that_no_body_follows() {
    assert_eq!(may_end(b"GET / HTTP/1.0\r\n\r\n"), Ok(()));
    let with_body = b"PUT / HTTP/1.0\r\nContent-Length: 1\r\n\r\n";
    assert_eq!(may_end(with_body), Err(Error::TruncatedBody));
}

#[test]
fn an_answer_without_a_body_is_whole_after_its_head() {
    for (length, end) in [(0, Ok(true)), (1, Err(Error::TruncatedBody))] {
        let mut reader = ResponseReader::new(Limits::for_responses());
        reader.expect(&Method::Get).expect("room for one");
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        assert!(
            reader
                .next(answer.as_bytes())
                .expect("a fine head")
                .1
                .is_some()
        );
        let ended = reader.end_of_input();
        let is_idle = ended.map(|end| matches!(end, EndOfInput::Idle { unanswered: 0 }));
        assert_eq!(is_idle, end);
    }
}
