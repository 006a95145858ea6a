//! `prony log --revisions`: runs of an experiment with one subject as it was at several revisions.
//!
//! The rounds go over all revisions before the next begins, so that two runs of one state lie as far apart as runs of
//! different ones: what they differ in is what the log takes for the variation between runs.

use prony_record::layout;
use prony_report::log::Entry;

use super::words::{LogWords, SubjectRevisions};
use crate::home::Home;
use crate::report;
use crate::run;
use crate::run::words::{RunWords, SubjectRevision};
use crate::{Ending, Streams};

/// Characters of a revision in the name of a directory.
const NAME_CHARS_MAX: usize = 40;

/// Makes the runs that are not there yet. Yields how it ended where the log is not to be written: a run could not be begun, or the
/// user ended it.
pub fn measure(
    words: &LogWords,
    subject: &SubjectRevisions,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Ending>> {
    let rounds = words.rounds;
    let mut home = Home::find(streams.err)?;
    // The next round comes back to each.
    home.builds_kept = home.builds_kept.max(subject.revisions.len());
    for round in 1..=rounds {
        for revision in &subject.revisions {
            let one = SubjectRevision {
                subject: subject.subject.clone(),
                revision: revision.clone(),
            };
            let run_words = RunWords {
                home: Some(home.clone()),
                ..of_one(words, one.clone(), round)
            };
            if is_whole(&run_words) {
                writeln!(
                    streams.err,
                    "prony: round {round} of {rounds}: {one}: is there"
                )?;
                continue;
            }
            writeln!(streams.err, "prony: round {round} of {rounds}: {one}")?;
            // What it answers stands in its directory; what is asked for here is the log.
            let ending = run::run_quietly(&run_words, streams)?;
            if matches!(ending, Ending::Usage | Ending::Interrupted) {
                return Ok(Some(ending));
            }
        }
    }
    Ok(None)
}

/// The words of one run: where its directory has a plan, those that finish it.
fn of_one(words: &LogWords, one: SubjectRevision, round: u32) -> RunWords {
    let stem = words.experiment.file_stem().unwrap_or_default();
    let stem = stem.to_string_lossy();
    let dir = words
        .runs
        .join(format!("{stem}-{}-{round}", in_a_name(&one.revision)));
    let is_there = dir.join(layout::PLAN).exists();
    RunWords {
        only: words.only.clone(),
        blocks: words.blocks,
        duration: words.duration,
        revision: vec![one],
        resume: is_there.then(|| dir.clone()),
        out: (!is_there).then_some(dir),
        ..RunWords::new(words.experiment.clone())
    }
}

/// Whether the directory has a run by the same words of which every trial has ended: nothing need be built for that.
fn is_whole(words: &RunWords) -> bool {
    let read = words.resume.as_ref().map(|dir| report::read(dir));
    let Some(Ok((run, _))) = read else {
        return false;
    };
    run.plan.command == words.command() && !Entry::of(&run, "").unfinished
}

/// A revision as a part of a directory's name: `feature/x~2` is `feature-x-2`.
fn in_a_name(revision: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._".contains(c) {
        true => c,
        false => '-',
    };
    revision.chars().map(plain).take(NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_run_that_was_begun_is_finished_and_no_other_is_made() {
        let runs = tempfile::tempdir().expect("a folder");
        let words = LogWords {
            blocks: Some(7),
            ..LogWords::new(PathBuf::from("x/tiny.toml"), runs.path().to_owned())
        };
        let one = || SubjectRevision {
            subject: "rust/axum".to_owned(),
            revision: "feature/x~2".to_owned(),
        };
        let dir = runs.path().join("tiny-feature-x-2-3");
        let first = of_one(&words, one(), 3);
        assert_eq!((first.out, first.resume), (Some(dir.clone()), None));
        assert_eq!(first.blocks, Some(7));
        fs::create_dir(&dir).expect("a folder");
        assert_eq!(of_one(&words, one(), 3).out, Some(dir.clone()));
        fs::write(dir.join(layout::PLAN), "{}").expect("a plan");
        let second = of_one(&words, one(), 3);
        assert_eq!((second.out, second.resume), (None, Some(dir)));
    }
}
