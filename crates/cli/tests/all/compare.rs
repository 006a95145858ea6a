//! `prony compare`: two commands in turns, two run directories, and how it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use crate::common::{self, PRONY, git, prony, text};
use serde_json::Value;

/// `prony` where wrk has no version, and so counts for none: on a busy machine a cross-check of half a second at another time may find
/// another rate, and then there is nothing to compare.
fn without_wrk(folder: &Path, words: &[&str]) -> Output {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    fs::write(bin.join("wrk"), "#!/bin/sh\n").expect("a script");
    fs::set_permissions(bin.join("wrk"), fs::Permissions::from_mode(0o755)).expect("its mode");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = common::command(folder, words);
    command.env("PATH", format!("{}:{path}", bin.display()));
    command.output().expect("prony runs")
}

#[test]
fn two_commands_in_turns_and_their_runs_beside_each_other() {
    let folder = common::folder("compare-turns");
    let serve = format!("{PRONY} serve --port {{port}}");
    // Two blocks claim nothing, on whichever machine.
    let small = [
        "compare", "--path", "/hello", "-c", "2", "--blocks", "2", "-d", "500ms", "--warmup",
        "20ms",
    ];
    let both = ["--interleave", &serve, &serve];
    let run = |more: &[&str]| without_wrk(&folder, &[&small[..], &both[..], more].concat());

    let first = run(&["--json", "--fail-on", "5%"]);
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    let seen: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert_eq!(
        (&seen["baseline"], &seen["other"]),
        (&"A".into(), &"B".into())
    );
    let metrics: Vec<&str> = seen["figures"]
        .as_array()
        .expect("figures")
        .iter()
        .filter_map(|figure| figure["metric"].as_str())
        .collect();
    assert_eq!(
        metrics,
        ["rate", "p50", "p99", "cpu_subject", "memory_peak", "ready"]
    );
    assert!(seen["figures"][0]["baseline"].as_f64().expect("a rate") > 0.0);
    assert_eq!(seen["gate"]["came_to"], "inconclusive");
    assert!(
        text(&first.stderr).contains("undecided: more or longer blocks"),
        "{}",
        text(&first.stderr)
    );

    let second = run(&["--markdown", "--fail-on", "5%", "--inconclusive", "fail"]);
    assert_eq!(second.status.code(), Some(1), "{}", text(&second.stderr));
    let said = text(&second.stdout);
    assert!(
        said.starts_with("No difference is claimed: 2 blocks are too few"),
        "{said}"
    );
    // Both runs are there like any other, and the experiments that they are of.
    for run in ["compare-001", "compare-002"] {
        assert!(
            folder.join("runs").join(run).join("document.md").exists(),
            "{run}"
        );
        assert!(folder.join(run).with_extension("toml").exists(), "{run}");
    }
    let apart = prony(
        &folder,
        &["compare", "runs/compare-001", "runs/compare-002"],
    );
    let said = text(&apart.stdout);
    // Where the machine leaves the generator no time, there is no figure of a subject's own, and that is said.
    let is_compared = |name: &str| said.contains(&format!("**{name} hello c=2**"));
    for name in ["A", "B"] {
        let is_left_out = said.contains(&format!("left out: {name} hello c=2"));
        assert!(is_compared(name) || is_left_out, "{name}: {said}");
    }
    let (code, sentence) = match is_compared("A") || is_compared("B") {
        true => (0, "no history tells how far sessions"),
        false => (3, "could not be compared"),
    };
    assert!(said.contains(sentence), "{said}");
    assert_eq!(apart.status.code(), Some(code), "{said}");
}

