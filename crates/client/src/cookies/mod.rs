//! Cookies as RFC 6265 and its successor (draft-ietf-httpbis-rfc6265bis) have them.
//!
//! For: [`CookieJar`], which takes Set-Cookie lines and gives Cookie lines; time is an
//! argument. [`CookieJar::load`] and [`CookieJar::save`] keep it in a file of the format
//! that curl and wget use. Not for: SameSite, which is about pages and who embeds them.
//!
//! What a server may not set is refused, each with its reason ([`Refused`]): cookies for
//! other domains or for a public suffix such as `co.uk`, secure ones without TLS, ones that
//! break the promise of their name (`__Host-`, `__Secure-`). An address has cookies of its
//! own alone.

mod date;
mod file;

use std::collections::HashMap;
use std::fmt;

use url::{Host, Url};

pub use file::FileError;

/// The longest attribute value that is looked at, in bytes.
const ATTRIBUTE_BYTES_MAX: usize = 1_024;

/// How much a jar keeps and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieLimits {
    /// Cookies in all; the oldest goes first.
    pub cookies_max: usize,
    /// Cookies of one domain; the oldest goes first.
    pub domain_cookies_max: usize,
    /// Bytes of name and value together.
    pub cookie_bytes_max: usize,
    /// Bytes of the Cookie line of one request; those with shorter paths stay behind.
    pub header_bytes_max: usize,
}

impl Default for CookieLimits {
    /// 3,000 cookies, 50 of one domain, 4 KiB each, 8 KiB in a request.
    fn default() -> CookieLimits {
        CookieLimits {
            cookies_max: 3_000,
            domain_cookies_max: 50,
            cookie_bytes_max: 4_096,
            header_bytes_max: 8_192,
        }
    }
}

/// One cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cookie {
    /// Its name; never empty.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The domain that it is for, in lower case and without a leading dot.
    pub domain: String,
    /// Whether it is for this host alone, and not for names below it.
    pub host_only: bool,
    /// The path that it is for; begins with a slash.
    pub path: String,
    /// Whether it is sent over TLS alone.
    pub secure: bool,
    /// Whether scripts may not see it; kept for files.
    pub http_only: bool,
    /// When it ends, in seconds since 1970; None: with the session.
    pub expires: Option<u64>,
    /// Its place in the order of creation.
    order: u64,
}

impl Cookie {
    fn is_over(&self, unix_seconds: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= unix_seconds)
    }

    fn is_same(&self, other: &Cookie) -> bool {
        self.name == other.name && self.path == other.path && self.host_only == other.host_only
    }
}

/// The outcome of a Set-Cookie line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is in the jar.
    Kept,
    /// It took one out of the jar, or would have.
    Removed,
    /// It was ignored.
    Refused(Refused),
}

/// Why a Set-Cookie line was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Without a name or an equals sign, no UTF-8, or with control characters.
    Malformed,
    /// Longer than [`CookieLimits::cookie_bytes_max`].
    TooLong,
    /// Its domain is not that of the host, nor one above it.
    OtherDomain,
    /// Its domain is a public suffix, under which strangers have their names.
    PublicSuffix,
    /// Secure, or in place of a secure one, and set without TLS.
    NotSecure,
    /// Its name begins with `__Host-` or `__Secure-`, and it does not keep to what that says.
    Prefix,
}

/// Cookies of all hosts that one client talks to.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    limits: CookieLimits,
    /// By domain. INVARIANT: no list is empty.
    domains: HashMap<String, Vec<Cookie>>,
    len: usize,
    next_order: u64,
    changes: u64,
}

impl CookieJar {
    /// An empty jar.
    pub fn new(limits: CookieLimits) -> CookieJar {
        CookieJar {
            limits,
            ..CookieJar::default()
        }
    }

    /// How many cookies there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All cookies, in the order in which they were created.
    pub fn cookies(&self) -> Vec<&Cookie> {
        let mut all: Vec<&Cookie> = self.domains.values().flatten().collect();
        all.sort_by_key(|cookie| cookie.order);
        all
    }

