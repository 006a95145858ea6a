//! Figures in prose that are bound to a run.
//!
//! ```text
//! <!-- {{run runs/ping-001}} -->
//! Prony answers <!-- {{rate "ping" subject=rust/prony connections=2}} -->31.6 k<!-- {{/}} --> requests a second.
//! ```
//!
//! A figure stands between two comments, which no renderer shows; the first says what it is. [`marks`] finds them,
//! [`figure`] gives what the figures of a run (`summary.json`) say, as the documents write it, and [`replaced`] puts it in
//! place of what stands there. All other bytes stay. What stands in code is no comment, and is passed over.
//!
//! Not for: reading files, finding the run.

mod find;
mod query;

use std::ops::Range;

pub use find::{Damaged, Mark, MarkKind, marks, without_marks};
pub use query::{Wrong, figure};

/// Whether two figures are the same to a reader: lines may be broken anywhere between words.
pub fn same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// `text` with what stands at each of the places, which rise and do not overlap, replaced.
pub fn replaced(text: &str, places: &[(Range<usize>, String)]) -> String {
    let mut new = String::with_capacity(text.len());
    let mut at = 0;
    for (place, figure) in places {
        new.push_str(&text[at..place.start]);
        new.push_str(figure);
        at = place.end;
    }
    new.push_str(&text[at..]);
    new
}
