//! For tests only: what the tests of several crates need.
//!
//! A test that needs a program asks [`need`] for it. Where the machine lacks
//! it the test ends early and its name goes onto the list that `./test`
//! prints; in CI, where `PRONY_SKIP_NOTHING=1`, that is a failure. No test is
//! left out by any other way (`tests/house` looks for them), and what may be
//! missing even in CI stands in [`EXCEPTIONS`], each with its reason.
//!
//! A test that plays seeds or rounds asks [`seeds`] how many: few in `./test`, which people wait
//! for, and many in the long tier, where `PRONY_LONG=1`.
//!
//! # Central functions
//! - [`need`]: a program of this machine, or the test is recorded as skipped.
//! - [`unshared`]: a command in namespaces of its own, or the test is recorded as skipped.
//! - [`skip`]: records that the calling test could not run, and why.
//! - [`seeds`]: how many seeds a test plays, here and in the long tier.
//! - [`folder`]: a folder that is removed with the test.
//! - [`free_port`]: a port for a server that has to be given one, or for none.
//! - [`ask`]: a request over a plain socket, and its [`RawAnswer`].
//! - [`write_program`]: an executable file that can be executed at once.
#![forbid(unsafe_code)]

mod answer;
mod container;
mod folder;
mod port;
mod program;

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use answer::{RawAnswer, ask, read_answer, read_head, rest, try_ask};
pub use container::{Refusal, in_container};
pub use folder::folder;
pub use port::free_port;
pub use program::write_program;

/// Path of `command` where the machine has it; otherwise the calling test is
/// recorded as skipped and should return.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`, where the command is missing.
pub fn need(command: &str) -> Option<PathBuf> {
    let found = find(command);
    if found.is_none() {
        skip(&format!("{command} is not on this machine"));
    }
    found
}

/// Path of `command` on `PATH`.
pub fn find(command: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join(command))
        .find(|file| file.is_file())
}

/// `unshare`, which runs the words that are added as root of a user namespace of its own, and in one of the kind that is
/// `wanted` (`--net`); where none may be made the calling test is recorded as skipped and should return.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`, where `unshare` is missing.
pub fn unshared(wanted: &str) -> Option<Command> {
    let unshare = need("unshare")?;
    let command = || {
        let mut command = Command::new(&unshare);
        command.args(["--user", "--map-root-user", wanted]);
        command
    };
    let tried = command().arg("true").output().expect("unshare starts");
    if tried.status.success() {
        return Some(command());
    }
    skip_without("namespaces", &String::from_utf8_lossy(&tried.stderr));
    None
}

/// What may be missing even where nothing may be skipped: a line each, `WHAT: REASON`.
pub const EXCEPTIONS: &str = include_str!("../exceptions");

/// Records that the calling test could not run, and why.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`.
pub fn skip(reason: &str) {
    skip_test(&calling_test(), reason);
}

/// The same where `what` is missing, which is no failure if it is one of the [`EXCEPTIONS`].
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`, unless `what` is excepted.
pub fn skip_without(what: &str, reason: &str) {
    skip_test_without(&calling_test(), what, reason);
}

/// The same for want of a ring of io_uring, with the system's `reason`.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`, unless the memory that may be locked is used up.
pub fn skip_ring(reason: &str) {
    match reason.contains("locked memory") {
        true => skip_without("locked memory", reason),
        false => skip(reason),
    }
}

/// The same for a test whose thread does not have its name.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`, unless `what` is excepted.
pub fn skip_test_without(test: &str, what: &str, reason: &str) {
    match exception(what) {
        Some(why) => record(test, reason, &format!(" (excepted: {why})")),
        None => skip_test(test, reason),
    }
}

fn skip_test(test: &str, reason: &str) {
    assert!(
        env::var_os("PRONY_SKIP_NOTHING").is_none_or(|value| value.is_empty() || value == "0"),
        "{test}: {reason}, and nothing may be skipped"
    );
    record(test, reason, "");
}

/// Why `what` may be missing everywhere; `None`: it may not.
pub fn exception(what: &str) -> Option<&'static str> {
    let mut lines = EXCEPTIONS.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(name, _)| *name == what).map(|(_, why)| why)
}

fn calling_test() -> String {
    std::thread::current().name().unwrap_or("a test").to_owned()
}

/// Characters of a reason on the list that `./test` prints.
const REASON_MAX: usize = 200;

/// A reason as one short line, whatever a command printed that is part of it.
fn in_one_line(reason: &str) -> String {
    let first = reason.trim().lines().next().unwrap_or_default().trim_end();
    let short: String = first.chars().take(REASON_MAX).collect();
    let short = short.trim_end();
    match short.len() < reason.trim().len() {
        true => {
            format!("{short} … (all of it: in the test's output, cargo test … -- --show-output)")
        }
        false => short.to_owned(),
    }
}

/// Writes a line of the list that `./test` prints.
fn record(test: &str, reason: &str, exception: &str) {
    eprintln!("skipped {test}: {reason}{exception}");
    let reason = in_one_line(reason);
    let Some(list) = env::var_os("PRONY_SKIPPED") else {
        return;
    };
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)
        .and_then(|mut file| file.write_all(format!("{test}: {reason}{exception}\n").as_bytes()));
    written.expect("the list of skipped tests can be written");
}

/// Most seeds that a test may play in the ordinary tier.
pub const SEEDS_MAX: u64 = 1_000;

/// Whether the long tier runs: `PRONY_LONG` is set, and neither empty nor 0.
pub fn long() -> bool {
    is_long(env::var("PRONY_LONG").ok().as_deref())
}

fn is_long(variable: Option<&str>) -> bool {
    !matches!(variable, None | Some("" | "0"))
}

/// How many seeds, rounds or cases a test plays: `many` in the long tier, else `few`.
///
/// # Panics
/// Where `few` is above [`SEEDS_MAX`] or `many` below `few`.
pub fn seeds(few: u64, many: u64) -> u64 {
    assert!(
        few <= SEEDS_MAX,
        "{few} seeds belong into the long tier: at most {SEEDS_MAX} here"
    );
    assert!(few <= many, "the long tier would play fewer: {many}");
    if long() { many } else { few }
}

/// How many of what a test repeats, as the environment's `variable` says, else `many` in the long tier and `few`
/// elsewhere.
///
/// # Panics
/// Where the variable is set to something that is no number.
pub fn repeats(variable: &str, few: u64, many: u64) -> u64 {
    match env::var(variable) {
        Ok(word) => word
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is `{word}`, which is no number")),
        Err(_) if long() => many,
        Err(_) => few,
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/testkit is two below the root")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_tier_is_asked_for_by_name() {
        let asked = [None, Some(""), Some("0"), Some("1"), Some("yes")].map(is_long);
        assert_eq!(asked, [false, false, false, true, true]);
    }

    #[test]
    fn the_long_tier_plays_more_seeds() {
        assert_eq!(seeds(20, 400), if long() { 400 } else { 20 });
        assert_eq!(
            repeats("PRONY_TEST_UNHEARD_OF", 8, 50),
            if long() { 50 } else { 8 }
        );
    }

    #[test]
    #[should_panic = "long tier"]
    fn more_than_a_thousand_seeds_are_refused_in_the_ordinary_tier() {
        seeds(SEEDS_MAX + 1, 100_000);
    }
}
