//! What is told of the time before the load, where a workload has a rest: how long a server took to be ready, for its first
//! request, and for one after nothing had been asked for a while.

use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::part::{Captioned, captioned, column};
use crate::table::Entry;
use crate::{Run, numbers};

/// The table of these cells; `None`: their workload has no rest.
pub fn table(run: &Run, notes: &Notes, cells: &[&CellFigures]) -> Option<Captioned> {
    let workload = &cells.first()?.workload;
    let planned = run.plan.workloads.iter();
    let mut planned = planned.filter(|w| w.name == *workload && w.rest_ns > 0);
    let caption = format!(
        "Before the load: the first request after the start, and one after a rest of {}",
        numbers::duration(planned.next()?.rest_ns)
    );
    let grid = Grid::new().head(column("", "", false), |cell: &CellFigures| {
        Entry::text(&*cell.label)
    });
    let columns = Metric::OF_START.map(|of| of.shown.below("range").with_ends());
    Some(captioned(caption, grid.shown(notes, columns).cells(cells)))
}
