//! `prony doctor`: on this machine, and on one that is made up of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{self, PRONY, text};
use serde_json::Value;

const SOMAXCONN: &str = "proc/sys/net/core/somaxconn";

/// A made-up machine in `folder`, with one ailment.
fn machine(folder: &Path, somaxconn: &str) -> PathBuf {
    let root = folder.join("machine");
    let file = root.join(SOMAXCONN);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, somaxconn).expect("a file");
    root
}

fn doctor(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_STATE", folder.join("state"));
    command
        .arg("doctor")
        .args(words)
        .output()
        .expect("prony runs")
}

#[test]
fn a_made_up_machine_is_mended_and_put_back() {
    let folder = common::folder("doctor-fix");
    machine(&folder, "128\n");
    let of = |words: &[&str]| {
        let output = doctor(&folder, &[&["--root", "machine"], words].concat());
        (output.status.code(), text(&output.stdout))
    };
    let (code, said) = of(&[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("spoils    somaxconn: 128\n"), "{said}");
    assert!(
        said.contains("-> sudo sysctl -w net.core.somaxconn=4096\n"),
        "{said}"
    );
    let prose = said
        .lines()
        .filter(|line| !line.contains("->") && !line.contains('/'));
    assert!(
        prose.clone().all(|line| line.chars().count() <= 60),
        "{said}"
    );
    let (code, said) = of(&["--fix"]);
    assert_eq!(
        (code, said.as_str()),
        (
            Some(0),
            "changed: /proc/sys/net/core/somaxconn\n  128 -> 4096\n"
        )
    );
    let (code, said) = of(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("prony doctor --undo"), "{said}");
    assert!(folder.join("state/doctor-changes.json").exists());
    let (code, said) = of(&["--undo"]);
    assert_eq!(
        (code, said.as_str()),
        (
            Some(0),
            "put back: /proc/sys/net/core/somaxconn\n  4096 -> 128\n"
        )
    );
    assert_eq!(
        fs::read_to_string(folder.join("machine").join(SOMAXCONN)).expect("it"),
        "128"
    );
    assert_eq!(
        of(&["--undo"]),
        (Some(0), "nothing to be put back\n".to_owned())
    );
}

#[test]
fn this_machine_is_told_as_json_with_every_check_once() {
    let folder = common::folder("doctor-json");
    let output = doctor(&folder, &["--json"]);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{}",
        text(&output.stderr)
    );
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(value["schema"], 1);
    let checks = value["checks"].as_array().expect("checks");
    let mut names: Vec<&str> = checks
        .iter()
        .filter_map(|check| check["name"].as_str())
        .collect();
    assert_eq!(names.len(), 18);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 18, "{names:?}");
    let spoils = checks.iter().any(|check| check["state"] == "spoils");
    assert_eq!(output.status.code(), Some(i32::from(spoils)));
}

#[test]
fn bad_words_and_a_bad_note_are_named() {
    let folder = common::folder("doctor-bad");
    machine(&folder, "128");
    let of = |words: &[&str]| {
        let output = doctor(&folder, words);
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = of(&["--root", "nowhere"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("nowhere: no such folder"), "{said}");
    let (code, said) = of(&["--fix", "--undo"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot be used with"), "{said}");
    fs::create_dir(folder.join("state")).expect("a folder");
    fs::write(folder.join("state/doctor-changes.json"), "nonsense").expect("a file");
    for word in ["--fix", "--undo"] {
        let (code, said) = of(&["--root", "machine", word]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("doctor-changes.json"), "{said}");
    }
    assert_eq!(
        fs::read_to_string(folder.join("machine").join(SOMAXCONN)).expect("it"),
        "128"
    );
}

#[test]
fn a_run_keeps_what_was_seen_of_its_machine() {
    let folder = common::folder("doctor-run");
    let experiment = format!(
        "title = \"t\"\n[run]\nblocks = 1\nduration = \"100ms\"\nwarmup = \"0ms\"\n[[subject]]\ncmd = \"{PRONY} serve --port {{port}}\"\n\
         [[workload]]\nrequest = {{ path = \"/hello\" }}\nconnections = [1]\n"
    );
    fs::write(folder.join("t.toml"), experiment).expect("an experiment");
    let output = common::prony(&folder, &["run", "t.toml", "--out", "run"]);
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}",
        text(&output.stderr)
    );
    let environment = fs::read(folder.join("run/environment.json")).expect("an environment");
    let environment: Value = serde_json::from_slice(&environment).expect("JSON");
    let checks = environment["checks"].as_array().expect("checks");
    let spoils = checks.iter().filter(|check| check["state"] == "spoils");
    let briefs: Vec<&str> = spoils.filter_map(|check| check["brief"].as_str()).collect();
    assert_eq!(checks.len(), 15);
    let document = fs::read_to_string(folder.join("run/document.md")).expect("a document");
    let said = document
        .lines()
        .filter(|line| line.contains("prony doctor"))
        .count();
    assert_eq!(said, usize::from(!briefs.is_empty()), "{document}");
}
