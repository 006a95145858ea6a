//! Whether a run directory is whole.

use std::fs;
use std::path::Path;

use prony_base::counted;
use prony_lab::folder::inside;
use prony_lab::store::{self, Stored};
use prony_lab::sums::{self, State};
use prony_record::{GeneratorKind, LoadReport, layout};
use prony_report::Run;

use super::outcome::VerifyOutcome;
use crate::bundle::pack::RUN;
use crate::run::code;
use crate::{bundle, report};

/// Looks at a run directory: see the words of `prony verify`.
pub fn verify_run(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    let before = outcome.wrong.len();
    let Some((count, histograms)) = records(dir, outcome)? else {
        return Ok(());
    };
    // Without them, documents would differ for a reason that has been told.
    if outcome.wrong.len() > before {
        outcome.notes.push(format!(
            "{}: its documents were not rendered again, as its records do not hold",
            dir.display()
        ));
        return Ok(());
    }
    let documents = documents(dir, outcome)?;
    if outcome.wrong.len() == before {
        outcome.holds.push(format!(
            "{}: whole: {}, {}, {} as rendered",
            dir.display(),
            counted(count, "trial"),
            counted(histograms, "histogram"),
            counted(documents, "document"),
        ));
    }
    Ok(())
}

/// Looks at a bundle, and where it lies beside its documents, at whether it renders to them.
pub fn verify_bundle(
    path: &Path,
    documents: Option<&Path>,
    outcome: &mut VerifyOutcome,
) -> anyhow::Result<()> {
    let unpacked = match bundle::for_a_while(path, RUN) {
        Ok(unpacked) => unpacked,
        Err(error) => {
            outcome.wrong.push(format!("{error:#}"));
            return Ok(());
        }
    };
    let dir = unpacked.dir.as_path();
    let mut part = VerifyOutcome::default();
    if let Some((count, histograms)) = records(dir, &mut part)?
        && part.wrong.is_empty()
    {
        part.holds.push(format!(
            "{}: whole: {}, {}",
            dir.display(),
            counted(count, "trial"),
            counted(histograms, "histogram")
        ));
        match documents {
            Some(folder) => beside(dir, folder, &mut part)?,
            None => digests(dir, &mut part)?,
        }
    }
    // The temporary folder is gone when this is read.
    let relocated =
        |line: String| line.replace(&dir.display().to_string(), &path.display().to_string());
    if part.wrong.is_empty() {
        part.holds.push(format!(
            "{}: every content matches its digest",
            path.display()
        ));
    }
    outcome.wrong.extend(part.wrong.into_iter().map(relocated));
    outcome.notes.extend(part.notes.into_iter().map(relocated));
    outcome.holds.extend(part.holds.into_iter().map(relocated));
    Ok(())
}

