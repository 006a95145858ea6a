//! Bound figures of a text against the runs that they name.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_lab::diagnosis::suggest;
use prony_lab::folder::inside;
use prony_record::layout;
use prony_report::prose::{self, MarkKind, Wrong};
use serde_json::Value;

use super::outcome::VerifyOutcome;
use crate::bundle::{self, pack::RUN};
use crate::log::file;
use crate::report;

/// Characters of what stands in place of a figure that are shown.
const SHOWN_CHARS_MAX: usize = 120;

/// The figures of runs, each read once.
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
    let beside = inside(folder, bundle::BESIDE)?;
    if beside.exists() && !folder.join(layout::SUMMARY).exists() {
        let unpacked = bundle::for_a_while(&beside, RUN)?;
        return read_summary(&unpacked.dir);
    }
    let path = inside(folder, layout::SUMMARY)?;
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

/// Holds the figures and excerpts of the text at `path` against what they are of; `folder` has the run of figures that
/// name none.
pub fn verify(
    path: &Path,
    folder: Option<&Path>,
    fix: bool,
    sources: &mut Sources,
    outcome: &mut VerifyOutcome,
) -> anyhow::Result<()> {
    let Some(text) = file::read(path)? else {
        bail!("{}: no such file", path.display());
    };
    let marks = match prose::marks(&text) {
        Ok(marks) => marks,
        Err(damaged) => {
            let place = format!("{}:{}", path.display(), damaged.line);
            outcome.bad.push(format!("{place}: {}", damaged.what));
            return Ok(());
        }
    };
    let before = outcome.count();
    let mut reader = Text {
        path,
        text: &text,
        source: folder.map(Path::to_path_buf),
        fix,
        figures: 0,
        lines: 0,
        places: Vec::new(),
    };
    for mark in marks {
        let (line, words, place) = (mark.line, &*mark.words, mark.place);
        match mark.kind {
            MarkKind::Run => reader.source = Some(reader.beside(words)),
            MarkKind::Excerpt => reader.excerpt(line, words, place, outcome),
            MarkKind::Figure => reader.figure(line, words, place, sources, outcome),
        }
    }
    if fix && !reader.places.is_empty() {
        let fixed = prose::replaced(&text, &reader.places);
        file::replace(path, Some(&text), &fixed)?;
    }
    for (count, what) in [
        (reader.figures, "bound figure"),
        (reader.lines, "line of excerpts"),
    ] {
        let (are, counted) = match count {
            0 => continue,
            1 => ("is", counted(count, what)),
            _ if what.starts_with("line") => ("are", format!("{count} lines of excerpts")),
            _ => ("are", counted(count, what)),
        };
        outcome
            .holds
            .push(format!("{}: {counted} {are} right", path.display()));
    }
    // Silence would be taken for an answer, also where another file was meant.
    if outcome.count() == before {
        outcome
            .holds
            .push(format!("{}: no figures", path.display()));
    }
    Ok(())
}

/// A text that is held against runs.
struct Text<'a> {
    path: &'a Path,
    text: &'a str,
    /// Folder of the run that figures are of.
    source: Option<PathBuf>,
    fix: bool,
    /// Figures, and lines of excerpts, that are right.
    figures: usize,
    lines: usize,
    /// The corrections to write.
    places: Vec<(Range<usize>, String)>,
}

impl Text<'_> {
    fn beside(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }

    fn figure(
        &mut self,
        line: usize,
        words: &str,
        place: Range<usize>,
        sources: &mut Sources,
        outcome: &mut VerifyOutcome,
    ) {
        let at = format!("{}:{line}", self.path.display());
        let Some(source) = &self.source else {
            let what =
                "no run is named: `<!-- {{run FOLDER}} -->` above it, or a folder before the file";
            outcome.bad.push(format!("{at}: {{{{{words}}}}}: {what}"));
            return;
        };
        let figure = match sources.summary(source) {
            Ok(summary) => prose::figure(summary, words).map_err(explain),
            Err(error) => Err(format!("{error:#}")),
        };
        let figure = match figure {
            Ok(figure) => figure,
            Err(what) => {
                outcome.bad.push(format!("{at}: {{{{{words}}}}}: {what}"));
                return;
            }
        };
        let there = &self.text[place.clone()];
        if prose::same(there, &figure) {
            self.figures += 1;
            return;
        }
        let what = format!(
            "{at}: `{}` is written here, and {} has `{figure}`",
            shorten(there),
            source.display()
        );
        match self.fix {
            true => outcome.mended.push(format!("{what}: written")),
            false => outcome.wrong.push(format!("{what} ({{{{{words}}}}})")),
        }
        self.places.push((place, figure));
    }

    /// Each line of an excerpt stands in what it is of.
    fn excerpt(
        &mut self,
        line: usize,
        name: &str,
        place: Range<usize>,
        outcome: &mut VerifyOutcome,
    ) {
        let other = match file::read(&self.beside(name)) {
            Ok(Some(other)) => other,
            Ok(None) => {
                let at = format!("{}:{line}", self.path.display());
                outcome.bad.push(format!("{at}: {name} does not exist"));
                return;
            }
            Err(error) => return outcome.bad.push(format!("{error:#}")),
        };
        // Lines of an excerpt follow each other as there, so that of rows that begin alike the next one is meant.
        let there: Vec<&str> = other.lines().collect();
        let (mut next, mut at) = (0, place.start);
        for (index, whole) in self.text[place].split_inclusive('\n').enumerate() {
            let content = whole.trim_end_matches(['\n', '\r']);
            let content_place = at..at + content.len();
            at += whole.len();
            if content.trim().is_empty() {
                continue;
            }
            let found = |like: &dyn Fn(&str) -> bool| {
                let at = (next..there.len()).find(|at| like(there[*at]));
                at.or_else(|| (0..next).find(|at| like(there[*at])))
            };
            if let Some(same) = found(&|line| line == content) {
                self.lines += 1;
                next = same + 1;
                continue;
            }
            let begins = found(&|line| first_cell(line) == first_cell(content));
            let what = format!(
                "{}:{}: `{}` is not a line of {name}",
                self.path.display(),
                line + index,
                shorten(content)
            );
            match begins {
                None => outcome.wrong.push(what),
                Some(right) => {
                    let says = format!("{what}; there it is `{}`", shorten(there[right]));
                    match self.fix {
                        true => outcome.mended.push(format!("{says}: written")),
                        false => outcome.wrong.push(says),
                    }
                    next = right + 1;
                    self.places.push((content_place, there[right].to_owned()));
                }
            }
        }
    }
}

/// The first cell of a table's row, or the first words of a line.
fn first_cell(line: &str) -> &str {
    match line.strip_prefix('|') {
        Some(row) => row.split('|').next().unwrap_or_default().trim(),
        None => line.get(..20).unwrap_or(line),
    }
}

fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > SHOWN_CHARS_MAX {
        true => line.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect(),
        false => line,
    }
}

fn explain(wrong: Wrong) -> String {
    match wrong {
        Wrong::Other(what) => what,
        Wrong::Unknown { typed, kind, words } => {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let suggested = suggest(&typed, &kind, &words);
            match typed.is_empty() {
                true => format!("say which; {suggested}"),
                false => format!("`{typed}` is not a {kind} of this run; {suggested}"),
            }
        }
    }
}
