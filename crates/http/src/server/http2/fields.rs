//! The fields of a request (RFC 9113, section 8): from a header block to what a handler sees.

use prony_wire::http2::{FieldRules, FieldSection};
use prony_wire::{Error, Framing, HostLines, Limits, Method, check_target};

use crate::server::incoming::Incoming;

const COOKIE: &[u8] = b"cookie";

/// Why a request's head is not taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HeadFault {
    /// It breaks a rule: the stream ends.
    Malformed,
    /// It breaks a rule or a limit that HTTP/1.1 has as well, and is answered as there.
    Wrong(Error),
    /// It passes a limit or contradicts itself: answered with this status.
    Refused(u16, &'static str),
}

impl From<Error> for HeadFault {
    fn from(error: Error) -> HeadFault {
        HeadFault::Wrong(error)
    }
}

/// Reads the fields of one head, in their order.
pub(super) struct FieldReader<'a> {
    incoming: &'a mut Incoming,
    limits: &'a Limits,
    method: Option<Method>,
    has_scheme: bool,
    has_path: bool,
    /// It is the first of the header lines, as Host.
    has_authority: bool,
    hosts: HostLines,
    rules: FieldRules,
    length: Option<u64>,
    cookies: Vec<u8>,
    count: usize,
    fault: Option<HeadFault>,
}

impl<'a> FieldReader<'a> {
    /// For a head that goes into `incoming`, which is cleared.
    pub(super) fn new(incoming: &'a mut Incoming, limits: &'a Limits) -> FieldReader<'a> {
        incoming.headers.clear();
        incoming.target.clear();
        incoming.expects_continue = false;
        FieldReader {
            incoming,
            limits,
            method: None,
            has_scheme: false,
            has_path: false,
            has_authority: false,
            hosts: HostLines::default(),
            rules: FieldRules::new(FieldSection::Request),
            length: None,
            cookies: Vec::new(),
            count: 0,
            fault: None,
        }
    }

    /// Takes one field.
    pub(super) fn field(&mut self, name: &[u8], value: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        let taken = match self.rules.check(name, value) {
            Err(_) => Err(HeadFault::Malformed),
            Ok(()) if name.starts_with(b":") => self.pseudo(name, value),
            Ok(()) => self.regular(name, value),
        };
        self.fault = taken.err();
    }

    /// A field that stands for a part of HTTP/1.1's first line, or for Host.
    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        let malformed = Err(HeadFault::Malformed);
        let text = std::str::from_utf8(value).map_err(|_| HeadFault::Malformed)?;
        match name {
            b":method" => {
                self.method = Some(Method::from_name(text).ok_or(HeadFault::Malformed)?);
            }
            b":scheme" if !text.is_empty() => self.has_scheme = true,
            // In absolute form it would name a server, too.
            b":path" if text.starts_with('/') || text == "*" => {
                self.has_path = true;
                self.incoming.target.push_str(text);
            }
            b":authority" => {
                self.has_authority = true;
                check_server(&mut HostLines::default(), value)?;
                // First, as it stands in HTTP/1.1.
                if !self.incoming.headers.push("host", value) {
                    return malformed;
                }
            }
            _ => return malformed,
        }
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        let malformed = Err(HeadFault::Malformed);
        self.count += 1;
        if self.count > self.limits.headers_max {
            return Err(HeadFault::Refused(431, "there are too many header fields"));
        }
        let Ok(text) = std::str::from_utf8(name) else {
            return malformed;
        };
        match name {
            b"host" => {
                check_server(&mut self.hosts, value)?;
                let authority = self.incoming.headers.get("host");
                if self.has_authority && authority.is_some_and(|it| !it.eq_ignore_ascii_case(value))
                {
                    return Err(HeadFault::Refused(400, "Host is another than :authority"));
                }
                if self.has_authority {
                    return Ok(());
                }
            }
            b"content-length" => {
                let length = number(value).ok_or(HeadFault::Malformed)?;
                if self
                    .length
                    .replace(length)
                    .is_some_and(|before| before != length)
                {
                    return malformed;
                }
            }
            b"expect" => {
                self.incoming.expects_continue |= value.eq_ignore_ascii_case(b"100-continue")
            }
            // Clients split it, so that parts are found in the table (section 8.2.3).
            COOKIE => {
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(value);
                return Ok(());
            }
            _ => {}
        }
        match self.incoming.headers.push(text, value) {
            true => Ok(()),
            false => malformed,
        }
    }

    /// After the last field; `ends` tells that there is no body.
    pub(super) fn finish(self, ends: bool) -> Result<(), HeadFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if !self.cookies.is_empty() && !self.incoming.headers.push("cookie", &self.cookies) {
            return Err(HeadFault::Malformed);
        }
        let method = self.method.ok_or(HeadFault::Malformed)?;
        if method == Method::Connect {
            // It has the authority alone (section 8.5).
            if !self.has_authority || self.has_scheme || self.has_path {
                return Err(HeadFault::Malformed);
            }
            let Incoming {
                headers, target, ..
            } = &mut *self.incoming;
            let authority = headers
                .get("host")
                .and_then(|host| std::str::from_utf8(host).ok());
            target.push_str(authority.ok_or(HeadFault::Malformed)?);
        } else if !self.has_scheme || !self.has_path {
            return Err(HeadFault::Malformed);
        }
        self.hosts.finish(!self.has_authority)?;
        check_target(&method, &self.incoming.target, self.limits)?;
        if ends && self.length.is_some_and(|length| length > 0) {
            return Err(HeadFault::Malformed);
        }
        self.incoming.method = method;
        self.incoming.framing = match (ends, self.length) {
            (true, _) => Framing::None,
            (false, Some(length)) => Framing::Length(length),
            (false, None) => Framing::Chunked,
        };
        Ok(())
    }
}

