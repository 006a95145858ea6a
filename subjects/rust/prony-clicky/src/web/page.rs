//! The page for people: one file, embedded, that asks nobody but this service.

use prony_http::{Header, Headers, Response};

const PAGE: &[u8] = include_bytes!("page.html");
const HTML: Header<'_> = Header::new("content-type", b"text/html; charset=utf-8");
const FRESH: Header<'_> = Header::new("cache-control", b"no-cache");
const VARY: Header<'_> = Header::new("vary", b"accept");
const UNSNIFFED: Header<'_> = Header::new("x-content-type-options", b"nosniff");
/// Its own style and script, its own service, and nothing else.
const POLICY: Header<'_> = Header::new(
    "content-security-policy",
    b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
      connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'",
);

/// Whether whoever sent these would rather have the page than the number.
pub fn is_wanted(headers: Headers<'_>) -> bool {
    headers
        .get_all("accept")
        .any(|value| value.windows(9).any(|part| part == b"text/html"))
}

/// Answers with it.
pub fn give(response: &mut Response) {
    response.send(200, [HTML, FRESH, VARY, UNSNIFFED, POLICY], PAGE);
}
