//! URLs and their origins: the one place of the client that parses the text of a URL.

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
    pub fn of(url: &Url) -> Result<Origin, Error> {
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

/// Parses a URL, and refuses control characters.
///
/// # Errors
/// [`Kind::BadUrl`].
pub(super) fn parse(text: &str) -> Result<Url, Error> {
    let bad = |why| Error::new(RequestPhase::Request, Kind::BadUrl(why)).url(text);
    if let Some(why) = stray_control(text) {
        return Err(bad(why));
    }
    Url::parse(text).map_err(|error| bad(error.to_string()))
}

/// Describes the first control character in the text of a URL. URL parsers drop line breaks
/// and tabs silently, so that another URL would be requested than was written.
pub fn stray_control(text: &str) -> Option<String> {
    let (place, found) = text
        .char_indices()
        .find(|(_, one)| one.is_ascii_control())?;
    let name = match found {
        '\r' | '\n' => "a line break",
        '\t' => "a tab",
        _ => "a control character",
    };
    let code = u32::from(found);
    Some(format!(
        "there is {name} in it, behind {place} bytes: leave it out, or write %{code:02X} where it is meant"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Result<Origin, Error> {
        Origin::of(&Url::parse(text).expect("a URL"))
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
    fn control_characters_are_said_and_found_nowhere_else() {
        let of = |text| stray_control(text).unwrap_or_default();
        assert!(of("http://a/b\r\nc").starts_with("there is a line break in it, behind 10 bytes"));
        assert!(of("http://a/\t").ends_with("or write %09 where it is meant"));
        assert!(of("http://a/\0").contains("a control character"));
        assert_eq!(stray_control("http://a/\u{e4} b%0D"), None);
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
