//! From values to text.

use super::scan::{plain_bytes, special_at};

/// Texts of so many bytes are copied word by word while they are looked at, which costs
/// less than to look and then to call what copies any length.
const BY_WORDS: std::ops::RangeInclusive<usize> = 8..=64;

/// Writes a string with its quotes.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let plain = plain(out, bytes);
    if plain < bytes.len() {
        escaped(out, &bytes[plain..]);
    }
    out.push(b'"');
}

/// Copies what is plain at the start of `bytes`; yields how many these are.
#[inline]
fn plain(out: &mut Vec<u8>, bytes: &[u8]) -> usize {
    if !BY_WORDS.contains(&bytes.len()) {
        let plain = plain_bytes(bytes);
        out.extend_from_slice(&bytes[..plain]);
        return plain;
    }
    out.reserve(bytes.len() + 8);
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        if let Some(at) = special_at(*word) {
            out.extend_from_slice(&word[..at]);
            return index * 8 + at;
        }
        out.extend_from_slice(word);
    }
    // The last eight bytes, of which the first were copied already.
    let overlap = 8 - tail.len();
    if let Some(last) = bytes.last_chunk::<8>()
        && overlap < 8
    {
        if let Some(at) = special_at(*last) {
            out.extend_from_slice(&last[overlap..at]);
            return bytes.len() - 8 + at;
        }
        out.truncate(out.len() - overlap);
        out.extend_from_slice(last);
    }
    bytes.len()
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
