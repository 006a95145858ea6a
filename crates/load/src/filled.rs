//! A request whose fields are filled in anew each time it is sent: compiled once, then written into the connection's buffer.
//!
//! Values are bytes one after the other, each in the form that its place needs. Filling in and writing allocate nothing once
//! the buffers have their size. Not for: where values come from (`mixed`).

use prony_wire::http2::{put_integer, put_string};

use crate::fields::{Field, FieldError, TemplateSpan, spans};
use crate::literals::{AUTHORITY, LEFT_OUT, METHOD, PATH};

/// Where a value stands, which decides what of it is escaped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ValuePlace {
    /// In the path: what cannot stand in a request line is written as `%XX`.
    Path,
    /// In a header's value: control characters are written as `%XX`.
    Header,
    /// In the body, as it is.
    Body,
    /// In a form: what may not stand in one is written as `%XX`.
    Form,
    /// In a string of JSON: with JSON's escapes.
    Json,
}

/// A part of what is sent.
#[derive(Clone, Debug, Eq, PartialEq)]
enum RequestPart {
    Bytes(Box<[u8]>),
    /// The value of this slot.
    Value(usize),
    /// A length in decimal digits.
    Length(Lengths),
    /// The digits of a length as a string of HPACK.
    LengthString(Lengths),
    /// A length as HPACK has it before a string.
    StringLength(Lengths),
}

/// A length: so many bytes and those of the values of some slots.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct Lengths {
    fixed: usize,
    slots: Vec<usize>,
}

/// The values of a request, by slot.
#[derive(Clone, Debug, Default)]
pub struct FieldValues {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl FieldValues {
    /// Forgets all values.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds the next slot's value, which `write` appends.
    pub fn add(&mut self, place: ValuePlace, write: impl FnOnce(&mut Vec<u8>)) {
        let from = self.bytes.len();
        write(&mut self.bytes);
        if place != ValuePlace::Body {
            escape(&mut self.bytes, from, place);
        }
        self.ends.push(self.bytes.len());
    }

    /// The value of a slot; empty where there is none.
    pub fn of(&self, slot: usize) -> &[u8] {
        let from = match slot {
            0 => 0,
            _ => self.ends.get(slot - 1).copied().unwrap_or_default(),
        };
        let to = self.ends.get(slot).copied().unwrap_or(from);
        &self.bytes[from..to]
    }
}

/// Writes what may not stand in `place` as `%XX`, in the bytes behind `from`.
fn escape(bytes: &mut Vec<u8>, from: usize, place: ValuePlace) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let is_kept = |byte: &u8| match place {
        ValuePlace::Path => byte.is_ascii_graphic(),
        ValuePlace::Header => !byte.is_ascii_control(),
        ValuePlace::Body => true,
        ValuePlace::Form => byte.is_ascii_alphanumeric() || b"*-._".contains(byte),
        ValuePlace::Json => !byte.is_ascii_control() && !b"\"\\".contains(byte),
    };
    if bytes[from..].iter().all(is_kept) {
        return;
    }
    let value = bytes.split_off(from);
    for byte in value {
        let digits = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        match place {
            _ if is_kept(&byte) => bytes.push(byte),
            ValuePlace::Json if byte.is_ascii_control() => {
                bytes.extend_from_slice(b"\\u00");
                bytes.extend_from_slice(&digits);
            }
            ValuePlace::Json => bytes.extend_from_slice(&[b'\\', byte]),
            _ => bytes.extend_from_slice(&[b'%', digits[0], digits[1]]),
        }
    }
}

/// A request with fields, and their values of this time.
#[derive(Clone, Debug, Default)]
pub struct FilledRequest {
    slots: Vec<(Field, ValuePlace)>,
    http1: Vec<RequestPart>,
    block: Vec<RequestPart>,
    body: Vec<RequestPart>,
    values: FieldValues,
}

impl FilledRequest {
    /// A request that is one value as a whole, for HTTP/1.1.
    pub fn whole() -> FilledRequest {
        FilledRequest {
            slots: vec![(Field::Column(0), ValuePlace::Body)],
            http1: vec![RequestPart::Value(0)],
            ..FilledRequest::default()
        }
    }

