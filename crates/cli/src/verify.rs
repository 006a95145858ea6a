//! `prony verify`: whether a run directory is whole, and prose still says what runs say.
//!
//! ```text
//! run directory ──> records, accounts, histograms, documents ──┐
//! prose ──> bound figures, each against the run that it names ─┴──> what does not hold, by file and line
//! ```

mod directory;
mod outcome;
mod prose;
pub mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::{Untrusted, counted};
use prony_lab::folder;
use prony_lab::store::StoreError;
use prony_record::layout;

use crate::bundle::Fault;
use crate::{Ending, Streams, bundle};
use outcome::VerifyOutcome;
use prose::Sources;
use words::VerifyWords;

/// Runs `prony verify`.
pub fn run(words: &VerifyWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut outcome = VerifyOutcome::default();
    let mut sources = Sources::default();
    let mut folder: Option<PathBuf> = None;
    for path in &words.paths {
        if path.is_dir() {
            let looked = verify_folder(path, &mut outcome).and_then(|()| texts_in(path));
            for text in refused(looked, &mut outcome)?.unwrap_or_default() {
                prose::verify(&text, Some(path), words.fix, &mut sources, &mut outcome)?;
            }
            folder = Some(path.clone());
        } else if bundle::is_bundle(path) {
            directory::verify_bundle(path, None, &mut outcome)?;
        } else if bundle::is_named_so(path) && path.exists() {
            // What a bundle's recipient asks for is never answered by prose that holds nothing to check.
            let not = Fault::Magic;
            outcome.bad.push(format!("{}: {not}", path.display()));
        } else {
            prose::verify(
                path,
                folder.as_deref(),
                words.fix,
                &mut sources,
                &mut outcome,
            )?;
        }
    }
    tell(&outcome, streams)?;
    Ok(match (outcome.bad.is_empty(), outcome.wrong.is_empty()) {
        (false, _) => Ending::Usage,
        (true, false) => Ending::Failed,
        (true, true) => Ending::Done,
    })
}

/// Takes a refusal in a folder for a failed check; any other error stays one.
fn refused<T>(looked: anyhow::Result<T>, outcome: &mut VerifyOutcome) -> anyhow::Result<Option<T>> {
    let error = match looked {
        Ok(found) => return Ok(Some(found)),
        Err(error) => error,
    };
    let Some(StoreError::Elsewhere { .. }) = error.downcast_ref() else {
        return Err(error);
    };
    outcome.wrong.push(error.to_string());
    Ok(None)
}

fn verify_folder(path: &Path, outcome: &mut VerifyOutcome) -> anyhow::Result<()> {
    if path.join(layout::PLAN).exists() {
        return directory::verify_run(path, outcome);
    }
    let beside = folder::inside(path, bundle::BESIDE)?;
    if beside.exists() {
        directory::verify_bundle(&beside, Some(path), outcome)?;
    }
    if path.join(layout::SUMMARY).exists() {
        return directory::verify_documents(path, outcome);
    }
    if beside.exists() {
        return Ok(());
    }
    bail!(
        "{}: neither a run directory nor one of its documents: it holds no {}, no {} and no {}",
        path.display(),
        layout::PLAN,
        layout::SUMMARY,
        bundle::BESIDE
    )
}

/// The Markdown files of a folder that were not rendered.
fn texts_in(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut texts: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    texts.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        let is_rendered = [layout::DOCUMENT, layout::APPENDIX]
            .iter()
            .any(|rendered| name == *rendered);
        path.extension().is_some_and(|ending| ending == "md") && !path.is_dir() && !is_rendered
    });
    for text in &texts {
        let name = text.file_name().unwrap_or_default();
        folder::inside(dir, &name.to_string_lossy())?;
    }
    texts.sort();
    Ok(texts)
}

fn tell(outcome: &VerifyOutcome, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    for line in outcome.bad.iter().chain(&outcome.wrong) {
        writeln!(streams.out, "{}", Untrusted(line))?;
    }
    for line in outcome.mended.iter().chain(&outcome.holds) {
        writeln!(streams.out, "{}", Untrusted(line))?;
    }
    for note in &outcome.notes {
        writeln!(streams.err, "prony: {}", Untrusted(note))?;
    }
    let wrong = outcome.wrong.len() + outcome.bad.len();
    if wrong > 0 {
        writeln!(streams.err, "prony: {} failed", counted(wrong, "check"))?;
    }
    Ok(())
}
