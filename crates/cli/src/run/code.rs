//! The code that is about to be measured: the repository around the experiment's file, and this program.
//!
//! Not for: judging whether two states are the same (`prony log` does).

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use prony_lab::sums::hex;
use prony_record::CodeState;
use prony_report::log::{COMMITS_KEPT, Commit};
use sha2::{Digest as _, Sha256};

/// The paths that git compares: a log that is written between two runs is no other code.
const SOURCES: [&str; 3] = ["--", ":(top)", ":(top,exclude)*.md"];

/// State of the repository that the file `experiment` lies in; `None` where there is none, or no git.
pub fn of_experiment(experiment: &Path) -> Option<CodeState> {
    of_folder(folder_of(experiment))
}

fn folder_of(experiment: &Path) -> &Path {
    match experiment.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The commits up to `commit` in the repository that the file `experiment` lies in, newest first, merges and those of Markdown alone
/// aside; none where it has no such commit.
pub fn commits(experiment: &Path, commit: &str) -> Vec<Commit> {
    let most = format!("--max-count={COMMITS_KEPT}");
    let words = ["log", "--no-merges", &most, "--format=%H %s", commit];
    let is_hash = !commit.is_empty() && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let listed = is_hash.then(|| git(folder_of(experiment), &[&words[..], &SOURCES].concat()));
    let listed = listed.flatten().unwrap_or_default();
    let one = |line: &str| {
        let (commit, subject) = line.split_once(' ')?;
        let (commit, subject) = (commit.to_owned(), subject.to_owned());
        Some(Commit { commit, subject })
    };
    String::from_utf8_lossy(&listed)
        .lines()
        .filter_map(one)
        .collect()
}

/// State of the repository around `folder`; `None` where there is none, or no git.
pub fn of_folder(folder: &Path) -> Option<CodeState> {
    let output = git(folder, &["log", "-1", "--format=%H%n%s"])?;
    let text = String::from_utf8_lossy(&output);
    let mut lines = text.lines();
    let commit = lines.next()?.to_owned();
    let subject = lines.next().unwrap_or_default().to_owned();
    let with_sources = |words: &[&str]| git(folder, &[words, &SOURCES].concat());
    let source_commit = with_sources(&["log", "-1", "--format=%H"]).unwrap_or_default();
    let diff = with_sources(&["diff", "HEAD", "--no-ext-diff", "--binary"]);
    let changes = diff.unwrap_or_default();
    let changes_sha256 = match changes.is_empty() {
        true => String::new(),
        false => digest(&changes),
    };
    Some(CodeState {
        commit,
        subject,
        source_commit: String::from_utf8_lossy(&source_commit).trim().to_owned(),
        changes_sha256,
    })
}

/// The digest of this program, where `commit` does not say what it was made from.
pub fn of_this_program(commit: &str) -> String {
    if !commit.is_empty() && !commit.ends_with('+') {
        return String::new();
    }
    env::current_exe().map_or_else(|_| String::new(), |program| of_file(&program))
}

/// The digest of a file; empty where it cannot be read.
pub fn of_file(path: &Path) -> String {
    fs::read(path).map_or_else(|_| String::new(), |bytes| digest(&bytes))
}

/// The output of git in the repository around `folder`; `None`: it fails, or there is no git.
pub fn git(folder: &Path, words: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        // Looking must not take the lock that the user's own git may need.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_that_is_written_between_two_runs_is_no_other_code() {
        let folder = env::temp_dir().join(format!("prony-code-{}", std::process::id()));
        fs::create_dir_all(folder.join("docs")).unwrap();
        let done = |words: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
            git(&folder, &[&who, words].concat()).expect("git")
        };
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let state = || {
            let code = of_experiment(&folder.join("docs/x.toml")).expect("a state");
            (code.source_commit, code.changes_sha256)
        };
        done(&["init", "--quiet"]);
        write("main.rs", "one");
        write("docs/log.md", "one");
        done(&["add", "."]);
        done(&["commit", "--quiet", "-m", "one"]);
        let first = state();
        assert_eq!((first.0.len(), first.1.as_str()), (40, ""));
        write("docs/log.md", "two");
        assert_eq!(state(), first);
        done(&["commit", "--quiet", "-a", "-m", "two"]);
        assert_eq!(state(), first);
        write("main.rs", "two");
        assert_eq!((state().0, state().1.len()), (first.0, 64));
        done(&["commit", "--quiet", "-a", "-m", "three: it is faster"]);
        let commits = |commit: &str| {
            let all = commits(&folder.join("docs/x.toml"), commit);
            all.into_iter().map(|of| of.subject).collect::<Vec<_>>()
        };
        assert_eq!(commits(&state().0), ["three: it is faster", "one"]);
        assert_eq!(commits("--all"), [""; 0]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_of_a_clean_commit_needs_no_digest() {
        assert_eq!(of_this_program("3128add0c0ff"), "");
        assert_eq!(of_this_program("3128add0c0ff+").len(), 64);
        assert_eq!(of_this_program(""), of_this_program("+"));
    }
}
