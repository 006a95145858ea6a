//! What the rules of HTTP ask of a host, and what its options do, each on the real `prony
//! host`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use prony_testkit::{RawAnswer, ask, read_answer, read_head, rest};
use rustix::process::Signal;

use crate::common::systems;
use crate::host::{Folder, Host};

const APP: &str = r#"local pages = {}
pages["/host"] = function(environ) return { tostring(environ.HTTP_HOST) } end
pages["/echo"] = function(environ) return { environ["wsgi.input"]:read("*a") } end
pages["/endless"] = function()
    local piece = string.rep("x", 65536)
    return function() return piece end
end

local function app(environ, start_response)
    local status = environ.PATH_INFO:match("^/status/(%d+)$")
    if status then
        start_response(tonumber(status), { { "Content-Length", "7" } })
        return { "content" }
    end
    local page = pages[environ.PATH_INFO]
    start_response("200 OK", { { "Content-Type", "text/plain" } })
    return page and page(environ) or { "app " .. environ.PATH_INFO }
end

return { app = app }
"#;
const ONE: [&str; 2] = ["--workers", "1"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("app.lua", APP);
    folder
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// Sends a request over a connection of its own.
fn once(host: &Host, request: &str) -> RawAnswer {
    ask(&mut host.connect(), request, request.starts_with("HEAD "))
}

/// Whether the connection is answered, or is closed before.
fn is_answered(stream: &mut TcpStream) -> bool {
    stream.peek(&mut [0]).is_ok_and(|count| count > 0)
}

#[test]
fn host_was_taken_from_the_header_though_the_target_names_another() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    for (request, name) in [
        ("GET http://b:81/host HTTP/1.1\r\nHost: a\r\n\r\n", "b:81"),
        (
            "GET http://[::1]/host?q HTTP/1.1\r\nHost: a\r\n\r\n",
            "[::1]",
        ),
        ("GET http://b/host HTTP/1.0\r\n\r\n", "b"),
        ("GET /host HTTP/1.1\r\nHost: a\r\n\r\n", "a"),
    ] {
        assert_eq!(once(&host, request).text(), name, "{request}");
        // Not in one piece.
        let mut stream = host.connect();
        let (first, second) = request.split_at(request.len() - 3);
        stream.write_all(first.as_bytes()).expect("sent");
        assert_eq!(once(&host, &get("/")).status, 200);
        assert_eq!(ask(&mut stream, second, false).text(), name, "{request}");
    }
}

#[test]
fn hosts_and_targets_that_name_no_server_were_accepted() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    for name in [
        "[::1", "a:b", "a:80:80", "%zz", "[]", "a b", ":80", "a:65536",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
        assert_eq!(once(&host, &request).status, 400, "{name}");
    }
    for target in ["http:///x", "http://", "http://a:b/", "http://u:p@a/", "//"] {
        let expected = if target == "//" { 200 } else { 400 };
        assert_eq!(once(&host, &get(target)).status, expected, "{target}");
    }
    for name in [
        "",
        "a",
        "a:80",
        "a:",
        "[::1]:80",
        "127.0.0.1",
        "xn--a_b~%41",
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
        assert_eq!(once(&host, &request).status, 200, "{name}");
    }
}

#[test]
fn http_1_2_and_white_space_before_a_chunks_extension_were_refused() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut stream = host.connect();
    let newer = get("/host").replace("HTTP/1.1", "HTTP/1.2");
    assert_eq!(ask(&mut stream, &newer, false).text(), "a");
    let chunked = |sizes: [&str; 2]| {
        let [first, last] = sizes;
        format!(
            "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             {first}\r\nhello\r\n{last}\r\n\r\n"
        )
    };
    let spaced = chunked(["5 \t; a = \"b\"", "0 ;c"]);
    // The connection is in step after both.
    for _ in 0..2 {
        assert_eq!(ask(&mut stream, &spaced, false).text(), "hello");
    }
    for sizes in [
        ["5 ", "0"],
        ["5", "0 "],
        [" 5", "0"],
        ["5 5", "0"],
        ["5 ;\n", "0"],
    ] {
        let mut stream = host.connect();
        let smuggled = chunked(sizes) + &get("/smuggled");
        assert_eq!(ask(&mut stream, &smuggled, false).status, 400, "{sizes:?}");
        assert_eq!(rest(&mut stream), "", "the connection is closed");
    }
}