    /// Compiles a request of HTTP/1.1, as bytes with fields in them.
    ///
    /// # Errors
    /// A name in braces that is no field.
    pub fn compile(request: &[u8], columns: &[String]) -> Result<FilledRequest, FieldError> {
        FilledRequest::compile_as(request, columns, ValuePlace::Body, false)
    }

    /// The same for a step of a user: with its cookies, and with values in the body as that place needs them.
    ///
    /// # Errors
    /// A name in braces that is no field.
    pub fn compile_step(
        request: &[u8],
        columns: &[String],
        body: ValuePlace,
    ) -> Result<FilledRequest, FieldError> {
        FilledRequest::compile_as(request, columns, body, true)
    }

    fn compile_as(
        request: &[u8],
        columns: &[String],
        place: ValuePlace,
        has_cookies: bool,
    ) -> Result<FilledRequest, FieldError> {
        let head_end = request.windows(4).position(|four| four == b"\r\n\r\n");
        let head_end = head_end.unwrap_or(request.len());
        let body = request.get(head_end + 4..).unwrap_or_default();
        let mut compiled = FilledRequest::default();
        let body = compiled.parts(body, columns, place)?;
        let length = length_of(&body);
        compiled.compile_head(&request[..head_end], columns, &length)?;
        if has_cookies {
            let slot = compiled.slot(Field::Cookies, ValuePlace::Body);
            compiled.http1.push(RequestPart::Value(slot));
        }
        compiled.http1.push(text(b"\r\n"));
        compiled.http1.extend(body.iter().cloned());
        compiled.http1 = joined(std::mem::take(&mut compiled.http1));
        compiled.block = joined(std::mem::take(&mut compiled.block));
        compiled.body = body;
        Ok(compiled)
    }

    fn compile_head(
        &mut self,
        head: &[u8],
        columns: &[String],
        body: &Lengths,
    ) -> Result<(), FieldError> {
        let mut lines = head.split(|&byte| byte == b'\n').map(|line| {
            let end = line.strip_suffix(b"\r");
            end.unwrap_or(line)
        });
        let first = lines.next().unwrap_or_default();
        self.compile_line(first, columns)?;
        let mut fields = Vec::new();
        for line in lines {
            let colon = line.iter().position(|&byte| byte == b':');
            let (name, value) = line.split_at(colon.unwrap_or(line.len()));
            let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
            self.http1.push(text(name));
            self.http1.push(text(b": "));
            let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
            if lower == "content-length" {
                self.http1.push(RequestPart::Length(body.clone()));
                fields.push(name_of(&lower));
                fields.push(RequestPart::LengthString(body.clone()));
            } else {
                let value = self.parts(value, columns, ValuePlace::Header)?;
                self.http1.extend(value.iter().cloned());
                if lower == "host" {
                    indexed(&mut self.block, AUTHORITY, value);
                } else if !LEFT_OUT.contains(&lower.as_str()) && !lower.is_empty() {
                    fields.push(name_of(&lower));
                    string(&mut fields, value);
                }
            }
            self.http1.push(text(b"\r\n"));
        }
        self.block.append(&mut fields);
        Ok(())
    }

    /// The request line, and the fields of HTTP/2 that stand for it.
    fn compile_line(&mut self, line: &[u8], columns: &[String]) -> Result<(), FieldError> {
        let mut words = line.split(|&byte| byte == b' ');
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or(b"/");
        let version = words.next().unwrap_or(b"HTTP/1.1");
        let path = self.parts(path, columns, ValuePlace::Path)?;
        self.http1 = vec![text(method), text(b" ")];
        self.http1.extend(path.iter().cloned());
        self.http1
            .extend([text(b" "), text(version), text(b"\r\n")]);
        match method {
            b"GET" => self.block.push(text(&[0x82])),
            b"POST" => self.block.push(text(&[0x83])),
            other => indexed(&mut self.block, METHOD, vec![text(other)]),
        }
        indexed(&mut self.block, PATH, path);
        Ok(())
    }

