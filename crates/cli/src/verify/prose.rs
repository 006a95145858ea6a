//! Bound figures of a text against the runs that they name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_lab::diagnosis::suggest;
use prony_record::layout;
use prony_report::prose::{self, Mark, Wrong};
use serde_json::Value;

use super::Seen;
use crate::log::file;
use crate::report;

/// Characters of what stands in place of a figure that are shown.
const SHOWN_CHARS_MAX: usize = 80;

/// What runs say, each read once.
#[derive(Debug, Default)]
pub struct Sources {
    by_folder: BTreeMap<PathBuf, Value>,
}

impl Sources {
    /// The figures of the run in `folder`: from its records where they are there, else from its `summary.json`.
    fn summary(&mut self, folder: &Path) -> anyhow::Result<&Value> {
        let place = fs::canonicalize(folder)
            .with_context(|| format!("cannot read {}", folder.display()))?;
        if !self.by_folder.contains_key(&place) {
            let value = read_summary(folder)?;
            self.by_folder.insert(place.clone(), value);
        }
        Ok(&self.by_folder[&place])
    }
}

fn read_summary(folder: &Path) -> anyhow::Result<Value> {
    if folder.join(layout::PLAN).exists() {
        let (run, _) = report::read(folder)?;
        let text = prony_report::render(&run).summary_json;
        return Ok(serde_json::from_str(&text)?);
    }
    let path = folder.join(layout::SUMMARY);
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: Value =
        serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
    if value["schema"] != prony_record::SCHEMA {
        bail!(
            "{}: it has schema {}, and this Prony reads schema {}",
            path.display(),
            value["schema"],
            prony_record::SCHEMA
        );
    }
    Ok(value)
}

/// Holds the figures of the text at `path` against their runs; `folder` has the run of those that name none.
pub fn verify(
    path: &Path,
    folder: Option<&Path>,
    fix: bool,
    sources: &mut Sources,
    seen: &mut Seen,
) -> anyhow::Result<()> {
    let Some(text) = file::read(path)? else {
        bail!("{}: there is no such file", path.display());
    };
    let at = |line: usize| format!("{}:{line}", path.display());
    let marks = match prose::marks(&text) {
        Ok(marks) => marks,
        Err(damaged) => {
            seen.bad
                .push(format!("{}: {}", at(damaged.line), damaged.what));
            return Ok(());
        }
    };
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut source: Option<PathBuf> = folder.map(Path::to_path_buf);
    let (mut right, mut places) = (0, Vec::new());
    for mark in marks {
        let (line, words, place) = match mark {
            Mark::Run { folder, .. } => {
                source = Some(beside.join(folder));
                continue;
            }
            Mark::Figure { line, words, place } => (line, words, place),
        };
        let Some(source) = &source else {
            let what =
                "no run is named: `<!-- {{run FOLDER}} -->` above it, or a folder before the file";
            seen.bad
                .push(format!("{}: {{{{{words}}}}}: {what}", at(line)));
            continue;
        };
        let summary = match sources.summary(source) {
            Ok(summary) => summary,
            Err(error) => {
                seen.bad
                    .push(format!("{}: {{{{{words}}}}}: {error:#}", at(line)));
                continue;
            }
        };
        let there = &text[place.clone()];
        match prose::figure(summary, &words) {
            Err(wrong) => seen
                .bad
                .push(format!("{}: {{{{{words}}}}}: {}", at(line), told(wrong))),
            Ok(figure) if prose::same(there, &figure) => right += 1,
            Ok(figure) => {
                let (there, run) = (shown(there), source.display());
                let what = format!(
                    "{}: `{there}` stands here, and {run} says `{figure}`",
                    at(line)
                );
                match fix {
                    true => seen.mended.push(format!("{what}: written")),
                    false => seen.wrong.push(format!("{what} ({{{{{words}}}}})")),
                }
                places.push((place, figure));
            }
        }
    }
    if fix && !places.is_empty() {
        file::replace(path, Some(&text), &prose::replaced(&text, &places))?;
    }
    if right > 0 {
        let are = if right == 1 { "is" } else { "are" };
        let figures = counted(right, "bound figure");
        seen.holds
            .push(format!("{}: {figures} {are} right", path.display()));
    }
    Ok(())
}

fn shown(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > SHOWN_CHARS_MAX {
        true => line.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect(),
        false => line,
    }
}

fn told(wrong: Wrong) -> String {
    match wrong {
        Wrong::Other(what) => what,
        Wrong::Unknown { typed, kind, words } => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let suggested = suggest(&typed, &kind, &words);
            match typed.is_empty() {
                true => format!("say which; {suggested}"),
                false => format!("`{typed}` is no {kind} of this run; {suggested}"),
            }
        }
    }
}
