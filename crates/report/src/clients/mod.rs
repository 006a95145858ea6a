//! Subjects that are clients, which ask a peer: what a document says of them.
//!
//! `figures` has the numbers of a cell, `steps` what one more connection, thread or server thread brings;
//! `sections` says which cells belong together, `tables` lays a table of rows by clients out; `complete` fills in what a
//! client says in its own way of what all have; `requests` and
//! `downloads` make the tables of the two works, `pictures` draws, `words` and `answer` put them into
//! sentences. A document without clients has none of this.
//!
//! Not for: the numbers that all kinds of subjects share (rate, ratio, memory), which are in
//! `crate::figures`.

pub mod answer;
pub mod complete;
mod downloads;
pub mod figures;
mod pictures;
mod requests;
mod sections;
pub mod steps;
mod tables;
pub mod words;

use self::steps::Step;
use crate::Run;
use crate::figures::{CellFigures, measured};
use crate::lists::most;
use crate::notes::Notes;
use crate::part::{self, Part, named};
use crate::plots::{Picture, Plot};
use sections::Section;
pub use sections::sections;

/// What the sections are made from; its own is what more connections and threads bring.
type Context<'a> = part::Context<'a, &'a [Step]>;

/// A picture of the row with the most figures, the first of equals; there is none of latencies.
pub fn alone(run: &Run, cells: &[CellFigures], plot: Plot) -> Option<Picture> {
    let notes = Notes::default();
    let context = Context::of(run, cells, &notes, &[][..]);
    let sections = sections(run, cells);
    let rows = sections.iter().flat_map(|section| {
        let rows = section.pictured().into_iter();
        rows.map(move |(title, own)| (section, title, own))
    });
    let (section, title, own) = most(rows, |(_, _, own)| measured(own))?;
    let [rate, cpu] = match section.is_downloads() {
        true => context.pictures_of_downloads(section, &own),
        false => context.pictures_of_requests(section, &title, &own),
    };
    let mut picture = match plot {
        Plot::Rate => rate,
        Plot::Cpu => cpu,
        Plot::Latency => return None,
    };
    picture.id = "clients-alone".to_owned();
    Some(picture)
}

/// The parts of the document, in order.
pub fn parts(run: &Run, cells: &[CellFigures], steps: &[Step], notes: &Notes) -> Vec<Part> {
    let context = Context::of(run, cells, notes, steps);
    let part = |section: &Section<'_>| match section.is_downloads() {
        true => context.downloads(section),
        false => context.requests(section),
    };
    named(sections(run, cells).iter().flat_map(part).collect(), 'c')
}
