//! HPACK (RFC 7541) as far as a client needs it that keeps no table: requests are literals, encoded once, and of answers
//! the status and the length are read. The table of the server's side has no entry, as our settings say, so that an
//! index beyond the static one is an error. No I/O.

use prony_wire::http2::{BadBlock, FieldDecoder, put_string, take_integer, take_string};

use crate::literals::{AUTHORITY, LEFT_OUT, METHOD, PATH, indexed_name};
use crate::source::Http2Request;

/// Entries of the static table.
const STATIC: u64 = 61;
/// What the static table has from here on are statuses.
const STATUS_FIRST: u64 = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
const CONTENT_LENGTH: u64 = 28;
/// The schemes of a request as indexed fields.
pub const SCHEME_HTTP: u8 = 0x86;
/// Likewise, under TLS.
pub const SCHEME_HTTPS: u8 = 0x87;

/// What of an answer's head is read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AnswerHead {
    /// Its status; 0: none, as in trailers.
    pub status: u16,
    /// Its `content-length`.
    pub length: Option<u64>,
}

/// A request of HTTP/1.1, as bytes, in the fields of HTTP/2; its scheme is written by the connection.
pub fn of_http1(request: &[u8]) -> Http2Request {
    let head_end = request.windows(4).position(|four| four == b"\r\n\r\n");
    let head_end = head_end.unwrap_or(request.len());
    let head = String::from_utf8_lossy(&request[..head_end]);
    let body = request.get(head_end + 4..).unwrap_or_default();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or("GET"), first.next().unwrap_or("/"));
    let mut block = Vec::new();
    match method {
        "GET" => block.push(0x82),
        "POST" => block.push(0x83),
        other => indexed_name(&mut block, METHOD, other.as_bytes()),
    }
    match path {
        "/" => block.push(0x84),
        other => indexed_name(&mut block, PATH, other.as_bytes()),
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if name == "host" {
            indexed_name(&mut block, AUTHORITY, value.as_bytes());
        } else if !LEFT_OUT.contains(&name.as_str()) && !name.is_empty() {
            fields.push(0);
            put_string(&mut fields, name.as_bytes());
            put_string(&mut fields, value.as_bytes());
        }
    }
    block.extend(fields);
    Http2Request {
        block: block.into(),
        body: body.into(),
    }
}

/// The fields by which HTTP/2 sends a request of HTTP/1.1, in their order, as they are decoded.
pub fn request_fields(request: &[u8], is_secure: bool) -> Vec<(String, String)> {
    let mut block = vec![if is_secure { SCHEME_HTTPS } else { SCHEME_HTTP }];
    block.extend_from_slice(&of_http1(request).block);
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // It is a block of our own.
    let _ = FieldDecoder::default().decode(&block, usize::MAX, |name, value| {
        fields.push((text(name), text(value)));
    });
    fields
}

/// Reads the head of an answer.
pub fn read(block: &[u8]) -> Result<AnswerHead, BadBlock> {
    let mut head = AnswerHead::default();
    let mut rest = block;
    while let Some(&first) = rest.first() {
        if first & 0x80 != 0 {
            let index = take_integer(&mut rest, 7)?;
            if index == 0 || index > STATIC {
                return Err(BadBlock);
            }
            let status = index.checked_sub(STATUS_FIRST);
            let status = status.and_then(|place| STATUSES.get(place as usize));
            head.status = status.copied().unwrap_or(head.status);
            continue;
        }
        if first & 0xe0 == 0x20 {
            // The size of the table, which must be none.
            if take_integer(&mut rest, 5)? != 0 {
                return Err(BadBlock);
            }
            continue;
        }
        let bits = if first & 0xc0 == 0x40 { 6 } else { 4 };
        let index = take_integer(&mut rest, bits)?;
        let name = match index {
            0 => Some(take_string(&mut rest)?),
            index if index > STATIC => return Err(BadBlock),
            _ => None,
        };
        let value = take_string(&mut rest)?;
        let is_status = (STATUS_FIRST..STATUS_FIRST + STATUSES.len() as u64).contains(&index);
        let is_length = index == CONTENT_LENGTH || name == Some((b"content-length", false));
        if is_status {
            let status = digits(value).filter(|status| (100..1_000).contains(status));
            head.status = status.ok_or(BadBlock)? as u16;
        } else if is_length {
            head.length = Some(digits(value).ok_or(BadBlock)?);
        }
    }
    Ok(head)
}

