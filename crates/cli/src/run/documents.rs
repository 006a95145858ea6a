//! The rule for documents of the repository: they are of full runs of committed code.

use std::env;
use std::path::Path;

use anyhow::bail;
use prony_record::CodeState;

use super::code;
use super::words::RunWords;
use crate::paths::plain;

/// Refuses a run into `docs/documents` that is quick, or of code that is not committed.
pub fn check(words: &RunWords, experiment: &Path) -> anyhow::Result<()> {
    let Some(dir) = words.out.as_ref().or(words.resume.as_ref()) else {
        return Ok(());
    };
    let here = env::current_dir().unwrap_or_default();
    if words.dry_run || !is_of_documents(&here.join(dir)) {
        return Ok(());
    }
    let code = code::of_experiment(experiment);
    match refusal(words.quick, code.as_ref(), env!("PRONY_COMMIT")) {
        Some(why) => bail!("{}: {why}; give another --out", dir.display()),
        None => Ok(()),
    }
}

/// Whether a path leads below a folder `docs/documents`.
fn is_of_documents(path: &Path) -> bool {
    let plain = plain(path);
    // A link may lead there, too, as far as it is there.
    let there = plain
        .ancestors()
        .find_map(|folder| folder.canonicalize().ok());
    let is_in = |path: &Path| {
        let names: Vec<_> = path.iter().collect();
        names
            .windows(2)
            .any(|two| two[0] == "docs" && two[1] == "documents")
    };
    is_in(&plain) || there.is_some_and(|there| is_in(&there))
}

/// Why a run is no document; `None`: it may be one.
fn refusal(quick: bool, code: Option<&CodeState>, prony: &str) -> Option<&'static str> {
    match code {
        _ if quick => Some("docs/documents holds full runs, and --quick is none"),
        None => {
            Some("docs/documents holds runs of committed code, and no git keeps this experiment")
        }
        Some(code) if !code.changes_sha256.is_empty() => Some(
            "docs/documents holds runs of committed code, and the files around this experiment are changed: commit them first",
        ),
        Some(_) if prony.is_empty() || prony.ends_with('+') => Some(
            "docs/documents holds runs of committed code, and this Prony was built of changed files: commit them, and build it again",
        ),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_run_and_one_of_changed_code_are_no_documents() {
        let clean = CodeState::default();
        let changed = CodeState {
            changes_sha256: "ab".to_owned(),
            ..CodeState::default()
        };
        assert_eq!(refusal(false, Some(&clean), "abc"), None);
        let why = |quick, code, prony| refusal(quick, code, prony).expect("refused");
        assert!(why(true, Some(&clean), "abc").contains("--quick"));
        assert!(why(false, Some(&changed), "abc").contains("commit them first"));
        assert!(why(false, None, "abc").contains("no git"));
        assert!(why(false, Some(&clean), "abc+").contains("build it again"));
        assert!(why(false, Some(&clean), "").contains("build it again"));
    }

    #[test]
    fn a_folder_of_documents_is_known_however_it_is_written() {
        for path in [
            "/a/docs/documents",
            "/a/docs/documents/x/y",
            "/a/docs/../docs/./documents/x",
            "/a/docs/b/../documents",
        ] {
            assert!(is_of_documents(Path::new(path)), "{path}");
        }
        for path in [
            "/a/docs",
            "/a/documents",
            "/a/docs/x/documents",
            "/a/docs/documents/../x",
            "/a/docs/documents-2",
        ] {
            assert!(!is_of_documents(Path::new(path)), "{path}");
        }
    }
}
