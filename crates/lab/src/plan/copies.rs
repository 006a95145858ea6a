//! The reference a second time (A/A): how far two measurements of the same program lie apart is what all comparisons rest
//! on, and so each run that compares with intervals measures it.
//!
//! Not for: tables with rows of their own and clients, whose rows and columns say what stands beside what.

use prony_record::{Cell, Plan, PlannedSubject};

use super::options::CELLS_MAX;

/// Blocks from which ratios have an interval, so that a copy tells something.
const BLOCKS_MIN: u32 = 6;
/// What the copy's `id` has more than the reference's.
const SUFFIX: &str = "+copy";

/// Adds a copy of the reference, with a cell for each workload and size of the reference that others are compared in: with
/// its first settings only, as one pair for each tells enough.
pub(super) fn add(plan: &mut Plan) {
    let Some(reference) = plan.reference.clone().filter(|_| plan.blocks >= BLOCKS_MIN) else {
        return;
    };
    let Some(subject) = plan.subjects.iter().find(|s| s.id == reference) else {
        return;
    };
    let copy = copy_of(subject);
    if plan.subjects.iter().any(|other| is_copy(other, subject)) {
        return;
    }
    let of_reference: Vec<&Cell> = plan
        .cells
        .iter()
        .filter(|c| c.subject == reference)
        .collect();
    let size = |cell: &Cell| {
        (
            cell.connections,
            cell.count,
            cell.rate_per_s.map(f64::to_bits),
        )
    };
    let same = |a: &Cell, b: &Cell| a.workload == b.workload && size(a) == size(b);
    let is_first = |cell: &&Cell| {
        let first = of_reference.iter().find(|other| same(other, cell));
        first.is_some_and(|first| first.id == cell.id)
    };
    let compared = |cell: &&Cell| {
        let others = plan.cells.iter().filter(|c| c.subject != reference);
        others.into_iter().any(|other| same(other, cell))
    };
    let combined = |cell: &&Cell| {
        let workload = plan.workload_of(cell);
        workload.is_some_and(|w| w.rows.is_empty() && w.client.is_none() && !w.arrival.is_open())
    };
    let chosen = of_reference.iter().copied();
    let chosen = chosen.filter(|c| is_first(c) && compared(c) && combined(c));
    let cells: Vec<Cell> = chosen
        .map(|cell| Cell {
            id: cell.id.replacen(&reference, &copy.id, 1),
            subject: copy.id.clone(),
            ..cell.clone()
        })
        .collect();
    if cells.is_empty() || plan.cells.len() + cells.len() > CELLS_MAX {
        return;
    }
    plan.notes.push(format!(
        "{reference} is measured twice, as two subjects: how far these lie apart by chance is said in the document (copy = false in [run] \
         leaves the second one out)"
    ));
    plan.subjects.push(copy);
    plan.cells.extend(cells);
}

fn copy_of(subject: &PlannedSubject) -> PlannedSubject {
    PlannedSubject {
        id: format!("{}{SUFFIX}", subject.id),
        name: format!("{}, again", subject.name),
        copy_of: Some(subject.id.clone()),
        ..subject.clone()
    }
}

/// Whether the experiment itself names the reference a second time.
fn is_copy(other: &PlannedSubject, subject: &PlannedSubject) -> bool {
    let program = |s: &PlannedSubject| {
        (
            s.source.clone(),
            s.start.clone(),
            s.program.clone(),
            s.env.clone(),
            s.threads,
        )
    };
    other.id != subject.id && program(other) == program(subject)
}
