//! Files with a request on each line: a URL or path, or an object of JSON.

use prony_wire::url::ShownUrl;
use serde_json::{Map, Value};

use super::list::{ListError, ListedBody, ListedRequest, wrong};

/// Whether `text` begins as a URL of HTTP or a path does.
pub fn is_url(text: &str) -> bool {
    ["http://", "https://", "/"]
        .iter()
        .any(|start| text.starts_with(start))
}

/// A URL or path a line; empty lines and those that begin with `#` are left out.
pub fn urls(text: &str) -> Result<Vec<ListedRequest>, ListError> {
    let mut requests = Vec::new();
    for (line, url) in lines(text) {
        if !is_url(url) {
            return wrong(
                line,
                format!(
                    "`{}` begins neither with http://, https:// nor /",
                    ShownUrl::new(url)
                ),
            );
        }
        requests.push(ListedRequest {
            line,
            url: url.to_owned(),
            ..ListedRequest::default()
        });
    }
    Ok(requests)
}

fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let numbered = (1..).zip(text.lines().map(str::trim));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// An object of JSON a line.
pub fn objects(text: &str) -> Result<Vec<ListedRequest>, ListError> {
    let mut requests = Vec::new();
    for (line, object) in lines(text) {
        let value: Value = match serde_json::from_str(object) {
            Ok(value) => value,
            Err(error) => {
                // Its own line is always the first.
                let why = error.to_string();
                let why = why.split(" at line ").next().unwrap_or_default();
                return wrong(line, format!("this line is no JSON: {why}"));
            }
        };
        let Value::Object(object) = value else {
            return wrong(line, "this line is no JSON object");
        };
        match request(&object, line) {
            Ok(request) => requests.push(request),
            Err(why) => return wrong(line, why),
        }
    }
    Ok(requests)
}

fn request(object: &Map<String, Value>, line: u64) -> Result<ListedRequest, String> {
    let mut request = ListedRequest {
        line,
        ..ListedRequest::default()
    };
    for (key, value) in object {
        match key.as_str() {
            "method" => request.method = string(key, value)?,
            "url" => request.url = string(key, value)?,
            "headers" => request.headers = headers(value)?,
            "body" => request.body = ListedBody::Bytes(body(value)),
            "body_file" => request.body = ListedBody::File(string(key, value)?),
            "weight" => {
                let weight = value.as_u64().and_then(|weight| u32::try_from(weight).ok());
                let weight = weight.filter(|weight| *weight > 0);
                request.weight = Some(weight.ok_or("`weight` is a whole number from 1 on")?);
            }
            other => {
                return Err(format!(
                    "`{other}` is no key: there are url, method, headers, body, body_file and weight"
                ));
            }
        }
    }
    if object.contains_key("body") && object.contains_key("body_file") {
        return Err("`body` and `body_file` are both given".to_owned());
    }
    match is_url(&request.url) {
        true => Ok(request),
        false if request.url.is_empty() => Err("`url` is missing".to_owned()),
        false => Err(format!(
            "`url` is `{}`, which begins neither with http://, https:// nor /",
            ShownUrl::new(&request.url)
        )),
    }
}

fn string(key: &str, value: &Value) -> Result<String, String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("`{key}` is no text"))
}

/// A body: a text as it is, anything else as JSON.
fn body(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}

/// An object of texts, or of lists of texts.
fn headers(value: &Value) -> Result<Vec<(String, String)>, String> {
    let wrong = || "`headers` is an object whose values are texts or lists of texts".to_owned();
    let mut headers = Vec::new();
    for (name, value) in value.as_object().ok_or_else(wrong)? {
        let one = std::slice::from_ref(value);
        for value in value.as_array().map_or(one, Vec::as_slice) {
            let value = value.as_str().ok_or_else(wrong)?;
            headers.push((name.clone(), value.to_owned()));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_url_or_a_path() {
        let read = urls("http://a/b\n\n  # not me\n /c?d={random} \n").unwrap();
        let read: Vec<_> = read
            .iter()
            .map(|one| (one.line, one.url.as_str()))
            .collect();
        assert_eq!(read, [(1, "http://a/b"), (4, "/c?d={random}")]);
        let error = urls("/a\nb/c\n").unwrap_err();
        assert_eq!(error.line(), Some(2));
    }

    #[test]
    fn an_object_says_what_a_request_is() {
        let line = r#"{"method":"PUT","url":"/a","headers":{"X":"1","Y":["2","3"]},"body":{"n":"{random}"},"weight":3}"#;
        let read = objects(line).unwrap();
        let headers = [("X", "1"), ("Y", "2"), ("Y", "3")];
        assert_eq!(
            read,
            [ListedRequest {
                line: 1,
                method: "PUT".into(),
                url: "/a".into(),
                headers: headers
                    .map(|(name, value)| (name.into(), value.into()))
                    .into(),
                body: ListedBody::Bytes(br#"{"n":"{random}"}"#.to_vec()),
                weight: Some(3),
            }]
        );
        let file = objects(r#"{"url":"/","body_file":"b"}"#).unwrap();
        assert_eq!(file[0].body, ListedBody::File("b".into()));
        let text = objects(r#"{"url":"/","body":"a\n"}"#).unwrap();
        assert_eq!(text[0].body, ListedBody::Bytes(b"a\n".to_vec()));
    }

    #[test]
    fn what_is_no_request_says_why_and_on_which_line() {
        let why = |text: &str| {
            let error = objects(&format!("{{\"url\":\"/\"}}\n{text}")).unwrap_err();
            format!("{}: {error}", error.line().unwrap())
        };
        let said = [
            why("{"),
            why("[]"),
            why("{}"),
            why(r#"{"url":"a"}"#),
            why(r#"{"url":1}"#),
            why(r#"{"url":"/","wieght":1}"#),
            why(r#"{"url":"/","weight":0}"#),
            why(r#"{"url":"/","headers":[]}"#),
            why(r#"{"url":"/","body":"a","body_file":"b"}"#),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        2: this line is no JSON: EOF while parsing an object
        2: this line is no JSON object
        2: `url` is missing
        2: `url` is `a`, which begins neither with http://, https:// nor /
        2: `url` is no text
        2: `wieght` is no key: there are url, method, headers, body, body_file and weight
        2: `weight` is a whole number from 1 on
        2: `headers` is an object whose values are texts or lists of texts
        2: `body` and `body_file` are both given
        ");
    }
}
