//! Findings as numbered footnotes: what says the same of several cells is one note.

use std::collections::BTreeMap;

use prony_findings::{Code, Evidence, Finding, Severity, Unit, Value};
use serde::Serialize;

use crate::figures::{CellFigures, places_of};
use crate::lists::push_new;
use crate::numbers::{FigureUnit, NOTHING, three};
use crate::table::{Entry, Shown};

/// All notes of a document.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// By number, from 1.
    pub notes: Vec<Note>,
    /// Numbers by cell and code.
    marks: BTreeMap<(String, Code), Vec<usize>>,
}

/// One footnote.
#[derive(Clone, Debug, Serialize)]
pub struct Note {
    /// Its number.
    pub number: usize,
    /// The finding's code.
    pub code: Code,
    /// The finding's title.
    pub title: &'static str,
    /// How bad.
    pub severity: Severity,
    /// What follows.
    pub meaning: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Whether it is about the run, and stands at no figure.
    pub is_of_run: bool,
    /// Where it was seen and with what evidence.
    pub seen: Vec<Seen>,
}

/// Cells in which the same was seen.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// The cells, each with where in it, unless everywhere.
    pub cells: Vec<SeenCell>,
    /// What was seen: `what: value`, in the finding's order.
    pub evidence: Vec<String>,
    /// Lines of the subject's output.
    pub lines: Vec<String>,
}

/// A cell under a note.
#[derive(Clone, Debug, Serialize)]
pub struct SeenCell {
    /// The cell's `id`.
    pub cell: String,
    /// Where in it; empty: everywhere.
    pub place: String,
}

impl Notes {
    /// The notes of `findings`, numbered in their order. `trials_of` tells how many trials
    /// a cell has.
    pub fn new(findings: &[Finding], trials_of: impl Fn(&str) -> usize) -> Notes {
        let mut notes = Notes::default();
        for finding in findings {
            let at = notes.place(finding);
            let number = notes.notes[at].number;
            notes.notes[at].add(finding, trials_of(&finding.cell));
            let marks = notes
                .marks
                .entry((finding.cell.clone(), finding.code))
                .or_default();
            push_new(marks, number);
        }
        notes
    }

    /// The numbers of the notes on a cell with one of `codes`, rising.
    pub fn marks(&self, cell: &str, codes: &[Code]) -> Vec<usize> {
        let of = |code: &Code| self.marks.get(&(cell.to_owned(), *code)).cloned();
        let mut marks: Vec<usize> = codes.iter().filter_map(of).flatten().collect();
        marks.sort_unstable();
        marks
    }

    /// An entry of a table with the notes on `cell` with one of `codes`.
    pub fn on(&self, cell: &CellFigures, codes: &[Code], entry: Entry) -> Entry {
        Entry {
            marks: self.marks(&cell.cell, codes),
            ..entry
        }
    }

    /// The figure of a cell in a column, with its footnotes.
    pub fn entry(&self, cell: &CellFigures, column: &Shown) -> Entry {
        self.entry_of(cell, "", column)
    }

    /// The same of one of several that the cell has, which is at `place`. What does not keep up with its schedule has no latency: that grows for
    /// as long as the run lasts.
    pub fn entry_of(&self, cell: &CellFigures, place: &str, column: &Shown) -> Entry {
        let is_time = ["latency", "duration_ns"].map(|name| column.path.starts_with(name));
        let is_endless = cell.is_overloaded() && is_time.contains(&true);
        let entry = match (is_endless, column.title) {
            (false, _) => column.entry(cell, place),
            (true, "p50") => Entry::text("overloaded"),
            (true, _) => Entry::text(NOTHING),
        };
        self.on(cell, column.marks, entry)
    }

    /// Those of the columns in which any of the cells has a figure.
    pub fn present(
        &self,
        cells: &[&CellFigures],
        columns: impl IntoIterator<Item = Shown>,
    ) -> Vec<Shown> {
        let has = |column: &Shown| {
            let mut entries = cells.iter().map(|cell| self.entry(cell, column));
            entries.any(|entry| entry.value.is_some())
        };
        columns.into_iter().filter(has).collect()
    }

    fn place(&mut self, finding: &Finding) -> usize {
        let same = |note: &Note| {
            (note.code, note.severity, note.meaning)
                == (finding.code, finding.severity, finding.meaning)
        };
        if let Some(at) = self.notes.iter().position(same) {
            return at;
        }
        self.notes.push(Note {
            number: self.notes.len() + 1,
            code: finding.code,
            title: finding.code.title(),
            severity: finding.severity,
            meaning: finding.meaning,
            remedy: finding.remedy,
            is_of_run: true,
            seen: Vec::new(),
        });
        self.notes.len() - 1
    }
}

impl Note {
    fn add(&mut self, finding: &Finding, trials: usize) {
        self.is_of_run &= finding.cell.is_empty();
        let cell = SeenCell {
            cell: finding.cell.clone(),
            place: places_of(finding, trials),
        };
        let (evidence, lines) = words(&finding.evidence);
        let same = |seen: &&mut Seen| seen.evidence == evidence && seen.lines == lines;
        match self.seen.iter_mut().find(same) {
            Some(seen) => seen.cells.push(cell),
            None => self.seen.push(Seen {
                cells: vec![cell],
                evidence,
                lines,
            }),
        }
    }
}

fn words(evidence: &[Evidence]) -> (Vec<String>, Vec<String>) {
    let mut texts = Vec::new();
    let mut all_lines = Vec::new();
    for Evidence { what, value } in evidence {
        match value {
            Value::Number { value, unit } => {
                texts.push(format!("{what}: {}", number(*value, *unit)))
            }
            Value::Text { text } => texts.push(format!("{what}: {text}")),
            Value::Lines { lines } => all_lines.extend(lines.iter().cloned()),
        }
    }
    (texts, all_lines)
}

fn number(value: f64, unit: Unit) -> String {
    let unit = match unit {
        Unit::Count => FigureUnit::Number,
        Unit::Share => FigureUnit::Percent,
        Unit::Ratio => FigureUnit::Ratio,
        Unit::Nanoseconds => FigureUnit::Time,
        Unit::PerSecond => FigureUnit::PerSecond,
        Unit::Bytes => FigureUnit::Bytes,
        Unit::Cores => return format!("{} cores", three(value)),
    };
    unit.text(value)
}
