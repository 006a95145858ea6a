//! What a workload of an experiment sends where that is not one request alone: several requests, files of them, fields, rows,
//! credentials and cookies; what is checked before the load, and what the records say was sent.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use crate::common;

/// Heads of requests, as they came.
type Heads = Arc<Mutex<Vec<String>>>;

/// A server that keeps each head, leads from `/old` to `/new`, answers 404 to `/missing` and else 200, and sets a cookie. It lives as long as the test.
fn server() -> (String, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let heads = Heads::default();
    let kept = Arc::clone(&heads);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || answer(stream, &kept));
        }
    });
    (format!("http://{address}"), heads)
}

/// Answers all requests of a connection, until the other side ends it.
fn answer(stream: TcpStream, heads: &Mutex<Vec<String>>) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if !matches!(lines.read_line(&mut head), Ok(1..)) {
                return;
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length = length.and_then(|text| text.parse::<usize>().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        if lines.read_exact(&mut body).is_err() {
            return;
        }
        head.push_str(&String::from_utf8_lossy(&body));
        let status = match head.contains(" /missing ") {
            true => "404 Not Found",
            false => "200 OK",
        };
        let is_old = head.contains(" /old ");
        heads.lock().expect("no panic").push(head);
        let status = match is_old {
            true => "302 Found\r\nLocation: new",
            false => status,
        };
        let answer = format!("HTTP/1.1 {status}\r\nSet-Cookie: s=7\r\nContent-Length: 2\r\n\r\nok");
        if out.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// An experiment of one block on `url` with this workload.
fn experiment(folder: &Path, url: &str, workload: &str) {
    let text = format!(
        "title = \"T\"\n[run]\nblocks = 1\nduration = \"100ms\"\nwarmup = \"0ms\"\n[[subject]]\nname = \"s\"\nurl = \"{url}\"\n\
         [[workload]]\nname = \"w\"\nconnections = [2]\n{workload}\n"
    );
    fs::write(folder.join("e.toml"), text).expect("it is written");
}

/// The only trial of the run.
fn trial(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("out/trials.jsonl")).expect("trials");
    serde_json::from_str(text.lines().next().expect("a trial")).expect("JSON")
}

const RUN: [&str; 4] = ["run", "e.toml", "--out", "out"];

#[test]
fn several_requests_with_fields_and_credentials_are_sent_checked_and_told() {
    let folder = common::folder("sources-list");
    let (url, heads) = server();
    experiment(
        &folder,
        &url,
        "user = \"ann:{env:SOURCES_PASSWORD}\"\ncookies = true\nrequest = { headers = { X-All = \"{uuid}\" } }\n\
         requests = [{ path = \"/a?n={counter}\", weight = 3 }, { method = \"POST\", path = \"/b\", body = '{\"n\":{counter}}' }]",
    );
    let mut command = common::command(&folder, &RUN);
    command.env("SOURCES_PASSWORD", "secret");
    let refused = command.output().expect("prony runs");
    let said = common::text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("SOURCES_PASSWORD does not reach a trial"),
        "{said}"
    );

    command.env("PRONY_PASS_ENV", "SOURCES_PASSWORD");
    let output = command.output().expect("prony runs");
    let said = common::text(&output.stderr);
    let trial = trial(&folder);
    assert_eq!(trial["outcome"]["kind"], "measured", "{said}{trial}");
    let checks = trial["verification"].as_array().expect("checks");
    let extent = checks.iter().find(|check| check["name"] == "requests");
    assert_eq!(extent.expect("it is there")["detail"], "all of 2 requests");

    let heads = heads.lock().expect("no panic").clone();
    let count = |of: &str| heads.iter().filter(|head| head.contains(of)).count();
    assert!(count("GET /a?n=") > 0 && count("POST /b ") > 0, "{heads:?}");
    // `ann:secret`, in no record.
    assert_eq!(
        count("Authorization: Basic YW5uOnNlY3JldA==\r\n"),
        heads.len()
    );
    assert_eq!(count("X-All: "), heads.len());
    assert!(
        count("Cookie: s=7\r\n") > 0,
        "the second request of a connection has it"
    );
    let number = |head: &String| {
        let from = ["?n=", "\"n\":"]
            .iter()
            .find_map(|before| head.split(before).nth(1));
        let digits = from.unwrap_or_default().chars();
        digits.take_while(char::is_ascii_digit).collect::<String>()
    };
    let numbers: BTreeSet<String> = heads.iter().map(number).collect();
    assert_eq!(
        numbers.len(),
        heads.len(),
        "checked or measured, no number is sent twice"
    );

    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    let sent = "2 requests at random (3 × GET /a?n={counter}, 1 × POST /b), with credentials, with the cookies";
    assert!(document.contains(sent), "{document}");
    for file in ["plan.json", "trials.jsonl", "environment.json"] {
        let text = fs::read_to_string(folder.join("out").join(file)).expect("a record");
        assert!(
            !text.contains("secret") && !text.contains("YW5uOn"),
            "{file}"
        );
    }
}

