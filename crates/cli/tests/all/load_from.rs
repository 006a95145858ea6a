//! Commands of other load generators beside what `prony load --from` makes of them: the same requests, the same number of them, over as
//! many connections. Tools that are installed are run beside it; what the others sent when they were is kept here.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{PRONY, folder, text};

/// A request as it is compared: its line, its headers in order of their names, its body.
type Request = (String, Vec<String>, String);

/// A header as it is compared: names in lower case, no version of a program, and none that only says how the connection ends.
fn header(line: &str) -> Option<String> {
    let (name, value) = line.split_once(':').expect("a header");
    let (name, value) = (name.to_ascii_lowercase(), value.trim());
    match &*name {
        // The number of the request.
        "x-vegeta-seq" => None,
        "connection" => None,
        "user-agent" => {
            let version = |c: char| c.is_ascii_digit() || c == '.';
            Some(format!("{name}: {}", value.trim_end_matches(version)))
        }
        _ => Some(format!("{name}: {value}")),
    }
}

fn request(line: &str, headers: &[&str], body: &str) -> Request {
    let mut headers: Vec<String> = headers.iter().filter_map(|line| header(line)).collect();
    headers.sort();
    (line.to_owned(), headers, body.to_owned())
}

/// A request as text: head, empty line, body. Of HTTP/2 its first four lines are what it has in place of a request line.
fn read(text: &str) -> Request {
    let text = text.replace("\r\n", "\n");
    let (head, body) = text.split_once("\n\n").expect("a head that ends");
    let lines: Vec<&str> = head.lines().collect();
    let count = lines
        .iter()
        .take_while(|line| line.starts_with(':'))
        .count();
    let mut first = lines[..count.max(1)].to_vec();
    first.sort_unstable();
    request(&first.join(" "), &lines[count.max(1)..], body)
}

/// What a listener saw.
#[derive(Debug, Default)]
struct Seen {
    /// Connections on which a request came.
    connections: u64,
    /// Requests, and how many there were of each.
    requests: BTreeMap<Request, u64>,
}

impl Seen {
    fn count(&self) -> u64 {
        self.requests.values().sum()
    }
}

/// A server that keeps what it was sent. `/redirect/N` leads to `/redirect/N-1`, and `/redirect/1` to `/`; `/missing` is a 404.
struct Listener {
    url: String,
    seen: Arc<Mutex<Seen>>,
}

impl Listener {
    fn start() -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let seen = Arc::<Mutex<Seen>>::default();
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&all);
                thread::spawn(move || serve(stream, &seen));
            }
        });
        Listener { url, seen }
    }

    /// What came while `run` was running.
    fn during(&self, run: impl FnOnce()) -> Seen {
        *self.seen.lock().unwrap() = Seen::default();
        run();
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// The answer to a path, without its end.
fn answer(path: &str) -> String {
    if let Some(left) = path.strip_prefix("/redirect/") {
        let left: u64 = left.parse().expect("a number");
        let to = match left {
            1 => "/".to_owned(),
            left => format!("/redirect/{}", left - 1),
        };
        return format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n");
    }
    let status = match path {
        "/missing" => "404 Not Found",
        _ => "200 OK",
    };
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n")
}

/// Answers the requests of a connection, and ends it where they ask for that.
fn serve(stream: TcpStream, seen: &Mutex<Seen>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    let mut is_first = true;
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let value = |name: &str| {
            let mut named = lines.iter().filter_map(|line| line.split_once(':'));
            let (_, value) = named.find(|(of, _)| of.eq_ignore_ascii_case(name))?;
            Some(value.trim())
        };
        let length = value("content-length").map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let said = value("connection").unwrap_or_default().to_ascii_lowercase();
        let ends = match lines[0].ends_with("HTTP/1.0") {
            true => said != "keep-alive",
            false => said == "close",
        };
        let path = lines[0].split(' ').nth(1)?.to_owned();
        let headers: Vec<&str> = lines[1..].iter().map(String::as_str).collect();
        let request = request(&lines[0], &headers, &text(&body));
        {
            let mut seen = seen.lock().unwrap();
            seen.connections += u64::from(is_first);
            *seen.requests.entry(request).or_default() += 1;
        }
        is_first = false;
        let end = if ends { "close" } else { "keep-alive" };
        let answer = format!("{}Connection: {end}\r\n\r\n", answer(&path));
        writer.write_all(answer.as_bytes()).ok()?;
        if ends {
            return None;
        }
    }
}

fn run(command: &mut Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.expect("it runs");
}

