//! What stands around the tables of rows and services, in sentences.

use prony_record::{Ended, Output, Plan, PlannedWorkload};

use super::sections::{Rows, Section};
use crate::Run;
use crate::lists::distinct;
use crate::sent::sent;
use crate::words::{listed, paragraph, paragraphs};

/// What a reader must know before the tables of a workload.
pub fn before(run: &Run, section: &Section<'_>) -> Vec<String> {
    let workload = section.workload;
    let body = match (&workload.source, &*workload.request.body) {
        (Some(_), _) | (None, "") => String::new(),
        (None, body) => format!(" with the body “{body}”"),
    };
    let scenario = workload.source.as_ref().and_then(|of| of.scenario.as_ref());
    let right = match scenario {
        Some(_) => "it is as its step says".to_owned(),
        None => format!("its status is {}", workload.expect_status),
    };
    let asked = format!("{}{body}", sent(workload, false));
    let mut lines = paragraphs("rows: request");
    lines[0] = lines[0]
        .replace("{right}", &right)
        .replace("{asked}", &asked);
    lines.extend(on_its_cores(&run.plan, section));
    if let Some(counter) = &workload.counter {
        let then = match counter.ended_by {
            None => "rows: kept by nothing",
            Some(Ended::Stopped) => "rows: kept after a stop",
            Some(Ended::Killed) => "rows: kept after a kill",
        };
        lines.push(format!(
            "{} {}",
            paragraph("rows: durability"),
            paragraph(then)
        ));
    }
    lines
}

/// What shares the subject's cores.
fn on_its_cores(plan: &Plan, section: &Section<'_>) -> Option<String> {
    let cells = || section.tables.iter().flat_map(Rows::cells);
    let services = || cells().filter_map(|cell| cell.service.as_ref());
    let fronts = services().filter_map(|s| Some(format!("{} in front", s.front.as_ref()?)));
    let behind = services().flat_map(|s| s.backings.iter().map(|id| format!("{id} behind")));
    let reader = services()
        .filter(|s| s.output == Output::Pipe)
        .map(|_| "the reader of its output's pipe".to_owned());
    let names = distinct(fronts.chain(behind).chain(reader));
    let cores: Vec<String> = plan.cores.subject.iter().map(u32::to_string).collect();
    let place = match &cores[..] {
        [] => "the machine's cores with the generator".to_owned(),
        [one] => format!("core {one}"),
        several => format!("the cores {}", listed(several)),
    };
    let place = format!("They and the subject share {place}: what they take, it does not get.");
    (!names.is_empty()).then(|| format!("Around the subject: {}. {place}", listed(&names)))
}

/// How services were measured.
pub fn method(run: &Run) -> Option<String> {
    let plan = &run.plan;
    let any = |is: fn(&PlannedWorkload) -> bool| plan.workloads.iter().any(is);
    let parts = [
        (stands_around(plan), "rows: method of services"),
        (any(|w| !w.rows.is_empty()), "rows: method"),
        (any(|w| w.counter.is_some()), "rows: method of numbers"),
    ];
    let lines = parts.into_iter().filter(|(is_there, _)| *is_there);
    let lines: Vec<String> = lines.map(|(_, name)| paragraph(name)).collect();
    (!lines.is_empty()).then(|| lines.join(" "))
}

fn stands_around(plan: &Plan) -> bool {
    !plan.backings.is_empty() || !plan.fronts.is_empty()
}

/// What a document on services cannot tell.
pub fn limits_of_document(run: &Run) -> Option<String> {
    stands_around(&run.plan).then(|| paragraph("rows: limits"))
}

#[cfg(test)]
mod tests {
    use prony_record::{Plan, PlannedSubject};

    use super::*;

    #[test]
    fn a_service_on_either_side_of_a_subject_is_told_of() {
        let of = |backings: usize, fronts: usize| {
            let plan = Plan {
                backings: vec![PlannedSubject::default(); backings],
                fronts: vec![PlannedSubject::default(); fronts],
                ..Plan::default()
            };
            method(&Run {
                plan,
                ..Run::default()
            })
        };
        assert_eq!(of(0, 0), None);
        for (backings, fronts) in [(1, 0), (0, 1), (1, 1)] {
            let lines = of(backings, fronts).expect("something stands around it");
            assert!(lines.starts_with("Services behind a subject and proxies before it"));
        }
    }
}
