//! The hook for the fuzz target `files`: any path with any header lines, without a file
//! system.

use prony_http::OwnedHeaders;

use super::coding::{self, CODINGS};
use super::conditions::{self, Validators, Verdict};
use super::path;

/// Takes a path from the first line of `data` and headers from the others, and sees that
/// no name leads up or is hidden, and that no verdict reaches behind a file's end.
pub fn files(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let path = lines.next().unwrap_or_default();
    if let Ok(name) = str::from_utf8(path).map(path::name)
        && let Ok(name) = name
    {
        assert!(!name.is_empty());
        for component in name.split(|&byte| byte == b'/') {
            assert!(!component.is_empty() && component[0] != b'.');
            assert!(!component.contains(&0));
        }
    }
    let mut headers = OwnedHeaders::default();
    for line in lines {
        let (name, value) = match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        // What is no header is left out.
        let _ = str::from_utf8(name).map(|name| headers.push(name, value));
    }
    let headers = headers.as_headers();
    for length in [0, 1, 100, u64::MAX] {
        let file = Validators {
            etag: "\"1-a\"",
            modified: 784_111_777,
            length,
        };
        if let Verdict::Part(first, last) = conditions::judge(&headers, true, &file) {
            assert!(first <= last && last < length);
        }
        let unranged = conditions::judge(&headers, false, &file);
        assert!(!matches!(
            unranged,
            Verdict::Part(..) | Verdict::Unsatisfiable
        ));
    }
    let coded = CODINGS.iter().map(|coding| (Some(*coding), 10));
    let forms = std::iter::once((None, 20)).chain(coded);
    if let Some(index) = coding::choose(&headers, forms) {
        assert!(index <= CODINGS.len());
    }
}
