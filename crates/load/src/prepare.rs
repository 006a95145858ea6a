//! From what a user names to bytes: the address behind a URL, a request encoded once.

use std::net::{SocketAddr, ToSocketAddrs};

use prony_record::{ExpectedAnswer, LoadTarget, PreparedRequest};
use prony_wire::url::{self, ShownUrl, UrlError};

/// A URL of HTTP, taken apart for what goes over the wire.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LoadUrl {
    /// As it was written: without what `{env:NAME}` stands for.
    pub text: ShownUrl,
    /// Whether it begins with `https://`: HTTP goes over TLS.
    pub is_secure: bool,
    /// Host without port, brackets removed.
    pub host: String,
    /// Port; 80 where none is written, 443 with TLS.
    pub port: u16,
    /// What the `Host` header says: a port where one is written.
    pub authority: String,
    /// Path and query as they are written, at least `/`.
    pub path: String,
}

/// What is wrong with a URL.
#[derive(Debug, thiserror::Error)]
pub enum LoadUrlError {
    /// It is none, or none that can be sent as it is written.
    #[error(
        "`{text}` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: {why}"
    )]
    Malformed {
        /// As it was written.
        text: ShownUrl,
        /// What is wrong with it.
        why: String,
    },
    /// It names another scheme.
    #[error("`{0}` is not HTTP: this generator speaks http:// and https:// only")]
    Scheme(ShownUrl),
    /// It is for TLS, where only plain HTTP is spoken.
    #[error("`{0}` is not plain HTTP: only http:// is spoken here")]
    Secure(ShownUrl),
    /// It carries a user name or password.
    #[error("`{0}` carries credentials: send them with -H 'Authorization: …' instead")]
    Credentials(ShownUrl),
    /// Its host has no address.
    #[error("`{host}` has no address: {reason}")]
    Unknown {
        /// The host.
        host: String,
        /// What the resolver said.
        reason: String,
    },
}

impl LoadUrl {
    /// Takes `text` apart. A missing scheme means `http://`.
    pub fn parse(text: &str) -> Result<LoadUrl, LoadUrlError> {
        LoadUrl::filled(text, text)
    }

    /// The same of a text that is `written` with `{env:NAME}`, which is filled in: shown is what was written.
    pub fn filled(text: &str, written: &str) -> Result<LoadUrl, LoadUrlError> {
        let shown = ShownUrl::new(written);
        let malformed = |why: String| LoadUrlError::Malformed {
            text: shown.clone(),
            why,
        };
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let (authority, path) = as_written(&whole).map_err(malformed)?;
        let url = url::read(&whole).map_err(|error| match error {
            UrlError::Scheme(_) => LoadUrlError::Scheme(shown.clone()),
            other => malformed(other.to_string()),
        })?;
        let is_secure = url.scheme() == "https";
        if authority.contains('@') {
            return Err(LoadUrlError::Credentials(shown));
        }
        if authority.ends_with(':') {
            return Err(malformed(UrlError::Port.to_string()));
        }
        let host = url.host_str().unwrap_or_default();
        let port = url
            .port_or_known_default()
            .unwrap_or(if is_secure { 443 } else { 80 });
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let behind_address = authority.rsplit(']').next().unwrap_or_default();
        let has_port = behind_address.contains(':');
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(LoadUrl {
            text: shown,
            is_secure,
            host: bare.to_owned(),
            port,
            authority: match has_port {
                true => format!("{host}:{port}"),
                false => host.to_owned(),
            },
            path: format!("{slash}{path}"),
        })
    }

    /// It, unless it is for TLS.
    pub fn plain(self) -> Result<LoadUrl, LoadUrlError> {
        match self.is_secure {
            true => Err(LoadUrlError::Secure(self.text)),
            false => Ok(self),
        }
    }

    /// `HOST:PORT`, with brackets around an IPv6 address and the port also where none is written.
    pub fn host_and_port(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// `http://HOST:PORT`, or the same with `https`.
    pub fn origin(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.host_and_port())
    }

    /// Its first address, IPv4 before IPv6: what listens on `localhost` is more often there.
    pub fn resolve(&self) -> Result<SocketAddr, LoadUrlError> {
        let unknown = |reason: String| LoadUrlError::Unknown {
            host: self.host.clone(),
            reason,
        };
        let mut all: Vec<SocketAddr> = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| unknown(error.to_string()))?
            .collect();
        all.sort_by_key(SocketAddr::is_ipv6);
        all.first()
            .copied()
            .ok_or_else(|| unknown("the resolver knows none".to_owned()))
    }

    /// The target that a load on this URL names.
    pub fn target(&self, address: SocketAddr) -> LoadTarget {
        LoadTarget {
            url: self.text.to_string(),
            address: address.to_string(),
        }
    }
}

