//! `prony bundle` and `prony reproduce`: a run that is packed, checked, rendered and run again; a stranger's that is refused.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{PRONY, prony};

const TINY: &str = r#"
title = "A tiny run"

[run]
blocks = 1
duration = "200ms"
warmup = "20ms"

[[subject]]
cmd = "./serve.sh {port}"
name = "serve"

[[subject]]
cmd = "PRONY serve --port {port}"
name = "other"

[[workload]]
name = "hello"
request = { path = "/hello" }
connections = [1]
"#;

/// How `prony` ended, and what it printed.
fn done(folder: &Path, words: &[&str]) -> (Option<i32>, String, String) {
    let output = prony(folder, words);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// A folder with a run called `run`, of a command that lies beside its experiment.
fn with_run(name: &str) -> PathBuf {
    let folder = common::folder(name);
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    let script = folder.join("serve.sh");
    let text = format!("#!/bin/sh\nexec {PRONY} serve --port $1\n");
    prony_testkit::write_program(&script, &text);
    let (code, _, told) = done(&folder, &["run", "tiny.toml", "--out", "run"]);
    // A busy machine may leave the generator no time: the records are whole all the same.
    assert!(matches!(code, Some(0 | 3)), "{told}");
    folder
}

#[test]
fn a_run_is_packed_verified_rendered_and_run_again() {
    let folder = with_run("bundle");
    let (code, out, err) = done(&folder, &["bundle", "run"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("cite: \"A tiny run\", a run of "), "{out}");
    assert_eq!(
        done(&folder, &["bundle", "run", "--out", "again.prony"]).0,
        Some(0)
    );
    let bytes = |name: &str| fs::read(folder.join(name)).expect("a file");
    assert_eq!(
        bytes("run.prony"),
        bytes("again.prony"),
        "the same input, the same bytes"
    );

    let (code, out, err) = done(&folder, &["verify", "run.prony"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("run.prony: whole: 2 trials"), "{out}");
    assert!(out.contains("rendered as before"), "{out}");

    let (code, _, err) = done(&folder, &["report", "run.prony"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = done(&folder, &["report", "run.prony", "--out", "rendered"]);
    assert!(matches!(code, Some(0 | 3)), "{err}");
    for name in ["document.md", "summary.json", "index.html", "plan.json"] {
        assert_eq!(
            bytes(&format!("run/{name}")),
            bytes(&format!("rendered/{name}")),
            "{name}"
        );
    }
    let (code, _, err) = done(&folder, &["report", "run.prony", "--out", "rendered"]);
    assert_eq!(
        code,
        Some(2),
        "a folder that holds something is left alone: {err}"
    );

    let (code, out, err) = done(&folder, &["reproduce", "run.prony", "--out", "twice"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(out.contains("start: ./serve.sh {port}"), "{out}");
    assert!(err.contains("--run-foreign-commands"), "{err}");
    assert!(
        !folder.join("twice").exists(),
        "nothing is unpacked before it is allowed"
    );

    let allowed = [
        "reproduce",
        "run.prony",
        "--out",
        "twice",
        "--run-foreign-commands",
    ];
    let (code, out, err) = done(&folder, &allowed);
    assert!(matches!(code, Some(0 | 3)), "{err}");
    assert!(out.contains("claims no difference"), "{out}");
    assert!(folder.join("twice/source/experiment/serve.sh").exists());
    assert_eq!(
        bytes("run/trials.jsonl"),
        bytes("twice/original/trials.jsonl")
    );
    let plan = fs::read_to_string(folder.join("twice/run/plan.json")).expect("a plan");
    assert!(plan.contains("twice/source/experiment/tiny.toml"), "{plan}");
    fs::remove_dir_all(&folder).expect("removed");
}

const OF_OTHERS: &str = r#"
name = "theirs"
language = "python"
role = "server"
summary = "Somebody else's, as its user has built it"
endpoints = ["/hello"]
[needs]
original = { git = "https://example.org/theirs", revision = "v1" }
files = ["{originals}/theirs/server"]
[start]
cmd = ["{originals}/theirs/server", "{port}"]
[ready]
port = true
[version]
cmd = "head -n 1 {originals}/theirs/VERSION"
"#;

#[test]
fn what_its_user_has_built_of_others_is_not_packed() {
    let folder = common::folder("bundle-originals");
    // The worst place for it: in the folder of the subject, all of which is packed.
    let built = folder.join("it/built/theirs");
    fs::create_dir_all(&built).expect("a folder");
    let server = built.join("server");
    let text = format!("#!/bin/sh\nexec {PRONY} serve --port $1\n");
    prony_testkit::write_program(&server, &text);
    fs::write(built.join("VERSION"), "theirs v1\n").expect("a version");
    fs::write(folder.join("it/subject.toml"), OF_OTHERS).expect("a subject");
    fs::write(folder.join("it/own.py"), "own = True\n").expect("a file of its own");
    let experiment = "title = 't'\n[run]\nblocks = 1\nduration = '100ms'\nwarmup = '20ms'\n[[subject]]\nref = './it'\n\
                      [[workload]]\nname = 'hello'\nrequest = { path = '/hello' }\nconnections = [1]\n";
    fs::write(folder.join("e.toml"), experiment).expect("an experiment");
    let originals = folder.join("it/built").display().to_string();
    let run = |originals: &str, words: &[&str]| {
        let output = common::command(&folder, words)
            .env("PRONY_ORIGINALS", originals)
            .output()
            .expect("prony runs");
        assert!(
            matches!(output.status.code(), Some(0 | 3)),
            "{}",
            common::text(&output.stderr)
        );
    };
    run(&originals, &["run", "e.toml", "--out", "run"]);
    // The run itself says where they were.
    run("", &["bundle", "run"]);
    let allowed = ["--out", "twice", "--run-foreign-commands"];
    let reproduce = ["reproduce", "run.prony"];
    run(&originals, &[&reproduce[..], &allowed].concat());
    let source = folder.join("twice/source/experiment/it");
    assert!(source.join("own.py").is_file() && source.join("subject.toml").is_file());
    assert!(!source.join("built").exists(), "it was packed");
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn what_does_not_hold_is_refused() {
    let folder = with_run("bundle-bad");
    assert_eq!(done(&folder, &["bundle", "run", "--records"]).0, Some(0));
    let (code, _, err) = done(
        &folder,
        &["reproduce", "run.prony", "--run-foreign-commands"],
    );
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("holds records alone"), "{err}");
    let good = fs::read(folder.join("run.prony")).expect("a bundle");
    let mut bad = good.clone();
    let middle = bad.len() / 2;
    bad[middle] ^= 1;
    fs::write(folder.join("run.prony"), &bad).expect("written");
    assert_eq!(done(&folder, &["verify", "run.prony"]).0, Some(1));
    assert_eq!(
        done(&folder, &["report", "run.prony", "--out", "x"]).0,
        Some(2)
    );
    assert!(!folder.join("x").exists(), "nothing of it is unpacked");
    fs::write(folder.join("run.prony"), &good[..good.len() - 9]).expect("written");
    let (code, out, _) = done(&folder, &["verify", "run.prony"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("cut off"), "{out}");
    for words in [
        ["reproduce", "tiny.toml"],
        ["reproduce", "nowhere"],
        ["bundle", "nowhere"],
    ] {
        let (code, _, err) = done(&folder, &words);
        assert_eq!(code, Some(2), "{words:?}: {err}");
    }
    // Records that were changed are not handed on.
    let trials = folder.join("run/trials.jsonl");
    let text = fs::read_to_string(&trials).expect("text");
    fs::write(&trials, text.replacen("\"block\":0", "\"block\": 0", 1)).expect("written");
    let (code, _, err) = done(&folder, &["bundle", "run"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(
        err.contains("is not what it was when the run ended"),
        "{err}"
    );
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_quick_run_is_no_document_of_the_repository() {
    let folder = common::folder("bundle-kept");
    fs::write(folder.join("tiny.toml"), TINY.replace("PRONY", PRONY)).expect("an experiment");
    for out in ["docs/documents/x", "docs/y/../documents/x"] {
        let (code, _, err) = done(&folder, &["run", "tiny.toml", "--quick", "--out", out]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("docs/documents holds full runs"), "{err}");
    }
    let (code, _, err) = done(&folder, &["run", "tiny.toml", "--out", "docs/documents/x"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("committed code"), "{err}");
    assert!(!folder.join("docs").exists(), "nothing is made");
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn what_a_person_wrote_of_a_run_is_part_of_its_document_and_its_bundle() {
    let folder = with_run("analysis");
    let bound = "At least <!-- {{rate subject=other}} -->7<!-- {{/}} --> a second.";
    fs::write(
        folder.join("run/analysis.md"),
        format!("### Why\n\n{bound}\n"),
    )
    .expect("written");
    let (code, out, err) = done(&folder, &["verify", "run"]);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("run/analysis.md:3: "), "{out}");
    let (code, out, err) = done(&folder, &["verify", "--fix", "run/analysis.md", "run"]);
    assert_eq!(
        code,
        Some(2),
        "a text before the run that it is of: {out}{err}"
    );
    let (_, out, err) = done(&folder, &["verify", "--fix", "run"]);
    assert!(
        out.contains("document.md:"),
        "to be rendered again: {out}{err}"
    );

    let (code, _, err) = done(&folder, &["report", "run"]);
    assert!(matches!(code, Some(0 | 3)), "{err}");
    let (code, out, err) = done(&folder, &["verify", "run"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let text = |name: &str| fs::read_to_string(folder.join(name)).expect("a file");
    let document = text("run/document.md");
    let (_, analysis) = document.split_once("## Analysis\n\n").expect("a section");
    assert!(
        analysis.starts_with(text("run/analysis.md").trim()),
        "{analysis}"
    );
    assert!(!analysis.contains("-->7<!--"), "{analysis}");
    assert!(text("run/index.html").contains("<h3>Why</h3>"));

    assert_eq!(done(&folder, &["bundle", "run"]).0, Some(0));
    let (code, _, err) = done(&folder, &["report", "run.prony", "--out", "rendered"]);
    assert!(matches!(code, Some(0 | 3)), "{err}");
    assert_eq!(text("rendered/document.md"), document);

    // Beside documents the text that lies there takes the place of the packed one.
    let beside = folder.join("beside");
    fs::create_dir(&beside).expect("a folder");
    fs::copy(folder.join("run.prony"), beside.join("run.prony")).expect("copied");
    fs::write(beside.join("document.md"), "").expect("written");
    fs::write(beside.join("analysis.md"), bound).expect("written");
    assert!(matches!(
        done(&folder, &["report", "beside"]).0,
        Some(0 | 3)
    ));
    assert!(text("beside/document.md").contains(bound));
    let (code, out, _) = done(&folder, &["verify", "beside"]);
    assert_eq!(code, Some(1), "its figure is not that of the run: {out}");
    assert!(out.contains("beside/analysis.md:1: "), "{out}");

    fs::write(folder.join("run/analysis.md"), "x".repeat(300_000)).expect("written");
    let (code, _, err) = done(&folder, &["report", "run"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("analysis.md: 300000 bytes"), "{err}");
    fs::remove_dir_all(&folder).expect("removed");
}

/// Where it fails because documents are rendered otherwise now, they are to be rendered again:
/// `for d in docs/documents/*/run.prony; do ./prony report "${d%/*}"; done`
/// A folder that has nothing but the bundle gets the documents, and what is rendered again then is these.
#[test]
fn records_alone_in_a_folder_are_rendered() {
    let folder = common::folder("bundle-alone");
    let records = prony_testkit::root().join("docs/documents/realtime/run.prony");
    fs::copy(records, folder.join("run.prony")).expect("a copy");
    for _ in 0..2 {
        let (code, out, err) = done(&folder, &["report", "."]);
        assert_eq!(code, Some(0), "{out}{err}");
        for name in ["document.md", "appendix.md", "pictures"] {
            assert!(folder.join(name).exists(), "{name}");
        }
        assert!(!folder.join("index.html").exists());
    }
    let (code, out, err) = done(&folder, &["verify", "."]);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn documents_are_what_their_records_render_to() {
    let documents = prony_testkit::root().join("docs/documents");
    let mut bundles = 0;
    for entry in fs::read_dir(&documents).expect("documents").flatten() {
        let folder = entry.path();
        let bundle = folder.join("run.prony");
        if !bundle.is_file() {
            continue;
        }
        bundles += 1;
        let bytes = fs::metadata(&bundle).expect("a file").len();
        assert!(bytes <= 2_000_000, "{}: {bytes} bytes", bundle.display());
        let there = bundle.display().to_string();
        // Digests of the bundle itself, and what it renders to; prose is for the tests of README.
        let (code, out, err) = done(&documents, &["verify", &folder.display().to_string()]);
        assert_eq!(code, Some(0), "{there}: {out}{err}");
        assert!(out.contains("as rendered"), "{out}");
    }
    assert!(bundles >= 1, "records lie beside documents");
}
