//! Where an answer with a Location leads, and what goes along.
//!
//! For: deciding, from values alone, whether and how a request is sent again elsewhere:
//! [`Chain::next`] takes an answer and gives the [`Hop`] to make, or none, or an error by
//! name. Not for: sending anything, cookies, or the answers that ask for credentials.
//!
//! The method changes as browsers change it and RFC 9110 (section 15.4) allows: 303 makes a
//! GET of all but HEAD, 301 and 302 make a GET of POST, 307 and 308 keep method and body.
//! Credentials in headers ([`Hop::keeps`]) never go to another origin, nor from HTTPS to
//! HTTP. No Referer is sent at all.

use prony_wire::Method;
use url::Url;

/// The longest Location that is followed, in bytes.
pub const LOCATION_BYTES_MAX: usize = 8_192;

/// Which answers are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// None: the answer itself is the result.
    None,
    /// All, but at most so many in a row.
    Follow {
        /// Hops that are made; one more is [`RedirectError::TooMany`].
        hops_max: u32,
    },
    /// Those to the host that the request named first, on any port; one that leads away is
    /// [`RedirectError::OtherHost`].
    SameHost {
        /// Hops that are made; one more is [`RedirectError::TooMany`].
        hops_max: u32,
    },
}

impl Default for RedirectPolicy {
    /// At most ten.
    fn default() -> RedirectPolicy {
        RedirectPolicy::Follow { hops_max: 10 }
    }
}

/// Whether the request's body can be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// There is none, or it is kept or can be read anew.
    Possible,
    /// It was a stream, and is gone.
    Gone,
}

/// An answer, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status code.
    pub status: u16,
    /// Its Location, where it has one.
    pub location: Option<&'a [u8]>,
    /// Method of the request that it answers.
    pub method: Method,
    /// Whether that request's body can be sent again.
    pub body: Again,
    /// A number that changes whenever the client's cookies do: the same address requested with
    /// other cookies is no loop, and log-in pages do just this. Zero without cookies.
    pub cookies: u64,
}

/// The next request of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The target, with a fragment that was carried along.
    pub url: Url,
    /// The method of the next request.
    pub method: Method,
    /// Whether the body goes along.
    pub keeps_body: bool,
    /// Whether credentials go along: the origin is the same, and no less secret.
    pub keeps_credentials: bool,
}

impl Hop {
    /// Whether a header that the caller set goes along to this hop. Headers that speak of
    /// the body go with the body; `Host` is always the hop's own.
    pub fn keeps(&self, name: &str) -> bool {
        let is = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        if is(&["host", "referer"]) {
            return false;
        }
        if is(&["authorization", "cookie", "proxy-authorization"]) {
            return self.keeps_credentials;
        }
        let of_body = name
            .get(..8)
            .is_some_and(|start| start.eq_ignore_ascii_case("content-"))
            || is(&["transfer-encoding", "expect"]);
        self.keeps_body || !of_body
    }
}

/// The addresses that one request has been to, from the first on.
#[derive(Clone, Debug)]
pub struct Chain {
    /// INVARIANT: never empty; the last is where the request is now.
    visited: Vec<Visit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Visit {
    /// Without its fragment, which servers never see.
    url: Url,
    method: Method,
    cookies: u64,
}

impl Visit {
    fn new(url: &Url, method: Method, cookies: u64) -> Visit {
        let mut url = url.clone();
        url.set_fragment(None);
        Visit {
            url,
            method,
            cookies,
        }
    }
}

impl Chain {
    /// A chain that begins at `url`, requested by `method`; `cookies` as of [`Answer::cookies`].
    pub fn new(url: &Url, method: Method, cookies: u64) -> Chain {
        Chain {
            visited: vec![Visit::new(url, method, cookies)],
        }
    }

    /// Hops made so far.
    pub fn hops(&self) -> u32 {
        u32::try_from(self.visited.len() - 1).unwrap_or(u32::MAX)
    }

