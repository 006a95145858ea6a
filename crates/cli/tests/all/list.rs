//! `prony list` and `prony clean`: what is here, and what may go.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, PRONY, prony, text};
use serde_json::Value;

/// A folder with a run in `runs/t-001`, and its experiment in `experiments`.
fn with_run(name: &str) -> PathBuf {
    let folder = common::folder(name);
    let experiment = format!(
        "title = \"A small run\"\n[run]\nblocks = 1\nduration = \"100ms\"\nwarmup = \"0ms\"\n[[subject]]\ncmd = \"{PRONY} serve --port {{port}}\"\n\
         [[workload]]\nrequest = {{ path = \"/hello\" }}\nconnections = [1]\n"
    );
    fs::create_dir(folder.join("experiments")).expect("a folder");
    fs::write(folder.join("experiments/t.toml"), experiment).expect("an experiment");
    fs::write(folder.join("experiments/broken.toml"), "title = \"x\"\n").expect("an experiment");
    let output = prony(&folder, &["run", "experiments/t.toml"]);
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{}",
        text(&output.stderr)
    );
    folder
}

/// Exit code, standard output and standard error.
fn said(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = prony(folder, words);
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn what_is_here_is_listed() {
    let folder = with_run("list");
    let (code, all, _) = said(&folder, &["list"]);
    assert_eq!(code, Some(0));
    for line in [
        "experiments\n",
        "\nsubjects\n",
        "\nruns\n",
        "\nrust/prony ",
        " A small run (1 subject, 1 workload)\n",
    ] {
        assert!(all.contains(line), "{line}: {all}");
    }
    assert!(
        all.contains("experiments/broken.toml      cannot be used: "),
        "{all}"
    );
    let (_, runs, _) = said(&folder, &["list", "runs"]);
    assert!(
        runs.starts_with("runs/t-001                   20"),
        "{runs}"
    );
    assert!(runs.trim_end().ends_with("A small run"), "{runs}");
    let (_, json, _) = said(&folder, &["list", "--json"]);
    let value: Value = serde_json::from_str(&json).expect("JSON and nothing else");
    assert_eq!(value["schema"], 1);
    assert_eq!(value["runs"][0]["trials"], 1);
    let subjects = value["subjects"].as_array().expect("subjects");
    let known = prony_lab::subject::folders(&prony_testkit::root().join("subjects"));
    assert_eq!(subjects.len(), known.len());
    for subject in subjects {
        assert_eq!(
            subject["here"] == true,
            subject.get("missing").is_none(),
            "{subject}"
        );
    }
}

#[test]
fn a_command_that_is_not_here_is_named_with_what_brings_it() {
    let folder = common::folder("list-missing");
    let mut command = std::process::Command::new(PRONY);
    let command = command
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root());
    let output = command
        .env("PATH", "/nowhere")
        .args(["list", "subjects"])
        .output()
        .expect("prony runs");
    let all = text(&output.stdout);
    let entry = all.split("\nrust/axum ").nth(1).expect("an entry");
    let entry = entry.lines().next().expect("a line");
    assert!(
        entry.contains(" missing  `cargo` is not on PATH"),
        "{entry}"
    );
}

#[test]
fn a_run_is_removed_and_nothing_else_is() {
    let folder = with_run("clean");
    fs::create_dir(folder.join("runs/mine")).expect("a folder");
    fs::write(folder.join("runs/mine/notes"), "x").expect("a file");
    let there = |name: &str| folder.join("runs").join(name).exists();
    // What is no run directory stops all of it.
    for (dir, why) in [
        ("runs/mine", "not a run directory"),
        ("runs/none", "not a run directory"),
        ("experiments", "not a run directory"),
    ] {
        let (code, _, err) = said(&folder, &["clean", "runs/t-001", dir]);
        assert_eq!(code, Some(2), "{dir}");
        assert!(err.contains(why), "{err}");
        assert!(there("t-001") && there("mine"));
    }
    std::os::unix::fs::symlink("t-001", folder.join("runs/link")).expect("a link");
    let (code, _, err) = said(&folder, &["clean", "runs/link"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("a link"), "{err}");
    let (code, out, _) = said(&folder, &["clean", "--older-than", "1h"]);
    assert_eq!((code, out.as_str()), (Some(0), "0 folders, 0 B freed\n"));
    let (code, out, _) = said(&folder, &["clean", "--older-than", "0d", "--dry-run"]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("would be removed: runs/t-001 ("), "{out}");
    assert!(there("t-001"));
    let (code, out, err) = said(&folder, &["clean", "--older-than", "0d"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("removed: runs/t-001 ("), "{out}");
    assert!(!there("t-001") && there("mine"));
}

#[test]
fn a_run_under_way_and_foreign_things_are_refused() {
    let folder = with_run("clean-busy");
    let journal = fs::File::options()
        .append(true)
        .open(folder.join("runs/t-001/trials.jsonl"));
    let journal = journal.expect("its trials");
    journal.lock().expect("a lock");
    let (code, _, err) = said(&folder, &["clean", "runs/t-001"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("a prony is running in it"), "{err}");
    assert_eq!(
        said(&folder, &["clean", "--older-than", "0h"]).1,
        "0 folders, 0 B freed\n"
    );
    drop(journal);
    fs::create_dir(folder.join("runs/t-001/.git")).expect("a folder");
    let (code, _, err) = said(&folder, &["clean", "runs/t-001"]);
    assert_eq!(code, Some(2));
    assert!(err.contains(".git"), "{err}");
    assert!(folder.join("runs/t-001/plan.json").exists());
}

#[test]
fn bad_words_are_named() {
    let folder = common::folder("list-bad");
    for (words, why) in [
        (&["clean"][..], "required"),
        (
            &["clean", "--older-than", "soon"],
            "`soon` is not a valid age",
        ),
        (&["clean", "x", "--older-than", "1d"], "cannot be used with"),
        (&["clean", "--builds", "--runs", "x"], "required"),
        (
            &["clean", "--older-than", "1d", "--runs", "nowhere"],
            "cannot read nowhere",
        ),
        (&["list", "everything"], "invalid value"),
        (&["list", "runs", "--runs", "nowhere"], "no such folder"),
    ] {
        let (code, _, err) = said(&folder, words);
        assert_eq!(code, Some(2), "{words:?}: {err}");
        assert!(err.contains(why), "{words:?}: {err}");
    }
}

#[test]
fn builds_of_subjects_that_are_gone_are_removed() {
    let folder = common::folder("clean-builds");
    let build = folder.join("cache/build/rust-gone-0123456789ab");
    fs::create_dir_all(&build).expect("a folder");
    fs::write(build.join(".done"), "").expect("a file");
    fs::write(build.with_extension("lock"), "").expect("a file");
    let (code, out, err) = said(&folder, &["clean", "--builds", "--dry-run"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("would be removed: ") && build.exists(),
        "{out}"
    );
    let (_, out, _) = said(&folder, &["clean", "--builds"]);
    assert!(
        out.ends_with("1 folder, 0 B freed\n") && !build.exists(),
        "{out}"
    );
}
