//! Files of requests, in the formats that other tools write: to requests with the line that each stands on.
//!
//! | format | what a request is | file |
//! |---|---|---|
//! | `urls` | a line: a URL, or a path | `lines.rs` |
//! | `json-lines` | a line: an object with `url`, and `method`, `headers`, `body`, `weight` where needed | `lines.rs` |
//! | `vegeta` | `METHOD URL`, headers a line each, `@FILE` for a body | `targets.rs` |
//! | `curl` | a command | `curl.rs` |
//! | `har` | an entry of what a browser recorded | `har.rs` |
//! | `access-log` | a line of nginx or Apache, with its time | `access_log.rs` |
//!
//! What they become is in `prepared.rs`. Not for: the order in which they are sent (`mixed.rs`).

mod access_log;
mod curl;
mod har;
mod lines;
mod list;
mod prepared;
mod shell;
mod targets;

use std::io::{BufRead, Read};
use std::str::FromStr;

use crate::rows::BYTE_ORDER_MARK;

pub use list::{FILE_BYTES_MAX, ListError, ListedBody, ListedRequest, RequestList};
pub use prepared::{
    BODY_BYTES_MAX, BodyError, ListedContext, ListedError, body_of, from_environment, usual_method,
};

pub use shell::{ShellFault, ShellToken, ShellTokens};

/// A format of files with requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestFormat {
    /// A URL or path a line.
    Urls,
    /// A JSON object a line.
    JsonLines,
    /// Targets of vegeta.
    Vegeta,
    /// Commands of curl.
    Curl,
    /// What a browser recorded: HTTP Archive 1.2.
    Har,
    /// An access log of nginx or Apache, common or combined.
    AccessLog,
}

/// All formats by name.
const FORMATS: [(&str, RequestFormat); 6] = [
    ("urls", RequestFormat::Urls),
    ("json-lines", RequestFormat::JsonLines),
    ("vegeta", RequestFormat::Vegeta),
    ("curl", RequestFormat::Curl),
    ("har", RequestFormat::Har),
    ("access-log", RequestFormat::AccessLog),
];

impl FromStr for RequestFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<RequestFormat, String> {
        let found = FORMATS.iter().find(|(of, _)| *of == name);
        let names = FORMATS.map(|(of, _)| of).join(", ");
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| format!("`{name}` is none of {names}"))
    }
}

impl RequestFormat {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        let found = FORMATS.iter().find(|(_, format)| *format == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether files of this format are written by hand, so that names in braces are fields.
    pub fn has_fields(self) -> bool {
        matches!(self, RequestFormat::Urls | RequestFormat::JsonLines)
    }
}

/// Reads a file of requests. Its format is recognised by its first lines where it is not given.
///
/// # Errors
/// What is wrong with it, and on which line.
pub fn read(
    file: &mut dyn BufRead,
    format: Option<RequestFormat>,
) -> Result<(RequestFormat, RequestList), ListError> {
    if file.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    let format = match format {
        Some(format) => format,
        None => recognised(file.fill_buf()?)?,
    };
    let list = if format == RequestFormat::AccessLog {
        access_log::read(file)?
    } else {
        let mut text = String::new();
        let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if count as u64 > FILE_BYTES_MAX {
            return Err(ListError::TooLarge);
        }
        let requests = match format {
            RequestFormat::Urls => lines::urls(&text)?,
            RequestFormat::JsonLines => lines::objects(&text)?,
            RequestFormat::Vegeta => targets::read(&text)?,
            RequestFormat::Curl => curl::read(&text)?,
            RequestFormat::Har => har::read(&text)?,
            RequestFormat::AccessLog => Vec::new(),
        };
        RequestList {
            requests,
            ..RequestList::default()
        }
    };
    match list.requests.is_empty() {
        true => Err(ListError::Empty),
        false => Ok((format, list)),
    }
}

/// The format of a file that begins with these bytes.
fn recognised(start: &[u8]) -> Result<RequestFormat, ListError> {
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines().map(str::trim);
    let Some(first) = lines.find(|line| !line.is_empty() && !line.starts_with('#')) else {
        return match start.is_empty() {
            true => Err(ListError::Empty),
            false => Err(ListError::Unknown),
        };
    };
    if first.starts_with('{') {
        let is_object = serde_json::from_str::<serde_json::Value>(first);
        let is_line = is_object.is_ok_and(|object| object.get("log").is_none());
        // A file whose first object goes on over several lines is one object.
        let is_cut = !text.contains('\n') && text.len() >= 4_096 && !text.contains("\"log\"");
        return Ok(match is_line || is_cut {
            true => RequestFormat::JsonLines,
            false => RequestFormat::Har,
        });
    }
    if first == "curl" || first.starts_with("curl ") {
        return Ok(RequestFormat::Curl);
    }
    if lines::is_url(first) && !first.contains(char::is_whitespace) {
        return Ok(RequestFormat::Urls);
    }
    if targets::is_first_line(first) {
        return Ok(RequestFormat::Vegeta);
    }
    match access_log::is_line(first.as_bytes()) {
        true => Ok(RequestFormat::AccessLog),
        false => Err(ListError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LOG: &str = "10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.0\" 200 2326";

    #[test]
    fn a_format_is_recognised_by_its_first_line() {
        let named = |text: &str| match recognised(text.as_bytes()) {
            Ok(format) => format.name().to_owned(),
            Err(error) => error.to_string(),
        };
        for (text, format) in [
            ("http://a/b\n", "urls"),
            ("\n# mine\n/b?c=d\n", "urls"),
            ("{\"url\":\"/\"}\n{", "json-lines"),
            ("{\"log\":{\"entries\":[]}}", "har"),
            ("{\n  \"log\": {", "har"),
            ("GET http://a/\n", "vegeta"),
            ("POST /a\n@b\n", "vegeta"),
            ("curl http://a \\\n", "curl"),
            (LOG, "access-log"),
        ] {
            assert_eq!(named(text), format, "{text}");
            assert_eq!(format.parse::<RequestFormat>().unwrap().name(), format);
        }
        assert_eq!(named(""), "there is no request in it");
        assert!(named("hello").contains("--format"), "{}", named("hello"));
        assert!("hars".parse::<RequestFormat>().is_err());
    }

    #[test]
    fn a_byte_order_mark_before_the_first_request_is_not_part_of_it() {
        for (format, text) in [
            ("urls", "/a\n/b\n"),
            ("json-lines", "{\"url\":\"/a\"}\n"),
            ("vegeta", "GET http://a/\n"),
            ("curl", "curl http://a/\n"),
            ("access-log", LOG),
        ] {
            let marked = format!("\u{feff}{text}");
            let (found, list) = read(&mut marked.as_bytes(), None).expect(format);
            let (_, plain) = read(&mut text.as_bytes(), None).expect(format);
            assert_eq!((found.name(), list), (format, plain));
            let (_, given) = read(&mut marked.as_bytes(), Some(found)).expect(format);
            assert_eq!(given.requests[0].line, 1);
        }
    }

    proptest! {
        #[test]
        fn whatever_a_file_holds_it_is_read_or_refused(
            text in "([ -~\n]|http://a/|curl |GET /|\\[10/Oct/2000:13:55:36 -0700\\] \"|[\"'\\\\{}@:]){0,80}",
            format in 0..FORMATS.len(),
        ) {
            let _ = read(&mut text.as_bytes(), Some(FORMATS[format].1));
            let _ = read(&mut text.as_bytes(), None);
        }
    }
}
