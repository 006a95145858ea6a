//! Text that somebody else wrote (a title, a command, an answer), shown so that it steers neither a terminal nor the reader.
//!
//! Not for: what a document or a page shows, which has its own escapes on top of [`steers`].

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Deref;

use serde::{Deserialize, Serialize};

/// A text of one line that somebody else wrote. Its only `Display` has `\u001b` in place of a character that would steer a terminal, and
/// `\n` in place of the end of a line, so that it begins no line that the program could have written.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted<T = String>(pub T);

impl<T: AsRef<str>> fmt::Display for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().chars().try_for_each(|c| match steers(c) {
            true => escape(c, f),
            false => f.write_char(c),
        })
    }
}

impl<T: AsRef<str>> Deref for Untrusted<T> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0.as_ref()
    }
}

impl From<&str> for Untrusted {
    fn from(text: &str) -> Untrusted {
        Untrusted(text.to_owned())
    }
}

/// Whether a terminal acts on a character (controls, C1 ones included), the direction of the text depends on it, or it is not seen at all.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text of several lines, which keeps its line ends and tabs and has the same escapes else.
pub fn lines(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| steers(c) && !matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_line_end = c == '\n' || c == '\r' && rest.peek() == Some(&'\n');
        match steers(c) && !is_line_end && c != '\t' {
            true => escape(c, &mut shown).expect("a string takes everything"),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// The escape of JSON, so that within its strings the text stays the same.
fn escape(c: char, to: &mut impl fmt::Write) -> fmt::Result {
    match c {
        '\n' => to.write_str("\\n"),
        '\r' => to.write_str("\\r"),
        '\t' => to.write_str("\\t"),
        _ => {
            let mut units = [0; 2];
            let mut units = c.encode_utf16(&mut units).iter();
            units.try_for_each(|unit| write!(to, "\\u{unit:04x}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_seen_and_does_nothing() {
        let text = "a\u{1b}[8mb\u{9b}2Jc\u{7f}\u{202e}d\u{2066}\r\n\te\u{e0041}ü€";
        let one_line = "a\\u001b[8mb\\u009b2Jc\\u007f\\u202ed\\u2066\\r\\n\\te\\udb40\\udc41ü€";
        assert_eq!(Untrusted(text).to_string(), one_line);
        let kept = one_line.replace("\\r\\n\\t", "\r\n\t");
        assert_eq!(lines(text), kept);
        assert_eq!(lines("a\rb\n"), "a\\rb\n");
        assert!(matches!(lines("plain\n\tünïcode"), Cow::Borrowed(_)));
    }
}
