//! Records, statistics and findings to documents; pure.
//!
//! [`render`] takes what a run directory holds, already read, and gives the document in
//! Markdown, the same as one offline page, and its figures for programs. [`plot_svg`] gives a
//! single picture. The same values give the same bytes, on every machine.
//!
//! ```
//! let rendered = prony_report::render(&prony_report::Run::default());
//! assert!(rendered.document_md.contains("Nothing was measured"));
//! ```
//!
//! How it is made: `cells` computes every number once, for each cell, as `metrics` and the kinds of work say; `figures`
//! are these numbers, and a cell gives each by its path in `summary.json`, by which tables, pictures, rankings and metrics name it; how many
//! values a figure rests on, and what its ends are, is told in `figure`, and most files know nothing more of it; `notes` merges findings into numbered footnotes; `view` puts both into tables (`grid`) and sentences; templates lay these out. All
//! text that a user or a subject wrote is escaped by the templates' formatter (`escape`).
//! Tables with rows of their own, and what stands around a server, are in `rows`.
//! Searches for a highest rate are in `search`.
//! What a person wrote of the run is in `analysis`.
//! What profiles say of where time went is in `why`; nothing else knows of their trials.
//! Subjects that are programs have figures, tables and sentences of their own (`programs`).
//! Claims of published documents, and what came of them, are in `published`.
//! The log of an experiment, over its runs, is in [`log`].
//! A single load as a page is in [`load_page`](mod@load_page).
//! The documentation as a folder of pages is in [`site`].
//! Not for: reading or writing files, measuring.
//!
//! # Central types
//! - [`Run`]: what a run directory holds, already read.
//! - `Metric` (`metrics`): one measured quantity: its name, unit, direction, and how it is read from a cell. It is a constant, listed in
//!   `Metric::ALL`; from there the summaries, tables and exports have it, and ratios and claims where it is `claimed`.
//! - [`Rendered`]: the documents and pictures.
//!
//! # Inside
//! Files import in one direction: types (`figure`, `ratio`, `figures`), what is measured (`metrics`), what computes it (`cells`, `claims`), what
//! shows it (`table`, `part`, `plots`), the kinds of work, `view`, `render`. A difference is stated only through `claims`: a ratio with its
//! interval, corrected for all ratios of its metric, and a bound where one side is a bound; `answer` makes sentences of them.
//!
//! *Invariant:* no I/O, no clock, no randomness without a seed: the same input gives the same bytes.
#![forbid(unsafe_code)]

mod analysis;
mod answer;
mod cells;
mod claims;
mod clients;
pub mod compare;
mod csv;
mod escape;
mod export;
mod figure;
mod figures;
mod grid;
mod groups;
mod joined;
mod kinds;
mod lists;
pub mod load_page;
pub mod log;
mod machine;
mod markdown;
mod method;
mod metrics;
mod notes;
mod numbers;
mod open;
mod part;
pub mod pilot;
mod plan_hash;
mod plots;
mod programs;
pub mod prose;
mod published;
mod ratio;
mod render;
pub mod reproduced;
pub mod required;
mod rest;
mod rows;
mod search;
mod sections;
mod sent;
mod servers;
mod settings;
pub mod site;
mod style;
mod table;
mod templates;
mod threads;
mod users;
mod view;
pub mod warm_up;
mod why;
mod words;

use std::collections::BTreeMap;

use prony_record::{Environment, Histogram, Plan, Trial};

pub use export::{Export, export};
pub use joined::joined;
pub use numbers::moment;
pub use plan_hash::plan_hash;
pub use plots::Plot;
pub use render::{plot_svg, render};
pub use sent::sent;

/// What a run directory holds.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// `plan.json`
    pub plan: Plan,
    /// `environment.json`
    pub environment: Environment,
    /// `trials.jsonl`, in the order of the file.
    pub trials: Vec<Trial>,
    /// The histograms by the names that the trials give them ([`Trial::histogram`]).
    pub histograms: BTreeMap<String, Histogram>,
    /// Folded stacks of profiles by the names that the trials give them ([`prony_record::ProfileReport::folded`]).
    pub profiles: BTreeMap<String, String>,
    /// `analysis.md`: what a person wrote of the run, in Markdown; empty: nothing.
    pub analysis: String,
}

/// What a run renders to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The answer in words, as it is read on a terminal: title, question, a line each.
    pub answer_txt: String,
    /// The document in Markdown (GitHub's dialect).
    pub document_md: String,
    /// All that the document leaves out, in Markdown.
    pub appendix_md: String,
    /// The pictures that both show: path in the run directory, and SVG.
    pub pictures: Vec<(String, String)>,
    /// The document as one page that needs nothing else.
    pub index_html: String,
    /// What came of what is required, in each cell.
    pub required: Vec<required::CellRequirement>,
    /// The figures and findings, one JSON object.
    pub summary_json: String,
    /// The figures, a row a cell, units in the names of the columns.
    pub summary_csv: String,
}
