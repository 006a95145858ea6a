//! P012: do compared subjects send the same amount?

use prony_record::Cell;
use prony_stats::median;

use super::clients;
use super::seen::{Seen, finding};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Unit};
use crate::limits;
use crate::measure;
use crate::records::Case;

const OTHER_WORK: (&str, &str) = (
    "Its answers differ in size from those that it is compared with, in header fields or bodies: it does more or less \
     work a request, and so does the generator.",
    "Compare a whole answer of each (curl -i) and make headers and body alike, or keep the difference \
     in mind.",
);

const OTHER_BYTES: (&str, &str) = (
    "It processes more or fewer bytes per count than what it is compared with: bytes a second and counts a second rank \
     differently.",
    "Compare what each reads and writes, and make it alike, or keep the difference in mind.",
);

/// P012: bytes an answer, or for each thing that a program counts, differ by over 20 % from those
/// of the reference in the same workload, size and settings, or, without one, from the median of
/// the cells there; of a row of a table from those of the row that it stands beside.
pub(super) fn other_work(case: &Case<'_>) -> Vec<Finding> {
    if case.is_client() {
        return clients::other_page(case);
    }
    let Some(bytes_here) = bytes(case) else {
        return Vec::new();
    };
    let Some((whose, other)) = compared_with(case) else {
        return Vec::new();
    };
    let ratio = bytes_here / other;
    if ratio <= limits::BYTES_RATIO && ratio * limits::BYTES_RATIO >= 1.0 {
        return Vec::new();
    }
    let (what, text) = match case.is_program() {
        true => ("bytes for each counted", OTHER_BYTES),
        false => ("bytes an answer", OTHER_WORK),
    };
    let evidence = vec![
        Evidence::number(what, bytes_here, Unit::Bytes),
        Evidence::number(whose, other, Unit::Bytes),
    ];
    let blocks = case.complete().map(|trial| trial.block).collect();
    let seen = Seen::note(0.0, text, evidence);
    vec![finding(case, Code::P012, blocks, seen)]
}

/// Median over the blocks of the bytes an answer, or for each thing counted.
fn bytes(case: &Case<'_>) -> Option<f64> {
    let loads = case.measured().filter_map(|trial| trial.load.as_ref());
    let of_answers = loads.filter_map(measure::bytes_per_answer).map(|b| b.0);
    let lines = case.runs().filter_map(|(_, run)| measure::line(run));
    let of_lines = lines.map(|line| line.bytes as f64 / line.count as f64);
    let sizes: Vec<f64> = of_answers.chain(of_lines).collect();
    median(&sizes).filter(|&size| size > 0.0)
}

fn compared_with(case: &Case<'_>) -> Option<(String, f64)> {
    if case.row().is_some() {
        let other = case.baseline_cell()?;
        return Some((
            format!("of {}", other.id),
            bytes(&case.records.case(other))?,
        ));
    }
    let cells = &case.records.plan.cells;
    let alike = |other: &&Cell| {
        other.workload == case.cell.workload
            && other.connections == case.cell.connections
            && other.count == case.cell.count
            && other.settings == case.cell.settings
    };
    if let Some(reference) = &case.records.plan.reference {
        let cell = cells
            .iter()
            .filter(alike)
            .find(|cell| &cell.subject == reference);
        if let Some(size) = cell.and_then(|cell| bytes(&case.records.case(cell))) {
            return Some((format!("of {reference}"), size));
        }
    }
    let others = cells.iter().filter(alike);
    let sizes: Vec<f64> = others
        .filter_map(|cell| bytes(&case.records.case(cell)))
        .collect();
    Some(("median of the cells compared".to_owned(), median(&sizes)?))
}
