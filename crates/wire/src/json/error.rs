//! Why a text is not the message that was expected, and at which byte.

use std::fmt;

/// How deep objects and arrays may be nested.
pub const DEPTH_MAX: u32 = 64;

/// What was wrong with a text, and where.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Error {
    /// Offset of the byte at which reading stopped.
    pub at: usize,
    /// What was wrong there.
    pub wrong: Wrong,
}

/// What can be wrong with a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wrong {
    /// Something else should stand here: what.
    Expected(&'static str),
    /// The text ends too early.
    End,
    /// A number that its field cannot hold.
    Range(&'static str),
    /// A string that is not UTF-8.
    Utf8,
    /// A control character that is not escaped.
    Control,
    /// An escape that JSON does not have, or half of a surrogate pair.
    Escape,
    /// A field that the message needs is not there.
    Missing(&'static str),
    /// A field is there twice.
    Twice(&'static str),
    /// Nested deeper than [`DEPTH_MAX`].
    Depth,
    /// Something follows the message.
    Trailing,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match &self.wrong {
            Wrong::Expected(what) => write!(f, "expected {what}"),
            Wrong::End => f.write_str("the text ends too early"),
            Wrong::Range(what) => write!(f, "the number is out of the range of {what}"),
            Wrong::Utf8 => f.write_str("the string is not UTF-8"),
            Wrong::Control => f.write_str("a control character in a string must be escaped"),
            Wrong::Escape => f.write_str("there is no such escape"),
            Wrong::Missing(name) => write!(f, "the field `{name}` is missing"),
            Wrong::Twice(name) => write!(f, "the field `{name}` is there twice"),
            Wrong::Depth => write!(f, "nested deeper than {DEPTH_MAX}"),
            Wrong::Trailing => f.write_str("something follows the value"),
        }
    }
}

impl std::error::Error for Error {}
