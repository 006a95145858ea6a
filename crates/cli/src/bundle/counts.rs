//! The pairs of a histogram's file as differences, which compress to half: `"counts":[[900,1],[950,2]]` to `900 1 50 2`.
//!
//! A file is coded only where decoding gives its very bytes; all others stay as they are.

use std::io::{self, BufReader, Bytes, Read};

/// Name of the coding in a manifest.
pub const NAME: &str = "counts";
/// The text before the pairs.
const BEFORE: &str = "\"counts\":[";
/// The mark between the text before the pairs, the pairs, and the text behind them.
const MARK: u8 = 1;
/// Digits of a number.
const DIGITS_MAX: usize = 20;

/// The coded form of a histogram's file; `None` where it is none, or does not come back as it was.
pub fn coded(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.find(BEFORE)? + BEFORE.len();
    let (head, rest) = text.split_at(at);
    let end = rest.find("]]")? + 1;
    let (pairs, tail) = rest.split_at(end);
    let mark = char::from(MARK);
    let mut out = format!("{head}{mark}");
    let mut last: u64 = 0;
    for pair in pairs.strip_prefix('[')?.strip_suffix(']')?.split("],[") {
        let (value, count) = pair.split_once(',')?;
        let value: u64 = value.parse().ok()?;
        out.push_str(&format!("{} {count} ", value.checked_sub(last)?));
        last = value;
    }
    out.push(mark);
    out.push_str(tail);
    let out = out.into_bytes();
    (decoded(&out, bytes.len() as u64).as_deref() == Some(bytes)).then_some(out)
}

/// The file that [`coded`] made `bytes` of, if it has `length` bytes.
fn decoded(bytes: &[u8], length: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut decoder = CountsDecoder::new(bytes).take(length.saturating_add(1));
    decoder.read_to_end(&mut out).ok()?;
    (out.len() as u64 == length).then_some(out)
}

/// The file that [`coded`] made of what is read, piece by piece. Of what was not made by it some is left out, which a digest tells.
pub struct CountsDecoder<R> {
    from: Bytes<BufReader<R>>,
    /// Decoded bytes that have not been read yet: from `at` on.
    out: Vec<u8>,
    at: usize,
    /// Marks that were passed.
    marks: u8,
    /// A number between two marks, as far as it was read.
    word: String,
    /// The last value; `None` before the first.
    last: Option<u64>,
    /// Whether a value waits for its count.
    is_open: bool,
}

impl<R: Read> CountsDecoder<R> {
    /// Decodes what is read.
    pub fn new(from: R) -> CountsDecoder<R> {
        CountsDecoder {
            from: BufReader::new(from).bytes(),
            out: Vec::new(),
            at: 0,
            marks: 0,
            word: String::new(),
            last: None,
            is_open: false,
        }
    }

    /// Decodes a byte; `None` where it has no place.
    fn step(&mut self, byte: u8) -> Option<()> {
        match (byte, self.marks) {
            (MARK, 0 | 1) => {
                self.marks += 1;
                (self.word.is_empty() && !self.is_open).then_some(())
            }
            (b' ', 1) => self.end_word(),
            (b'0'..=b'9', 1) if self.word.len() < DIGITS_MAX => {
                self.word.push(char::from(byte));
                Some(())
            }
            (_, 1) => None,
            _ => {
                self.out.push(byte);
                Some(())
            }
        }
    }

    fn end_word(&mut self) -> Option<()> {
        let number: u64 = self.word.parse().ok()?;
        self.word.clear();
        let text = match (self.is_open, self.last) {
            (true, _) => format!(",{number}]"),
            (false, last) => {
                let value = last.unwrap_or(0).checked_add(number)?;
                self.last = Some(value);
                format!("{}[{value}", last.map_or("", |_| ","))
            }
        };
        self.out.extend_from_slice(text.as_bytes());
        self.is_open = !self.is_open;
        Some(())
    }
}

impl<R: Read> Read for CountsDecoder<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.out.drain(..self.at);
        while self.out.len() < bytes.len() {
            let Some(byte) = self.from.next().transpose()? else {
                break;
            };
            if self.step(byte).is_none() {
                break;
            }
        }
        self.at = bytes.len().min(self.out.len());
        bytes[..self.at].copy_from_slice(&self.out[..self.at]);
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_byte_for_byte() {
        let text =
            b"{\"schema\":1,\"counts\":[[900,1],[950,2],[18446744073709551615,3]],\"x\":1}\n";
        let packed = coded(text).expect("coded");
        assert!(packed.len() < text.len());
        assert_eq!(
            decoded(&packed, text.len() as u64).as_deref(),
            Some(&text[..])
        );
        // A length that is not its own is refused, before more than that is made.
        assert_eq!(decoded(&packed, 20), None);
        assert_eq!(decoded(&packed, 1 << 40), None);
    }

    #[test]
    fn what_would_not_come_back_is_not_coded() {
        for text in [
            "",
            "{}",
            "{\"counts\":[]}",
            "{\"counts\":[[1, 2]]}",
            "{\"counts\":[[2,1],[1,1]]}",
            "{\"counts\":[[01,1]]}",
            "{\"counts\":[[1,1,1]]}",
            "{\"counts\":[[1,\u{1}]]}",
        ] {
            match coded(text.as_bytes()) {
                None => {}
                Some(packed) => assert_eq!(
                    decoded(&packed, text.len() as u64).as_deref(),
                    Some(text.as_bytes())
                ),
            }
        }
        assert_eq!(coded(b"{\"counts\":[[1, 2]]}"), None);
    }
}
