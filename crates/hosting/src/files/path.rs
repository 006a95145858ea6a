//! The path of a request as the name of a file. Not for: what the file system makes of
//! it (`beneath`).

use std::borrow::Cow;

use super::refusal::Refusal;

/// As the kernel's `PATH_MAX`, whose last byte is the NUL.
const NAME_BYTES_MAX: usize = 4095;
/// The file that stands for a directory.
const INDEX: &[u8] = b"index.html";

/// The name, relative to the directory, of what `path` asks for: `path` begins with a
/// slash and is as it was sent. It is decoded once. No component of a name is empty, `.`,
/// `..` or hidden, and none has a slash or NUL in it.
pub(super) fn name(path: &str) -> Result<Cow<'_, [u8]>, Refusal> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.len() > NAME_BYTES_MAX {
        return Err(Refusal::NotFound);
    }
    let mut name = match path.contains('%') {
        true => Cow::Owned(decoded(path)?),
        false => Cow::Borrowed(path.as_bytes()),
    };
    if name.is_empty() || name.ends_with(b"/") {
        name.to_mut().extend_from_slice(INDEX);
    }
    match name.split(|&byte| byte == b'/').all(is_component) {
        true => Ok(name),
        false => Err(Refusal::NotFound),
    }
}

/// A prefix of paths, decoded, without a slash at its end.
pub(super) fn prefix(text: &str) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = first_byte(rest) {
        prefix.push(byte);
        rest = after;
    }
    while prefix.ends_with(b"/") {
        prefix.pop();
    }
    prefix
}

/// The part of `path` below a decoded prefix, as it was sent: empty, or from a slash on.
/// None if nothing is. It is decoded for that, because an application finds the same in
/// it however it was written: what is the files' must not come to it by another spelling.
#[inline]
pub(super) fn below<'p>(path: &'p str, prefix: &[u8]) -> Option<&'p str> {
    let rest = match path.as_bytes().strip_prefix(prefix) {
        Some(rest) => rest,
        None => decoded_below(path, prefix)?,
    };
    let is_below = matches!(first_byte(rest), None | Some((b'/', _)));
    // Paths are ASCII, so that a byte's place is a character's.
    is_below.then(|| &path[path.len() - rest.len()..])
}

fn decoded_below<'p>(path: &'p str, prefix: &[u8]) -> Option<&'p [u8]> {
    if !path.contains('%') {
        return None;
    }
    prefix.iter().try_fold(path.as_bytes(), |rest, &wanted| {
        let (byte, rest) = first_byte(rest)?;
        (byte == wanted).then_some(rest)
    })
}

/// The byte that `text` begins with, decoded, and what follows it. What only looks like
/// an encoding stays as it is.
fn first_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&first, after) = text.split_first()?;
    if let (b'%', [high, low, after @ ..]) = (first, after)
        && let (Ok(high), Ok(low)) = (digit(*high), digit(*low))
    {
        return Some((high << 4 | low, after));
    }
    Some((first, after))
}

/// A name that begins with a dot is hidden; `.` and `..` are among them.
fn is_component(name: &[u8]) -> bool {
    !name.is_empty() && name[0] != b'.' && !name.contains(&0)
}

fn decoded(path: &str) -> Result<Vec<u8>, Refusal> {
    let mut out = Vec::with_capacity(path.len() + INDEX.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let [high, low, after @ ..] = rest else {
            return Err(Refusal::BadPath);
        };
        rest = after;
        let byte = digit(*high)? << 4 | digit(*low)?;
        if byte == b'/' {
            // A slash within a component: no file has such a name.
            return Err(Refusal::NotFound);
        }
        out.push(byte);
    }
    Ok(out)
}

fn digit(byte: u8) -> Result<u8, Refusal> {
    // A hexadecimal digit is below 16.
    let value = char::from(byte).to_digit(16).ok_or(Refusal::BadPath)?;
    Ok(value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once_and_names_an_index() {
        for (path, expected) in [
            ("/a/b.css", "a/b.css"),
            ("/", "index.html"),
            ("", "index.html"),
            ("/a/", "a/index.html"),
            ("/a%20b", "a b"),
            ("/%41", "A"),
            ("/a%252e%252e", "a%2e%2e"),
            ("/a..b", "a..b"),
            ("/a\\b", "a\\b"),
            ("/a:b;c", "a:b;c"),
        ] {
            assert_eq!(name(path).as_deref(), Ok(expected.as_bytes()), "{path:?}");
        }
        assert_eq!(name("/%ff%c3%a9").as_deref(), Ok(&b"\xff\xc3\xa9"[..]));
    }

    #[test]
    fn an_encoded_prefix_was_not_one() {
        let files = prefix("/a%20b//");
        assert_eq!(files, b"/a b");
        for (path, rest) in [
            ("/a b", Some("")),
            ("/a%20b/x%2fy", Some("/x%2fy")),
            ("/%61%20%62/x", Some("/x")),
            ("/%61 b", Some("")),
            ("%2Fa b/", Some("/")),
            // An application would see the slash.
            ("/a b%2fx", Some("%2fx")),
            ("/a%20bc", None),
            ("/a%2520b/x", None),
            ("/a%2", None),
            ("/a%zzb", None),
            ("/A b/x", None),
            ("/", None),
        ] {
            assert_eq!(below(path, &files), rest, "{path}");
        }
        assert_eq!(below("/%", b""), Some("/%"));
        assert_eq!(below("*", b""), None);
    }

    #[test]
    fn a_path_that_could_lead_elsewhere_is_no_name() {
        let long = format!("/{}", "a/".repeat(2100));
        for path in [
            "/..",
            "/../a",
            "/a/..",
            "/a/../b",
            "/%2e%2e/a",
            "/.%2E/a",
            "/a/%2e%2e%2fb",
            "/a%2fb",
            "/a%00",
            "/%00",
            "//etc/passwd",
            "/a//b",
            "/./a",
            "/.git/config",
            "/a/.hidden",
            "/%2egit",
            &long,
        ] {
            assert_eq!(name(path), Err(Refusal::NotFound), "{path}");
        }
        for path in ["/%", "/%4", "/%zz", "/%+1", "/a%2"] {
            assert_eq!(name(path), Err(Refusal::BadPath), "{path}");
        }
    }
}
