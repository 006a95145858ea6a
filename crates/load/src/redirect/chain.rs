//! Where the answer to a request leads, and the request that goes there. Bytes and values, no I/O.
//!
//! The method changes as browsers and curl change it: 303 makes a GET of all but HEAD, 301 and 302 make a GET of POST, 307 and 308 keep
//! method and body. A load drives one server, so that only hops to the same origin are followed.

use std::cell::RefCell;
use std::rc::Rc;

use prony_record::PreparedRequest;
use prony_wire::url::{self, Url};

use crate::scenario::memory::UserMemory;
use crate::source::{EncodedRequest, decode};

/// The longest Location that is followed, in bytes.
const LOCATION_BYTES_MAX: usize = 8_192;

/// Why a redirect is not followed. Such an answer has failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RedirectFault {
    /// It does not say where to, or not so that it can be requested.
    NoLocation,
    /// It leads to another origin.
    Elsewhere,
    /// The same request would be made a second time.
    Loop,
    /// More hops than are followed.
    TooMany,
}

impl RedirectFault {
    /// What each is called among the checks of a load, in the order of their numbers.
    pub fn names(hops_max: u32) -> [String; 4] {
        [
            "redirect without a usable Location".to_owned(),
            "redirect to another origin".to_owned(),
            "redirect in a loop".to_owned(),
            format!("redirects beyond {hops_max}"),
        ]
    }
}

/// What an answer means for the chain of its request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RedirectLead {
    /// It is the last.
    Nowhere,
    /// A hop follows.
    Hop,
    /// It would lead on, and is not followed.
    Fault(RedirectFault),
}

/// A request, and the hops that it led to so far.
#[derive(Debug)]
pub struct HopChain {
    hops_max: u32,
    is_secure: bool,
    /// What a server sets goes with the next request, which is then another one.
    keeps_cookies: bool,
    /// The request that is outstanding: shared bytes, or else those of `filled`.
    shared: Option<Rc<[u8]>>,
    filled: Vec<u8>,
    expected_body: Option<Rc<[u8]>>,
    step: u16,
    user: Option<Rc<RefCell<UserMemory>>>,
    /// Bytes of the user's line of cookies, which ends its head.
    cookie_bytes: usize,
    hops: u32,
    /// Method and target of the requests that were made since a cookie was set.
    visited: Vec<Vec<u8>>,
    next: Option<EncodedRequest>,
}

impl HopChain {
    /// A chain of at most so many hops, before its first request.
    pub fn new(hops_max: u32, is_secure: bool, keeps_cookies: bool) -> HopChain {
        HopChain {
            hops_max,
            is_secure,
            keeps_cookies,
            shared: None,
            filled: Vec::new(),
            expected_body: None,
            step: 0,
            user: None,
            cookie_bytes: 0,
            hops: 0,
            visited: Vec::new(),
            next: None,
        }
    }

    /// Another request begins a chain.
    pub fn restart(&mut self) {
        self.hops = 0;
        self.visited.clear();
        self.next = None;
    }

    /// This request of the chain is sent.
    pub fn sent(&mut self, request: &EncodedRequest) {
        self.filled.clear();
        self.shared = None;
        match &request.filled {
            Some(filled) => filled.write_http1(&mut self.filled),
            None => self.shared = Some(Rc::clone(&request.bytes)),
        }
        self.expected_body.clone_from(&request.expected_body);
        self.step = request.step;
        self.user.clone_from(&request.user);
        let cookies = self
            .user
            .as_ref()
            .and_then(|of| of.borrow().cookies.header());
        self.cookie_bytes = cookies.map_or(0, |value| "Cookie: \r\n".len() + value.len());
        self.next = None;
    }

    /// The hop that is to be sent next, once.
    pub fn take_next(&mut self) -> Option<EncodedRequest> {
        self.next.take()
    }

