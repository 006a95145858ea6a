//! `prony new`: what it writes runs at once, and it overwrites nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{self, PRONY, git, prony, text};
use crate::server::Server;

fn ended(folder: &Path, code: i32, words: &[&str]) -> Output {
    let output = prony(folder, words);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{words:?}: {out}{err}");
    output
}

/// A run of what was written; that a figure of so short a window is not valid on a busy machine is no fault.
fn runs(folder: &Path, file: &str, more: &[&str]) -> String {
    let output = prony(
        folder,
        &[&["run", file, "--quick", "--duration", "200ms"], more].concat(),
    );
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        matches!(output.status.code(), Some(0 | 3)),
        "{file}: {out}{err}"
    );
    fs::read_to_string(
        folder.join(
            out.lines()
                .find(|line| line.ends_with("document.md"))
                .expect("a document"),
        ),
    )
    .expect("it")
}

#[test]
fn experiments_run_as_they_were_written() {
    let folder = common::folder("new-experiment");
    let output = ended(&folder, 0, &["new", "experiment"]);
    assert_eq!(
        text(&output.stdout),
        "wrote my-server.toml\nnext: prony run my-server.toml --quick\n"
    );
    runs(&folder, "my-server.toml", &[]);
    let cmd = format!("{PRONY} serve --port {{port}}");
    ended(
        &folder,
        0,
        &[
            "new",
            "experiment",
            "own.toml",
            "--cmd",
            &cmd,
            "--path",
            "/hello",
        ],
    );
    runs(&folder, "own.toml", &[]);
    let other = format!("{cmd} --services on");
    ended(
        &folder,
        0,
        &[
            "new",
            "experiment",
            "two",
            "--compare",
            &cmd,
            &other,
            "--path",
            "/hello",
        ],
    );
    let document = runs(&folder, "two.toml", &["--blocks", "1"]);
    assert!(
        document.contains("| A (reference)") && document.contains("| B "),
        "{document}"
    );
    let server = Server::start(&["--threads", "1"]);
    let port = server.port;
    let url = format!("http://127.0.0.1:{port}/hello?x=1");
    ended(&folder, 0, &["new", "experiment", "there", "--url", &url]);
    let written = fs::read_to_string(folder.join("there.toml")).expect("it");
    assert!(
        written.contains(&format!("url = \"http://127.0.0.1:{port}\""))
            && written.contains("path = \"/hello?x=1\""),
        "{written}"
    );
    runs(&folder, "there.toml", &[]);
    ended(
        &folder,
        0,
        &["new", "load", "--rate", "200", "--rate", "0.5k"],
    );
    let written = fs::read_to_string(folder.join("my-load.toml")).expect("it");
    assert!(
        written.contains("rate = [200, 500], process = \"poisson\""),
        "{written}"
    );
    runs(&folder, "my-load.toml", &[]);
}

