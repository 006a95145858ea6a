//! Targets of vegeta's HTTP format: `METHOD URL`, headers a line each, `@FILE` for the body; an empty line ends a target, and
//! so does the next one's first line.

use super::lines::is_url;
use super::list::{ListError, ListedBody, ListedRequest, wrong};

/// Whether a line begins a target.
pub fn is_first_line(line: &str) -> bool {
    first_line(line).is_some()
}

fn first_line(line: &str) -> Option<(&str, &str)> {
    let (method, url) = line.split_once(' ')?;
    let url = url.trim();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    (is_method && is_url(url) && !url.contains(char::is_whitespace)).then_some((method, url))
}

/// Reads all targets.
pub fn read(text: &str) -> Result<Vec<ListedRequest>, ListError> {
    let mut requests: Vec<ListedRequest> = Vec::new();
    // Whether lines may be added to the last target.
    let mut is_open = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.starts_with('#') {
            continue;
        }
        if line.is_empty() {
            is_open = false;
            continue;
        }
        if let Some((method, url)) = first_line(line) {
            requests.push(ListedRequest {
                line: number,
                method: method.to_owned(),
                url: url.to_owned(),
                ..ListedRequest::default()
            });
            is_open = true;
            continue;
        }
        let Some(request) = requests.last_mut().filter(|_| is_open) else {
            // Of a broken line nobody knows what in it is a secret.
            return wrong(number, "it is no target: METHOD URL".to_owned());
        };
        if let Some(file) = line.strip_prefix('@') {
            request.body = ListedBody::File(file.trim().to_owned());
        } else if let Some((name, value)) = line.split_once(':') {
            let header = (name.trim().to_owned(), value.trim().to_owned());
            request.headers.push(header);
        } else {
            return wrong(
                number,
                "it is neither a header, `Name: value`, nor a body, `@FILE`".to_owned(),
            );
        }
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_headers_and_bodies_from_files() {
        let text = "GET http://a/b\n# mine\nX-A: 1\nPOST http://a/c\nContent-Type: text/plain\n@body.txt\n\n\nDELETE /d\n";
        let read = read(text).unwrap();
        let shown: Vec<_> = read
            .iter()
            .map(|one| {
                (
                    one.line,
                    one.method.as_str(),
                    one.url.as_str(),
                    one.headers.len(),
                )
            })
            .collect();
        let expected = [
            (1, "GET", "http://a/b", 1),
            (4, "POST", "http://a/c", 1),
            (9, "DELETE", "/d", 0),
        ];
        assert_eq!(shown, expected);
        assert_eq!(read[1].body, ListedBody::File("body.txt".into()));
    }

    #[test]
    fn a_line_that_belongs_to_no_target_is_named() {
        for (text, line) in [
            ("X: 1\n", 1),
            ("GET /a\n\nX: 1\n", 3),
            ("GET /a\nhello\n", 2),
            ("get /a\n", 1),
        ] {
            assert_eq!(read(text).unwrap_err().line(), Some(line), "{text}");
        }
    }
}
