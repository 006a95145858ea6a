//! How the generator speaks with a server in a cell: the settings `protocol`, `streams`, `pipeline`,
//! `requests_per_connection`, `resumption` and `spin`, whose values have a meaning of their own. Pure.
//!
//! ```
//! use prony_lab::experiment::Spoken;
//! use prony_record::{Cell, HttpProtocol};
//! let settings = [("protocol", "h2"), ("streams", "10")].map(|(name, value)| (name.into(), value.into()));
//! let spoken = Spoken::from_cell(&Cell { settings: settings.into(), ..Cell::default() });
//! assert!(spoken.is_secure && spoken.protocol == HttpProtocol::Http2 && spoken.depth == 10);
//! ```

use std::ops::RangeInclusive;

use prony_record::{Cell, HttpProtocol};

use super::words::short;
use crate::diagnosis::suggest;

/// The setting whose value is the protocol.
pub const PROTOCOL: &str = "protocol";
/// Plain HTTP/1.1, which every server speaks.
pub const PLAIN: &str = "http";
/// HTTP/1.1 over TLS.
const SECURE: &str = "https";
/// HTTP/2 over TLS, chosen by ALPN.
const HTTP2: &str = "h2";
/// HTTP/2 without TLS, by prior knowledge.
const PLAIN_HTTP2: &str = "h2c";
/// All protocols.
pub const PROTOCOLS: [&str; 4] = [PLAIN, SECURE, HTTP2, PLAIN_HTTP2];

const STREAMS: &str = "streams";
/// The setting whose value is how many requests of HTTP/1.1 are outstanding on a connection.
pub const PIPELINE: &str = "pipeline";
const REQUESTS_PER_CONNECTION: &str = "requests_per_connection";
const RESUMPTION: &str = "resumption";
/// The setting that says whether threads that few connections keep waiting look for answers before they sleep.
const SPIN: &str = "spin";
/// All that the generator is told, beside the protocol.
const OF_GENERATOR: [&str; 5] = [STREAMS, PIPELINE, REQUESTS_PER_CONNECTION, RESUMPTION, SPIN];

/// Requests that may be outstanding on a connection.
const DEPTHS: RangeInclusive<u64> = 1..=1_000;
/// Requests that a connection carries.
const REQUESTS: RangeInclusive<u64> = 1..=1_000_000_000;
/// The value of `requests_per_connection` that sets no limit.
const ANY: &str = "any";

/// How a cell's requests go over its connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Spoken {
    /// TLS under HTTP.
    pub is_secure: bool,
    /// What is spoken, under TLS or not.
    pub protocol: HttpProtocol,
    /// Requests that may be outstanding on a connection: its streams, or its pipeline.
    pub depth: u32,
    /// Requests that a connection carries; `None`: any number.
    pub requests_per_connection: Option<u64>,
    /// Whether a handshake may go on from an earlier session.
    pub resumes: bool,
    /// Whether threads that few connections keep waiting look for answers before they sleep.
    pub looks: bool,
}

impl Spoken {
    /// What the settings of `cell` say; plain HTTP/1.1 on kept connections, one request at a time, where they say nothing.
    pub fn from_cell(cell: &Cell) -> Spoken {
        let value = |name: &str| cell.settings.get(name).map(String::as_str);
        let (is_secure, protocol) = protocol(value(PROTOCOL));
        Spoken {
            is_secure,
            protocol,
            depth: value(depth_setting(protocol))
                .and_then(|text| text.parse().ok())
                .unwrap_or(1),
            requests_per_connection: value(REQUESTS_PER_CONNECTION)
                .and_then(|text| text.parse().ok()),
            resumes: value(RESUMPTION) != Some("off"),
            looks: value(SPIN) != Some("off"),
        }
    }

    /// The setting that asks for several requests at once, and how many, on connections that carry a limited number of
    /// requests and so one at a time.
    pub fn contradiction(&self) -> Option<((&'static str, u32), u64)> {
        let requests = self.requests_per_connection?;
        let name = depth_setting(self.protocol);
        (self.depth > 1).then_some(((name, self.depth), requests))
    }

    /// Whether it is what wrk does: plain HTTP/1.1, one request after another on connections that are kept.
    pub fn is_plain(&self) -> bool {
        !self.is_secure
            && self.protocol == HttpProtocol::Http1
            && self.depth == 1
            && self.requests_per_connection.is_none()
    }
}

/// Whether it is under TLS, and what is spoken there.
fn protocol(value: Option<&str>) -> (bool, HttpProtocol) {
    match value {
        Some(SECURE) => (true, HttpProtocol::Http1),
        Some(HTTP2) => (true, HttpProtocol::Http2),
        Some(PLAIN_HTTP2) => (false, HttpProtocol::Http2),
        _ => (false, HttpProtocol::Http1),
    }
}

/// The setting that says how many requests may be outstanding on a connection.
fn depth_setting(protocol: HttpProtocol) -> &'static str {
    match protocol {
        HttpProtocol::Http1 => PIPELINE,
        HttpProtocol::Http2 => STREAMS,
    }
}