#[test]
fn nothing_is_overwritten() {
    let folder = common::folder("new-twice");
    fs::write(folder.join("mine.toml"), "mine").expect("a file");
    let output = ended(&folder, 2, &["new", "experiment", "mine"]);
    assert!(
        text(&output.stderr).contains("mine.toml already exists"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        fs::read_to_string(folder.join("mine.toml")).expect("it"),
        "mine"
    );
    fs::create_dir_all(folder.join("subjects/python/mine")).expect("a folder");
    std::os::unix::fs::symlink("nowhere", folder.join("subjects/python/mine/server.py"))
        .expect("a link");
    let output = ended(&folder, 2, &["new", "subject", "python/mine"]);
    assert!(
        text(&output.stderr).contains("server.py already exists"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        !folder.join("subjects/python/mine/subject.toml").exists(),
        "half of it was written"
    );
}

/// A subject of `language` holds to the contract as it was written; also to what only conformance.py asks.
fn holds(language: &str, command: &str) {
    let (Some(_), Some(python)) = (prony_testkit::need(command), prony_testkit::need("python3"))
    else {
        return;
    };
    let folder = common::folder(&format!("new-{language}"));
    ended(&folder, 0, &["new", "subject", &format!("{language}/mine")]);
    let place = format!("subjects/{language}/mine");
    let output = ended(&folder, 0, &["check", &place]);
    let said = text(&output.stdout);
    assert!(
        said.contains(&format!("{language}/mine: holds (")) && !said.contains("cannot:"),
        "{said}"
    );
    let tried = Command::new(python)
        .arg(prony_testkit::root().join("subjects/try.py"))
        .arg(folder.join(&place))
        .output()
        .expect("the script runs");
    let said = text(&tried.stdout) + &text(&tried.stderr);
    assert!(tried.status.success(), "{said}");
}

#[test]
fn a_subject_in_python_holds() {
    holds("python", "python3");
}

#[test]
fn a_subject_in_node_holds() {
    holds("node", "node");
}

#[test]
fn a_subject_in_go_holds() {
    holds("go", "go");
}

#[test]
fn a_subject_in_rust_holds() {
    holds("rust", "cargo");
}

#[test]
fn bad_words_are_named() {
    let folder = common::folder("new-bad");
    for (words, why) in [
        (
            &["experiment", "--url", "ftp://x"][..],
            "it must begin with http://",
        ),
        (&["experiment", "--cmd", "./server"], "{port}"),
        (&["experiment", "--cmd", "a | b {port}"], "is for a shell"),
        (
            &["experiment", "--compare", "a {port}"],
            "2 values required",
        ),
        (
            &["experiment", "--cmd", "a {port}", "--url", "http://x"],
            "cannot be used with",
        ),
        (&["experiment", "x/"], "is not a valid file name"),
        (&["experiment", "--path", "no-slash"], "path"),
        (&["load", "--rate", "0"], "asks for nothing"),
        (&["load", "--rate", "fast"], "is not a rate"),
        (&["subject", "mine"], "is not written like python/mine"),
        (&["subject", "pyton/mine"], "did you mean `python`?"),
        (
            &["subject", "python/../../x"],
            "is not a valid name of a subject",
        ),
        (&["subject", "python/"], "is not a valid name of a subject"),
        (&["ci", "jenkins"], "invalid value"),
        (&["ci", "github", "--cmd", "./server"], "{port}"),
        (
            &["ci", "github", "--build", "make 'x'"],
            "put it into a script",
        ),
        (&["ci", "github", "--fail-on", "much"], "much"),
        (&[], "Usage"),
    ] {
        let output = ended(&folder, 2, &[&["new"], words].concat());
        let said = text(&output.stderr);
        assert!(said.contains(why), "{words:?}: {said}");
    }
    assert_eq!(
        fs::read_dir(&folder).expect("a folder").count(),
        0,
        "something was written"
    );
}

/// The shell commands of a workflow in their order: what follows `KEY: |`, or `- |`, and is moved in more than it.
fn steps(workflow: &str, key: &str) -> Vec<String> {
    let mut steps = Vec::new();
    let mut lines = workflow.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != key {
            continue;
        }
        let depth = |line: &str| line.len() - line.trim_start().len();
        let mut step = String::new();
        while let Some(next) =
            lines.next_if(|next| next.trim().is_empty() || depth(next) > depth(line))
        {
            step.push_str(next.trim_start());
            step.push('\n');
        }
        steps.push(step);
    }
    steps
}

/// What a workflow gives a variable.
fn value(workflow: &str, name: &str) -> String {
    let begins = format!("{name}: ");
    let line = workflow
        .lines()
        .find_map(|line| line.trim().strip_prefix(&begins));
    line.expect("a variable").trim_matches('"').to_owned()
}

/// A clone of a repository of two commits: the program `server` starts Prony's server, and then, where `slower`, a slow one.
fn repository(folder: &Path, slower: bool) -> (PathBuf, String) {
    let (origin, clone) = (folder.join("origin"), folder.join("clone"));
    fs::create_dir_all(&origin).expect("a folder");
    let commit = |line: &str| {
        let server = origin.join("server");
        fs::write(&server, format!("#!/bin/sh\n# {line}\nexec {line}\n")).expect("a file");
        fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).expect("a program");
        git(&origin, &["add", "."]);
        git(&origin, &["commit", "--quiet", "-m", line]);
    };
    git(folder, &["init", "--quiet", "-b", "main", "origin"]);
    ended(&origin, 0, &["new", "subject", "python/slow"]);
    commit(&format!("{PRONY} serve --port $1"));
    git(&origin, &["checkout", "--quiet", "-b", "change"]);
    match slower {
        true => commit("python3 subjects/python/slow/server.py 127.0.0.1 $1"),
        false => commit(&format!("{PRONY} serve --port \"$1\"")),
    }
    git(
        folder,
        &["clone", "--quiet", "--branch", "change", "origin", "clone"],
    );
    let base = git(&clone, &["rev-parse", "origin/main"]);
    (clone, base)
}

