//! What each flag of `load`, `run`, `report` and `log` does, how a command ends by the cause of what went wrong,
//! and that every output for programs says by which schema it is to be read.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::common::{self, PRONY, text};
use serde_json::Value;

const TINY: &str = r#"
title = "A tiny run"

[run]
blocks = 1
duration = "100ms"
warmup = "0ms"

[[subject]]
cmd = "PRONY serve --port {port}"
name = "serve"

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [1]
"#;

fn prony(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .env_remove("PRONY_DRIVER")
        .env_remove("PRONY_CALLED_AS")
        .args(words);
    command
}

fn ended(folder: &Path, code: i32, words: &[&str]) -> Output {
    let output = prony(folder, words).output().expect("prony runs");
    assert_eq!(
        output.status.code(),
        Some(code),
        "{words:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// A run, or its documents: that a figure of so short a window is not valid on a busy machine is no fault.
fn rendered(folder: &Path, words: &[&str]) -> Output {
    let output = prony(folder, words).output().expect("prony runs");
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{words:?}: {}",
        text(&output.stderr)
    );
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

/// A folder with the experiment in it.
fn with_experiment(name: &str) -> PathBuf {
    let folder = common::folder(name);
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    folder
}

/// A server that keeps each request as it came, and answers it, or does not.
struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    conversations: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Recorder {
    fn new(answer: &'static str) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let conversations = Arc::new(Mutex::new(Vec::new()));
        let (kept, all) = (Arc::clone(&seen), Arc::clone(&conversations));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // A client that goes away ends the thread, as it may.
                let conversation = thread::spawn(move || drop(serve(stream, answer, &kept)));
                all.lock().expect("no panic").push(conversation);
            }
        });
        Recorder {
            address,
            seen,
            conversations,
        }
    }

    fn url(&self) -> String {
        format!("http://{}/x?y=1", self.address)
    }

    /// All requests of clients that have ended: what they had sent to the last may still have to be read.
    fn seen(&self) -> Vec<String> {
        let last = TcpStream::connect(self.address).expect("it listens");
        last.shutdown(Shutdown::Write).expect("it is open");
        // Connections are accepted in their order, and this one is closed when it was its turn.
        let _ = (&last).read(&mut [0]);
        let conversations = std::mem::take(&mut *self.conversations.lock().expect("no panic"));
        for conversation in conversations {
            conversation.join().expect("no panic");
        }
        self.seen.lock().expect("no panic").clone()
    }
}

fn serve(stream: TcpStream, answer: &str, kept: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut request, mut length) = (String::new(), 0);
        while !request.ends_with("\r\n\r\n") {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let said = line.to_ascii_lowercase();
            if let Some(said) = said.strip_prefix("content-length:") {
                length = said.trim().parse().expect("a length");
            }
            request.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        request.push_str(&text(&body));
        kept.lock().expect("no panic").push(request);
        writer.write_all(answer.as_bytes())?;
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The one request that `prony load` sent with `words`.
fn sent(words: &[&str]) -> String {
    let server = Recorder::new(OK);
    let url = server.url();
    let mut all = vec!["load", "-c1", "-t1", "-n1"];
    all.extend(words);
    all.push(&url);
    ended(&common::folder("flags-sent"), 0, &all);
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "{words:?}: {seen:?}");
    seen[0].clone()
}

