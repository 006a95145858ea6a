//! `prony log`: runs of a small experiment, their log, and what its author does with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{self, PRONY, prony, text};
use serde_json::Value;

const TINY: &str = r#"
title = "A tiny log"

[run]
blocks = 1
duration = "300ms"
warmup = "20ms"

[[subject]]
cmd = "PRONY serve --port {port}"
name = "serve"

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [1]
"#;

/// What it printed; it must have ended well.
fn done(folder: &Path, words: &[&str]) -> String {
    let output = prony(folder, words);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{words:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// What it said of what is wrong.
fn refused(folder: &Path, words: &[&str]) -> String {
    let output = prony(folder, words);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{words:?}: {}",
        text(&output.stdout)
    );
    text(&output.stderr)
}

fn with_experiment(name: &str) -> PathBuf {
    let folder = common::folder(name);
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    folder
}

fn entries(folder: &Path) -> Vec<Value> {
    let log: Value =
        serde_json::from_str(&done(folder, &["log", "tiny.toml", "--json"])).expect("JSON");
    log["entries"].as_array().expect("entries").clone()
}

#[test]
fn three_runs_are_three_entries_and_the_authors_words_stay() {
    let folder = with_experiment("log");
    let log = ["log", "tiny.toml", "--document", "log.md"];
    common::rendered(&prony(&folder, &["run", "tiny.toml"]));
    assert_eq!(done(&folder, &log), "log.md\n");
    let path = folder.join("log.md");
    let first = fs::read_to_string(&path).expect("a document");
    assert!(
        first.starts_with("# Performance log: A tiny log\n"),
        "{first}"
    );
    let mine = format!(
        "{}\nIt is the *first* day.\n",
        first.replace("# Performance log", "# My log")
    );
    fs::write(&path, &mine).expect("my words");
    common::rendered(&prony(&folder, &["run", "tiny.toml"]));
    common::rendered(&prony(&folder, &["run", "tiny.toml"]));
    done(&folder, &log);
    let third = fs::read_to_string(&path).expect("a document");
    assert!(third.starts_with("# My log: A tiny log\n"), "{third}");
    let at = |what: &str| {
        third
            .find(what)
            .unwrap_or_else(|| panic!("{what} in {third}"))
    };
    assert!(at("tiny-001 -->") < at("It is the *first* day.\n"));
    assert!(at("It is the *first* day.\n") < at("tiny-002 -->\n## "));
    assert!(at("tiny-002 -->\n## ") < at("tiny-003 -->\n## "));
    assert!(at("| errors") < at("Distribution of latency"));
    done(&folder, &log);
    assert_eq!(
        fs::read_to_string(&path).expect("a document"),
        third,
        "the same again"
    );

    let table = done(&folder, &["log", "tiny.toml"]);
    assert!(table.contains("tiny-003"), "{table}");
    // On a busy machine the generator is the limit, and nothing is left to compare.
    let said = ["the same state again", "no figure to compare"];
    assert!(said.iter().any(|said| table.contains(said)), "{table}");
    percentiles_rise(&entries(&folder));
    a_run_stands_against_its_log(&folder);
    the_history_is_made_again(&folder, &third);
    fs::remove_dir_all(&folder).expect("the folder goes");
}

/// The percentiles of each entry rise, and the slowest request is at their end.
fn percentiles_rise(entries: &[Value]) {
    assert_eq!(entries.len(), 3);
    for entry in entries {
        let latency = &entry["entry"]["sections"][0]["cells"][0]["latency"];
        let percentiles = latency["percentiles"].as_array().expect("percentiles");
        let mut all: Vec<u64> = percentiles.iter().filter_map(|of| of[1].as_u64()).collect();
        assert!(all.len() >= 7, "{latency}");
        all.extend(latency["max"].as_u64());
        assert!(all.is_sorted(), "{latency}");
    }
}

/// Nothing differs between the states of the three, and the log has two others.
fn a_run_stands_against_its_log(folder: &Path) {
    let words = ["compare", "runs/tiny-003", "--log", "tiny.toml"];
    let output = prony(folder, &words);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // 3: a busy machine left no figure to be compared.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{err}");
    assert!(err.contains("tiny-003 beside 20"), "{err}");
    assert!(
        err.contains("-tiny-002, by 1 further entry of tiny.toml"),
        "{err}"
    );
    let said = ["No difference is claimed", "could not be compared"];
    assert!(said.iter().any(|said| out.contains(said)), "{out}");
    for (words, why) in [
        (
            &["compare", "runs/tiny-001", "--log", "tiny.toml"][..],
            "has no entry before tiny-001",
        ),
        (
            &[
                "compare",
                "runs/tiny-001",
                "runs/tiny-002",
                "--log",
                "tiny.toml",
            ],
            "takes one run directory",
        ),
        (
            &["compare", "runs/tiny-001", "--log", "other.toml"],
            "other.toml: no such experiment",
        ),
        (
            &["compare", "runs/tiny-001", "--history", "h.jsonl"],
            "--log",
        ),
    ] {
        let said = refused(folder, words);
        assert!(said.contains(why), "{why}: {said}");
    }
}

fn the_history_is_made_again(folder: &Path, document: &str) {
    let before = entries(folder);
    fs::remove_file(folder.join("runs/history.jsonl")).expect("a history");
    assert_eq!(entries(folder), before, "deleting it loses nothing");
    fs::remove_dir_all(folder.join("runs/tiny-002")).expect("a run directory");
    for words in [
        &["log", "tiny.toml"] as &[_],
        &["log", "tiny.toml", "--rebuild"],
    ] {
        let table = done(folder, words);
        let gone: Vec<&str> = table.lines().filter(|line| line.contains("gone")).collect();
        assert!(gone.len() == 1 && gone[0].contains("tiny-002"), "{table}");
    }
    done(folder, &["log", "tiny.toml", "--document", "log.md"]);
    let now = fs::read_to_string(folder.join("log.md")).expect("a document");
    let of_second = |text: &str| text.matches("tiny-002/hello").count();
    assert_eq!(
        of_second(&now),
        of_second(document),
        "what is gone stays in the document"
    );

    a_run_that_moved_is_the_same_entry(folder);
    fs::write(folder.join("runs/history.jsonl"), b"no UTF-8 \xff").expect("damage");
    let said = refused(folder, &["log", "tiny.toml"]);
    assert!(said.contains("--rebuild"), "{said}");
    done(folder, &["log", "tiny.toml", "--rebuild"]);
    assert_eq!(entries(folder).len(), 2);
    assert!(folder.join("runs/history.jsonl.old").exists());
}

fn a_run_that_moved_is_the_same_entry(folder: &Path) {
    let ids = |entries: &[Value]| -> Vec<Value> {
        entries
            .iter()
            .map(|entry| entry["entry"]["id"].clone())
            .collect()
    };
    let before = ids(&entries(folder));
    fs::rename(folder.join("runs/tiny-003"), folder.join("runs/best")).expect("a name");
    let now = entries(folder);
    assert_eq!(ids(&now), before);
    assert_eq!(
        (&now[2]["entry"]["run"], &now[2]["entry"]["gone"]),
        (&"best".into(), &false.into())
    );
    let copy = folder.join("runs/copy");
    fs::create_dir(&copy).expect("a folder");
    for name in ["plan.json", "environment.json", "trials.jsonl"] {
        fs::copy(folder.join("runs/best").join(name), copy.join(name)).expect("a copy");
    }
    let output = prony(folder, &["log", "tiny.toml"]);
    let said = text(&output.stderr);
    assert!(said.contains("runs/copy is a copy of "), "{said}");
    assert_eq!(ids(&entries(folder)), before);
    fs::remove_dir_all(&copy).expect("the copy goes");
    one_that_cannot_be_read_is_left_out(folder);
}

fn one_that_cannot_be_read_is_left_out(folder: &Path) {
    let broken = folder.join("runs/broken");
    fs::create_dir(&broken).expect("a folder");
    fs::copy(folder.join("runs/best/plan.json"), broken.join("plan.json")).expect("a plan");
    let output = prony(folder, &["log", "tiny.toml"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("left out: cannot read runs/broken/environment.json"),
        "{said}"
    );
    fs::remove_dir_all(&broken).expect("the folder goes");
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let folder = with_experiment("log-wrong");
    let said = refused(&folder, &["log", "none.toml"]);
    assert_eq!(said, "prony: none.toml: no such experiment\n");
    let said = refused(&folder, &["log", "tiny.toml"]);
    assert!(
        said.contains("no run of tiny.toml in runs") && said.contains("prony run tiny.toml"),
        "{said}"
    );
    common::rendered(&prony(&folder, &["run", "tiny.toml"]));
    let log = ["log", "tiny.toml", "--document", "log.md"];
    let path = folder.join("log.md");
    let damaged = "Mine.\n\n<!-- prony:begin a -->\nno end\n";
    fs::write(&path, damaged).expect("a document");
    let said = refused(&folder, &log);
    assert!(
        said.contains("log.md:3: `a` begins here and does not end"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).expect("a document"), damaged);
    fs::write(&path, b"Mine \xff\n").expect("a document");
    let said = refused(&folder, &log);
    assert!(said.contains("not UTF-8 from byte 5 on"), "{said}");
    fs::write(
        folder.join("runs/tiny-001/trials.jsonl"),
        "{\"schema\":1}\n{}\n",
    )
    .expect("damage");
    let output = prony(&folder, &["log", "tiny.toml", "--rebuild"]);
    assert!(
        text(&output.stderr).contains("left out"),
        "{}",
        text(&output.stderr)
    );
    fs::remove_dir_all(&folder).expect("the folder goes");
}

const SERVER: &str = r#"
name = "tiny"
language = "any"
role = "server"
summary = "Prony's own"
endpoints = ["/hello"]
needs = { commands = [] }
start = { cmd = ["PRONY", "serve", "--port", "{port}"] }
ready = { port = true, timeout_s = 20 }
stop = { signal = "TERM", timeout_s = 5 }
version = { cmd = "echo TAG" }
"#;

/// A repository whose folder `servers/tiny` is that of `v1`, a day later of `v2`, and is something else now.
fn two_states(folder: &Path) {
    common::git(folder, &["init", "--quiet"]);
    let subject = folder.join("servers/tiny");
    fs::create_dir_all(&subject).expect("a folder");
    for (tag, day) in [
        ("v1", "2026-01-01T00:00:00Z"),
        ("v2", "2026-01-02T00:00:00Z"),
    ] {
        let text = SERVER.replace("PRONY", PRONY).replace("TAG", tag);
        fs::write(subject.join("subject.toml"), text).expect("a subject");
        common::git(folder, &["add", "servers"]);
        let committed = Command::new("git")
            .args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@localhost",
                "commit",
                "--quiet",
                "-m",
                tag,
            ])
            .current_dir(folder)
            .env("GIT_COMMITTER_DATE", day)
            .status();
        assert!(committed.is_ok_and(|status| status.success()));
        common::git(folder, &["tag", tag]);
    }
    let now = SERVER.replace("PRONY", PRONY).replace("TAG", "now");
    fs::write(subject.join("subject.toml"), now).expect("a subject");
    let (before, after) = TINY.split_once("cmd = ").expect("a command");
    let (_, after) = after.split_once("name = \"serve\"").expect("its name");
    let revised = format!("{before}ref = \"./servers/tiny\"{after}");
    fs::write(folder.join("tiny.toml"), revised).expect("an experiment");
}

