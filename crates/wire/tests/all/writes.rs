//! What the encoder writes, and what it refuses to.

use prony_wire::encode::{self, EncodeError};
use prony_wire::{DateCache, Framing, Header, Method, Version};

type Head = (Version, u16, Option<bool>, Framing);

/// A response head's lines after the first, or the fault.
fn response((version, status, keep_alive, framing): Head) -> Result<String, EncodeError> {
    let mut out = b"kept".to_vec();
    let head = encode::response(&mut out, version, status);
    let head = match keep_alive {
        Some(keep_alive) => head.keep_alive(keep_alive),
        None => head,
    };
    let finished = head.finish(framing);
    let text = String::from_utf8(out).expect("ASCII");
    match finished {
        Ok(()) => Ok(text["kept".len()..].replace("\r\n", "|")),
        Err(error) => {
            assert_eq!(text, "kept", "what was written is taken back");
            Err(error)
        }
    }
}

#[rustfmt::skip]
#[test]
fn framing_and_connection_lines() {
    use Framing::{Chunked, Length, None as Nothing, UntilClose};
    use Version::{Http10, Http11};
    let rows: &[(Head, Result<&str, EncodeError>)] = &[
        ((Http11, 200, None, Length(0)), Ok("HTTP/1.1 200 OK|content-length: 0||")),
        ((Http11, 200, Some(true), Length(u64::MAX)), Ok("HTTP/1.1 200 OK|content-length: 18446744073709551615||")),
        ((Http11, 200, Some(false), Length(1)), Ok("HTTP/1.1 200 OK|connection: close|content-length: 1||")),
        ((Http10, 200, Some(true), Length(1)), Ok("HTTP/1.0 200 OK|connection: keep-alive|content-length: 1||")),
        ((Http10, 200, Some(false), Length(1)), Ok("HTTP/1.0 200 OK|content-length: 1||")),
        ((Http11, 404, None, Chunked), Ok("HTTP/1.1 404 Not Found|transfer-encoding: chunked||")),
        ((Http11, 200, Some(true), UntilClose), Ok("HTTP/1.1 200 OK|connection: close||")),
        ((Http10, 200, Some(true), UntilClose), Ok("HTTP/1.0 200 OK||")),
        ((Http11, 204, None, Nothing), Ok("HTTP/1.1 204 No Content||")),
        ((Http11, 304, None, Length(9)), Ok("HTTP/1.1 304 Not Modified|content-length: 9||")),
        ((Http11, 999, None, Nothing), Ok("HTTP/1.1 999 ||")),
        ((Http10, 200, None, Chunked), Err(EncodeError::BadFraming)),
        ((Http11, 204, None, Length(0)), Err(EncodeError::BadFraming)),
        ((Http11, 100, None, Chunked), Err(EncodeError::BadFraming)),
        ((Http11, 304, None, UntilClose), Err(EncodeError::BadFraming)),
        ((Http11, 99, None, Nothing), Err(EncodeError::BadStatus)),
        ((Http11, 1000, None, Nothing), Err(EncodeError::BadStatus)),
    ];
    for (head, expected) in rows {
        assert_eq!(response(*head).as_deref(), expected.as_ref().copied(), "{head:?}");
    }
}

#[test]
fn a_reason_is_written_as_given_and_cannot_end_its_line() {
    let line = |reason: &[u8]| {
        let mut out = Vec::new();
        encode::response(&mut out, Version::Http11, (404, reason)).finish(Framing::None)?;
        Ok::<_, EncodeError>(out)
    };
    for (reason, expected) in [
        (
            &b"Gone Fishing"[..],
            &b"HTTP/1.1 404 Gone Fishing\r\n\r\n"[..],
        ),
        (b"", b"HTTP/1.1 404 \r\n\r\n"),
        (b"caf\xe9\t", b"HTTP/1.1 404 caf\xe9\t\r\n\r\n"),
    ] {
        assert_eq!(line(reason).as_deref(), Ok(expected));
    }
    for reason in [&b"a\r\nb: c"[..], b"a\n", b"\r", b"\0", b"\x7f"] {
        assert_eq!(line(reason), Err(EncodeError::BadReason), "{reason:?}");
    }
}