#[test]
fn where_the_first_trials_all_fail_the_reason_is_told_and_no_pilot_follows() {
    let folder = common::folder("compare-fails");
    let serve = format!("{PRONY} serve --port {{port}}");
    let words = [
        "compare", "--path", "/nothing", "-c", "2", "--budget", "30s",
    ];
    let run = without_wrk(
        &folder,
        &[&words[..], &["--interleave", &serve, &serve]].concat(),
    );
    let told = text(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{told}");
    let why = "too little could be measured to plan the run by: ";
    let (before, reason) = told.split_once(why).expect("it is told");
    assert!(reason.contains("status 200 expected, 404 came"), "{told}");
    assert!(!before.contains("Pilot run"), "{told}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let folder = common::folder("compare-wrong");
    let refused = |words: &[&str]| {
        let output = prony(&folder, words);
        (output.status.code(), text(&output.stderr))
    };
    let (code, said) = refused(&["compare", "nowhere", "here"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nowhere") || said.contains("here"), "{said}");
    for words in [
        &["compare"][..],
        &["compare", "a", "b", "c"],
        &["compare", "--interleave", "a"],
        &["compare", "--interleave", "a", "b", "--fail-on", "150%"],
        &["compare", "a", "b", "--path", "/"],
        &["compare", "a", "b", "--inconclusive", "fail"],
    ] {
        assert_eq!(refused(words).0, Some(2), "{words:?}");
    }
    // One that cannot be started is a run without a figure.
    let (code, said) = refused(&[
        "compare",
        "--interleave",
        "false {port}",
        "false {port}",
        "--blocks",
        "1",
        "-d",
        "100ms",
    ]);
    assert_eq!(code, Some(3), "{said}");
}

/// A server, and a program that says to have taken as long as its file says.
const SUBJECT: &str = r#"
name = "tiny"
language = "python"
role = "server"
summary = "Answers a text"
endpoints = ["/"]
[needs]
commands = ["python3"]
[start]
cmd = ["python3", "{dir}/tiny.py", "{port}"]
[program]
cmd = ["python3", "{dir}/tiny.py", "{work}", "{count}"]
works = ["spin", "rest"]
[ready]
http = "/"
[version]
cmd = "grep -o 'takes .*' {dir}/tiny.py"
"#;

const SERVER: &str = r#"# takes TAKES
import http.server, json, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", 65536
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words): pass
if sys.argv[1].isdigit():
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
print(json.dumps({"measure": "spins", "threads": 1, "count": int(sys.argv[2]), "elapsed_ns": TAKES}))
"#;

/// A repository whose folder `servers/tiny` has two states, `v1` and then `v2`, of which the program takes ten times as long.
fn two_revisions(folder: &Path) {
    let subject = folder.join("servers/tiny");
    fs::create_dir_all(&subject).expect("a folder");
    git(folder, &["init", "--quiet"]);
    for (tag, takes) in [("v1", "1000000"), ("v2", "10000000")] {
        fs::write(subject.join("subject.toml"), SUBJECT).expect("a subject");
        fs::write(subject.join("tiny.py"), SERVER.replace("TAKES", takes)).expect("a server");
        git(folder, &["add", "servers"]);
        git(folder, &["commit", "--quiet", "-m", tag]);
        git(folder, &["tag", tag]);
    }
}

#[test]
fn two_revisions_of_a_subject_in_turns() {
    let (Some(_), Some(_)) = (prony_testkit::need("python3"), prony_testkit::need("git")) else {
        return;
    };
    let folder = common::folder("compare-revisions");
    two_revisions(&folder);
    // What lies there now is neither of the two.
    let server = folder.join("servers/tiny/tiny.py");
    fs::write(server, "raise SystemExit(9)").expect("a server");
    let both = ["--interleave", "./servers/tiny@v1", "./servers/tiny@HEAD"];
    let small = [
        "-c", "1", "--blocks", "2", "-d", "500ms", "--warmup", "20ms",
    ];
    let of_requests = [&["compare", "--json"], &both[..], &small[..]].concat();
    let output = without_wrk(&folder, &of_requests);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rate = &seen["figures"][0];
    assert_eq!(rate["metric"], "rate");
    for side in ["baseline", "other"] {
        assert!(rate[side].as_f64().expect("a rate") > 0.0, "{seen}");
    }
    let plan = fs::read(folder.join("runs/compare-001/plan.json")).expect("a plan");
    let plan: Value = serde_json::from_slice(&plan).expect("JSON");
    let sides = [
        ("v1", "v1", "takes 1000000"),
        ("HEAD", "v2", "takes 10000000"),
    ];
    for (at, (name, revision, version)) in sides.into_iter().enumerate() {
        assert_eq!(plan["subjects"][at]["version"], version);
        let state = &plan["subjects"][at]["repositories"][0];
        assert_eq!(state["revision"], name);
        assert_eq!(
            state["commit"],
            git(&folder, &["rev-parse", revision]).as_str()
        );
    }
    let appendix = fs::read_to_string(folder.join("runs/compare-001/appendix.md")).expect("it");
    assert!(
        appendix.contains(&git(&folder, &["rev-parse", "v1"])[..12]),
        "{appendix}"
    );

    let of_works = ["--workload", "spin:20", "--blocks", "2"];
    let output = prony(
        &folder,
        &[&["compare", "--json"], &both[..], &of_works[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(
        seen["figures"][0]["ratio"].as_f64().expect("a ratio") < 0.5,
        "{seen}"
    );
    // The user's repository is as it was.
    assert_eq!(
        git(&folder, &["status", "--porcelain", "servers"]),
        "M servers/tiny/tiny.py"
    );
    assert_eq!(git(&folder, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_revision_that_is_not_there_is_named_with_its_line() {
    let Some(_) = prony_testkit::need("git") else {
        return;
    };
    let folder = common::folder("compare-no-revision");
    two_revisions(&folder);
    git(
        &folder,
        &["commit", "--quiet", "--allow-empty", "-m", "empty"],
    );
    git(&folder, &["rm", "--quiet", "-r", "servers"]);
    git(&folder, &["commit", "--quiet", "-m", "without"]);
    git(&folder, &["tag", "without"]);
    git(&folder, &["checkout", "--quiet", "v2"]);
    for (b, said) in [
        ("./servers/tiny@v9", "has no revision `v9`"),
        (
            "./servers/tiny@without",
            "at `without` there was no subject.toml in this folder",
        ),
        (
            "./servers/tinny@v1",
            "there is no subject `./servers/tinny`",
        ),
    ] {
        let output = prony(
            &folder,
            &["compare", "--interleave", "./servers/tiny@v1", b],
        );
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
}
