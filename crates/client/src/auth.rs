//! Credentials as header values. Not for: keeping them.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The value of an Authorization header for user and password (RFC 7617).
pub(super) fn basic(user: &[u8], password: &[u8]) -> String {
    let mut out = "Basic ".to_owned();
    let plain = [user, b":", password].concat();
    for group in plain.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * place) & 63) as usize];
            out.push(if place > group.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_the_standard_comes_out() {
        let made = super::basic(b"Aladdin", b"open sesame");
        assert_eq!(made, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(super::basic(b"", b""), "Basic Og==");
        assert_eq!(super::basic(b"a", b"b"), "Basic YTpi");
    }
}