/// Runs `command`, a line of a shell, and its translation with `more` of ours; URLs begin with `URL` there, and `BODY` is a file.
fn compared(listener: &Listener, command: &str, more: &[&str]) -> (Seen, Seen) {
    let test = thread::current().name().unwrap_or("load-from").to_owned();
    let body = folder(&test).join("body");
    std::fs::write(&body, "BODY").expect("a file");
    let command = command
        .replace("URL", &listener.url)
        .replace("BODY", body.to_str().expect("a path"));
    let theirs = listener.during(|| run(Command::new("sh").args(["-c", &command])));
    let ours = [&["load", "--from", &command], more].concat();
    let ours = listener.during(|| run(Command::new(PRONY).args(ours)));
    (theirs, ours)
}

#[test]
fn the_requests_of_ab_are_those_of_its_translation() {
    if prony_testkit::need("ab").is_none() {
        return;
    }
    let listener = Listener::start();
    for command in [
        "ab -n 20 -c 4 URL/hello",
        "ab -k -n 20 URL/hello?a=b",
        "ab -n 2 -p BODY URL/",
        "ab -n 2 -p BODY -T application/json -m PATCH URL/",
        "ab -n 2 -u BODY URL/",
        "ab -n 2 -i URL/",
        "ab -k -n 2 -A user:password -C a=b -C c=d -H 'X-One: 1' -H 'X-One: 2' URL/",
        "ab -n 2 -A user -H 'User-Agent: me' -H 'Accept: text/html' -H 'Host: example.org' URL/",
        "ab -k -n 2 URL/redirect/2",
        "ab -k -n 4 URL/missing",
    ] {
        let (theirs, ours) = compared(&listener, command, &[]);
        assert!(theirs.count() > 0, "{command}");
        assert_eq!(theirs.requests, ours.requests, "{command}");
        assert_eq!(theirs.connections, ours.connections, "{command}");
    }
}

#[test]
fn the_requests_of_h2load_are_those_of_its_translation() {
    if prony_testkit::need("h2load").is_none() {
        return;
    }
    let listener = Listener::start();
    for command in [
        "h2load --h1 -n 21 -m 2 URL/hello",
        "h2load -p http/1.1 -n 3 -H 'X-One: 1' -H 'X-One: 2' -H 'User-Agent: me' URL/?a=b",
        "h2load --h1 -n 3 -d BODY URL/",
        "h2load --h1 -n 3 -d BODY -H 'Content-Type: text/plain' -H ':method: PUT' URL/",
        "h2load --h1 -n 4 URL/a URL/b",
        "h2load --h1 -n 2 URL/redirect/2",
        "h2load --h1 -n 4 URL/missing",
    ] {
        let (theirs, ours) = compared(&listener, command, &[]);
        assert!(theirs.count() > 0, "{command}");
        assert_eq!(theirs.requests, ours.requests, "{command}");
        assert_eq!(theirs.connections, ours.connections, "{command}");
    }
}

#[test]
fn the_requests_of_curl_are_those_of_its_translation() {
    if prony_testkit::need("curl").is_none() {
        return;
    }
    let listener = Listener::start();
    for command in [
        "curl URL/a?b=c",
        "curl -I URL/",
        "curl -H Accept: -H 'X-One: 1' -H 'X-One: 2' -A me -e URL/x -b a=b URL/",
        "curl -d a=b -u user:password URL/",
        "curl --json '{\"a\":1}' -X PUT URL/",
        "curl --data-raw @x -H 'Content-Type: text/plain' URL/",
        "curl -L URL/redirect/3",
    ] {
        // It is one request there, and the load of it here.
        let (theirs, ours) = compared(&listener, command, &["-n", "1"]);
        assert!(theirs.count() > 0, "{command}");
        assert_eq!(theirs.requests, ours.requests, "{command}");
    }
}

/// How many requests there are is for the machine to say, but not what they are.
#[test]
fn the_requests_of_wrk_are_those_of_its_translation() {
    if prony_testkit::need("wrk").is_none() {
        return;
    }
    let listener = Listener::start();
    let command = "wrk -t 2 -c 3 -d 1s -H 'X-One: 1' -H 'X-One: 2' -H 'Host: foo' URL/redirect/2";
    let (theirs, ours) = compared(&listener, command, &[]);
    let kinds = |seen: &Seen| -> Vec<Request> { seen.requests.keys().cloned().collect() };
    assert_eq!(kinds(&theirs), kinds(&ours));
    assert!(
        theirs.connections <= 2 && ours.connections <= 2,
        "{theirs:?}, {ours:?}"
    );
}

