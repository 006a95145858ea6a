//! Messages of a known shape as JSON text (RFC 8259), and back.
//!
//! For: small messages whose fields are known when the program is compiled. The shape
//! is compiled into straight code: a message that has its fields in the declared order
//! and no white space, as [`to_vec`] writes it, is read by comparing whole names; any
//! other order, white space and unknown fields are read too, only slower.
//! Everything that is read is checked: the grammar, UTF-8, control characters, ranges
//! of numbers, fields that are missing or given twice, and that nothing follows.
//! Not for: text of unknown shape, or formats other than JSON; that is `serde_json`'s.
//!
//! ```
//! use prony_wire::json;
//!
//! json::message! {
//!     /// A greeting.
//!     #[derive(Debug, PartialEq)]
//!     pub struct Greeting<'a> {
//!         /// Who is greeted.
//!         pub id: u64,
//!         /// With what.
//!         pub val: json::Text<'a>,
//!     }
//! }
//!
//! let bytes = json::to_vec(&Greeting { id: 20, val: "five hundred".into() });
//! assert_eq!(bytes, br#"{"id":20,"val":"five hundred"}"#);
//! let read: Greeting<'_> = json::from_slice(b" { \"val\": \"\\u0066ive\", \"id\": 7 } ")?;
//! assert_eq!(read, Greeting { id: 7, val: "five".into() });
//! let wrong = json::from_slice::<Greeting<'_>>(br#"{"id":-1,"val":""}"#).unwrap_err();
//! assert_eq!(wrong.to_string(), "byte 6: expected an unsigned number");
//! # Ok::<(), json::Error>(())
//! ```
//!
//! Fields may be `u64`, `i64`, `f64`, `bool`, [`Text`] (borrowed where it holds no
//! escape), `String`, `Option` of these (`null` or absent: `None`), `Vec` of these, and
//! other messages.

mod error;
mod read;
mod scan;
mod value;
mod write;

pub use crate::json_message as message;
pub use error::{DEPTH_MAX, Error, Wrong};
pub use read::{Reader, Text};
pub use value::Value;

/// Bytes that a fresh buffer holds: most small messages fit.
const BUFFER_BYTES: usize = 64;

/// `value` as JSON text without white space, in a fresh buffer.
#[inline]
pub fn to_vec<'a>(value: &impl Value<'a>) -> Vec<u8> {
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    value.write(&mut out);
    out
}

/// The value that `bytes` are the text of, and nothing else.
///
/// # Errors
/// [`Error`]: what was wrong, and at which byte.
#[inline]
pub fn from_slice<'a, T: Value<'a>>(bytes: &'a [u8]) -> Result<T, Error> {
    let mut reader = Reader::new(bytes);
    let value = T::read(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Declares structs of at least one field that are messages: see the [module](crate::json).
#[macro_export]
#[doc(hidden)]
macro_rules! json_message {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? {
            $( $(#[$field_meta:meta])* $field_vis:vis $field:ident : $type:ty ),+ $(,)?
        }
    )*) => {$(
        $(#[$meta])*
        $vis struct $name $(<$life>)? {
            $( $(#[$field_meta])* $field_vis $field : $type, )*
        }
        $crate::json_message!(@impl $name [$($life)?] $( $field : $type ),*);
    )*};
    (@impl $name:ident [] $($rest:tt)*) => {
        $crate::json_message!(@value ['de] $name [$name] $($rest)*);
    };
    (@impl $name:ident [$life:lifetime] $($rest:tt)*) => {
        $crate::json_message!(@value [$life] $name [$name<$life>] $($rest)*);
    };
    (@value [$life:lifetime] $name:ident [$full:ty] $( $field:ident : $type:ty ),+) => {
        impl<$life> $crate::json::Value<$life> for $full {
            #[inline]
            fn write(&self, out: &mut Vec<u8>) {
                let start = out.len();
                $(
                    let name = concat!(",\"", stringify!($field), "\":");
                    out.extend_from_slice(name.as_bytes());
                    $crate::json::Value::write(&self.$field, out);
                )*
                // What stands before the first name is no comma.
                out[start] = b'{';
                out.push(b'}');
            }

            #[inline]
            fn read(reader: &mut $crate::json::Reader<$life>) -> Result<Self, $crate::json::Error> {
                $( let mut $field: Option<$type> = None; )*
                reader.descend()?;
                let mut lead = b'{';
                let straight = 'straight: {
                    $(
                        let first = concat!("{\"", stringify!($field), "\":");
                        let other = concat!(",\"", stringify!($field), "\":");
                        if !reader.straight(lead, first, other) {
                            break 'straight false;
                        }
                        $field = Some($crate::json::Value::read(reader)?);
                        lead = b',';
                    )*
                    reader.straight_end()
                };
                while !straight && let Some(name) = reader.name(&mut lead)? {
                    match &*name {
                        $( stringify!($field) => {
                            if $field.is_some() {
                                let twice = $crate::json::Wrong::Twice(stringify!($field));
                                return Err(reader.wrong(twice));
                            }
                            $field = Some($crate::json::Value::read(reader)?);
                        } )*
                        _ => reader.skip()?,
                    }
                }
                reader.ascend();
                Ok($name { $(
                    $field: match $field.or_else($crate::json::Value::absent) {
                        Some(value) => value,
                        None => {
                            let missing = $crate::json::Wrong::Missing(stringify!($field));
                            return Err(reader.wrong(missing));
                        }
                    },
                )* })
            }
        }
    };
}

#[cfg(test)]
mod tests;
