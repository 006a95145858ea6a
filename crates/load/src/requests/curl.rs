//! Commands of curl, as browsers copy them ("Copy as cURL"): quotes, escapes and continued lines as a shell reads them, and the
//! options that say what is sent. One that says something else than what is sent, and cannot be kept, is refused by name.

use prony_wire::url::ShownUrl;

use super::list::{ListError, ListedBody, ListedRequest, wrong};
use super::shell::{ShellToken, ShellTokens};

/// Options without a value that change nothing of what is sent.
const IGNORED: [&str; 15] = [
    "-s",
    "--silent",
    "-S",
    "--show-error",
    "-k",
    "--insecure",
    "-i",
    "--include",
    "-v",
    "--verbose",
    "-f",
    "--fail",
    "--http1.1",
    "--http2",
    "--globoff",
];
/// The same with a value.
const IGNORED_WITH_VALUE: [&str; 8] = [
    "-o",
    "--output",
    "-m",
    "--max-time",
    "--connect-timeout",
    "-w",
    "--write-out",
    "--retry",
];

/// Reads all commands.
pub fn read(text: &str) -> Result<Vec<ListedRequest>, ListError> {
    let mut requests = Vec::new();
    for (line, words) in commands(text)? {
        match request(line, &words) {
            Ok(request) => requests.push(request),
            Err(why) => return wrong(line, why),
        }
    }
    Ok(requests)
}

/// The words of each command, and the line that it begins on.
fn commands(text: &str) -> Result<Vec<(u64, Vec<String>)>, ListError> {
    let mut commands = Vec::new();
    let (mut begins, mut words) = (1, Vec::new());
    for token in ShellTokens::new(text, "\n;") {
        match token {
            Ok((line, ShellToken::Word(word))) => {
                begins = if words.is_empty() { line } else { begins };
                words.push(word);
            }
            Ok((_, ShellToken::Operator(_))) => {
                commands.push((begins, std::mem::take(&mut words)));
            }
            Err((line, fault)) => {
                return wrong(
                    if words.is_empty() { line } else { begins },
                    fault.to_string(),
                );
            }
        }
    }
    commands.push((begins, words));
    commands.retain(|(_, words)| !words.is_empty());
    Ok(commands)
}

/// What the options of a command have said so far.
#[derive(Default)]
struct CurlWords {
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, String)>,
    data: Option<ListedBody>,
    is_json: bool,
    is_get: bool,
    is_head: bool,
}

fn request(line: u64, words: &[String]) -> Result<ListedRequest, String> {
    if words[0] != "curl" {
        return Err(format!("`{}` is no command of curl", words[0]));
    }
    let mut read = CurlWords::default();
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        if !word.starts_with('-') || word == "-" {
            read.set_url(word)?;
            continue;
        }
        // `-XPOST` is `-X POST`, and `--data=a` is `--data a`.
        let (option, joined) = match word.split_once('=') {
            Some((option, value)) if word.starts_with("--") => (option, Some(value.to_owned())),
            _ if word.starts_with("--") => (word.as_str(), None),
            _ => {
                let end = word.char_indices().nth(2).map_or(word.len(), |(at, _)| at);
                let (option, value) = word.split_at(end);
                (option, (!value.is_empty()).then(|| value.to_owned()))
            }
        };
        if read.flag(option) || IGNORED.contains(&option) {
            // `-sS` is `-s -S`.
            let more = joined.iter().flat_map(|joined| joined.chars());
            for letter in more {
                let option = format!("-{letter}");
                if !read.flag(&option) && !IGNORED.contains(&option.as_str()) {
                    return Err(unknown(&option));
                }
            }
            continue;
        }
        let mut value = || {
            let value = joined.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("{option} has no value"))
        };
        if IGNORED_WITH_VALUE.contains(&option) {
            value()?;
        } else {
            read.option(option, &mut value)?;
        }
    }
    read.request(line)
}

fn unknown(option: &str) -> String {
    match option {
        "-L" | "--location" => {
            "-L is not taken: redirects of all requests are followed with --follow; leave it out"
                .to_owned()
        }
        "-F" | "--form" => {
            "-F is not taken: write the body to a file, and send it with --data-binary @FILE"
                .to_owned()
        }
        option => format!("the option {option} is not known here"),
    }
}