/// A number of decimal digits. Of Huffman's code only theirs are known here: 0 to 2 have five bits, the others six.
fn digits((text, is_coded): (&[u8], bool)) -> Option<u64> {
    let add = |number: u64, digit: u64| number.checked_mul(10)?.checked_add(digit);
    if text.is_empty() {
        return None;
    }
    let mut number = 0_u64;
    if !is_coded {
        for byte in text {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
            number = add(number, u64::from(digit))?;
        }
        return Some(number);
    }
    let total = text.len() * 8;
    let bits = |at: usize, count: usize| {
        let bit = |at: usize| u64::from(text[at / 8] >> (7 - at % 8) & 1);
        (at..at + count).fold(0, |value, at| value << 1 | bit(at))
    };
    let mut at = 0;
    loop {
        let left = total - at;
        // Ones, less than a byte, pad the last byte.
        if left < 8 && bits(at, left) == (1 << left) - 1 {
            return Some(number);
        }
        let digit = match (left >= 5).then(|| bits(at, 5))? {
            five @ 0..=2 => {
                at += 5;
                five
            }
            _ => {
                let six = (left >= 6).then(|| bits(at, 6))?;
                at += 6;
                six.checked_sub(22)
                    .filter(|digit| (3..10).contains(digit))?
            }
        };
        number = add(number, digit)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_keeps_its_fields_in_order_and_leaves_out_what_is_of_http1() {
        let request = b"POST /a HTTP/1.1\r\nHost: b:1\r\nConnection: close\r\nX-Y: Zz\r\nContent-Length: 2\r\n\r\n{}";
        let Http2Request { block, body } = of_http1(request);
        let expected = [
            &b"\x83\x04\x02/a\x01\x03b:1"[..],
            b"\x00\x03x-y\x02Zz",
            b"\x00\x0econtent-length\x012",
        ]
        .concat();
        assert_eq!((&block[..], &body[..]), (&expected[..], &b"{}"[..]));
        assert_eq!(&of_http1(b"GET / HTTP/1.1\r\n\r\n").block[..], b"\x82\x84");
    }

    #[test]
    fn status_and_length_are_read_however_they_are_written() {
        let head = |status, length| Ok(AnswerHead { status, length });
        assert_eq!(read(b"\x88"), head(200, None));
        assert_eq!(read(b"\x20\x8d"), head(404, None));
        // :status 302 of RFC 7541, C.6.1, in Huffman's code; 503 as it is.
        assert_eq!(read(b"\x48\x82\x64\x02"), head(302, None));
        assert_eq!(read(b"\x08\x03503"), head(503, None));
        assert_eq!(read(b"\x88\x0f\x0d\x0213"), head(200, Some(13)));
        assert_eq!(
            read(b"\x88\x00\x0econtent-length\x0217"),
            head(200, Some(17))
        );
        // 307 of C.6.2.
        assert_eq!(read(b"\x48\x83\x64\x0e\xff"), head(307, None));
        assert_eq!(read(b""), head(0, None));
    }

    #[test]
    fn what_needs_a_table_or_is_cut_is_refused() {
        for wrong in [
            &b"\xbe"[..],
            b"\x80",
            b"\x3f\xe1\x1f",
            b"\x08\x0350",
            b"\x08\x03abc",
            b"\x08\x00",
            b"\x7f",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x00\x7f\xff\xff\xff\xff\xff\x7f",
        ] {
            assert_eq!(read(wrong), Err(BadBlock), "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&block);
        }
    }
}