    /// The parts of a text; its fields get slots.
    fn parts(
        &mut self,
        of: &[u8],
        columns: &[String],
        place: ValuePlace,
    ) -> Result<Vec<RequestPart>, FieldError> {
        let mut parts = Vec::new();
        for span in spans(of, columns)? {
            parts.push(match span {
                TemplateSpan::Text(bytes) => text(bytes),
                TemplateSpan::Field(field) => RequestPart::Value(self.slot(field, place)),
            });
        }
        Ok(parts)
    }

    fn slot(&mut self, field: Field, place: ValuePlace) -> usize {
        // Only what a file holds has to be escaped.
        let place = match field {
            Field::Column(_) => place,
            _ => ValuePlace::Body,
        };
        let known = self.slots.iter().position(|slot| *slot == (field, place));
        known.unwrap_or_else(|| {
            self.slots.push((field, place));
            self.slots.len() - 1
        })
    }

    /// Whether a value comes from the data file.
    pub fn needs_row(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|(field, _)| matches!(field, Field::Column(_)))
    }

    /// The places of the columns whose values it needs.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().filter_map(|(field, _)| match field {
            Field::Column(place) => Some(*place),
            _ => None,
        })
    }

    /// Forgets the values, and asks `write` to append that of each field.
    pub fn fill(&mut self, mut write: impl FnMut(Field, &mut Vec<u8>)) {
        self.values.clear();
        for &(field, place) in &self.slots {
            self.values.add(place, |out| write(field, out));
        }
    }

    /// Appends the request of HTTP/1.1.
    pub fn write_http1(&self, out: &mut Vec<u8>) {
        write(&self.http1, &self.values, out);
    }

    /// Appends the fields of the request for HTTP/2 but the scheme.
    pub fn write_block(&self, out: &mut Vec<u8>) {
        write(&self.block, &self.values, out);
    }

    /// Appends the body.
    pub fn write_body(&self, out: &mut Vec<u8>) {
        write(&self.body, &self.values, out);
    }
}

fn text(bytes: &[u8]) -> RequestPart {
    RequestPart::Bytes(bytes.into())
}

/// A literal of HPACK that enters no table, with a name of its own.
fn name_of(name: &str) -> RequestPart {
    let mut bytes = vec![0];
    put_string(&mut bytes, name.as_bytes());
    RequestPart::Bytes(bytes.into())
}

/// The same with a name of the static table.
fn indexed(block: &mut Vec<RequestPart>, name: u64, value: Vec<RequestPart>) {
    let mut bytes = Vec::new();
    put_integer(&mut bytes, 0, 4, name);
    block.push(RequestPart::Bytes(bytes.into()));
    string(block, value);
}

fn string(block: &mut Vec<RequestPart>, value: Vec<RequestPart>) {
    block.push(RequestPart::StringLength(length_of(&value)));
    block.extend(value);
}

fn length_of(parts: &[RequestPart]) -> Lengths {
    let mut lengths = Lengths::default();
    for part in parts {
        match part {
            RequestPart::Bytes(bytes) => lengths.fixed += bytes.len(),
            RequestPart::Value(slot) => lengths.slots.push(*slot),
            RequestPart::Length(_)
            | RequestPart::LengthString(_)
            | RequestPart::StringLength(_) => {}
        }
    }
    lengths
}

/// The same with fewer parts: what does not change is one text.
fn joined(parts: Vec<RequestPart>) -> Vec<RequestPart> {
    let mut out: Vec<RequestPart> = Vec::new();
    let mut fixed = Vec::new();
    let none = FieldValues::default();
    for part in parts {
        let changes = match &part {
            RequestPart::Value(_) => true,
            RequestPart::Bytes(_) => false,
            RequestPart::Length(of)
            | RequestPart::LengthString(of)
            | RequestPart::StringLength(of) => !of.slots.is_empty(),
        };
        if changes {
            if !fixed.is_empty() {
                out.push(RequestPart::Bytes(std::mem::take(&mut fixed).into()));
            }
            out.push(part);
        } else {
            write(&[part], &none, &mut fixed);
        }
    }
    if !fixed.is_empty() {
        out.push(RequestPart::Bytes(fixed.into()));
    }
    out
}

