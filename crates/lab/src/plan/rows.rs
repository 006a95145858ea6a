//! The part of a plan that is about tables whose rows are written out. Pure.

use prony_record::{Cell, Cores, Plan, PlannedRow};

use super::program;
use crate::diagnosis::quoted;
use crate::experiment::{Setting, Workload};

/// The rows of a workload as they are planned, those without a cell among them.
pub fn planned(workload: &Workload, settings: &[Setting], cores: &Cores) -> Vec<PlannedRow> {
    let rows = &workload.rows;
    let planned = |(index, row): (usize, &crate::experiment::Row)| {
        let written = row.written(settings);
        let shown = written.iter().map(|(setting, value)| {
            let value = program::value_of(setting, value, workload, cores);
            (setting.name.get_ref().clone(), value)
        });
        PlannedRow {
            title: row.title.get_ref().clone(),
            subject: row.subject.get_ref().clone(),
            settings: shown.collect(),
            baseline: row.baseline_of(index, rows).map(str::to_owned),
        }
    };
    rows.iter().enumerate().map(planned).collect()
}

/// Takes rows without a cell out of the plan. One that stood beside such a row stands for
/// itself from then on, and a note says so.
pub fn settle(plan: &mut Plan) {
    let cells = &plan.cells;
    for workload in &mut plan.workloads {
        let name = workload.name.clone();
        let all = std::mem::take(&mut workload.rows);
        let has_cell = |row: &PlannedRow| cells.iter().any(|cell| is_of(cell, &name, row));
        let (rows_left, left_out): (Vec<_>, Vec<_>) = all.into_iter().partition(has_cell);
        workload.rows = rows_left;
        for other in &left_out {
            let alone = leave(&mut workload.rows, &other.title);
            if !alone.is_empty() {
                plan.notes.push(format!(
                    "{name}: `{}` is not run and was the baseline of these, which have no ratio: {}",
                    other.title,
                    quoted(&alone)
                ));
            }
        }
    }
}

/// Takes rows away from beside the one called `gone`; their titles.
fn leave(rows: &mut [PlannedRow], left_out: &str) -> Vec<String> {
    let beside = |row: &&mut PlannedRow| row.baseline.as_deref() == Some(left_out);
    let leaving = rows.iter_mut().filter(beside).map(|row| {
        row.baseline = None;
        row.title.clone()
    });
    leaving.collect()
}

fn is_of(cell: &Cell, workload: &str, row: &PlannedRow) -> bool {
    cell.workload == workload && cell.subject == row.subject && cell.settings == row.settings
}
