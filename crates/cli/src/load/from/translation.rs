//! The words of `prony load` as they come together from those of another tool.

use prony_base::Nanos;
use prony_base::typed::duration;
use prony_load::escaped_text;

/// The translation of another tool's command so far.
#[derive(Debug, Default)]
pub struct Translation {
    tool: &'static str,
    /// Words of ours that need nothing else, in the order of the command.
    pub words: Vec<String>,
    /// URLs, and other words that are no flags.
    pub urls: Vec<String>,
    /// The URL is the name of a file of URLs.
    pub is_file: bool,
    /// A file of requests.
    pub requests_file: Option<String>,
    /// Connections.
    pub connections: Option<u64>,
    /// Threads; `None`: as many as ours, or as there are connections.
    pub threads: Option<u64>,
    /// Requests in all.
    pub requests: Option<u64>,
    /// How long.
    pub duration: Option<Nanos>,
    /// Requests a second over all connections.
    pub rate: Option<f64>,
    /// Requests a second on each connection.
    pub rate_each: Option<f64>,
    /// After which a request has failed; zero: never.
    pub timeout: Option<Nanos>,
    /// The method.
    pub method: Option<String>,
    /// A body was given.
    pub has_body: bool,
    /// Type of the body.
    pub content_type: Option<String>,
    /// Other headers, in the order of the command.
    headers: Vec<(String, String)>,
    /// Of several headers of one name only the last is sent.
    last_header_counts: bool,
    /// Compressed answers are not asked for.
    pub no_compression: bool,
    /// They are asked for, where the client does that.
    pub asks_for_compressed: bool,
    /// The tool has two clients, and this is Go's.
    pub is_go_client: bool,
    /// A type of the body that stands above that of a header.
    pub content_type_first: Option<String>,
    /// The address that the URL's name stands for.
    pub address: Option<String>,
    /// `{uuid}` is a field there as it is here.
    has_uuids: bool,
    /// The rate is all requests over all of the time.
    pub rate_is_of_all: bool,
    /// HTTP/1.0 was asked for.
    pub http1_0: bool,
    /// One exchange is shown, in place of a load.
    pub only_shows: bool,
    /// Whether connections are kept.
    pub keep_alive: Option<bool>,
    /// HTTP/2 was asked for.
    pub http2: bool,
    /// HTTP/1.1 was asked for.
    pub http1: bool,
    /// Requests outstanding on each connection.
    pub depth: Option<u64>,
    /// Any certificate is accepted.
    pub insecure: bool,
    /// Sessions of TLS may be resumed by tickets.
    pub session_tickets: bool,
    /// Redirects that are followed in a row; `None` and 0: none.
    pub follow: Option<u64>,
    /// And as curl says it, apart from whether they are.
    pub redirects_max: Option<String>,
    /// Sessions of TLS are not resumed.
    pub no_resumption: bool,
    /// A script of wrk's.
    pub script: Option<String>,
    /// The arguments of its `init`.
    pub script_args: Vec<String>,
}

/// Where a tool waits for ever, this long.
const FOR_EVER: &str = "1h";
/// Threads of ours, if no others are given.
const THREADS: u64 = 2;

impl Translation {
    /// Of a tool.
    pub fn new(tool: &'static str) -> Translation {
        Translation {
            tool,
            last_header_counts: matches!(tool, "wrk" | "wrk2" | "hey" | "oha"),
            has_uuids: tool == "fortio",
            ..Translation::default()
        }
    }