    /// Whether there is one.
    pub fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// The request that is outstanding was answered by this status, with a Location and whether it sets a cookie.
    pub fn answered(
        &mut self,
        status: u16,
        location: Option<&[u8]>,
        sets_cookie: bool,
    ) -> RedirectLead {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return RedirectLead::Nowhere;
        }
        match self.hop(status, location, sets_cookie) {
            Ok(next) => {
                self.next = Some(next);
                RedirectLead::Hop
            }
            Err(fault) => RedirectLead::Fault(fault),
        }
    }

    fn hop(
        &mut self,
        status: u16,
        location: Option<&[u8]>,
        sets_cookie: bool,
    ) -> Result<EncodedRequest, RedirectFault> {
        let whole = self.shared.as_deref().unwrap_or(&self.filled);
        let request = SentRequest::of(whole, self.cookie_bytes).ok_or(RedirectFault::NoLocation)?;
        let target = request.leads_to(location, self.is_secure)?;
        if self.hops >= self.hops_max {
            return Err(RedirectFault::TooMany);
        }
        let (method, keeps_body) = match (status, request.method) {
            (303, "HEAD") => ("HEAD", false),
            (303, _) | (301 | 302, "POST") => ("GET", false),
            (_, same) => (same, true),
        };
        let visit = |method: &str, target: &str| format!("{method} {target}").into_bytes();
        let from = visit(request.method, request.target);
        let to = visit(method, &target);
        let mut bytes = request.again(method, &target, keeps_body);
        if let Some(user) = &self.user {
            user.borrow().cookies.add_to(&mut bytes);
        }
        let mut next = decode(&PreparedRequest {
            method: method.to_owned(),
            bytes,
            ..PreparedRequest::default()
        });
        if self.visited.is_empty() {
            self.visited.push(from);
        }
        if sets_cookie && self.keeps_cookies {
            // Log-in pages send a user in a circle to give it a cookie.
            self.visited.clear();
        }
        if self.visited.contains(&to) {
            return Err(RedirectFault::Loop);
        }
        self.visited.push(to);
        self.hops += 1;
        // What is expected is expected of the last answer.
        next.expected_body.clone_from(&self.expected_body);
        next.step = self.step;
        next.user.clone_from(&self.user);
        Ok(next)
    }
}

/// A request that is sent by itself, outside of a load, and where its answers lead.
#[derive(Debug)]
pub struct LedRequest(HopChain);

impl LedRequest {
    /// `request` was sent, in the clear or over TLS; up to `hops_max` hops are made. `keeps_cookies`: what answers set goes along.
    pub fn new(
        request: &PreparedRequest,
        hops_max: u32,
        is_secure: bool,
        keeps_cookies: bool,
    ) -> LedRequest {
        let mut chain = HopChain::new(hops_max, is_secure, keeps_cookies);
        chain.sent(&decode(request));
        LedRequest(chain)
    }

    /// The request that an answer to the last one leads to, which is then sent; `None`: the answer is the final one.
    ///
    /// # Errors
    /// Why a redirect is not followed, in words.
    pub fn next(
        &mut self,
        status: u16,
        location: Option<&[u8]>,
        sets_cookie: bool,
    ) -> Result<Option<PreparedRequest>, String> {
        match self.0.answered(status, location, sets_cookie) {
            RedirectLead::Nowhere => Ok(None),
            RedirectLead::Fault(fault) => {
                let names = RedirectFault::names(self.0.hops_max);
                Err(names[fault as usize].clone())
            }
            RedirectLead::Hop => {
                let next = self.0.take_next();
                if let Some(next) = &next {
                    self.0.sent(next);
                }
                Ok(next.map(|next| next.prepared()))
            }
        }
    }
}

/// A request of HTTP/1.1 as it was sent, taken apart.
struct SentRequest<'a> {
    method: &'a str,
    target: &'a str,
    version: &'a str,
    /// The lines of its head behind the first, without the user's cookies.
    lines: &'a str,
    body: &'a [u8],
}

impl<'a> SentRequest<'a> {
    /// `cookie_bytes` at the end of its head are not taken; `None`: it is no request that has a URL.
    fn of(bytes: &'a [u8], cookie_bytes: usize) -> Option<SentRequest<'a>> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 2;
        let head = std::str::from_utf8(bytes.get(..end.checked_sub(cookie_bytes)?)?).ok()?;
        let (first, lines) = head.split_once("\r\n")?;
        let mut words = first.split(' ');
        Some(SentRequest {
            method: words.next()?,
            target: words.next()?,
            version: words.next()?,
            lines,
            body: bytes.get(end + 2..)?,
        })
    }