fn write(parts: &[RequestPart], values: &FieldValues, out: &mut Vec<u8>) {
    let of = |lengths: &Lengths| {
        let slots = lengths.slots.iter();
        lengths.fixed + slots.map(|&slot| values.of(slot).len()).sum::<usize>()
    };
    for part in parts {
        match part {
            RequestPart::Bytes(bytes) => out.extend_from_slice(bytes),
            RequestPart::Value(slot) => out.extend_from_slice(values.of(*slot)),
            RequestPart::Length(lengths) => decimal(out, of(lengths) as u64),
            RequestPart::LengthString(lengths) => {
                let at = out.len();
                // A length has at most 20 digits, which one byte can say.
                out.push(0);
                decimal(out, of(lengths) as u64);
                out[at] = (out.len() - at - 1) as u8;
            }
            RequestPart::StringLength(lengths) => put_integer(out, 0, 7, of(lengths) as u64),
        }
    }
}

/// Appends a number in decimal digits.
pub fn decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends a random UUID (version 4) of these bits, as RFC 9562 writes it.
pub fn uuid(out: &mut Vec<u8>, bits: [u64; 2]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&bits[0].to_be_bytes());
    bytes[8..].copy_from_slice(&bits[1].to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        let two = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        out.extend_from_slice(&two);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hpack;

    const REQUEST: &[u8] =
        b"POST /a/{name}?n={counter} HTTP/1.1\r\nHost: {name}\r\nX-Name: <{name}>\r\n\
          Content-Length: 99\r\nX-Fixed: 1\r\n\r\n{\"n\":{counter},\"name\":\"{name}\",\"b\":{}}";

    fn filled(request: &[u8], name: &[u8], number: u64) -> FilledRequest {
        let mut compiled = FilledRequest::compile(request, &["name".to_owned()]).unwrap();
        compiled.fill(|field, out| match field {
            Field::Column(0) => out.extend_from_slice(name),
            Field::Counter => decimal(out, number),
            other => panic!("{other:?}"),
        });
        compiled
    }

    fn written(write: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn a_value_keeps_to_its_place_and_the_length_is_that_of_the_body() {
        let request = filled(REQUEST, "A b\r\nX: é".as_bytes(), 7);
        let bytes = written(|out| request.write_http1(out));
        let body = "{\"n\":7,\"name\":\"A b\r\nX: é\",\"b\":{}}";
        let expected = format!(
            "POST /a/A%20b%0D%0AX:%20%C3%A9?n=7 HTTP/1.1\r\nHost: A b%0D%0AX: é\r\nX-Name: <A b%0D%0AX: é>\r\n\
             Content-Length: {}\r\nX-Fixed: 1\r\n\r\n{body}",
            body.len()
        );
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        assert_eq!(written(|out| request.write_body(out)), body.as_bytes());
        assert!(request.needs_row());
    }

    proptest! {
        /// What is filled in is the same as the request written by hand, in both protocols.
        #[test]
        fn a_filled_request_is_the_one_written_by_hand(name in "[a-z0-9]{1,200}", number: u64) {
            let request = filled(REQUEST, name.as_bytes(), number);
            let body = format!("{{\"n\":{number},\"name\":\"{name}\",\"b\":{{}}}}");
            let by_hand = format!(
                "POST /a/{name}?n={number} HTTP/1.1\r\nHost: {name}\r\nX-Name: <{name}>\r\nContent-Length: {}\r\n\
                 X-Fixed: 1\r\n\r\n{body}",
                body.len()
            );
            prop_assert_eq!(written(|out| request.write_http1(out)), by_hand.as_bytes());
            let http2 = hpack::of_http1(by_hand.as_bytes());
            prop_assert_eq!(written(|out| request.write_block(out)), &*http2.block);
            prop_assert_eq!(written(|out| request.write_body(out)), &*http2.body);
        }
    }

    #[test]
    fn a_uuid_has_its_version_and_its_variant() {
        let text = written(|out| uuid(out, [u64::MAX, 0]));
        assert_eq!(text, b"ffffffff-ffff-4fff-8000-000000000000");
    }
}
