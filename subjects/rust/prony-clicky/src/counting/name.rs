//! What a counter is called. Not for: where in a URL that stands.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Bytes of the longest name.
pub const NAME_BYTES_MAX: usize = 64;

/// A name that was checked: the [root](Name::ROOT) counter's, or 1 to [`NAME_BYTES_MAX`]
/// letters, digits, dots, underscores and hyphens of ASCII, but not `.` or `..`. It lies
/// where it stands, so that naming a counter allocates nothing.
#[derive(Clone, Copy, Eq, Ord, PartialEq, PartialOrd)]
pub struct Name {
    bytes: [u8; NAME_BYTES_MAX],
    length: u8,
}

/// Why a text is no name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BadName {
    /// It has no bytes.
    Empty,
    /// It has more than [`NAME_BYTES_MAX`] bytes.
    TooLong,
    /// A byte that names do not have.
    Byte(u8),
    /// It is `.` or `..`, which in a path name a folder: clients and proxies take them out
    /// before they ask.
    Folder,
}

impl Name {
    /// The counter that a service has from its start.
    pub const ROOT: Name = Name {
        bytes: [0; NAME_BYTES_MAX],
        length: 0,
    };

    /// A named counter's name.
    ///
    /// # Errors
    /// [`BadName`]: what is wrong with it.
    pub fn new(text: &str) -> Result<Name, BadName> {
        if text == "." || text == ".." {
            return Err(BadName::Folder);
        }
        Name::of(text)
    }

    /// The same where a name may also be a folder's.
    fn of(text: &str) -> Result<Name, BadName> {
        if text.is_empty() {
            return Err(BadName::Empty);
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(BadName::TooLong);
        }
        let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        if let Some(&byte) = text.as_bytes().iter().find(|byte| !is_allowed(byte)) {
            return Err(BadName::Byte(byte));
        }
        let mut name = Name::ROOT;
        name.bytes[..text.len()].copy_from_slice(text.as_bytes());
        name.length = text.len() as u8;
        Ok(name)
    }

    /// A name as stores write it: the root counter's is empty there, and `.` and `..` may
    /// be counters from when they were names.
    ///
    /// # Errors
    /// [`BadName`].
    pub(super) fn stored(bytes: &[u8]) -> Result<Name, BadName> {
        match std::str::from_utf8(bytes) {
            Ok("") => Ok(Name::ROOT),
            Ok(text) => Name::of(text),
            Err(error) => Err(BadName::Byte(bytes[error.valid_up_to()])),
        }
    }

    /// Whether it is the root counter's.
    pub fn is_root(&self) -> bool {
        self.length == 0
    }

    /// The name as text; empty for the root counter.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or_default()
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Hash for Name {
    /// Of the name alone: most are much shorter than the longest.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", self.as_str())
    }
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Empty => f.write_str("a counter's name has at least one letter"),
            BadName::TooLong => {
                write!(f, "a counter's name has at most {NAME_BYTES_MAX} letters")
            }
            BadName::Folder => f.write_str("a counter's name is not '.' or '..'"),
            BadName::Byte(byte) => write!(
                f,
                "a counter's name has letters, digits, '.', '_' and '-', not '{}'",
                byte.escape_ascii()
            ),
        }
    }
}

impl std::error::Error for BadName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_urls_carry_unescaped() {
        assert_eq!(Name::new("a.B_9-").map(|name| name.as_str().len()), Ok(6));
        assert_eq!(Name::new(""), Err(BadName::Empty));
        assert_eq!(Name::new("a b"), Err(BadName::Byte(b' ')));
        assert_eq!(Name::new("a/b"), Err(BadName::Byte(b'/')));
        assert_eq!(Name::new("\u{e9}"), Err(BadName::Byte(0xc3)));
        assert!(Name::new(&"x".repeat(64)).is_ok());
        assert_eq!(Name::new(&"x".repeat(65)), Err(BadName::TooLong));
        assert!(Name::new("...").is_ok());
    }

    #[test]
    fn what_names_a_folder_in_a_path_was_a_counter() {
        for name in [".", ".."] {
            assert_eq!(Name::new(name), Err(BadName::Folder));
            // A store that has one from then can still be read.
            let stored = Name::stored(name.as_bytes());
            assert_eq!(stored.as_ref().map(Name::as_str), Ok(name));
        }
    }

    #[test]
    fn the_root_counter_is_stored_without_a_name() {
        assert_eq!(Name::stored(b""), Ok(Name::ROOT));
        assert_eq!(Name::stored(b"\xff"), Err(BadName::Byte(0xff)));
        assert!(Name::ROOT.is_root() && Name::ROOT.as_str().is_empty());
    }
}
