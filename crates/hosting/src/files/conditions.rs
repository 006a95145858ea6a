//! The part of a file that a request's conditions and Range ask for (RFC 9110, sections 13 and
//! 14): headers and validators in, a verdict out.
//!
//! Several ranges are answered with the whole, which the RFC leaves to the server: few
//! clients can read a `multipart/byteranges`, and many small ranges cost the server more
//! than they cost who asks.

use std::time::UNIX_EPOCH;

use prony_http::{Header, Headers, Range};

/// The validators that the client's state is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validators<'v> {
    /// With its quotes, and `W/` before them where it is weak.
    pub etag: &'v str,
    /// Seconds since the Unix epoch, as Last-Modified says it.
    pub modified: u64,
    /// Bytes that there are.
    pub length: u64,
}

/// The part of the file to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Whole,
    /// 206: from this byte to that, both included.
    Part(u64, u64),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
}

/// Judges in the order of section 13.2.2. A Range counts for GET alone.
pub(super) fn judge(headers: &Headers<'_>, is_get: bool, file: &Validators<'_>) -> Verdict {
    if !headers.iter().any(|header| may_matter(&header)) {
        return Verdict::Whole;
    }
    let has_failed = match headers.get("if-match") {
        Some(_) => !lists(headers, "if-match", file.etag, Comparison::Strong),
        None => date(headers, "if-unmodified-since").is_some_and(|date| file.modified > date),
    };
    if has_failed {
        return Verdict::Failed;
    }
    let is_known = match headers.get("if-none-match") {
        Some(_) => lists(headers, "if-none-match", file.etag, Comparison::Weak),
        None => date(headers, "if-modified-since").is_some_and(|date| file.modified <= date),
    };
    if is_known {
        return Verdict::NotModified;
    }
    match headers.get("range") {
        Some(range) if is_get && is_same(headers, file) => part(range, file.length),
        _ => Verdict::Whole,
    }
}

