//! What all sections on clients are made from.

use std::collections::BTreeMap;

use super::steps::Step;
use crate::Run;
use crate::figures::CellFigures;
use crate::notes::Notes;

/// What all sections are made from.
pub struct Context<'a> {
    /// The run.
    pub run: &'a Run,
    /// What more connections and threads bring.
    pub steps: &'a [Step],
    /// Footnotes.
    pub notes: &'a Notes,
    /// Places of the cells in `summary.json`.
    places: BTreeMap<&'a str, usize>,
}

impl<'a> Context<'a> {
    /// Of all the cells of a run.
    pub fn new(
        run: &'a Run,
        cells: &'a [CellFigures],
        steps: &'a [Step],
        notes: &'a Notes,
    ) -> Context<'a> {
        let places = cells.iter().enumerate();
        Context {
            run,
            steps,
            notes,
            places: places.map(|(at, cell)| (&*cell.cell, at)).collect(),
        }
    }

    /// Where a figure of a cell is in `summary.json`.
    pub(super) fn path(&self, cell: &CellFigures, figure: &str) -> String {
        let place = self.places.get(&*cell.cell).copied().unwrap_or(0);
        format!("/cells/{place}/{}", figure.replace('.', "/"))
    }
}