/// Whether the value of the setting [`PROTOCOL`] is HTTP/2.
pub fn is_http2(value: &str) -> bool {
    protocol(Some(value)).1 == HttpProtocol::Http2
}

/// Whether the setting `name` is about how the generator speaks.
pub fn is_spoken(name: &str) -> bool {
    name == PROTOCOL || OF_GENERATOR.contains(&name)
}

/// Whether the setting `name` says something where the protocol is `spoken`: only HTTP/2 has streams, only HTTP/1.1 a
/// pipeline, and only TLS has sessions.
pub fn has_meaning(name: &str, spoken: &str) -> bool {
    let (is_secure, protocol) = protocol(Some(spoken));
    match name {
        STREAMS | PIPELINE => name == depth_setting(protocol),
        RESUMPTION => is_secure,
        _ => true,
    }
}

/// The problem with `value` of a setting of the generator, and its remedy; `None` for other settings.
pub fn value_problem(name: &str, value: &str) -> Option<(String, String)> {
    let number = value.parse().unwrap_or(0_u64);
    let (is_right, help) = match name {
        PROTOCOL => (
            PROTOCOLS.contains(&value),
            suggest(value, "protocol", &PROTOCOLS),
        ),
        RESUMPTION => (
            ["on", "off"].contains(&value),
            "values = [\"on\", \"off\"]".to_owned(),
        ),
        SPIN => (
            ["auto", "off"].contains(&value),
            "values = [\"auto\", \"off\"]".to_owned(),
        ),
        REQUESTS_PER_CONNECTION => (
            value == ANY || REQUESTS.contains(&number),
            "values = [\"any\", 1]: \"any\", or requests from 1 to 1000000000".to_owned(),
        ),
        STREAMS | PIPELINE => (
            DEPTHS.contains(&number),
            "values = [1, 10]: whole numbers from 1 to 1000".to_owned(),
        ),
        _ => return None,
    };
    let message = || format!("`{}` is no value of `{name}`", short(value));
    (!is_right).then(|| (message(), help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(settings: &[(&str, &str)]) -> Spoken {
        let settings = settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Spoken::from_cell(&Cell {
            settings: settings.collect(),
            ..Cell::default()
        })
    }

    #[test]
    fn a_cell_without_settings_is_plain_and_kept() {
        let plain = spoken(&[]);
        assert!(plain.is_plain() && plain.resumes && plain.looks);
        assert_eq!(plain, spoken(&[("protocol", "http"), ("pipeline", "1")]));
        assert_eq!(plain, spoken(&[("requests_per_connection", "any")]));
    }

    #[test]
    fn what_is_not_of_the_protocol_says_nothing() {
        let deep = spoken(&[("protocol", "https"), ("streams", "9"), ("pipeline", "4")]);
        assert!((deep.is_secure, deep.protocol, deep.depth) == (true, HttpProtocol::Http1, 4));
        let streams = spoken(&[("protocol", "h2c"), ("streams", "9"), ("pipeline", "4")]);
        assert!(
            (streams.is_secure, streams.protocol, streams.depth) == (false, HttpProtocol::Http2, 9)
        );
        assert!(!has_meaning(STREAMS, SECURE) && has_meaning(STREAMS, HTTP2));
        assert!(!has_meaning(PIPELINE, PLAIN_HTTP2) && has_meaning(PIPELINE, PLAIN));
        assert!(!has_meaning(RESUMPTION, PLAIN_HTTP2) && has_meaning(RESUMPTION, SECURE));
        assert!(has_meaning("logging", PLAIN));
    }

    #[test]
    fn each_of_them_keeps_a_cell_from_what_wrk_does() {
        for (name, value) in [
            ("protocol", "https"),
            ("protocol", "h2c"),
            ("pipeline", "2"),
            ("requests_per_connection", "1"),
        ] {
            assert!(!spoken(&[(name, value)]).is_plain(), "{name}={value}");
            assert!(is_spoken(name));
        }
    }
}
