//! What a browser recorded: HTTP Archive 1.2, one object of JSON. Where something is wrong, the number of the entry is given.

use serde_json::Value;

use super::list::{ListError, ListedBody, ListedRequest, wrong};

/// Headers that belong to the connection on which the recording was made.
const OF_CONNECTION: [&str; 6] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "upgrade",
];

/// Reads all entries.
pub fn read(text: &str) -> Result<Vec<ListedRequest>, ListError> {
    let all: Value = match serde_json::from_str(text) {
        Ok(all) => all,
        Err(error) => return wrong(error.line() as u64, format!("this is no JSON: {error}")),
    };
    let Some(entries) = all.pointer("/log/entries").and_then(Value::as_array) else {
        return wrong(1, "this is no HAR: it has no list `log.entries`");
    };
    let mut requests = Vec::new();
    for (number, entry) in (1..).zip(entries) {
        match request(entry, number) {
            Some(request) => requests.push(request),
            None => {
                return wrong(
                    number,
                    format!("entry {number} has no `request` with `method` and `url`"),
                );
            }
        }
    }
    Ok(requests)
}

fn request(entry: &Value, number: u64) -> Option<ListedRequest> {
    let request = entry.get("request")?;
    let text = |of: &Value, key: &str| of.get(key)?.as_str().map(str::to_owned);
    let mut headers = Vec::new();
    let none = Vec::new();
    let given = request.get("headers").and_then(Value::as_array);
    for header in given.unwrap_or(&none) {
        let (name, value) = (text(header, "name")?, text(header, "value")?);
        // Those of HTTP/2 that stand for the request line begin with a colon.
        let is_own = OF_CONNECTION.contains(&name.to_ascii_lowercase().as_str());
        if !name.starts_with(':') && !is_own {
            headers.push((name, value));
        }
    }
    let body = request.pointer("/postData/text").and_then(Value::as_str);
    Some(ListedRequest {
        line: number,
        method: text(request, "method")?,
        url: text(request, "url")?,
        headers,
        body: match body {
            Some(body) => ListedBody::Bytes(body.as_bytes().to_vec()),
            None => ListedBody::Empty,
        },
        weight: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_a_request_without_what_was_of_its_connection() {
        let text = r#"{"log":{"entries":[{"request":{"method":"POST","url":"https://a/b","headers":[
            {"name":":authority","value":"a"},{"name":"Host","value":"a"},{"name":"X-A","value":"1"},
            {"name":"content-length","value":"2"}],"postData":{"text":"{}"}}}]}}"#;
        let read = read(text).unwrap();
        assert_eq!((read.len(), read[0].url.as_str()), (1, "https://a/b"));
        assert_eq!(read[0].headers, [("X-A".to_owned(), "1".to_owned())]);
        assert_eq!(read[0].body, ListedBody::Bytes(b"{}".to_vec()));
    }

    #[test]
    fn what_is_no_recording_says_where() {
        let why = |text: &str| read(text).unwrap_err().to_string();
        assert!(why("{").starts_with("this is no JSON"));
        assert!(why("{}").contains("log.entries"));
        let entry = why(r#"{"log":{"entries":[{"request":{"method":"GET","url":"/"}},{}]}}"#);
        assert!(entry.starts_with("entry 2 "), "{entry}");
    }
}
