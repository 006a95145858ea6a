//! The result of `request()`, parsed: one request of HTTP/1.1, or several one after the other.

use prony_wire::Method;

/// One request in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundRequest {
    /// Its method.
    pub method: Method,
    /// Its bytes, head and body.
    pub length: usize,
    /// It asks for the connection to be closed.
    pub closes: bool,
}

/// The first request in `bytes`.
///
/// # Errors
/// Why there is none, in words.
pub fn first(bytes: &[u8]) -> Result<FoundRequest, &'static str> {
    let mut rest = bytes;
    let method = line(&mut rest).and_then(method_of);
    let (mut body, mut closes) = (0, false);
    loop {
        let line = line(&mut rest).ok_or("it has no empty line after its headers")?;
        if line.is_empty() {
            break;
        }
        match line[0].to_ascii_lowercase() {
            b'c' => {
                let (name, value) = field(line)?;
                if name.eq_ignore_ascii_case(b"content-length") {
                    let text = std::str::from_utf8(value).ok();
                    let length = text.and_then(|text| text.parse::<usize>().ok());
                    body = length.ok_or("its Content-Length is no number")?;
                }
                closes |= name.eq_ignore_ascii_case(b"connection")
                    && value.eq_ignore_ascii_case(b"close");
            }
            b't' if field(line)?.0.eq_ignore_ascii_case(b"transfer-encoding") => {
                return Err("it has a Transfer-Encoding: give the body with a Content-Length");
            }
            _ => _ = field(line)?,
        }
    }
    let method = method.ok_or("its first line is not `METHOD PATH HTTP/1.1`")?;
    let length = (bytes.len() - rest.len()).saturating_add(body);
    if length > bytes.len() {
        return Err("its body is shorter than its Content-Length");
    }
    Ok(FoundRequest {
        method,
        length,
        closes,
    })
}

/// Takes the next line, without its end.
fn line<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let end = memchr::memchr(b'\n', rest)?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

fn method_of(line: &[u8]) -> Option<Method> {
    let mut words = line.split(|&byte| byte == b' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_line =
        matches!(version, b"HTTP/1.1" | b"HTTP/1.0") && words.next().is_none() && !path.is_empty();
    let method = std::str::from_utf8(method).ok().filter(|_| is_line)?;
    Method::from_name(method)
}

fn field(line: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    let colon = memchr::memchr(b':', line).ok_or("a header line of it has no colon")?;
    Ok((&line[..colon], line[colon + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_requests_are_found_one_after_the_other() {
        let text = b"POST /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET / HTTP/1.0\r\nConnection: close\r\n\r\n";
        let one = first(text).unwrap();
        assert_eq!(
            (one.method, one.length, one.closes),
            (Method::Post, 41, false)
        );
        let two = first(&text[41..]).unwrap();
        assert_eq!(
            (two.method, two.length, two.closes),
            (Method::Get, text.len() - 41, true)
        );
    }

    #[test]
    fn what_is_no_whole_request_says_why() {
        for (text, why) in [
            ("", "empty line"),
            ("5", "empty line"),
            ("GET / HTTP/1.1\r\nA: b\r\n", "empty line"),
            ("GET / HTTP/1.1\r\n", "empty line"),
            ("GET /\r\n\r\n", "first line"),
            ("GET / x HTTP/1.1\r\n\r\n", "first line"),
            ("GET / HTTP/1.1\r\nabc\r\n\r\n", "colon"),
            ("GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "no number"),
            ("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", "shorter"),
            (
                "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "Transfer",
            ),
        ] {
            assert!(first(text.as_bytes()).unwrap_err().contains(why), "{text}");
        }
    }
}
