//! Percent-encoding taken off.

/// The bytes that `text` stands for, appended to `out`. What is no encoding (`%zz`, a `%`
/// at the end) stays as it is.
pub(crate) fn decode(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = memchr(rest) {
        out.extend_from_slice(&rest[..at]);
        let byte = match rest.get(at + 1..at + 3) {
            Some(&[high, low]) => hex(high).zip(hex(low)),
            _ => None,
        };
        let used = match byte {
            Some((high, low)) => {
                out.push(high << 4 | low);
                3
            }
            None => {
                out.push(b'%');
                1
            }
        };
        rest = &rest[at + used..];
    }
    out.extend_from_slice(rest);
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&byte| byte == b'%')
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        decode(text, &mut out);
        out
    }

    #[test]
    fn encodings_are_taken_off_once_and_the_rest_stays() {
        for (text, wanted) in [
            ("/a", &b"/a"[..]),
            ("/a%20b%2Fc", b"/a b/c"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%zz%41", b"%zzA"),
            ("%%41", b"%A"),
            ("%2541", b"%41"),
            ("%c3%BC%00", b"\xc3\xbc\0"),
        ] {
            assert_eq!(decoded(text), wanted, "{text}");
        }
    }

    #[test]
    fn every_byte_comes_back() {
        for byte in 0..=255_u8 {
            assert_eq!(
                decoded(&format!("x%{byte:02x}y%{byte:02X}")),
                [b'x', byte, b'y', byte]
            );
        }
    }
}