    /// Where the answer that `at` gave leads. None when it leads nowhere, or `policy` does
    /// not follow it: then it is the result.
    ///
    /// # Errors
    /// [`RedirectError`], with the chain where that explains it.
    pub fn next(
        &mut self,
        policy: RedirectPolicy,
        at: &Url,
        answer: &Answer<'_>,
    ) -> Result<Option<Hop>, RedirectError> {
        let (hops_max, same_host) = match policy {
            RedirectPolicy::None => return Ok(None),
            RedirectPolicy::Follow { hops_max } => (hops_max, false),
            RedirectPolicy::SameHost { hops_max } => (hops_max, true),
        };
        let Some((method, keeps_body)) = method_after(answer.status, answer.method) else {
            return Ok(None);
        };
        let url = target(at, answer)?;
        if same_host && self.visited[0].url.host() != url.host() {
            return Err(RedirectError::OtherHost {
                to: shown(&url),
                chain: self.shown(),
            });
        }
        if keeps_body && answer.body == Again::Gone {
            return Err(RedirectError::BodyGone {
                status: answer.status,
                to: shown(&url),
            });
        }
        if self.hops() >= hops_max {
            return Err(RedirectError::TooMany {
                hops_max,
                chain: self.shown_with(&url),
            });
        }
        let visit = Visit::new(&url, method, answer.cookies);
        if self.visited.contains(&visit) {
            return Err(RedirectError::Loop {
                chain: self.shown_with(&url),
            });
        }
        self.visited.push(visit);
        Ok(Some(Hop {
            keeps_credentials: keeps_credentials(at, &url),
            url,
            method,
            keeps_body,
        }))
    }

    fn shown(&self) -> String {
        let urls: Vec<String> = self.visited.iter().map(|visit| shown(&visit.url)).collect();
        urls.join(" -> ")
    }

    fn shown_with(&self, last: &Url) -> String {
        format!("{} -> {}", self.shown(), shown(last))
    }
}

/// Whether `to` may see what was meant for `from` alone.
fn keeps_credentials(from: &Url, to: &Url) -> bool {
    let is_downgrade = from.scheme() == "https" && to.scheme() != "https";
    from.host() == to.host()
        && from.port_or_known_default() == to.port_or_known_default()
        && !is_downgrade
}

/// Method of the next request and whether the body goes along; None for a status that
/// leads nowhere.
fn method_after(status: u16, method: Method) -> Option<(Method, bool)> {
    match (status, method) {
        (303, Method::Head) => Some((Method::Head, false)),
        (303, _) | (301 | 302, Method::Post) => Some((Method::Get, false)),
        (301 | 302 | 307 | 308, same) => Some((same, true)),
        _ => None,
    }
}

fn target(at: &Url, answer: &Answer<'_>) -> Result<Url, RedirectError> {
    let status = answer.status;
    let bytes = answer
        .location
        .filter(|value| !value.is_empty())
        .ok_or(RedirectError::NoLocation { status })?;
    if bytes.len() > LOCATION_BYTES_MAX {
        return Err(RedirectError::LocationTooLong { bytes: bytes.len() });
    }
    let text = text_of(bytes);
    let mut url = at.join(&text).map_err(|error| RedirectError::BadLocation {
        location: text.chars().take(200).collect(),
        reason: error.to_string(),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(RedirectError::NotHttp {
            scheme: url.scheme().to_owned(),
        });
    }
    if url.fragment().is_none() {
        url.set_fragment(at.fragment());
    }
    Ok(url)
}

/// A Location that is no UTF-8 has its odd bytes written as %XX, as browsers do.
fn text_of(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    bytes
        .iter()
        .map(|&byte| match byte.is_ascii() {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// `url` as it may be printed: without a password or a user's name.
pub fn shown(url: &Url) -> String {
    if url.username().is_empty() && url.password().is_none() {
        return url.to_string();
    }
    let mut url = url.clone();
    // Neither fails for a URL that had one.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.to_string()
}

/// Why an answer could not be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// More hops than the policy makes.
    #[error("more than {hops_max} redirects in a row: {chain}")]
    TooMany {
        /// The policy's limit.
        hops_max: u32,
        /// All addresses, in order.
        chain: String,
    },
    /// The same request would be made a second time.
    #[error("redirects in a loop: {chain}")]
    Loop {
        /// All addresses, in order; the last is there twice.
        chain: String,
    },
    /// The answer redirects and does not say where to.
    #[error("the answer {status} redirects without a Location")]
    NoLocation {
        /// Its status code.
        status: u16,
    },
    /// Its Location is longer than [`LOCATION_BYTES_MAX`].
    #[error(
        "a Location of {bytes} bytes, more than location_bytes_max = {}",
        LOCATION_BYTES_MAX
    )]
    LocationTooLong {
        /// Its length.
        bytes: usize,
    },
    /// Its Location is no URL.
    #[error("the Location `{location}` is no URL: {reason}")]
    BadLocation {
        /// The first 200 characters of it.
        location: String,
        /// Why it is not a URL.
        reason: String,
    },
    /// It leads away from HTTP.
    #[error("redirected to a URL of the scheme {scheme}; only http and https are followed")]
    NotHttp {
        /// The scheme of the target.
        scheme: String,
    },
    /// It leads to another host, and the policy stays on the first.
    #[error("redirected to another host, {to}, which the policy does not follow: {chain}")]
    OtherHost {
        /// The target.
        to: String,
        /// All addresses so far, in order.
        chain: String,
    },
    /// The body has to be sent again, and was a stream.
    #[error(
        "the answer {status} asks for the body again at {to}, and it was a stream that \
             cannot be read anew; give the body as bytes"
    )]
    BodyGone {
        /// Status code of the answer.
        status: u16,
        /// The target.
        to: String,
    },
}