/// Looks at the records of a run; how many trials and histograms there are, where they can be read.
fn records(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<Option<(usize, usize)>> {
    sealed(dir, outcome)?;
    let stored = match store::read(dir) {
        Ok(stored) => stored,
        Err(error) => {
            outcome.wrong.push(error.to_string());
            return Ok(None);
        }
    };
    cut_off(dir, outcome);
    let histograms = trials(dir, &stored, outcome);
    Ok(Some((stored.trials.len(), histograms)))
}

/// Whether the documents in `folder` are what the records in `dir` render to.
fn beside(dir: &Path, folder: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    let (run, _) = report::read_beside(dir, folder)?;
    let rendered = prony_report::render(&run);
    let mut same = 0;
    for (name, text) in report::files(&rendered) {
        let path = inside(folder, name)?;
        // A page or a table that is not read there need not be kept.
        let Ok(there) = fs::read(&path) else { continue };
        if there == text.as_bytes() {
            same += 1;
            continue;
        }
        outcome.wrong.push(format!(
            "{}:{}: is not what {} renders to; `prony report {}` renders it again",
            path.display(),
            differs_at(&there, text.as_bytes()),
            bundle::BESIDE,
            folder.display()
        ));
    }
    if same == 0 && outcome.wrong.is_empty() {
        outcome.wrong.push(format!(
            "{}: holds none of the documents of its {}",
            folder.display(),
            bundle::BESIDE
        ));
    }
    if outcome.wrong.is_empty() {
        let documents = counted(same, "document");
        outcome
            .holds
            .push(format!("{}: {documents} as rendered", folder.display()));
    }
    Ok(())
}

/// Whether the records in `dir` render to what they rendered to when they were packed.
fn digests(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    let (run, _) = report::read(dir)?;
    let rendered = prony_report::render(&run);
    let Some(sums) = sums::read(dir, layout::DOCUMENTS_SUMS)? else {
        return Ok(());
    };
    let mut others = 0;
    let files = report::files(&rendered);
    for (name, text) in &files {
        let listed = sums.files.iter().find(|(_, file)| file == name);
        if listed.is_none_or(|(digest, _)| *digest != code::digest(text.as_bytes())) {
            others += 1;
        }
    }
    let documents = counted(files.len(), "document");
    match others {
        0 => outcome.holds.push(format!("{}: {documents} rendered as before", dir.display())),
        _ if sums.head == report::renderer() => outcome.wrong.push(format!(
            "{}: the records render to something else than when they were packed, in {} of {documents}",
            dir.display(),
            others
        )),
        _ => outcome.notes.push(format!(
            "{}: {}, and this Prony renders {others} of {documents} otherwise",
            dir.display(),
            sums.head
        )),
    }
    Ok(())
}

/// Whether the records are, byte for byte, what they were when the run ended.
fn sealed(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    let Some(sums) = sums::read(dir, layout::RECORDS_SUMS)? else {
        outcome.notes.push(format!(
            "{}: no {}: it has not ended, or an older Prony made it; a changed byte is seen only where it contradicts another",
            dir.display(),
            layout::RECORDS_SUMS
        ));
        return Ok(());
    };
    for (name, state) in sums.states(dir)? {
        let path = dir.join(name);
        match state {
            State::Same => {}
            State::Missing => outcome
                .wrong
                .push(format!("{}: is not there", path.display())),
            State::Changed => outcome.wrong.push(format!(
                "{}: was changed after the run ended: its digest differs from {}",
                path.display(),
                layout::RECORDS_SUMS
            )),
        }
    }
    Ok(())
}

/// A last line that a crash cut off is passed over by whatever reads it, and told here.
fn cut_off(dir: &Path, outcome: &mut VerifyOutcome) {
    let Ok(path) = inside(dir, layout::TRIALS) else {
        return;
    };
    let Ok(text) = fs::read(&path) else { return };
    let is_whole = text.last().is_none_or(|byte| *byte == b'\n')
        && text
            .split(|byte| *byte == b'\n')
            .rfind(|line| !line.is_empty())
            .is_none_or(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok());
    if !is_whole {
        let lines = text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        outcome.wrong.push(format!(
            "{}:{}: a trial that is cut off, and passed over; `prony run --resume` does it again",
            path.display(),
            lines.count()
        ));
    }
}

/// Accounts and histograms of all trials; how many histograms there are.
fn trials(dir: &Path, stored: &Stored, outcome: &mut VerifyOutcome) -> usize {
    let mut histograms = 0;
    for trial in &stored.trials {
        let place = format!(
            "{}: {}, block {}",
            dir.join(layout::TRIALS).display(),
            trial.cell,
            trial.block.saturating_add(1)
        );
        if !stored.plan.cells.iter().any(|cell| cell.id == trial.cell) {
            outcome
                .wrong
                .push(format!("{place}: the plan has no such cell"));
        }
        let keeps_all = trial.generator != GeneratorKind::Wrk;
        let load = trial.load.as_ref().filter(|_| keeps_all);
        if let Some(what) = load.and_then(LoadReport::unbalanced) {
            outcome.wrong.push(format!("{place}: {what}"));
        }
        match stored.histogram(trial) {
            Err(error) => outcome.wrong.push(error.to_string()),
            Ok(None) => {}
            Ok(Some(histogram)) => {
                histograms += 1;
                let load = trial.load.as_ref();
                let contradicted = load.and_then(|load| load.contradicted(&histogram));
                if let Some(what) = contradicted {
                    let name = trial.histogram.as_deref().unwrap_or_default();
                    outcome.wrong.push(format!("{place}: {name}: {what}"));
                }
            }
        }
    }
    histograms
}

/// Whether the documents are what the records render to; how many there are.
fn documents(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<usize> {
    let (run, _) = report::read(dir)?;
    let rendered = prony_report::render(&run);
    let files = report::files(&rendered);
    let sums = sums::read(dir, layout::DOCUMENTS_SUMS)?;
    let (renderer, states) = match &sums {
        Some(sums) => (sums.head.clone(), sums.states(dir)?),
        None => (run_by(&run), Vec::new()),
    };
    let mut others = 0;
    for (name, text) in &files {
        let path = inside(dir, name)?;
        let there = match fs::read(&path) {
            Ok(there) => there,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                outcome.wrong.push(format!(
                    "{}: is not there; `prony report {}` renders it",
                    path.display(),
                    dir.display()
                ));
                continue;
            }
            Err(error) => {
                outcome.wrong.push(format!("{}: {error}", path.display()));
                continue;
            }
        };
        if there == text.as_bytes() {
            continue;
        }
        let state = states.iter().find(|(file, _)| file == name).map(|of| of.1);
        let place = format!("{}:{}", path.display(), differs_at(&there, text.as_bytes()));
        if state == Some(State::Changed) {
            outcome
                .wrong
                .push(format!("{place}: was changed after it was rendered"));
        } else if renderer == report::renderer() {
            outcome
                .wrong
                .push(format!("{place}: the records render to something else"));
        } else {
            others += 1;
        }
    }
    if others > 0 {
        outcome.notes.push(format!(
            "{}: {} {}, and this Prony ({}) writes other bytes: whether they match the records cannot be checked; `prony report` renders them again",
            dir.display(),
            counted(others, "document"),
            renderer,
            report::renderer().trim_start_matches("rendered by "),
        ));
    }
    Ok(files.len() - others)
}

/// Which Prony rendered a run whose documents do not say: as far as is known, that which made it.
fn run_by(run: &Run) -> String {
    let (version, commit) = (
        &run.environment.prony_version,
        &run.environment.prony_commit,
    );
    let version = report::version_and_commit(version, commit);
    format!("rendered by prony {version}")
}

/// The first line, from 1, in which two texts differ.
fn differs_at(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    one[..same].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Looks at a folder that holds documents without their records.
pub fn verify_documents(dir: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    let Some(sums) = sums::read(dir, layout::DOCUMENTS_SUMS)? else {
        outcome.notes.push(format!(
            "{}: no {}: whether its documents are as they were rendered cannot be checked",
            dir.display(),
            layout::DOCUMENTS_SUMS
        ));
        return Ok(());
    };
    let mut same = 0;
    let mut changed = false;
    for (name, state) in sums.states(dir)? {
        let is_needed = name == layout::SUMMARY;
        match state {
            State::Same => same += 1,
            // What is not read there need not be kept.
            State::Missing if !is_needed => {}
            State::Missing => {
                changed = true;
                outcome
                    .wrong
                    .push(format!("{}: is not there", dir.join(name).display()));
            }
            State::Changed => {
                changed = true;
                outcome.wrong.push(format!(
                    "{}: was changed after it was {}",
                    dir.join(name).display(),
                    sums.head
                ));
            }
        }
    }
    if !changed {
        let documents = counted(same, "document");
        outcome
            .holds
            .push(format!("{}: {documents} as {}", dir.display(), sums.head));
    }
    Ok(())
}
