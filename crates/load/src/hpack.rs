//! HPACK (RFC 7541) as far as a client needs it that keeps no table: requests are literals, encoded once, and of answers
//! the status and the length are read, and the fields held to the rules. The table of the server's side has no entry, as our
//! settings say, so that an index beyond the static one is an error. No I/O.

use std::rc::Rc;

use prony_wire::http2::{FieldDecoder, FieldRules, FieldSection, put_string};

use crate::failure::ProtocolFault;
use crate::form::head_and_body;
use crate::literals::{AUTHORITY, LEFT_OUT, METHOD, PATH, indexed_name};

/// A longer head is read each time, so that a connection holds little.
const LAST_BYTES_MAX: usize = 1 << 10;
/// The schemes of a request as indexed fields.
pub const SCHEME_HTTP: u8 = 0x86;
/// Likewise, under TLS.
pub const SCHEME_HTTPS: u8 = 0x87;

/// A request as HTTP/2 sends it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Http2Request {
    /// Its fields but the scheme, encoded (RFC 7541) without use of a table that changes.
    pub block: Rc<[u8]>,
    /// Its body.
    pub body: Rc<[u8]>,
}

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
    let (head, body) = head_and_body(request);
    let head = String::from_utf8_lossy(head);
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

/// Takes a field of an answer: its status so far, the name and the value.
pub type TakeField<'a> = &'a mut dyn FnMut(u16, &[u8], &[u8]);

/// Reads the fields of answers on one connection, whose server was allowed no table: a block means the same wherever it stands.
#[derive(Debug)]
pub struct HeadReader {
    decoder: FieldDecoder,
    /// The last head that was as it must be. The next one is mostly the same, to the byte, and is then not read again.
    last: Vec<u8>,
    last_head: AnswerHead,
}

impl Default for HeadReader {
    fn default() -> HeadReader {
        HeadReader {
            decoder: FieldDecoder::with_table(0),
            last: Vec::new(),
            last_head: AnswerHead::default(),
        }
    }
}

impl HeadReader {
    /// Reads the head of an answer. Where there is a `field`, it is called with the status and each field.
    ///
    /// # Errors
    /// [`ProtocolFault::Block`], or the rule that a field breaks.
    #[inline]
    pub fn head(
        &mut self,
        block: &[u8],
        field: Option<TakeField<'_>>,
    ) -> Result<AnswerHead, ProtocolFault> {
        let is_kept = field.is_none();
        if is_kept && block == self.last && !block.is_empty() {
            return Ok(self.last_head);
        }
        let head = self.read(FieldSection::Answer, block, field)?;
        if head.status == 0 {
            return Err(ProtocolFault::Rule("an answer has no :status"));
        }
        if is_kept && block.len() <= LAST_BYTES_MAX {
            self.last.clear();
            self.last.extend_from_slice(block);
            self.last_head = head;
        }
        Ok(head)
    }

    /// Reads trailers.
    ///
    /// # Errors
    /// As of [`head`](HeadReader::head).
    pub fn trailers(&mut self, block: &[u8]) -> Result<(), ProtocolFault> {
        self.read(FieldSection::Trailers, block, None).map(drop)
    }

    fn read(
        &mut self,
        section: FieldSection,
        block: &[u8],
        mut field: Option<TakeField<'_>>,
    ) -> Result<AnswerHead, ProtocolFault> {
        let mut rules = FieldRules::new(section);
        let mut read = Ok(AnswerHead::default());
        // A block has a limit of its own, so that the list needs none.
        let decoded = self.decoder.decode(block, usize::MAX, |name, value| {
            let Ok(head) = &mut read else { return };
            let checked = rules.check(name, value).map_err(ProtocolFault::Fields);
            match checked.and_then(|()| head.take(name, value)) {
                Ok(()) => {
                    if let Some(field) = &mut field {
                        field(head.status, name, value);
                    }
                }
                Err(fault) => read = Err(fault),
            }
        });
        decoded.map_err(|_| ProtocolFault::Block)?;
        read
    }
}

impl AnswerHead {
    /// Takes over what a field says.
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), ProtocolFault> {
        match name {
            b":status" => {
                let status = number(value).filter(|_| value.len() == 3);
                let status = status.filter(|status| *status >= 100);
                let wrong = ProtocolFault::Rule("a :status is not three digits from 100 on");
                self.status = status.ok_or(wrong)? as u16;
            }
            b"content-length" => {
                let length = number(value);
                if length.is_none() || self.length.is_some_and(|before| Some(before) != length) {
                    let why = "a content-length is no number, or there are several that differ";
                    return Err(ProtocolFault::Rule(why));
                }
                self.length = length;
            }
            _ => {}
        }
        Ok(())
    }
}

/// A number of decimal digits.
fn number(text: &[u8]) -> Option<u64> {
    let add = |number: u64, byte: &u8| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    };
    let digits = Some(text).filter(|text| !text.is_empty())?;
    digits.iter().try_fold(0, add)
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

    fn read(block: &[u8]) -> Result<AnswerHead, ProtocolFault> {
        let mut reader = HeadReader::default();
        let head = reader.head(block, None);
        // Once more, as it comes on a connection.
        assert_eq!(reader.head(block, None), head);
        assert_eq!(reader.head(block, Some(&mut |_, _, _| {})), head);
        head
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
    }

    #[test]
    fn a_head_is_taken_for_the_last_one_only_where_it_is_the_same() {
        let mut reader = HeadReader::default();
        for (block, status) in [(&b"\x88"[..], 200), (b"\x88", 200), (b"\x8d", 404)] {
            assert_eq!(reader.head(block, None).map(|head| head.status), Ok(status));
        }
        assert!(reader.head(b"\x8d\x8d", None).is_err() && reader.head(b"", None).is_err());
        assert!(reader.trailers(b"\x8d").is_err());
        // One that broke a rule is none.
        assert!(reader.head(b"\x8d\x8d", None).is_err());
        assert_eq!(reader.trailers(b"\x00\x01a\x01b"), Ok(()));
    }

    #[test]
    fn what_needs_a_table_or_is_cut_is_refused() {
        for wrong in [
            &b"\xbe"[..],
            b"\x80",
            b"\x3f\xe1\x1f",
            b"\x08\x0350",
            b"\x7f",
            b"\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x00\x7f\xff\xff\xff\xff\xff\x7f",
        ] {
            assert_eq!(read(wrong), Err(ProtocolFault::Block), "{wrong:x?}");
        }
        for wrong in [
            &b""[..],
            b"\x08\x0250",
            b"\x08\x04\x30200",
            b"\x08\x03abc",
            b"\x08\x03099",
            b"\x08\x00",
            b"\x88\x0f\x0d\x00",
            b"\x88\x0f\x0d\x02-1",
            b"\x88\x0f\x0d\x011\x0f\x0d\x012",
        ] {
            assert!(
                matches!(read(wrong), Err(ProtocolFault::Rule(_))),
                "{wrong:x?}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(block in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = HeadReader::default();
            let _ = reader.head(&block, None);
            let _ = reader.trailers(&block);
        }
    }
}