#[test]
fn load_sends_what_its_words_say() {
    let folder = common::folder("flags-body");
    fs::write(folder.join("body.bin"), "a\nb").expect("a file");
    let file = folder.join("body.bin");
    let file = file.to_str().expect("a name");

    let plain = sent(&[]);
    assert!(plain.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{plain}");
    assert!(plain.ends_with("\r\n\r\n"), "it has no body: {plain}");
    let headers = sent(&["-H", "X-One: 1", "--header", "X-Two:two words"]);
    assert!(headers.contains("\r\nX-One: 1\r\n"), "{headers}");
    assert!(headers.contains("\r\nX-Two: two words\r\n"), "{headers}");
    let method = sent(&["--method", "DELETE"]);
    assert!(method.starts_with("DELETE /x?y=1 "), "{method}");
    let body = sent(&["--body", "{\"a\":1}"]);
    assert!(body.starts_with("POST /x?y=1 "), "{body}");
    assert!(body.ends_with("\r\n\r\n{\"a\":1}"), "{body}");
    let put = sent(&["--method", "PUT", "--body-file", file]);
    assert!(put.starts_with("PUT "), "{put}");
    assert!(put.ends_with("\r\n\r\na\nb"), "{put}");
    let bad = |words: &[&str], why: &str| {
        let said = text(&ended(&folder, 2, words).stderr);
        assert!(said.contains(why), "{said}");
    };
    bad(
        &["load", "-H", "nonsense", "http://127.0.0.1:1/"],
        "is not a header",
    );
    bad(
        &[
            "load",
            "--body",
            "x",
            "--body-file",
            file,
            "http://127.0.0.1:1/",
        ],
        "cannot be used with",
    );
    bad(
        &["load", "--body-file", "none.bin", "http://127.0.0.1:1/"],
        "cannot read the body from none.bin",
    );
}

#[test]
fn load_prints_what_was_asked_for() {
    let server = Recorder::new(OK);
    let (url, folder) = (server.url(), common::folder("flags-load"));
    let load = |words: &[&str]| {
        let mut all = vec!["load", "-c2", "-t1", "-n10"];
        all.extend(words);
        all.push(&url);
        ended(&folder, 0, &all)
    };
    let usual = text(&load(&[]).stdout);
    assert!(usual.contains("Running 10 requests @ "), "{usual}");
    assert!(usual.contains("1 thread and 2 connections"), "{usual}");
    assert!(
        usual.contains(" 99% ") && !usual.contains("99.9%"),
        "{usual}"
    );
    let whole = text(&load(&["--latency"]).stdout);
    assert!(
        whole.contains("99.9%") && whole.contains("99.99%"),
        "{whole}"
    );
    let report = json(&load(&["--json", "-"]));
    assert_eq!(report["counts"]["completed"], 10);
    assert_eq!(
        (&report["connections"], &report["threads"]),
        (&2.into(), &1.into())
    );
    let both = text(&load(&["--json", "report.json"]).stdout);
    assert!(both.contains("Requests/sec:"), "{both}");
    let written = fs::read(folder.join("report.json")).expect("a file");
    let written: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(written["counts"]["sent"], 10);
    assert_eq!(server.seen().len(), 40, "-n is exact");
    let timed = ended(
        &folder,
        0,
        &["load", "-c1", "-t1", "-d", "150ms", "--json", "-", &url],
    );
    let window = json(&timed)["window_ns"].as_u64().expect("a window");
    // It cannot end before its time; how late it may end is the machine's.
    assert!(window >= 150_000_000, "-d: {window}");
    let timed = ended(&folder, 0, &["load", "-c1", "-t1", "-d150ms", &url]);
    let head = text(&timed.stdout);
    assert!(head.starts_with("Running 150ms test @ "), "{head}");
}

#[test]
fn more_threads_of_load_than_processors_were_taken_without_a_word() {
    let server = Recorder::new(OK);
    let (url, folder) = (server.url(), common::folder("flags-crowd"));
    let processors = thread::available_parallelism().expect("a number").get();
    let load = |threads: usize| {
        let (threads, n) = (threads.to_string(), (2 * threads).to_string());
        let words = ["load", "-c", &threads, "-t", &threads, "-n", &n, &url];
        text(&ended(&folder, 0, &words).stderr)
    };
    assert!(!load(processors).contains("take turns"));
    let said = load(processors + 1);
    assert!(
        said.contains(&format!("prony: {} threads on ", processors + 1)),
        "{said}"
    );
    assert!(said.contains("take turns: they may be the limit"), "{said}");
}

#[test]
fn load_gives_up_a_request_after_its_time() {
    let silent = Recorder::new("");
    let folder = common::folder("flags-silent");
    let url = silent.url();
    let words = [
        "load",
        "-c1",
        "-t1",
        "-n3",
        "--timeout",
        "20ms",
        "--json",
        "-",
        &url,
    ];
    let report = json(&ended(&folder, 3, &words));
    assert_eq!(report["counts"]["failed"]["timeout"], 3, "{report}");
    assert_eq!(report["counts"]["completed"], 0);
}

#[test]
fn a_run_of_nothing_but_500s_ended_with_0() {
    let server = Recorder::new("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
    let folder = common::folder("flags-500");
    let url = server.url();
    let words = ["load", "-c1", "-t1", "-n5", &url];
    let said = text(&ended(&folder, 1, &words).stdout);
    assert!(said.contains("Non-2xx or 3xx responses: 5"), "{said}");
}

#[test]
fn load_starts_requests_by_a_schedule() {
    let server = Recorder::new(OK);
    let (url, folder) = (server.url(), common::folder("flags-rate"));
    let load = |words: &[&str]| {
        let mut all = vec!["load", "-c2", "-t1", "-d", "300ms", "--json", "-"];
        all.extend(words);
        all.push(&url);
        json(&ended(&folder, 0, &all))
    };
    let of = |report: &Value, path: &str| {
        report
            .pointer(path)
            .and_then(Value::as_u64)
            .expect("a number")
    };
    let words = [
        "-R",
        "0.2k",
        "--arrival",
        "poisson",
        "--seed",
        "7",
        "--trace",
        "trace.csv",
    ];
    let report = load(&words);
    assert_eq!(report["pace"]["kind"], "poisson");
    assert_eq!(report["latency_from"], "intended");
    let arrivals = |name: &str| of(&report, &format!("/arrivals/{name}"));
    assert!(arrivals("in_window") > 0);
    let ended = arrivals("sent") + arrivals("waiting") + arrivals("dropped");
    assert_eq!(arrivals("scheduled"), ended);
    assert_eq!(arrivals("sent"), server.seen().len() as u64);
    let trace = fs::read_to_string(folder.join("trace.csv")).expect("a file");
    let head = trace.lines().next().expect("a head");
    assert!(
        head.starts_with("connection,local_port,intended_ns,submitted_ns,"),
        "{head}"
    );
    assert_eq!(trace.lines().count() as u64, 1 + arrivals("sent"));
    // The schedule is the seed's: it does not depend on what the machine is busy with.
    assert_eq!(
        of(&load(&words), "/arrivals/scheduled"),
        arrivals("scheduled")
    );

    let stages = load(&[
        "--stages",
        "0:100,300ms:300",
        "--warmup",
        "50ms",
        "--latency-from",
        "submitted",
    ]);
    assert_eq!(stages["pace"]["points"][1]["rate_per_s"], 300.0);
    assert_eq!(stages["latency_from"], "submitted");
    let think = load(&["--think", "20ms", "--timestamps", "probe", "--spin"]);
    assert_eq!(think["pace"]["think_ns"], 20_000_000);
    assert!(think.get("arrivals").is_none(), "{think}");
    let few = of(&think, "/counts/sent");
    assert!(few <= 2 * (300 / 20 + 2), "each connection thinks: {few}");
}

#[test]
fn each_rate_of_an_experiment_is_a_cell() {
    let folder = common::folder("flags-rates");
    let toml = TINY
        .replace("PRONY", PRONY)
        .replace(
            "connections = [1]",
            "connections = [4]\narrival = { rate = [100, \"0.3k\"] }",
        )
        .replace("duration = \"100ms\"", "duration = \"500ms\"");
    fs::write(folder.join("rates.toml"), toml).expect("an experiment");
    let summary = json(&rendered(
        &folder,
        &["run", "rates.toml", "--json", "--out", "out"],
    ));
    let cells = summary["cells"].as_array().expect("cells");
    let ids: Vec<&str> = cells
        .iter()
        .filter_map(|cell| cell["cell"].as_str())
        .collect();
    assert_eq!(
        ids,
        ["serve hello c=4 rate=100", "serve hello c=4 rate=300"]
    );
    for (cell, rate) in cells.iter().zip([100.0, 300.0]) {
        assert_eq!(cell["asked_per_s"], rate);
        // The schedule is drawn beforehand, so that a busy machine does not change it.
        assert_eq!(cell["open"]["drawn_per_s"]["median"], rate, "{cell}");
        assert!(cell["ratio"].is_null());
    }
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    assert!(
        document.contains("## hello, 4 connections at 300 requests/s"),
        "{document}"
    );
    assert!(document.contains(" drawn/s "), "{document}");
    let trials = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    assert!(trials.contains(r#""latency_from":"intended""#), "{trials}");
}

/// A server, from its first request on, before the pilot; and a warm-up that is typed.
#[test]
fn a_warm_up_is_fixed_before_the_pilot() {
    let folder = common::folder("flags-warm-up");
    let warmed = TINY.replace("PRONY", PRONY).replace("\"0ms\"", "\"50ms\"");
    fs::write(folder.join("tiny.toml"), warmed).expect("an experiment");
    let wrong = text(&ended(&folder, 2, &["run", "tiny.toml", "--warmup", "2h"]).stderr);
    assert!(
        wrong.contains("`2h` is not a valid warm-up: it must be from 0s to 3600s"),
        "{wrong}"
    );
    rendered(
        &folder,
        &["run", "tiny.toml", "--precision", "90%", "--out", "out"],
    );
    let plan = |path: &str| -> Value {
        let plan = fs::read_to_string(folder.join(path).join("plan.json")).expect("a plan");
        serde_json::from_str(&plan).expect("JSON")
    };
    let first = plan("out/warm-up");
    assert_eq!(
        (&first["blocks"], &first["warmup_ns"]),
        (&2.into(), &0.into())
    );
    let chosen = plan("out");
    let notes = chosen["notes"].to_string();
    assert!(notes.contains("Warm-up: "), "{notes}");
    // As in the pilot, and at least what the experiment asks for.
    let length = chosen["warmup_ns"].as_u64().expect("a length");
    assert!(length >= 50_000_000, "{length}");
    assert_eq!(plan("out/pilot")["warmup_ns"], length);
    let command = chosen["command"].to_string();
    assert!(command.contains("\"--warmup\""), "{command}");
}

/// Two servers in turns, and what the dry run says of them beforehand.
#[test]
fn servers_are_visited_in_turns() {
    let folder = common::folder("flags-visits");
    let second = format!(
        "\n[[subject]]\ncmd = \"{PRONY} serve --port {{port}} --threads 1\"\nname = \"other\"\n"
    );
    let two = TINY.replace("PRONY", PRONY) + &second;
    fs::write(folder.join("two.toml"), two).expect("an experiment");
    let dry = text(
        &rendered(
            &folder,
            &["run", "two.toml", "--visits", "50ms", "--dry-run"],
        )
        .stdout,
    );
    let said = "2 combinations visited in turns of 50.0ms (after a lead-in of 15.0ms), 2 in each block, with the others stopped";
    assert!(dry.contains(said), "{dry}");
    let wrong = text(&ended(&folder, 2, &["run", "two.toml", "--visits", "1ms"]).stderr);
    assert!(
        wrong.contains("`1ms` is not a valid length of a visit: it must be from 50ms to 5s"),
        "{wrong}"
    );
    rendered(
        &folder,
        &["run", "two.toml", "--visits", "50ms", "--out", "out"],
    );
    let trials = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    let trials = trials
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let own: Vec<Value> = trials
        .filter(|trial: &Value| trial["generator"] == "prony")
        .collect();
    assert_eq!(own.len(), 2);
    for trial in &own {
        let visits = trial["visits"].as_array().expect("visits");
        assert_eq!(visits.len(), 2, "{trial}");
        let sum: u64 = visits
            .iter()
            .filter_map(|visit| visit["completed"].as_u64())
            .sum();
        assert_eq!(trial["load"]["completed"], sum);
    }
    let plan = fs::read_to_string(folder.join("out/plan.json")).expect("a plan");
    assert!(plan.contains("\"--visits\""), "{plan}");
}

#[test]
fn a_pilot_chooses_blocks_and_windows() {
    let folder = common::folder("flags-pilot");
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    let said = text(
        &ended(
            &folder,
            2,
            &["run", "tiny.toml", "--budget", "1s", "--out", "least"],
        )
        .stderr,
    );
    assert!(
        said.contains(
            "a budget of 1s is too little: what is tried first and 6 blocks of the shortest windows"
        ),
        "{said}"
    );
    let output = rendered(
        &folder,
        &["run", "tiny.toml", "--precision", "90%", "--out", "out"],
    );
    let said = text(&output.stderr);
    assert!(said.contains("Pilot run (not counted):"), "{said}");
    assert!(said.contains("Chosen: "), "{said}");
    let plan = |path: &str| -> Value {
        let plan = fs::read_to_string(folder.join(path).join("plan.json")).expect("a plan");
        serde_json::from_str(&plan).expect("JSON")
    };
    assert_eq!(plan("out/pilot")["blocks"], 3);
    let chosen = plan("out");
    let blocks = chosen["blocks"].as_u64().expect("a number");
    assert!(blocks >= 6, "{chosen}");
    // The plan says how it came about, and its command repeats it without a pilot.
    assert!(
        chosen["notes"]
            .to_string()
            .contains("before the first of them, by a pilot of 3 blocks"),
        "{chosen}"
    );
    let command: Vec<&str> = chosen["command"]
        .as_array()
        .expect("words")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(command[..3], ["run", "tiny.toml", "--blocks"]);
    assert_eq!(command[3], blocks.to_string());
    assert_eq!(command[4], "--duration");
    let trials = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    assert_eq!(trials.lines().count() as u64, blocks);
}

#[test]
fn words_that_ask_for_two_loops_at_once_are_refused() {
    let folder = common::folder("flags-two");
    for (words, why) in [
        (
            &["-R", "5", "--think", "1ms"][..],
            "--think is for a closed loop",
        ),
        (&["-R", "5", "--stages", "0:5"], "give one of them"),
        (&["-R", "0"], "it must be more than 0"),
        (
            &["--arrival", "poisson"],
            "add --rate, --stages or --find-max",
        ),
    ] {
        let mut all = vec!["load", "http://127.0.0.1:1/"];
        all.extend(words);
        let said = text(&ended(&folder, 2, &all).stderr);
        assert!(said.contains(why), "{words:?}: {said}");
    }
}

#[test]
fn load_without_any_answer_is_invalid() {
    let folder = common::folder("flags-none");
    let url = format!("http://127.0.0.1:{}/", common::free_port());
    let said = ended(&folder, 3, &["load", "-d", "100ms", "-c1", "-t1", &url]);
    let said = text(&said.stderr);
    assert!(
        said.contains("connection refused; nothing listens there"),
        "{said}"
    );
}

#[test]
fn load_goes_only_to_hosts_that_are_the_users() {
    let folder = common::folder("flags-public");
    // Of the addresses for documentation (RFC 5737); it is refused before anything is sent.
    let words = ["load", "-d", "100ms", "-c1", "-t1", "http://203.0.113.7/"];
    let said = text(&ended(&folder, 2, &words).stderr);
    assert!(said.contains("203.0.113.7"), "{said}");
    assert!(said.contains("--yes-i-own-this-host"), "{said}");
    // With the word it goes on, here in a network that leads nowhere.
    let Some(mut nowhere) = prony_testkit::unshared("--net") else {
        return;
    };
    nowhere.arg(PRONY).args(words);
    nowhere.args(["--yes-i-own-this-host", "--timeout", "50ms"]);
    let nowhere = nowhere.output().expect("it runs");
    assert_eq!(nowhere.status.code(), Some(3), "{}", text(&nowhere.stderr));
}

#[test]
fn a_full_disk_was_taken_for_wrong_usage() {
    let server = Recorder::new(OK);
    let (url, folder) = (server.url(), with_experiment("flags-full"));
    for flag in ["--json", "--seconds"] {
        let words = [
            "load",
            "-c1",
            "-t1",
            "-d",
            "1200ms",
            flag,
            "/dev/full",
            &url,
        ];
        let said = text(&ended(&folder, 1, &words).stderr);
        assert!(
            said.contains("cannot write /dev/full: No space left on device"),
            "{said}"
        );
    }
    // A file may have 512 bytes, which is less than the environment of a run.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" run tiny.toml --out out";
    let output = Command::new("sh")
        .args(["-c", limited, PRONY])
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .output()
        .expect("a shell");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("prony: cannot write out/"), "{said}");
    assert!(said.contains("File too large"), "{said}");
    // Larger, so that the run begins, and smaller than what it leaves.
    let larger = limited
        .replace("-f 1;", "-f 24;")
        .replace("--out out", "--out late");
    let output = Command::new("sh")
        .args(["-c", &larger, PRONY])
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .output()
        .expect("a shell");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("prony: cannot write late/"), "{said}");
    let (_, again) = said
        .split_once("to continue when this is fixed:\n")
        .expect(&said);
    let again = again.lines().next().expect("a command").trim();
    assert_eq!(again, format!("{PRONY} run tiny.toml --resume late"));
    rendered(&folder, &["run", "tiny.toml", "--resume", "late"]);
    // What cannot be made is not wrong words either; what is not there is.
    fs::write(folder.join("file"), "").expect("a file");
    let said = text(&ended(&folder, 1, &["run", "tiny.toml", "--out", "file/out"]).stderr);
    assert!(said.contains("cannot write file/out: "), "{said}");
    ended(&folder, 2, &["run", "none.toml"]);
    ended(&folder, 2, &["report", "none"]);
}

#[test]
fn run_was_given_a_url() {
    let folder = common::folder("flags-url");
    for url in ["http://127.0.0.1:1/hello", "https://localhost/"] {
        let said = text(&ended(&folder, 2, &["run", url]).stderr);
        assert!(
            said.contains(&format!("to drive a URL: prony load {url}")),
            "{said}"
        );
    }
}

#[test]
fn help_was_no_word() {
    let folder = common::folder("flags-help");
    for command in ["run", "load", "log", "bench"] {
        let asked = ended(&folder, 0, &["help", command]);
        let flag = ended(&folder, 0, &[command, "--help"]);
        assert_eq!(text(&asked.stdout), text(&flag.stdout));
    }
    let all = text(&ended(&folder, 0, &["help"]).stdout);
    assert_eq!(all, text(&ended(&folder, 0, &["--help"]).stdout));
    assert!(all.contains("Exit codes: 0 done"), "{all}");
}

#[test]
fn blocks_had_one_limit_in_the_file_and_another_on_the_command_line() {
    let folder = with_experiment("flags-blocks");
    let dry = |blocks: &str| {
        let words = ["run", "tiny.toml", "--dry-run", "--blocks", blocks];
        prony(&folder, &words).output().expect("prony runs")
    };
    let most = dry("1000");
    assert_eq!(most.status.code(), Some(0), "{}", text(&most.stderr));
    assert!(text(&most.stdout).contains("1000 blocks: 1000 trials"));
    let more = text(&dry("1001").stderr);
    assert!(more.contains("1001 is not in 1..=1000"), "{more}");
    let toml = TINY.replace("blocks = 1\n", "blocks = 1001\n");
    fs::write(folder.join("more.toml"), toml).expect("an experiment");
    let said = text(&ended(&folder, 2, &["run", "more.toml", "--dry-run"]).stderr);
    assert!(said.contains("1001") && said.contains("1000"), "{said}");
}

#[test]
fn a_dry_run_says_what_would_be_and_does_nothing() {
    let folder = with_experiment("flags-dry");
    let toml = fs::read_to_string(folder.join("tiny.toml")).expect("it");
    let toml = toml.replace(
        "name = \"serve\"",
        "name = \"serve\"\nthreads = 64\nargs = [\"--threads\", \"{threads}\"]",
    );
    let toml = toml.replace(
        "[[workload]]",
        "[[subject]]\nref = \"./absent\"\n[[workload]]",
    );
    fs::create_dir(folder.join("absent")).expect("a folder");
    let absent = "name = 'absent'\nlanguage = 'c'\nsummary = 'It needs what nobody has.'\nrole = 'server'\n\
        endpoints = ['/hello']\n\
        [needs]\ncommands = ['no-such-command-anywhere']\npackages = { any = 'install no-such-command' }\n\
        [start]\ncmd = ['no-such-command-anywhere', '{port}']\n[ready]\nhttp = '/hello'\n\
        [version]\ncmd = 'true'\n";
    fs::write(folder.join("absent/subject.toml"), absent).expect("a subject");
    fs::write(folder.join("tiny.toml"), toml).expect("an experiment");
    let before = names(&folder);
    let words = [
        "run",
        "tiny.toml",
        "--dry-run",
        "--duration",
        "1500ms",
        "--blocks",
        "2",
    ];
    let said = text(&ended(&folder, 0, &words).stdout);
    assert!(
        said.contains("1 combination in 2 blocks: 2 trials, about 6 s"),
        "{said}"
    );
    assert!(said.contains("cell: serve hello c=1"), "{said}");
    assert!(said.contains("windows of 1.5"), "{said}");
    assert!(said.contains("note: 64 threads on "), "{said}");
    assert!(said.contains("not run: "), "{said}");
    assert!(
        said.contains("`no-such-command-anywhere` is not on PATH"),
        "{said}"
    );
    assert!(
        said.contains("to change it: install no-such-command"),
        "{said}"
    );
    assert_eq!(names(&folder), before, "nothing is written");

    let mut with_json = words.to_vec();
    with_json.push("--json");
    let plan = json(&ended(&folder, 0, &with_json));
    assert_eq!(plan["schema"], 1);
    assert_eq!(
        (&plan["trials"], &plan["plan"]["duration_ns"]),
        (&2.into(), &1_500_000_000_u64.into())
    );
    let command = &plan["plan"]["command"];
    assert_eq!(
        command,
        &serde_json::json!(["run", "tiny.toml", "--blocks", "2", "--duration", "1500ms"])
    );
    // The run says the same beforehand.
    let mut wet: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--dry-run")
        .collect();
    wet.extend(["--out", "out"]);
    let output = prony(&folder, &wet).output().expect("prony runs");
    let ran = text(&output.stderr);
    let estimate = |text: &str| text.lines().nth(1).map(str::to_owned);
    assert_eq!(estimate(&ran), estimate(&said), "{ran}");
    assert!(ran.contains("note: 64 threads on "), "{ran}");
    let appendix = fs::read_to_string(folder.join("out/appendix.md")).expect("an appendix");
    assert!(appendix.contains("64 threads on "), "{appendix}");
    assert!(appendix.contains("--duration 1500ms"), "{appendix}");
}

fn names(folder: &Path) -> Vec<String> {
    let listed = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = listed
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn the_word_of_an_owner_was_dropped_from_the_repeated_command() {
    let folder = with_experiment("flags-own");
    let words = [
        "run",
        "tiny.toml",
        "--dry-run",
        "--json",
        "--yes-i-own-this-host",
    ];
    let plan = json(&ended(&folder, 0, &words));
    let command = plan["plan"]["command"].as_array().expect("words").clone();
    assert_eq!(command.last(), Some(&"--yes-i-own-this-host".into()));
}

#[test]
fn after_ctrl_c_the_command_that_goes_on_was_left_to_the_user() {
    let folder = with_experiment("flags-int");
    let name = "it's tiny.toml";
    // The second server waits to be let in, so that there is time to interrupt the run, however slow this test is.
    let waits = format!(
        "cmd = [\"sh\", \"-c\", \"mkdir begun || test -e open || exec tail -f /dev/null; exec {PRONY} serve --port {{port}}\"]"
    );
    let toml = TINY
        .replace("blocks = 1\n", "blocks = 5\n")
        .replace("cmd = \"PRONY serve --port {port}\"", &waits);
    fs::write(folder.join(name), toml).expect("an experiment");
    let mut run = prony(&folder, &["run", name, "--only", "serve*", "--seed", "7"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut said = BufReader::new(run.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("  1/") {
        line.clear();
        assert_ne!(said.read_line(&mut line).expect("a line"), 0, "it ended");
    }
    let id = run.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status();
    assert!(sent.expect("kill runs").success());
    let mut rest = String::new();
    said.read_to_string(&mut rest).expect("its end");
    assert_eq!(run.wait().expect("its end").code(), Some(130), "{rest}");
    let (_, again) = rest.split_once("to continue it:\n").expect(&rest);
    let again = again.trim();
    let expected = format!(
        "{PRONY} run 'it'\\''s tiny.toml' --only 'serve*' --seed 7 --resume 'runs/it'\\''s tiny-001'"
    );
    assert_eq!(again, expected);
    fs::write(folder.join("open"), "").expect("a file");
    let resumed = Command::new("sh")
        .args(["-c", again])
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"))
        .output()
        .expect("a shell");
    assert!(
        matches!(resumed.status.code(), Some(0 | 3)),
        "{}",
        text(&resumed.stderr)
    );
    let trials = fs::read_to_string(folder.join("runs/it's tiny-001/trials.jsonl")).expect("it");
    let measured = trials
        .matches("\"outcome\":{\"kind\":\"measured\"}")
        .count();
    assert_eq!(measured, 5, "{}", text(&resumed.stderr));
}

#[test]
fn report_prints_figures_and_pictures_and_run_prints_the_same_figures() {
    let folder = with_experiment("flags-report");
    let figures = rendered(&folder, &["run", "tiny.toml", "--json", "--out", "out"]);
    let again = rendered(&folder, &["report", "out", "--json"]);
    assert_eq!(text(&figures.stdout), text(&again.stdout));
    let file = fs::read_to_string(folder.join("out/summary.json")).expect("it");
    assert_eq!(text(&again.stdout), file);
    assert_eq!(json(&again)["schema"], 1);
    let paths = text(&rendered(&folder, &["report", "out"]).stdout);
    assert!(
        paths.ends_with("\n\nout/document.md\nout/index.html\n"),
        "{paths}"
    );
    let plots = ["rate", "latency", "cpu"].map(|name| {
        let svg = text(&ended(&folder, 0, &["report", "out", "--plot", name]).stdout);
        assert!(
            svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
            "{name}: {svg}"
        );
        svg
    });
    assert!(plots[0] != plots[1] && plots[1] != plots[2] && plots[0] != plots[2]);
    let words = ["report", "out", "--json", "--plot", "rate"];
    assert!(text(&ended(&folder, 2, &words).stderr).contains("cannot be used with"));

    every_export_has_the_trial(&folder, &json(&again));
    every_file_carries_its_schema(&folder.join("out"));
    no_room_for_a_document_leaves_the_one_before(&folder);
    a_newer_run_is_refused(&folder);
}

/// As on a disk that is full: no file may get longer than 0 bytes.
fn no_room_for_a_document_leaves_the_one_before(folder: &Path) {
    let before = fs::read(folder.join("out/document.md")).expect("it");
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"])
        .args([PRONY, "report", "out"])
        .current_dir(folder)
        .output()
        .expect("a shell");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("cannot write out/") && said.contains("File too large"),
        "{said}"
    );
    assert_eq!(
        fs::read(folder.join("out/document.md")).expect("it"),
        before
    );
}

/// The one trial of the run in each format of other programs, with the rate that the summary has.
fn every_export_has_the_trial(folder: &Path, summary: &Value) {
    let export =
        |format: &str| text(&rendered(folder, &["report", "out", "--export", format]).stdout);
    let rate = summary["cells"][0]["rate_per_s"]["median"]
        .as_f64()
        .expect("a rate");
    let long = export("long");
    let row = format!("serve hello c=1,serve,hello,1,0,rate,requests/s,higher,{rate}");
    assert!(long.lines().any(|line| line == row), "{row}\n{long}");
    let benchstat = export("benchstat");
    let line = benchstat.lines().last().expect("a line");
    assert!(
        line.starts_with("BenchmarkHello/subject=serve/c=1\t"),
        "{line}"
    );
    assert!(line.contains(&format!("\t{rate} req/s\t")), "{line}");
    assert!(
        benchstat.starts_with("Unit req/s better=higher\n"),
        "{benchstat}"
    );
    let junit = export("junit");
    assert!(
        junit.contains("tests=\"1\"") && junit.contains("name=\"serve hello c=1\""),
        "{junit}"
    );
}

fn every_file_carries_its_schema(dir: &Path) {
    let histograms = fs::read_dir(dir.join("histograms")).expect("it").flatten();
    let mut files: Vec<PathBuf> = histograms.map(|entry| entry.path()).collect();
    assert!(!files.is_empty());
    files.extend(
        [
            "plan.json",
            "environment.json",
            "trials.jsonl",
            "summary.json",
        ]
        .map(|name| dir.join(name)),
    );
    for file in files {
        let text = fs::read_to_string(&file).expect("a file");
        let first = match file.extension().is_some_and(|kind| kind == "jsonl") {
            true => text.lines().next().expect("a line"),
            false => &text,
        };
        let value: Value = serde_json::from_str(first).expect("JSON");
        assert_eq!(value["schema"], 1, "{}", file.display());
    }
}

fn a_newer_run_is_refused(folder: &Path) {
    let file = folder.join("out/plan.json");
    let plan = fs::read_to_string(&file).expect("it");
    fs::write(&file, plan.replacen("\"schema\": 1", "\"schema\": 2", 1)).expect("a change");
    let said = text(&ended(folder, 2, &["report", "out"]).stderr);
    assert_eq!(
        said,
        "prony: out/plan.json: it has schema 2, and this Prony reads schema 1: a newer Prony wrote it, which \
         reads it\n"
    );
}

/// Records as the first version wrote them, without any field that was added since.
#[test]
fn a_run_of_the_first_schema_is_still_rendered() {
    let folder = common::folder("flags-old");
    let old = prony_testkit::root().join("crates/cli/tests/old/schema-1");
    fs::create_dir_all(folder.join("old/histograms")).expect("a folder");
    let names = ["plan.json", "environment.json", "trials.jsonl"];
    let histograms = ["histograms/b00-p00.json", "histograms/b01-p00.json"];
    for name in names.iter().chain(&histograms) {
        fs::copy(old.join(name), folder.join("old").join(name)).expect("a copy");
    }
    let summary = json(&ended(&folder, 0, &["report", "old", "--json"]));
    let cell = &summary["cells"][0];
    assert_eq!(cell["cell"], "rust/axum ping c=8");
    assert_eq!(cell["rate_per_s"]["median"], 101_000.0);
    assert_eq!(cell["completed"], 404_000);
    let document = fs::read_to_string(folder.join("old/document.md")).expect("a document");
    assert!(document.starts_with("# A run of before\n"), "{document}");
    assert!(document.contains(" 101 k (100–102 k) | "), "{document}");
}

#[test]
fn every_output_for_programs_says_its_schema() {
    let folder = common::folder("flags-schema");
    let server = Recorder::new(OK);
    let url = server.url();
    fs::write(folder.join("a.log"), "head\n1000ms: 1\n1000ms: 2\n").expect("a log");
    let port = server.address.port().to_string();
    let outputs: [&[&str]; 6] = [
        &["load", "-c1", "-t1", "-n5", "--json", "-", &url],
        &["stats", "--warmup", "0", "--json", "a.log"],
        &["bench", "event", "-n", "1000", "--json"],
        &["bench", "client", &url, "100ms", "1", "1", "--json"],
        &[
            "bench",
            "io",
            "127.0.0.1",
            &port,
            "-c",
            "1",
            "--no-memory",
            "--json",
        ],
        &["fetch", "--json", "-o", "page", &url],
    ];
    for words in outputs {
        let said = json(&ended(&folder, 0, words));
        assert_eq!(said["schema"], 1, "{words:?}: {said}");
    }
}

/// Run directories as if the experiment had been run on several days: `rate` times as fast, on `commit`.
fn another_day(folder: &Path, day: u64, commit: &str, rate: f64, to: &str) {
    let (from, to) = (folder.join("runs/first"), folder.join(to));
    fs::create_dir_all(&to).expect("a folder");
    let read = |name: &str| fs::read_to_string(from.join(name)).expect("a file");
    let mut environment: Value = serde_json::from_str(&read("environment.json")).expect("JSON");
    environment["started_unix_ms"] = (1_700_000_000_000 + day * 86_400_000).into();
    environment["prony_commit"] = commit.into();
    environment["prony_sha256"] = "".into();
    let mut trial: Value = serde_json::from_str(read("trials.jsonl").trim()).expect("JSON");
    let load = &mut trial["load"];
    load["completed"] = ((1e6 * rate) as u64).into();
    load["window_ns"] = 1_000_000_000_u64.into();
    // Nobody was busy, so that nothing speaks against the figures.
    load["latency_ns"]["mean"] = 1_000.0.into();
    load["delay"] = Value::Null;
    load["threads_cpu"] = Value::Array(Vec::new());
    for count in load["counts"]["failed"]
        .as_object_mut()
        .expect("kinds")
        .values_mut()
    {
        *count = 0.into();
    }
    trial["cores"] = Value::Array(Vec::new());
    trial["histogram"] = Value::Null;
    fs::write(to.join("plan.json"), read("plan.json")).expect("a plan");
    fs::write(to.join("environment.json"), environment.to_string()).expect("a machine");
    fs::write(to.join("trials.jsonl"), format!("{trial}\n")).expect("a trial");
}

#[test]
fn log_ends_with_1_where_a_regression_is_claimed_and_takes_its_runs_from_where_it_is_told() {
    let folder = with_experiment("flags-log");
    rendered(&folder, &["run", "tiny.toml", "--out", "runs/first"]);
    for (day, rate) in (1..).zip([1.0, 1.01, 0.99, 1.0, 1.005, 0.995]) {
        another_day(&folder, day, "aaaa", rate, &format!("days/tiny-{day}"));
    }
    another_day(&folder, 9, "bbbb", 0.5, "elsewhere/tiny-1");
    let log = |code: i32, words: &[&str]| {
        let mut all = vec!["log", "tiny.toml", "--runs", "days"];
        all.extend(words);
        text(&ended(&folder, code, &all).stdout)
    };
    let same = log(0, &["--fail-on-regression"]);
    assert_eq!(same.matches("tiny-").count(), 6, "{same}");
    assert!(folder.join("days/history.jsonl").is_file());
    let slower = ["--run", "elsewhere/tiny-1", "--history", "other.jsonl"];
    let told = log(0, &slower);
    assert!(folder.join("other.jsonl").is_file(), "--history");
    assert_eq!(told.matches("tiny-").count(), 7, "--run: {told}");
    // Two runs of one name.
    assert_eq!(told.matches(": tiny-1  ").count(), 1, "{told}");
    assert_eq!(told.matches(": tiny-1 (2) ").count(), 1, "{told}");
    let mut strict = slower.to_vec();
    strict.push("--fail-on-regression");
    log(1, &strict);
    strict.push("--json");
    let said: Value = serde_json::from_str(&log(1, &strict)).expect("JSON");
    assert_eq!(said["schema"], 2);
    let newest = said["entries"]
        .as_array()
        .expect("entries")
        .last()
        .expect("one");
    assert_eq!(newest["differences"][0]["conclusion"], "lower", "{newest}");
}
