//! URLs of http and https: the one place that reads the text of one. What a syntax forgives is read as browsers
//! read it (the WHATWG's rules, by the crate `url`), but what they drop or repair silently is refused, as another URL
//! would then be requested than was written.
//!
//! For: the client, the generator, experiments, and every command that is given a URL. What each refuses beyond this
//! (credentials, https, another scheme left out) it adds itself.
//! Not for: names to addresses, or the Host header and the targets of received requests, which are bytes of a stranger.
//!
//! ```
//! let url = prony_wire::url::read("http://127.0.0.1:8080/hello?x=1")?;
//! assert_eq!((url.port(), url.path()), (Some(8080), "/hello"));
//! let error = prony_wire::url::read("127.0.0.1:8080/hello").unwrap_err();
//! assert_eq!(error.to_string(), "it has no scheme: begin it with http:// or https://");
//! # Ok::<(), prony_wire::url::UrlError>(())
//! ```

use std::fmt;

use ::url::ParseError;
pub use ::url::Url;

/// What is wrong with a URL: a sentence about "it", to be put behind the text or where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum UrlError {
    /// It has no scheme.
    NoScheme,
    /// It has another scheme than http and https.
    Scheme(String),
    /// It has an ASCII control character, which a parser of URLs drops.
    Control {
        /// The character.
        found: char,
        /// Bytes before it.
        place: usize,
    },
    /// It names no host.
    NoHost,
    /// Its port is no number, or not one of a server.
    Port,
    /// It breaks another rule.
    Syntax(ParseError),
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UrlError::NoScheme => {
                f.write_str("it has no scheme: begin it with http:// or https://")
            }
            UrlError::Scheme(scheme) => write!(
                f,
                "the scheme is {scheme}, only http:// and https:// can be fetched"
            ),
            UrlError::Control { found, place } => {
                let name = match found {
                    '\r' | '\n' => "a line break",
                    '\t' => "a tab",
                    _ => "a control character",
                };
                let code = u32::from(*found);
                write!(
                    f,
                    "there is {name} in it, behind {place} bytes: leave it out, or write %{code:02X} where it is meant"
                )
            }
            UrlError::NoHost => f.write_str("it names no host"),
            UrlError::Port => f.write_str("its port is no number from 1 to 65535"),
            UrlError::Syntax(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for UrlError {}

/// The text of a URL for people and records: a name and a password before its host are masked. There is no way from it to
/// the text that it was made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ShownUrl(String);

impl ShownUrl {
    /// Of the text of a URL, or of what was to be one.
    pub fn new(text: &str) -> ShownUrl {
        let is_scheme = |of: &str| {
            let mut bytes = of.bytes();
            let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic());
            begins && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        };
        let from = text.find("://").filter(|at| is_scheme(&text[..*at]));
        let (scheme, rest) = text.split_at(from.map_or(0, |at| at + 3));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // What is filled in is no port that one sees.
        let authority = without_fields(authority);
        let authority = authority.as_str();
        let port = match authority.split_once(']') {
            Some((_, behind)) if authority.starts_with('[') => behind,
            _ => authority.find(':').map_or("", |at| &authority[at..]),
        };
        let is_number = |of: &str| {
            let is_sign_free = of.bytes().all(|byte| byte.is_ascii_digit());
            is_sign_free && of.parse::<u16>().is_ok_and(|port| port > 0)
        };
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
        let is_place = !authority.is_empty() && !authority.contains('@') && is_port;
        // A password that was not escaped may have any character, so that all before the last `@` may be of it.
        ShownUrl(match rest.rfind('@').filter(|_| !is_place) {
            Some(at) => format!("{scheme}***{}", &rest[at..]),
            None => text.to_owned(),
        })
    }
}

/// `text` with a digit in the place of each `{env:NAME}`.
fn without_fields(text: &str) -> String {
    let mut parts = text.split("{env:");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((_, behind)) => plain.extend(["1", behind]),
            None => plain.extend(["{env:", part]),
        }
    }
    plain
}

