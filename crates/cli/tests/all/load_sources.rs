//! What `prony load` sends and expects: each source of requests against a server that writes down what it gets, rows of a data file
//! counted by the server, credentials, cookies, and checks of answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{Ended, PRONY, folder, free_port, text, wait_for_port};
use crate::server;
use serde_json::Value;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nHello";

/// A server that writes down each request and answers all alike.
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(answer: &str) -> Server {
        let answer = answer.to_owned();
        Server::answering(move |_| answer.clone())
    }

    /// One whose answer depends on the request.
    pub fn answering<B: AsRef<[u8]>>(answer: impl Fn(&str) -> B + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (all, answer) = (Arc::clone(&seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
                thread::spawn(move || converse(stream, &all, &*answer));
            }
        });
        Server { url, seen }
    }

    /// The requests since the last call, each as text.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().expect("no panic"))
    }

    /// Their first lines without the version.
    pub fn lines(&self) -> Vec<String> {
        let line = |request: &String| {
            let line = request.lines().next().unwrap_or_default();
            line.trim_end_matches(" HTTP/1.1").to_owned()
        };
        self.requests().iter().map(line).collect()
    }
}

fn converse<B: AsRef<[u8]>>(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    answer: &dyn Fn(&str) -> B,
) {
    let mut pending = Vec::new();
    let mut bytes = [0; 4_096];
    loop {
        let request = loop {
            if let Some(length) = whole(&pending) {
                break pending.drain(..length).collect::<Vec<u8>>();
            }
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => pending.extend_from_slice(&bytes[..length]),
            }
        };
        let request = String::from_utf8_lossy(&request).into_owned();
        let answer = answer(&request);
        seen.lock().expect("no panic").push(request);
        if stream.write_all(answer.as_ref()).is_err() {
            return;
        }
    }
}

/// The length of the request that `bytes` begin with, if it is whole.
fn whole(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let length = end + length.map_or(0, |length| length.parse().expect("a length"));
    (bytes.len() >= length).then_some(length)
}

fn load(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env_remove("PRONY_DRIVER")
        .env("PRONY_TEST_TOKEN", "t-5")
        .arg("load")
        .args(words);
    for flag in ["-t", "-c"] {
        if !words.contains(&flag) {
            command.args([flag, "1"]);
        }
    }
    command.output().expect("prony runs")
}

