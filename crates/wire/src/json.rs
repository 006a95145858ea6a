//! Small messages of a known shape as JSON text (RFC 8259), and back, where that is on a path that is measured.
//!
//! The shape is compiled into straight code: a message is written name by name, and one that stands there as [`to_vec`]
//! writes it (fields in the declared order, no white space, no escapes) is read by comparing whole names. Whatever looks
//! otherwise is `serde_json`'s to read and to judge.
//! Not for: what is not on such a path; that is `serde_json`'s alone.
//!
//! ```
//! use prony_wire::json;
//!
//! json::message! {
//!     /// A greeting.
//!     #[derive(Debug, PartialEq)]
//!     pub struct Greeting {
//!         /// Who is greeted.
//!         pub id: u64,
//!         /// With what.
//!         pub val: String,
//!     }
//! }
//!
//! let bytes = json::to_vec(&Greeting { id: 20, val: "five hundred".into() });
//! assert_eq!(bytes, br#"{"id":20,"val":"five hundred"}"#);
//! let read: Greeting = json::from_slice(b" { \"val\": \"\\u0066ive\", \"id\": 7 } ")?;
//! assert_eq!(read, Greeting { id: 7, val: "five".into() });
//! let wrong = json::from_slice::<Greeting>(br#"{"id":-1,"val":""}"#).unwrap_err();
//! assert_eq!(
//!     wrong.to_string(),
//!     "invalid value: integer `-1`, expected u64 at line 1 column 8",
//! );
//! # Ok::<(), json::Error>(())
//! ```
//!
//! Fields may be `u64`, `String` and other messages, which are read straight; and `i64`, `f64`, `bool`, and `Option` and
//! `Vec` of all these, whose messages are `serde_json`'s to read. It takes an array of its fields' values for a message
//! within another, too.

#[doc(hidden)]
pub use serde;
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _, Unexpected};

pub use crate::json_message as message;
pub use serde_json::Error;

/// Bytes that a fresh buffer holds: most small messages fit.
const BUFFER_BYTES: usize = 64;

/// `value` as JSON text without white space, in a fresh buffer.
#[inline]
pub fn to_vec(value: &impl Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    value.write(&mut out);
    out
}

/// The value that `bytes` are the text of, and nothing else.
///
/// # Errors
/// What was wrong, and at which line and column.
#[inline]
pub fn from_slice<T: Value>(bytes: &[u8]) -> Result<T, Error> {
    let mut reader = Reader { rest: bytes };
    match T::straight(&mut reader) {
        Some(value) if reader.rest.is_empty() => Ok(value),
        _ => other(bytes),
    }
}

#[cold]
fn other<T: Value>(bytes: &[u8]) -> Result<T, Error> {
    // All of the text, for serde_json passes over the strings of unknown fields.
    let text = std::str::from_utf8(bytes).map_err(Error::custom)?;
    // Serde would take an array for a struct, too.
    if T::IS_MESSAGE && text.trim_ascii_start().starts_with('[') {
        return Err(Error::invalid_type(Unexpected::Seq, &"an object"));
    }
    serde_json::from_str(text)
}

/// Something with one text in JSON. [`message!`] implements it for structs.
pub trait Value: Serialize + DeserializeOwned {
    /// True for structs.
    #[doc(hidden)]
    const IS_MESSAGE: bool = false;

    /// Appends the text.
    fn write(&self, out: &mut Vec<u8>) {
        let written = serde_json::to_writer(out, self);
        debug_assert!(written.is_ok(), "memory takes all, and no value is a map");
    }

    /// Reads the text that comes next if it stands there as [`write`](Value::write) writes it, without an escape.
    fn straight(_reader: &mut Reader<'_>) -> Option<Self> {
        None
    }
}

impl Value for i64 {}
impl Value for f64 {}
impl Value for bool {}
impl<T: Value> Value for Option<T> {}
impl<T: Value> Value for Vec<T> {}

