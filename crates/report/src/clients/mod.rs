//! Subjects that are clients, which ask a peer: what a document says of them.
//!
//! `figures` has the numbers of a cell, `steps` what one more connection, thread or server thread brings;
//! `sections` says which cells belong together, `tables` lays a table of rows by clients out; `requests` and
//! `downloads` make the tables of the two works, `words` and `answer` put them into
//! sentences. A document without clients has none of this.
//!
//! Not for: the numbers that all kinds of subjects share (rate, ratio, memory), which are in
//! `crate::figures`.

mod downloads;
pub mod figures;
mod requests;
mod sections;
pub mod steps;
mod tables;
pub mod words;

use prony_findings::Code;

use self::steps::Step;
use crate::Run;
use crate::answer::ranking::{BY_RATE, By, RankedQuestion};
use crate::figures::CellFigures;
use crate::notes::Notes;
use crate::numbers::MIB;
use crate::part::{Part, named};
use sections::Section;
pub use sections::sections;

/// What the sections are made from.
struct Context<'a> {
    run: &'a Run,
    notes: &'a Notes,
    /// What more connections and threads bring.
    steps: &'a [Step],
}

/// Who gets the most of each row: of many rows the first, the middle and the last.
pub fn questions<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<RankedQuestion<'a>> {
    let sections = sections(run, cells);
    let several = sections.len() > 1;
    let titles = sections
        .iter()
        .flat_map(Section::pictured)
        .map(|(title, _)| title);
    let titles: Vec<String> = titles.collect();
    // What is the same in all rows tells none of them from another.
    let is_own = |part: &&str| {
        let has = |title: &String| title.split(", ").any(|other| other == *part);
        !titles.iter().all(has)
    };
    let name = |section: &Section<'_>, row: &str| {
        let own: Vec<&str> = row.split(", ").filter(is_own).collect();
        match (several, own.is_empty()) {
            (false, true) => row.to_owned(),
            (false, false) => own.join(", "),
            (true, true) => section.title.clone(),
            (true, false) => format!("{}: {}", section.title, own.join(", ")),
        }
    };
    let of_section = |section: Section<'a>| {
        let by = match section.is_downloads() {
            true => By {
                heading: "MiB/s",
                path: "client.bytes_per_s",
                unit: MIB,
                bound: Code::P020,
                ..BY_RATE
            },
            false => By {
                bound: Code::P020,
                ..BY_RATE
            },
        };
        let question = |(title, cells): (String, Vec<&'a CellFigures>)| RankedQuestion {
            title: name(&section, &title),
            by,
            subjects: section.named(run, cells),
            without: None,
        };
        section
            .pictured()
            .into_iter()
            .map(question)
            .collect::<Vec<_>>()
    };
    sections.into_iter().flat_map(of_section).collect()
}

/// The parts of the document, in order.
pub fn parts(run: &Run, cells: &[CellFigures], steps: &[Step], notes: &Notes) -> Vec<Part> {
    let context = Context { run, notes, steps };
    let part = |section: &Section<'_>| match section.is_downloads() {
        true => context.downloads(section),
        false => context.requests(section),
    };
    named(sections(run, cells).iter().flat_map(part).collect(), 'c')
}
