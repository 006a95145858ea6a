//! Runs this command again under a tool that sees where its time goes. Not for: what the
//! tools say, which is theirs.
//!
//! Whatever ends this process ends the tool, and with the tool ends the command under it
//! ([`under`]).

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

use anyhow::{Context as _, bail};
use prony_program::children;

use prony_program::{Ending, Streams};

/// Largest report that is kept; a longer one is cut.
const REPORT_BYTES_MAX: u64 = 64 << 20;
/// Most that a tool may write while it records.
const RECORD_SIZE_MAX: &str = "512M";

/// A file for what a tool records, removed in the end.
struct Recorded(PathBuf);

impl Recorded {
    fn new() -> Recorded {
        Recorded(env::temp_dir().join(format!("prony-perf-{}.data", process::id())))
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        // perf keeps what it found there, which trying it has left.
        let _ = fs::remove_file(self.0.with_extension("data.old"));
    }
}

/// To be called by the command under a tool: it ends with the tool.
pub fn under() -> anyhow::Result<()> {
    children::die_with_parent().context("cannot be tied to its tool")
}

/// Runs this command under `perf record`, or `strace -c` where that is not allowed.
pub fn profiled(file: &Path, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let recorded = Recorded::new();
    // Without a counter of cycles, as in most virtual machines, the clock has to do.
    for event in ["cycles", "cpu-clock"] {
        let mut perf = tool("perf".as_ref());
        perf.args(["record", "-q", "-g", "-F", "997", "-e", event]);
        perf.args(["--max-size", RECORD_SIZE_MAX, "-o"])
            .arg(&recorded.0);
        if !works(&perf) {
            continue;
        }
        let ending = again(perf, &format!("perf record -e {event}"))?;
        report(
            &["report", "--stdio", "--percent-limit", "0.5", "-i"],
            &recorded,
            file,
        )?;
        say(file, &format!("perf record -e {event}"), streams)?;
        return Ok(ending);
    }
    let mut strace = tool("strace".as_ref());
    strace.args(["-c", "-f", "-o"]).arg(file);
    if !works(&strace) {
        bail!(
            "neither `perf record` nor `strace` works here: install one of them, or allow it (kernel.perf_event_paranoid)"
        );
    }
    let ending = again(strace, "strace -c")?;
    say(file, "strace -c (perf is not to be had here)", streams)?;
    Ok(ending)
}

/// Runs this command under `perf sched record`; `None` where that is not allowed.
pub fn scheduled(file: &Path, streams: &mut Streams<'_>) -> anyhow::Result<Option<Ending>> {
    let recorded = Recorded::new();
    let mut perf = tool("perf".as_ref());
    perf.args(["sched", "record", "-q", "--max-size", RECORD_SIZE_MAX, "-o"]);
    perf.arg(&recorded.0);
    if !works(&perf) {
        return Ok(None);
    }
    let ending = again(perf, "perf sched record")?;
    report(&["sched", "latency", "-i"], &recorded, file)?;
    say(file, "perf sched", streams)?;
    Ok(Some(ending))
}

/// Whether the tool can run a program that does nothing.
fn works(tool: &Command) -> bool {
    let mut tried = copy(tool);
    tried.args(["--", "true"]);
    tried
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    tried.status().is_ok_and(|status| status.success())
}

/// A program that does not outlive this one.
fn tool(program: &OsStr) -> Command {
    let mut tool = Command::new(program);
    children::by_fork(&mut tool);
    tool
}

fn copy(command: &Command) -> Command {
    let mut copy = tool(command.get_program());
    copy.args(command.get_args());
    copy
}

/// This command once more, under the tool.
fn again(mut tool: Command, name: &str) -> anyhow::Result<Ending> {
    let program = env::current_exe().context("this program cannot be found")?;
    tool.arg("--")
        .arg(program)
        .args(own_words(env::args_os().skip(1), name));
    let status = tool
        .status()
        .with_context(|| format!("cannot start {name}"))?;
    match status.code() {
        Some(0) => Ok(Ending::Done),
        Some(1) => Ok(Ending::Failed),
        Some(130) => Ok(Ending::Interrupted),
        _ => bail!("{name} ended with {status}"),
    }
}

/// The words typed, without those that ask for a tool, and with the tool's name.
fn own_words(typed: impl Iterator<Item = OsString>, tool: &str) -> Vec<OsString> {
    const OPTIONS: [&str; 2] = ["--profile", "--record-scheduling"];
    let mut words = Vec::new();
    let mut typed = typed.peekable();
    while let Some(word) = typed.next() {
        let text = word.to_string_lossy();
        if OPTIONS.contains(&text.as_ref()) {
            typed.next();
            continue;
        }
        let is_joined = OPTIONS.iter().any(|option| {
            text.strip_prefix(option)
                .is_some_and(|rest| rest.starts_with('='))
        });
        if !is_joined {
            words.push(word);
        }
    }
    // What stands behind `--` is no option.
    let end = words.iter().position(|word| word == "--");
    let end = end.unwrap_or(words.len());
    words.splice(end..end, ["--under".into(), tool.into()]);
    words
}

/// Writes what perf makes of its recording.
fn report(words: &[&str], recorded: &Recorded, file: &Path) -> anyhow::Result<()> {
    let mut perf = tool("perf".as_ref());
    perf.args(words).arg::<&OsStr>(recorded.0.as_ref());
    let mut child = perf
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("perf cannot be started again")?;
    let cannot = || format!("cannot write {}", file.display());
    let mut to = File::create(file).with_context(cannot)?;
    if let Some(mut from) = child.stdout.take() {
        std::io::copy(&mut from.by_ref().take(REPORT_BYTES_MAX), &mut to).with_context(cannot)?;
    }
    // Should there be more than was taken, it ends at the closed pipe.
    let _ = child.wait();
    Ok(())
}

fn say(file: &Path, tool: &str, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    writeln!(streams.err, "prony: {}: by {tool}", file.display())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_left_the_one_before_it_behind() {
        let recorded = Recorded::new();
        let old = PathBuf::from(format!("{}.old", recorded.0.display()));
        for file in [&recorded.0, &old] {
            fs::write(file, "").expect("written");
        }
        let new = recorded.0.clone();
        drop(recorded);
        assert!(!new.exists() && !old.exists());
    }

    #[test]
    fn the_words_that_ask_for_a_tool_are_left_out() {
        let own = |text: &str| {
            let words = own_words(text.split(' ').map(OsString::from), "perf");
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        let plain = "bench io ::1 80 --json --under perf";
        assert_eq!(own("bench io ::1 80 --profile f --json"), plain);
        assert_eq!(own("bench io --profile=f ::1 80 --json"), plain);
        assert_eq!(own("bench io ::1 80 --record-scheduling f --json"), plain);
        assert_eq!(own("bench io ::1 80 --json"), plain);
        assert_eq!(
            own("bench io --json --profile f -- ::1 80"),
            "bench io --json --under perf -- ::1 80"
        );
    }
}
