//! The service as its clients see it: the real program, over real sockets.

mod service;

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use prony_testkit::{Refusal, in_container};
use rustix::process::Signal;
use service::{Client, Service, command, get, post, start, until};

#[test]
fn clicks_are_added_and_told() {
    let service = start(&[]);
    let mut client = service.connect();
    for (request, status, body) in [
        (get("/"), 200, "0"),
        (post("/", "500"), 200, "500"),
        (post("/", "0"), 200, "500"),
        (post("/", "7"), 200, "507"),
        (get("/"), 200, "507"),
        (post("/c/tea", "1"), 200, "1"),
        (get("/c/tea"), 200, "1"),
        (get("/c/coffee"), 200, "0"),
    ] {
        client.send(request.as_bytes());
        let answer = client.answer();
        assert_eq!((answer.status, answer.body.as_str()), (status, body));
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("text/plain; charset=utf-8"));
    }
    client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = client.head();
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("3"))
    );
    client.send(get("/").as_bytes());
    assert_eq!(client.answer().body, "507", "nothing followed the head");
}

#[test]
fn what_is_no_number_of_clicks_is_400_and_counts_nothing() {
    let service = start(&[]);
    let mut client = service.connect();
    for body in [
        "", "-1", "+1", "501", "1e2", " 5", "5 ", "5\n", "five", "0x5", "1.0", "0500", "9999",
        "\u{665}",
    ] {
        client.send(post("/", body).as_bytes());
        assert_eq!(client.answer().status, 400, "{body:?}");
    }
    client.send(get("/").as_bytes());
    assert_eq!(client.answer().body, "0");
}

#[test]
fn other_paths_and_methods_are_refused_by_name() {
    let service = start(&[]);
    let request = |method: &str, path: &str| {
        service.ask(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"))
    };
    for path in [
        "/x",
        "/c",
        "/c/",
        "/c/a/b",
        "/c/%41",
        "/c/a%2fb",
        "/c/.",
        "/c/..",
        "/index.html",
    ] {
        assert_eq!(request("GET", path).status, 404, "{path}");
    }
    let long = format!("/c/{}", "x".repeat(65));
    assert!(request("GET", &long).body.contains("at most 64"));
    for (method, path, allow) in [
        ("PUT", "/", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/c/a", "GET, HEAD, POST, OPTIONS"),
        ("POST", "/metrics", "GET, HEAD, OPTIONS"),
        ("POST", "/events", "GET, HEAD, OPTIONS"),
    ] {
        let answer = request(method, path);
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)));
    }
}

#[test]
fn a_page_of_another_origin_may_click() {
    let service = start(&[]);
    let answer = service.ask(
        "OPTIONS / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\
         Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-a\r\n\r\n",
    );
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    for (name, value) in [
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET, POST"),
        ("access-control-allow-headers", "*"),
        ("access-control-max-age", "3600"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    for refused in [
        "GET /x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
    ] {
        let answer = service.ask(refused);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, Some("*"), "{answer:?}");
    }
}

#[test]
fn a_browser_gets_the_page_and_others_the_number() {
    let service = start(&[]);
    let accepting = |accept: &str| {
        service.ask(&format!(
            "GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"
        ))
    };
    let page = accepting("text/html,application/xhtml+xml,*/*;q=0.8");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("vary"), Some("accept"));
    assert!(page.body.contains("<button"));
    // It asks nobody but the service: no address of another in it.
    let foreign = page.body.replace("http://www.w3.org/2000/svg", "");
    assert!(!foreign.contains("http://") && !foreign.contains("https://"));
    assert_eq!(accepting("*/*").body, "0");
}

/// Has the service do a turn or two, so that what was sent before has been received.
fn round(other: &mut Client) {
    other.send(get("/").as_bytes());
    other.answer();
}

#[test]
fn a_body_that_is_split_at_any_byte_counts_once() {
    let service = start(&[]);
    let request = post("/", "500");
    let mut other = service.connect();
    for split in 1..request.len() {
        let mut client = service.connect();
        client.send(&request.as_bytes()[..split]);
        round(&mut other);
        client.send(&request.as_bytes()[split..]);
        let total = (500 * split).to_string();
        assert_eq!(client.answer().body, total, "split at {split}");
    }
    let mut client = service.connect();
    for byte in request.bytes() {
        client.send(&[byte]);
        round(&mut other);
    }
    assert_eq!(client.answer().body, (500 * request.len()).to_string());
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1\r\n5\r\n2\r\n00\r\n0\r\n\r\n";
    assert_eq!(
        service.ask(chunked).body,
        (500 * (request.len() + 1)).to_string()
    );
}

