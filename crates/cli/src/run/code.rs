//! What code is about to be measured: the repository around the experiment's file, and this program.
//!
//! Not for: judging whether two states are the same (`prony log` does).

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use prony_record::CodeState;
use sha2::{Digest as _, Sha256};

/// State of the repository that the file `experiment` lies in; `None` where there is none, or no git.
pub fn around(experiment: &Path) -> Option<CodeState> {
    let folder = match experiment.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let said = git(folder, &["log", "-1", "--format=%H%n%s"])?;
    let text = String::from_utf8_lossy(&said);
    let mut lines = text.lines();
    let commit = lines.next()?.to_owned();
    let subject = lines.next().unwrap_or_default().to_owned();
    let changes = git(folder, &["diff", "HEAD", "--no-ext-diff", "--binary"]).unwrap_or_default();
    let changes_sha256 = match changes.is_empty() {
        true => String::new(),
        false => digest(&changes),
    };
    Some(CodeState {
        commit,
        subject,
        changes_sha256,
    })
}

/// The digest of this program, where `commit` does not say what it was made from.
pub fn of_this_program(commit: &str) -> String {
    if !commit.is_empty() && !commit.ends_with('+') {
        return String::new();
    }
    let bytes = env::current_exe().and_then(fs::read);
    bytes.map_or_else(|_| String::new(), |bytes| digest(&bytes))
}

fn git(folder: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        // Looking must not take the lock that somebody's own git may need.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_a_clean_commit_needs_no_digest() {
        assert_eq!(of_this_program("3128add0c0ff"), "");
        assert_eq!(of_this_program("3128add0c0ff+").len(), 64);
        assert_eq!(of_this_program(""), of_this_program("+"));
    }
}
