//! What goes wrong with a host of applications, each on the real `prony host`: in what
//! clients send, in what applications do, and in how it is started.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Output;
use std::time::{Duration, Instant};

use prony_testkit::{ask, read_answer, read_head, rest, try_ask};

use crate::common::{PATIENCE, systems};
use crate::host::{Folder, Host};

/// What the tests ask.
const APP: &str = r#"local ffi = require("ffi")
ffi.cdef("int getpid(void);")

local pages = {}

pages["/"] = function() return { "hello" } end
pages["/pid"] = function() return { tostring(ffi.C.getpid()) } end
pages["/error"] = function() error("the page broke") end
pages["/loop"] = function()
    io.stderr:write("looping\n")
    while true do end
end
pages["/late"] = function()
    local left = 3
    return function()
        left = left - 1
        if left == 0 then error("the body broke") end
        return "piece"
    end
end
pages["/endless"] = function()
    local piece = string.rep("x", 65536)
    return function() return piece end
end
pages["/memory"] = function()
    local kept = {}
    while true do kept[#kept + 1] = string.rep(tostring(#kept), 10000) end
end
pages["/echo"] = function(environ) return { environ["wsgi.input"]:read("*a") } end

local function app(environ, start_response)
    local page = pages[environ.PATH_INFO]
    if not page then
        start_response("404 Not Found", { { "Content-Type", "text/plain" } })
        return { "no such page" }
    end
    local body = page(environ)
    start_response("200 OK", { { "Content-Type", "text/plain" } })
    return body
end

return { app = app, number = 7 }
"#;
/// Ordinary options: one worker, which nothing replaces.
const ONE: [&str; 2] = ["--workers", "1"];
const LARGE_BYTES: u64 = 100_000_000;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("app.lua", APP);
    folder
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// The one worker has handled all that was sent to it before.
fn let_it_see(stream: &mut TcpStream) {
    let answer = ask(stream, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
    assert_eq!(answer.text(), "hello");
}

#[test]
fn a_request_is_the_same_split_at_every_byte() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut other = host.connect();
    let chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nsplit\r\n3;x=y\r\n it\r\n0\r\nTrailer: t\r\n\r\n";
    for request in [post("/echo", "split it"), chunked.to_owned()] {
        let mut stream = host.connect();
        for split in 1..request.len() {
            let (first, second) = request.split_at(split);
            stream.write_all(first.as_bytes()).expect("sent");
            let_it_see(&mut other);
            let answer = ask(&mut stream, second, false);
            assert_eq!(
                (answer.status, &*answer.text()),
                (200, "split it"),
                "{split}"
            );
        }
    }
    // Each byte by itself.
    let mut stream = host.connect();
    for byte in chunked.bytes() {
        stream.write_all(&[byte]).expect("sent");
        let_it_see(&mut other);
    }
    assert_eq!(read_answer(&mut stream, false).text(), "split it");
}

#[test]
fn requests_in_a_row_are_answered_in_their_order() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut stream = host.connect();
    let requests: String = (0..500)
        .map(|number| match number % 5 {
            0 => "GET /error HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            _ => post("/echo", &number.to_string()),
        })
        .collect();
    stream.write_all(requests.as_bytes()).expect("sent");
    for number in 0..500 {
        let answer = read_answer(&mut stream, false);
        match number % 5 {
            0 => assert_eq!(answer.status, 500),
            _ => assert_eq!(answer.text(), number.to_string()),
        }
    }
}

#[test]
fn a_request_line_of_64_kilobytes_is_refused_and_the_worker_lives() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let worker = host.get("/pid").text();
    let long = "x".repeat(64 << 10);
    for request in [
        format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET /?{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("{long} / HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{long}: a\r\n\r\n"),
    ] {
        let mut stream = host.connect();
        let answer = ask(&mut stream, &request, false);
        let start = &request[..30];
        assert!([414, 431].contains(&answer.status), "{start}: {answer:?}");
        assert_eq!(rest(&mut stream), "", "the connection is closed");
    }
    assert_eq!(host.get("/pid").text(), worker);
}