/// What hey 0.1.5, oha 1.16.0, vegeta 12.13.0, Fortio 1.75.3 and wrk2 44a94c1 sent at these commands, as a listener got it, whose port is written as 7700.
const SENT: &[(&str, &str)] = &[
    (
        "hey URL/hello",
        "GET /hello HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Type: text/html\nAccept-Encoding: gzip\n\n",
    ),
    (
        "hey -d x URL/x",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Length: 1\nContent-Type: text/html\nAccept-Encoding: gzip\n\nx",
    ),
    (
        "hey -m post -D BODY -T a/b URL/x",
        "POST /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Length: 4\nContent-Type: a/b\nAccept-Encoding: gzip\n\nBODY",
    ),
    (
        "hey -disable-compression -disable-keepalive URL/x",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Type: text/html\nConnection: close\n\n",
    ),
    (
        "hey -m HEAD URL/x",
        "HEAD /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Type: text/html\n\n",
    ),
    (
        "hey -h2 URL/x",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Type: text/html\nAccept-Encoding: gzip\n\n",
    ),
    (
        "hey -h2 SECURE/hello",
        ":authority: 127.0.0.1:7700\n:method: GET\n:path: /hello\n:scheme: https\ncontent-type: text/html\nuser-agent: hey/0.0.1\naccept-encoding: gzip\n\n",
    ),
    (
        "hey -A text/x -U me -H 'x-one: 1' -H 'X-One: 2' -host foo URL/x",
        "GET /x HTTP/1.1\nHost: foo\nUser-Agent: me hey/0.0.1\nAccept: text/x\nContent-Type: text/html\nX-One: 2\nAccept-Encoding: gzip\n\n",
    ),
    (
        "hey -H 'Range: bytes=0-1' URL/x",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: hey/0.0.1\nContent-Type: text/html\nRange: bytes=0-1\n\n",
    ),
    (
        "echo 'GET URL/hello' | vegeta attack -duration=200ms",
        "GET /hello HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: Go-http-client/1.1\nX-Vegeta-Seq: 0\nAccept-Encoding: gzip\n\n",
    ),
    (
        "echo 'GET URL/x' | vegeta attack -duration=1s -body=BODY -header 'X-One: 1' -header 'x-one: 2' -header 'User-Agent: me'",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: me\nContent-Length: 4\nX-One: 1\nX-Vegeta-Seq: 0\nx-one: 2\nAccept-Encoding: gzip\n\nBODY",
    ),
    (
        "echo 'POST URL/x' | vegeta attack -duration=1s -body=BODY -chunked -name foo",
        "POST /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: Go-http-client/1.1\nTransfer-Encoding: chunked\nX-Vegeta-Attack: foo\nX-Vegeta-Seq: 0\nAccept-Encoding: gzip\n\n4\nBODY\n0\n\n",
    ),
    (
        "echo 'HEAD URL/x' | vegeta attack -duration=1s -keepalive=false",
        "HEAD /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: Go-http-client/1.1\nX-Vegeta-Seq: 0\nConnection: close\n\n",
    ),
    (
        "echo 'GET SECURE/hello' | vegeta attack -insecure -duration=500ms -rate=200",
        ":authority: 127.0.0.1:7700\n:method: GET\n:path: /hello\n:scheme: https\nx-vegeta-seq: 0\naccept-encoding: gzip\nuser-agent: Go-http-client/2.0\n\n",
    ),
    (
        "echo 'GET URL/hello' | vegeta attack -h2c -duration=500ms",
        ":authority: 127.0.0.1:7700\n:method: GET\n:path: /hello\n:scheme: http\nx-vegeta-seq: 0\naccept-encoding: gzip\nuser-agent: Go-http-client/2.0\n\n",
    ),
    (
        "oha -d x URL/x",
        "GET /x HTTP/1.1\naccept: */*\naccept-encoding: gzip, compress, deflate, br\nuser-agent: oha/1.16.0\nhost: 127.0.0.1:7700\ncontent-length: 1\n\nx",
    ),
    (
        "oha -D BODY -T a/b -m PUT URL/x",
        "PUT /x HTTP/1.1\naccept: */*\naccept-encoding: gzip, compress, deflate, br\nuser-agent: oha/1.16.0\ncontent-type: a/b\nhost: 127.0.0.1:7700\ncontent-length: 4\n\nBODY",
    ),
    (
        "oha -A text/x -H 'x-one: 1' -H 'X-One: 2' -a u:pw --host foo URL/x",
        "GET /x HTTP/1.1\naccept: text/x\naccept-encoding: gzip, compress, deflate, br\nuser-agent: oha/1.16.0\nhost: foo\nauthorization: Basic dTpwdw==\nx-one: 2\n\n",
    ),
    (
        "oha --disable-compression --disable-keepalive URL/x",
        "GET /x HTTP/1.1\naccept: */*\nuser-agent: oha/1.16.0\nconnection: close\nhost: 127.0.0.1:7700\n\n",
    ),
    (
        "oha -p 4 -H 'User-Agent: me' URL/x",
        "GET /x HTTP/1.1\naccept: */*\naccept-encoding: gzip, compress, deflate, br\nuser-agent: me\nhost: 127.0.0.1:7700\n\n",
    ),
    (
        "oha --http-version 1.0 URL/x",
        "GET /x HTTP/1.0\naccept: */*\naccept-encoding: gzip, compress, deflate, br\nuser-agent: oha/1.16.0\nhost: 127.0.0.1:7700\n\n",
    ),
    (
        "oha --http2 -p 4 URL/hello",
        ":method: GET\n:scheme: http\n:authority: 127.0.0.1:7700\n:path: /hello\naccept: */*\naccept-encoding: gzip, compress, deflate, br\nuser-agent: oha/1.16.0\n\n",
    ),
    (
        "fortio load URL/hello",
        "GET /hello HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: fortio.org/fortio-1.75.3\n\n",
    ),
    (
        "fortio load -payload x -H 'x-one: 1' -H 'X-One: 2' -H 'User-Agent: me' -H 'Host: foo' URL/x",
        "POST /x HTTP/1.1\nHost: foo\nContent-Length: 1\nContent-Type: application/octet-stream\nUser-Agent: me\nX-One: 1\nX-One: 2\n\nx",
    ),
    (
        "fortio load -payload-file BODY -H 'Content-Type: a/b' -user u:pw URL/x",
        "POST /x HTTP/1.1\nHost: 127.0.0.1:7700\nAuthorization: Basic dTpwdw==\nContent-Length: 4\nContent-Type: a/b\nUser-Agent: fortio.org/fortio-1.75.3\n\nBODY",
    ),
    (
        "fortio load -content-type a/b URL/x",
        "POST /x HTTP/1.1\nHost: 127.0.0.1:7700\nContent-Length: 0\nContent-Type: a/b\nUser-Agent: fortio.org/fortio-1.75.3\n\n",
    ),
    (
        "fortio load -content-type a/b -X PUT -H 'content-type: c/d' URL/x",
        "PUT /x HTTP/1.1\nHost: 127.0.0.1:7700\nContent-Length: 0\nContent-Type: a/b\nUser-Agent: fortio.org/fortio-1.75.3\n\n",
    ),
    (
        "fortio load -X DELETE -compression URL/x",
        "DELETE /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: fortio.org/fortio-1.75.3\n\n",
    ),
    (
        "fortio load -stdclient -keepalive=false -compression URL/x",
        "GET /x HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: fortio.org/fortio-1.75.3\nAccept-Encoding: gzip\nConnection: close\n\n",
    ),
    (
        "fortio load -L -compression -H 'Range: bytes=0-1' URL/",
        "GET / HTTP/1.1\nHost: 127.0.0.1:7700\nUser-Agent: fortio.org/fortio-1.75.3\nRange: bytes=0-1\n\n",
    ),
    (
        "fortio load -X HEAD -compression -stdclient -H User-Agent: URL/",
        "HEAD / HTTP/1.1\nHost: 127.0.0.1:7700\n\n",
    ),
    (
        "wrk2 -R 100 -H 'X-One: 1' -H 'X-One: 2' -H 'Host: foo' URL/r/2",
        "GET /r/2 HTTP/1.1\nX-One: 2\nHost: foo\n\n",
    ),
];

#[test]
fn what_other_tools_sent_is_sent() {
    let body = folder("load-from-sent").join("body");
    std::fs::write(&body, "BODY").expect("a file");
    for (command, sent) in SENT {
        let command = command
            .replace("URL", "http://127.0.0.1:7700")
            .replace("SECURE", "https://127.0.0.1:7700")
            .replace("BODY", body.to_str().expect("a path"));
        let output = Command::new(PRONY)
            .args(["load", "--from", &command, "--print-request"])
            .output()
            .expect("prony runs");
        assert!(
            output.status.success(),
            "{command}: {}",
            text(&output.stderr)
        );
        assert_eq!(read(&text(&output.stdout)), read(sent), "{command}");
    }
}