#[test]
fn a_file_of_requests_is_named_by_its_digest_and_one_that_is_wrong_is_not_measured() {
    let folder = common::folder("sources-file");
    let (url, heads) = server();
    fs::write(folder.join("r.txt"), "/a/{id}\n/b/{id}\n").expect("it is written");
    fs::write(folder.join("d.csv"), "id\n1\n2\n3\n").expect("it is written");
    experiment(&folder, &url, "requests_file = \"r.txt\"\ndata = \"d.csv\"");
    let output = common::prony(&folder, &RUN);
    let said = common::text(&output.stderr);
    let measured = trial(&folder);
    assert_eq!(measured["outcome"]["kind"], "measured", "{said}{measured}");
    let mut paths: BTreeSet<String> = heads
        .lock()
        .expect("no panic")
        .iter()
        .map(|head| line(head))
        .collect();
    assert!(
        paths.remove("HEAD /a/1"),
        "whether it answers HEAD is checked, too"
    );
    let all = ["/a/1", "/a/2", "/a/3", "/b/1", "/b/2", "/b/3"].map(|path| format!("GET {path}"));
    assert!(paths.iter().all(|path| all.contains(path)), "{paths:?}");
    let plan = fs::read_to_string(folder.join("out/plan.json")).expect("a plan");
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let source = &plan["workloads"][0]["source"];
    assert_eq!(source["count"], 2, "{source}");
    // As `sha256sum` has it.
    let digest = "b3837bfa2cc6a810e2a64f6bd167910dee638e2d690730d8b8bbc8a259237fb5";
    assert_eq!(source["file"]["sha256"], digest, "{source}");

    // What was resumed would be another load under the same name.
    fs::write(folder.join("r.txt"), "/a/{id}\n/missing\n").expect("it is written");
    let resumed = common::prony(&folder, &["run", "e.toml", "--resume", "out"]);
    let said = common::text(&resumed.stderr);
    assert!(
        !resumed.status.success() && said.contains("other requests of `w`"),
        "{said}"
    );

    // A request of the file that is answered otherwise is named, and nothing is measured.
    fs::remove_dir_all(folder.join("out")).expect("the run is there");
    common::prony(&folder, &RUN);
    let failed = trial(&folder);
    assert_eq!(failed["outcome"]["kind"], "failed", "{failed}");
    let why = failed["outcome"].to_string();
    assert!(
        why.contains("status 200 expected for GET /missing, 404 came"),
        "{why}"
    );

    fs::write(folder.join("r.txt"), "/a/{name}\n").expect("it is written");
    let wrong = common::prony(&folder, &RUN);
    let said = common::text(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(
        said.contains("{name} is no field") && said.contains("e.toml:"),
        "{said}"
    );
}

/// `GET /a/1`.
fn line(head: &str) -> String {
    let line = head.lines().next().unwrap_or_default();
    line.trim_end_matches(" HTTP/1.1").to_owned()
}

#[test]
fn redirects_are_followed_before_the_load_and_in_it() {
    let folder = common::folder("sources-follow");
    let (url, heads) = server();
    let of = |follow: &str| format!("request = {{ path = \"/old\" }}\n{follow}");
    experiment(&folder, &url, &of("follow = 2"));
    let output = common::prony(&folder, &RUN);
    let said = common::text(&output.stderr);
    let followed = trial(&folder);
    assert_eq!(followed["outcome"]["kind"], "measured", "{said}{followed}");
    let load = &followed["load"];
    assert!(load["redirects"].is_object(), "{load}");
    assert_eq!(load["counts"]["unexpected_status"], 0, "{load}");
    let heads = heads.lock().expect("no panic").clone();
    let count = |of: &str| heads.iter().filter(|head| head.starts_with(of)).count();
    assert!(count("GET /new ") > 0 && count("GET /old ") >= count("GET /new "));
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    assert!(
        document.contains("GET /old, with redirects followed"),
        "{document}"
    );

    // Without it the redirect is the answer, which is none of those that are expected.
    experiment(&folder, &url, &of(""));
    fs::remove_dir_all(folder.join("out")).expect("it is there");
    common::prony(&folder, &RUN);
    assert_eq!(trial(&folder)["outcome"]["kind"], "failed");
}

/// Every file of a run, with what is in it.
fn records(folder: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let found = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => records(&path),
        path => {
            let text = fs::read(&path).expect("a file");
            vec![(
                path.display().to_string(),
                String::from_utf8_lossy(&text).into_owned(),
            )]
        }
    });
    found.collect()
}

