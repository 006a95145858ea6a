//! What a connection of HTTP/2 reads of an answer's fields beside status and length: nothing, or all of them, for checks of headers and
//! for cookies. A type, so that a connection that needs none does nothing for it.

use prony_wire::http2::{FieldDecoder, put_string};

use crate::checks::AnswerChecker;
use crate::cookies::LaneCookies;
use crate::failure::Failure;

/// Reads the fields of answers, and adds to those of requests.
pub trait AnswerFields {
    /// Whether fields may be added to requests.
    const ADDS: bool;

    /// The head of an answer has come.
    ///
    /// # Errors
    /// It is not as it must be.
    fn answered(
        &mut self,
        block: &[u8],
        checker: Option<&mut AnswerChecker>,
    ) -> Result<(), Failure>;

    /// Appends fields to those of a request.
    fn add(&self, block: &mut Vec<u8>);
}

/// Reads and adds none.
#[derive(Debug, Default)]
pub struct NoFields;

impl AnswerFields for NoFields {
    const ADDS: bool = false;

    #[inline]
    fn answered(&mut self, _: &[u8], _: Option<&mut AnswerChecker>) -> Result<(), Failure> {
        Ok(())
    }

    #[inline]
    fn add(&self, _: &mut Vec<u8>) {}
}

/// Reads all fields, and keeps cookies where it is told to.
#[derive(Debug, Default)]
pub struct AllFields {
    decoder: FieldDecoder,
    /// The cookies of the connection, where they are kept.
    jar: Option<LaneCookies>,
}

impl AllFields {
    /// A reader for one connection.
    pub fn new(keeps_cookies: bool) -> AllFields {
        AllFields {
            jar: keeps_cookies.then(LaneCookies::default),
            ..AllFields::default()
        }
    }
}

impl AnswerFields for AllFields {
    const ADDS: bool = true;

    fn answered(
        &mut self,
        block: &[u8],
        mut checker: Option<&mut AnswerChecker>,
    ) -> Result<(), Failure> {
        let jar = &mut self.jar;
        // A block has a limit of its own, so that the list needs none.
        let read = self.decoder.decode(block, usize::MAX, |name, value| {
            if let Some(checker) = &mut checker {
                checker.field(name, value);
            }
            if let Some(jar) = jar.as_mut().filter(|_| name == b"set-cookie") {
                jar.set(value);
            }
        });
        read.map(drop).map_err(|_| Failure::Protocol)
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
    use prony_wire::http2::{put_field, put_status};

    use super::*;
    use crate::checks::Checks;

    fn head(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        put_status(&mut block, 200);
        for (name, value) in fields {
            put_field(&mut block, name, value.as_bytes());
        }
        block
    }

    #[test]
    fn cookies_that_were_set_go_with_the_next_request_where_they_are_kept() {
        for keeps in [true, false] {
            let mut fields = AllFields::new(keeps);
            let block = head(&[
                ("set-cookie", "a=1; Path=/"),
                ("x", "y"),
                ("set-cookie", "b=2"),
            ]);
            assert_eq!(fields.answered(&block, None), Ok(()));
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
            checker.begin();
            let block = head(&[("content-type", "a/b")]);
            let mut fields = AllFields::new(false);
            assert_eq!(fields.answered(&block, Some(&mut *checker)), Ok(()));
            assert_eq!(checker.end(200).is_none(), passes, "{value:?}");
            // Of the answer before nothing is left.
            checker.begin();
            assert!(checker.end(200).is_some());
        }
    }

    #[test]
    fn a_block_that_is_none_ends_the_connection() {
        let broken = AllFields::new(false).answered(&[0xff, 0xff, 0xff], None);
        assert_eq!(broken, Err(Failure::Protocol));
    }
}
