//! Which proxy to use for which host, and where these rules come from.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use crate::auth;
use crate::error::{Error, Kind, RequestPhase};
use crate::origin::{self, Origin};
use percent_encoding::percent_decode_str;

/// One proxy. Equal proxies share connections.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    origin: Origin,
    authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    /// Without credentials, which must not be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.origin.secure { "https" } else { "http" };
        write!(f, "Proxy({scheme}://{})", self.origin.authority())
    }
}

impl Proxy {
    /// The proxy at `http://[user:password@]host[:port]`, or `https://` for TLS to the proxy
    /// itself. A bare `host:port` is http. The port is 80
    /// or 443 where none is named.
    ///
    /// # Errors
    /// [`Kind::BadUrl`] in [`RequestPhase::Proxy`].
    pub fn new(url: &str) -> Result<Proxy, Error> {
        let bad = |why: String| {
            let text = format!("the proxy's address cannot be used: {why}");
            Error::new(RequestPhase::Proxy, Kind::BadUrl(text))
        };
        let text = match url.contains("://") {
            true => url.to_owned(),
            false => format!("http://{url}"),
        };
        let parsed = origin::parse(&text).map_err(|error| bad(error.kind().to_string()))?;
        let origin = Origin::from_url(&parsed).map_err(|error| bad(error.kind().to_string()))?;
        let mut proxy = Proxy {
            origin,
            authorization: None,
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let decoded = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
            let user = decoded(parsed.username());
            let password = decoded(parsed.password().unwrap_or_default());
            proxy.authorization = Some(auth::basic(&user, &password));
        }
        Ok(proxy)
    }

    /// The same with these credentials.
    #[must_use]
    pub fn credentials(mut self, user: &str, password: &str) -> Proxy {
        self.authorization = Some(auth::basic(user.as_bytes(), password.as_bytes()));
        self
    }

    /// Its endpoint, and whether it is reached by TLS.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The value of a Proxy-Authorization header, where there are credentials.
    pub fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }
}

/// Which proxy to use for which host. By default: none.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Arc<Proxy>>,
    https: Option<Arc<Proxy>>,
    direct: Vec<Direct>,
}

impl Proxies {
    /// This proxy for everything.
    pub fn all(proxy: Proxy) -> Proxies {
        let proxy = Arc::new(proxy);
        Proxies {
            http: Some(proxy.clone()),
            https: Some(proxy),
            direct: Vec::new(),
        }
    }

    /// One for http, one for https.
    pub fn by_scheme(http: Option<Proxy>, https: Option<Proxy>) -> Proxies {
        Proxies {
            http: http.map(Arc::new),
            https: https.map(Arc::new),
            direct: Vec::new(),
        }
    }

    /// The proxies of the environment: `http_proxy`, `https_proxy`, `all_proxy`, and in
    /// `no_proxy` the hosts that are reached directly. Names in capitals are used where there
    /// are none in small letters, except for `HTTP_PROXY`: under CGI, a request's `Proxy`
    /// header sets it.
    ///
    /// # Errors
    /// [`Kind::BadUrl`] for a proxy's address.
    pub fn from_environment() -> Result<Proxies, Error> {
        Proxies::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`from_environment`](Proxies::from_environment), from another source of variables.
    ///
    /// # Errors
    /// As there.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Proxies, Error> {
        let first = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| variable(name));
            found.find(|value| !value.trim().is_empty())
        };
        let proxy = |names: &[&str]| {
            let url = first(names);
            url.map(|url| Proxy::new(url.trim())).transpose()
        };
        let http = proxy(&["http_proxy", "all_proxy", "ALL_PROXY"])?;
        let https = proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])?;
        let direct = first(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        Ok(Proxies::by_scheme(http, https).except(&direct))
    }

    /// The same, but directly to these hosts, separated by commas: `example.com` (and its
    /// subdomains), `10.0.0.1`, `10.0.0.0/8`, each with `:port` for this port alone, or `*` for
    /// all.
    #[must_use]
    pub fn except(mut self, hosts: &str) -> Proxies {
        let words = hosts.split([',', ' ']).map(str::trim);
        self.direct.extend(words.filter_map(Direct::parse));
        self
    }

    /// The proxy that a request in http to this origin is sent to in absolute form; None where
    /// there is none, and for https, which goes through a tunnel.
    pub(crate) fn forward(&self, origin: &Origin) -> Option<&Arc<Proxy>> {
        self.for_origin(origin).filter(|_| !origin.secure)
    }

    /// The proxy for an origin; None where requests go directly.
    pub fn for_origin(&self, origin: &Origin) -> Option<&Arc<Proxy>> {
        let proxy = match origin.secure {
            true => self.https.as_ref(),
            false => self.http.as_ref(),
        }?;
        let is_direct = self.direct.iter().any(|direct| direct.covers(origin));
        (!is_direct).then_some(proxy)
    }
}

/// A word of `no_proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Direct {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// A name and all below it, in small letters.
    Below(String),
    /// Addresses that share so many bits with this one.
    Net(IpAddr, u32),
}

impl Direct {
    fn parse(word: &str) -> Option<Direct> {
        if word.is_empty() {
            return None;
        }
        let of = |hosts, port| Some(Direct { hosts, port });
        if word == "*" {
            return of(Hosts::All, None);
        }
        if let Some(hosts) = net(word) {
            return of(hosts, None);
        }
        let (host, port) = match word.rsplit_once(':') {
            Some((host, port)) => (host, Some(u16::from_str(port).ok()?)),
            None => (word, None),
        };
        let below = || Hosts::Below(host.trim_matches('.').to_ascii_lowercase());
        of(net(host).unwrap_or_else(below), port)
    }

