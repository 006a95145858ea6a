//! HPACK's Huffman code (RFC 7541, appendix B), which is canonical: the codes follow from their lengths.

/// Bits of the code of each byte, and of the end, which no text may hold.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END: u16 = 256;
const BITS_MAX: usize = 30;
/// Codes of at most so many bits are looked up, the others are searched by length.
const SHORT_BITS: usize = 8;

/// A text is not in Huffman's code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadHuffman;

struct Codes {
    /// By the next bits: the byte and its code's length; 0 where that is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
    /// By length: the first code, and the place of its symbol.
    first: [(u32, u16); BITS_MAX + 2],
    /// In the order of their codes.
    symbols: [u16; 257],
}

static CODES: Codes = codes();

const fn codes() -> Codes {
    let mut codes = Codes {
        short: [(0, 0); 1 << SHORT_BITS],
        first: [(0, 0); BITS_MAX + 2],
        symbols: [0; 257],
    };
    let (mut code, mut place, mut length) = (0_u32, 0, 1);
    while length <= BITS_MAX {
        codes.first[length] = (code, place as u16);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[place] = symbol as u16;
                if length <= SHORT_BITS {
                    let spare = SHORT_BITS - length;
                    let mut at = (code as usize) << spare;
                    let end = at + (1 << spare);
                    while at < end {
                        codes.short[at] = (symbol as u8, length as u8);
                        at += 1;
                    }
                }
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        code <<= 1;
        length += 1;
    }
    codes.first[BITS_MAX + 1] = (code, place as u16);
    codes
}

/// Appends the bytes that `text` stands for.
///
/// # Errors
/// [`BadHuffman`] where it holds the end, or is not filled up with fewer than eight ones.
pub fn unfold(text: &[u8], out: &mut Vec<u8>) -> Result<(), BadHuffman> {
    // The bits that are not used up, at the top.
    let (mut bits, mut count) = (0_u64, 0_usize);
    let mut rest = text.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = rest.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let (byte, length) = match CODES.short[(bits >> (64 - SHORT_BITS)) as usize] {
            (_, 0) => match long(bits) {
                Some(found) => found,
                None => break,
            },
            (byte, length) => (byte, usize::from(length)),
        };
        if length > count {
            break;
        }
        out.push(byte);
        bits <<= length;
        count -= length;
    }
    // What fills up the last byte is the beginning of the end's code: ones.
    let is_filled = count < 8 && bits == !(u64::MAX >> count);
    is_filled.then_some(()).ok_or(BadHuffman)
}

/// The byte of a long code, and the code's length; None for the end.
#[cold]
fn long(bits: u64) -> Option<(u8, usize)> {
    for length in SHORT_BITS + 1..=BITS_MAX {
        let code = (bits >> (64 - length)) as u32;
        let (first, place) = CODES.first[length];
        let (_, next) = CODES.first[length + 1];
        let symbol = usize::from(place) + code.wrapping_sub(first) as usize;
        if code >= first && symbol < usize::from(next) {
            let symbol = CODES.symbols[symbol];
            return (symbol != END).then_some((symbol as u8, length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unfolded(text: &[u8]) -> Result<Vec<u8>, BadHuffman> {
        let mut out = Vec::new();
        unfold(text, &mut out).map(|()| out)
    }

    /// The text in the code, by its definition, a bit at a time.
    fn fold(text: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        let mut count = 0;
        for &byte in text {
            let length = usize::from(LENGTHS[usize::from(byte)]);
            let place = CODES.symbols.iter().position(|&s| s == u16::from(byte));
            let (first, at) = CODES.first[length];
            let code = first + (place.unwrap() as u32 - u32::from(at));
            for bit in (0..length).rev() {
                if count % 8 == 0 {
                    out.push(0_u8);
                }
                *out.last_mut().unwrap() |= ((code >> bit & 1) as u8) << (7 - count % 8);
                count += 1;
            }
        }
        while count % 8 != 0 {
            *out.last_mut().unwrap() |= 1 << (7 - count % 8);
            count += 1;
        }
        out
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541, C.4 and C.6.
        for (coded, text) in [
            (&b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..], "www.example.com"),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
            (b"\x64\x02", "302"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
            (b"", ""),
        ] {
            assert_eq!(unfolded(coded), Ok(text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn wrong_ends_are_refused() {
        // A whole byte of ones, zeros to fill up, a code that is cut, and the end in the text.
        for wrong in [
            &b"\xff"[..],
            b"\x64\x02\xff",
            b"\x60",
            b"\xff\xff\xff",
            b"\xff\xff\xff\xff",
            b"\xff\xff\xff\xfc",
        ] {
            assert_eq!(unfolded(wrong), Err(BadHuffman), "{wrong:x?}");
        }
    }

    #[test]
    fn every_byte_has_a_code() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unfolded(&fold(&all)), Ok(all));
    }

    proptest! {
        #[test]
        fn texts_are_read_as_they_were_written(text in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(unfolded(&fold(&text)), Ok(text));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(read) = unfolded(&text) {
                prop_assert_eq!(fold(&read), text);
            }
        }
    }
}