/// Most requests have none of these headers, and are looked through once.
fn may_matter(header: &Header<'_>) -> bool {
    match header.name.len() {
        5 => header.is("range"),
        8.. => header.name.as_bytes()[..3].eq_ignore_ascii_case(b"if-"),
        _ => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Strong,
    /// Tags that are marked as weak may match, too.
    Weak,
}

/// Whether a list of entity tags has this one, or is `*`.
fn lists(headers: &Headers<'_>, name: &str, etag: &str, comparison: Comparison) -> bool {
    let ours = etag.strip_prefix("W/");
    let (ours, ours_is_weak) = (ours.unwrap_or(etag), ours.is_some());
    headers.get_all(name).any(|value| {
        value == b"*"
            || tags(value).any(|(is_weak, tag)| {
                let is_strong = !is_weak && !ours_is_weak;
                tag == ours.as_bytes() && (comparison == Comparison::Weak || is_strong)
            })
    })
}

/// The tags of a list, each with its quotes and whether it is weak. A comma may stand in
/// a tag; what is no tag ends the list.
fn tags(mut rest: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    std::iter::from_fn(move || {
        while let [b' ' | b'\t' | b',', after @ ..] = rest {
            rest = after;
        }
        let is_weak = rest.starts_with(b"W/");
        let from = if is_weak { &rest[2..] } else { rest };
        let [b'"', inside @ ..] = from else {
            return None;
        };
        let length = inside.iter().position(|&byte| byte == b'"')?;
        let (tag, after) = from.split_at(length + 2);
        rest = after;
        Some((is_weak, tag))
    })
}

/// Whether If-Range, where there is one, names the file as it is.
fn is_same(headers: &Headers<'_>, file: &Validators<'_>) -> bool {
    match headers.get("if-range") {
        None => true,
        Some(tag) if tag.ends_with(b"\"") => !tag.starts_with(b"W/") && tag == file.etag.as_bytes(),
        Some(_) => date(headers, "if-range") == Some(file.modified),
    }
}

/// A date as seconds since the Unix epoch; what is none is as if it were not there.
fn date(headers: &Headers<'_>, name: &str) -> Option<u64> {
    let text = str::from_utf8(headers.get(name)?).ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// The part that one range of bytes asks for; anything else is ignored.
fn part(range: &[u8], length: u64) -> Verdict {
    match Range::of(range, length) {
        Range::Whole => Verdict::Whole,
        Range::Part(part) => Verdict::Part(*part.start(), *part.end()),
        Range::Unsatisfiable => Verdict::Unsatisfiable,
    }
}

#[cfg(test)]
mod tests {
    use prony_http::OwnedHeaders;

    use super::*;

    const TAG: &str = "\"1-a,b\"";
    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn judged(method: &str, lines: &[(&str, &str)]) -> Verdict {
        let mut headers = OwnedHeaders::default();
        for (name, value) in lines {
            assert!(headers.push(name, value.as_bytes()));
        }
        let file = Validators {
            etag: TAG,
            modified: 784_111_777,
            length: 100,
        };
        judge(&headers.as_headers(), method == "GET", &file)
    }

    #[test]
    fn a_file_whose_tag_is_weak_has_no_strong_match() {
        for (name, verdict) in [
            ("if-none-match", Verdict::NotModified),
            ("if-match", Verdict::Failed),
            ("if-range", Verdict::Whole),
        ] {
            for tag in ["\"1-a,b\"", "W/\"1-a,b\""] {
                let mut headers = OwnedHeaders::default();
                assert!(headers.push(name, tag.as_bytes()));
                assert!(headers.push("range", b"bytes=0-0"));
                let file = Validators {
                    etag: "W/\"1-a,b\"",
                    modified: 784_111_777,
                    length: 100,
                };
                let judged = judge(&headers.as_headers(), true, &file);
                assert_eq!(judged, verdict, "{name}: {tag}");
            }
        }
    }

    /// RFC 9110, sections 13.1 and 13.2.
    #[test]
    fn conditions_are_judged_in_their_order() {
        use Verdict::{Failed, NotModified, Part, Whole};
        let cases: &[(&[(&str, &str)], Verdict)] = &[
            (&[], Whole),
            (&[("if-match", TAG)], Whole),
            (&[("if-match", "*")], Whole),
            (&[("if-match", "\"x\"")], Failed),
            (&[("if-match", "W/\"1-a,b\"")], Failed),
            (&[("if-match", "\"x\", \"1-a,b\"")], Whole),
            (&[("if-match", "\"x\""), ("If-Match", TAG)], Whole),
            (&[("if-match", "nonsense")], Failed),
            (&[("if-none-match", TAG)], NotModified),
            (&[("If-None-Match", "W/\"1-a,b\"")], NotModified),
            (&[("if-none-match", "*")], NotModified),
            (
                &[("if-none-match", " , \"y\" ,W/\"z\",\"1-a,b\"")],
                NotModified,
            ),
            (&[("if-none-match", "\"y\"")], Whole),
            (&[("if-none-match", "\"1-a")], Whole),
            (&[("if-none-match", "1-a,b")], Whole),
            (&[("if-none-match", "")], Whole),
            (&[("if-modified-since", THEN)], NotModified),
            (&[("if-modified-since", AFTER)], NotModified),
            (&[("if-modified-since", BEFORE)], Whole),
            (&[("if-modified-since", "yesterday")], Whole),
            (
                &[("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT")],
                NotModified,
            ),
            (
                &[("if-modified-since", "Sun Nov  6 08:49:37 1994")],
                NotModified,
            ),
            (
                &[("if-none-match", "\"y\""), ("if-modified-since", AFTER)],
                Whole,
            ),
            (&[("if-unmodified-since", THEN)], Whole),
            (&[("if-unmodified-since", BEFORE)], Failed),
            (&[("if-unmodified-since", "never")], Whole),
            (&[("if-match", TAG), ("if-unmodified-since", BEFORE)], Whole),
            (&[("if-match", "\"x\""), ("if-none-match", TAG)], Failed),
            (
                &[("if-none-match", TAG), ("range", "bytes=0-1")],
                NotModified,
            ),
            (&[("range", "bytes=0-1"), ("if-range", TAG)], Part(0, 1)),
            (&[("range", "bytes=0-1"), ("if-range", THEN)], Part(0, 1)),
            (&[("range", "bytes=0-1"), ("if-range", AFTER)], Whole),
            (
                &[("range", "bytes=0-1"), ("if-range", "W/\"1-a,b\"")],
                Whole,
            ),
            (&[("range", "bytes=0-1"), ("if-range", "\"x\"")], Whole),
            (&[("range", "bytes=0-1"), ("if-range", "x")], Whole),
            (&[("if-range", TAG)], Whole),
        ];
        for (lines, verdict) in cases {
            assert_eq!(judged("GET", lines), *verdict, "{lines:?}");
        }
        assert_eq!(judged("HEAD", &[("range", "bytes=0-1")]), Whole);
        assert_eq!(judged("HEAD", &[("if-none-match", TAG)]), NotModified);
    }

    /// RFC 9110, section 14.
    #[test]
    fn one_range_is_a_part_and_several_are_the_whole() {
        use Verdict::{Part, Unsatisfiable, Whole};
        for (range, verdict) in [
            ("bytes=0-0", Part(0, 0)),
            ("bytes=0-", Part(0, 99)),
            ("bytes=10-19", Part(10, 19)),
            ("bytes=90-1000", Part(90, 99)),
            ("bytes=-1", Part(99, 99)),
            ("bytes=-1000", Part(0, 99)),
            ("BYTES= 5-6 ", Part(5, 6)),
            ("bytes=7-99999999999999999999", Part(7, 99)),
            ("bytes=100-", Unsatisfiable),
            ("bytes=100-200", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=99999999999999999999-", Unsatisfiable),
            ("bytes=5-4", Whole),
            ("bytes=-", Whole),
            ("bytes=0-1,5-6", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes", Whole),
            ("lines=0-1", Whole),
            ("", Whole),
        ] {
            assert_eq!(judged("GET", &[("range", range)]), verdict, "{range}");
        }
        assert_eq!(part(b"bytes=0-", 0), Unsatisfiable);
        assert_eq!(part(b"bytes=-5", 0), Unsatisfiable);
    }
}
