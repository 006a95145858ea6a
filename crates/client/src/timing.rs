//! When the phases of a request ended, and the version of its response.

use std::fmt;

use prony_base::Nanos;

/// The version of HTTP of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Version {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<prony_wire::Version> for Version {
    fn from(version: prony_wire::Version) -> Version {
        match version {
            prony_wire::Version::Http10 => Version::Http10,
            prony_wire::Version::Http11 => Version::Http11,
        }
    }
}

/// When each phase of a request ended, as the time since its start. Of the last exchange,
/// where redirects or retries made several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The name was resolved; None on a connection that was reused.
    pub resolved: Option<Nanos>,
    /// The TCP connection was established.
    pub connected: Option<Nanos>,
    /// The TLS handshake was complete.
    pub secured: Option<Nanos>,
    /// The request was handed to the kernel at this time or before. Over HTTP/2, for pipelined requests, and where a
    /// body is sent apart from its head: to the loop.
    pub sent: Nanos,
    /// The loop received the bytes with the end of the head. Over HTTP/2: read them.
    pub first_byte: Nanos,
    /// The loop received the last byte of the body; None before.
    pub done: Option<Nanos>,
    /// The connection was reused.
    pub reused: bool,
}
