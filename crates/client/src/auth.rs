//! Credentials as header values. Not for: keeping them.

/// The value of an Authorization header for user and password (RFC 7617).
pub(super) fn basic(user: &[u8], password: &[u8]) -> String {
    prony_wire::encode::basic([user, b":", password].concat())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_of_the_standard_comes_out() {
        let made = super::basic(b"Aladdin", b"open sesame");
        assert_eq!(made, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert_eq!(super::basic(b"", b""), "Basic Og==");
        assert_eq!(super::basic(b"a", b"b"), "Basic YTpi");
        assert_eq!(super::basic(b"a", b"bcd"), "Basic YTpiY2Q=");
        assert_eq!(super::basic(b"a", b"bcde"), "Basic YTpiY2Rl");
    }
}
