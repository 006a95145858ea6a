//! The name that a file gets when the user gave none: from a URL or a header, neither of
//! which is trusted.
//!
//! For: names that stay in the folder they were meant for. Not for: paths that the user typed.

use std::fmt;

use percent_encoding::percent_decode;
use prony_wire::url::Url;

/// The longest name in bytes: the system's 255, less what is hung on while it is not whole.
pub const NAME_BYTES_MAX: usize = 240;

/// Why there is no name to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// What it would have been.
    pub name: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadName { name, why } = self;
        write!(
            f,
            "{name:?} cannot be the name of a file: {why} (give one with -o)"
        )
    }
}

/// The last part of a URL's path.
///
/// # Errors
/// [`BadName`]: there is none, or it would lead elsewhere.
pub fn of_url(url: &Url) -> Result<String, BadName> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back());
    let decoded: Vec<u8> = percent_decode(last.unwrap_or_default().as_bytes()).collect();
    checked(&decoded)
}

/// The name in a Content-Disposition; None where it has none.
///
/// # Errors
/// [`BadName`]: it would lead elsewhere, or hide.
pub fn of_header(value: &[u8]) -> Option<Result<String, BadName>> {
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters(value) {
        if name.eq_ignore_ascii_case(b"filename") {
            plain = plain.or(Some(value));
        } else if name.eq_ignore_ascii_case(b"filename*") {
            extended = extended.or_else(|| utf8_value(&value));
        }
    }
    let name = extended.or(plain)?;
    Some(checked(&name).and_then(|name| match name.starts_with('.') {
        // A server has no business with .bashrc.
        true => Err(BadName {
            name,
            why: "a server may not give a hidden one",
        }),
        false => Ok(name),
    }))
}

/// `UTF-8''percent-encoded` (RFC 8187).
fn utf8_value(value: &[u8]) -> Option<Vec<u8>> {
    let mut parts = value.splitn(3, |&byte| byte == b'\'');
    let (charset, _language, text) = (parts.next()?, parts.next()?, parts.next()?);
    let is_utf8 = charset.eq_ignore_ascii_case(b"utf-8");
    is_utf8.then(|| percent_decode(text).collect())
}

/// `; name=value; name="quoted \" value"`, after the first word.
fn parameters(value: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = after(value, b';');
    while !rest.is_empty() {
        let equals = rest.iter().position(|&byte| byte == b'=' || byte == b';');
        let Some(equals) = equals.filter(|&place| rest[place] == b'=') else {
            rest = after(rest, b';');
            continue;
        };
        let name = rest[..equals].trim_ascii();
        let (value, left) = one_value(rest[equals + 1..].trim_ascii_start());
        found.push((name, value));
        rest = left;
    }
    found
}

/// A word or a quoted string, and what follows the next semicolon.
fn one_value(text: &[u8]) -> (Vec<u8>, &[u8]) {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end = text.iter().position(|&byte| byte == b';');
        let word = text[..end.unwrap_or(text.len())].trim_ascii();
        return (word.to_vec(), after(text, b';'));
    };
    let (mut value, mut place) = (Vec::new(), 0);
    while let Some(&byte) = quoted.get(place) {
        match byte {
            b'"' => break,
            b'\\' => {
                place += 1;
                value.extend(quoted.get(place));
            }
            other => value.push(other),
        }
        place += 1;
    }
    (value, after(&quoted[place.min(quoted.len())..], b';'))
}

fn after(text: &[u8], byte: u8) -> &[u8] {
    let place = text.iter().position(|&one| one == byte);
    place.map_or(&[], |place| &text[place + 1..])
}

fn checked(name: &[u8]) -> Result<String, BadName> {
    let text = String::from_utf8_lossy(name).into_owned();
    let why = match std::str::from_utf8(name) {
        Err(_) => "it is no UTF-8",
        Ok("") => "it is empty",
        Ok("." | "..") => "it names a folder",
        Ok(name) if name.contains(['/', '\\']) => "it leads to another folder",
        Ok(name) if name.chars().any(char::is_control) => "it has control characters",
        Ok(name) if name.len() > NAME_BYTES_MAX => "it is longer than 240 bytes",
        Ok(_) => return Ok(text),
    };
    let name = text.chars().take(NAME_BYTES_MAX).collect();
    Err(BadName { name, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<String, &'static str> {
        of_url(&Url::parse(url).expect("a URL")).map_err(|bad| bad.why)
    }

    #[test]
    fn the_last_part_of_a_path_is_the_name() {
        assert_eq!(of("http://a/x/y.txt?z=1#f").as_deref(), Ok("y.txt"));
        assert_eq!(of("http://a/caf%C3%A9").as_deref(), Ok("café"));
        assert_eq!(of("http://a/with%20space").as_deref(), Ok("with space"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_none() {
        for (url, why) in [
            ("http://a", "it is empty"),
            ("http://a/x/", "it is empty"),
            ("http://a/..", "it is empty"),
            ("http://a/x/%2e%2e", "it is empty"),
            ("http://a/%2e%2e%2f", "it leads to another folder"),
            (
                "http://a/%2e%2e%2fetc%2fpasswd",
                "it leads to another folder",
            ),
            ("http://a/..%5cx", "it leads to another folder"),
            ("http://a/a%00b", "it has control characters"),
            ("http://a/a%1b[2Jb", "it has control characters"),
            ("http://a/%ff", "it is no UTF-8"),
        ] {
            assert_eq!(of(url), Err(why), "{url}");
        }
        let long = format!("http://a/{}", "x".repeat(241));
        assert_eq!(of(&long), Err("it is longer than 240 bytes"));
    }

    #[test]
    fn headers_are_read_as_rfc_6266_has_them() {
        let of = |text: &str| of_header(text.as_bytes()).map(|name| name.map_err(|bad| bad.why));
        let name = |text: &str| Some(Ok(text.to_owned()));
        assert_eq!(of("attachment"), None);
        assert_eq!(of("attachment; filename=a.txt"), name("a.txt"));
        assert_eq!(of("inline;FileName = \"a; b.txt\" ; x=1"), name("a; b.txt"));
        assert_eq!(of("attachment; filename=\"a\\\"b\""), name("a\"b"));
        let both = "attachment; filename=\"e.txt\"; filename*=utf-8'en'%e2%82%ac.txt";
        assert_eq!(of(both), name("€.txt"));
        assert_eq!(of("attachment; filename*=latin1''x; filename=y"), name("y"));
        let wrong = |why| Some(Err(why));
        let other_folder = wrong("it leads to another folder");
        assert_eq!(of("attachment; filename=\"../a\""), other_folder);
        assert_eq!(of("attachment; filename=/etc/passwd"), other_folder);
        assert_eq!(of("attachment; filename*=UTF-8''..%2fa"), other_folder);
        assert_eq!(
            of("attachment; filename=\"..\""),
            wrong("it names a folder")
        );
        assert_eq!(of("attachment; filename="), wrong("it is empty"));
        assert_eq!(
            of("attachment; filename=.bashrc"),
            wrong("a server may not give a hidden one")
        );
        for broken in [
            "",
            ";",
            ";;=",
            "a; filename=\"",
            "a; filename=\"x\\",
            "a;=;=\"",
        ] {
            let _ = of(broken);
        }
    }
}
