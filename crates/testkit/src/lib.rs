//! For tests only: what the tests of several crates need.
//!
//! A test that needs a program asks [`need`] for it. Where the machine lacks
//! it the test ends early and its name goes onto the list that `./test`
//! prints; in CI, where `PRONY_SKIP_NOTHING=1`, that is a failure.
#![forbid(unsafe_code)]

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

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

/// Records that the calling test could not run, and why.
///
/// # Panics
/// Under `PRONY_SKIP_NOTHING=1`.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        env::var_os("PRONY_SKIP_NOTHING").is_none(),
        "{test}: {reason}, and nothing may be skipped"
    );
    eprintln!("skipped {test}: {reason}");
    let Some(list) = env::var_os("PRONY_SKIPPED") else {
        return;
    };
    let written = OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)
        .and_then(|mut file| writeln!(file, "{test}: {reason}"));
    written.expect("the list of skipped tests can be written");
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/testkit is two below the root")
        .to_owned()
}