    /// A number that grows whenever a name or value comes, changes or goes.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.changes += u64::from(self.len > 0);
        self.domains.clear();
        self.len = 0;
    }

    /// Takes in the value of a Set-Cookie line of an answer from `url`.
    pub fn store(&mut self, url: &Url, line: &[u8], unix_seconds: u64) -> Stored {
        match self.read(url, line, unix_seconds) {
            Err(refused) => Stored::Refused(refused),
            Ok(cookie) if cookie.is_over(unix_seconds) => {
                self.remove(&cookie);
                Stored::Removed
            }
            Ok(cookie) => {
                self.insert(cookie, unix_seconds);
                Stored::Kept
            }
        }
    }

    /// The value of the Cookie line for a request to `url`; None where there is none.
    pub fn header(&mut self, url: &Url, unix_seconds: u64) -> Option<String> {
        let host = url.host_str().filter(|_| self.len > 0)?;
        let is_name = matches!(url.host(), Some(Host::Domain(_)));
        let is_secure = url.scheme() == "https";
        let mut found = Vec::new();
        for domain in domains_of(host, is_name) {
            let cookies = self.domains.get(domain).into_iter().flatten();
            found.extend(cookies.filter(|cookie| {
                (!cookie.host_only || domain.len() == host.len())
                    && (is_secure || !cookie.secure)
                    && !cookie.is_over(unix_seconds)
                    && path_matches(url.path(), &cookie.path)
            }));
        }
        // Longer paths first, then older ones (RFC 6265, section 5.4).
        found.sort_by_key(|cookie| (usize::MAX - cookie.path.len(), cookie.order));
        let mut line = String::new();
        for cookie in found {
            let more = cookie.name.len() + cookie.value.len() + 3;
            if line.len() + more > self.limits.header_bytes_max {
                break;
            }
            if !line.is_empty() {
                line.push_str("; ");
            }
            line.push_str(&cookie.name);
            line.push('=');
            line.push_str(&cookie.value);
        }
        (!line.is_empty()).then_some(line)
    }

    /// Takes out what is over.
    pub fn expire(&mut self, unix_seconds: u64) {
        let before = self.len;
        self.domains.retain(|_, cookies| {
            cookies.retain(|cookie| !cookie.is_over(unix_seconds));
            !cookies.is_empty()
        });
        self.len = self.domains.values().map(Vec::len).sum();
        self.changes += u64::from(self.len != before);
    }

    fn read(&self, url: &Url, line: &[u8], unix_seconds: u64) -> Result<Cookie, Refused> {
        let text = std::str::from_utf8(line).map_err(|_| Refused::Malformed)?;
        let is_control = |byte: u8| (byte < b' ' && byte != b'\t') || byte == 0x7f;
        if text.bytes().any(is_control) {
            return Err(Refused::Malformed);
        }
        let (pair, attributes) = text.split_once(';').unwrap_or((text, ""));
        let (name, value) = pair.split_once('=').ok_or(Refused::Malformed)?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(Refused::Malformed);
        }
        if name.len() + value.len() > self.limits.cookie_bytes_max {
            return Err(Refused::TooLong);
        }
        let read = Attributes::read(attributes, unix_seconds);
        let (domain, host_only) = scope(url, read.domain)?;
        let is_secure = url.scheme() == "https";
        let cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain,
            host_only,
            path: match read.path {
                Some(path) if path.starts_with('/') => path.to_owned(),
                _ => default_path(url.path()).to_owned(),
            },
            secure: read.secure,
            http_only: read.http_only,
            expires: read.expires,
            order: 0,
        };
        if !is_secure && (cookie.secure || self.hides_secure(&cookie)) {
            return Err(Refused::NotSecure);
        }
        match keeps_prefix(&cookie, read.path) {
            true => Ok(cookie),
            false => Err(Refused::Prefix),
        }
    }

    /// Whether it would hide a secure cookie of its name.
    fn hides_secure(&self, cookie: &Cookie) -> bool {
        let same = self.domains.get(&cookie.domain).into_iter().flatten();
        same.into_iter().any(|other| {
            other.secure && other.name == cookie.name && path_matches(&cookie.path, &other.path)
        })
    }

    fn remove(&mut self, cookie: &Cookie) {
        let Some(cookies) = self.domains.get_mut(&cookie.domain) else {
            return;
        };
        let before = cookies.len();
        cookies.retain(|other| !other.is_same(cookie));
        let removed = before - cookies.len();
        if cookies.is_empty() {
            self.domains.remove(&cookie.domain);
        }
        self.len -= removed;
        self.changes += removed as u64;
    }

    fn insert(&mut self, mut cookie: Cookie, unix_seconds: u64) {
        let cookies = self.domains.entry(cookie.domain.clone()).or_default();
        if let Some(old) = cookies.iter_mut().find(|old| old.is_same(&cookie)) {
            self.changes += u64::from(old.value != cookie.value);
            cookie.order = old.order;
            *old = cookie;
            return;
        }
        cookie.order = self.next_order;
        cookies.push(cookie);
        self.next_order += 1;
        self.changes += 1;
        self.len += 1;
        self.make_room(unix_seconds);
    }

    /// Keeps the limits, after one cookie too many at the most.
    fn make_room(&mut self, unix_seconds: u64) {
        let limits = self.limits;
        let is_full = |jar: &CookieJar| {
            jar.len > limits.cookies_max
                || jar
                    .domains
                    .values()
                    .any(|cookies| cookies.len() > limits.domain_cookies_max)
        };
        if is_full(self) {
            self.expire(unix_seconds);
        }
        while is_full(self) {
            let crowded = self
                .domains
                .values()
                .find(|cookies| cookies.len() > limits.domain_cookies_max);
            let from: Vec<&Cookie> = match crowded {
                Some(cookies) => cookies.iter().collect(),
                None => self.domains.values().flatten().collect(),
            };
            let Some(oldest) = from.into_iter().min_by_key(|cookie| cookie.order) else {
                return;
            };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }
}