#[test]
fn a_205_was_sent_with_a_body_and_a_connect_was_answered_with_a_length() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut stream = host.connect();
    let answer = ask(&mut stream, &get("/status/205"), false);
    assert_eq!(answer.status, 205);
    assert_eq!(answer.header("content-length"), Some("0"));
    for status in ["204", "304"] {
        let answer = ask(&mut stream, &get(&format!("/status/{status}")), true);
        assert_eq!(answer.header("content-length"), None, "{status}");
    }
    assert_eq!(ask(&mut stream, &get("/host"), false).text(), "a");
    stream
        .write_all(b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n")
        .expect("sent");
    let answer = read_head(&mut stream);
    assert_eq!(answer.status, 200);
    for name in ["content-length", "transfer-encoding"] {
        assert_eq!(answer.header(name), None);
    }
    assert_eq!(rest(&mut stream), "", "there is no tunnel");
}

#[test]
fn an_encoded_path_went_round_static_files() {
    let folder = folder();
    folder.write("files/a.txt", "the file");
    let files = folder.0.join("files");
    let files = files.to_str().expect("text");
    let host = Host::start(&folder.0, &["--workers", "1", "--static", files]);
    for path in [
        "/static/a.txt",
        "/%73tatic/a.txt",
        "/static/%61.txt",
        "/%2fstatic/a.txt",
    ] {
        let expected = match path {
            "/%2fstatic/a.txt" => "app //static/a.txt",
            _ => "the file",
        };
        assert_eq!(once(&host, &get(path)).text(), expected, "{path}");
    }
    for path in ["/%73tatic/none", "/static%2fa.txt", "/%73tatic%2Fa.txt"] {
        let answer = once(&host, &get(path));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(
        once(&host, &get("/statics/a.txt")).text(),
        "app /statics/a.txt"
    );
}

#[test]
fn static_files_are_where_static_url_says() {
    let folder = folder();
    folder.write("files/a.txt", "the file");
    let files = folder.0.join("files");
    let files = files.to_str().expect("text");
    let options = [
        "--workers",
        "1",
        "--static",
        files,
        "--static-url",
        "/my files/",
    ];
    let host = Host::start(&folder.0, &options);
    assert_eq!(once(&host, &get("/my%20files/a.txt")).text(), "the file");
    assert_eq!(
        once(&host, &get("/static/a.txt")).text(),
        "app /static/a.txt"
    );
    let refused = systems(&[
        "host",
        "--static",
        files,
        "--static-url",
        "files",
        "app:app",
        "0",
    ])
    .output()
    .expect("it ends");
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        said.contains("`files` does not start with a slash"),
        "{said}"
    );
}

/// The length of the kernel's queue of a listening socket.
fn backlog_of(port: u16) -> u32 {
    let shown = Command::new("ss")
        .args(["-Hltn", &format!("sport = :{port}")])
        .output();
    let shown = shown.expect("ss").stdout;
    let shown = String::from_utf8_lossy(&shown).into_owned();
    let length = shown.split_whitespace().nth(2).map(str::parse);
    length
        .unwrap_or_else(|| panic!("{shown:?}"))
        .expect("a number")
}

#[test]
fn backlog_is_the_length_of_the_kernels_queue() {
    if Command::new("ss").arg("-V").output().is_err() {
        prony_testkit::skip("there is no `ss`");
        return;
    }
    let folder = folder();
    for workers in ["0", "1", "2"] {
        for backlog in [3, 77] {
            let text = backlog.to_string();
            let host = Host::start(&folder.0, &["--workers", workers, "--backlog", &text]);
            assert_eq!(backlog_of(host.port), backlog, "{workers} workers");
        }
    }
}

