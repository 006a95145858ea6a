//! Whether a file can be gone on with, and what an answer to a request for its rest means.
//! Values in, values out. Not for: files (`file`), or sending (`download`).

use serde::{Deserialize, Serialize};

/// The note beside an incomplete file, by which a later run continues it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Where it comes from.
    pub url: String,
    /// The server's validator of this version: a strong ETag, or a date.
    pub validator: String,
    /// Its length in bytes, where it is known.
    pub total: Option<u64>,
}

/// The fields of an answer's head about versions and parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartHead<'a> {
    /// Its status.
    pub status: u16,
    /// ETag.
    pub etag: Option<&'a [u8]>,
    /// Last-Modified.
    pub last_modified: Option<&'a [u8]>,
    /// Date.
    pub date: Option<&'a [u8]>,
    /// Accept-Ranges.
    pub accept_ranges: Option<&'a [u8]>,
    /// Content-Range.
    pub content_range: Option<&'a [u8]>,
}

impl PartHead<'_> {
    /// The validator by which a later request can name this version. Weak tags and dates that the file may
    /// have changed within are none (RFC 9110, section 8.8.2.2).
    pub fn validator(&self) -> Option<String> {
        let refuses = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"none");
        if self.accept_ranges.is_some_and(refuses) {
            return None;
        }
        let text = |value: &[u8]| Some(std::str::from_utf8(value).ok()?.trim().to_owned());
        if let Some(tag) = self.etag.and_then(text) {
            return (tag.starts_with('"') && tag.len() > 2).then_some(tag);
        }
        let (modified, date) = (self.last_modified?, self.date?);
        if modified == date {
            None
        } else {
            text(modified)
        }
    }
}

/// The part of a file that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRequest {
    /// All.
    Whole,
    /// What follows the first bytes.
    From {
        /// How many there are already.
        offset: u64,
        /// The whole length, where an earlier answer had it.
        total: Option<u64>,
    },
}

/// The meaning of an answer for the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Its body is the whole file.
    Whole,
    /// Its body continues where the file ends.
    GoesOn {
        /// Bytes that the body must have.
        length: u64,
        /// The whole length, where it is known.
        total: Option<u64>,
    },
    /// Nothing is missing.
    Complete,
    /// The file is to be requested from its start.
    StartAgain(&'static str),
    /// It is none that can be used, and why.
    Wrong(String),
    /// It is no file.
    Refused,
}

/// The meaning of an answer to this request.
pub fn meaning(head: &PartHead<'_>, range_request: RangeRequest) -> Meaning {
    match (head.status, range_request) {
        (206, RangeRequest::From { offset, total }) => goes_on(head.content_range, offset, total),
        (206, RangeRequest::Whole) => {
            Meaning::Wrong("it sent a part, asked for the whole".to_owned())
        }
        (200..300, _) => Meaning::Whole,
        (416, RangeRequest::From { offset, .. }) => {
            match head.content_range.and_then(unsatisfied) {
                Some(length) if length == offset => Meaning::Complete,
                Some(_) => Meaning::StartAgain("the server has another length"),
                None => Meaning::StartAgain("the server does not have this part"),
            }
        }
        _ => Meaning::Refused,
    }
}

fn goes_on(content_range: Option<&[u8]>, offset: u64, known: Option<u64>) -> Meaning {
    let Some(range) = content_range.and_then(satisfied) else {
        return Meaning::Wrong("it sent a part and does not say which".to_owned());
    };
    let (first, last, total) = range;
    if first != offset {
        let text = format!("it sent a part from byte {first}, asked for the one from {offset}");
        return Meaning::Wrong(text);
    }
    if last < first || total.is_some_and(|total| last >= total) {
        return Meaning::Wrong("it sent a part that cannot be one".to_owned());
    }
    match (known, total) {
        (Some(known), Some(total)) if known != total => Meaning::Wrong(format!(
            "the file had {known} bytes and has {total}, with the same mark"
        )),
        _ => Meaning::GoesOn {
            length: last - first + 1,
            total: total.or(known),
        },
    }
}

/// `bytes 5-9/10`, `bytes 5-9/*`: first, last, length.
fn satisfied(value: &[u8]) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = of_bytes(value)?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let total = match total {
        "*" => None,
        total => Some(number(total)?),
    };
    Some((number(first)?, number(last)?, total))
}

/// `bytes */10`.
fn unsatisfied(value: &[u8]) -> Option<u64> {
    number(of_bytes(value)?.strip_prefix("*/")?)
}

fn of_bytes(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let (unit, rest) = text.split_once(' ')?;
    unit.eq_ignore_ascii_case("bytes").then(|| rest.trim())
}

/// Digits only: `parse` alone would take a sign.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strong_tags_and_old_dates_name_a_version() {
        let of = |etag: Option<&'static str>, modified: &'static str, date: &'static str| {
            let head = PartHead {
                etag: etag.map(str::as_bytes),
                last_modified: Some(modified.as_bytes()),
                date: Some(date.as_bytes()),
                ..PartHead::default()
            };
            head.validator()
        };
        assert_eq!(of(Some("\"a\""), "m", "d").as_deref(), Some("\"a\""));
        assert_eq!(of(Some("W/\"a\""), "m", "d"), None);
        assert_eq!(of(None, "m", "d").as_deref(), Some("m"));
        assert_eq!(of(None, "same second", "same second"), None);
        let refuses = PartHead {
            etag: Some(b"\"a\""),
            accept_ranges: Some(b"none"),
            ..PartHead::default()
        };
        assert_eq!(refuses.validator(), None);
    }

    fn of(status: u16, range: Option<&'static str>) -> Meaning {
        let head = PartHead {
            status,
            content_range: range.map(str::as_bytes),
            ..PartHead::default()
        };
        let range_request = RangeRequest::From {
            offset: 5,
            total: Some(10),
        };
        meaning(&head, range_request)
    }

    #[test]
    fn the_rest_goes_on_where_the_file_ends() {
        let rest = Meaning::GoesOn {
            length: 5,
            total: Some(10),
        };
        assert_eq!(of(206, Some("bytes 5-9/10")), rest);
        assert_eq!(of(206, Some("bytes 5-9/*")), rest);
        assert_eq!(of(200, None), Meaning::Whole);
        assert_eq!(of(416, Some("bytes */5")), Meaning::Complete);
        assert!(matches!(of(416, Some("bytes */3")), Meaning::StartAgain(_)));
        assert!(matches!(of(416, None), Meaning::StartAgain(_)));
        assert_eq!(of(404, None), Meaning::Refused);
        assert_eq!(of(304, None), Meaning::Refused);
    }

    #[test]
    fn parts_that_do_not_fit_are_never_taken() {
        for range in [
            None,
            Some("bytes 4-9/10"),
            Some("bytes 6-9/10"),
            Some("bytes 5-4/10"),
            Some("bytes 5-10/10"),
            Some("bytes 5-9/11"),
            Some("bytes +5-9/10"),
            Some("bytes 5-99999999999999999999/*"),
            Some("lines 5-9/10"),
            Some("bytes */10"),
        ] {
            assert!(matches!(of(206, range), Meaning::Wrong(_)), "{range:?}");
        }
        let head = PartHead {
            status: 206,
            ..PartHead::default()
        };
        assert!(matches!(
            meaning(&head, RangeRequest::Whole),
            Meaning::Wrong(_)
        ));
    }
}
