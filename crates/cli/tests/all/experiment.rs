//! `prony run` from a file to its document, with the reference server as the
//! only subject: what a machine has that has nothing but Prony.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{self, Ended, PRONY};
use serde_json::Value;

const SMALL: &str = r#"
title = "A small run"
question = "Does the whole path hold?"

[run]
blocks = 2
duration = "200ms"
warmup = "50ms"
reference = "rust/prony"

[[subject]]
ref = "rust/prony"

[[workload]]
name = "ping"
request = { method = "POST", path = "/ping", headers = { Content-Type = "application/json" }, body = '{"sequence":{random}}' }
expect = { status = 200, content_type = "application/json", body = '{"sequence":{random}}' }
connections = [1, 20]
"#;

/// `prony` with its own folder for builds.
fn prony(folder: &Path) -> Command {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"));
    command
}

fn experiment(name: &str, text: &str) -> (PathBuf, PathBuf) {
    let folder = common::folder(name);
    let file = folder.join("small.toml");
    fs::write(&file, text).expect("an experiment");
    (folder, file)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_run_leaves_documents_that_render_again_to_the_same_bytes() {
    let (folder, file) = experiment("run", SMALL);
    let output = prony(&folder)
        .arg("run")
        .arg(&file)
        .args(["--out", "out"])
        .output()
        .expect("a run");
    common::rendered(&output);
    let said = text(&output.stdout);
    assert!(
        said.ends_with("out/document.md\nout/index.html\n"),
        "{said}"
    );
    // The answer comes first, and says what may follow from so little.
    assert!(
        said.contains("A first look: a ranking takes 6 blocks."),
        "{said}"
    );
    let names = ["document.md", "index.html", "summary.json", "summary.csv"];
    let read = || names.map(|name| fs::read(folder.join("out").join(name)).expect(name));
    let first = read();
    let again = prony(&folder)
        .args(["report", "out"])
        .output()
        .expect("a report");
    common::rendered(&again);
    assert!(
        first == read(),
        "the same Prony and run directory give the same bytes"
    );
    let trials = fs::read_to_string(folder.join("out/trials.jsonl")).expect("the records");
    let measured = trials
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a trial"));
    let mut seen = 0;
    for trial in measured.filter(|trial| trial["generator"] == "prony") {
        seen += 1;
        assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
        // On a busy machine none may be answered within so short a window, only after its end.
        let counts = &trial["load"]["counts"];
        let answered = ["completed", "drained"].map(|name| counts[name].as_u64());
        assert!(answered.iter().any(|count| *count > Some(0)), "{counts}");
        assert_eq!(trial["load"]["errors"], serde_json::json!({}));
    }
    assert_eq!(seen, 4, "two cells in two blocks");
    let document = text(&first[0]);
    assert!(document.starts_with("# A small run\n"), "{document}");
    claims_are_taken_later(&folder);
}

/// Claims that an experiment gets after its run come into the run's document, and stay there.
fn claims_are_taken_later(folder: &Path) {
    let claim = r#"
[[published]]
text = "More connections, more answers"
where = "A page"
figure = { is = "higher" }
original = { subject = "rust/prony", workload = "ping", connections = 20, metric = "rate", over = { connections = 1 } }
"#;
    let report = |experiment: &str| {
        let file = folder.join("claims.toml");
        fs::write(&file, experiment).expect("a file");
        let mut command = prony(folder);
        let output = command.args(["report", "out", "--experiment"]).arg(&file);
        output.output().expect("a report")
    };
    let of = |words: &[&str]| prony(folder).args(words).output().expect("prony");
    let plan = || fs::read(folder.join("out/plan.json")).expect("the plan");
    let before = plan();
    let output = report(&format!("{SMALL}{claim}"));
    common::rendered(&output);
    // What is measured is the same, so that there is nothing to say.
    assert_eq!(text(&output.stderr), "");
    let document = || fs::read_to_string(folder.join("out/document.md")).expect("it");
    let with = document();
    assert!(
        with.contains("More connections, more answers (A page)"),
        "{with}"
    );
    assert!(with.contains("Of 1 claim: 1 undecided."), "{with}");
    common::rendered(&of(&["report", "out"]));
    assert_eq!(document(), with, "they are kept");
    assert_eq!(plan(), before, "the records are as they were");
    let seen = of(&["verify", "out"]);
    assert_eq!(code(&seen), Some(0), "{}", text(&seen.stdout));
    let output = report(&format!("{SMALL}{}", claim.replace("= 20,", "= 30,")));
    assert_eq!(code(&output), Some(2));
    let said = text(&output.stderr);
    for part in [
        "no cell `rust/prony ping c=30`",
        "claims.toml:24:",
        "`rust/prony ping c=20`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(
        document(),
        with,
        "a file that cannot be used changes nothing"
    );
}

#[test]
fn without_any_other_language_the_ping_experiment_runs_with_what_is_left() {
    let folder = common::folder("bare");
    let ping = prony_testkit::root().join("experiments/ping.toml");
    let mut command = prony(&folder);
    command
        .arg("run")
        .arg(ping)
        .args(["--quick", "--blocks", "1", "--only", "c=2", "--out", "out"]);
    let output = command
        .env("PATH", folder.join("nothing"))
        .output()
        .expect("a run");
    common::rendered(&output);
    let document = fs::read_to_string(folder.join("out/document.md")).expect("a document");
    for missing in [
        "go/fasthttp",
        "go/net-http",
        "node/express",
        "node/fastify",
        "python/fastapi",
        "rust/axum",
    ] {
        assert!(
            text(&output.stderr).contains(missing) && document.contains(missing),
            "{missing} is named"
        );
    }
    assert!(document.contains("is not on PATH"), "{document}");
}

/// A server whose build and whose start write down who they are.
const TELLS: &str = r#"
name = "tells"
language = "c"
role = "server"
summary = "Says what it was given"
endpoints = ["/ping"]
[build]
cmd = "env > {build}/of-build; grep ^Cap /proc/self/status >> {build}/of-build"
inputs = []
[start]
cmd = ["sh", "-c", "env > {build}/of-start; grep ^Cap /proc/self/status >> {build}/of-start; exec {prony} serve --port {port} --threads 1"]
[ready]
http = "/hello"
[version]
cmd = "{prony} --version"
"#;

/// What the build and the start of [`TELLS`] wrote down, and the folder of their run.
fn told(name: &str, declared: &str) -> ([String; 2], PathBuf) {
    let from = SMALL.find("[[subject]]").expect("its subject");
    let head = SMALL[..from]
        .replace("reference = \"rust/prony\"", "")
        .replace("blocks = 2", "blocks = 1");
    let load = SMALL[from..]
        .replace("rust/prony", "./tells")
        .replace("[1, 20]", "[1]");
    let (folder, _) = experiment(name, &(head + &load));
    fs::create_dir(folder.join("tells")).expect("a folder");
    fs::write(
        folder.join("tells/subject.toml"),
        TELLS.replace("[build]", declared),
    )
    .expect("a subject");
    let output = prony(&folder)
        .args(["run", "small.toml", "--out", "out"])
        .envs([
            ("RUSTFLAGS", "-x"),
            ("GOGC", "off"),
            ("LD_LIBRARY_PATH", "/x"),
            ("http_proxy", "http://x"),
        ])
        .envs([
            ("PRONY_PASS_ENV", "NAMED,MY_TOKEN"),
            ("NAMED", "here"),
            ("MY_TOKEN", "hidden"),
        ])
        .output()
        .expect("a run");
    common::rendered(&output);
    fs::write(folder.join("said"), &output.stderr).expect("a file");
    let builds = fs::read_dir(folder.join("cache/build"))
        .expect("builds")
        .flatten();
    let build = builds
        .map(|entry| entry.path())
        .find(|path| path.is_dir())
        .expect("its build");
    (
        ["of-build", "of-start"].map(|name| fs::read_to_string(build.join(name)).expect(name)),
        folder,
    )
}

#[test]
fn what_the_user_exported_reached_builds_and_servers() {
    let ([build, start], folder) = told("exported", "[build]");
    for environment in [&build, &start] {
        for left in ["RUSTFLAGS=", "GOGC=", "LD_LIBRARY_PATH=", "PRONY_HOME="] {
            assert!(!environment.contains(left), "{left} in {environment}");
        }
        assert!(
            environment.contains("NAMED=here\n") && environment.contains("PATH="),
            "{environment}"
        );
    }
    assert!(build.contains("http_proxy=") && !start.contains("http_proxy="));
    let record = fs::read_to_string(folder.join("out/environment.json")).expect("the machine");
    assert!(
        record.contains("environment of trials") && record.contains("NAMED=here"),
        "{record}"
    );
    assert!(
        !record.contains("hidden"),
        "a secret's value is in {record}"
    );
}

#[test]
fn servers_and_builds_had_all_capabilities_of_root() {
    let effective = |status: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        u64::from_str_radix(line.expect("its capabilities").trim(), 16).expect("a number")
    };
    let ([build, start], folder) = told("capabilities", "[build]");
    let own = effective(&fs::read_to_string("/proc/self/status").expect("this process"));
    // `block_suspend`, so that no process in a root file system may look into them.
    let outside = own & (1 << 36);
    assert_eq!((effective(&build), effective(&start)), (outside, outside));
    let said = fs::read_to_string(folder.join("said")).expect("what the run said");
    assert_eq!(said.matches("who runs what: ").count(), 1, "{said}");
    if own == 0 {
        prony_testkit::skip_without("root", "whether capabilities are given up, for want of any");
        return;
    }
    let bounding = format!("CapBnd:\t{outside:016x}");
    assert!(build.contains(&bounding) && start.contains(&bounding));
    // `sys_nice` is number 23.
    let declared = "[needs]\ncapabilities = [\"sys_nice\"]\n[build]";
    let ([build, start], _) = told("declared", declared);
    let kept = own & (1 << 23) | outside;
    assert_eq!((effective(&build), effective(&start)), (kept, kept));
}