/// What names the server is never empty, unlike in HTTP/1.1 (section 8.3.1).
fn check_server(lines: &mut HostLines, value: &[u8]) -> Result<(), HeadFault> {
    lines.take(value)?;
    match value.is_empty() {
        true => Err(Error::BadHost.into()),
        false => Ok(()),
    }
}

/// Digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| all_digits)?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &[(&str, &str)], ends: bool) -> (Result<(), HeadFault>, Incoming) {
        let mut incoming = Incoming::default();
        let limits = Limits {
            headers_max: 5,
            target_bytes_max: 20,
            ..Limits::for_requests()
        };
        let mut reader = FieldReader::new(&mut incoming, &limits);
        for (name, value) in fields {
            reader.field(name.as_bytes(), value.as_bytes());
        }
        let read = reader.finish(ends);
        (read, incoming)
    }

    const GET: [(&str, &str); 4] = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a?b"),
        (":authority", "c:1"),
    ];

    #[test]
    fn a_request_becomes_one_of_http1() {
        let more = [
            ("cookie", "a=1"),
            ("host", "C:1"),
            ("x", "y"),
            ("cookie", "b=2"),
        ];
        let (read, incoming) = read(&[&GET[..], &more].concat(), true);
        assert_eq!(read, Ok(()));
        assert_eq!(
            (incoming.method, &incoming.target[..]),
            (Method::Get, "/a?b")
        );
        let lines: Vec<_> = incoming.headers.as_headers().iter().collect();
        let lines: Vec<_> = lines.iter().map(|line| (line.name, line.value)).collect();
        let expected = [("host", &b"c:1"[..]), ("x", b"y"), ("cookie", b"a=1; b=2")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_connect_has_its_authority_alone() {
        let fields = [(":method", "CONNECT"), (":authority", "a:1")];
        let (connect, incoming) = read(&fields, false);
        assert_eq!((connect, &incoming.target[..]), (Ok(()), "a:1"));
        assert!(
            read(&[&fields[..], &[(":path", "/")]].concat(), false)
                .0
                .is_err()
        );
        assert!(read(&fields[..1], false).0.is_err());
    }

    #[test]
    fn what_breaks_a_rule_is_malformed_and_what_passes_a_limit_is_refused() {
        for wrong in [
            ("X", "y"),
            ("a b", "c"),
            ("", "c"),
            ("x", "a\nb"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            (":status", "200"),
            (":method", "GET"),
            (":path", "/"),
            ("content-length", "5"),
            ("content-length", "-1"),
            ("cookie", "a\rb"),
        ] {
            let read = read(&[&GET[..], &[wrong]].concat(), true);
            assert_eq!(read.0, Err(HeadFault::Malformed), "{wrong:?}");
        }
        for missing in 0..3 {
            let mut fields = GET.to_vec();
            fields.remove(missing);
            assert_eq!(
                read(&fields, true).0,
                Err(HeadFault::Malformed),
                "{missing}"
            );
        }
        let late = [("x", "y"), (":authority", "a")];
        assert!(read(&[&GET[..3], &late].concat(), true).0.is_err());
        for (path, fault) in [
            ("", HeadFault::Malformed),
            ("a", HeadFault::Malformed),
            ("http://c:1/", HeadFault::Malformed),
            ("/ b", HeadFault::Wrong(Error::BadTarget)),
            ("/#", HeadFault::Wrong(Error::BadTarget)),
            ("*", HeadFault::Wrong(Error::BadTarget)),
        ] {
            let mut fields = GET.to_vec();
            fields[2].1 = path;
            assert_eq!(read(&fields, true).0, Err(fault), "{path}");
        }
        let many = [("x", "y"); 6];
        let refused = read(&[&GET[..], &many].concat(), true).0;
        assert!(matches!(refused, Err(HeadFault::Refused(431, _))));
        let mut long = GET.to_vec();
        long[2].1 = "/12345678901234567890";
        let too_long = read(&long, true).0;
        assert!(matches!(too_long, Err(HeadFault::Wrong(error)) if error.status() == 414));
    }

    #[test]
    fn an_authority_that_http1_refuses_as_host_was_taken() {
        let (wrong, lines) = (
            |error| Err(HeadFault::Wrong(error)),
            |authorities: &[(&'static str, &'static str)]| {
                read(&[&GET[..3], authorities].concat(), true).0
            },
        );
        for authority in ["", "a@b", "a:b@c", "a/b", "a?b", "a:b", "a b", "[::1"] {
            let expected = wrong(Error::BadHost);
            assert_eq!(lines(&[(":authority", authority)]), expected, "{authority}");
            assert_eq!(lines(&[("host", authority)]), expected, "{authority}");
        }
        assert_eq!(lines(&[]), wrong(Error::MissingHost));
        let two = [("host", "a"), ("host", "a")];
        assert_eq!(lines(&two), wrong(Error::RepeatedHost));
        assert_eq!(
            lines(&[&[(":authority", "a")], &two[..]].concat()),
            wrong(Error::RepeatedHost)
        );
        let differ = lines(&[(":authority", "a"), ("host", "b")]);
        assert!(matches!(differ, Err(HeadFault::Refused(400, _))));
        for fine in [
            &[("host", "a:1")][..],
            &[(":authority", "a"), ("host", "A")],
        ] {
            assert_eq!(lines(fine), Ok(()), "{fine:?}");
        }
        let connect = |authority| read(&[(":method", "CONNECT"), (":authority", authority)], false);
        assert_eq!(connect("a").0, wrong(Error::BadTarget));
    }
}
