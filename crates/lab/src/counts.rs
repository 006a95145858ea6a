//! The numbers that a server has counted, read from its answer by the patterns of its
//! `subject.toml`, without the requests that asked for them. Pure.
//!
//! Not for: asking ([`crate::trial`]), or comparing with what a client counted
//! ([`prony_record::agreement`]).
//!
//! ```
//! use prony_lab::counts::Patterns;
//! use prony_record::CountsSign;
//! let sign = CountsSign {
//!     path: "/nginx_status".into(),
//!     requests: r"requests\s+\d+ \d+ (?<requests>\d+)".into(),
//!     bytes: String::new(),
//!     own_requests: 1,
//!     refresh_ns: 0,
//! };
//! let text = b"server accepts handled requests\n 3 3 120\n";
//! let reading = Patterns::new(&sign)?.read(text)?;
//! assert_eq!(reading.requests, 120);
//! # Ok::<(), String>(())
//! ```

use prony_record::{CountsSign, PeerCounts};
use regex::Regex;

use crate::experiment::words::short;
use crate::printed::compiled;

/// The group that is the number of requests.
pub const REQUESTS: &str = "requests";
/// The group that is the number of bytes.
pub const BYTES: &str = "bytes";
/// Bytes of an answer in which the numbers are looked for.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;

/// Compiles a pattern that must have a group of this name. The error says what is wrong.
pub fn pattern(text: &str, group: &str) -> Result<Regex, String> {
    let regex = compiled(text)?;
    if !regex.capture_names().flatten().any(|name| name == group) {
        return Err(format!("no group is the number, such as `(?<{group}>…)`"));
    }
    Ok(regex)
}

/// The compiled patterns of a sign.
#[derive(Clone, Debug)]
pub struct Patterns {
    requests: Regex,
    bytes: Option<Regex>,
}

/// What a server said once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Reading {
    /// Requests so far.
    pub requests: u64,
    /// Bytes of bodies so far; `None`: it does not say.
    pub bytes: Option<u64>,
    /// Bytes of the body that said so.
    pub own_bytes: u64,
}

impl Patterns {
    /// Compiles those of `sign`. The error says what is wrong with which.
    pub fn new(sign: &CountsSign) -> Result<Patterns, String> {
        let of = |group: &str, text: &str| {
            pattern(text, group).map_err(|why| format!("the pattern of `{group}`: {why}"))
        };
        let bytes = (!sign.bytes.is_empty()).then(|| of(BYTES, &sign.bytes));
        Ok(Patterns {
            requests: of(REQUESTS, &sign.requests)?,
            bytes: bytes.transpose()?,
        })
    }

    /// Reads the body of an answer.
    pub fn read(&self, body: &[u8]) -> Result<Reading, String> {
        let text = String::from_utf8_lossy(&body[..body.len().min(ANSWER_BYTES_MAX)]);
        let bytes = self.bytes.as_ref().map(|regex| number(regex, BYTES, &text));
        Ok(Reading {
            requests: number(&self.requests, REQUESTS, &text)?,
            bytes: bytes.transpose()?,
            own_bytes: body.len() as u64,
        })
    }
}

fn number(regex: &Regex, group: &str, text: &str) -> Result<u64, String> {
    let missing = || format!("no `{group}` in its counts: {}", short(text.trim()));
    let found = regex.captures(text).ok_or_else(missing)?;
    let number = found.name(group).ok_or_else(missing)?.as_str();
    let wrong = |_| format!("its `{group}` is `{}`, which is no number", short(number));
    number.parse().map_err(wrong)
}

/// Readings of one server in order, and what it counted between them.
#[derive(Clone, Debug, Default)]
pub struct Readings {
    own_requests: u64,
    all: Vec<Reading>,
    /// Place of the last reading before the client started.
    before: Option<usize>,
}

impl Readings {
    /// None yet. `own_requests`: by how much one raises what the next one says.
    pub fn new(own_requests: u64) -> Readings {
        Readings {
            own_requests,
            ..Readings::default()
        }
    }

    /// One more; true when nothing but the last reading itself was counted since that one.
    pub fn add(&mut self, reading: Reading) -> bool {
        self.all.push(reading);
        self.settled()
    }

    /// Forgets what was read so far but the last reading: what comes is counted from it.
    pub fn start(&mut self) {
        self.all = self.all.split_off(self.all.len().saturating_sub(1));
        self.before = self.all.len().checked_sub(1);
    }

    fn settled(&self) -> bool {
        let (Some((last, rest)), after) = (self.all.split_last(), self.before) else {
            return false;
        };
        let Some(one) = rest
            .last()
            .filter(|_| after.is_none_or(|at| rest.len() > at + 1))
        else {
            return false;
        };
        let of_lab = last.requests.checked_sub(one.requests) == Some(self.own_requests);
        of_lab && self.own_bytes(one, last).is_some()
    }