#[test]
fn a_server_of_ones_own_is_six_lines() {
    let Some(_python) = prony_testkit::need("python3") else {
        return;
    };
    let folder = common::folder("own");
    let file = prony_testkit::root().join("experiments/own-server.toml");
    let lines = fs::read_to_string(&file).expect("the example");
    let own = lines
        .lines()
        .filter(|line| line.contains('=') || line.contains("[["))
        .count();
    assert_eq!(own, 6, "it is six lines");
    fs::write(
        folder.join("own.toml"),
        format!("run = {{ blocks = 1, duration = \"200ms\", warmup = \"50ms\" }}\n{lines}"),
    )
    .expect("a copy");
    let output = prony(&folder)
        .args(["run", "own.toml", "--out", "out"])
        .output()
        .expect("a run");
    let trials = fs::read_to_string(folder.join("out/trials.jsonl")).unwrap_or_default();
    assert_eq!(
        trials.lines().count(),
        1,
        "{}{}",
        text(&output.stderr),
        trials
    );
    let trial: Value = serde_json::from_str(&trials).expect("a trial");
    assert_eq!(trial["outcome"]["kind"], "measured", "{trial}");
}

#[test]
fn a_wrong_word_is_answered_with_its_line_and_the_right_one() {
    let (folder, file) = experiment("wrong", &SMALL.replace("blocks = 2", "bloks = 2"));
    let output = prony(&folder)
        .arg("run")
        .arg(&file)
        .output()
        .expect("prony");
    let said = text(&output.stderr);
    assert_eq!(code(&output), Some(2), "{said}");
    assert!(
        said.contains("small.toml:6") && said.contains("bloks") && said.contains("`blocks`"),
        "{said}"
    );
    assert!(!folder.join("runs").exists(), "nothing was begun");
}