#[test]
fn slow_heads_and_bodies_are_served_and_hold_up_nobody() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut other = host.connect();
    let requests = [
        post("/echo", &"b".repeat(300)),
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()
            + &"1\r\nb\r\n".repeat(300)
            + "0\r\n\r\n",
    ];
    let mut slow: Vec<_> = (0..50).map(|_| host.connect()).collect();
    for request in &requests {
        for piece in request.as_bytes().chunks(request.len() / 20 + 1) {
            for stream in &mut slow {
                stream.write_all(piece).expect("sent");
            }
            let_it_see(&mut other);
        }
        for stream in &mut slow {
            assert_eq!(read_answer(stream, false).text(), "b".repeat(300));
        }
    }
    // Half a request, and never the rest.
    for stream in &mut slow {
        stream
            .write_all(&requests[0].as_bytes()[..40])
            .expect("sent");
    }
    let_it_see(&mut other);
    drop(slow);
    let_it_see(&mut other);
}

#[test]
fn a_body_over_the_limit_is_refused() {
    let folder = folder();
    let host = Host::start(&folder.0, &["--workers", "1", "--body-max", "1KiB"]);
    let whole = "b".repeat(1024);
    let answer = ask(&mut host.connect(), &post("/echo", &whole), false);
    assert_eq!((answer.status, answer.text()), (200, whole));
    let more = post("/echo", &"b".repeat(1025));
    let (first, second) = ("b".repeat(128), "b".repeat(1024));
    let chunked = format!(
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         80\r\n{first}\r\n400\r\n{second}\r\n0\r\n\r\n"
    );
    for request in [more, chunked] {
        let mut stream = host.connect();
        assert_eq!(ask(&mut stream, &request, false).status, 413);
        assert_eq!(rest(&mut stream), "");
    }
    assert_eq!(host.get("/").text(), "hello");
}

#[test]
fn no_way_leads_out_of_the_static_directory() {
    let folder = folder();
    folder.write("static/css/main.css", "INSIDE");
    folder.write("static/.env", "HIDDEN");
    symlink("/etc", folder.0.join("static/etc")).expect("linked");
    symlink("../app.lua", folder.0.join("static/app.lua")).expect("linked");
    let files = folder.0.join("static");
    let files = files.to_str().expect("text");
    let host = Host::start(&folder.0, &["--workers", "1", "--static", files]);
    let inside = host.get("/static/css/main.css");
    assert_eq!((inside.status, &*inside.text()), (200, "INSIDE"));
    for path in [
        "/static/../app.lua",
        "/static/css/../../app.lua",
        "/static/%2e%2e/app.lua",
        "/static/..%2fapp.lua",
        "/static/%252e%252e/app.lua",
        "/static/%2e%2e%2fapp.lua%00.css",
        "/static/css/main.css%00",
        "/static//etc/passwd",
        "/static/etc/passwd",
        "/static/app.lua",
        "/static/.env",
        "/static/%2eenv",
        "/static/..\\app.lua",
        "/%73tatic/../app.lua",
        "/../app.lua",
    ] {
        let answer = host.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    assert_eq!(host.get("/static/css/main.css%").status, 400);
    let head = "HEAD /static/css/main.css HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut stream = host.connect();
    let answer = ask(&mut stream, head, true);
    assert_eq!(
        (answer.status, answer.header("content-length")),
        (200, Some("6"))
    );
    let_it_see(&mut stream);
}

#[test]
fn head_has_no_body() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut stream = host.connect();
    for (path, status) in [("/", 200), ("/pid", 200), ("/late", 200), ("/none", 404)] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = ask(&mut stream, &request, true);
        assert_eq!(answer.status, status, "{path}");
        let_it_see(&mut stream);
    }
}

#[test]
fn ten_thousand_idle_connections_hold_up_nobody() {
    const IDLE: usize = 10_000;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < IDLE as u64 + 200) {
        return prony_testkit::skip("10,000 descriptors are not allowed");
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to the maximum");
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut idle: Vec<_> = (0..IDLE).map(|_| host.connect()).collect();
    // Some have said something, some not.
    for stream in idle.iter_mut().step_by(10) {
        stream.write_all(b"GET / HT").expect("sent");
    }
    let mut other = host.connect();
    for _ in 0..100 {
        let_it_see(&mut other);
    }
    for stream in idle.iter_mut().step_by(10) {
        let answer = ask(stream, "TP/1.1\r\nHost: a\r\n\r\n", false);
        assert_eq!(answer.text(), "hello");
    }
}

