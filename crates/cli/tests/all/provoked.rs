//! Subjects that each do one thing wrong, in one run of the program: each is
//! caught, by the finding or the failure that is meant for it, and the document
//! is complete. The subjects are in `crates/lab/tests/subjects`.

use std::fs;
use std::process::Command;

use crate::common::{self, PRONY};
use serde_json::Value;

const HEAD: &str = r#"
title = "Provoked"
[run]
blocks = 1
duration = "2s"
warmup = "100ms"
[[workload]]
name = "ping"
request = { method = "POST", path = "/ping", headers = { Content-Type = "application/json" }, body = '{"sequence":{random}}' }
expect = { status = 200, content_type = "application/json", body = '{"sequence":{random}}' }
connections = [50]
"#;

const SUBJECTS: [&str; 5] = [
    "closes",
    "tiny-backlog",
    "wrong-sequence",
    "never-ready",
    "dies",
];

/// The trial of a subject, and its part of the document's figures.
struct Caught {
    trials: Vec<Value>,
    findings: Vec<Value>,
    document: String,
}

impl Caught {
    fn trial(&self, subject: &str) -> &Value {
        let mine = |trial: &&Value| {
            trial["cell"]
                .as_str()
                .is_some_and(|cell| cell.contains(subject))
        };
        self.trials
            .iter()
            .find(mine)
            .unwrap_or_else(|| panic!("no trial of {subject}"))
    }

    fn finding(&self, subject: &str, code: &str) -> &Value {
        let mine =
            |finding: &&Value| finding["code"] == code && finding.to_string().contains(subject);
        let found = self.findings.iter().find(mine);
        found.unwrap_or_else(|| panic!("no {code} of {subject} in {:#?}", self.findings))
    }

    fn failure(&self, subject: &str, phase: &str) -> String {
        let outcome = &self.trial(subject)["outcome"];
        assert_eq!(
            (outcome["kind"].as_str(), outcome["phase"].as_str()),
            (Some("failed"), Some(phase)),
            "{outcome}"
        );
        assert!(
            self.document.contains(subject),
            "{subject} is in the document"
        );
        outcome["reason"].as_str().expect("a reason").to_owned()
    }
}

fn run() -> Caught {
    let folder = common::folder("provoked");
    let subjects = prony_testkit::root().join("crates/lab/tests/subjects");
    let refs: String = SUBJECTS
        .iter()
        .map(|name| format!("[[subject]]\nref = \"{}\"\n", subjects.join(name).display()))
        .collect();
    fs::write(folder.join("provoked.toml"), format!("{HEAD}{refs}")).expect("an experiment");
    let mut command = Command::new(PRONY);
    command
        .current_dir(&folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"));
    let output = command
        .args(["run", "provoked.toml", "--out", "out"])
        .output()
        .expect("a run");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.code(),
        Some(3),
        "what failed makes the answer invalid: {said}"
    );
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect(name);
    let trials = read("trials.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a trial"))
        .collect();
    let summary: Value = serde_json::from_str(&read("summary.json")).expect("the figures");
    let findings = summary["findings"].as_array().expect("findings").clone();
    Caught {
        trials,
        findings,
        document: read("document.md"),
    }
}

#[test]
fn each_wrong_is_caught_by_its_name() {
    let Some(_python) = prony_testkit::need("python3") else {
        return;
    };
    let caught = run();

    caught.finding("closes", "P003");

    let overflow = caught.finding("tiny-backlog", "P004");
    assert!(
        overflow.to_string().contains("TcpExtListenOverflows"),
        "{overflow}"
    );

    let wrong = caught.failure("wrong-sequence", "verify");
    assert!(
        caught.trial("wrong-sequence")["load"].is_null(),
        "it was never measured: {wrong}"
    );

    caught.failure("never-ready", "ready");
    let log = caught.trial("never-ready")["log_tail"]
        .as_array()
        .expect("its last lines")
        .len();
    assert!(log >= 3, "its last lines are kept");
    caught.finding("never-ready", "P010");

    // In the window or just before it, as fast as the machine is.
    let phase = caught.trial("dies")["outcome"]["phase"]
        .as_str()
        .expect("a phase");
    assert!(["warm-up", "measure"].contains(&phase), "{phase}");
    let killed = caught.failure("dies", phase);
    assert!(killed.contains("ended by signal 9"), "{killed}");
}