/// Authority, and path with query, of a URL that was read. The path is sent as it is written, as `/a/../b` and `/%7Eb`
/// may be what is to be measured; so what only a repaired URL could carry is refused.
fn as_written(url: &str) -> Result<(&str, &str), String> {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // What control characters are is said where the URL is read.
    let mut all = url.chars().filter(|c| !c.is_control());
    let found = all.find(|&c| c.is_whitespace() || c == '\\');
    let mut of_path = path.chars().filter(|c| !c.is_control());
    let found = found.or_else(|| of_path.find(|c| !c.is_ascii_graphic()));
    match found {
        Some(' ') => Err("there is a space in it: write %20 where it is meant".to_owned()),
        Some(c) => Err(format!(
            "there is {c:?} in it: write it as %XX, byte by byte"
        )),
        None if authority.is_empty() => Err(UrlError::NoHost.to_string()),
        None => Ok((authority, path)),
    }
}

/// A request as a user describes it.
#[derive(Clone, Debug, Default)]
pub struct RequestParts<'a> {
    /// Method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// What `Host` says unless `headers` do.
    pub authority: &'a str,
    /// Headers in order. A `Host` or `Content-Length` among them replaces ours.
    pub headers: &'a [(String, String)],
    /// Body; a length is sent with it unless it is empty and the method has none by custom.
    pub body: &'a [u8],
}

/// Why a request cannot be sent as it is described.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The method is not a token.
    #[error("`{0}` is not a method: letters, digits and -.!#$%&'*+^_`|~ only")]
    Method(String),
    /// The path holds something that cannot stand in a request line.
    #[error(
        "`{0}` is not a path: it begins with / and holds no spaces, control characters or bytes beyond ASCII; encode them with %"
    )]
    Path(String),
    /// A header's name is not a token.
    #[error("`{0}` is not a header name")]
    HeaderName(String),
    /// A header's value breaks the line.
    #[error("the value of header `{0}` holds a control character")]
    HeaderValue(String),
    /// Its length would not be that of the body.
    #[error("header `{0}` is set from the body and cannot be given")]
    Framing(String),
}

/// Encodes a request once, so that sending it is one copy into the kernel.
pub fn encode(parts: &RequestParts<'_>) -> Result<Vec<u8>, RequestError> {
    check(parts)?;
    Ok(write(parts))
}

/// The same for parts that were checked before, such as those of an experiment.
pub fn write(parts: &RequestParts<'_>) -> Vec<u8> {
    let given = |name: &str| {
        parts
            .headers
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case(name))
    };
    let mut head = format!("{} {} HTTP/1.1\r\n", parts.method, parts.path);
    if !given("host") {
        head.push_str(&format!("Host: {}\r\n", parts.authority));
    }
    for (name, value) in parts.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !parts.body.is_empty() || matches!(parts.method, "POST" | "PUT" | "PATCH") {
        head.push_str(&format!("Content-Length: {}\r\n", parts.body.len()));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(parts.body);
    bytes
}

/// `text` as a name or a value of a form (application/x-www-form-urlencoded).
pub fn form_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            byte if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) => {
                out.push(char::from(byte));
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-.!#$%&'*+^_`|~".contains(&byte))
}

fn check(parts: &RequestParts<'_>) -> Result<(), RequestError> {
    if !token(parts.method) {
        return Err(RequestError::Method(parts.method.to_owned()));
    }
    if !parts.path.starts_with('/') || !parts.path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(RequestError::Path(parts.path.to_owned()));
    }
    for (name, value) in parts.headers {
        if !token(name) {
            return Err(RequestError::HeaderName(name.clone()));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(RequestError::HeaderValue(name.clone()));
        }
        if ["content-length", "transfer-encoding"]
            .iter()
            .any(|framing| name.eq_ignore_ascii_case(framing))
        {
            return Err(RequestError::Framing(name.clone()));
        }
    }
    Ok(())
}