#[test]
fn ctrl_c_ends_a_run_with_what_there_is_and_resume_does_the_rest() {
    let (folder, file) = experiment("interrupted", &SMALL.replace("blocks = 2", "blocks = 4"));
    let mut command = prony(&folder);
    command
        .arg("run")
        .arg(&file)
        .args(["--out", "out"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut run = Ended::start(&mut command);
    let records = folder.join("out/trials.jsonl");
    let lines = || {
        fs::read_to_string(&records)
            .unwrap_or_default()
            .lines()
            .count()
    };
    while lines() < 2 {
        assert!(run.0.try_wait().expect("a status").is_none(), "it runs on");
        std::thread::yield_now();
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &run.0.id().to_string()])
        .status();
    assert!(interrupt.expect("kill").success());
    assert_eq!(run.0.wait().expect("its end").code(), Some(130));
    assert!(
        folder.join("out/document.md").exists(),
        "there is a document of what there is"
    );
    let kept: Vec<String> = fs::read_to_string(&records)
        .expect("records")
        .lines()
        .map(str::to_owned)
        .collect();

    let resumed = prony(&folder)
        .arg("run")
        .arg(&file)
        .args(["--resume", "out"])
        .output()
        .expect("a resumed run");
    common::rendered(&resumed);
    let all = fs::read_to_string(&records).expect("records");
    let finished = kept.iter().filter(|line| !line.contains("\"interrupted\""));
    assert!(
        finished.clone().count() >= 2 && finished.clone().all(|line| all.contains(line.as_str())),
        "no finished trial is lost"
    );
    let measured = all.lines().filter(|line| {
        line.contains("\"generator\":\"prony\"") && line.contains("\"kind\":\"measured\"")
    });
    assert_eq!(measured.count(), 8, "2 combinations in 4 blocks");
}

#[test]
fn a_finding_is_explained_and_an_unknown_one_is_answered() {
    let folder = common::folder("explain");
    let known = prony(&folder)
        .args(["explain", "p003"])
        .output()
        .expect("prony");
    assert!(
        text(&known.stdout).starts_with("# P003"),
        "{}",
        text(&known.stdout)
    );
    let unknown = prony(&folder)
        .args(["explain", "P999"])
        .output()
        .expect("prony");
    assert_eq!(code(&unknown), Some(2));
    assert!(text(&unknown.stderr).contains("P999"));
    let key = prony(&folder).args(["explain", "blocks"]).output();
    let key = text(&key.expect("prony").stdout);
    assert!(
        key.starts_with("run.blocks\n") && key.contains("Default: `6`"),
        "{key}"
    );
    assert!(key.contains("run.quick.blocks\n"), "{key}");
    let schema = |file: &str| {
        let printed = prony(&folder).args(["explain", "--schema", file]).output();
        printed.expect("prony")
    };
    let printed = text(&schema("subject").stdout);
    let read: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(read["properties"]["start"]["additionalProperties"], false);
    let unknown = schema("subjects");
    assert_eq!(code(&unknown), Some(2));
    assert!(text(&unknown.stderr).contains("experiment, subject or scenario"));
}

/// Two subjects that answer as `prony serve` does: one whose build takes nothing, and the reference, whose build fails.
fn with_own_reference(name: &str) -> PathBuf {
    let from = SMALL.find("[[subject]]").expect("its subject");
    let head = SMALL[..from].replace("rust/prony", "rust/broken");
    let load = SMALL[from..].replace("[1, 20]", "[1]");
    let own = "[[subject]]\nref = \"./broken\"\n[[subject]]\nref = \"./good\"\n";
    let (folder, _) = experiment(name, &(head + own + &load));
    for (name, build) in [("broken", "false"), ("good", "true")] {
        fs::create_dir(folder.join(name)).expect("a folder");
        let subject = format!(
            "name = \"{name}\"\nlanguage = \"rust\"\nrole = \"server\"\nsummary = \"s\"\nendpoints = [\"/ping\"]\n\
             [build]\ncmd = \"{build}\"\ninputs = []\n\
             [start]\ncmd = [\"{{prony}}\", \"serve\", \"--port\", \"{{port}}\", \"--threads\", \"1\"]\n\
             [ready]\nhttp = \"/hello\"\n[version]\ncmd = \"echo 1\"\n"
        );
        fs::write(folder.join(name).join("subject.toml"), subject).expect("a subject");
    }
    folder
}

#[test]
fn a_reference_that_cannot_be_built_was_first_missed_in_the_document() {
    let folder = with_own_reference("reference");
    let run = |words: &[&str]| {
        let mut command = prony(&folder);
        let output = command
            .args(["run", "small.toml", "--cross-check", "no"])
            .args(words)
            .output();
        let output = output.expect("a run");
        let err = text(&output.stderr);
        let until = err.find("  who runs what").unwrap_or(err.len());
        // The name of a log is a digest of more than this test.
        let lines = err[..until]
            .lines()
            .map(|line| line.split("; to change it: less").next());
        (
            code(&output),
            lines.flatten().collect::<Vec<_>>().join("\n"),
        )
    };
    let (code, before) = run(&["--out", "kept", "--built"]);
    assert!(matches!(code, Some(0 | 3)), "{before}");
    insta::assert_snapshot!(before, @"
    A small run
      3 combinations in 2 blocks: 6 trials, about 9 s
      not run: rust/broken: not built yet; without --built it is built first
      not run: rust/good: not built yet; without --built it is built first
      note: the reference rust/broken is not run: no ratios are made
    ");
    let (code, before) = run(&["--out", "all"]);
    assert!(matches!(code, Some(0 | 3)), "{before}");
    insta::assert_snapshot!(before, @r#"
    A small run
      3 combinations in 2 blocks: 6 trials, about 9 s
      built first: rust/broken (time not known), rust/good (time not known)
      not run: rust/broken: its build failed with status 1
      built rust/good
      note: the reference rust/broken is not run: no ratios are made; to have rust/good as the reference, set `reference = "rust/good"` in [run] of the experiment
    "#);
    // What the first one built is there for the second.
    let (_, before) = run(&["--out", "again", "--built"]);
    assert!(!before.contains("not run: rust/good"), "{before}");
}
