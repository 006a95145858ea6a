//! `prony run` with clients: Prony's own load generator and its strategies of receiving,
//! against Prony's own server, and a stand-in whose counts are wrong.

use std::fs;
use std::path::Path;
use std::process::Output;

use prony_record::{Agreement, Outcome, Plan, Role, Trial, agreement};

use crate::common;

const REQUESTS: &str = r#"
title = "Clients"

[run]
blocks = 1
duration = "1s"
reference = "rust/prony-load"

[[peer]]
ref = "rust/prony"

[[subject]]
ref = "rust/prony-load"

[[subject]]
ref = "./one-too-many"

[[workload]]
name = "hello"
client = "requests"
path = "/hello"
connections = [2, 10]

[[workload]]
name = "two-threads"
client = "requests"
path = "/hello"
connections = [1, 10]
threads = 2
peer_threads = 2
subjects = ["rust/prony-load"]
"#;

/// A client that claims an answer which it did not have.
const LIAR: &str = r#"
name = "one-too-many"
language = "shell"
role = "client"
summary = "Counts one answer too many"

[client]
cmd = ["{prony}", "load", "{url}", "-c", "{connections}", "-t", "{threads}", "-d", "{seconds}s", "--json", "-"]
works = ["requests"]
translate = ["sh", "-c", "python3 -B translate.py | sed -E 's/\"count\": ([0-9]+)/\"count\": \\1+1/' | python3 -B more.py"]
threads_max = 1
threads_max_reason = "it is a stand-in"

[version]
cmd = "echo one-too-many 1"
"#;

/// Does the addition that `sed` left.
const MORE: &str = r#"
import re, sys
print(re.sub(r'"count": (\d+)\+1', lambda found: f'"count": {int(found[1]) + 1}', sys.stdin.read(), count=1))
"#;

const MIXED: &str = r#"
title = "All kinds"

[run]
blocks = 1
duration = "1s"
warmup = "100ms"

[[peer]]
ref = "rust/prony"

[[subject]]
ref = "rust/prony"

[[subject]]
ref = "rust/prony-io"
args = ["--strategy", "poll"]

[[workload]]
name = "asked"
request = { path = "/hello" }
connections = [4]
subjects = ["rust/prony"]

[[workload]]
work = "coroutine"
count = 1000

[[workload]]
name = "payload"
client = "downloads"
payload = "3MiB"
connections = [5]
"#;

fn prony(folder: &Path, words: &[&str]) -> Output {
    common::prony(folder, &[&["run"], words].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn plan(out: &Path) -> Plan {
    let text = fs::read_to_string(out.join("plan.json")).expect("a plan");
    serde_json::from_str(&text).expect("a plan")
}

fn trials(out: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(out.join("trials.jsonl")).expect("the records");
    let trial = |line: &str| serde_json::from_str(line).expect("a trial");
    text.lines().map(trial).collect()
}

fn compared(plan: &Plan, trial: &Trial) -> Agreement {
    let cell = plan.cells.iter().find(|cell| cell.id == trial.cell);
    let report = trial.client.as_ref().expect("a report");
    let program = trial.program.as_ref().expect("a report");
    agreement(
        &program.lines[0],
        cell.expect("a cell").connections,
        &report.peer,
    )
}

#[test]
fn clients_and_their_peer_count_the_same_and_a_miscount_is_seen() {
    let folder = common::folder("clients");
    let liar = folder.join("one-too-many");
    fs::create_dir(&liar).expect("a folder");
    fs::write(liar.join("subject.toml"), LIAR).expect("a subject");
    fs::write(liar.join("more.py"), MORE).expect("a script");
    let translate = prony_testkit::root().join("subjects/rust/prony-load/translate.py");
    fs::copy(translate, liar.join("translate.py")).expect("a script");
    fs::write(folder.join("clients.toml"), REQUESTS).expect("an experiment");
    let output = prony(&folder, &["clients.toml", "--out", "out"]);
    let out = folder.join("out");
    let (plan, all) = (plan(&out), trials(&out));
    let said = said(&output);
    assert_eq!(all.len(), 5, "{said}");
    let reason = "2 threads cannot share 1 connection: each needs one";
    assert!(said.contains(reason), "{said}");
    assert_eq!(
        (plan.peers.len(), plan.peers[0].id.as_str()),
        (1, "rust/prony")
    );
    assert_eq!((plan.warmup_ns, plan.workloads.len()), (0, 2));
    for trial in &all {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
        let found = compared(&plan, trial);
        let wrong = trial.cell.contains("one-too-many");
        assert!(
            found.exact && found.compared && found.extra == 0,
            "{found:?}"
        );
        assert_eq!(found.missing, u64::from(wrong), "{}: {found:?}", trial.cell);
        let report = trial.client.as_ref().expect("a report");
        assert_eq!((report.page_status, report.page_body_bytes), (200, 13));
        assert!(report.said.contains("window_ns"), "{}", report.said);
        for role in [Role::Subject, Role::Peer] {
            let of_role = trial
                .processes
                .iter()
                .filter(|process| process.role == role);
            let cpu_ns: u64 = of_role.map(|process| process.cpu_ns).sum();
            assert!(cpu_ns > 10_000_000, "{role:?} of {trial:#?}");
        }
    }
    let document = fs::read_to_string(out.join("document.md")).expect("a document");
    assert!(document.contains("prony-load"), "{document}");
}

#[test]
fn servers_programs_and_clients_stand_in_one_experiment() {
    let folder = common::folder("all-kinds");
    fs::write(folder.join("mixed.toml"), MIXED).expect("an experiment");
    let output = prony(&folder, &["mixed.toml", "--out", "out"]);
    let out = folder.join("out");
    let (plan, all) = (plan(&out), trials(&out));
    assert_eq!(all.len(), 3, "{}", said(&output));
    for trial in &all {
        assert_eq!(trial.outcome, Outcome::Measured, "{trial:#?}");
    }
    let of = |workload: &str| {
        all.iter()
            .find(|trial| trial.cell.contains(workload))
            .expect(workload)
    };
    assert!(of("asked").load.is_some() && of("asked").client.is_none());
    assert!(of("coroutine").program.is_some() && of("coroutine").client.is_none());
    let payload = of("payload");
    let report = payload.client.as_ref().expect("a report");
    assert_eq!(report.page_body_bytes, 3 << 20);
    assert_eq!(
        (report.peer.requests, report.peer.bytes),
        (Some(5), Some(15 << 20))
    );
    let found = compared(&plan, payload);
    assert!(found.holds() && found.bytes_off == Some(0), "{found:?}");
}
