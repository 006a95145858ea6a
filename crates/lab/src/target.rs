//! Where load may be sent: the parts of an `http://` address, and whether the
//! user must first say that the host is theirs.
//!
//! Not for: looking names up or connecting.
//!
//! ```
//! use prony_lab::target::{self, Target};
//! let target = Target::parse("http://127.0.0.1:8080/hello")?;
//! assert_eq!((target.host.as_str(), target.port), ("127.0.0.1", 8080));
//! target::check("127.0.0.1", &["127.0.0.1".parse().unwrap()], false)?;
//! assert!(target::check("example.org", &["93.184.215.14".parse().unwrap()], false).is_err());
//! # Ok::<(), prony_lab::target::TargetError>(())
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// The flag by which a user takes responsibility for a target.
pub const OWNERSHIP_FLAG: &str = "--yes-i-own-this-host";

/// Why a target is refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TargetError {
    /// Not `http://HOST[:PORT][/PATH]`.
    #[error("`{url}` is not an address of the form http://HOST:PORT: {why}")]
    Malformed {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It names no address at all.
    #[error("`{host}` has no address")]
    NoAddress {
        /// As given.
        host: String,
    },
    /// It is neither this machine nor in a private network.
    #[error(
        "{host} ({address}) is neither this machine nor in a private network; load sent to \
         others' hosts is an attack. If it is yours, add {OWNERSHIP_FLAG}"
    )]
    NotYours {
        /// As given.
        host: String,
        /// The address that is public.
        address: IpAddr,
    },
}

/// A parsed address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port; 80 where none is given.
    pub port: u16,
    /// Path and query; `/` where none is given.
    pub path: String,
}

impl Target {
    /// Reads `http://HOST[:PORT][/PATH]`; user names, fragments and https are refused.
    pub fn parse(url: &str) -> Result<Target, TargetError> {
        let malformed = |why| TargetError::Malformed {
            url: url.to_owned(),
            why,
        };
        if url.starts_with("https://") {
            return Err(malformed("only http is spoken, not https"));
        }
        let rest = url
            .strip_prefix("http://")
            .ok_or_else(|| malformed("it must begin with http://"))?;
        if rest.contains(|c: char| c.is_ascii_whitespace() || c.is_control() || c == '#') {
            return Err(malformed("it holds a space, a control character or a `#`"));
        }
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        if authority.contains('@') {
            return Err(malformed("it holds a user name"));
        }
        let (host, port) = split_port(authority)
            .ok_or_else(|| malformed("its port is no number from 1 to 65535"))?;
        if host.is_empty() {
            return Err(malformed("it names no host"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Target {
            host: host.to_owned(),
            port,
            path: format!("{slash}{path}"),
        })
    }

    /// `HOST:PORT`, with brackets around an IPv6 address: what `Host` says and one connects to.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Splits `HOST[:PORT]` or `[ADDRESS][:PORT]`.
fn split_port(authority: &str) -> Option<(&str, u16)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => match authority.split_once(':') {
            Some((host, _)) => (host, &authority[host.len()..]),
            None => (authority, ""),
        },
    };
    if rest.is_empty() {
        return Some((host, 80));
    }
    let digits = rest.strip_prefix(':')?;
    let port = digits.parse().ok().filter(|&port| port > 0)?;
    digits
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then_some((host, port))
}

/// Whether load may go to `host`, which was looked up as `addresses`; `owned`:
/// the user gave [`OWNERSHIP_FLAG`]. One public address among them is enough to refuse.
pub fn check(host: &str, addresses: &[IpAddr], owned: bool) -> Result<(), TargetError> {
    if addresses.is_empty() {
        return Err(TargetError::NoAddress {
            host: host.to_owned(),
        });
    }
    match addresses.iter().find(|&&address| !is_private(address)) {
        Some(&address) if !owned => Err(TargetError::NotYours {
            host: host.to_owned(),
            address,
        }),
        _ => Ok(()),
    }
}

/// Whether an address is this machine or in a private network:
/// loopback, RFC 1918, RFC 4193, link-local; 0.0.0.0 and :: reach this machine.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => v6
            .to_ipv4_mapped()
            .map_or_else(|| is_private_v6(v6), is_private_v4),
    }
}

/// Where clouds answer for their own services: link-local, but not the user's.
const CLOUD_METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);

fn is_private_v4(address: Ipv4Addr) -> bool {
    let near = address.is_loopback() || address.is_private() || address.is_link_local();
    (near && address != CLOUD_METADATA) || address.is_unspecified()
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(url: &str) -> (String, u16, String) {
        let target = Target::parse(url).expect("a good address");
        (target.host, target.port, target.path)
    }

    #[test]
    fn the_parts_of_an_address() {
        assert_eq!(parts("http://a.b"), ("a.b".into(), 80, "/".into()));
        assert_eq!(
            parts("http://a:81/x?y=1"),
            ("a".into(), 81, "/x?y=1".into())
        );
        assert_eq!(parts("http://a?y"), ("a".into(), 80, "/?y".into()));
        assert_eq!(parts("http://[::1]:9/"), ("::1".into(), 9, "/".into()));
    }

    #[test]
    fn what_is_no_address_is_refused_with_its_reason() {
        for url in [
            "",
            "127.0.0.1:80",
            "https://a",
            "http://",
            "http://:80",
            "http://a:",
            "http://a:0",
            "http://a:65536",
            "http://a:+1",
            "http://u@a",
            "http://a/ b",
            "http://a/#x",
            "http://[::1",
            "http://[::1]x",
            "http://::1",
        ] {
            let error = Target::parse(url).expect_err(url).to_string();
            assert!(error.contains(url), "{error}");
        }
    }

    #[test]
    fn private_networks_are_free_and_others_are_not() {
        let private = |text: &str| is_private(text.parse().expect(text));
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.1.1",
            "0.0.0.0",
            "::1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(private(address), "{address}");
        }
        for address in [
            "8.8.8.8",
            "172.32.0.1",
            "172.15.0.1",
            "192.169.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "2001:db8::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(!private(address), "{address}");
        }
    }

    #[test]
    fn one_public_address_among_private_ones_is_refused_unless_owned() {
        let addresses = ["127.0.0.1".parse().unwrap(), "8.8.8.8".parse().unwrap()];
        let error = check("x.test", &addresses, false).unwrap_err().to_string();
        assert!(
            error.contains("8.8.8.8") && error.contains(OWNERSHIP_FLAG),
            "{error}"
        );
        assert_eq!(check("x.test", &addresses, true), Ok(()));
        assert!(check("x.test", &[], true).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_parsing_panic(url in ".{0,60}") {
            let _ = Target::parse(&url);
            let _ = Target::parse(&format!("http://{url}"));
        }
    }
}