/// The fault of a request with these lines.
fn request(target: &str, framing: Framing, lines: &[(&str, &[u8])]) -> Result<(), EncodeError> {
    let mut out = Vec::new();
    let lines = lines.iter().map(|(name, value)| Header::new(name, value));
    let finished = encode::request(&mut out, &Method::Post, target, Version::Http11)
        .headers(lines)
        .finish(framing);
    assert_eq!(out.is_empty(), finished.is_err());
    finished
}

#[rustfmt::skip]
#[test]
fn requests_that_are_refused() {
    const NONE: Framing = Framing::None;
    let host = ("host", &b"a"[..]);
    assert_eq!(request("/", NONE, &[host]), Ok(()));
    assert_eq!(request("/", NONE, &[]), Err(EncodeError::MissingHost));
    assert_eq!(request("/", NONE, &[host, ("HOST", b"b")]), Err(EncodeError::RepeatedHost));
    assert_eq!(request("", NONE, &[host]), Err(EncodeError::BadTarget));
    assert_eq!(request("/a b", NONE, &[host]), Err(EncodeError::BadTarget));
    assert_eq!(request("/#a", NONE, &[host]), Err(EncodeError::BadTarget));
    assert_eq!(request("/\r\nA: b", NONE, &[host]), Err(EncodeError::BadTarget));
    assert_eq!(request("/", NONE, &[host, ("a b", b"c")]), Err(EncodeError::BadHeaderName));
    assert_eq!(request("/", NONE, &[host, ("", b"c")]), Err(EncodeError::BadHeaderName));
    assert_eq!(request("/", NONE, &[host, ("a\r\nb", b"c")]), Err(EncodeError::BadHeaderName));
    assert_eq!(request("/", NONE, &[host, ("a", b"b\r\nc: d")]), Err(EncodeError::BadHeaderValue));
    assert_eq!(request("/", NONE, &[host, ("a", b"b\n")]), Err(EncodeError::BadHeaderValue));
    assert_eq!(request("/", NONE, &[host, ("a", b"\0")]), Err(EncodeError::BadHeaderValue));
    assert_eq!(request("/", NONE, &[host, ("Content-Length", b"1")]), Err(EncodeError::FramingHeader));
    assert_eq!(request("/", NONE, &[host, ("transfer-encoding", b"x")]), Err(EncodeError::FramingHeader));
    assert_eq!(request("/", Framing::UntilClose, &[host]), Err(EncodeError::BadFraming));
}

#[test]
fn a_head_dropped_unfinished_leaves_nothing() {
    let mut out = b"kept".to_vec();
    drop(encode::response(&mut out, Version::Http11, 200).header("a", "b"));
    assert_eq!(out, b"kept");
}

#[test]
fn chunks_and_trailers() {
    let mut out = Vec::new();
    encode::chunk(&mut out, b"");
    encode::chunk(&mut out, &[b'x'; 0x1a]);
    let refused = encode::last_chunk(&mut out, [Header::new("a", b"b\r\n")]);
    assert_eq!(refused, Err(EncodeError::BadHeaderValue));
    encode::last_chunk(&mut out, [Header::new("a", b"b")]).expect("a fine trailer");
    assert_eq!(
        out,
        b"1a\r\nxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n0\r\na: b\r\n\r\n"
    );
}

#[test]
fn dates() {
    let mut dates = DateCache::default();
    assert_eq!(dates.at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(dates.at(951_827_696), "Tue, 29 Feb 2000 12:34:56 GMT");
    assert_eq!(dates.at(951_827_696), "Tue, 29 Feb 2000 12:34:56 GMT");
    assert_eq!(dates.at(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(dates.at(253_402_300_799), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(dates.at(u64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
}