impl CurlWords {
    fn set_url(&mut self, url: &str) -> Result<(), String> {
        if let Some(first) = &self.url {
            return Err(format!(
                "two URLs, `{}` and `{}`: write a command for each",
                ShownUrl::new(first),
                ShownUrl::new(url)
            ));
        }
        self.url = Some(url.to_owned());
        Ok(())
    }

    /// Takes an option without a value; false where it is none.
    fn flag(&mut self, option: &str) -> bool {
        match option {
            "-G" | "--get" => self.is_get = true,
            "-I" | "--head" => self.is_head = true,
            "--compressed" => self.header("Accept-Encoding", "deflate, gzip, br, zstd"),
            _ => return false,
        }
        true
    }

    fn header(&mut self, name: &str, value: &str) {
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn option(
        &mut self,
        option: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<(), String> {
        match option {
            "-X" | "--request" => self.method = Some(value()?),
            "--url" => self.set_url(&value()?)?,
            "-H" | "--header" => {
                let text = value()?;
                let Some((name, of)) = text.split_once(':') else {
                    return Err(format!("`{text}` is no header, `Name: value`"));
                };
                self.header(name.trim(), of.trim());
            }
            "-A" | "--user-agent" => self.header("User-Agent", &value()?),
            "-e" | "--referer" => self.header("Referer", &value()?),
            "-b" | "--cookie" => {
                let text = value()?;
                if !text.contains('=') {
                    return Err(format!(
                        "-b {text} names a file of cookies: write them as name=value"
                    ));
                }
                self.header("Cookie", &text);
            }
            "-u" | "--user" => {
                let text = value()?;
                let authorization = prony_wire::encode::basic(&text);
                self.header("Authorization", &authorization);
            }
            "-d" | "--data" | "--data-ascii" | "--data-binary" => {
                let text = value()?;
                match text.strip_prefix('@') {
                    Some(file) => self.add_file(file)?,
                    None => self.add_data(&text)?,
                }
            }
            "--data-raw" => self.add_data(&value()?)?,
            "--json" => {
                let text = value()?;
                self.is_json = true;
                match text.strip_prefix('@') {
                    Some(file) => self.add_file(file)?,
                    None => self.add_data(&text)?,
                }
            }
            "--data-urlencode" => {
                let text = value()?;
                let (name, of) = text.split_once('=').unwrap_or(("", &text));
                let of = crate::prepare::form_encoded(of);
                let joined = match name {
                    "" => of,
                    name => format!("{name}={of}"),
                };
                self.add_data(&joined)?;
            }
            other => return Err(unknown(other)),
        }
        Ok(())
    }

    fn add_data(&mut self, more: &str) -> Result<(), String> {
        match &mut self.data {
            None => self.data = Some(ListedBody::Bytes(more.as_bytes().to_vec())),
            Some(ListedBody::Bytes(data)) => {
                data.push(b'&');
                data.extend_from_slice(more.as_bytes());
            }
            Some(_) => {
                return Err("data from a file and other data: put all into one file".to_owned());
            }
        }
        Ok(())
    }

    fn add_file(&mut self, file: &str) -> Result<(), String> {
        if self.data.is_some() {
            return Err("data from a file and other data: put all into one file".to_owned());
        }
        self.data = Some(ListedBody::File(file.to_owned()));
        Ok(())
    }

    fn request(mut self, line: u64) -> Result<ListedRequest, String> {
        let Some(mut url) = self.url.take() else {
            return Err("no URL".to_owned());
        };
        let mut body = self.data.take().unwrap_or_default();
        if self.is_get {
            match std::mem::take(&mut body) {
                ListedBody::Bytes(data) => {
                    url.push(if url.contains('?') { '&' } else { '?' });
                    url.push_str(&String::from_utf8_lossy(&data));
                }
                ListedBody::File(_) => return Err("-G with data from a file".to_owned()),
                ListedBody::Empty => {}
            }
        }
        let has = |headers: &[(String, String)], name: &str| {
            headers.iter().any(|(of, _)| of.eq_ignore_ascii_case(name))
        };
        if body != ListedBody::Empty && !has(&self.headers, "content-type") {
            self.header(
                "Content-Type",
                match self.is_json {
                    true => "application/json",
                    false => "application/x-www-form-urlencoded",
                },
            );
        }
        if self.is_json && !has(&self.headers, "accept") {
            self.header("Accept", "application/json");
        }
        let head = self.is_head.then(|| "HEAD".to_owned());
        Ok(ListedRequest {
            line,
            method: self.method.or(head).unwrap_or_default(),
            url,
            headers: self.headers,
            body,
            weight: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(command: &str) -> ListedRequest {
        let mut read = read(command).unwrap();
        assert_eq!(read.len(), 1, "{command}");
        read.remove(0)
    }

    #[test]
    fn a_copied_command_is_the_request_that_it_was() {
        let text = "# from the browser\ncurl 'http://a/b?c=d' \\\n  -H 'Accept: */*' \\\n  -H \"X: \\\"1\\\"\" \\\n  --data-raw $'{\"a\":\"\\u00e9\\n\\'\"}' --compressed -sS\n";
        let request = one(text);
        assert_eq!((request.line, request.url.as_str()), (2, "http://a/b?c=d"));
        let headers: Vec<String> = request
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(
            headers,
            [
                "Accept: */*",
                "X: \"1\"",
                "Accept-Encoding: deflate, gzip, br, zstd",
                "Content-Type: application/x-www-form-urlencoded"
            ]
        );
        assert_eq!(request.body, ListedBody::Bytes("{\"a\":\"é\n'\"}".into()));
        assert_eq!(request.method, "");
    }

    #[test]
    fn options_say_what_is_sent() {
        assert_eq!(one("curl -XDELETE /a").method, "DELETE");
        assert_eq!(one("curl -I /a").method, "HEAD");
        let get = one("curl -G /a -d b=1 --data-urlencode 'c=d e&'");
        assert_eq!(
            (get.url.as_str(), get.body),
            ("/a?b=1&c=d+e%26", ListedBody::Empty)
        );
        let file = one("curl /a --data-binary @body.bin -H 'content-type: x/y'");
        assert_eq!(
            (file.body, file.headers.len()),
            (ListedBody::File("body.bin".into()), 1)
        );
        let json = one("curl --json '{}' --url=/a");
        assert_eq!((json.url.as_str(), json.headers.len()), ("/a", 2));
        let user = one("curl -u a:b /");
        assert_eq!(user.headers[0].1, "Basic YTpi");
        let two = read("curl /a; curl /b\ncurl /c").unwrap();
        let lines: Vec<u64> = two.iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 1, 2]);
        let broken = read("curl /a -d \"b\\\nc\"\ncurl /b").unwrap();
        assert_eq!(broken[1].line, 3, "a line that goes on in quotes is one");
    }

    #[test]
    fn what_cannot_be_kept_is_refused_by_name() {
        let why = |text: &str| {
            let error = read(text).unwrap_err();
            format!("{}: {error}", error.line().unwrap_or_default())
        };
        let said = [
            why("curl /a\nwget /b"),
            why("curl"),
            why("curl /a /b"),
            why("curl -L /a"),
            why("curl -F a=b /a"),
            why("curl --proxy x /a"),
            why("curl -sZ /a"),
            why("curl /a -H"),
            why("curl /a -H x"),
            why("curl /a -b jar"),
            why("curl '/a"),
            why("curl /a -d @x -d y"),
        ];
        insta::assert_snapshot!(said.join("\n"), @r"
        2: `wget` is no command of curl
        1: no URL
        1: two URLs, `/a` and `/b`: write a command for each
        1: -L is not taken: redirects of all requests are followed with --follow; leave it out
        1: -F is not taken: write the body to a file, and send it with --data-binary @FILE
        1: the option --proxy is not known here
        1: the option -Z is not known here
        1: -H has no value
        1: `x` is no header, `Name: value`
        1: -b jar names a file of cookies: write them as name=value
        1: a ' that does not end
        1: data from a file and other data: put all into one file
        ");
    }
}
