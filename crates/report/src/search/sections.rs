//! Searches that belong together.

use prony_record::PlannedWorkload;

use super::figures;
use crate::Run;
use crate::figures::CellFigures;
use crate::groups::Group;

/// The cells of one workload and number of connections that look for a highest rate, the highest first.
pub struct Section<'a> {
    /// The workload.
    pub workload: &'a PlannedWorkload,
    /// What its cells have in common.
    pub group: Group,
    /// They themselves; at least one.
    pub cells: Vec<&'a CellFigures>,
}

impl Section<'_> {
    /// The objective in words: `p99 < 10 ms`.
    pub fn objective(&self) -> String {
        let figures = self.cells.iter().find_map(|cell| cell.search.as_ref());
        figures.map_or_else(String::new, figures::SearchFigures::objective_words)
    }
}

/// All of them, in the order of the plan.
pub fn sections<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.search.is_some()) {
        let group = Group::of(cell);
        if let Some(own) = sections.iter_mut().find(|own| own.group == group) {
            own.cells.push(cell);
            continue;
        }
        let mut workloads = run.plan.workloads.iter();
        if let Some(workload) = workloads.find(|w| w.name == cell.workload) {
            sections.push(Section {
                workload,
                group,
                cells: vec![cell],
            });
        }
    }
    let rate = |cell: &CellFigures| cell.rate_per_s.map_or(-1.0, |rate| rate.median);
    for section in &mut sections {
        section.cells.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
    }
    sections
}
