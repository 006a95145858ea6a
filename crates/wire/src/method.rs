//! Methods and versions.

use std::fmt;

use crate::headers::is_token;

/// A request method. Names are case-sensitive, as HTTP has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `CONNECT`
    Connect,
    /// `DELETE`
    Delete,
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `OPTIONS`
    Options,
    /// `PATCH`
    Patch,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `TRACE`
    Trace,
    /// Any other token of at most [`MethodName::BYTES_MAX`] bytes.
    Other(MethodName),
}

impl Method {
    /// The method of this name; `None` if it is no token or too long.
    #[inline]
    pub fn from_name(name: &str) -> Option<Method> {
        Some(match name {
            "GET" => Method::Get,
            "POST" => Method::Post,
            "HEAD" => Method::Head,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "OPTIONS" => Method::Options,
            "PATCH" => Method::Patch,
            "CONNECT" => Method::Connect,
            "TRACE" => Method::Trace,
            other => Method::Other(MethodName::new(other)?),
        })
    }

    /// Its name on the wire.
    pub fn name(&self) -> &str {
        match self {
            Method::Connect => "CONNECT",
            Method::Delete => "DELETE",
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Patch => "PATCH",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Trace => "TRACE",
            Method::Other(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a method that has no variant of its own, kept in place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// INVARIANT: the first `len` bytes are token characters, the rest zero.
    bytes: [u8; MethodName::BYTES_MAX],
    len: u8,
}

impl MethodName {
    /// The longest name there can be, in bytes.
    pub const BYTES_MAX: usize = 23;

    fn new(name: &str) -> Option<MethodName> {
        let mut bytes = [0; MethodName::BYTES_MAX];
        bytes
            .get_mut(..name.len())?
            .copy_from_slice(name.as_bytes());
        is_token(name.as_bytes()).then_some(MethodName {
            bytes,
            len: name.len() as u8,
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        // Tokens are ASCII, so the fallback is never taken.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// The two versions of HTTP that are spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// As on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }

    /// From the digit after `HTTP/1.`, as `httparse` reports it.
    pub(crate) const fn from_minor(minor: Option<u8>) -> Version {
        match minor {
            Some(0) => Version::Http10,
            _ => Version::Http11,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