    /// The target of the request that a Location leads to, in the form of this one's.
    fn leads_to(&self, location: Option<&[u8]>, is_secure: bool) -> Result<String, RedirectFault> {
        let host = self.lines.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        let scheme = if is_secure { "https" } else { "http" };
        // As a proxy wants it, the target says where to.
        let is_absolute = !self.target.starts_with('/');
        let from = match is_absolute {
            true => self.target.to_owned(),
            false => format!("{scheme}://{}{}", host.unwrap_or_default(), self.target),
        };
        let location = location.filter(|of| !of.is_empty() && of.len() <= LOCATION_BYTES_MAX);
        let location = location.and_then(|of| std::str::from_utf8(of).ok());
        let from = url::read(&from).ok();
        let both = from.zip(location);
        let (from, to) = both
            .and_then(|(from, location)| {
                let to = from.join(location).ok()?;
                Some((from, to))
            })
            .ok_or(RedirectFault::NoLocation)?;
        let origin = |of: &Url| {
            let host = of.host_str().unwrap_or_default().to_owned();
            (of.scheme().to_owned(), host, of.port_or_known_default())
        };
        if origin(&from) != origin(&to) {
            return Err(RedirectFault::Elsewhere);
        }
        let before = match is_absolute {
            true => from.origin().ascii_serialization(),
            false => String::new(),
        };
        let query = to.query().map_or_else(String::new, |of| format!("?{of}"));
        Ok(format!("{before}{}{query}", to.path()))
    }

