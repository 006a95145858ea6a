//! `prony run` with programs that run to their end: shell scripts in a folder of their
//! own, and a command that prints lines of another kind.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common;

const SUBJECT: &str = r#"
name = "counter"
language = "shell"
role = "program"
summary = "Counts in a shell"

[program]
cmd = ["{build}/count-{build_kind}", "--work", "{work}", "--count", "{count}", "--threads", "{threads}"]
works = ["counting"]

[program.not_applicable]
flying = "a shell has no wings"

[variants]
build_kind = ["plain", "fancy"]

[build]
cmd = "cp count.sh {build}/count-plain && cp count.sh {build}/count-fancy"
inputs = ["count.sh"]

[version]
cmd = "echo counter 1"
"#;

/// Prints what it was told to do and by whom, as a checksum.
const SCRIPT: &str = r#"#!/bin/sh
# --work W --count N --threads T [--loud yes]
printf '{"measure":"counts","threads":%s,"count":%s,"elapsed_ns":1000000,"checksum":"%s %s %s %s"}\n' \
    "$6" "$(($4 * $6))" "${0##*-}" "$2" "$ONLY" "$8"
"#;

const EXPERIMENT: &str = r#"
title = "Counting"

[run]
blocks = 2

[run.quick]
blocks = 1
count = [100]
count_max = 50

[[subject]]
ref = "./counter"

[[workload]]
name = "count"
work = "counting"
count = [10, 100, 1000]
args = ["--loud", "yes"]
timeout_s = 30

[[workload]]
work = "flying"
count = 5

[[setting]]
name = "build_kind"
values = ["plain", "fancy"]

[[setting]]
name = "threads"
values = [1, 3]

[[setting]]
name = "allocator"
values = ["std", "other"]
env_of = { other = { ONLY = "only-{value}" } }
"#;

/// The lines of a benchmark that prints no JSON, for one thread and for eight.
const ORIGINAL: &str = "#!/bin/sh
echo starting
echo \"$0 single threaded ran for 467,242 µs with 6,553,600 peak memory usage 10,701,092 coroutines/s\"
";

fn prony(folder: &Path, words: &[&str]) -> Output {
    common::prony(folder, &[&["run"], words].concat())
}