fn ended(folder: &Path, code: i32, words: &[&str]) -> String {
    let output = load(folder, words);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

fn report(folder: &Path, code: i32, words: &[&str]) -> Value {
    let output = load(folder, &[words, &["--json", "-"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

fn counted(all: Vec<String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for one in all {
        *counts.entry(one).or_default() += 1;
    }
    counts
}

#[test]
fn several_urls_of_one_server_are_requested_in_turn_or_at_random() {
    let (folder, server) = (folder("source-urls"), Server::start(HELLO));
    let urls = ["/a", "/b?c=d", "/e"].map(|path| format!("{}{path}", server.url));
    let urls = urls.each_ref().map(String::as_str);
    let said = ended(&folder, 0, &[&urls[..], &["-n", "6"]].concat());
    assert!(said.contains("/a, 3 requests in turn\n"), "{said}");
    let expected = ["GET /a", "GET /b?c=d", "GET /e"].repeat(2);
    assert_eq!(server.lines(), expected);
    let random = [&urls[..], &["-n", "60", "--order", "random", "--seed", "3"]].concat();
    ended(&folder, 0, &random);
    let first = server.lines();
    ended(&folder, 0, &random);
    assert_eq!(first, server.lines());
    assert_eq!(counted(first).len(), 3);
    let said = ended(&folder, 2, &[urls[0], "http://127.0.0.2:1/"]);
    assert!(said.contains("are different servers"), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn each_format_of_a_file_is_sent_as_it_is_written() {
    let (folder, server) = (folder("source-files"), Server::start(HELLO));
    fs::write(folder.join("body.txt"), "a {random} body").expect("written");
    let log = |path: &str, at: u32| {
        format!("::1 - - [10/Oct/2000:13:55:{at} -0700] \"{path}\" 200 5 \"-\" \"x\"\n")
    };
    let log = [
        log("GET /l/{random} HTTP/1.1", 36),
        log("POST /m HTTP/1.1", 36),
        log("-", 37),
        log("GET /l/{random} HTTP/1.1", 38),
    ];
    let host = server.url.clone();
    let har = format!(
        r#"{{"log":{{"entries":[{{"request":{{"method":"PUT","url":"{host}/h","headers":[{{"name":"X-A","value":"1"}}],"postData":{{"text":"{{time}}"}}}}}}]}}}}"#
    );
    for (file, text, count, expected) in [
        ("urls", format!("{host}/a\n# no\n/b\n"), 2, "GET /a|GET /b"),
        (
            "json",
            "{\"url\":\"/j\",\"method\":\"PATCH\",\"headers\":{\"X-A\":\"1\"},\"body\":{\"a\":1}}\n".into(),
            1,
            "PATCH /j|X-A: 1|{\"a\":1}",
        ),
        (
            "vegeta",
            format!("POST {host}/v\nX-A: 1\n@body.txt\n\nGET {host}/w\n"),
            2,
            "POST /v|X-A: 1|a {random} body|GET /w",
        ),
        (
            "curl",
            format!("curl '{host}/c' \\\n -H 'X-A: 1' --data-raw '{{random}}'\n"),
            1,
            "POST /c|X-A: 1|{random}",
        ),
        ("har", har, 1, "PUT /h|X-A: 1|{time}"),
        ("log", log.concat(), 3, "GET /l/{random}|POST /m|GET /l/{random}"),
    ] {
        let name = format!("requests.{file}");
        fs::write(folder.join(&name), text).expect("written");
        let count = format!("{count}");
        let words = [&host, "--requests-file", &name, "-n", &count, "-H", "X-B: {counter}"];
        let said = ended(&folder, 0, &words);
        let requests = server.requests().join("\n");
        let mut rest = requests.as_str();
        for part in expected.split('|') {
            let at = rest.find(part).unwrap_or_else(|| panic!("{file}: {part} in {requests}"));
            rest = &rest[at + part.len()..];
        }
        assert!(requests.contains("X-B: 1\r\n"), "{requests}");
        if file == "log" {
            assert!(said.contains("1 line without a request left out, the first is line 3"), "{said}");
            assert!(said.contains("1 request other than GET and HEAD"), "{said}");
        }
    }
    // Without a URL, where the file names one server.
    ended(
        &folder,
        0,
        &["--requests-file", "requests.vegeta", "-n", "2"],
    );
    assert_eq!(server.lines(), ["POST /v", "GET /w"]);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_log_is_replayed_to_its_end() {
    let (folder, server) = (folder("source-replay"), Server::start(HELLO));
    let mut log = String::new();
    for (number, second) in (0..40).zip((36..).step_by(1)) {
        let at = 36 + (second - 36) / 20;
        log.push_str(&format!(
            "::1 - - [10/Oct/2000:13:55:{at} -0700] \"GET /{number} HTTP/1.1\" 200 5\n"
        ));
    }
    fs::write(folder.join("log"), log).expect("written");
    let words = [&server.url, "--requests-file", "log", "--replay", "50x"];
    for threads in ["1", "2"] {
        let report = report(
            &folder,
            0,
            &[&words[..], &["-t", threads, "-c", "2"]].concat(),
        );
        assert_eq!(report["arrivals"]["scheduled"], 40);
        assert_eq!(report["completed"], 40);
        let lines: BTreeSet<String> = server.lines().into_iter().collect();
        assert_eq!(lines.len(), 40, "{lines:?}");
    }
    fs::write(folder.join("urls"), "/a\n").expect("written");
    let said = ended(
        &folder,
        2,
        &[&server.url, "--requests-file", "urls", "--replay", "1x"],
    );
    assert!(said.contains("needs the times of an access log"), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn weights_are_kept() {
    let (folder, server) = (folder("source-weights"), Server::start(HELLO));
    fs::write(
        folder.join("mix"),
        "{\"url\":\"/a\",\"weight\":9}\n{\"url\":\"/b\"}\n",
    )
    .expect("written");
    ended(
        &folder,
        0,
        &[&server.url, "--requests-file", "mix", "-n", "1000"],
    );
    let counts = counted(server.lines());
    // 100 are expected, with a deviation of 9.5.
    assert!((50..150).contains(&counts["GET /b"]), "{counts:?}");
    let said = ended(
        &folder,
        2,
        &[&server.url, "--requests-file", "mix", "--order", "in-turn"],
    );
    assert!(said.contains("the file gives weights"), "{said}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_file_that_is_wrong_says_where_and_why() {
    let folder = folder("source-wrong");
    for (file, text, why) in [
        ("empty", "", "there is no request in it"),
        ("other", "hello\n", "--format"),
        ("urls", "/a\nb\n", "urls:2: `b` begins neither with"),
        ("path", "/a b\n", "--format"),
        (
            "json",
            "{\"url\":\"/\"}\n{\"url\":\"/\",\"wieght\":1}\n",
            "json:2: `wieght` is no key",
        ),
        ("field", "/a\n/{rnadom}\n", "{rnadom} is no field"),
        (
            "env",
            "/{env:PRONY_NO_SUCH}\n",
            "the environment has no PRONY_NO_SUCH",
        ),
        (
            "two",
            "http://127.0.0.1:1/\nhttp://127.0.0.2:1/\n",
            "two:2: `http://127.0.0.1:1/` and",
        ),
        ("vegeta", "POST /a\n@no\n", "cannot read the body from no"),
        ("curl", "curl -L /a\n", "curl:1: -L is not taken"),
        ("har", "{\n}", "har:1: this is no HAR"),
    ] {
        fs::write(folder.join(file), text).expect("written");
        let url: &[&str] = if file == "two" {
            &[]
        } else {
            &["http://127.0.0.1:1"]
        };
        let said = ended(&folder, 2, &[url, &["--requests-file", file]].concat());
        assert!(said.contains(why), "{file}: {said}");
    }
    let paths = ended(&folder, 2, &["--requests-file", "urls", "--format", "urls"]);
    assert!(paths.contains("urls:2"), "{paths}");
    fs::write(folder.join("paths"), "/a\n").expect("written");
    let paths = ended(&folder, 2, &["--requests-file", "paths"]);
    assert!(
        paths.contains("paths:1") && paths.contains("name the server"),
        "{paths}"
    );
    let directory = ended(&folder, 2, &["http://127.0.0.1:1", "--requests-file", "."]);
    assert!(directory.contains("it is a directory"), "{directory}");
    let none = ended(&folder, 2, &["http://127.0.0.1:1", "--requests-file", "no"]);
    assert!(none.contains("No such file"), "{none}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn fields_are_filled_in_in_path_header_and_body() {
    let (folder, server) = (folder("source-fields"), Server::start(HELLO));
    let url = format!("{}/{{counter}}/{{uuid}}?r={{random}}", server.url);
    let body = r#"{"n":{counter},"r":{random},"e":{},"t":"{env:PRONY_TEST_TOKEN}","l":"{{time}}"}"#;
    let words = [&url, "-n", "50", "-H", "X-Time: {time}", "--body", body];
    ended(&folder, 0, &words);
    let mut ids = BTreeSet::new();
    for (number, request) in (1..).zip(server.requests()) {
        let (head, body) = request.split_once("\r\n\r\n").expect("a head");
        let target = head.split(' ').nth(1).expect("a path");
        let (path, random) = target.split_once("?r=").expect("a query");
        let (counter, id) = path[1..].split_once('/').expect("a counter");
        assert_eq!(
            (counter, id.len()),
            (number.to_string().as_str(), 36),
            "{request}"
        );
        ids.insert(id.to_owned());
        let expected =
            format!(r#"{{"n":{number},"r":{random},"e":{{}},"t":"t-5","l":"{{time}}"}}"#);
        assert_eq!(body, expected);
        assert!(head.contains("X-Time: 1"), "{head}");
    }
    assert_eq!(ids.len(), 50);
    let said = ended(&folder, 2, &[&format!("{}/{{nam}}", server.url)]);
    assert!(
        said.contains("{nam} is no field: there are {random}, {counter}"),
        "{said}"
    );
    fs::remove_dir_all(folder).expect("removed");
}

/// A data file of so many rows.
fn data(folder: &Path, rows: u32) {
    let mut text = String::from("id,name\n");
    for number in 0..rows {
        text.push_str(&format!("{number},\"Ann, {number}\"\n"));
    }
    fs::write(folder.join("users.csv"), text).expect("written");
}

#[test]
fn each_row_is_used_once_by_four_threads_and_the_run_ends() {
    const ROWS: u32 = 5_000;
    let (folder, server) = (folder("source-once"), Server::start(HELLO));
    data(&folder, ROWS);
    let url = format!("{}/{{id}}", server.url);
    let words = [
        &url,
        "--data",
        "users.csv",
        "--data-order",
        "once",
        "-H",
        "X-Name: {name}",
    ];
    let four = ["-d", "10m", "-t", "4", "-c", "16"];
    let open = [&four[..], &["-R", "20k"]].concat();
    for manner in [&four[..], &open] {
        let report = report(&folder, 0, &[&words[..], manner].concat());
        assert_eq!(report["data_ended"], true);
        assert_eq!(report["completed"], ROWS);
        let requests = server.requests();
        assert_eq!(requests.len(), ROWS as usize);
        let ids = requests.iter().map(|request| {
            let id = request["GET /".len()..].split(' ').next().expect("a path");
            assert!(
                request.contains(&format!("X-Name: Ann, {id}\r\n")),
                "{request}"
            );
            id.parse::<u32>().expect("a number")
        });
        assert_eq!(ids.collect::<BTreeSet<_>>(), (0..ROWS).collect());
    }
    let said = ended(&folder, 0, &words);
    assert!(
        said.contains("The data ended: each of its rows was used once"),
        "{said}"
    );
    server.requests();
    // In turn goes on, and any row may come at random.
    data(&folder, 3);
    ended(&folder, 0, &[&url, "--data", "users.csv", "-n", "7"]);
    let expected = ["GET /0", "GET /1", "GET /2"].repeat(3)[..7].to_vec();
    assert_eq!(server.lines(), expected);
    ended(
        &folder,
        0,
        &[
            &url,
            "--data",
            "users.csv",
            "--data-order",
            "random",
            "-n",
            "60",
        ],
    );
    assert_eq!(counted(server.lines()).len(), 3);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_data_file_that_is_wrong_says_where_and_why() {
    let folder = folder("source-data");
    for (text, why) in [
        ("", "has no columns"),
        ("id\n", "has no rows"),
        (
            "id,name\n1,a\n2\n",
            "users.csv:3: 1 field, but the first line names 2 columns",
        ),
        ("id,name\n1,\"a\n", "users.csv:2: "),
        ("name\n1\n", "{id} is no field"),
    ] {
        fs::write(folder.join("users.csv"), text).expect("written");
        let said = ended(
            &folder,
            2,
            &["http://127.0.0.1:1/{id}", "--data", "users.csv"],
        );
        assert!(said.contains(why), "{text:?}: {said}");
    }
    let said = ended(&folder, 2, &["http://127.0.0.1:1/{id}", "--data", "."]);
    assert!(said.contains("it is a directory"), "{said}");
    let unused = ["http://127.0.0.1:1/", "--data", "users.csv"];
    let said = ended(&folder, 2, &unused);
    assert!(
        said.contains("no request has a column of users.csv: {name}"),
        "{said}"
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn rows_and_files_are_the_same_over_http2() {
    let Some(_) = prony_testkit::need("nginx") else {
        return;
    };
    let folder = folder("source-http2");
    let (port, at) = (free_port(), folder.display());
    let config = format!(
        "daemon off; pid {at}/pid; error_log {at}/error.log; worker_processes 1;
        events {{ worker_connections 1000; }}
        http {{
          log_format mine '$request_uri $http_x_name $content_length'; access_log {at}/access.log mine;
          client_body_temp_path {at}/a; proxy_temp_path {at}/b;
          fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;
          server {{ listen 127.0.0.1:{port} http2; location / {{ return 200 '{{\"a\":[1]}}'; }} }}
        }}"
    );
    fs::write(folder.join("nginx.conf"), config).expect("written");
    let mut command = Command::new("nginx");
    command.arg("-c").arg(folder.join("nginx.conf"));
    command.arg("-e").arg(folder.join("error.log"));
    let nginx = Ended::start(command.stderr(Stdio::null()));
    wait_for_port(port);
    data(&folder, 500);
    let url = format!("http://127.0.0.1:{port}/{{id}}");
    let words = [
        &url,
        "--http2",
        "--streams",
        "5",
        "-t",
        "2",
        "-c",
        "4",
        "--data",
        "users.csv",
        "--data-order",
        "once",
        "-H",
        "X-Name: n{id}",
        "--body",
        "<{id}>",
        "-d",
        "10m",
        "--expect-json",
        "$.a[0] == 1",
    ];
    let report = report(&folder, 0, &words);
    assert_eq!(
        (&report["completed"], &report["data_ended"]),
        (&500.into(), &true.into())
    );
    let wrong = [&words[..], &["--expect-json", "$.a[1]"]].concat();
    let failed = self::report(&folder, 1, &wrong);
    assert_eq!(failed["counts"]["failed"]["check"], 500);
    drop(nginx);
    let log = fs::read_to_string(folder.join("access.log")).expect("a log");
    let lines = counted(log.lines().map(str::to_owned).collect());
    for id in 0..500 {
        let line = format!("/{id} n{id} {}", id.to_string().len() + 2);
        assert_eq!(lines.get(&line), Some(&2), "{line} in {lines:?}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn credentials_forms_and_cookies_are_sent() {
    let answer = HELLO.replace("\r\n\r\n", "\r\nSet-Cookie: session=5; Path=/\r\n\r\n");
    let (folder, server) = (folder("source-identity"), Server::start(&answer));
    let sent = |words: &[&str]| {
        ended(
            &folder,
            0,
            &[&[server.url.as_str(), "-n", "2"], words].concat(),
        );
        server.requests()
    };
    assert!(sent(&["--user", "a:b"])[0].contains("Authorization: Basic YTpi\r\n"));
    assert!(
        sent(&["--bearer", "{env:PRONY_TEST_TOKEN}"])[0].contains("Authorization: Bearer t-5\r\n")
    );
    let form = &sent(&["--form", "name=Ann Lee", "--form", "n={counter}"])[1];
    assert!(
        form.starts_with("POST / ") && form.ends_with("\r\n\r\nname=Ann+Lee&n=2"),
        "{form}"
    );
    assert!(
        form.contains("Content-Type: application/x-www-form-urlencoded\r\n"),
        "{form}"
    );
    let cookies = sent(&["--cookies"]);
    assert!(!cookies[0].contains("Cookie:"), "{}", cookies[0]);
    assert!(
        cookies[1].contains("\r\nCookie: session=5\r\n"),
        "{}",
        cookies[1]
    );
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_failed_check_is_a_failure_by_its_name_and_the_answer_is_kept() {
    let (folder, server) = (folder("source-checks"), Server::start(HELLO));
    let hello = "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969";
    let right = [
        "--expect-status",
        "2xx",
        "--expect-header",
        "content-type: text/plain",
        "--expect-body",
        "Hello",
        "--expect-contains",
        "ell",
        "--expect-regex",
        "^H.*o$",
        "--expect-size",
        "5",
        "--expect-sha256",
        hello,
        "--expect-time",
        "10s",
    ];
    ended(
        &folder,
        0,
        &[&[server.url.as_str(), "-n", "20"], &right[..]].concat(),
    );
    for (words, name) in [
        (["--expect-header", "X-No"], "header X-No"),
        (["--expect-contains", "hello"], "contains hello"),
        (["--expect-regex", "^h"], "regex ^h"),
        (["--expect-json", "$.a"], "json $.a"),
        (["--expect-size", "6.."], "size from 6"),
        (["--expect-time", "1ns"], "time up to 1ns"),
    ] {
        let words = [&[server.url.as_str(), "-n", "20"], &words[..]].concat();
        let said = ended(&folder, 1, &words);
        assert!(
            said.contains(&format!("Check failed: {name} (20 answers)")),
            "{said}"
        );
        assert!(said.contains("sent 20 = completed 0 + failed 20"), "{said}");
        let report = report(&folder, 1, &words);
        assert_eq!(report["checks"][0]["failed"], 20);
        assert_eq!(report["counts"]["failed"]["check"], 20);
        assert_eq!(report["connections_opened"], 1);
    }
    let kept = [
        "-n",
        "20",
        "--expect-contains",
        "hello",
        "--keep-failed",
        "failed",
    ];
    ended(&folder, 1, &[&[server.url.as_str()], &kept[..]].concat());
    let files = fs::read_dir(folder.join("failed"))
        .expect("a folder")
        .count();
    let first = fs::read_to_string(folder.join("failed/1.txt")).expect("a file");
    assert_eq!(
        (files, first.as_str()),
        (
            10,
            "failed: contains hello\nstatus: 200\nbody: 5 bytes\n\nHello"
        )
    );
    let status = ended(
        &folder,
        1,
        &[&server.url, "-n", "5", "--expect-status", "404"],
    );
    assert!(
        status.contains("Unexpected status: 5 (status: 200 × 5)"),
        "{status}"
    );
    for (words, why) in [
        (["--expect-json", "a == 1"], "it does not begin with $"),
        (
            ["--expect-regex", "("],
            "is no regular expression: unclosed group",
        ),
        (["--expect-sha256", "5"], "64 hexadecimal digits"),
        (
            ["--keep-failed", "x"],
            "give one, such as --expect-contains",
        ),
    ] {
        let said = ended(&folder, 2, &[&[server.url.as_str()], &words[..]].concat());
        assert!(said.contains(why), "{said}");
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_body_that_is_checked_is_not_held() {
    let server = server::Server::start(&[]);
    let port = server.port;
    let folder = folder("source-large");
    let url = format!("http://127.0.0.1:{port}/payload/268435456");
    let words = [
        &url,
        "-n",
        "1",
        "-d",
        "60s",
        "--timeout",
        "60s",
        "--expect-size",
        "256MiB",
    ];
    ended(&folder, 0, &words);
    let report = report(
        &folder,
        1,
        &[&words[..], &["--expect-json", "$.a"]].concat(),
    );
    assert_eq!(report["checks"][0]["failed"], 1);
    fs::remove_dir_all(folder).expect("removed");
}

/// `/old` leads to `/new`, `/away` to another origin.
fn leading(request: &str) -> String {
    let to = match request.split(' ').nth(1) {
        Some("/old") => "/new?a",
        Some("/away") => "http://127.0.0.2:1/",
        _ => return HELLO.to_owned(),
    };
    format!("HTTP/1.1 303 See Other\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

#[test]
fn redirects_are_followed_where_that_is_said_and_each_is_a_request() {
    let (folder, server) = (folder("source-follow"), Server::answering(leading));
    let (old, away) = (
        format!("{}/old", server.url),
        format!("{}/away", server.url),
    );
    let words = [&old, "-n", "3", "--body", "x", "--expect-status", "200"];
    let words = [&words[..], &["--expect-body", "Hello", "--follow"]].concat();
    let followed = report(&folder, 0, &words);
    let lines = server.lines();
    assert_eq!(lines, ["POST /old", "GET /new?a"].repeat(3));
    assert_eq!(followed["counts"]["sent"], 6, "{followed}");
    assert_eq!(followed["counts"]["completed"], 6, "{followed}");
    assert_eq!(followed["redirects"]["followed"], 3, "{followed}");
    assert_eq!(followed["redirects"]["whole_ns"]["count"], 3, "{followed}");
    assert_eq!(followed["status"]["303"], 3, "{followed}");
    let whole = followed["redirects"]["whole_ns"]["min"].as_u64();
    assert!(whole > followed["latency_ns"]["min"].as_u64(), "{followed}");

    let said = ended(&folder, 0, &[&old, "-n", "3", "--follow"]);
    assert!(
        said.contains("  Redirects: 3 followed; with them a request took 50% "),
        "{said}"
    );
    let said = ended(&folder, 0, &[&old, "-n", "3"]);
    assert!(
        said.contains("  Redirects: 3, counted as answers and not followed\n"),
        "{said}"
    );
    let said = ended(
        &folder,
        1,
        &[&away, "-n", "3", "--follow", "--keep-failed", "failed"],
    );
    let kept = fs::read_dir(folder.join("failed"))
        .expect("a folder")
        .count();
    assert_eq!(kept, 3, "{said}");
    assert!(
        said.contains("  Check failed: redirect to another origin (3 answers)\n"),
        "{said}"
    );
    server.requests();

    let said = ended(
        &folder,
        0,
        &[&old, "--debug", "2", "--follow=1", "--expect-body", "Hello"],
    );
    assert_eq!(server.lines(), ["GET /old", "GET /new?a"].repeat(2));
    assert!(
        said.contains("== request 4\n> GET /new?a HTTP/1.1\n"),
        "{said}"
    );
    assert_eq!(
        said.matches("== check the body that is expected: passed\n")
            .count(),
        2,
        "{said}"
    );
    assert!(said.ends_with("== 4 completed\n"), "{said}");
}

/// A body of this length is sent in chunks of gzip's, broken for `/broken`, to whoever takes it.
fn coded(request: &str) -> Vec<u8> {
    let is_taken = request.contains("Accept-Encoding: ") && request.contains("gzip");
    if !is_taken {
        return HELLO.as_bytes().to_vec();
    }
    // `hello`.
    let mut body = vec![
        31, 139, 8, 0, 0, 0, 0, 0, 0, 255, 203, 72, 205, 201, 201, 7, 0, 134, 166, 16, 54, 5, 0, 0,
        0,
    ];
    if request.starts_with("GET /broken ") {
        body[20] ^= 1;
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[test]
fn compressed_answers_are_decoded_counted_twice_and_checked_as_what_they_stand_for() {
    let (folder, server) = (folder("source-compressed"), Server::answering(coded));
    let (url, broken) = (
        format!("{}/a", server.url),
        format!("{}/broken", server.url),
    );
    let words = [
        &url,
        "-n",
        "3",
        "--compressed",
        "--expect-body",
        "hello",
        "--expect-size",
        "5",
    ];
    let decoded = report(&folder, 0, &words);
    assert_eq!(decoded["counts"]["completed"], 3, "{decoded}");
    let expected =
        serde_json::json!({"answers": 3, "coded": 3, "wire_bytes": 75, "decoded_bytes": 15});
    assert_eq!(decoded["coded"], expected, "{decoded}");
    assert!(server.requests()[0].contains("\r\nAccept-Encoding: zstd, br, gzip, deflate\r\n"));
    let said = ended(
        &folder,
        0,
        &[&url, "-n", "3", "--compressed", "-H", "accept-encoding: br"],
    );
    assert!(
        said.contains("  Compressed: 0 of 3 answers; bodies of 15.00B stand for 15.00B\n"),
        "{said}"
    );
    let said = ended(&folder, 1, &[&broken, "-n", "3", "--compressed"]);
    assert!(
        said.contains("  Check failed: body that does not decode (3 answers)\n"),
        "{said}"
    );
}