#[test]
fn bodies_of_a_wrong_length_count_nothing() {
    let service = start(&[]);
    let head =
        |length: &str| format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    // Shorter than said: the rest never comes.
    let mut client = service.connect();
    client.send(format!("{}50", head("3")).as_bytes());
    client.end();
    assert_eq!(client.rest(), "");
    for wrong in [
        "-3",
        "3, 4",
        "3\r\nContent-Length: 4",
        "0x3",
        "99999999999999999999",
    ] {
        let answer = service.ask(&format!("{}500", head(wrong)));
        assert_eq!(answer.status, 400, "{wrong}");
    }
    let both = head("3\r\nTransfer-Encoding: chunked");
    assert_eq!(service.ask(&format!("{both}500")).status, 400);
    assert_eq!(service.get("/"), "0");
    // Longer than said: what follows is no request.
    let mut client = service.connect();
    client.send(format!("{}500", head("1")).as_bytes());
    assert_eq!(client.answer().body, "5");
    client.end();
    assert!(client.rest().starts_with("HTTP/1.1 400") || service.get("/") == "5");
}

#[test]
fn ten_megabytes_are_refused_without_being_kept() {
    let service = start(&[]);
    let before = service.metric("process_resident_memory_bytes ");
    let megabyte = vec![b'1'; 1 << 20];
    let mut client = service.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10485760\r\n\r\n");
    // It may close before all of it is sent.
    let _sent = (0..10).all(|_| client.try_send(&megabyte));
    assert_eq!(client.answer().status, 413);
    let mut client = service.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nA00000\r\n");
    let _sent = (0..10).all(|_| client.try_send(&megabyte));
    assert_eq!(client.answer().status, 413);
    let grown = service.metric("process_resident_memory_bytes ") - before;
    assert!(grown < 4e6, "it grew by {grown} bytes");
    assert_eq!(service.get("/"), "0");
}

#[test]
fn thousands_of_idle_connections_are_in_nobodys_way() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let current = Some(hard);
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current,
            maximum: limit.maximum,
        },
    );
    raised.expect("the soft limit may be raised");
    let count = usize::try_from(hard.saturating_sub(500).min(10_000)).expect("few");
    if count < 10_000 {
        prony_testkit::skip(&format!(
            "{count} connections only: the limit on descriptors is {hard}"
        ));
    }
    let service = start(&[("CLICKY_THREADS", "2")]);
    let idle: Vec<Client> = (0..count).map(|_| service.connect()).collect();
    let mut client = service.connect();
    for clicks in 1..=100 {
        client.send(post("/", "1").as_bytes());
        assert_eq!(client.answer().body, clicks.to_string());
    }
    let open = service.metric("clicky_connections ");
    assert!(open > count as f64, "{open} are open");
    drop(idle);
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn a_reader_that_takes_nothing_holds_up_nobody_and_little_memory() {
    let service = start(&[]);
    let before = service.metric("process_resident_memory_bytes ");
    let mut slow = service.connect();
    let requests = 100_000;
    let many = get("/metrics").repeat(50);
    let stream = slow.clone_stream();
    // Answers of 250 MB: without back-pressure they would all lie in memory.
    let sending = thread::spawn(move || {
        let mut stream = stream;
        (0..requests / 50).all(|_| std::io::Write::write_all(&mut stream, many.as_bytes()).is_ok())
    });
    let mut client = service.connect();
    for clicks in 1..=500 {
        client.send(post("/", "1").as_bytes());
        assert_eq!(client.answer().body, clicks.to_string());
    }
    let grown = service.metric("process_resident_memory_bytes ") - before;
    assert!(grown < 16e6, "it grew by {grown} bytes");
    // Once it reads, it gets what it asked for.
    for _ in 0..1_000 {
        assert_eq!(slow.answer().status, 200);
    }
    drop(slow);
    drop(service);
    let _cut_off = sending.join();
}

