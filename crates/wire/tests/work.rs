//! The work for a head does not grow with the number of its pieces, counted in
//! bytes looked at, not in time; and memory stays where the limits say.

use prony_wire::{Error, Limit, Limits, Method, RequestEvent, RequestReader, ResponseReader};

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
