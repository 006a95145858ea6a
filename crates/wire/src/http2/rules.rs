//! What the fields of a message may be (RFC 9113, sections 8.2 and 8.3): one check for both sides, field by field.
//!
//! Not for: what a field means, which fields a side needs besides, and content-length.

use std::fmt;

use crate::headers::{is_token_byte, is_value};

/// A part of a message that has fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldSection {
    /// The head of a request.
    Request,
    /// The head of an answer.
    Answer,
    /// Trailers of either.
    Trailers,
}

impl FieldSection {
    /// The pseudo-header fields that it may have.
    const fn pseudo(self) -> &'static [&'static [u8]] {
        match self {
            FieldSection::Request => &[b":method", b":scheme", b":authority", b":path"],
            FieldSection::Answer => &[b":status"],
            FieldSection::Trailers => &[],
        }
    }
}

/// Which rule a field breaks: the message is malformed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FieldFault {
    /// Its name is empty, or has a byte that no name has.
    Name,
    /// Its name has an upper-case letter.
    UpperCase,
    /// Its value has a control byte, such as CR or LF, or white space around it.
    Value,
    /// It is of a connection of HTTP/1.1.
    Connection,
    /// A pseudo-header field that this part of a message does not have.
    UnknownPseudo,
    /// A pseudo-header field behind a regular one.
    LatePseudo,
    /// A pseudo-header field that was there before.
    RepeatedPseudo,
    /// A pseudo-header field in trailers.
    TrailerPseudo,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldFault::Name => "a field's name is empty, or has a byte that no name may have",
            FieldFault::UpperCase => "a field's name has an upper-case letter",
            FieldFault::Value => "a field's value has a control byte, or white space around it",
            FieldFault::Connection => "there is a field of a connection of HTTP/1.1",
            FieldFault::UnknownPseudo => "there is a pseudo-header field that is not known",
            FieldFault::LatePseudo => "a pseudo-header field is behind a regular one",
            FieldFault::RepeatedPseudo => "a pseudo-header field is there twice",
            FieldFault::TrailerPseudo => "there is a pseudo-header field in trailers",
        })
    }
}

impl std::error::Error for FieldFault {}

/// Holds the fields of one message to the rules, in their order. Allocates nothing.
#[derive(Clone, Copy, Debug)]
pub struct FieldRules {
    section: FieldSection,
    /// Its pseudo-header fields that were there, a bit each.
    seen: u8,
    has_regular: bool,
}

impl FieldRules {
    /// Before the first field.
    pub const fn new(section: FieldSection) -> FieldRules {
        FieldRules {
            section,
            seen: 0,
            has_regular: false,
        }
    }

    /// Checks the next field.
    ///
    /// # Errors
    /// The rule that it breaks.
    #[inline]
    pub fn check(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldFault> {
        match name.first() {
            Some(b':') => self.pseudo(name)?,
            _ => self.regular(name, value)?,
        }
        let is_around = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
        match is_value(value) && !is_around(value.first()) && !is_around(value.last()) {
            true => Ok(()),
            false => Err(FieldFault::Value),
        }
    }

    fn pseudo(&mut self, name: &[u8]) -> Result<(), FieldFault> {
        if self.section == FieldSection::Trailers {
            return Err(FieldFault::TrailerPseudo);
        }
        let place = self.section.pseudo().iter().position(|of| *of == name);
        let bit = 1 << place.ok_or(FieldFault::UnknownPseudo)?;
        if self.has_regular {
            return Err(FieldFault::LatePseudo);
        }
        match self.seen & bit {
            0 => self.seen |= bit,
            _ => return Err(FieldFault::RepeatedPseudo),
        }
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), FieldFault> {
        self.has_regular = true;
        let is_lower = |&byte: &u8| is_token_byte(byte) && !byte.is_ascii_uppercase();
        if name.is_empty() || !name.iter().all(is_lower) {
            return Err(match name.iter().any(u8::is_ascii_uppercase) {
                true => FieldFault::UpperCase,
                false => FieldFault::Name,
            });
        }
        match name {
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
            | b"upgrade" => Err(FieldFault::Connection),
            b"te" if self.section != FieldSection::Request => Err(FieldFault::Connection),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => Err(FieldFault::Connection),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(section: FieldSection, fields: &[(&str, &str)]) -> Result<(), FieldFault> {
        let mut rules = FieldRules::new(section);
        let mut fields = fields.iter();
        fields.try_for_each(|(name, value)| rules.check(name.as_bytes(), value.as_bytes()))
    }

    #[test]
    fn fields_as_they_must_be_pass() {
        let request = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", "/"),
            ("te", "trailers"),
            ("x-y", "a \u{e9}\tb"),
            ("empty", ""),
        ];
        assert_eq!(check(FieldSection::Request, &request), Ok(()));
        let answer = [(":status", "200"), ("date", "now"), ("set-cookie", "a=1")];
        assert_eq!(check(FieldSection::Answer, &answer), Ok(()));
        let trailers = [("grpc-status", "0")];
        assert_eq!(check(FieldSection::Trailers, &trailers), Ok(()));
    }

    #[test]
    fn each_rule_that_an_answer_breaks_has_a_name() {
        for (field, fault) in [
            (("", "a"), FieldFault::Name),
            (("a b", "c"), FieldFault::Name),
            (("a:b", "c"), FieldFault::Name),
            (("\u{e9}", "c"), FieldFault::Name),
            (("Date", "now"), FieldFault::UpperCase),
            (("a", "b\r\nc: d"), FieldFault::Value),
            (("a", "b\0"), FieldFault::Value),
            (("a", " b"), FieldFault::Value),
            (("a", "b\t"), FieldFault::Value),
            (("connection", "close"), FieldFault::Connection),
            (("keep-alive", "5"), FieldFault::Connection),
            (("proxy-connection", "close"), FieldFault::Connection),
            (("transfer-encoding", "chunked"), FieldFault::Connection),
            (("upgrade", "h2c"), FieldFault::Connection),
            (("te", "trailers"), FieldFault::Connection),
            ((":status", "200"), FieldFault::RepeatedPseudo),
            ((":status", " 2"), FieldFault::RepeatedPseudo),
            ((":path", "/"), FieldFault::UnknownPseudo),
            ((":x", "y"), FieldFault::UnknownPseudo),
        ] {
            let fields = [(":status", "200"), field];
            assert_eq!(
                check(FieldSection::Answer, &fields),
                Err(fault),
                "{field:?}"
            );
        }
        let late = [("a", "b"), (":status", "200")];
        assert_eq!(
            check(FieldSection::Answer, &late),
            Err(FieldFault::LatePseudo)
        );
        assert_eq!(
            check(FieldSection::Trailers, &late),
            Err(FieldFault::TrailerPseudo)
        );
        assert_eq!(
            check(FieldSection::Request, &[(":status", "200")]),
            Err(FieldFault::UnknownPseudo)
        );
        assert_eq!(
            check(FieldSection::Request, &[("te", "gzip")]),
            Err(FieldFault::Connection)
        );
    }
}