impl Value for u64 {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        match *self {
            // The most frequent ones, for which formatting elsewhere and copying costs more.
            digit @ 0..10 => out.push(b'0' + digit as u8),
            two @ 10..100 => {
                out.extend_from_slice(&[b'0' + (two / 10) as u8, b'0' + (two % 10) as u8])
            }
            more => out.extend_from_slice(itoa::Buffer::new().format(more).as_bytes()),
        }
    }

    /// Digits of any number of 19 fit into 64 bits; what has more, or goes on after its digits, does not go on straight.
    #[inline]
    fn straight(reader: &mut Reader<'_>) -> Option<u64> {
        let mut number = 0;
        let mut used = 0;
        while used < 19
            && let Some(digit @ b'0'..=b'9') = reader.rest.get(used)
        {
            number = number * 10 + u64::from(digit - b'0');
            used += 1;
        }
        let is_whole = used == 1 || (used > 1 && reader.rest[0] != b'0');
        reader.rest = &reader.rest[used..];
        is_whole.then_some(number)
    }
}

impl Value for String {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let plain = plain_bytes(self.as_bytes());
        if plain < self.len() {
            return escaped(self, out);
        }
        out.push(b'"');
        out.extend_from_slice(self.as_bytes());
        out.push(b'"');
    }

    #[inline]
    fn straight(reader: &mut Reader<'_>) -> Option<String> {
        reader.take("\"")?;
        let (plain, rest) = reader.rest.split_at(plain_bytes(reader.rest));
        reader.rest = rest;
        reader.take("\"")?;
        std::str::from_utf8(plain).ok().map(str::to_owned)
    }
}

#[cold]
fn escaped(text: &str, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, text);
    debug_assert!(written.is_ok(), "memory takes all");
}

/// What follows of a text.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// Takes `piece` if it comes next. A name is one piece with its quotes, its colon and what comes before it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take(&mut self, piece: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(piece.as_bytes())?;
        Some(())
    }
}

/// Bytes at the start of `bytes` that a string may hold as they are: no quote, no backslash, no control character.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = special_at(*word) {
            return index * 8 + at;
        }
    }
    // The last eight bytes, of which the first were looked at already.
    if let Some(last) = bytes.last_chunk::<8>() {
        return bytes.len() - 8 + special_at(*last).unwrap_or(8);
    }
    let special = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    tail.iter().position(special).unwrap_or(tail.len())
}

/// Where among eight bytes the first is that is not plain.
#[inline(always)]
fn special_at(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    // The lowest set bit is exact: a borrow only ever goes upward.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let word = u64::from_le_bytes(bytes);
    let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
    let found =
        controls | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
    (found != 0).then(|| found.trailing_zeros() as usize / 8)
}

/// Declares structs of at least one field that are messages: see the [module](crate::json).
#[macro_export]
#[doc(hidden)]
macro_rules! json_message {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $(#[$first_meta:meta])* $first_vis:vis $first:ident : $first_type:ty
            $(, $(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty )* $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        #[derive($crate::json::serde::Serialize, $crate::json::serde::Deserialize)]
        #[serde(crate = "prony_wire::json::serde")]
        $vis struct $name {
            $(#[$first_meta])* $first_vis $first : $first_type,
            $( $(#[$field_meta])* $field_vis $field : $type, )*
        }

        impl $crate::json::Value for $name {
            const IS_MESSAGE: bool = true;

            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(concat!("{\"", stringify!($first), "\":").as_bytes());
                $crate::json::Value::write(&self.$first, out);
                $(
                    out.extend_from_slice(concat!(",\"", stringify!($field), "\":").as_bytes());
                    $crate::json::Value::write(&self.$field, out);
                )*
                out.push(b'}');
            }

            #[inline]
            fn straight(reader: &mut $crate::json::Reader<'_>) -> Option<Self> {
                reader.take(concat!("{\"", stringify!($first), "\":"))?;
                let $first = $crate::json::Value::straight(reader)?;
                $(
                    reader.take(concat!(",\"", stringify!($field), "\":"))?;
                    let $field = $crate::json::Value::straight(reader)?;
                )*
                reader.take("}")?;
                Some($name { $first, $( $field, )* })
            }
        }
    )*};
}

#[cfg(test)]
mod tests;