impl RedirectError {
    /// Its name in one word, as programs print it.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            RedirectError::TooMany { .. } => "too_many_redirects",
            RedirectError::Loop { .. } => "redirect_loop",
            RedirectError::NoLocation { .. }
            | RedirectError::LocationTooLong { .. }
            | RedirectError::BadLocation { .. }
            | RedirectError::NotHttp { .. } => "bad_location",
            RedirectError::OtherHost { .. } => "redirect_to_other_host",
            RedirectError::BodyGone { .. } => "body_spent",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("a URL")
    }

    fn answer(status: u16, location: &str, method: Method) -> Answer<'_> {
        Answer {
            status,
            location: Some(location.as_bytes()),
            method,
            body: Again::Possible,
            cookies: 0,
        }
    }

    /// One hop by the default policy.
    fn hop(from: &str, answer: &Answer<'_>) -> Result<Option<Hop>, RedirectError> {
        let at = url(from);
        Chain::new(&at, answer.method, 0).next(RedirectPolicy::default(), &at, answer)
    }

    fn followed(from: &str, to: &str) -> Hop {
        hop(from, &answer(302, to, Method::Get))
            .expect("it can be followed")
            .expect("it is followed")
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        let other = Method::from_name("PROPFIND").expect("a token");
        let cases = [
            (301, Method::Get, Method::Get, true),
            (301, Method::Post, Method::Get, false),
            (301, Method::Put, Method::Put, true),
            (302, Method::Post, Method::Get, false),
            (302, Method::Head, Method::Head, true),
            (302, other, other, true),
            (303, Method::Post, Method::Get, false),
            (303, Method::Put, Method::Get, false),
            (303, Method::Head, Method::Head, false),
            (307, Method::Post, Method::Post, true),
            (308, Method::Post, Method::Post, true),
        ];
        for (status, method, then, keeps_body) in cases {
            let hop = hop("http://a/", &answer(status, "/b", method));
            let hop = hop.expect("fine").expect("followed");
            assert_eq!((hop.method, hop.keeps_body), (then, keeps_body), "{status}");
        }
    }

    #[test]
    fn other_answers_lead_nowhere() {
        for status in [200, 201, 300, 304, 305, 306, 404, 500] {
            assert_eq!(
                hop("http://a/", &answer(status, "/b", Method::Get)),
                Ok(None)
            );
        }
    }

    #[test]
    fn a_body_that_is_gone_stops_only_what_needs_it() {
        let gone = |status| Answer {
            body: Again::Gone,
            ..answer(status, "/b", Method::Post)
        };
        assert!(hop("http://a/", &gone(303)).is_ok());
        assert!(hop("http://a/", &gone(302)).is_ok());
        for status in [307, 308] {
            let error = hop("http://a/", &gone(status)).unwrap_err();
            assert!(error.to_string().contains("asks for the body again"));
        }
    }

    #[test]
    fn a_location_may_be_relative_in_every_way() {
        let cases = [
            ("b", "http://h:81/x/b"),
            ("/b", "http://h:81/b"),
            ("../b", "http://h:81/b"),
            ("?q=1", "http://h:81/x/y?q=1"),
            ("//other/z", "http://other/z"),
            ("https://other:444/z", "https://other:444/z"),
            ("/\u{e4} b", "http://h:81/%C3%A4%20b"),
        ];
        for (location, expected) in cases {
            assert_eq!(followed("http://h:81/x/y", location).url.as_str(), expected);
        }
        let odd = Answer {
            location: Some(b"/\xe4"),
            ..answer(302, "", Method::Get)
        };
        let to = hop("http://h/", &odd).unwrap().unwrap().url;
        assert_eq!(to.as_str(), "http://h/%E4");
    }

    #[test]
    fn a_fragment_is_carried_unless_there_is_another() {
        assert_eq!(followed("http://h/#f", "/b").url.as_str(), "http://h/b#f");
        assert_eq!(followed("http://h/#f", "/b#g").url.as_str(), "http://h/b#g");
    }

    #[test]
    fn a_bad_location_is_an_error_by_name() {
        let long = "x".repeat(LOCATION_BYTES_MAX + 1);
        let cases = [
            ("", "redirects without a Location"),
            ("http://[::1", "is no URL"),
            ("http://a:99999/", "is no URL"),
            ("ftp://a/b", "scheme ftp"),
            ("javascript:alert(1)", "scheme javascript"),
            (&long, "location_bytes_max = 8192"),
        ];
        for (location, expected) in cases {
            let error = hop("http://a/", &answer(302, location, Method::Get)).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        let missing = Answer {
            location: None,
            ..answer(302, "", Method::Get)
        };
        assert_eq!(
            hop("http://a/", &missing),
            Err(RedirectError::NoLocation { status: 302 })
        );
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        let cases = [
            ("http://a/", "/b", true),
            ("http://a:80/", "http://a/b", true),
            ("http://a/", "http://a:81/b", false),
            ("http://a/", "http://b/b", false),
            ("http://a/", "http://a.b/b", false),
            ("https://a/", "http://a/b", false),
            ("https://a:99/", "http://a:99/b", false),
            ("http://A/", "http://a/b", true),
        ];
        for (from, to, kept) in cases {
            let hop = followed(from, to);
            for name in ["Authorization", "cookie", "Proxy-Authorization"] {
                assert_eq!(hop.keeps(name), kept, "{name} from {from} to {to}");
            }
            assert!(hop.keeps("accept") && !hop.keeps("Referer") && !hop.keeps("host"));
        }
    }

    #[test]
    fn what_speaks_of_the_body_goes_with_it() {
        let gone = hop("http://a/", &answer(303, "/b", Method::Post));
        let kept = hop("http://a/", &answer(307, "/b", Method::Post));
        let (gone, kept) = (gone.unwrap().unwrap(), kept.unwrap().unwrap());
        for name in ["Content-Type", "content-encoding", "Transfer-Encoding"] {
            assert!(!gone.keeps(name) && kept.keeps(name), "{name}");
        }
        assert!(gone.keeps("conten\u{fc}-x") && gone.keeps("X-Content"));
    }

    #[test]
    fn a_chain_has_a_limit_and_names_its_links() {
        let policy = RedirectPolicy::Follow { hops_max: 2 };
        let mut at = url("http://user:secret@a/0");
        let mut chain = Chain::new(&at, Method::Get, 0);
        for location in ["/1", "/2"] {
            let hop = chain.next(policy, &at, &answer(302, location, Method::Get));
            at = hop.unwrap().unwrap().url;
        }
        let error = chain.next(policy, &at, &answer(302, "/3", Method::Get));
        assert_eq!(
            error.unwrap_err().to_string(),
            "more than 2 redirects in a row: http://a/0 -> http://a/1 -> http://a/2 -> http://a/3"
        );
    }

    #[test]
    fn a_loop_is_seen_before_the_limit() {
        let policy = RedirectPolicy::default();
        let at = url("http://a/");
        let mut chain = Chain::new(&at, Method::Get, 0);
        let there = chain.next(policy, &at, &answer(302, "/b#x", Method::Get));
        let there = there.unwrap().unwrap().url;
        let error = chain.next(policy, &there, &answer(302, "/", Method::Get));
        assert_eq!(
            error.unwrap_err().to_string(),
            "redirects in a loop: http://a/ -> http://a/b -> http://a/#x"
        );
    }

    #[test]
    fn the_same_address_with_other_cookies_or_method_is_no_loop() {
        let at = url("http://a/login");
        let mut chain = Chain::new(&at, Method::Post, 1);
        let policy = RedirectPolicy::default();
        let first = chain.next(
            policy,
            &at,
            &Answer {
                cookies: 1,
                ..answer(302, "/login", Method::Post)
            },
        );
        assert_eq!(first.unwrap().unwrap().method, Method::Get);
        let with = |cookies| Answer {
            cookies,
            ..answer(302, "/login", Method::Get)
        };
        assert!(chain.next(policy, &at, &with(2)).is_ok());
        assert!(chain.next(policy, &at, &with(2)).is_err());
    }

    #[test]
    fn a_policy_can_stay_or_stop() {
        let at = url("http://a/");
        let mut chain = Chain::new(&at, Method::Get, 0);
        let away = answer(302, "http://b/", Method::Get);
        assert_eq!(chain.next(RedirectPolicy::None, &at, &away), Ok(None));
        let same = RedirectPolicy::SameHost { hops_max: 3 };
        let error = chain.next(same, &at, &away).unwrap_err();
        assert!(error.to_string().contains("another host, http://b/"));
        let port = answer(302, "https://a:444/", Method::Get);
        assert!(chain.next(same, &at, &port).is_ok());
    }

    proptest! {
        #[test]
        fn any_location_is_a_hop_or_an_error(
            location in proptest::collection::vec(any::<u8>(), 0..80),
            status in 300_u16..310,
        ) {
            let at = url("https://user:secret@a:1234/x?y#z");
            let answer = Answer {
                location: Some(&location),
                ..answer(status, "", Method::Get)
            };
            let mut chain = Chain::new(&at, Method::Get, 0);
            match chain.next(RedirectPolicy::default(), &at, &answer) {
                Ok(Some(hop)) => {
                    prop_assert!(matches!(hop.url.scheme(), "http" | "https"));
                    let same = hop.url.host_str() == Some("a") && hop.url.port() == Some(1234)
                        && hop.url.scheme() == "https";
                    prop_assert_eq!(hop.keeps("cookie"), same);
                }
                Ok(None) => prop_assert!(!matches!(status, 301 | 302 | 303 | 307 | 308)),
                Err(error) => prop_assert!(!error.to_string().contains("secret")),
            }
        }
    }
}
