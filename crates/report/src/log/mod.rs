//! The log of an experiment: what was measured on which day, and what may be said of the differences; pure.
//!
//! An [`Entry`] is what a log keeps of one run: enough to write about it, and to compare with
//! it, when its run directory is gone. [`history`] compares the entries, [`written`] brings them into a
//! document whose other text is its author's.
//!
//! ```
//! use prony_report::log::{Entry, history, regions, written};
//!
//! let entry = Entry::of(&prony_report::Run::default(), "ping-001");
//! let history = history(&[entry]);
//! let document = written("", &regions(&history, "ping", "")).unwrap();
//! assert!(document.text.contains("<!-- prony:begin overview -->"));
//! ```
//!
//! Not for: reading run directories or keeping entries (the `cli` does), how far sessions lie apart
//! (`prony_stats::compare_sessions`).

mod changed;
mod document;
mod entry;
pub(crate) mod history;
mod journey;
mod page;
mod workload;

pub use changed::COMMITS_KEPT;
pub use document::{Damaged, Region, Written, written};
pub(crate) use entry::place;
pub use entry::{CellEntry, Commit, ENTRY_SCHEMA, Entry, Found, Latency, Revised, Section};
pub use history::{Account, Change, Difference, History, Unlike, history};
pub use journey::pictures;
pub use page::{brief, regions};
