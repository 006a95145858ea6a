//! From text to values, one token after the other.
//!
//! INVARIANT: what was used is well formed as far as it goes; `rest` is what follows.

use std::borrow::Cow;

use super::error::{DEPTH_MAX, Error, Wrong};
use super::scan::plain_bytes;

/// A string: borrowed from the input unless an escape had to be resolved.
pub type Text<'a> = Cow<'a, str>;

/// Reads one text. Made by [`from_slice`](super::from_slice).
pub struct Reader<'a> {
    whole: &'a [u8],
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader {
            whole: bytes,
            rest: bytes,
            depth: 0,
        }
    }

    /// The offset of what comes next.
    #[inline]
    pub(super) fn mark(&mut self) -> usize {
        self.space();
        self.whole.len() - self.rest.len()
    }

    /// The error that something is wrong with what comes next.
    #[doc(hidden)]
    #[cold]
    pub fn wrong(&self, wrong: Wrong) -> Error {
        Error {
            at: self.whole.len() - self.rest.len(),
            wrong,
        }
    }

    #[cold]
    fn expected(&self, what: &'static str) -> Error {
        match self.rest.is_empty() {
            true => self.wrong(Wrong::End),
            false => self.wrong(Wrong::Expected(what)),
        }
    }

    #[inline]
    fn space(&mut self) {
        while let Some((b' ' | b'\t' | b'\n' | b'\r', after)) = self.rest.split_first() {
            self.rest = after;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8) -> bool {
        match self.rest.split_first() {
            Some((first, after)) if *first == byte => {
                self.rest = after;
                true
            }
            _ => false,
        }
    }

    /// That nothing follows.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.space();
        match self.rest.is_empty() {
            true => Ok(()),
            false => Err(self.wrong(Wrong::Trailing)),
        }
    }

    /// Goes into an object or an array.
    #[doc(hidden)]
    #[inline]
    pub fn descend(&mut self) -> Result<(), Error> {
        if self.depth == DEPTH_MAX {
            return Err(self.wrong(Wrong::Depth));
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes out of it again.
    #[doc(hidden)]
    #[inline]
    pub fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// Takes a name if it stands here exactly so, with its quotes, its colon and what comes
    /// before it: `first` where `lead` is `{`, else `other`. It is one piece, and is
    /// compared as one.
    #[doc(hidden)]
    #[inline(always)]
    pub fn straight(&mut self, lead: u8, first: &str, other: &str) -> bool {
        let name = if lead == b'{' { first } else { other };
        match self.rest.strip_prefix(name.as_bytes()) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    /// Takes the end of an object if it stands here.
    #[doc(hidden)]
    #[inline(always)]
    pub fn straight_end(&mut self) -> bool {
        self.take(b'}')
    }

    /// The next name in an object, with its colon; `None` at its end. `lead` is what
    /// stands before it: `{` before the first, `,` before the others.
    #[doc(hidden)]
    pub fn name(&mut self, lead: &mut u8) -> Result<Option<Text<'a>>, Error> {
        if !self.next(lead, b'{', b'}')? {
            return Ok(None);
        }
        let name = self.text()?;
        self.space();
        match self.take(b':') {
            true => Ok(Some(name)),
            false => Err(self.expected("`:`")),
        }
    }

    /// Whether another item follows in an array; `lead` as for [`name`](Reader::name).
    pub(super) fn item(&mut self, lead: &mut u8) -> Result<bool, Error> {
        self.next(lead, b'[', b']')
    }

    fn next(&mut self, lead: &mut u8, open: u8, close: u8) -> Result<bool, Error> {
        self.space();
        let first = *lead == open;
        if !first && self.take(close) {
            return Ok(false);
        }
        if !self.take(*lead) {
            return Err(self.expected(match (first, open) {
                (true, b'{') => "an object",
                (true, _) => "an array",
                (false, b'{') => "`,` or `}`",
                (false, _) => "`,` or `]`",
            }));
        }
        self.space();
        if first && self.take(close) {
            *lead = b',';
            return Ok(false);
        }
        *lead = b',';
        Ok(true)
    }

    /// A string.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Text<'a>, Error> {
        if self.rest.first() != Some(&b'"') {
            self.space();
        }
        let Some((b'"', inside)) = self.rest.split_first() else {
            return Err(self.expected("a string"));
        };
        let plain = plain_bytes(inside);
        if inside.get(plain) == Some(&b'"') {
            let text = self.utf8(&inside[..plain])?;
            self.rest = &inside[plain + 1..];
            return Ok(Cow::Borrowed(text));
        }
        self.rest = inside;
        self.escaped_text()
    }

    #[inline]
    fn utf8(&self, bytes: &'a [u8]) -> Result<&'a str, Error> {
        std::str::from_utf8(bytes).map_err(|_| self.wrong(Wrong::Utf8))
    }

    /// The rest of a string after its quote, in which not everything is plain.
    #[cold]
    fn escaped_text(&mut self) -> Result<Text<'a>, Error> {
        let mut text = String::new();
        loop {
            let plain = plain_bytes(self.rest);
            text.push_str(self.utf8(&self.rest[..plain])?);
            self.rest = &self.rest[plain..];
            match self.rest.first() {
                None => return Err(self.wrong(Wrong::End)),
                Some(b'"') => {
                    self.rest = &self.rest[1..];
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.wrong(Wrong::Control)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        let Some(&letter) = self.rest.get(1) else {
            return Err(self.wrong(Wrong::End));
        };
        let plain = match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err(self.wrong(Wrong::Escape)),
        };
        self.rest = &self.rest[2..];
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, Error> {
        let first = self.unit(self.rest)?;
        let (code, used) = match first {
            0xd800..0xdc00 => match self.unit(&self.rest[6..]) {
                Ok(second @ 0xdc00..0xe000) => {
                    (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
                }
                _ => return Err(self.wrong(Wrong::Escape)),
            },
            _ => (first, 6),
        };
        let Some(letter) = char::from_u32(code) else {
            return Err(self.wrong(Wrong::Escape));
        };
        self.rest = &self.rest[used..];
        Ok(letter)
    }

    /// The number in `\uXXXX` at the start of `bytes`.
    fn unit(&self, bytes: &[u8]) -> Result<u32, Error> {
        let Some((b"\\u", digits)) = bytes.split_at_checked(2) else {
            return Err(self.wrong(Wrong::Escape));
        };
        let digits = digits.get(..4).ok_or_else(|| self.wrong(Wrong::Escape))?;
        digits.iter().try_fold(0, |number, &digit| {
            let digit = char::from(digit).to_digit(16);
            digit.map_or_else(
                || Err(self.wrong(Wrong::Escape)),
                |digit| Ok(number << 4 | digit),
            )
        })
    }

    /// An unsigned number without fraction or exponent.
    #[inline]
    pub(super) fn unsigned(&mut self) -> Result<u64, Error> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            self.space();
        }
        let (number, used) = match digits(self.rest) {
            Digits::Number(number, used) => (number, used),
            Digits::TooLarge => return Err(self.wrong(Wrong::Range("a 64-bit unsigned number"))),
            Digits::None => return Err(self.expected("an unsigned number")),
        };
        self.rest = &self.rest[used..];
        Ok(number)
    }

    /// A number without fraction or exponent.
    #[inline]
    pub(super) fn signed(&mut self) -> Result<i64, Error> {
        self.space();
        let negative = self.rest.first() == Some(&b'-');
        let (number, used) = match digits(&self.rest[usize::from(negative)..]) {
            Digits::Number(number, used) => (number, used),
            Digits::TooLarge => return Err(self.wrong(Wrong::Range("a 64-bit number"))),
            Digits::None => return Err(self.expected("a whole number")),
        };
        let signed = match negative {
            true => 0_i64.checked_sub_unsigned(number),
            false => i64::try_from(number).ok(),
        };
        let signed = signed.ok_or_else(|| self.wrong(Wrong::Range("a 64-bit number")))?;
        self.rest = &self.rest[usize::from(negative) + used..];
        Ok(signed)
    }

    /// The text of any number.
    pub(super) fn number(&mut self) -> Result<&'a str, Error> {
        self.space();
        let used = number_bytes(self.rest).ok_or_else(|| self.expected("a number"))?;
        let text = self.utf8(&self.rest[..used])?;
        self.rest = &self.rest[used..];
        Ok(text)
    }

    /// `true` or `false`.
    #[inline]
    pub(super) fn boolean(&mut self) -> Result<bool, Error> {
        self.space();
        match (self.word(b"true"), self.word(b"false")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => Err(self.expected("`true` or `false`")),
        }
    }

    /// Takes `null` if it stands here.
    #[inline]
    pub(super) fn null(&mut self) -> Result<bool, Error> {
        self.space();
        Ok(self.word(b"null"))
    }

    #[inline]
    fn word(&mut self, word: &[u8]) -> bool {
        match self.rest.strip_prefix(word) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    /// Passes over any value, checking it.
    #[doc(hidden)]
    pub fn skip(&mut self) -> Result<(), Error> {
        self.space();
        match self.rest.first() {
            Some(b'"') => self.text().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b't' | b'f') => self.boolean().map(drop),
            Some(b'{') => {
                let mut lead = b'{';
                self.descend()?;
                while self.name(&mut lead)?.is_some() {
                    self.skip()?;
                }
                self.ascend();
                Ok(())
            }
            Some(b'[') => {
                let mut lead = b'[';
                self.descend()?;
                while self.item(&mut lead)? {
                    self.skip()?;
                }
                self.ascend();
                Ok(())
            }
            _ if self.word(b"null") => Ok(()),
            _ => Err(self.expected("a value")),
        }
    }
}

enum Digits {
    /// The number and how many digits it has.
    Number(u64, usize),
    TooLarge,
    /// No digit, a leading zero, or a fraction or an exponent after the digits.
    None,
}

/// Digits of any number of so many fit into 64 bits.
const FITTING_DIGITS: usize = 19;

#[inline]
fn digits(bytes: &[u8]) -> Digits {
    let mut number = 0_u64;
    let mut used = 0;
    while used < FITTING_DIGITS
        && let Some(digit @ b'0'..=b'9') = bytes.get(used)
    {
        number = number * 10 + u64::from(digit - b'0');
        used += 1;
    }
    while used >= FITTING_DIGITS
        && let Some(digit @ b'0'..=b'9') = bytes.get(used)
    {
        let digit = u64::from(digit - b'0');
        match number.checked_mul(10).and_then(|n| n.checked_add(digit)) {
            Some(longer) => number = longer,
            None => return Digits::TooLarge,
        }
        used += 1;
    }
    let zeros = used > 1 && bytes[0] == b'0';
    match bytes.get(used) {
        Some(b'.' | b'e' | b'E') => Digits::None,
        _ if used == 0 || zeros => Digits::None,
        _ => Digits::Number(number, used),
    }
}

/// Bytes of the number at the start of `bytes`; `None`: there is none.
fn number_bytes(bytes: &[u8]) -> Option<usize> {
    let run = |from: usize| {
        let digits = bytes.get(from..).unwrap_or_default();
        let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        (count > 0).then_some(from + count)
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = run(start)?;
    if bytes[start] == b'0' && end > start + 1 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end = run(end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = run(end + 1 + sign)?;
    }
    Some(end)
}
