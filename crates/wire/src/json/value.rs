//! What a field may be.

use std::borrow::Cow;

use super::error::{Error, Wrong};
use super::read::{Reader, Text};
use super::write;

/// Something with one text in JSON. [`message!`](super::message) implements it for structs.
pub trait Value<'a>: Sized {
    /// Appends the text.
    fn write(&self, out: &mut Vec<u8>);

    /// Reads the text that comes next.
    ///
    /// # Errors
    /// [`Error`]: what was wrong, and at which byte.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Error>;

    /// What a field holds that is not there; `None`: it must be there.
    #[inline]
    fn absent() -> Option<Self> {
        None
    }
}

impl<'a> Value<'a> for u64 {
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

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<u64, Error> {
        reader.unsigned()
    }
}

impl<'a> Value<'a> for i64 {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(*self).as_bytes());
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<i64, Error> {
        reader.signed()
    }
}

/// What is not finite has no text in JSON and is written as `null`.
impl<'a> Value<'a> for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        let text = match self.is_finite() {
            true => self.to_string(),
            false => "null".to_owned(),
        };
        out.extend_from_slice(text.as_bytes());
    }

    fn read(reader: &mut Reader<'a>) -> Result<f64, Error> {
        let at = reader.mark();
        let text = reader.number()?;
        let number: f64 = text.parse().unwrap_or(f64::INFINITY);
        match number.is_finite() {
            true => Ok(number),
            false => Err(Error {
                at,
                wrong: Wrong::Range("a double"),
            }),
        }
    }
}

impl<'a> Value<'a> for bool {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<bool, Error> {
        reader.boolean()
    }
}

impl<'a> Value<'a> for Text<'a> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write::text(out, self);
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Text<'a>, Error> {
        reader.text()
    }
}

impl<'a> Value<'a> for String {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        write::text(out, self);
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<String, Error> {
        reader.text().map(Cow::into_owned)
    }
}

impl<'a, T: Value<'a>> Value<'a> for Option<T> {
    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write(out),
            None => out.extend_from_slice(b"null"),
        }
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Option<T>, Error> {
        if reader.null()? {
            return Ok(None);
        }
        T::read(reader).map(Some)
    }

    #[inline]
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<'a, T: Value<'a>> Value<'a> for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, value) in self.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            value.write(out);
        }
        out.push(b']');
    }

    fn read(reader: &mut Reader<'a>) -> Result<Vec<T>, Error> {
        let mut values = Vec::new();
        let mut lead = b'[';
        reader.descend()?;
        while reader.item(&mut lead)? {
            values.push(T::read(reader)?);
        }
        reader.ascend();
        Ok(values)
    }
}
