//! What `prony load` writes beside its summary, what is required of it, and the commands of other tools.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Output, Stdio};
use std::thread;

use crate::common::{self, text};
use serde_json::Value;

/// A server that answers every request with `status`; the URL of it.
fn server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let serve = move |mut stream: TcpStream| {
        let mut read = [0; 4_096];
        while let Ok(1..) = stream.read(&mut read) {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    format!("http://{address}/x")
}

fn load(folder: &Path, words: &[&str], url: &str) -> Output {
    common::prony(folder, &[&["load", "-c2", "-t1"], words, &[url]].concat())
}

fn number(of: &Value, path: &str) -> u64 {
    let found = of.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{path} of {of}"))
}

#[test]
fn every_output_has_the_same_counts() {
    let (folder, url) = (common::folder("load-outputs"), server("200 OK"));
    let words = "load -c2 -t1 -R 300 -d 10m --json a.json --json-lines a.jsonl --hgrm a.hgrm --hdr-log a.hlog --html a.html \
                 --metrics 127.0.0.1:0";
    let words: Vec<&str> = words.split_whitespace().chain([&*url]).collect();
    let mut run = common::command(&folder, &words);
    let mut run = run
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("prony runs");
    let mut said = BufReader::new(run.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    let address = line
        .trim()
        .strip_prefix("prony: metrics at http://")
        .expect("where");
    let address = address.strip_suffix("/metrics").expect("where");
    // One that never asks, and one that does.
    let hanging = TcpStream::connect(address).expect("a listener");
    let mut scrape = TcpStream::connect(address).expect("a listener");
    scrape
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("written");
    let mut metrics = String::new();
    scrape.read_to_string(&mut metrics).expect("an answer");
    assert!(
        metrics.contains("\nprony_requests_completed_total ") && metrics.ends_with("# EOF\n"),
        "{metrics}"
    );
    // Two seconds are written before it is ended, however long they take.
    let is_written = || {
        let lines = fs::read_to_string(folder.join("a.jsonl")).unwrap_or_default();
        lines.lines().count() >= 2
    };
    while !is_written() {
        assert!(run.try_wait().expect("a state").is_none(), "it ended early");
        thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("interrupted");
    assert_eq!(run.wait().expect("an end").code(), Some(130));
    drop(hanging);

    let read = |name: &str| fs::read_to_string(folder.join(name)).expect(name);
    let report: Value = serde_json::from_str(&read("a.json")).expect("JSON");
    let (completed, count) = (
        number(&report, "/completed"),
        number(&report, "/latency_ns/count"),
    );
    assert!(completed > 0);
    let lines = read("a.jsonl");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let (last, seconds) = lines.split_last().expect("lines");
    assert_eq!(last["report"], report);
    let sum = |path: &str| seconds.iter().map(|line| number(line, path)).sum::<u64>();
    assert_eq!(
        (sum("/completed"), sum("/latency_ns/count")),
        (completed, count)
    );
    assert!(seconds.iter().all(|line| line["schema"] == 1));
    assert_eq!(number(&seconds[1], "/second"), 1);
    assert!(read("a.hgrm").contains(&format!("Total count    = {count:12}]")));
    let log = read("a.hlog");
    let intervals = log
        .lines()
        .filter(|line| !line.starts_with(['#', '"']))
        .count();
    assert_eq!(intervals, seconds.len());
    let page = read("a.html");
    assert!(page.contains(&format!("<dt>requests</dt><dd>{completed}</dd>")));
}

#[test]
fn a_full_disk_ends_no_run_and_what_was_measured_is_printed() {
    let (folder, url) = (common::folder("load-full"), server("200 OK"));
    for flag in [
        "--json",
        "--json-lines",
        "--hgrm",
        "--hdr-log",
        "--html",
        "--trace",
    ] {
        let output = load(
            &folder,
            &["-n20", flag, "/dev/full", "--seconds", "s.log"],
            &url,
        );
        let (said, printed) = (text(&output.stderr), text(&output.stdout));
        assert!(
            printed.contains("sent 20 = completed 20 "),
            "{flag}: {printed}"
        );
        assert!(folder.join("s.log").exists(), "{flag}");
        assert!(
            said.contains("prony: cannot write /dev/full: No space left on device"),
            "{flag}: {said}"
        );
        assert_eq!(output.status.code(), Some(1), "{flag}");
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("its address").to_string();
    let output = load(&folder, &["-n20", "--metrics", &taken], &url);
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!(
            "metrics cannot be offered at {taken} (--metrics): "
        )),
        "{said}"
    );
    assert!(output.stdout.is_empty(), "nothing was run");
    let output = load(&folder, &["-n20", "--html", "none/x.html"], &url);
    assert!(text(&output.stderr).contains("cannot write none/x.html"));
    assert!(output.stdout.is_empty(), "nothing was run");
}

#[test]
fn a_run_that_came_to_nothing_left_empty_files_and_emptied_older_ones() {
    let folder = common::folder("load-nothing");
    let url = format!("http://127.0.0.1:{}/", common::free_port());
    fs::write(folder.join("old.jsonl"), "of yesterday").expect("a file");
    let words = [
        "--html",
        "load.html",
        "--json-lines",
        "old.jsonl",
        "--hdr-log",
        "load.hlog",
    ];
    let output = load(&folder, &[&["-n20"], &words[..]].concat(), &url);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(!folder.join("load.html").exists());
    assert!(!folder.join("load.hlog").exists());
    let old = fs::read_to_string(folder.join("old.jsonl")).expect("it is there");
    assert_eq!(old, "of yesterday");
    let output = load(
        &folder,
        &[&["-n20"], &words[..]].concat(),
        &server("200 OK"),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let new = fs::read_to_string(folder.join("old.jsonl")).expect("it is there");
    assert!(new.starts_with('{'), "{new}");
    assert!(folder.join("load.html").exists());
    assert!(folder.join("load.hlog").exists());
}

#[test]
fn a_requirement_that_is_missed_is_named_and_ends_with_1() {
    let (folder, url) = (common::folder("load-require"), server("200 OK"));
    let output = load(
        &folder,
        &[
            "-n50",
            "--json",
            "a.json",
            "--require",
            "p99 < 10s",
            "rate > 0.1",
            "errors<=0",
        ],
        &url,
    );
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert_eq!(printed.matches("Required:     ").count(), 3, "{printed}");
    assert!(printed.contains("Required:     errors <= 0%: held: 0% is exactly the bound; no interval: it takes ten whole seconds"), "{printed}");
    let report: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("a.json")).expect("a file"))
            .expect("JSON");
    assert_eq!(report["requirements"][1]["held"], true);
    let output = load(
        &folder,
        &["-n50", "--require", "p99 < 1ns", "--require", "max < 10s"],
        &url,
    );
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("Required:     p99 < 1ns: missed: ")
            && printed.contains("above the bound"),
        "{printed}"
    );
    assert!(printed.contains("max < 10s: held: "), "{printed}");
    // How many may fail is then said by the requirement.
    let failing = server("500 Oops");
    let words = ["-n50", "--require", "errors <= 99.9%"];
    assert_eq!(load(&folder, &words, &failing).status.code(), Some(1));
    assert_eq!(
        load(&folder, &["-n50", "--require", "errors > 50%"], &failing)
            .status
            .code(),
        Some(0)
    );
    let wrong = text(&load(&folder, &["--require", "latency < 1"], &url).stderr);
    assert!(
        wrong.contains("`latency` is no figure: write a figure, < or >, and a bound"),
        "{wrong}"
    );
}