impl fmt::Display for ShownUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a URL, which begins with its scheme and names a host.
///
/// # Errors
/// [`UrlError`], which says what is wrong.
pub fn read(text: &str) -> Result<Url, UrlError> {
    let mut characters = text.char_indices();
    if let Some((place, found)) = characters.find(|(_, one)| one.is_ascii_control()) {
        return Err(UrlError::Control { found, place });
    }
    let url = Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => UrlError::NoScheme,
        ParseError::EmptyHost => UrlError::NoHost,
        ParseError::InvalidPort => UrlError::Port,
        other => UrlError::Syntax(other),
    })?;
    match url.scheme() {
        "http" | "https" if url.port() == Some(0) => Err(UrlError::Port),
        "http" | "https" => Ok(url),
        // `localhost:8080` is a name and a port to those who write it.
        _ if !text.contains("://") => Err(UrlError::NoScheme),
        other => Err(UrlError::Scheme(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_url_says_why() {
        let said: Vec<String> = [
            "",
            "127.0.0.1:80",
            "localhost:80/x",
            "ftp://a/b",
            "http://",
            "http://:80",
            "http://::1",
            "http://a:65536",
            "http://a:+1",
            "http://a:0",
            "http://a b/",
            "http://[::1",
            "http://[::1]x",
            "http://a/b\r\nc",
            "http://a/\t",
            "http://a/\0",
        ]
        .map(|text| read(text).expect_err(text).to_string())
        .into();
        insta::assert_snapshot!(said.join("\n"), @"
        it has no scheme: begin it with http:// or https://
        it has no scheme: begin it with http:// or https://
        it has no scheme: begin it with http:// or https://
        the scheme is ftp, only http:// and https:// can be fetched
        it names no host
        it names no host
        it names no host
        its port is no number from 1 to 65535
        its port is no number from 1 to 65535
        its port is no number from 1 to 65535
        invalid international domain name
        invalid IPv6 address
        invalid IPv6 address
        there is a line break in it, behind 10 bytes: leave it out, or write %0D where it is meant
        there is a tab in it, behind 9 bytes: leave it out, or write %09 where it is meant
        there is a control character in it, behind 9 bytes: leave it out, or write %00 where it is meant
        ");
    }

    #[test]
    fn hosts_and_paths_are_as_a_browser_reads_them() {
        for (text, read_as) in [
            ("http://a", "http://a/"),
            ("HTTP://A:80/x", "http://a/x"),
            ("https://a:443?q", "https://a/?q"),
            ("http://[::1]:9/", "http://[::1]:9/"),
            (
                "http://B\u{fc}cher.example/\u{e4} b",
                "http://xn--bcher-kva.example/%C3%A4%20b",
            ),
        ] {
            assert_eq!(read(text).expect(text).as_str(), read_as);
        }
    }

    #[test]
    fn whoever_logs_in_is_not_shown() {
        for (text, shown) in [
            ("http://u:p@a/b", "http://***@a/b"),
            ("u:p@a", "***@a"),
            ("https://u@a:1/", "https://***@a:1/"),
            ("http://u:p/q@w@a/", "http://***@a/"),
            ("ftp://u:p?q#r\\s@a/", "ftp://***@a/"),
            ("http://@a/", "http://***@a/"),
            ("u:p@a/?to=http://x/", "***@a/?to=http://x/"),
            ("p@a/?to=http://x", "***@a/?to=http://x"),
            ("http://u:/p@a/", "http://***@a/"),
            ("http://{env:USER}:p@a/", "http://***@a/"),
            ("http://CORP\\u:p@a/", "http://***@a/"),
            ("http:///u:p@a/", "http://***@a/"),
            ("http://\\u:p@a/", "http://***@a/"),
            ("http://?u:p@a/", "http://***@a/"),
            ("http://u:{env:8/p@a/", "http://***@a/"),
            // There is none in these.
            ("http://a:1/?to=http://b/@:c", "http://a:1/?to=http://b/@:c"),
            ("http://[::1]/@", "http://[::1]/@"),
            ("http://[::1]:9/@", "http://[::1]:9/@"),
            ("http://a/{env:KEY}@b", "http://a/{env:KEY}@b"),
            ("http://{env:A}:80/@b", "http://{env:A}:80/@b"),
            (
                "http://{env:A}:{env:B}/?c=d@e",
                "http://{env:A}:{env:B}/?c=d@e",
            ),
        ] {
            assert_eq!(ShownUrl::new(text).to_string(), shown);
        }
    }

    proptest! {
        #[test]
        fn a_password_is_not_shown_whatever_it_holds(password in "[!-~]{8,20}") {
            let text = format!("http://user:{password}@a/");
            let shown = ShownUrl::new(&text).to_string();
            let is_url = read(&text).is_ok_and(|url| url.username().is_empty());
            prop_assert!(is_url || !shown.contains(&password), "{text}: {shown}");
        }

        #[test]
        fn no_text_makes_reading_panic(text in ".{0,60}") {
            let _ = ShownUrl::new(&text);
            let _ = read(&text);
            let _ = read(&format!("http://{text}"));
        }
    }
}
