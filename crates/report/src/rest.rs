//! What is told of the time before the load, where a workload has a rest: how long a server took to be ready, for its first
//! request, and for one after nothing had been asked for a while.

use crate::Run;
use crate::figures::CellFigures;
use crate::grid::Grid;
use crate::metrics::Metric;
use crate::numbers;
use crate::part::{Captioned, captioned, column, with_ends};
use crate::table::{Column, Entry};

/// The table of these cells, which `name` calls what they are called elsewhere; `None`: their workload has no rest.
pub fn table<'a>(
    run: &Run,
    cells: &[&'a CellFigures],
    name: fn(&CellFigures) -> Entry,
) -> Option<Captioned> {
    let workload = &cells.first()?.workload;
    let planned = run.plan.workloads.iter().find(|w| w.name == *workload)?;
    if planned.rest_ns == 0 {
        return None;
    }
    let mut grid = Grid::new().head(column("", "", false), move |cell: &'a CellFigures| {
        name(cell)
    });
    for metric in [Metric::READY, Metric::FIRST, Metric::AFTER_REST] {
        let head = Column {
            below: "range".into(),
            details: false,
            ..metric.head()
        };
        let figure = metric.path.trim_end_matches(".median");
        grid = grid.figure(head, move |cell| {
            with_ends(
                metric.entry(cell),
                cell.measured.get(figure),
                numbers::times,
            )
        });
    }
    let caption = format!(
        "Before the load: the first request after the start, and one after a rest of {}",
        numbers::duration(planned.rest_ns)
    );
    Some(captioned(&caption, grid.cells(cells)))
}