#[test]
fn an_error_in_lua_is_a_500_and_told_to_clients_in_development_only() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    let mut stream = host.connect();
    let answer = ask(&mut stream, "GET /error HTTP/1.1\r\nHost: a\r\n\r\n", false);
    assert_eq!(answer.status, 500);
    assert!(
        !answer.text().contains("the page broke"),
        "{}",
        answer.text()
    );
    assert!(!answer.text().contains("app.lua"), "{}", answer.text());
    let said = host.says("the page broke");
    assert!(said.contains("app.lua:8:"), "{said}");
    let_it_see(&mut stream);

    // After the head there is only one way to say so.
    stream
        .write_all(b"GET /late HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let mut body = Vec::new();
    let ended = stream.read_to_end(&mut body);
    let body = String::from_utf8_lossy(&body);
    let is_whole = body.ends_with("\r\n0\r\n\r\n") || body.contains("content-length");
    assert!(!is_whole, "{ended:?} {body}");
    host.says("the body broke");
    assert_eq!(host.get("/").text(), "hello");

    let host = Host::start(&folder.0, &["--workers", "1", "--development"]);
    let answer = host.get("/error");
    assert_eq!(answer.status, 500);
    let text = answer.text();
    assert!(
        text.contains("the page broke") && text.contains("app.lua:8"),
        "{text}"
    );
}