#[test]
fn graceful_timeout_is_how_long_an_end_may_take() {
    let folder = folder();
    let start = |timeout| {
        let options = ["--workers", "1", "--graceful-timeout", timeout];
        let host = Host::start(&folder.0, &options);
        let mut endless = host.connect();
        endless.write_all(get("/endless").as_bytes()).expect("sent");
        assert_eq!(read_head(&mut endless).status, 200);
        (host, endless)
    };
    let (mut patient, _endless) = start("1h");
    let mut posted = patient.connect();
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n";
    posted.write_all(head.as_bytes()).expect("sent");
    let mut resting = patient.connect();
    assert_eq!(ask(&mut resting, &get("/host"), false).status, 200);
    let (mut hasty, mut cut_off) = start("100ms");
    patient.signal(Signal::TERM);
    // A connection at rest is closed once the end has begun.
    assert_eq!(rest(&mut resting), "");
    hasty.signal(Signal::TERM);
    assert!(hasty.ends().success());
    let ended = cut_off.read_to_end(&mut Vec::new());
    assert!(ended.is_err(), "what did not come to its end was reset");
    assert!(!patient.has_ended(), "it has an hour");
    let answer = ask(&mut posted, "hi", false);
    assert_eq!((answer.status, &*answer.text()), (200, "hi"));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[test]
fn connections_over_the_limit_wait_until_one_ends() {
    let folder = folder();
    for options in [
        &["--workers", "0", "--connections-max", "2"][..],
        &["--workers", "1", "--connections-max", "2"],
        &[
            "--workers",
            "2",
            "--connections-max",
            "1",
            "--distribution",
            "least",
        ],
    ] {
        let host = Host::start(&folder.0, options);
        let mut open = [host.connect(), host.connect()];
        for stream in &mut open {
            assert_eq!(ask(stream, &get("/host"), false).text(), "a");
        }
        let mut waiting = host.connect();
        waiting.write_all(get("/host").as_bytes()).expect("sent");
        for stream in &mut open {
            assert_eq!(ask(stream, &get("/host"), false).text(), "a");
        }
        waiting.set_nonblocking(true).expect("set");
        assert!(!is_answered(&mut waiting), "{options:?}");
        waiting.set_nonblocking(false).expect("set");
        drop(open);
        assert_eq!(read_answer(&mut waiting, false).text(), "a");
    }
}

#[test]
fn bodies_take_no_more_memory_than_they_may() {
    let folder = folder();
    let options = [
        "--workers",
        "1",
        "--body-max",
        "64KiB",
        "--body-memory",
        "100KiB",
    ];
    let host = Host::start(&folder.0, &options);
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n";
    let most = "b".repeat(65535);
    let mut streams = [host.connect(), host.connect()];
    for stream in &mut streams {
        stream
            .write_all((head.to_owned() + &most).as_bytes())
            .expect("sent");
        stream.set_nonblocking(true).expect("set");
    }
    let mut other = host.connect();
    let refused = loop {
        assert_eq!(ask(&mut other, &get("/host"), false).text(), "a");
        if let Some(refused) = streams.iter_mut().position(is_answered) {
            break refused;
        }
    };
    for stream in &streams {
        stream.set_nonblocking(false).expect("set");
    }
    assert_eq!(read_answer(&mut streams[refused], false).status, 503);
    let answer = ask(&mut streams[1 - refused], "b", false);
    assert_eq!(answer.text(), most + "b");
    let refused = systems(&["host", "--body-memory", "1MiB", "app:app", "0"]).output();
    let refused = refused.expect("it ends");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--body-memory"), "{said}");
}

#[test]
fn workers_out_of_descriptors_closed_connections_unanswered() {
    let folder = folder();
    for way in ["least", "shared"] {
        let options = ["--workers", "2", "--distribution", way];
        let host = Host::start_with_descriptors(&folder.0, &options, 64);
        let mut streams: Vec<_> = (0..150).map(|_| host.connect()).collect();
        for stream in &mut streams {
            stream.write_all(get("/host").as_bytes()).expect("sent");
        }
        // Each is answered, once those before it have made room.
        for mut stream in streams {
            assert_eq!(read_answer(&mut stream, false).text(), "a", "{way}");
        }
        assert_eq!(host.has_said(), "", "{way}");
    }
}