#[test]
fn a_writer_that_takes_its_time_is_served_and_holds_up_nobody() {
    let service = start(&[]);
    let request = post("/", "3");
    let mut slow = service.connect();
    let mut client = service.connect();
    for byte in request.bytes() {
        slow.send(&[byte]);
        client.send(get("/healthz").as_bytes());
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(slow.answer().body, "3");
}

#[test]
fn totals_are_told_as_they_change_until_the_stop() {
    let service = start(&[("CLICKY_THREADS", "2")]);
    let mut listeners = [service.connect(), service.connect(), service.connect()];
    for (listener, path) in listeners
        .iter_mut()
        .zip(["/events", "/events", "/c/tea/events"])
    {
        listener.send(get(path).as_bytes());
        let head = listener.head();
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("access-control-allow-origin"), Some("*"));
        assert_eq!(listener.event(), "0");
    }
    assert!((service.metric("clicky_listeners ") - 3.0).abs() < f64::EPSILON);
    service.ask(&post("/", "5"));
    service.ask(&post("/c/tea", "2"));
    let told: Vec<String> = listeners.iter_mut().map(Client::event).collect();
    assert_eq!(told, ["5", "5", "2"]);
    // Many changes are few events, and the last total is told.
    let mut client = service.connect();
    for _ in 0..1_000 {
        client.send(post("/", "1").as_bytes());
        client.answer();
    }
    let mut events = 1;
    while listeners[0].event() != "1005" {
        events += 1;
    }
    assert!(events < 200, "{events} events");
    let ended = service.stop();
    assert_eq!(ended.code, Some(0));
    for listener in &mut listeners {
        assert!(listener.rest().ends_with("0\r\n\r\n"), "it ended in order");
    }
}

#[test]
fn a_listener_that_goes_is_forgotten() {
    let service = start(&[]);
    let mut listener = service.connect();
    listener.send(get("/events").as_bytes());
    listener.head();
    assert_eq!(listener.event(), "0");
    drop(listener);
    until("nobody listens", || {
        service.metric("clicky_listeners ") < 0.5
    });
}

#[test]
fn one_address_took_the_listeners_places_of_all() {
    let service = start(&[
        ("CLICKY_LISTENERS_PER_ADDRESS", "2"),
        ("CLICKY_THREADS", "2"),
    ]);
    let listen = |mut listener: Client| {
        listener.send(get("/events").as_bytes());
        let head = listener.head();
        (listener, head)
    };
    let (first, head) = listen(service.connect());
    let (second, also) = listen(service.connect());
    assert_eq!((head.status, also.status), (200, 200));
    let (_, refused) = listen(service.connect());
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let (_other, head) = listen(service.connect_from([127, 0, 0, 2]));
    assert_eq!(head.status, 200, "another address has places of its own");
    let limited = "clicky_refusals_total{reason=\"listeners_per_address\"}";
    assert!((service.metric(limited) - 1.0).abs() < f64::EPSILON);
    // Counting is not listening.
    assert_eq!(service.ask(&post("/", "1")).status, 200);
    drop((first, second));
    until("a place is free", || {
        listen(service.connect()).1.status == 200
    });
}

#[test]
fn an_address_that_asks_too_often_is_told_when_to_come_again() {
    let service = start(&[("CLICKY_RATE_LIMIT", "2")]);
    let mut client = service.connect();
    // All in one piece, so that no token comes meanwhile.
    client.send(post("/", "1").repeat(5).as_bytes());
    let answers: Vec<_> = (0..5).map(|_| client.answer()).collect();
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, [200, 200, 429, 429, 429]);
    assert_eq!(answers[4].header("retry-after"), Some("1"));
    client.send(get("/healthz").as_bytes());
    assert_eq!(client.answer().status, 200, "whoever watches is let in");
    assert!((service.metric("clicky_clicks_total ") - 2.0).abs() < f64::EPSILON);
    let limited = service.metric("clicky_refusals_total{reason=\"rate_limit\"}");
    assert!((limited - 3.0).abs() < f64::EPSILON);
}