#[test]
fn a_run_ends_early_where_its_condition_holds() {
    let (folder, failing) = (common::folder("load-stop"), server("500 Oops"));
    let output = load(
        &folder,
        &[
            "-R100",
            "-d10m",
            "--stop-on",
            "errors > 1%",
            "--json",
            "a.json",
        ],
        &failing,
    );
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("Ended early:  stopped after ")
            && printed.contains("errors > 1% (it was 100%)"),
        "{printed}"
    );
    let report: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("a.json")).expect("a file"))
            .expect("JSON");
    assert!(number(&report, "/window_ns") < 600_000_000_000);
    assert!(
        report["stopped"]
            .as_str()
            .is_some_and(|why| why.contains("errors > 1%")),
        "{report}"
    );
}

#[test]
fn a_command_of_another_tool_is_printed_as_ours_and_run() {
    let (folder, url) = (common::folder("load-from"), server("200 OK"));
    let run = |words: &[&str]| common::prony(&folder, &[&["load"], words].concat());
    let command = format!("hey -n 30 -c 3 -H 'X-One: 1' {url}");
    let output = run(&["--from", &command, "--seconds", "s.log"]);
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!(
            "prony: the same here: prony load -t 2 -c 3 -n 30 --timeout 20s -H 'Content-Type: text/html' -H 'X-One: 1' -H 'User-Agent: hey/0.0.1' -H 'Accept-Encoding: gzip' --follow=9 {url}\n"
        )),
        "{said}"
    );
    assert!(text(&output.stdout).contains("sent 30 = completed 30 "));
    assert_eq!(output.status.code(), Some(0));
    let output = run(&["--from", "wrk2 -U -R 1 http://127.0.0.1/"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("prony: --from wrk2: `-U` cannot be translated: "));
    let output = run(&["-m", "POST", &url]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    let hint = format!("\nor: prony load --from 'hey -m POST {url}'\n");
    assert!(
        said.starts_with("prony: this looks like hey, ab or oha. Run: prony load -t 2 -c 50 ")
            && said.ends_with(&hint),
        "{said}"
    );
}

#[test]
fn one_connection_is_driven_by_one_thread_unless_more_are_asked_for() {
    let (folder, url) = (common::folder("load-alone"), server("200 OK"));
    let load = |words: &[&str]| {
        let words = [&["load", "-n3", "-c1"], words, &[&url]].concat();
        common::prony(&folder, &words)
    };
    let alone = load(&[]);
    assert_eq!(alone.status.code(), Some(0), "{}", text(&alone.stderr));
    let shown = text(&alone.stdout);
    assert!(shown.contains("1 thread and 1 connection"), "{shown}");
    let crowded = load(&["-t2"]);
    assert_eq!(crowded.status.code(), Some(2));
    let said = text(&crowded.stderr);
    let why = "1 connection cannot be shared out over 2 threads";
    assert!(said.contains(why), "{said}");
}

/// What the run said and every file in `folder` have of `word`.
fn places_of(word: &str, folder: &Path, output: &Output) -> Vec<String> {
    let said = [("stdout", &output.stdout), ("stderr", &output.stderr)];
    let said = said.map(|(name, bytes)| (name.to_owned(), text(bytes)));
    let files = fs::read_dir(folder).expect("a folder").flatten();
    let files = files.map(|entry| {
        let bytes = fs::read(entry.path()).expect("a file");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, String::from_utf8_lossy(&bytes).into_owned())
    });
    let all = said.into_iter().chain(files);
    let has = all.filter(|(_, of)| of.contains(word));
    has.map(|(name, _)| name).collect()
}