#[test]
fn revisions_are_measured_and_stand_in_the_order_of_their_commits() {
    let Some(_) = prony_testkit::need("git") else {
        return;
    };
    let folder = common::folder("log-revisions");
    two_states(&folder);
    let asked = [
        "log",
        "tiny.toml",
        "--revisions",
        "./servers/tiny@v2,v1",
        "--rounds",
        "2",
        "--json",
    ];
    let seen: Value = serde_json::from_str(&done(&folder, &asked)).expect("JSON");
    let of = |entry: &Value| {
        let entry = &entry["entry"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [
            &entry["run"],
            &entry["revised"]["revision"],
            &entry["subjects"][0]["value"],
        ]
        .map(word)
    };
    let entries: Vec<_> = seen["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(of)
        .collect();
    assert_eq!(
        entries,
        [
            ["tiny-v1-1", "v1", "v1"],
            ["tiny-v1-2", "v1", "v1"],
            ["tiny-v2-1", "v2", "v2"],
            ["tiny-v2-2", "v2", "v2"],
        ]
    );
    let trials = || fs::read(folder.join("runs/tiny-v1-1/trials.jsonl")).expect("trials");
    let before = trials();
    let document = ["--document", "log.md"];
    done(&folder, &[&asked[..6], &document].concat());
    assert_eq!(before, trials(), "what is there is not measured again");
    let log = fs::read_to_string(folder.join("log.md")).expect("a document");
    let commit = &common::git(&folder, &["rev-parse", "v1"])[..12];
    assert!(
        log.contains(&format!(
            "* **Revision:** any/tiny as it was at `{commit}` (v1); measured "
        )),
        "{log}"
    );
    assert!(log.contains("## 2026-01-02 00:00 UTC: tiny-v2-1"), "{log}");
    let changed = log.split("tiny-v2-1 -->").nth(1).expect("an entry");
    let commit = &common::git(&folder, &["rev-parse", "v2"])[..12];
    assert!(
        changed.contains(&format!("| `{commit}` | v2 ")),
        "{changed}"
    );
    assert!(!changed.contains("` | v1 "), "{changed}");
    assert!(log.contains("](log/over-time-hello.svg)"), "{log}");
    assert!(folder.join("log/over-time-hello.svg").is_file());

    // What lies in the folder now is not what was measured.
    let bundle = prony(&folder, &["bundle", "runs/tiny-v1-1", "--out", "v1.prony"]);
    let said = text(&bundle.stdout) + &text(&bundle.stderr);
    assert_eq!(bundle.status.code(), Some(0), "{said}");
    assert!(
        said.contains("any/tiny was measured as it was at v1"),
        "{said}"
    );
    assert!(said.contains("sources: not packed"), "{said}");

    for (revisions, said) in [
        ("./servers/tiny@v9", "has no revision `v9`"),
        (
            "./servers/other@v1",
            "has no subject `./servers/other`; it has ./servers/tiny",
        ),
        ("./servers/tiny", "a subject and its revisions are needed"),
        ("./servers/tiny@v1,v1", "`v1` stands there twice"),
        ("./servers/tiny@v1,,v2", "a revision is empty"),
    ] {
        let error = refused(&folder, &["log", "tiny.toml", "--revisions", revisions]);
        assert!(error.contains(said), "{revisions}: {error}");
    }
    let error = refused(&folder, &["log", "tiny.toml", "--rounds", "2"]);
    assert!(error.contains("--revisions"), "{error}");
    fs::remove_dir_all(&folder).expect("the folder goes");
}