    /// The request again with another method and target.
    fn again(&self, method: &str, target: &str, keeps_body: bool) -> Vec<u8> {
        let mut out = format!("{method} {target} {}\r\n", self.version).into_bytes();
        for line in self.lines.split_terminator("\r\n") {
            let name = line.split(':').next().unwrap_or_default();
            if keeps_body || !is_of_body(name) {
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        out.extend_from_slice(b"\r\n");
        if keeps_body {
            out.extend_from_slice(self.body);
        }
        out
    }
}

/// Whether a header speaks of the body.
fn is_of_body(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("content-") || ["transfer-encoding", "expect"].contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POST: &str = "POST /a/b?c HTTP/1.1\r\nHost: h:81\r\nContent-Type: t\r\nX: y\r\nContent-Length: 2\r\n\r\n{}";

    fn begun(request: &str, keeps_cookies: bool) -> HopChain {
        let mut chain = HopChain::new(3, false, keeps_cookies);
        chain.sent(&prepared(request));
        chain
    }

    fn prepared(request: &str) -> EncodedRequest {
        decode(&PreparedRequest {
            method: "POST".to_owned(),
            bytes: request.as_bytes().to_vec(),
            ..PreparedRequest::default()
        })
    }

    /// Where an answer leads: the next request as text, or why there is none.
    fn led(chain: &mut HopChain, status: u16, location: &str) -> Result<String, RedirectLead> {
        match chain.answered(status, Some(location.as_bytes()), false) {
            RedirectLead::Hop => {
                let next = chain.take_next().expect("a hop");
                chain.sent(&next);
                Ok(String::from_utf8(next.bytes.to_vec()).expect("text"))
            }
            other => Err(other),
        }
    }

    #[test]
    fn the_method_and_the_body_go_along_as_the_status_says() {
        let kept = |line: &str| POST.replacen("POST /a/b?c HTTP/1.1", line, 1);
        for (status, expected) in [
            (
                301,
                "GET /x HTTP/1.1\r\nHost: h:81\r\nX: y\r\n\r\n".to_owned(),
            ),
            (
                302,
                "GET /x HTTP/1.1\r\nHost: h:81\r\nX: y\r\n\r\n".to_owned(),
            ),
            (
                303,
                "GET /x HTTP/1.1\r\nHost: h:81\r\nX: y\r\n\r\n".to_owned(),
            ),
            (307, kept("POST /x HTTP/1.1")),
            (308, kept("POST /x HTTP/1.1")),
        ] {
            assert_eq!(
                led(&mut begun(POST, false), status, "/x"),
                Ok(expected),
                "{status}"
            );
        }
        let put = POST.replacen("POST", "PUT", 1);
        let hop = led(&mut begun(&put, false), 302, "/x").expect("a hop");
        assert!(hop.starts_with("PUT /x ") && hop.ends_with("{}"), "{hop}");
        let head = "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n";
        let hop = led(&mut begun(head, false), 303, "/x").expect("a hop");
        assert!(hop.starts_with("HEAD /x "), "{hop}");
    }

    #[test]
    fn a_location_is_read_beside_the_request_that_it_answers() {
        for (location, target) in [
            ("/x?y=1#z", "/x?y=1"),
            ("x", "/a/x"),
            ("../x", "/x"),
            ("?q", "/a/b?q"),
            ("http://h:81/x", "/x"),
            ("HTTP://H:81", "/"),
            ("//h:81/x y", "/x%20y"),
        ] {
            let hop = led(&mut begun(POST, false), 302, location).expect(location);
            assert!(
                hop.starts_with(&format!("GET {target} HTTP/1.1\r\n")),
                "{hop}"
            );
        }
        let by_proxy = "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n";
        let hop = led(&mut begun(by_proxy, false), 302, "/x").expect("a hop");
        assert!(hop.starts_with("GET http://h/x HTTP/1.1\r\n"), "{hop}");
    }

    #[test]
    fn what_is_not_followed_says_why() {
        for (location, fault) in [
            ("http://h/x", RedirectFault::Elsewhere),
            ("https://h:81/x", RedirectFault::Elsewhere),
            ("http://other:81/", RedirectFault::Elsewhere),
            ("ftp://h:81/", RedirectFault::Elsewhere),
            ("", RedirectFault::NoLocation),
            ("http://[", RedirectFault::NoLocation),
        ] {
            let led = led(&mut begun(POST, false), 302, location);
            assert_eq!(led, Err(RedirectLead::Fault(fault)), "{location}");
        }
        let mut chain = begun(POST, false);
        assert_eq!(
            chain.answered(302, None, false),
            RedirectLead::Fault(RedirectFault::NoLocation)
        );
        for status in [200, 201, 300, 304, 305, 404] {
            assert_eq!(
                chain.answered(status, Some(b"/x"), false),
                RedirectLead::Nowhere,
                "{status}"
            );
        }
    }

    #[test]
    fn a_chain_ends_at_its_limit_and_where_it_comes_back() {
        let get = "GET /0 HTTP/1.1\r\nHost: h\r\n\r\n";
        let mut chain = begun(get, false);
        for hop in 1..=3 {
            assert!(led(&mut chain, 302, &format!("/{hop}")).is_ok(), "{hop}");
        }
        assert_eq!(
            led(&mut chain, 302, "/4"),
            Err(RedirectLead::Fault(RedirectFault::TooMany))
        );
        chain.restart();
        chain.sent(&prepared(get));
        assert!(led(&mut chain, 302, "/1").is_ok());
        assert_eq!(
            led(&mut chain, 302, "/0"),
            Err(RedirectLead::Fault(RedirectFault::Loop))
        );
        // With a cookie it is another request, where cookies are kept.
        for (keeps, lead) in [
            (true, RedirectLead::Hop),
            (false, RedirectLead::Fault(RedirectFault::Loop)),
        ] {
            let mut chain = begun(get, keeps);
            assert_eq!(chain.answered(302, Some(b"/0"), true), lead);
        }
    }

    #[test]
    fn a_users_cookies_are_those_that_it_has_now() {
        let user = Rc::new(RefCell::new(UserMemory::new(0)));
        user.borrow_mut().cookies.set(b"a=1");
        let mut request =
            prepared("GET / HTTP/1.1\r\nHost: h\r\nCookie: own=2\r\nCookie: a=1\r\n\r\n");
        request.user = Some(Rc::clone(&user));
        let mut chain = HopChain::new(3, false, true);
        chain.sent(&request);
        user.borrow_mut().cookies.set(b"b=3");
        assert_eq!(chain.answered(302, Some(b"/x"), true), RedirectLead::Hop);
        let next = chain.take_next().expect("a hop");
        assert_eq!(
            String::from_utf8_lossy(&next.bytes),
            "GET /x HTTP/1.1\r\nHost: h\r\nCookie: own=2\r\nCookie: a=1; b=3\r\n\r\n"
        );
        assert!(next.user.is_some());
    }
}