/// The attributes of a Set-Cookie line; of each the last counts.
#[derive(Default)]
struct Attributes<'a> {
    domain: Option<&'a str>,
    path: Option<&'a str>,
    secure: bool,
    http_only: bool,
    expires: Option<u64>,
}

impl<'a> Attributes<'a> {
    fn read(text: &'a str, unix_seconds: u64) -> Attributes<'a> {
        let mut read = Attributes::default();
        let (mut date, mut age) = (None, None);
        for attribute in text.split(';') {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let (name, value) = (name.trim(), value.trim());
            if value.len() > ATTRIBUTE_BYTES_MAX {
                continue;
            }
            match name.to_ascii_lowercase().as_str() {
                "domain" => read.domain = Some(value).filter(|value| !value.is_empty()),
                "path" => read.path = Some(value),
                "secure" => read.secure = true,
                "httponly" => read.http_only = true,
                "expires" => date = date::parse(value).or(date),
                "max-age" => age = max_age(value).or(age),
                _ => {}
            }
        }
        let by_age = age.map(|age| match age {
            0 => 0,
            age => unix_seconds.saturating_add(age),
        });
        read.expires = by_age.or(date);
        read
    }
}

/// Seconds; 0 for what is over at once. None where it is no number.
fn max_age(value: &str) -> Option<u64> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(match value.starts_with('-') {
        true => 0,
        false => digits.parse().unwrap_or(u64::MAX),
    })
}

/// The domain that a cookie is for, and whether for the host alone.
fn scope(url: &Url, domain: Option<&str>) -> Result<(String, bool), Refused> {
    let host = url.host_str().ok_or(Refused::OtherDomain)?;
    let host_only = || Ok((host.to_owned(), true));
    let Some(domain) = domain else {
        return host_only();
    };
    let domain = domain.strip_prefix('.').unwrap_or(domain);
    // In the form in which hosts are: lower case, ASCII.
    let domain = Host::parse(domain).map_err(|_| Refused::OtherDomain)?;
    let (Host::Domain(domain), Some(Host::Domain(_))) = (&domain, url.host()) else {
        // Addresses have nothing above or below them.
        return match domain.to_string() == host {
            true => host_only(),
            false => Err(Refused::OtherDomain),
        };
    };
    if is_public_suffix(domain) {
        return match domain == host {
            true => host_only(),
            false => Err(Refused::PublicSuffix),
        };
    }
    let is_above = host
        .strip_suffix(domain.as_str())
        .is_some_and(|below| below.is_empty() || below.ends_with('.'));
    match is_above {
        true => Ok((domain.clone(), false)),
        false => Err(Refused::OtherDomain),
    }
}

/// By the list that is built in; a name that is not on it counts as one when it has no dot.
fn is_public_suffix(domain: &str) -> bool {
    psl::suffix_str(domain).is_none_or(|suffix| suffix == domain)
}

fn keeps_prefix(cookie: &Cookie, path: Option<&str>) -> bool {
    let begins = |prefix: &str| {
        let start = cookie.name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if begins("__Host-") {
        return cookie.secure && cookie.host_only && path == Some("/");
    }
    cookie.secure || !begins("__Secure-")
}

/// The host and, for a name, all above it.
fn domains_of(host: &str, is_name: bool) -> impl Iterator<Item = &str> {
    let mut next = Some(host);
    std::iter::from_fn(move || {
        let this = next?;
        next = match is_name {
            true => this.split_once('.').map(|(_, above)| above),
            false => None,
        };
        Some(this)
    })
}

/// All but the last segment (RFC 6265, section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(last) => &path[..last],
    }
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || of_cookie.ends_with('/'))
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::Malformed => "a cookie without a name or with characters that none has",
            Refused::TooLong => "a cookie longer than cookie_bytes_max",
            Refused::OtherDomain => "a cookie for another domain",
            Refused::PublicSuffix => "a cookie for a public suffix",
            Refused::NotSecure => "a secure cookie, or one in its place, without TLS",
            Refused::Prefix => "a cookie that does not keep to the prefix of its name",
        })
    }
}

#[cfg(test)]
mod tests;
