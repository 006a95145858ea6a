//! What a connection of HTTP/2 reads of an answer's fields beside status and length: nothing, or all of them, for checks of headers and
//! for cookies. A type, so that a connection that needs none does nothing for it.

use prony_wire::http2::put_string;

use crate::cookies::LaneCookies;
use crate::follow::AnswerFollower;

/// Reads the fields of answers, and adds to those of requests.
pub trait AnswerFields {
    /// Whether fields are read, and may be added to requests.
    const READS: bool;

    /// A field of an answer has come.
    fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        checker: Option<&mut (dyn AnswerFollower + 'static)>,
    );

    /// Appends fields to those of a request.
    fn add(&self, block: &mut Vec<u8>);
}

/// Reads and adds none.
#[derive(Debug, Default)]
pub struct NoFields;

impl AnswerFields for NoFields {
    const READS: bool = false;

    #[inline]
    fn field(&mut self, _: &[u8], _: &[u8], _: Option<&mut (dyn AnswerFollower + 'static)>) {}

    #[inline]
    fn add(&self, _: &mut Vec<u8>) {}
}

/// Reads all fields, and keeps cookies where it is told to.
#[derive(Debug, Default)]
pub struct AllFields {
    /// The cookies of the connection, where they are kept.
    jar: Option<LaneCookies>,
}

impl AllFields {
    /// A reader for one connection.
    pub fn new(keeps_cookies: bool) -> AllFields {
        AllFields {
            jar: keeps_cookies.then(LaneCookies::default),
        }
    }
}

impl AnswerFields for AllFields {
    const READS: bool = true;

    fn field(
        &mut self,
        name: &[u8],
        value: &[u8],
        checker: Option<&mut (dyn AnswerFollower + 'static)>,
    ) {
        if let Some(checker) = checker {
            checker.field(name, value);
        }
        if let Some(jar) = self.jar.as_mut().filter(|_| name == b"set-cookie") {
            jar.set(value);
        }
    }

    fn add(&self, block: &mut Vec<u8>) {
        if let Some(value) = self.jar.as_ref().and_then(LaneCookies::header) {
            block.push(0);
            put_string(block, b"cookie");
            put_string(block, &value);
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_record::AnswerChecks;
    use prony_wire::http2::FieldDecoder;

    use super::*;
    use crate::checks::Checks;

    #[test]
    fn cookies_that_were_set_go_with_the_next_request_where_they_are_kept() {
        for keeps in [true, false] {
            let mut fields = AllFields::new(keeps);
            for (name, value) in [
                (&b"set-cookie"[..], &b"a=1; Path=/"[..]),
                (b"x", b"y"),
                (b"set-cookie", b"b=2"),
            ] {
                fields.field(name, value, None);
            }
            let mut request = vec![0x82];
            fields.add(&mut request);
            let mut sent = Vec::new();
            let read = FieldDecoder::default().decode(&request, usize::MAX, |name, value| {
                sent.push((name.to_vec(), value.to_vec()));
            });
            assert!(read.is_ok());
            let cookie = (b"cookie".to_vec(), b"a=1; b=2".to_vec());
            assert_eq!(sent.contains(&cookie), keeps, "{sent:?}");
        }
    }

    #[test]
    fn headers_are_checked_by_name_and_value() {
        let checks = |value: Option<&str>| AnswerChecks {
            headers: vec![("Content-Type".to_owned(), value.map(str::to_owned))],
            ..AnswerChecks::default()
        };
        for (value, passes) in [(None, true), (Some("a/b"), true), (Some("a"), false)] {
            let checks = Checks::new(&checks(value)).unwrap();
            let mut checker = checks.checker().unwrap();
            checker.begin(None);
            let mut fields = AllFields::new(false);
            fields.field(b"content-type", b"a/b", Some(&mut *checker));
            assert_eq!(checker.end(200).is_none(), passes, "{value:?}");
            // Of the answer before nothing is left.
            checker.begin(None);
            assert!(checker.end(200).is_some());
        }
    }
}