#[test]
fn what_comes_from_the_environment_is_in_the_request_and_in_no_output() {
    let folder = common::folder("load-secret");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    let (seen, requests) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut read = [0; 4_096];
            while let Ok(count @ 1..) = stream.read(&mut read) {
                seen.send(text(&read[..count])).expect("a listener");
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                stream.write_all(answer).expect("it is read");
            }
        }
    });
    let outputs = "load -c1 -n3 --json a.json --json-lines a.jsonl --html a.html --hdr-log a.hlog --seconds a.txt --hgrm a.hgrm \
                   --trace a.csv";
    let url = format!("http://{address}/a?key={{env:LOAD_SECRET}}");
    let words: Vec<&str> = outputs.split_whitespace().chain([&*url]).collect();
    let mut command = common::command(&folder, &words);
    let output = command.env("LOAD_SECRET", "sesame77").output();
    let output = output.expect("prony runs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let sent = requests.recv().expect("a request");
    assert!(sent.starts_with("GET /a?key=sesame77 "), "{sent}");
    assert_eq!(places_of("sesame77", &folder, &output), [""; 0]);
    let mut written = places_of("{env:LOAD_SECRET}", &folder, &output);
    written.sort();
    let expected = ["a.hlog", "a.html", "a.json", "a.jsonl", "a.txt", "stdout"];
    assert_eq!(written, expected);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_is_refused_shows_no_credentials_and_nothing_of_the_environment() {
    let folder = common::folder("load-refused");
    let scenario =
        "url = \"http://127.0.0.1/{env:LOAD_SECRET}\"\n[[step]]\nname = \"a\"\npath = \"/\"\n";
    fs::write(folder.join("s.toml"), scenario).expect("written");
    fs::write(folder.join("r.txt"), "/a?{env:LOAD_SECRET}\n").expect("written");
    for words in [
        &["http://u:sesame77@127.0.0.1:1/"][..],
        &["http://u:sesame77/x@127.0.0.1:1/"],
        &["u:sesame77@127.0.0.1:1"],
        &["ftp://u:sesame77@127.0.0.1/"],
        &[
            "--proxy",
            "http://u:sesame77@127.0.0.1:1",
            "http://127.0.0.1:1/",
        ],
        &[
            "--proxy",
            "https://u:sesame77@127.0.0.1:1",
            "http://127.0.0.1:1/",
        ],
        &["http://127.0.0.1:1/{env:LOAD_SECRET}"],
        &["http://127.0.0.1:{env:LOAD_SECRET}/"],
        &["http://127.0.0.1:1/", "http://127.0.0.2:1/{env:LOAD_WORD}"],
        &["-H", "{env:LOAD_SECRET}", "http://127.0.0.1:1/"],
        &["--user", "sesame77", "http://127.0.0.1:1/"],
        &["--scenario", "s.toml"],
        &["--requests-file", "r.txt", "http://127.0.0.1:1"],
    ] {
        let mut command = common::command(&folder, &[&["load", "-n1"], words].concat());
        command.env("LOAD_SECRET", "open sesame77");
        let output = command.env("LOAD_WORD", "sesame77").output();
        let output = output.expect("prony runs");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(!said.contains("sesame77"), "{words:?}: {said}");
    }
    fs::remove_dir_all(folder).expect("removed");
}
