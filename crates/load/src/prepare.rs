//! From what a user names to bytes: the address behind a URL, a request encoded once.

use std::net::{SocketAddr, ToSocketAddrs};

use http::Uri;
use prony_record::{ExpectedAnswer, LoadTarget, PreparedRequest};

/// A URL taken apart.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Url {
    /// As it was written.
    pub text: String,
    /// Host without port, brackets removed.
    pub host: String,
    /// Port; 80 where none is written.
    pub port: u16,
    /// What the `Host` header says.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

/// What is wrong with a URL.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It is none.
    #[error("`{0}` is not a URL: write it as http://HOST:PORT/PATH")]
    Malformed(String),
    /// It names another scheme.
    #[error("`{0}` is not plain HTTP: this generator speaks http:// only")]
    Scheme(String),
    /// It carries a user name or password.
    #[error("`{0}` carries credentials: send them with -H 'Authorization: …' instead")]
    Credentials(String),
    /// Its host has no address.
    #[error("`{host}` has no address: {reason}")]
    Unknown {
        /// The host.
        host: String,
        /// What the resolver said.
        reason: String,
    },
}

impl Url {
    /// Takes `text` apart. A missing scheme means `http://`.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        let malformed = || UrlError::Malformed(text.to_owned());
        let whole = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let uri: Uri = whole.parse().map_err(|_| malformed())?;
        if uri.scheme_str() != Some("http") {
            return Err(UrlError::Scheme(text.to_owned()));
        }
        let authority = uri.authority().ok_or_else(malformed)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials(text.to_owned()));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let has_port = authority.as_str().len() > authority.host().len();
        if host.is_empty() || (has_port && authority.port_u16().is_none()) {
            return Err(malformed());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Url {
            text: text.to_owned(),
            host,
            port: authority.port_u16().unwrap_or(80),
            authority: authority.to_string(),
            path,
        })
    }

    /// Its first address, IPv4 before IPv6: what listens on `localhost` is more often there.
    pub fn resolve(&self) -> Result<SocketAddr, UrlError> {
        let unknown = |reason: String| UrlError::Unknown {
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
            url: self.text.clone(),
            address: address.to_string(),
        }
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
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
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
        assert_eq!(
            (
                url("http://[::1]:9/").host.as_str(),
                url("http://[::1]:9/").authority.as_str()
            ),
            ("::1", "[::1]:9")
        );
        assert_eq!(url("http://a?q").path, "/?q");
    }

    #[test]
    fn a_url_that_cannot_be_driven_says_why() {
        let wrong = [
            "https://a/",
            "http://u:p@a/",
            "http://",
            "http://a b/",
            "http://a:99999/",
            "ftp://a/",
            "",
        ];
        let said: Vec<String> = wrong
            .iter()
            .map(|text| Url::parse(text).unwrap_err().to_string())
            .collect();
        insta::assert_snapshot!(said.join("\n"), @r"
        `https://a/` is not plain HTTP: this generator speaks http:// only
        `http://u:p@a/` carries credentials: send them with -H 'Authorization: …' instead
        `http://` is not a URL: write it as http://HOST:PORT/PATH
        `http://a b/` is not a URL: write it as http://HOST:PORT/PATH
        `http://a:99999/` is not a URL: write it as http://HOST:PORT/PATH
        `ftp://a/` is not plain HTTP: this generator speaks http:// only
        `` is not a URL: write it as http://HOST:PORT/PATH
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
