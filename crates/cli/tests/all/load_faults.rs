//! `prony load` interrupted at any moment, without descriptors, and with a server that dies: a report each time,
//! and an end by its cause.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use crate::common::{self, PRONY};
use prony_base::Random;
use rustix::process::{Pid, Signal, kill_process};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHello";

/// A server that answers each request, says when it has seen a number of them, and then dies if it is to.
struct Server {
    url: String,
    seen: mpsc::Receiver<()>,
}

fn serve(number: u64, dies: bool) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let (say, seen) = mpsc::channel();
    let (count, is_dead) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (count, is_dead, say) = (Arc::clone(&count), Arc::clone(&is_dead), say.clone());
            let address = listener.local_addr().expect("an address");
            if is_dead.load(SeqCst) {
                // The listener goes with this thread: from now on connections are refused.
                return;
            }
            thread::spawn(move || {
                converse(stream, |_| {
                    let seen = count.fetch_add(1, SeqCst) + 1;
                    if seen == number {
                        let _ = say.send(());
                        is_dead.store(dies, SeqCst);
                        // Wakes the listener, to see it.
                        drop(TcpStream::connect(address));
                    }
                    !is_dead.load(SeqCst)
                });
            });
        }
    });
    Server { url, seen }
}

/// Answers as long as `goes_on` with the number of each request.
fn converse(mut stream: TcpStream, mut goes_on: impl FnMut(u64) -> bool) {
    let mut bytes = [0; 4_096];
    let mut pending = Vec::new();
    for number in 0.. {
        while !pending.ends_with(b"\r\n\r\n") {
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => return,
                Ok(length) => pending.extend_from_slice(&bytes[..length]),
            }
        }
        pending.clear();
        if !goes_on(number) || stream.write_all(HELLO).is_err() {
            return;
        }
    }
}

fn start(words: &[&str]) -> Child {
    let mut command = Command::new(PRONY);
    command
        .args(words)
        .env_remove("PRONY_DRIVER")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().expect("prony runs")
}

fn text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}

#[test]
fn whenever_it_is_interrupted_it_reports_what_there_is() {
    for seed in 0..prony_testkit::seeds(8, 50) {
        let mut random = Random::of(seed, "moments");
        let server = serve(1 + random.below(600), false);
        let manners: [&[&str]; 4] = [
            &["-c", "10"],
            &["-c", "10", "-t", "2", "--rate", "3000"],
            &[
                "-c",
                "3",
                "--arrival",
                "poisson",
                "--rate",
                "2000",
                "--warmup",
                "100ms",
            ],
            &["-c", "20", "--think", "2ms"],
        ];
        let manner = manners[random.below(4) as usize];
        let mut words = vec!["load", "-d", "10m", &server.url];
        words.extend(manner);
        let process = start(&words);
        server.seen.recv().expect("it sends");
        kill_process(Pid::from_child(&process), Signal::INT).expect("it lives");
        let output = process.wait_with_output().expect("it ends");
        let said = text(&output);
        assert_eq!(output.status.code(), Some(130), "seed {seed}: {said}");
        assert!(
            said.contains("Interrupted") && said.contains("Accounted:"),
            "seed {seed}: {said}"
        );
    }
}

#[test]
fn a_server_that_dies_ends_a_number_of_requests_and_says_how_many_were_not_sent() {
    let server = serve(50, true);
    let words = [
        "load",
        "-n",
        "100000",
        "-c",
        "4",
        "--timeout",
        "300ms",
        &server.url,
    ];
    let output = start(&words).wait_with_output().expect("it ends");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("Not sent: 99"), "{said}");
}

#[test]
fn more_connections_than_descriptors_are_failures_of_the_system_and_not_of_requests() {
    let server = serve(u64::MAX, false);
    let line = "ulimit -n 40; exec \"$0\" load -n 200 -t 1 -c 60 --json - \"$1\"";
    let output = Command::new("sh")
        .args(["-c", line, PRONY, &server.url])
        .env_remove("PRONY_DRIVER")
        .output()
        .expect("sh runs");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no report: {}", text(&output)));
    let counts = &report["counts"];
    assert_eq!(counts["sent"], 200, "{report}");
    assert_eq!(counts["acknowledged"], 200, "{report}");
    assert!(
        counts["connect_failed"]["system"].as_u64() > Some(0),
        "{report}"
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}

#[test]
fn more_connections_than_local_ports_are_told_as_that() {
    // In a network of its own, which has ten ports.
    let script = r#"ip link set lo up && echo "40000 40009" > /proc/sys/net/ipv4/ip_local_port_range || exit 77
        mkfifo "$1/ready" || exit 78
        "$0" serve --port 8080 > "$1/ready" & server=$!
        read line < "$1/ready"
        "$0" load -n 200 -t 1 -c 30 http://127.0.0.1:8080/hello; ended=$?
        kill $server; exit $ended"#;
    let (Some(mut unshared), Some(_ip)) =
        (prony_testkit::unshared("--net"), prony_testkit::need("ip"))
    else {
        return;
    };
    let folder = common::folder("ports");
    let output = unshared
        .args(["sh", "-c", script, PRONY])
        .arg(folder)
        .env_remove("PRONY_DRIVER")
        .output()
        .expect("unshare runs");
    let said = text(&output);
    assert!(said.contains("completed 200 + failed 0"), "{said}");
    assert!(said.contains("connect system"), "{said}");
    assert!(said.contains("or on local ports reached?"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
}
