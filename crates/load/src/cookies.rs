//! The cookies of one connection, or of one user: what the server sets is sent back. Of RFC 6265 only what a load needs: names, values and
//! removal; domain and path are ignored, since all requests go to one server, and so is how long a cookie lives. No I/O.

/// Cookies that are kept at most; further ones are not.
const COOKIES_MAX: usize = 50;
/// Bytes of one cookie at most.
const COOKIE_BYTES_MAX: usize = 4_096;

/// The cookies, in the order in which they were set first.
#[derive(Clone, Debug, Default)]
pub struct LaneCookies {
    cookies: Vec<(Vec<u8>, Vec<u8>)>,
}

impl LaneCookies {
    /// Takes in the value of a `Set-Cookie`. One that is no cookie changes nothing.
    pub fn set(&mut self, header: &[u8]) {
        let mut parts = header.split(|&byte| byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = pair.iter().position(|&byte| byte == b'=') else {
            return;
        };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let is_wrong = |byte: &u8| byte.is_ascii_control();
        if name.is_empty() || pair.len() > COOKIE_BYTES_MAX || pair.iter().any(is_wrong) {
            return;
        }
        let known = self.cookies.iter().position(|(of, _)| of == name);
        match (known, parts.any(removes)) {
            (Some(place), true) => {
                self.cookies.remove(place);
            }
            (Some(place), false) => self.cookies[place].1 = value.to_vec(),
            (None, false) if self.cookies.len() < COOKIES_MAX => {
                self.cookies.push((name.to_vec(), value.to_vec()));
            }
            (None, _) => {}
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.cookies.clear();
    }

    /// The value of a cookie.
    pub fn value(&self, name: &[u8]) -> Option<&[u8]> {
        let found = self.cookies.iter().find(|(of, _)| of == name);
        found.map(|(_, value)| value.as_slice())
    }

    /// What `Cookie` says of them; `None` where there are none.
    pub fn header(&self) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        for (name, value) in &self.cookies {
            let before: &[u8] = if all.is_empty() { b"" } else { b"; " };
            for part in [before, name, b"=", value] {
                all.extend_from_slice(part);
            }
        }
        (!all.is_empty()).then_some(all)
    }

    /// Appends the line `Cookie`, if there are any.
    pub fn line(&self, out: &mut Vec<u8>) {
        if let Some(value) = self.header() {
            for part in [&b"Cookie: "[..], &value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }

    /// Adds a line `Cookie` to the request of HTTP/1.1 that `request` holds, if there are any.
    pub fn add_to(&self, request: &mut Vec<u8>) {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n");
        let (Some(end), Some(value)) = (end, self.header()) else {
            return;
        };
        let line = [b"Cookie: ", &value[..], b"\r\n"].concat();
        request.splice(end + 2..end + 2, line);
    }
}

/// Whether an attribute says that the cookie is over: `Max-Age` of 0 or less, or `Expires` in 1970, as servers write it.
fn removes(attribute: &[u8]) -> bool {
    let text = String::from_utf8_lossy(attribute).to_ascii_lowercase();
    match text.trim().split_once('=') {
        Some(("max-age", age)) => age.trim().parse::<i64>().is_ok_and(|age| age <= 0),
        Some(("expires", date)) => date.contains("1970"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(set: &[&str]) -> String {
        let mut jar = LaneCookies::default();
        set.iter().for_each(|one| jar.set(one.as_bytes()));
        let mut request = b"POST / HTTP/1.1\r\nHost: a\r\n\r\nbody\r\n\r\n".to_vec();
        jar.add_to(&mut request);
        String::from_utf8(request).unwrap()
    }

    #[test]
    fn what_was_set_is_sent_back() {
        let with = |line: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{line}\r\nbody\r\n\r\n");
        assert_eq!(sent(&[]), with(""));
        assert_eq!(
            sent(&["a=1; Path=/; HttpOnly", "b = x=y ", "a=2"]),
            with("Cookie: a=2; b=x=y\r\n")
        );
        let gone = [
            "a=1",
            "b=2",
            "a=; Max-Age=0",
            "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ];
        assert_eq!(sent(&gone), with(""));
        assert_eq!(sent(&["", "a", "=b", "c=d\u{1}"]), with(""));
    }
}
