//! What all sections on clients are made from.

use super::steps::Step;
use crate::Run;
use crate::figures::CellFigures;
use crate::notes::Notes;
use crate::part::Places;

/// What all sections are made from.
pub struct Context<'a> {
    /// The run.
    pub run: &'a Run,
    /// What more connections and threads bring.
    pub steps: &'a [Step],
    /// Footnotes.
    pub notes: &'a Notes,
    /// Places of the cells in `summary.json`.
    pub places: Places<'a>,
}

impl<'a> Context<'a> {
    /// Of all the cells of a run.
    pub fn new(
        run: &'a Run,
        cells: &'a [CellFigures],
        steps: &'a [Step],
        notes: &'a Notes,
    ) -> Context<'a> {
        Context {
            run,
            steps,
            notes,
            places: Places::of(cells),
        }
    }
}
