//! Statuses and their reason phrases.

/// What a status line says: `200.into()`, or with a reason of one's own,
/// `(200, b"Fine").into()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    /// Its three digits.
    pub code: u16,
    /// None: the usual one, [`reason`].
    pub reason: Option<&'a [u8]>,
}

impl From<u16> for Status<'_> {
    fn from(code: u16) -> Self {
        Status { code, reason: None }
    }
}

impl<'a> From<(u16, &'a [u8])> for Status<'a> {
    fn from((code, reason): (u16, &'a [u8])) -> Self {
        Status {
            code,
            reason: Some(reason),
        }
    }
}

/// The usual reason phrase of `status` (RFC 9110 and the IANA registry);
/// empty for statuses that have none.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against another list of the same registry, which has older names for some.
    #[test]
    fn reasons_are_those_of_the_registry() {
        for code in 100..1_000 {
            let theirs = http::StatusCode::from_u16(code).map(|status| status.canonical_reason());
            let expected = match code {
                203 => "Non-Authoritative Information",
                413 => "Content Too Large",
                422 => "Unprocessable Content",
                // A joke, and obsolete: not assigned, and historic.
                418 | 510 => "",
                _ => theirs.ok().flatten().unwrap_or_default(),
            };
            assert_eq!(reason(code), expected, "{code}");
        }
    }
}