#[test]
fn what_comes_from_the_environment_is_sent_and_is_in_no_record() {
    let folder = common::folder("sources-secret");
    let (url, heads) = server();
    let path = "/a?key={env:SOURCES_KEY}";
    fs::write(folder.join("r.txt"), format!("{path}\n/b\n")).expect("it is written");
    let step = format!("[[step]]\nname = \"one\"\npath = \"{path}\"\n");
    fs::write(folder.join("s.toml"), step).expect("it is written");
    let list = format!("requests = [{{ path = \"{path}\" }}, {{ path = \"/b\" }}]");
    let file = "requests_file = \"r.txt\"".to_owned();
    let users = "scenario = \"s.toml\"".to_owned();
    // With an answer that is not the one expected, the message names the request.
    let wrong = [&list, &file].map(|of| format!("{of}\nexpect = {{ status = 201 }}"));
    for (workload, kind) in [
        (&list, "measured"),
        (&file, "measured"),
        (&users, "measured"),
        (&wrong[0], "failed"),
        (&wrong[1], "failed"),
    ] {
        experiment(&folder, &url, workload);
        let mut command = common::command(&folder, &RUN);
        command.env("SOURCES_KEY", "sesame77");
        command.env("PRONY_PASS_ENV", "SOURCES_KEY");
        let output = command.output().expect("prony runs");
        let said = common::text(&output.stdout) + &common::text(&output.stderr);
        let ended = trial(&folder);
        assert_eq!(ended["outcome"]["kind"], kind, "{said}{ended}");
        let heads = std::mem::take(&mut *heads.lock().expect("no panic"));
        let is_sent = |head: &String| head.starts_with("GET /a?key=sesame77 ");
        assert!(heads.iter().any(is_sent), "{workload}: {heads:?}");
        assert!(!said.contains("sesame77"), "{workload}: {said}");
        for (name, text) in records(&folder.join("out")) {
            assert!(!text.contains("sesame77"), "{workload}: {name}: {text}");
        }
        if kind == "failed" {
            let why = ended["outcome"].to_string();
            let named = "status 201 expected for GET /a?key={env:SOURCES_KEY}, 200 came";
            assert!(why.contains(named), "{workload}: {why}");
        }
        fs::remove_dir_all(folder.join("out")).expect("it is there");
    }
}