#[test]
fn an_endless_loop_is_ended_and_others_go_on() {
    let folder = folder();
    // Not `reuseport`, where the kernel gives connections to a worker that is stuck, too.
    for way in ["shared", "least"] {
        let options = ["--workers", "2", "--timeout", "1s", "--distribution", way];
        let host = Host::start(&folder.0, &options);
        let mut workers = BTreeSet::new();
        // More often than there are workers: they are replaced.
        for _ in 0..3 {
            let mut stuck = host.connect();
            stuck
                .write_all(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
                .expect("sent");
            host.says("looping");
            let mut answered = 0;
            for _ in 0..20 {
                let request = "GET /pid HTTP/1.1\r\nHost: a\r\n\r\n";
                if let Some(answer) = try_ask(&mut host.connect(), request) {
                    answered += 1;
                    workers.insert(answer.text());
                }
            }
            // At first nobody can know that it is stuck. One may be given to it, or, of a
            // shared socket, the kernel may tell it of one; that one ends with it.
            assert!(answered >= 19, "{way}: {answered}");
            let mut answer = Vec::new();
            let ended = stuck.read_to_end(&mut answer);
            assert!(answer.is_empty(), "{ended:?}: {answer:?}");
        }
        assert!(workers.len() >= 2, "{way}: {workers:?}");
    }
}

#[test]
fn a_worker_known_to_be_stuck_was_given_connections_all_the_same() {
    let folder = folder();
    let options = ["--workers", "2", "--timeout", "1s"];
    let host = Host::start(
        &folder.0,
        &[&options[..], &["--distribution", "least"]].concat(),
    );
    let pid = |stream: &mut TcpStream| {
        let answer = ask(stream, "GET /pid HTTP/1.1\r\nHost: a\r\n\r\n", false);
        answer.text()
    };
    let mut stuck = host.connect();
    let will_be_stuck = pid(&mut stuck);
    let mut others = vec![host.connect()];
    while pid(others.last_mut().expect("one")) == will_be_stuck {
        others.push(host.connect());
    }
    stuck
        .write_all(b"GET /loop HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    host.says("looping");
    // Two beats are missed, and then it is known; that it is killed comes two beats later.
    let mut streams = VecDeque::new();
    while !host.has_said().contains("was stuck") {
        let mut stream = host.connect();
        stream
            .write_all(b"GET /pid HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("sent");
        // Those before it was known may be many more than files can be open.
        streams.push_back(stream);
        if streams.len() > 200 {
            streams.pop_front();
        }
        for _ in 0..10 {
            pid(others.last_mut().expect("one"));
        }
    }
    // What it was given ends with it, unanswered.
    let is_lost = |stream: &mut TcpStream| {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).is_err() || answer.is_empty()
    };
    let lost: Vec<bool> = streams.iter_mut().map(is_lost).collect();
    let after_it_was_known = lost.iter().rev().take_while(|&&lost| !lost).count();
    assert!(after_it_was_known >= 10, "{lost:?}");
}

#[test]
fn memory_exhausted_in_lua_is_told_and_others_go_on() {
    let folder = folder();
    let host = Host::start(&folder.0, &["--workers", "2", "--memory-max", "16MiB"]);
    for _ in 0..3 {
        let mut stream = host.connect();
        stream
            .write_all(b"GET /memory HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut answer = Vec::new();
        // A 500, or the end of the worker.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let is_told = answer.is_empty() || answer.starts_with("HTTP/1.1 500");
        assert!(is_told, "{answer}");
        host.says("memory");
        for _ in 0..20 {
            assert_eq!(host.get("/").text(), "hello");
        }
    }
}

/// Runs it to its end.
fn fails(folder: &Folder, application: &str, port: &str) -> Output {
    let mut command = systems(&["host", "--workers", "2", "--path"]);
    command.arg(&folder.0).args([application, port]);
    let output = command.output().expect("it runs");
    assert!(output.stdout.is_empty(), "it does not say that it listens");
    output
}

#[test]
fn an_application_that_cannot_be_loaded_is_named_with_file_and_line() {
    let folder = folder();
    folder.write("typo.lua", "local x = 1\n\nlocal function = 2\n");
    folder.write("broken.lua", "local x = nil\nreturn { app = x.y }\n");
    for (application, texts) in [
        ("absent:app", &["absent", "absent.lua"][..]),
        ("app:nothing", &["app.lua:", "nothing"]),
        ("app:number", &["app.lua:", "number"]),
        ("typo:app", &["typo.lua:3:"]),
        ("broken:app", &["broken.lua:2:"]),
        ("app", &["module"]),
    ] {
        let output = fails(&folder, application, "0");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code().is_some_and(|code| code != 0),
            "{application}: {:?}",
            output.status
        );
        for text in texts {
            assert!(
                said.contains(text),
                "{application} does not say {text}: {said}"
            );
        }
        assert!(said.lines().count() < 30, "{said}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let folder = folder();
    let host = Host::start(&folder.0, &ONE);
    for way in ["shared", "reuseport", "least"] {
        let mut command = systems(&["host", "--distribution", way, "--path"]);
        let port = host.port.to_string();
        command.arg(&folder.0).args(["app:app", &port]);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code != 0), "{way}");
        assert!(
            said.contains(&port) && said.contains("in use"),
            "{way}: {said}"
        );
    }
    assert_eq!(host.get("/").text(), "hello");
}

#[test]
fn a_large_file_for_a_slow_client_holds_up_nobody() {
    let folder = folder();
    let large = File::create(folder.write("static/large", "")).expect("made");
    large.set_len(LARGE_BYTES).expect("room");
    let files = folder.0.join("static");
    let files = files.to_str().expect("text");
    let host = Host::start(&folder.0, &["--workers", "1", "--static", files]);
    let mut slow = host.connect();
    slow.write_all(b"GET /static/large HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("sent");
    let head = read_head(&mut slow);
    assert_eq!(head.header("content-length"), Some("100000000"));
    let mut other = host.connect();
    let mut left = LARGE_BYTES as usize;
    let mut buffer = vec![0; 500_000];
    while left > 0 {
        let part = left.min(buffer.len());
        slow.read_exact(&mut buffer[..part]).expect("more of it");
        assert!(buffer.iter().all(|&byte| byte == 0));
        left -= part;
        let_it_see(&mut other);
    }
    let_it_see(&mut slow);
}

#[test]
fn clients_that_reset_amid_answers_leave_the_worker_as_it_was() {
    let folder = folder();
    let large = File::create(folder.write("static/large", "")).expect("made");
    large.set_len(LARGE_BYTES).expect("room");
    let files = folder.0.join("static");
    let files = files.to_str().expect("text");
    let host = Host::start(&folder.0, &["--workers", "1", "--static", files]);
    let worker = host.get("/pid").text();
    for round in 0..50 {
        let path = ["/static/large", "/endless"][round % 2];
        let mut stream = host.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let _ = read_head(&mut stream);
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).expect("set");
        drop(stream);
        assert_eq!(host.get("/").text(), "hello");
    }
    assert_eq!(host.get("/pid").text(), worker);
    let open = || {
        let descriptors = std::fs::read_dir(format!("/proc/{worker}/fd"));
        descriptors.expect("it lives").count()
    };
    let due = Instant::now() + PATIENCE;
    while open() > 40 {
        assert!(Instant::now() < due, "{} descriptors stay open", open());
        assert_eq!(host.get("/").text(), "hello");
    }
}
