//! A request as a handler sees it.

use prony_wire::{Headers, Method, RequestHead, Version};

/// A whole request, borrowed from the bytes that it came in.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub(crate) head: RequestHead<'a>,
    pub(crate) body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The method.
    pub fn method(&self) -> Method {
        self.head.method
    }

    /// The target as it was sent; see [`RequestHead::target`] for its forms.
    pub fn target(&self) -> &'a str {
        self.head.target
    }

    /// The target's path, not decoded. Of a target in absolute form, what
    /// follows the authority; `*` and an authority are themselves.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.path_and_query().0
    }

    /// What follows the first `?`, not decoded; empty if there is none.
    pub fn query(&self) -> &'a str {
        self.path_and_query().1
    }

    #[inline]
    fn path_and_query(&self) -> (&'a str, &'a str) {
        let target = self.head.target;
        let local = match target.starts_with('/') {
            true => target,
            false => match target.split_once("://") {
                Some((_, rest)) => rest.find(['/', '?']).map_or("/", |start| &rest[start..]),
                None => target,
            },
        };
        // Targets are ASCII, so that a byte's place is a character's.
        match local.bytes().position(|byte| byte == b'?') {
            Some(0) => ("/", &local[1..]),
            Some(mark) => (&local[..mark], &local[mark + 1..]),
            None => (local, ""),
        }
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The header lines. Where the target is in absolute form, Host is the server that it
    /// names, whatever was sent as such.
    pub fn headers(&self) -> Headers<'a> {
        self.head.headers
    }

    /// The whole body, chunked coding taken off; empty where there is none.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use prony_wire::{Limits, RequestReader};

    use super::*;

    #[test]
    fn a_path_is_found_in_each_form_of_a_target() {
        for (target, path, query) in [
            ("/a/b?c=d?e", "/a/b", "c=d?e"),
            ("/", "/", ""),
            ("/?", "/", ""),
            ("http://host:1/x?y", "/x", "y"),
            ("http://host", "/", ""),
            ("http://host?q", "/", "q"),
            ("/go?to=http://host/x", "/go", "to=http://host/x"),
        ] {
            let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            let mut reader = RequestReader::new(Limits::for_requests());
            let whole = reader.next_whole(bytes.as_bytes()).expect("a request");
            let request = Request {
                head: whole.head,
                body: whole.body,
            };
            assert_eq!((request.path(), request.query()), (path, query), "{target}");
        }
    }
}