#[test]
fn a_stop_answers_what_was_accepted_and_keeps_what_was_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clicky.log");
    let settings = [
        ("CLICKY_BACKEND", "file"),
        ("CLICKY_COUNTER_FILE", file.to_str().expect("a path")),
        ("CLICKY_SYNC_FREQUENCY", "60m"),
        ("CLICKY_THREADS", "2"),
    ];
    let service = Arc::new(start(&settings));
    let (sent, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let stopping = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = service.connect();
            let (sent, acknowledged) = (sent.clone(), acknowledged.clone());
            let stopping = stopping.clone();
            thread::spawn(move || {
                while client.try_send(post("/", "1").as_bytes()) {
                    sent.fetch_add(1, Relaxed);
                    let Some(200) = client.try_status() else {
                        break;
                    };
                    acknowledged.fetch_add(1, Relaxed);
                }
                assert!(stopping.load(Relaxed), "it was cut off before the stop");
            })
        })
        .collect();
    until("some are acknowledged", || {
        acknowledged.load(Relaxed) >= 2_000
    });
    stopping.store(true, Relaxed);
    service.signal(Signal::TERM);
    for client in clients {
        client.join().expect("no client fails before the stop");
    }
    let service = Arc::into_inner(service).expect("nobody else has it");
    let ended = service.ended();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let again = start(&settings);
    let kept: u64 = again.get("/").parse().expect("a number");
    assert!(
        kept >= acknowledged.load(Relaxed),
        "{kept} of {acknowledged:?}"
    );
    assert!(kept <= sent.load(Relaxed));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let service = start(&[]);
    let mut client = service.connect();
    // A request under way keeps a graceful stop for a while.
    client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n5");
    round(&mut service.connect());
    service.signal(Signal::INT);
    // The listener closes when the first was heard.
    until("it stops", || {
        std::net::TcpStream::connect(service.address).is_err()
    });
    service.signal(Signal::INT);
    assert_eq!(service.ended().code, Some(130));
}

#[test]
fn settings_that_are_wrong_are_named_one_by_one() {
    let wrong = [("CLICKY_THREADS", "many"), ("CLICKY_ACK", "perhaps")];
    let output = command(&wrong).output().expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "prony-clicky: CLICKY_THREADS is `many`: write a number from 1 to 1024\n\
         prony-clicky: CLICKY_ACK is `perhaps`: write memory or synced\n"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn an_address_that_is_taken_is_an_error_with_a_way_out() {
    let service = start(&[]);
    let address = service.address.to_string();
    let output = command(&[("SERVER_ADDRESS", &address)]).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cannot listen on 127.0.0.1:"), "{said}");
    assert!(said.contains("SERVER_ADDRESS"), "{said}");
}

/// Asks something, stops the service and yields what it wrote.
fn logged(service: Service) -> String {
    service.ask(&post("/", "500"));
    service.ask(&get("/c/\"x"));
    let ended = service.stop();
    assert_eq!(ended.code, Some(0));
    // An ordinary user's locked memory may be too little for one ring more.
    let of_ring = |line: &&str| line.contains("using epoll, not io_uring: ");
    let lines = ended.out.split_inclusive('\n');
    lines.filter(|line| !of_ring(line)).collect()
}

#[test]
fn each_request_is_a_line() {
    let lines = logged(start(&[("RUST_LOG", "info")]));
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let (began, line) = lines[0].split_once(" prony-clicky] ").expect("a prefix");
    assert!(
        began.starts_with("[20") && began.ends_with("Z INFO "),
        "{began}"
    );
    let words: Vec<&str> = line.split(' ').collect();
    assert!(words[0].starts_with("127.0.0.1:"), "{line}");
    assert_eq!(words[1..6], ["\"POST", "/", "HTTP/1.1\"", "200", "3"]);
    assert!(words[6].parse::<f64>().is_ok_and(|ms| ms < 1e4), "{line}");
    assert!(
        lines[1].contains("\"GET /c/%22x HTTP/1.1\" 404 "),
        "{}",
        lines[1]
    );
}

#[test]
fn where_a_container_refuses_io_uring_it_says_so_once_and_counts() {
    for refusal in [Refusal::NotPermitted, Refusal::NotImplemented] {
        let ended = in_container(refusal, || {
            let service = start(&[
                ("RUST_LOG", "warn"),
                ("CLICKY_THREADS", "2"),
                ("PRONY_DRIVER", "auto"),
            ]);
            assert_eq!(service.ask(&post("/", "5")).body, "5");
            assert_eq!(service.get("/"), "5");
            service.stop()
        });
        assert_eq!(ended.code, Some(0));
        let said = ended.out.matches("using epoll, not io_uring: ").count();
        assert_eq!(said, 1, "{refusal:?}: {ended:?}");
    }
}

#[test]
fn what_is_off_or_less_important_is_no_line() {
    for settings in [
        [("RUST_LOG", "off"), ("CLICKY_THREADS", "1")],
        [("RUST_LOG", "error"), ("CLICKY_THREADS", "1")],
        [("RUST_LOG", "info"), ("CLICKY_NO_LOGGING", "")],
    ] {
        let lines = logged(start(&settings));
        let expected = if settings[1].0 == "CLICKY_NO_LOGGING" {
            3
        } else {
            0
        };
        assert_eq!(lines.lines().count(), expected, "{settings:?}: {lines}");
    }
    let lines = logged(start(&[("RUST_LOG", "info"), ("CLICKY_NO_LOGGING", "1")]));
    assert_eq!(lines, "");
}

#[test]
fn a_file_has_all_lines_after_the_stop_as_the_journal_has_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let place = format!("file:{}", path.display());
    let settings = [
        ("RUST_LOG", "info"),
        ("CLICKY_LOG_TO", &place),
        ("CLICKY_LOG_FORMAT", "journal"),
    ];
    assert_eq!(
        logged(start(&settings)),
        "",
        "nothing goes to standard output"
    );
    let mut text = String::new();
    let mut file = std::fs::File::open(&path).expect("the log");
    file.read_to_string(&mut text).expect("text");
    let entries: Vec<&str> = text.split_terminator("\n\n").collect();
    assert_eq!(entries.len(), 3, "{text}");
    for entry in entries {
        let names: Vec<&str> = entry
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        let expected = [
            "__REALTIME_TIMESTAMP",
            "PRIORITY",
            "SYSLOG_PID",
            "SYSLOG_IDENTIFIER",
            "MESSAGE",
        ];
        assert_eq!(names, expected, "{entry}");
    }
    assert!(text.contains("MESSAGE=127.0.0.1:"));
}

