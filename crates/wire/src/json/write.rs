//! From values to text.

use super::read::plain_bytes;

/// Writes `lead` and then `name`, which has its quotes and its colon.
#[doc(hidden)]
#[inline(always)]
pub fn name(out: &mut Vec<u8>, lead: u8, name: &str) {
    out.push(lead);
    out.extend_from_slice(name.as_bytes());
}

/// Writes a string with its quotes.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let plain = plain_bytes(bytes);
    out.extend_from_slice(&bytes[..plain]);
    if plain < bytes.len() {
        escaped(out, &bytes[plain..]);
    }
    out.push(b'"');
}

#[cold]
fn escaped(out: &mut Vec<u8>, mut rest: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&digits);
            }
        }
        let plain = plain_bytes(after);
        out.extend_from_slice(&after[..plain]);
        rest = &after[plain..];
    }
}
