//! `prony verify`: whether a run directory is whole, and prose still says what runs say.
//!
//! ```text
//! run directory ──> records, accounts, histograms, documents ──┐
//! prose ──> bound figures, each against the run that it names ─┴──> what does not hold, by file and line
//! ```

mod directory;
mod prose;
mod seen;
pub mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_record::layout;

use crate::{Ending, Streams, bundle};
use prose::Sources;
use seen::Seen;
use words::VerifyWords;

/// Runs `prony verify`.
pub fn run(words: &VerifyWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let mut seen = Seen::default();
    let mut sources = Sources::default();
    let mut folder: Option<PathBuf> = None;
    for path in &words.paths {
        if path.is_dir() {
            verify_folder(path, &mut seen)?;
            for text in texts_in(path)? {
                prose::verify(&text, Some(path), words.fix, &mut sources, &mut seen)?;
            }
            folder = Some(path.clone());
        } else if bundle::is_bundle(path) {
            directory::verify_bundle(path, None, &mut seen)?;
        } else {
            prose::verify(path, folder.as_deref(), words.fix, &mut sources, &mut seen)?;
        }
    }
    tell(&seen, streams)?;
    Ok(match (seen.bad.is_empty(), seen.wrong.is_empty()) {
        (false, _) => Ending::Usage,
        (true, false) => Ending::Failed,
        (true, true) => Ending::Done,
    })
}

fn verify_folder(path: &Path, seen: &mut Seen) -> anyhow::Result<()> {
    if path.join(layout::PLAN).exists() {
        return directory::verify_run(path, seen);
    }
    let beside = path.join(bundle::BESIDE);
    if beside.exists() {
        directory::verify_bundle(&beside, Some(path), seen)?;
    }
    if path.join(layout::SUMMARY).exists() {
        return directory::verify_documents(path, seen);
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
fn texts_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut texts: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    texts.retain(|path| {
        let name = path.file_name().unwrap_or_default();
        let is_rendered = [layout::DOCUMENT, layout::APPENDIX]
            .iter()
            .any(|own| name == *own);
        path.extension().is_some_and(|ending| ending == "md") && path.is_file() && !is_rendered
    });
    texts.sort();
    Ok(texts)
}

fn tell(seen: &Seen, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    for line in seen.bad.iter().chain(&seen.wrong) {
        writeln!(streams.out, "{line}")?;
    }
    for line in seen.mended.iter().chain(&seen.holds) {
        writeln!(streams.out, "{line}")?;
    }
    for note in &seen.notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    let wrong = seen.wrong.len() + seen.bad.len();
    if wrong > 0 {
        writeln!(streams.err, "prony: {} not hold", counted_do(wrong))?;
    }
    Ok(())
}

fn counted_do(count: usize) -> String {
    let verb = if count == 1 { "does" } else { "do" };
    format!("{} {verb}", counted(count, "thing"))
}