/// A Redis with nothing to its name, on a free port; killed when dropped.
struct Redis(std::process::Child);

impl Redis {
    fn start(port: u16, folder: &tempfile::TempDir) -> Redis {
        let child = std::process::Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .stdout(std::process::Stdio::null())
            .spawn();
        let redis = Redis(child.expect("redis-server starts"));
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port));
        until("Redis listens", || connect().is_ok());
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It is ours, and has nothing to keep.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_store_that_is_away_is_bridged_then_refused_and_then_all_is_well_again() {
    let mut service = start(&[]);
    assert_eq!(service.get("/healthz"), "{\"status\":\"ready\"}");
    if prony_testkit::need("redis-server").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody else has it while the store is away.
    let port = prony_testkit::free_port();
    let redis = Redis::start(port, &folder);
    let url = format!("redis://127.0.0.1:{port}");
    service = start(&[
        ("CLICKY_BACKEND", "redis"),
        ("CLICKY_REDIS_URL", &url),
        ("CLICKY_SYNC_FREQUENCY", "10ms"),
        ("CLICKY_PENDING_MAX", "1000"),
    ]);
    let mut client = service.connect();
    let mut click = || {
        client.send(post("/", "500").as_bytes());
        client.answer()
    };
    assert_eq!(click().body, "500");
    until("it is kept", || {
        service.metric("clicky_pending_clicks ") < 0.5
    });
    drop(redis);
    let said = |status: &str| service.get("/healthz").contains(status);
    assert_eq!(click().body, "1000");
    until("it is missed", || said("\"bridging\""));
    assert_eq!(click().body, "1500");
    let refused = click();
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    until("it refuses", || said("\"refusing\""));
    assert_eq!(service.ask(&get("/healthz")).status, 503);
    assert_eq!(service.get("/"), "1500", "what was refused is not counted");
    let _redis = Redis::start(port, &folder);
    until("it is back", || said("\"ready\""));
    assert_eq!(click().body, "2000");
    assert_eq!(service.stop().code, Some(0));
}

#[test]
fn clicks_that_are_answered_when_durable_are_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("clicky.log");
    let settings = [
        ("CLICKY_BACKEND", "file"),
        ("CLICKY_COUNTER_FILE", file.to_str().expect("a path")),
        ("CLICKY_ACK", "synced"),
        ("CLICKY_THREADS", "2"),
    ];
    let service = start(&settings);
    let mut clients: Vec<Client> = (0..16).map(|_| service.connect()).collect();
    for _ in 0..20 {
        for client in &mut clients {
            client.send(post("/", "1").as_bytes());
        }
        for client in &mut clients {
            assert_eq!(client.answer().status, 200);
        }
    }
    service.signal(Signal::KILL);
    assert_eq!(service.ended().code, None);
    assert_eq!(start(&settings).get("/"), "320");
}