    fn covers(&self, origin: &Origin) -> bool {
        if self.port.is_some_and(|port| port != origin.port) {
            return false;
        }
        match &self.hosts {
            Hosts::All => true,
            Hosts::Below(name) => {
                let host = origin.host.trim_end_matches('.');
                let before = host.len().checked_sub(name.len());
                before.is_some_and(|before| {
                    let ends = host.as_bytes()[before..].eq_ignore_ascii_case(name.as_bytes());
                    ends && (before == 0 || host.as_bytes()[before - 1] == b'.')
                })
            }
            Hosts::Net(net, bits) => {
                let address = IpAddr::from_str(&origin.host);
                address.is_ok_and(|address| shares(*net, address, *bits))
            }
        }
    }
}

fn net(word: &str) -> Option<Hosts> {
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => (address, Some(u32::from_str(bits).ok()?)),
        None => (word, None),
    };
    let bare = address.trim_start_matches('[').trim_end_matches(']');
    let address = IpAddr::from_str(bare).ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    Some(Hosts::Net(address, bits.unwrap_or(most).min(most)))
}

fn shares(net: IpAddr, address: IpAddr, bits: u32) -> bool {
    match (net, address) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let differ = net.to_bits() ^ address.to_bits();
            differ.leading_zeros() >= bits
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let differ = net.to_bits() ^ address.to_bits();
            differ.leading_zeros() >= bits
        }
        _ => false,
    }
}

/// The request target of a request that is sent to a proxy: the absolute form, without
/// credentials and fragment (RFC 9112, section 3.2.2).
pub fn absolute_form(authority: &str, path: &str) -> String {
    format!("http://{authority}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str) -> Origin {
        Origin::from_url(&origin::parse(url).expect("a URL")).expect("an origin")
    }

    fn of_variables(variables: &[(&str, &str)]) -> Proxies {
        let find = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Proxies::from_variables(find).expect("good addresses")
    }

    #[test]
    fn the_environment_names_a_proxy_for_each_scheme() {
        let proxies = of_variables(&[
            ("http_proxy", "http://one:3128"),
            ("HTTPS_PROXY", "two:8080"),
            ("no_proxy", "local.test, 10.0.0.0/8,.inner.test"),
        ]);
        let host = |url: &str| {
            let proxy = proxies.for_origin(&origin(url));
            proxy.map(|proxy| proxy.origin().authority())
        };
        assert_eq!(host("http://a.test/").as_deref(), Some("one:3128"));
        assert_eq!(host("https://a.test/").as_deref(), Some("two:8080"));
        for direct in [
            "http://local.test/",
            "https://deep.LOCAL.test/",
            "http://10.1.2.3:99/",
            "http://x.inner.test/",
        ] {
            assert_eq!(host(direct), None, "{direct}");
        }
        for proxied in ["http://notlocal.test/", "http://11.0.0.1/", "http://[::1]/"] {
            assert!(host(proxied).is_some(), "{proxied}");
        }
    }

    #[test]
    fn nothing_in_the_environment_is_no_proxy() {
        assert!(of_variables(&[]).for_origin(&origin("http://a/")).is_none());
        // What a request's header can set is not heeded.
        let cgi = of_variables(&[("HTTP_PROXY", "http://evil:1")]);
        assert!(cgi.for_origin(&origin("http://a/")).is_none());
        let star = of_variables(&[("all_proxy", "http://p:1"), ("no_proxy", "*")]);
        assert!(star.for_origin(&origin("https://a/")).is_none());
    }

    #[test]
    fn exceptions_know_ports_and_addresses() {
        let proxies = Proxies::all(Proxy::new("p:1").expect("fine"))
            .except("a.test:8080,[::1],fe80::/10,192.168.1.1");
        let is_direct = |url: &str| proxies.for_origin(&origin(url)).is_none();
        assert!(is_direct("http://a.test:8080/"));
        assert!(!is_direct("http://a.test/"));
        assert!(is_direct("http://[::1]:5/"));
        assert!(is_direct("http://[fe80::7]/"));
        assert!(!is_direct("http://[fd00::7]/"));
        assert!(is_direct("http://192.168.1.1/"));
        assert!(!is_direct("http://192.168.1.2/"));
    }

    #[test]
    fn credentials_come_from_the_address_or_apart_and_are_not_shown() {
        let proxy = Proxy::new("http://a%40b:c%3Ad@p:1").expect("fine");
        let wanted = auth::basic(b"a@b", b"c:d");
        assert_eq!(proxy.authorization(), Some(wanted.as_str()));
        assert_eq!(format!("{proxy:?}"), "Proxy(http://p:1)");
        let other = Proxy::new("p:1").expect("fine").credentials("a@b", "c:d");
        assert_eq!(proxy, other);
        assert_ne!(proxy, Proxy::new("p:1").expect("fine"));
    }

    #[test]
    fn a_bad_address_is_told_as_the_proxys() {
        for bad in ["socks5://p:1", "http://", "http://p:99999"] {
            let error = Proxy::new(bad).expect_err(bad);
            assert_eq!(error.phase(), RequestPhase::Proxy);
            let text = error.to_string();
            assert!(text.contains("the proxy's address"), "{text}");
        }
    }
}