/// Runs the steps of `file` in `clone` as its CI would, with short windows: status of the last one, and what was commented.
fn ci(folder: &Path, clone: &Path, base: &str, file: &str, key: &str) -> (Option<i32>, String) {
    let (bin, temp) = (folder.join("bin"), folder.join("temp"));
    fs::create_dir_all(&bin).expect("a folder");
    fs::create_dir_all(&temp).expect("a folder");
    std::os::unix::fs::symlink(PRONY, bin.join("prony")).expect("a link");
    let comment = folder.join("commented");
    let of_curl = "for a; do case $a in body@*) f=${a#body@};; esac; done; set -- \"$f\"";
    for (name, body) in [("gh", "shift 4"), ("curl", of_curl)] {
        let stub = format!("#!/bin/sh\n{body}\ncp \"$1\" {}\n", comment.display());
        prony_testkit::write_program(&bin.join(name), &stub);
    }
    let workflow = fs::read_to_string(clone.join(file)).expect("the workflow");
    let steps = steps(&workflow, key);
    assert_eq!(steps.len(), 6, "{workflow}");
    let mut last = None;
    for step in &steps {
        let path = format!(
            "{}:{}",
            bin.display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut command = Command::new("bash");
        command
            .args(["-e", "-o", "pipefail", "-c", step])
            .current_dir(clone)
            .env("PATH", path);
        command.envs(
            ["BUILD", "SERVER", "URL_PATH", "FAIL_ON", "PRONY_GIT"]
                .map(|name| (name, value(&workflow, name))),
        );
        command.envs([
            ("BLOCKS", "6"),
            ("CONNECTIONS", "4"),
            ("WINDOW", "200ms"),
            ("WARMUP", "50ms"),
            ("GITHUB_BASE_REF", "main"),
            ("PULL_REQUEST", "7"),
        ]);
        command.envs([
            ("PRONY_TOKEN", "t"),
            ("CI_API_V4_URL", "http://127.0.0.1:1"),
            ("CI_PROJECT_ID", "1"),
            ("CI_MERGE_REQUEST_IID", "1"),
        ]);
        command.envs([
            ("RUNNER_TEMP", &temp),
            ("GITHUB_STEP_SUMMARY", &folder.join("summary")),
            ("PRONY_CACHE", &folder.join("cache")),
        ]);
        command
            .env("GITHUB_WORKSPACE", clone)
            .env("CI_PROJECT_DIR", clone)
            .env("CI_MERGE_REQUEST_DIFF_BASE_SHA", base);
        command.env("PRONY_STATE", folder.join("state"));
        let output = command.output().expect("bash runs");
        last = output.status.code();
        let is_last = std::ptr::eq(step, &steps[5]);
        assert!(
            last == Some(0) || is_last,
            "{step}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
    (last, fs::read_to_string(&comment).expect("a comment"))
}

#[test]
fn what_a_workflow_measures_takes_less_than_ten_minutes() {
    for (host, file) in [
        ("github", ".github/workflows/prony.yml"),
        ("gitlab", ".gitlab-ci-prony.yml"),
    ] {
        let folder = common::folder(&format!("new-ci-long-{host}"));
        ended(&folder, 0, &["new", "ci", host]);
        let workflow = fs::read_to_string(folder.join(file)).expect("the workflow");
        let of = |name| value(&workflow, name);
        let (blocks, window, warmup) = (of("BLOCKS"), of("WINDOW"), of("WARMUP"));
        let experiment = format!(
            "[run]\nblocks = {blocks}\nduration = \"{window}\"\nwarmup = \"{warmup}\"\nreference = \"A\"\n\
             [[subject]]\nname = \"A\"\ncmd = \"sh {{port}}\"\n[[subject]]\nname = \"B\"\ncmd = \"sh -x {{port}}\"\n\
             [[workload]]\nrequest = {{ path = \"/\" }}\nconnections = [{}]\n",
            of("CONNECTIONS")
        );
        fs::write(folder.join("as.toml"), experiment).expect("an experiment");
        let output = ended(&folder, 0, &["run", "as.toml", "--dry-run", "--json"]);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let estimate_ns = plan["estimate_ns"].as_u64().expect("an estimate");
        assert!(
            plan["trials"].as_u64() >= Some(60),
            "the base is measured twice"
        );
        assert!(
            (60..=600).contains(&(estimate_ns / 1_000_000_000)),
            "{estimate_ns} ns"
        );
    }
}

/// Below how many percent a change in rate would be missed, as a comment says.
fn missed_below(comment: &str) -> Option<f64> {
    let (_, after) = comment.split_once("Changes in rate under about ")?;
    let (percent, _) = after.split_once(" % would be missed")?;
    percent.replace(',', "").parse().ok()
}

#[test]
fn a_workflow_fails_on_a_regression_and_says_what_it_could_have_told() {
    let (Some(_), Some(_)) = (prony_testkit::need("bash"), prony_testkit::need("python3")) else {
        return;
    };
    for (host, file, key, slower) in [
        ("github", ".github/workflows/prony.yml", "run: |", true),
        ("gitlab", ".gitlab-ci-prony.yml", "- |", false),
    ] {
        let folder = common::folder(&format!("new-ci-{host}-{slower}"));
        let (clone, base) = repository(&folder, slower);
        // What no noise of so short a run comes near to.
        let words = [
            "new",
            "ci",
            host,
            "--build",
            "true",
            "--cmd",
            "./server {port}",
            "--path",
            "/hello",
            "--fail-on",
            "60%",
        ];
        ended(&clone, 0, &words);
        ended(&clone, 2, &words);
        let (status, comment) = ci(&folder, &clone, &base, file, key);
        assert!(
            comment.contains("| ")
                && ["would be missed.", "No difference is claimed"]
                    .iter()
                    .any(|told| comment.contains(told)),
            "{comment}"
        );
        // Where others took the cores, too few blocks may be left to claim anything of, or the rate may be so
        // uncertain that a change of this size would be missed, which is then said.
        let is_hidden = comment.contains("others disturbed") || missed_below(&comment) > Some(60.0);
        let is_told = is_hidden || comment.contains("B is slower than A");
        match status {
            Some(1) => assert!(slower && is_told, "{comment}"),
            Some(0 | 3) => assert!(!slower || is_hidden, "{comment}"),
            _ => panic!("{status:?}: {comment}"),
        }
    }
}