    /// The tool that it is of.
    pub fn tool(&self) -> &'static str {
        self.tool
    }

    /// Adds a flag of ours.
    pub fn add(&mut self, flag: &str, value: &str) -> Result<(), String> {
        self.words.extend([flag, value].map(str::to_owned));
        Ok(())
    }

    /// Adds a header.
    pub fn header(&mut self, header: &str) -> Result<(), String> {
        let (name, value) = header
            .split_once(':')
            .ok_or("it is no header, which is `Name: value`")?;
        let value = as_it_is(value.trim());
        let name = name.trim();
        if name.eq_ignore_ascii_case("content-type") {
            self.content_type = Some(value);
            return Ok(());
        }
        match self.last_header_counts {
            true => self.only_header(name, value),
            false => self.headers.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// The value of a header that was given.
    pub fn given(&self, name: &str) -> Option<&str> {
        let mut given = self.headers.iter().rev();
        let (_, value) = given.find(|(given, _)| given.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// Adds a header in place of others of its name; its value as ours takes it.
    pub fn only_header(&mut self, name: &str, value: String) {
        self.headers
            .retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value));
    }

    /// The first URL is one of https.
    pub fn is_secure(&self) -> bool {
        self.urls
            .first()
            .is_some_and(|url| url.starts_with("https:"))
    }

    /// With HTTP/2, puts what would be connections on one as its streams, as Go's client does.
    pub fn on_one_connection(&mut self) {
        if let Some(connections) = self.connections.filter(|_| self.http2) {
            self.rate = self
                .rate
                .or(self.rate_each.map(|each| each * connections as f64));
            self.depth = Some(connections);
            self.connections = Some(1);
        }
    }

    /// Leaves out headers without a value, as curl does with them.
    pub fn drop_empty_headers(&mut self) {
        self.headers.retain(|(_, value)| !value.is_empty());
        self.content_type.take_if(|of| of.is_empty());
    }

    /// Leaves out a header that was given without a value.
    pub fn drop_empty(&mut self, name: &str) {
        self.headers
            .retain(|(given, value)| !value.is_empty() || !given.eq_ignore_ascii_case(name));
    }

    /// Has the name of the URL stand for the address that was given.
    pub fn resolve_to_address(&mut self) -> Result<(), String> {
        let (Some(address), Some(url)) = (self.address.take(), self.urls.first()) else {
            return Ok(());
        };
        let place = url.split_once("://").map_or(&**url, |(_, rest)| rest);
        let place = place.split(['/', '?', '#']).next().unwrap_or_default();
        let has_port = place
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
        let port = match (has_port, self.is_secure()) {
            (true, _) => "",
            (false, true) => ":443",
            (false, false) => ":80",
        };
        self.add("--resolve", &format!("{place}{port}:{address}"))
    }

    /// A text of URL or body as ours takes it.
    fn text(&self, text: &str) -> String {
        let text = as_it_is(text);
        match self.has_uuids {
            true => text.replace(&as_it_is("{uuid}"), "{uuid}"),
            false => text,
        }
    }

    /// Adds headers that the tool sends unless the command has others of their names.
    pub fn sends(&mut self, headers: &[(&str, &str)]) {
        for (name, value) in headers {
            if self.given(name).is_none() {
                self.headers.push(((*name).to_owned(), (*value).to_owned()));
            }
        }
    }

    /// Adds a body.
    pub fn body(&mut self, flag: &str, value: &str) -> Result<(), String> {
        if std::mem::replace(&mut self.has_body, true) {
            return Err("there is a body already, and ours has one".to_owned());
        }
        match flag {
            "--body" => self.add(flag, &self.text(value)),
            file => self.add(file, value),
        }
    }

    /// Reads the commands before and after the tool in a pipeline: targets of vegeta, and those that show its results.
    pub fn piped(&mut self, before: &[Vec<String>], after: &[Vec<String>]) -> Result<(), String> {
        for command in before {
            match command.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["echo", ref targets @ ..] if self.tool == "vegeta" => self.targets(targets)?,
                _ => {
                    return Err(format!(
                        "--from: `{} |` is for a shell: give the tool's command alone",
                        command.join(" ")
                    ));
                }
            }
        }
        let shows = |command: &Vec<String>| match command.first().map(String::as_str) {
            Some("vegeta") => command.get(1).is_some_and(|word| word != "attack"),
            Some("tee") => true,
            _ => false,
        };
        match after.iter().find(|command| !shows(command)) {
            Some(command) => Err(format!(
                "--from: `| {}` is for a shell: give the tool's command alone",
                command.join(" ")
            )),
            None => Ok(()),
        }
    }

    /// A target of vegeta: `GET URL`.
    fn targets(&mut self, words: &[&str]) -> Result<(), String> {
        let text = words.join(" ");
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let [line] = lines[..] else {
            return Err("--from vegeta: one target, `GET URL`, can be translated".to_owned());
        };
        let (method, url) = line
            .split_once(' ')
            .ok_or("--from vegeta: a target is `GET URL`")?;
        self.method = Some(method.to_owned());
        self.urls.push(url.trim().to_owned());
        Ok(())
    }

    /// The URLs as ours takes them; a file in place of them is kept apart.
    fn our_urls(&mut self) -> Result<Vec<String>, String> {
        if self.is_file {
            self.requests_file = self.urls.pop();
        }
        if self.urls.is_empty() && self.requests_file.is_none() {
            return Err("the command has no URL".to_owned());
        }
        if let [_, second, ..] = &self.urls[..]
            && !matches!(self.tool, "h2load" | "curl")
        {
            return Err(format!("it has a second URL, `{second}`"));
        }
        let urls = self.urls.iter();
        Ok(urls.map(|url| self.text(&with_scheme(url))).collect())
    }

    /// How many, how long and how often, in the words of ours.
    fn load(&self) -> Vec<String> {
        let connections = self.connections.unwrap_or(1);
        let threads = self.threads.unwrap_or(THREADS).min(connections);
        let each = self.rate_each.map(|rate| rate * connections as f64);
        let mut words = vec![
            ("-t", Some(threads.to_string())),
            ("-c", Some(connections.to_string())),
        ];
        if !self.only_shows {
            words.push(("-n", self.requests.map(|requests| requests.to_string())));
            words.push(("-d", self.duration.map(duration::typed)));
            words.push(("-R", self.rate.or(each).map(|rate| rate.to_string())));
        }
        let given = words
            .into_iter()
            .filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        given.flatten().collect()
    }

    /// The words of ours.
    pub fn words(mut self) -> Result<Vec<String>, String> {
        let urls = self.our_urls()?;
        let is_secure = urls.iter().any(|url| url.starts_with("https:"));
        let mut words = self.load();
        let mut add = |flag: &str, value: Option<String>| {
            if let Some(value) = value {
                words.extend([flag.to_owned(), value]);
            }
        };
        add(
            "--timeout",
            self.timeout.map(|timeout| match timeout {
                Nanos::ZERO => FOR_EVER.to_owned(),
                timeout => duration::typed(timeout),
            }),
        );
        // Ours sends POST with a body.
        let usual = if self.has_body { "POST" } else { "GET" };
        add("--method", self.method.filter(|method| method != usual));
        add(
            "-H",
            self.content_type.map(|of| format!("Content-Type: {of}")),
        );
        for (name, value) in self.headers {
            add("-H", Some(format!("{name}: {value}")));
        }
        let depth = self
            .depth
            .filter(|depth| *depth > 1)
            .map(|depth| depth.to_string());
        add(
            if self.http2 {
                "--streams"
            } else {
                "--pipeline"
            },
            depth,
        );
        for (is_set, flag) in [
            (
                self.keep_alive == Some(false) && !self.http2,
                "--no-keepalive",
            ),
            (self.http1_0, "--http1.0"),
            (self.http2, "--http2"),
            (self.no_resumption && is_secure, "--no-resumption"),
            (self.insecure && is_secure, "--insecure"),
        ] {
            words.extend(is_set.then(|| flag.to_owned()));
        }
        let follow = self.follow.filter(|count| *count > 0);
        words.extend(follow.map(|count| format!("--follow={count}")));
        if self.only_shows {
            words.extend(["--debug".to_owned(), "1".to_owned()]);
        }
        words.extend(self.words);
        if let Some(script) = self.script {
            words.extend(["--script".to_owned(), script]);
        }
        if let Some(file) = self.requests_file {
            words.extend(["--requests-file".to_owned(), file]);
        }
        words.extend(urls);
        if !self.script_args.is_empty() {
            words.push("--".to_owned());
            words.extend(self.script_args);
        }
        Ok(words)
    }
}

/// A text whose braces are text, as they are for the tools that have no fields.
pub fn as_it_is(text: &str) -> String {
    String::from_utf8_lossy(&escaped_text(text.as_bytes())).into_owned()
}

/// A URL as ours takes it.
pub fn with_scheme(url: &str) -> String {
    match url.contains("://") {
        true => url.to_owned(),
        false => format!("http://{url}"),
    }
}
