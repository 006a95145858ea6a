//! Other forms of a request than HTTP/1.1's usual one. Bytes in, bytes out.

/// The head of a request of HTTP/1.1, with its last empty line, and its body.
pub fn head_and_body(request: &[u8]) -> (&[u8], &[u8]) {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    request.split_at(end.map_or(request.len(), |end| end + 4))
}

/// How a request is written, beside what it says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RequestForm {
    /// HTTP/1.0, with `Connection: keep-alive` unless the request says otherwise.
    pub is_http10: bool,
    /// What precedes the path, such as `http://host:port`, as proxies want it; empty: nothing.
    pub origin: String,
    /// The body goes out in chunks of so many bytes, without its length; 0: as a whole.
    pub chunk_bytes: usize,
    /// The head says `Expect: 100-continue`.
    pub expects_continue: bool,
}

impl RequestForm {
    /// Rewrites a request of HTTP/1.1 as it was encoded by `prepare`.
    pub fn shape(&self, request: &[u8]) -> Vec<u8> {
        let (head, body) = head_and_body(request);
        let head = String::from_utf8_lossy(head);
        let mut lines = head.trim_end().split("\r\n");
        let first = lines.next().unwrap_or_default();
        let (method, rest) = first.split_once(' ').unwrap_or((first, ""));
        let (path, _) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        let version = if self.is_http10 {
            "HTTP/1.0"
        } else {
            "HTTP/1.1"
        };
        let mut out = format!("{method} {}{path} {version}\r\n", self.origin).into_bytes();
        let is_chunked = self.chunk_bytes > 0 && !body.is_empty();
        let mut has_connection = false;
        for line in lines {
            let name = line.split(':').next().unwrap_or_default();
            has_connection |= name.eq_ignore_ascii_case("connection");
            if !(is_chunked && name.eq_ignore_ascii_case("content-length")) {
                out.extend_from_slice(line.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
        }
        if self.is_http10 && !has_connection {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        if is_chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.expects_continue && !body.is_empty() {
            out.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if !is_chunked {
            out.extend_from_slice(body);
            return out;
        }
        for chunk in body.chunks(self.chunk_bytes) {
            prony_wire::encode::chunk(&mut out, chunk);
        }
        out.extend_from_slice(b"0\r\n\r\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"POST /a?b HTTP/1.1\r\nHost: c\r\nContent-Length: 5\r\n\r\nHello";

    fn shaped(form: &RequestForm, request: &[u8]) -> String {
        String::from_utf8(form.shape(request)).unwrap()
    }

    #[test]
    fn a_request_without_a_form_of_its_own_stays_as_it_is() {
        for request in [REQUEST, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
            assert_eq!(RequestForm::default().shape(request), request);
        }
    }

    #[test]
    fn each_form_changes_what_it_is_about() {
        let old = RequestForm {
            is_http10: true,
            ..RequestForm::default()
        };
        assert_eq!(
            shaped(&old, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
            "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
        );
        assert_eq!(
            shaped(&old, b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n"),
            "GET / HTTP/1.0\r\nconnection: close\r\n\r\n"
        );
        let proxied = RequestForm {
            origin: "http://c:1".to_owned(),
            ..RequestForm::default()
        };
        let text = shaped(&proxied, REQUEST);
        assert!(
            text.starts_with("POST http://c:1/a?b HTTP/1.1\r\nHost: c\r\n"),
            "{text}"
        );
        let chunked = RequestForm {
            chunk_bytes: 2,
            expects_continue: true,
            ..RequestForm::default()
        };
        assert_eq!(
            shaped(&chunked, REQUEST),
            "POST /a?b HTTP/1.1\r\nHost: c\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n\
             2\r\nHe\r\n2\r\nll\r\n1\r\no\r\n0\r\n\r\n"
        );
    }
}
