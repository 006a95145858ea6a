//! Where load may be sent: the `http://` or `https://` address of a server that runs already, and whether
//! the user must first say that the host is theirs.
//!
//! Not for: looking names up or connecting.
//!
//! ```
//! use prony_load::target;
//! let target = target::read("http://127.0.0.1:8080/hello")?;
//! assert_eq!((target.host.as_str(), target.port), ("127.0.0.1", 8080));
//! target::check("127.0.0.1", &["127.0.0.1".parse().unwrap()], false)?;
//! assert!(target::check("example.org", &["93.184.215.14".parse().unwrap()], false).is_err());
//! # Ok::<(), prony_load::target::TargetError>(())
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::prepare::{LoadUrl, LoadUrlError};
use prony_wire::url::ShownUrl;
use thiserror::Error;

/// The flag by which a user takes responsibility for a target.
pub const OWNERSHIP_FLAG: &str = "--yes-i-own-this-host";

/// Why a target is refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum TargetError {
    /// Not `http://HOST[:PORT][/PATH]` or the same with `https`.
    #[error("`{url}` is not an address of the form http://HOST:PORT: {why}")]
    Malformed {
        /// As given.
        url: String,
        /// What is wrong with it.
        why: String,
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

/// Reads `http://HOST[:PORT][/PATH]`, or the same with `https`; user names, fragments and a missing scheme are refused.
pub fn read(url: &str) -> Result<LoadUrl, TargetError> {
    let malformed = |why: &str| TargetError::Malformed {
        url: ShownUrl::new(url).to_string(),
        why: why.to_owned(),
    };
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(malformed("it must begin with http:// or https://"));
    }
    if url.contains('#') {
        return Err(malformed("it holds a `#`"));
    }
    LoadUrl::parse(url).map_err(|error| match error {
        LoadUrlError::Malformed { why, .. } => malformed(&why),
        LoadUrlError::Credentials(_) => malformed("it holds a user name"),
        other => malformed(&other.to_string()),
    })
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
        let target = read(url).expect("a good address");
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
            "ftp://a",
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
            let error = read(url).expect_err(url).to_string();
            // Whoever logs in is not shown.
            let shown = url.replace("u@", "***@");
            assert!(error.contains(&shown), "{error}");
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
            let _ = read(&url);
            let _ = read(&format!("http://{url}"));
        }
    }
}
