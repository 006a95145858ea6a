//! `prony bundle` and `prony reproduce`: a run that is packed, checked, rendered and run again; a stranger's that is refused.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{self, PRONY, prony};
use prony_base::Random;
use sha2::Digest as _;

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

/// The bundle and what came of it again are two runs of one experiment.
fn joined_with_its_bundle(folder: &Path) {
    let both = ["report", "run.prony", "twice/run"];
    let (code, out, err) = done(folder, &[&both[..], &["--json"]].concat());
    assert!(matches!(code, Some(0 | 3)), "{err}");
    let seen: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(seen["blocks"], 2, "{out}");
    let (code, _, err) = done(folder, &[&both[..], &["--out", "joined"]].concat());
    assert!(matches!(code, Some(0 | 3)), "{err}");
    let appendix = fs::read_to_string(folder.join("joined/appendix.md")).expect("it");
    assert!(appendix.contains("2 runs of this experiment are joined"));
    assert!(!folder.join("joined/plan.json").exists());
    let (code, _, err) = done(folder, &[&both[..], &["--out", "run"]].concat());
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("run is not empty"), "{err}");
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
    // A device, as root, or a link was replaced by the file.
    std::os::unix::fs::symlink("again.prony", folder.join("link")).expect("a link");
    let (code, _, err) = done(&folder, &["bundle", "run", "--out", "link"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("link is there and is no plain file"), "{err}");
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
    assert!(out.contains("makes no claims"), "{out}");
    assert!(folder.join("twice/source/experiment/serve.sh").exists());
    assert_eq!(
        bytes("run/trials.jsonl"),
        bytes("twice/original/trials.jsonl")
    );
    let plan = fs::read_to_string(folder.join("twice/run/plan.json")).expect("a plan");
    assert!(plan.contains("twice/source/experiment/tiny.toml"), "{plan}");

    joined_with_its_bundle(&folder);
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

/// Whether a terminal would act on something in a text.
fn steers(text: &str) -> bool {
    let mut all = text.chars().filter(|c| !matches!(c, '\n' | '\t'));
    all.any(prony_base::untrusted::steers)
}

/// A folder with a run called `run`, of one that lies among the documents.
fn from_documents(name: &str) -> PathBuf {
    let folder = common::folder(name);
    let packed = prony_testkit::root().join("docs/documents/realtime/run.prony");
    let packed = packed.display().to_string();
    let (code, _, err) = done(&folder, &["report", &packed, "--out", "run"]);
    assert_eq!(code, Some(0), "{err}");
    folder
}

#[test]
fn a_strangers_text_steered_the_terminal() {
    let folder = from_documents("bundle-steers");
    let dir = folder.join("run");
    fs::remove_file(dir.join("records.sha256")).expect("it was sealed");
    // In all names and titles, as JSON has it.
    let odd = "\\u001b[8m\\u009b8m\\u202e\\nprony: all is well\\r";
    for name in ["plan.json", "trials.jsonl"] {
        let mut text = fs::read_to_string(dir.join(name)).expect("text");
        for of in ["rust/", "cpp/", "Deadlines", "How long", "Runs of"] {
            text = text.replace(of, &format!("{odd}{of}"));
        }
        fs::write(dir.join(name), &text).expect("written");
    }
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    write("realtime.toml", "");
    write(
        "bad.toml",
        "title = 'a'\n[run]\n\u{1b}[8m\u{9b}8m\u{202e} = 1\n",
    );
    write("key.toml", "\"\\u001b[8m\\nprony: all is well\" = 1\n");
    let commands = [
        "report run",
        "report run --json",
        "report run --export long",
        "report run --export junit",
        "verify run",
        "list runs --runs .",
        "log realtime.toml --runs .",
        "compare run run --runs .",
        "bundle run",
        "verify run.prony",
        "reproduce run.prony",
        "run bad.toml --dry-run",
        "run key.toml --dry-run",
    ];
    for command in commands {
        let words: Vec<&str> = command.split(' ').collect();
        let (_, out, err) = done(&folder, &words);
        let text = out + &err;
        // Not all of them say it: those that a person reads first do.
        let is_shown =
            text.contains("u001b[8m") || !["report run", "reproduce run.prony"].contains(&command);
        assert!(is_shown, "{command}: {text:?}");
        assert!(!steers(&text), "{command}: {text:?}");
        let mut lines = text.lines();
        let is_forged = lines.any(|line| line.trim_start().starts_with("prony: all is well"));
        // A cell of CSV may have several lines.
        assert!(!is_forged || command.ends_with("long"), "{command}: {text}");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_link_in_a_strangers_run_was_written_through() {
    let folder = from_documents("bundle-links");
    let (run, victim) = (folder.join("run"), folder.join("victim"));
    let bound = "At <!-- {{blocks}} -->many<!-- {{/}} --> blocks.";
    let is_refused = |words: &str, name: &str, wanted: i32| {
        let words: Vec<&str> = words.split(' ').collect();
        let (code, out, err) = done(&folder, &words);
        let told = out + &err;
        assert_eq!(code, Some(wanted), "{words:?}: {told}");
        assert!(
            told.contains(&format!("{name}: is a link")),
            "{words:?}: {told}"
        );
    };
    let records = ["bundle run", "compare run run --runs ."];
    for (name, readers) in [
        ("run/document.md", &records[..0]),
        ("run/documents.sha256", &records[..1]),
        ("run/pictures", &records[..0]),
        ("run/plan.json", &records[..]),
        ("run/trials.jsonl", &records[..]),
        ("run/analysis.md", &records[..]),
    ] {
        let (path, aside) = (folder.join(name), folder.join("aside"));
        let _ = fs::rename(&path, &aside);
        match aside.is_dir() {
            true => fs::create_dir(&victim).expect("a folder"),
            // What a record is: it would be read if the link were followed.
            false if aside.exists() => drop(fs::copy(&aside, &victim).expect("copied")),
            false => fs::write(&victim, bound).expect("written"),
        }
        let before = fs::read(&victim).ok();
        std::os::unix::fs::symlink("../victim", &path).expect("a link");
        is_refused("report run", name, 2);
        is_refused("verify --fix run", name, 1);
        for words in readers {
            is_refused(words, name, 2);
        }
        assert_eq!(fs::read(&victim).ok(), before, "{name}");
        fs::remove_file(&path).expect("removed");
        // A folder that was written to is not empty.
        let removed = fs::remove_file(&victim).or_else(|_| fs::remove_dir(&victim));
        removed.expect("removed");
        let _ = fs::rename(&aside, &path);
    }
    // A text that only lies there, and documents beside their records.
    fs::write(&victim, bound).expect("written");
    std::os::unix::fs::symlink("../victim", run.join("notes.md")).expect("a link");
    is_refused("verify --fix run", "run/notes.md", 1);
    let beside = folder.join("beside");
    fs::create_dir(&beside).expect("a folder");
    assert_eq!(
        done(&folder, &["bundle", "run", "--out", "beside/run.prony"]).0,
        Some(0)
    );
    std::os::unix::fs::symlink("../victim", beside.join("document.md")).expect("a link");
    is_refused("report beside", "beside/document.md", 2);
    assert_eq!(fs::read_to_string(&victim).expect("there"), bound);
    fs::remove_dir_all(&folder).expect("removed");
}

/// A bundle of files that no `prony bundle` would pack.
fn by_hand(files: &[(&str, &[u8])]) -> Vec<u8> {
    let digest = |bytes: &[u8]| -> String {
        let digest = sha2::Sha256::digest(bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let listed = files.iter().map(|(path, bytes)| {
        serde_json::json!({"path": path, "sha256": digest(bytes), "bytes": bytes.len()})
    });
    let manifest = serde_json::json!({
        "schema": 1, "title": "", "started_unix_ms": 0, "prony_version": "", "experiment": "", "sources": "",
        "files": listed.collect::<Vec<_>>(),
    });
    let manifest = manifest.to_string().into_bytes();
    let blobs = files
        .iter()
        .map(|(_, bytes)| (format!("blobs/{}", digest(bytes)), *bytes));
    let entries = [("manifest.json".to_owned(), &*manifest)].into_iter();
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in entries.chain(blobs) {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, name, bytes).expect("in");
    }
    let archive = archive.into_inner().expect("an archive");
    let mut packed = vec![0; zstd_safe::compress_bound(archive.len())];
    let length = zstd_safe::compress(&mut packed[..], &archive, 1).expect("packed");
    packed.truncate(length);
    packed
}

#[test]
fn a_bundle_unpacked_settings_of_git() {
    let folder = common::folder("bundle-git");
    let config = b"[core]\n\tfsmonitor = touch pwned\n";
    let packed = by_hand(&[("run/.git/config", config)]);
    fs::write(folder.join("e.prony"), packed).expect("written");
    for words in [
        &["report", "e.prony", "--out", "x"][..],
        &["reproduce", "e.prony"],
    ] {
        let (code, _, err) = done(&folder, words);
        assert_eq!(code, Some(2), "{err}");
        assert!(
            err.contains("its `run/.git/config` may not be written: git "),
            "{err}"
        );
        assert!(!folder.join("x").exists(), "nothing of it is unpacked");
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_bundle_was_unpacked_in_memory() {
    let folder = common::folder("bundle-memory");
    let packed = by_hand(&[("source/zeros", &vec![0; 32 << 20])]);
    fs::write(folder.join("e.prony"), packed).expect("written");
    // Of 32 MiB, all was there three times.
    let limited = format!("ulimit -d 80000; exec {PRONY} verify e.prony");
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &limited]).current_dir(&folder).output();
    let output = output.expect("it runs");
    let (out, err) = (common::text(&output.stdout), common::text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert!(out.contains("e.prony: not a run directory"), "{out}{err}");
    fs::remove_dir_all(&folder).expect("removed");
}

/// What stands in files, and what no file should have.
const ODD: [&str; 17] = [
    "\"",
    "{",
    "}",
    "[",
    "]]",
    ",",
    ":null,",
    "-1",
    "1e400",
    "18446744073709551616",
    "\\u0000",
    "\u{1b}[8m",
    "\u{202e}",
    "../../x",
    "\n",
    "{{/}} -->",
    "<!-->",
];

/// A text or a file with some of it changed.
fn mutated(good: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = (at + random.below(40) as usize).min(bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].repeat(1 + random.below(3) as usize);
                bytes.splice(at..at, again);
            }
            3 => bytes.truncate(bytes.len() - random.below(bytes.len() as u64 / 4 + 1) as usize),
            4 => {
                let deep = ["[", "{\"a\":", "[[a.", "'''"][random.below(4) as usize];
                bytes.splice(
                    at..at,
                    deep.repeat(1 + random.below(3_000) as usize).bytes(),
                );
            }
            _ => {
                let odd = ODD[random.below(ODD.len() as u64) as usize];
                bytes.splice(at..end.min(at + 3), odd.bytes());
            }
        }
    }
    bytes
}

/// Memory of this process, in MiB.
fn memory_mib() -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kib.and_then(|kib| kib.trim().parse().ok())
        .map_or(0, |kib: u64| kib / 1024)
}

/// Of files of strangers, each changed by chance. `PRONY_LONG=1` takes as many as the figures of a release are of.
#[test]
fn no_mutated_file_of_a_stranger_ends_in_a_panic() {
    let folder = from_documents("bundle-mutated");
    let is_long = std::env::var_os("PRONY_LONG").is_some();
    let count = if is_long { 24_000 } else { 60 };
    let of = |name: &str| fs::read(folder.join(name)).expect("a file");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).expect("written");
    fs::remove_file(folder.join("run/records.sha256")).expect("it was sealed");
    let claims = prony_testkit::root().join("experiments/realtime.toml");
    let claims = claims.display().to_string();
    let applied = done(&folder, &["report", "run", "--experiment", &claims]);
    assert_eq!(applied.0, Some(0), "published.json is there");
    let trials = String::from_utf8(of("run/trials.jsonl")).expect("text");
    let few: String = trials.split_inclusive('\n').take(3).collect();
    write("run/trials.jsonl", few.as_bytes());
    write(
        "run/analysis.md",
        b"### Why\n\n<!-- {{blocks}} -->7<!-- {{/}} --> and *more*, [a](https://b).\n",
    );
    assert_eq!(done(&folder, &["report", "run"]).0, Some(0));
    assert_eq!(done(&folder, &["bundle", "run"]).0, Some(0));
    let packed = of("run.prony");
    let mut archive = vec![0; 4 << 20];
    let length = zstd_safe::decompress(&mut archive[..], &packed).expect("unpacked");
    archive.truncate(length);
    let root = prony_testkit::root();
    fs::create_dir(folder.join("it")).expect("a folder");
    for (name, from) in [
        ("e.toml", "experiments/ping.toml"),
        ("it/subject.toml", "subjects/rust/axum/subject.toml"),
    ] {
        let text = fs::read_to_string(root.join(from)).expect("a file");
        write(
            name,
            text.replace("ref = \"rust/axum\"", "ref = \"./it\"")
                .as_bytes(),
        );
    }
    let inputs: [(&str, &[&str]); 12] = [
        ("run/plan.json", &["report", "run"]),
        ("run/environment.json", &["verify", "run"]),
        ("run/trials.jsonl", &["report", "run"]),
        (
            "run/trials.jsonl",
            &["compare", "run", "run", "--runs", "."],
        ),
        ("run/documents.sha256", &["verify", "run"]),
        ("run/published.json", &["report", "run", "--export", "long"]),
        ("run/analysis.md", &["report", "run"]),
        ("run/analysis.md", &["verify", "run"]),
        ("e.prony", &["verify", "e.prony"]),
        ("e.prony", &["reproduce", "e.prony"]),
        ("e.toml", &["run", "e.toml", "--dry-run"]),
        ("it/subject.toml", &["run", "e.toml", "--dry-run"]),
    ];
    write("e.prony", &packed);
    let goods = inputs.map(|(name, _)| of(name));
    let random = &mut Random::new(32);
    let (mut endings, mut before, mut most) = ([0; 4], 0, 0);
    for round in 0..count {
        let at = random.below(inputs.len() as u64) as usize;
        let (name, words) = inputs[at];
        let odd = match name {
            // What is in it, packed again: else its own checksum is all that is tried.
            "e.prony" if random.chance(3, 4) => {
                let odd = mutated(&archive, random);
                let mut packed = vec![0; zstd_safe::compress_bound(odd.len())];
                let length = zstd_safe::compress(&mut packed[..], &odd, 1).expect("packed");
                packed.truncate(length);
                packed
            }
            _ => mutated(&goods[at], random),
        };
        write(name, &odd);
        let paths = words[1..].iter().map(|word| match folder.join(word) {
            path if path.exists() => path.into_os_string(),
            _ => word.into(),
        });
        let words = ["prony".into(), words[0].into()].into_iter().chain(paths);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = format!("{:?}", prony_cli::run(words, &mut out, &mut err));
        let told = common::text(&out) + &common::text(&err);
        assert!(!steers(&told), "{name}: {told:?}");
        assert!(!told.is_empty(), "{name}: {code}");
        let code = (0..4).find(|n| code.contains(&format!("({n})")));
        endings[code.expect("a known ending")] += 1;
        write(name, &goods[at]);
        let now = memory_mib();
        most = most.max(now);
        before = if round == count / 10 { most } else { before };
    }
    println!(
        "{count} files: ended with 0, 1, 2, 3: {endings:?}; {before} MiB after a tenth, {most} MiB at most"
    );
    // Of few the memory is that of the tests beside it, which are over before a tenth of many.
    assert!(
        !is_long || most < before + 64,
        "memory grows: from {before} to {most} MiB"
    );
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
    let mut bytes = 0;
    for entry in fs::read_dir(&documents).expect("documents").flatten() {
        let folder = entry.path();
        let bundle = folder.join("run.prony");
        if !bundle.is_file() {
            continue;
        }
        bundles += 1;
        bytes += fs::metadata(&bundle).expect("a file").len();
        let there = bundle.display().to_string();
        // Digests of the bundle itself, and what it renders to; prose is for the tests of README.
        let (code, out, err) = done(&documents, &["verify", &folder.display().to_string()]);
        assert_eq!(code, Some(0), "{there}: {out}{err}");
        assert!(out.contains("as rendered"), "{out}");
    }
    assert!(bundles >= 1, "records lie beside documents");
    assert!(bytes <= 20_000_000, "{bytes} bytes of bundles");
}