    /// Bytes that the reading `one` added to what `last` says, all of its body or nothing;
    /// `None`: something else moved, too.
    fn own_bytes(&self, one: &Reading, last: &Reading) -> Option<bool> {
        let (Some(from), Some(to)) = (one.bytes, last.bytes) else {
            return Some(false);
        };
        match to.checked_sub(from)? {
            0 => Some(false),
            rise if rise == one.own_bytes => Some(true),
            _ => None,
        }
    }

    /// What was counted from [`Readings::start`] to the last reading, without the readings
    /// themselves. `source`: where it counts, in words.
    pub fn counted(&self, source: &str) -> PeerCounts {
        let mut counts = PeerCounts {
            source: source.to_owned(),
            ..PeerCounts::default()
        };
        let Some((from, rest)) = self.before.and_then(|at| self.all.get(at..)?.split_first())
        else {
            return counts;
        };
        let Some((last, between)) = rest.split_last() else {
            return counts;
        };
        let readings = self.own_requests * rest.len() as u64;
        let risen = last.requests.checked_sub(from.requests);
        counts.requests = risen.and_then(|risen| risen.checked_sub(readings));
        let is_own = between
            .last()
            .is_some_and(|one| self.own_bytes(one, last) == Some(true));
        let of_lab: u64 = match is_own {
            true => std::iter::once(from)
                .chain(between)
                .map(|r| r.own_bytes)
                .sum(),
            false => 0,
        };
        let risen = from
            .bytes
            .zip(last.bytes)
            .and_then(|(from, to)| to.checked_sub(from));
        counts.bytes = risen.and_then(|risen| risen.checked_sub(of_lab));
        counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_says_what_is_wrong_with_it() {
        assert!(pattern("(", REQUESTS).unwrap_err().contains("unclosed"));
        assert!(pattern("a", REQUESTS).unwrap_err().contains("(?<requests>"));
        assert!(pattern(&"a".repeat(2_000), REQUESTS).is_err());
    }

    #[test]
    fn an_answer_without_the_numbers_is_named() {
        let sign = CountsSign {
            requests: "n=(?<requests>[^ ]+)".to_owned(),
            bytes: "b=(?<bytes>\\d+)".to_owned(),
            ..CountsSign::default()
        };
        let patterns = Patterns::new(&sign).unwrap();
        let readings =
            [&b"404"[..], b"n=x b=1", b"n=1", b"n=1 b=2"].map(|body| patterns.read(body));
        let readings =
            readings.map(|readings| readings.map_or_else(|error| error, |r| format!("{r:?}")));
        insta::assert_snapshot!(readings.join("\n"), @r"
        no `requests` in its counts: 404
        its `requests` is `x`, which is no number
        no `bytes` in its counts: n=1
        Reading { requests: 1, bytes: Some(2), own_bytes: 7 }
        ");
    }

    /// A server that counts what it is asked.
    struct Server {
        requests: u64,
        bytes: u64,
        own_requests: u64,
        counts_own_bytes: bool,
    }

    impl Server {
        fn reading(&mut self) -> Reading {
            let reading = Reading {
                requests: self.requests,
                bytes: Some(self.bytes),
                own_bytes: self.bytes.to_string().len() as u64,
            };
            self.requests += self.own_requests;
            if self.counts_own_bytes {
                self.bytes += reading.own_bytes;
            }
            reading
        }

        fn settle(&mut self, readings: &mut Readings) {
            while !readings.add(self.reading()) {}
        }
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_the_client_did(
            start: u32, requests: u32, bytes: u32, late in 0_u64..3, own_requests in 0_u64..2, counts_own_bytes: bool,
        ) {
            let mut server = Server {
                requests: start.into(), bytes: u64::from(start) * 3, own_requests, counts_own_bytes,
            };
            let mut readings = Readings::new(own_requests);
            server.settle(&mut readings);
            readings.start();
            server.requests += u64::from(requests);
            server.bytes += u64::from(bytes);
            // Some of it is counted only after the client has ended, between two readings.
            for _ in 0..late {
                let settled = readings.add(server.reading());
                prop_assert!(!settled);
                server.requests += 2;
                server.bytes += 1_000_003;
            }
            server.settle(&mut readings);
            let counted = readings.counted("here");
            prop_assert_eq!(counted.requests, Some(u64::from(requests) + 2 * late));
            prop_assert_eq!(counted.bytes, Some(u64::from(bytes) + 1_000_003 * late));
        }
    }
}
