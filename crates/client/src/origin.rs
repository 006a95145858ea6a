//! Origins of URLs. Not for: the text of a URL ([`prony_wire::url`]).

use url::Url;

use super::error::{Error, Kind, RequestPhase};

/// The endpoint of a connection: scheme, host and port (RFC 9110, section 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether the scheme is https.
    pub secure: bool,
    /// A name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// The origin of a URL.
    ///
    /// # Errors
    /// [`Kind::BadUrl`] for another scheme than http and https, and without a host.
    pub fn from_url(url: &Url) -> Result<Origin, Error> {
        let bad = |text: &str| {
            Error::new(RequestPhase::Request, Kind::BadUrl(text.to_owned())).url(url.as_str())
        };
        let secure = match url.scheme() {
            "http" => false,
            "https" => true,
            other => {
                return Err(bad(&format!(
                    "the scheme is {other}, only http and https can be fetched"
                )));
            }
        };
        let host = url
            .host_str()
            .ok_or_else(|| bad("there is no host in it"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok(Origin {
            secure,
            host: host.to_owned(),
            // Both schemes have a default.
            port: url.port_or_known_default().unwrap_or(80),
        })
    }

    /// Host and port as in a Host header: a scheme's default port is left out.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.secure, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Reads a URL.
///
/// # Errors
/// [`Kind::BadUrl`].
pub(super) fn parse(text: &str) -> Result<Url, Error> {
    prony_wire::url::read(text).map_err(|error| {
        Error::new(RequestPhase::Request, Kind::BadUrl(error.to_string())).url(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Result<Origin, Error> {
        Origin::from_url(&Url::parse(text).expect("a URL"))
    }

    #[test]
    fn a_default_port_is_not_said() {
        for (text, authority) in [
            ("http://a/", "a"),
            ("https://a:443/x", "a"),
            ("https://a:80/x", "a:80"),
            ("http://[::1]:8080/", "[::1]:8080"),
            ("http://[::1]/", "[::1]"),
            ("http://B\u{fc}cher.example/", "xn--bcher-kva.example"),
        ] {
            assert_eq!(origin(text).expect("fine").authority(), authority);
        }
    }

    #[test]
    fn another_scheme_is_an_error_that_names_it() {
        let error = origin("ftp://a/b").expect_err("no ftp");
        assert_eq!(
            error.to_string(),
            "ftp://a/b: preparing the request: the scheme is ftp, only http and https can be fetched"
        );
    }
}