/// A request with the answer that it must get.
pub fn prepare(
    parts: &RequestParts<'_>,
    expected_body: Option<&[u8]>,
) -> Result<PreparedRequest, RequestError> {
    let bytes = encode(parts)?;
    let expect = expected_body.map(|body| ExpectedAnswer {
        body: Some(body.to_vec()),
    });
    Ok(PreparedRequest {
        method: parts.method.to_owned(),
        bytes,
        expect,
        weight: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> LoadUrl {
        LoadUrl::parse(text).unwrap()
    }

    #[test]
    fn a_url_is_taken_apart_as_a_browser_would() {
        assert_eq!(
            (
                url("http://a:81/x?y=1").port,
                url("http://a:81/x?y=1").path.as_str()
            ),
            (81, "/x?y=1")
        );
        assert_eq!(
            (url("http://a").port, url("http://a").path.as_str()),
            (80, "/")
        );
        assert_eq!(url("127.0.0.1:8080/hello").authority, "127.0.0.1:8080");
        assert_eq!(url("localhost:8080").authority, "localhost:8080");
        assert_eq!(
            (
                url("http://[::1]:9/").host.as_str(),
                url("http://[::1]:9/").authority.as_str()
            ),
            ("::1", "[::1]:9")
        );
        assert_eq!(url("http://[::1]/").authority, "[::1]");
        assert_eq!(url("http://[::1]/").host_and_port(), "[::1]:80");
        assert_eq!(url("http://a:80").authority, "a:80");
        let secure = url("https://a/b");
        assert_eq!(
            (secure.is_secure, secure.port, secure.authority.as_str()),
            (true, 443, "a")
        );
        assert!(secure.plain().is_err() && url("http://a").plain().is_ok());
        assert_eq!(url("http://a?q").path, "/?q");
    }

    #[test]
    fn a_path_is_sent_as_it_is_written() {
        for path in [
            "/a/../b",
            "/./",
            "//",
            "/%7e%2F",
            "/a|b?c={d}\"'<>",
            "/?a=http://b/@:",
        ] {
            assert_eq!(url(&format!("http://a:1{path}")).path, path);
            assert_eq!(url(&format!("http://a:1{path}#x")).path, path);
        }
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        let wrong = [
            "ws://a/",
            "http://u:p@a/",
            "http://@a/",
            "http://",
            "http:///a",
            "http://a b/",
            "http://a/ b",
            "http://a/\u{e9}",
            "http://a\\b",
            "http://a:99999/",
            "http://a:0/",
            "http://a:/",
            "ftp://a/",
            "",
        ];
        let said: Vec<String> = wrong
            .iter()
            .map(|text| LoadUrl::parse(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        `ws://a/` is not HTTP: this generator speaks http:// and https:// only
        `http://***@a/` carries credentials: send them with -H 'Authorization: …' instead
        `http://***@a/` carries credentials: send them with -H 'Authorization: …' instead
        `http://` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: it names no host
        `http:///a` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: it names no host
        `http://a b/` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: there is a space in it: write %20 where it is meant
        `http://a/ b` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: there is a space in it: write %20 where it is meant
        `http://a/é` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: there is 'é' in it: write it as %XX, byte by byte
        `http://a\b` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: there is '\\' in it: write it as %XX, byte by byte
        `http://a:99999/` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: its port is no number from 1 to 65535
        `http://a:0/` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: its port is no number from 1 to 65535
        `http://a:/` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: its port is no number from 1 to 65535
        `ftp://a/` is not HTTP: this generator speaks http:// and https:// only
        `` is not a URL of the form http://HOST:PORT/PATH or https://HOST:PORT/PATH: it names no host
        ");
    }

    #[test]
    fn a_request_is_encoded_as_it_goes_over_the_wire() {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        let parts = RequestParts {
            method: "POST",
            path: "/ping",
            authority: "a:1",
            headers: &headers,
            body: b"{}",
        };
        let text = String::from_utf8(encode(&parts).unwrap()).unwrap();
        assert_eq!(
            text,
            "POST /ping HTTP/1.1\r\nHost: a:1\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        );
    }

    #[test]
    fn forms_are_encoded_as_their_standard_says() {
        assert_eq!(form_encoded("a b&c=é~*"), "a+b%26c%3D%C3%A9%7E*");
    }

    #[test]
    fn a_host_that_the_user_gives_replaces_ours() {
        let headers = [("host".to_owned(), "b".to_owned())];
        let parts = RequestParts {
            method: "GET",
            path: "/",
            authority: "a",
            headers: &headers,
            body: b"",
        };
        assert_eq!(
            encode(&parts).unwrap(),
            b"GET / HTTP/1.1\r\nhost: b\r\n\r\n"
        );
    }

    #[test]
    fn nothing_that_a_user_gives_can_break_out_of_its_line() {
        let base = RequestParts {
            method: "GET",
            path: "/",
            authority: "a",
            headers: &[],
            body: b"",
        };
        let header = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        assert!(
            encode(&RequestParts {
                method: "GE T",
                ..base.clone()
            })
            .is_err()
        );
        assert!(
            encode(&RequestParts {
                path: "/a b",
                ..base.clone()
            })
            .is_err()
        );
        assert!(
            encode(&RequestParts {
                path: "/é",
                ..base.clone()
            })
            .is_err()
        );
        assert!(
            encode(&RequestParts {
                headers: &header("a:", "b"),
                ..base.clone()
            })
            .is_err()
        );
        assert!(
            encode(&RequestParts {
                headers: &header("a", "b\r\nc: d"),
                ..base.clone()
            })
            .is_err()
        );
        assert!(
            encode(&RequestParts {
                headers: &header("Content-Length", "5"),
                ..base
            })
            .is_err()
        );
    }
}