fn executable(path: &Path, text: &str) {
    prony_testkit::write_program(path, text);
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

fn trials(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("trials.jsonl")).expect("the records");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a trial"))
        .collect()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn programs_are_built_run_in_every_setting_and_recorded() {
    let folder = common::folder("programs");
    fs::create_dir(folder.join("counter")).expect("a folder");
    fs::write(folder.join("counter/subject.toml"), SUBJECT).expect("a subject");
    executable(&folder.join("counter/count.sh"), SCRIPT);
    fs::write(folder.join("count.toml"), EXPERIMENT).expect("an experiment");
    let output = prony(&folder, &["count.toml", "--out", "out"]);
    let all = trials(&folder.join("out"));
    assert_eq!(all.len(), 2 * 3 * 8, "{}", said(&output));
    for trial in &all {
        assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
        let line = &trial["program"]["lines"][0];
        let cell = trial["cell"].as_str().expect("an id");
        let (kind, only) = (
            if cell.contains("build_kind=fancy") {
                "fancy"
            } else {
                "plain"
            },
            if cell.contains("allocator=other") {
                "only-other"
            } else {
                ""
            },
        );
        assert_eq!(
            line["checksum"],
            format!("{kind} counting {only} yes"),
            "{cell}"
        );
        assert!(
            trial["program"]["peak_bytes"].as_u64() > Some(100_000),
            "{trial}"
        );
        assert!(
            trial["program"]["wall_ns"].as_u64() > Some(100_000),
            "{trial}"
        );
    }
    let plan = json(&folder.join("out/plan.json"));
    assert_eq!(plan["not_run"][0]["what"], "shell/counter flying");
    assert_eq!(
        plan["not_run"][0]["reason"],
        "does not do this work: a shell has no wings"
    );
    assert!(
        said(&output).contains("a shell has no wings"),
        "{}",
        said(&output)
    );
    assert!(folder.join("out/document.md").exists(), "{}", said(&output));
    // A second build finds the first one; a quick run does less of it.
    let quick = prony(&folder, &["count.toml", "--quick", "--out", "quick"]);
    let all = trials(&folder.join("quick"));
    assert_eq!(all.len(), 8, "{}", said(&quick));
    assert!(
        all.iter()
            .all(|trial| trial["cell"].as_str().is_some_and(|c| c.contains(" n=50 ")))
    );
    let only = [
        "count.toml",
        "--only",
        "*n=10 *threads=3",
        "--blocks",
        "1",
        "--out",
        "only",
    ];
    let only = prony(&folder, &only);
    assert_eq!(trials(&folder.join("only")).len(), 4, "{}", said(&only));
}

#[test]
fn a_benchmark_that_prints_no_json_is_read_by_its_pattern() {
    let folder = common::folder("pattern");
    executable(&folder.join("ichor_coroutine_benchmark"), ORIGINAL);
    let text = r#"
        [run]
        blocks = 1
        [[subject]]
        cmd = "./ichor_coroutine_benchmark"
        name = "ichor"
        works = ["coroutine"]
        output = 'ran for (?<elapsed_us>[\d,]+) µs .* (?<rate>[\d,]+) (?<measure>\w+)/s'
        [[workload]]
        work = "coroutine"
        count = 5000000
        [[setting]]
        name = "threads"
        values = [1, 2]
    "#;
    fs::write(folder.join("e.toml"), text).expect("an experiment");
    let output = prony(&folder, &["e.toml", "--out", "out"]);
    let all = trials(&folder.join("out"));
    // It is not told its threads, so that these are no setting of it.
    assert_eq!(all.len(), 1, "{}", said(&output));
    assert_eq!(all[0]["cell"], "ichor coroutine n=5000000");
    let line = &all[0]["program"]["lines"][0];
    assert_eq!(line["elapsed_ns"], 467_242_000_u64, "{}", all[0]);
    assert_eq!(
        (&line["measure"], &line["count"]),
        (&"coroutines".into(), &5_000_000.into())
    );
    let wrong = text.replace("5000000", "4000000");
    fs::write(folder.join("wrong.toml"), wrong).expect("an experiment");
    let output = prony(&folder, &["wrong.toml", "--out", "wrong"]);
    let reason = &trials(&folder.join("wrong"))[0]["outcome"]["reason"];
    let reason = reason.as_str().unwrap_or_default();
    assert!(
        reason.contains("no multiple of the 4000000"),
        "{reason} {}",
        said(&output)
    );
}

/// Its trials failed one by one, and the run ended with 3.
#[test]
fn a_library_that_is_nowhere_was_looked_for_in_every_trial() {
    let folder = common::folder("preloads-nothing");
    executable(
        &folder.join("count.sh"),
        r#"#!/bin/sh
printf '{"measure":"counts","threads":1,"count":%s,"elapsed_ns":1000000}\n' "$1"
"#,
    );
    let text = r#"
        [run]
        blocks = 2
        [[subject]]
        cmd = "./count.sh {count}"
        name = "counter"
        works = ["counting"]
        [[workload]]
        work = "counting"
        count = [10, 20]
        [[setting]]
        name = "allocator"
        values = ["std", "other"]
        env_of = { other = { LD_PRELOAD = "libprony-nowhere.so.7" } }
    "#;
    fs::write(folder.join("e.toml"), text).expect("an experiment");
    let library = "allocator=other: `libprony-nowhere.so.7`, which LD_PRELOAD names, is in no folder of the loader";
    let is_named = |text: &str| {
        let line = format!("not run: {library}");
        assert_eq!(text.matches(&line).count(), 1, "{text}");
        assert!(!text.contains("cannot be preloaded"), "{text}");
    };
    let dry = prony(&folder, &["e.toml", "--dry-run"]);
    is_named(&common::text(&dry.stdout));
    let output = prony(&folder, &["e.toml", "--out", "out"]);
    is_named(&said(&output));
    let all = trials(&folder.join("out"));
    let cell = |trial: &Value| trial["cell"].as_str().unwrap_or_default().to_owned();
    let is_possible = |trial: &Value| cell(trial).ends_with("allocator=std");
    assert!(all.len() == 4 && all.iter().all(is_possible), "{all:#?}");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    assert!(document.contains("| allocator=other | "), "{document}");
    let only = ["e.toml", "--only", "*allocator=other*", "--out", "only"];
    let only = prony(&folder, &only);
    assert_eq!(only.status.code(), Some(3), "{}", said(&only));
    assert!(said(&only).contains(library), "{}", said(&only));
}
