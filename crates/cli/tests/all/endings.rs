//! However a run ends, nothing that it started is left: Ctrl-C and `kill -9` at
//! seeded moments of whole runs of the program, found by a mark in the
//! environment that every process of a run inherits. No trial that had ended is lost.
//!
//! `PRONY_ENDINGS=50` tries more moments than the few of an ordinary test.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{self, PRONY};
use prony_base::Random;

const MARK: &str = "PRONY_TEST_ENDING_MARK";
const MOMENTS: u64 = 6;
/// And in the long tier.
const MOMENTS_LONG: u64 = 50;
const SEED: u64 = 42;
/// A run of the experiment below takes about this long.
const RUN_MS: u64 = 4_000;

const EXPERIMENT: &str = r#"
title = "Endings"
[run]
blocks = 2
duration = "300ms"
warmup = "50ms"
[[subject]]
ref = "rust/prony"
[[workload]]
request = { path = "/hello" }
connections = [4]
"#;

/// Processes whose environment carries the mark with `value`.
fn marked(value: &str) -> Vec<String> {
    let wanted = format!("{MARK}={value}");
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let with_mark = processes.filter(|process| {
        let environ = fs::read(process.path().join("environ")).unwrap_or_default();
        environ
            .split(|&byte| byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    });
    with_mark
        .map(|process| {
            fs::read_to_string(process.path().join("cmdline"))
                .unwrap_or_default()
                .replace('\0', " ")
        })
        .collect()
}

fn none_left(value: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let left = marked(value);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left: {left:#?}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn finished(records: &Path) -> Vec<String> {
    let text = fs::read_to_string(records).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n') && !line.contains("\"kind\":\"interrupted\""));
    whole.map(str::to_owned).collect()
}

fn prony(folder: &Path, value: &str, words: &[&str]) -> Command {
    let mut command = Command::new(PRONY);
    command
        .current_dir(folder)
        .env("PRONY_HOME", prony_testkit::root())
        .env("PRONY_CACHE", folder.join("cache"));
    command
        .env(MARK, value)
        // Without it what the run starts would not have the mark, and nothing would be found to be left.
        .env("PRONY_PASS_ENV", MARK)
        .args(["run", "endings.toml"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn end_at(folder: &Path, moment: u64, after: Duration, signal: &str) {
    let value = format!("{}-{moment}", std::process::id());
    let out = format!("out-{moment}");
    let mut run = prony(folder, &value, &["--out", &out])
        .spawn()
        .expect("a run");
    thread::sleep(after);
    let id = run.id().to_string();
    // It may have ended by itself.
    let _ = Command::new("kill")
        .args([signal, &id])
        .stderr(Stdio::null())
        .status();
    let status = run.wait().expect("its end");
    none_left(&value);
    if signal == "-INT" {
        // Before anything is started the signal ends the program as it ends any. What has ended by itself may have a
        // figure that is not valid, on a busy machine.
        let ended = status.code().or(status.signal());
        assert!(
            matches!(ended, Some(0 | 2 | 3 | 130)),
            "moment {moment}, after {after:?}: {status}"
        );
    }
    let records = folder.join(&out).join("trials.jsonl");
    let kept = finished(&records);
    if folder.join(&out).join("plan.json").exists()
        && folder.join(&out).join("environment.json").exists()
    {
        let resumed = prony(folder, &value, &["--resume", &out])
            .status()
            .expect("a resumed run");
        assert!(
            matches!(resumed.code(), Some(0 | 3)),
            "moment {moment}, after {after:?}: resume: {resumed}"
        );
        let all = finished(&records);
        assert!(
            kept.iter().all(|line| all.contains(line)),
            "moment {moment}: a finished trial was lost"
        );
        none_left(&value);
    }
}

#[test]
fn nothing_is_left_however_a_run_ends() {
    let folder = common::folder("endings");
    fs::write(folder.join("endings.toml"), EXPERIMENT).expect("an experiment");
    let moments = prony_testkit::repeats("PRONY_ENDINGS", MOMENTS, MOMENTS_LONG);
    let mut random = Random::of(SEED, "endings");
    for moment in 0..moments {
        let after = Duration::from_millis(random.below(RUN_MS));
        end_at(
            &folder,
            moment,
            after,
            if moment % 2 == 0 { "-KILL" } else { "-INT" },
        );
    }
}
