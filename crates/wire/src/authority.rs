//! `uri-host [ ":" port ]`: what a Host header, an absolute target and a CONNECT name
//! (RFC 3986, section 3.2.2; RFC 9110, sections 4.2 and 7.2).
//!
//! Stricter than the grammar where a name could be understood in two ways, or cannot be
//! that of a server: no host is empty, no port is above 65535, an IPv6 address has no
//! zone, and nobody's name and password stand before it.

use core::net::Ipv6Addr;

use crate::Error;

/// The Host lines of one request, checked as they come; `:authority` of HTTP/2 is checked as one.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostLines {
    count: u32,
}

impl HostLines {
    /// Takes the value of one.
    ///
    /// # Errors
    /// [`Error::BadHost`] for what is no host and port.
    #[inline]
    pub fn take(&mut self, value: &[u8]) -> Result<(), Error> {
        self.count += 1;
        // Empty where the target names no server either.
        match value.is_empty() || port_of(value).is_some() {
            true => Ok(()),
            false => Err(Error::BadHost),
        }
    }

    /// After the last line; `is_needed` where nothing else names the server.
    ///
    /// # Errors
    /// [`Error::MissingHost`], [`Error::RepeatedHost`].
    #[inline]
    pub fn finish(self, is_needed: bool) -> Result<(), Error> {
        match self.count {
            0 if is_needed => Err(Error::MissingHost),
            0 | 1 => Ok(()),
            _ => Err(Error::RepeatedHost),
        }
    }
}

/// What stands behind a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// Nothing, or a colon alone.
    Absent,
    Number(u16),
}

/// The port that `authority` has; None if it is no authority.
#[inline]
pub(crate) fn port_of(authority: &[u8]) -> Option<Port> {
    let (is_host, after) = match authority.first()? {
        b'[' => {
            let end = authority.iter().position(|&byte| byte == b']')?;
            (is_literal(&authority[1..end]), &authority[end + 1..])
        }
        _ => {
            let colon = authority.iter().position(|&byte| byte == b':');
            let (host, after) = authority.split_at(colon.unwrap_or(authority.len()));
            (is_name(host), after)
        }
    };
    match after {
        _ if !is_host => None,
        [] | [b':'] => Some(Port::Absent),
        [b':', digits @ ..] => number(digits).map(Port::Number),
        _ => None,
    }
}

/// What names a server in a target in absolute form, such as `a:80` in `http://a:80/b?c`.
/// None if it is not in this form.
#[inline]
pub(crate) fn of_target(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return None;
    }
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then(|| &rest[..rest.find(['/', '?']).unwrap_or(rest.len())])
}

fn number(digits: &[u8]) -> Option<u16> {
    digits.iter().try_fold(0_u16, |value, &digit| {
        let digit = char::from(digit).to_digit(10)?;
        value.checked_mul(10)?.checked_add(digit as u16)
    })
}

/// A registered name or an IPv4 address.
fn is_name(mut host: &[u8]) -> bool {
    if host.is_empty() {
        return false;
    }
    while let Some(at) = host.iter().position(|&byte| !is_name_byte(byte)) {
        host = match &host[at..] {
            [b'%', high, low, rest @ ..] if is_hex(*high) && is_hex(*low) => rest,
            _ => return false,
        };
    }
    true
}

/// What stands in brackets.
fn is_literal(inner: &[u8]) -> bool {
    match inner {
        [b'v' | b'V', rest @ ..] => {
            let mut parts = rest.splitn(2, |&byte| byte == b'.');
            let (version, address) = (parts.next(), parts.next());
            let is_version =
                |text: &[u8]| !text.is_empty() && text.iter().all(|&byte| is_hex(byte));
            let is_address = |text: &[u8]| {
                let allowed = |&byte: &u8| is_name_byte(byte) || byte == b':';
                !text.is_empty() && text.iter().all(allowed)
            };
            version.is_some_and(is_version) && address.is_some_and(is_address)
        }
        _ => std::str::from_utf8(inner).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    }
}

const fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

/// `unreserved` and `sub-delims` of RFC 3986, looked up, as every request's authority is checked.
const fn is_name_byte(byte: u8) -> bool {
    const NAME_BYTES: [bool; 256] = {
        let mut table = [false; 256];
        let bytes =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=";
        let mut at = 0;
        while at < bytes.len() {
            table[bytes[at] as usize] = true;
            at += 1;
        }
        table
    };
    NAME_BYTES[byte as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_and_what_only_looks_like_one() {
        for (authority, port) in [
            ("a", Port::Absent),
            ("a.b-c_d~e", Port::Absent),
            ("a:", Port::Absent),
            ("a:0", Port::Number(0)),
            ("a:080", Port::Number(80)),
            ("127.0.0.1:65535", Port::Number(65535)),
            ("[::1]", Port::Absent),
            ("[2001:DB8::7.8.9.10]:443", Port::Number(443)),
            ("[v1f.a:b]", Port::Absent),
            ("%41%c3%A9", Port::Absent),
            ("!$&'()*+,;=", Port::Absent),
        ] {
            assert_eq!(port_of(authority.as_bytes()), Some(port), "{authority}");
        }
        for wrong in [
            "",
            ":",
            ":80",
            "[",
            "]",
            "[]",
            "[::1",
            "::1",
            "::1]",
            "[::1]80",
            "[::1]:80:80",
            "[::1]a",
            "[::1]]",
            "[1.2.3.4]",
            "[:::]",
            "[::1%25eth0]",
            "[v.a]",
            "[v1.]",
            "[v1]",
            "[vg.a]",
            "a:b",
            "a:80:80",
            "a:65536",
            "a:99999999999",
            "a:-1",
            "a:+1",
            "a: 1",
            "%zz",
            "%",
            "%4",
            "a%2",
            "a b",
            "a@b",
            "a/b",
            "a?b",
            "a[b]",
            "a\\b",
            "a\"",
            "<a>",
        ] {
            assert_eq!(port_of(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(port_of(b"\xc3\xa9"), None);
        assert_eq!(port_of(b"[\xff]"), None);
    }

    #[test]
    fn an_absolute_target_names_a_server() {
        for (target, authority) in [
            ("http://a:80/b?c", Some("a:80")),
            ("http://a", Some("a")),
            ("http://a?b/c", Some("a")),
            ("http:///b", Some("")),
            ("h+2-t.p://a", Some("a")),
            ("2http://a", None),
            ("://a", None),
            ("a", None),
            ("*", None),
            ("/go?to=http://a", None),
        ] {
            assert_eq!(of_target(target), authority, "{target}");
        }
    }
}
