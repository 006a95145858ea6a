//! Sentences on searches.

use prony_base::counted;
use prony_findings::Verdict;

use super::sections::{Section, sections};
use crate::Run;
use crate::against::{against_reference, left_out};
use crate::figures::CellFigures;
use crate::numbers;
use crate::sent::sent;
use crate::words::{listed, what_follows};

/// The sentences of the short answer; none where nothing was looked for, or nothing has ended.
pub fn answer(run: &Run, cells: &[CellFigures]) -> Vec<String> {
    let sections = sections(run, cells);
    let all = || sections.iter().flat_map(|section| &section.cells);
    let ended = || all().filter(|cell| cell.is_measured());
    let Some(blocks) = ended().map(|cell| cell.trials.measured.len()).max() else {
        return Vec::new();
    };
    let mut said = vec![format!(
        "The highest rate that keeps an objective was looked for in {} of {}, in {} of one search each: {}",
        ended().count(),
        counted(all().count(), "cell"),
        counted(blocks, "block"),
        what_follows(run, blocks)
    )];
    said.extend(sections.iter().map(of_section));
    said
}

fn of_section(section: &Section<'_>) -> String {
    let place = format!("On {}", section.group.place());
    let objective = section.objective();
    let cells = section.cells.iter().copied();
    let (invalid, usable): (Vec<_>, Vec<_>) = cells.partition(|c: &&CellFigures| c.is_invalid());
    let compared = format!("{place}, by the highest rate that keeps {objective}");
    let said = against_reference(&compared, &usable);
    let said = said.or_else(|| {
        let found: Vec<String> = usable.iter().filter_map(|cell| kept_up_to(cell)).collect();
        (!found.is_empty())
            .then(|| format!("{place}, {objective} is kept up to: {}.", listed(&found)))
    });
    let said = said.unwrap_or_else(|| format!("{place}, no rate is known that keeps {objective}."));
    said + &left_out(&invalid)
}

/// `axum 12.1 k/s (11.8–12.4 k)`.
fn kept_up_to(cell: &CellFigures) -> Option<String> {
    let rate = cell.rate_per_s?;
    let least = match cell.verdict {
        Some(Verdict::Bound) => "at least ",
        _ => "",
    };
    Some(format!(
        "{} {least}{}/s ({})",
        cell.label,
        numbers::rate(rate.median),
        numbers::rates(rate.low, rate.high)
    ))
}

/// What a reader must know before the table.
pub fn before(section: &Section<'_>) -> String {
    let step = section
        .workload
        .find_max
        .as_ref()
        .map_or(0, |of| of.step_ns);
    format!(
        "{}. Each search goes by steps of {}, each an open loop at one rate that begins with nothing in flight; latency counts \
         from when a request was to start. CPU time and errors are those of the closed loop before it.",
        sent(section.workload, false),
        numbers::duration(step)
    )
}

/// What stands below the table.
pub fn after(section: &Section<'_>) -> Vec<String> {
    let one = section.cells.iter().filter_map(|cell| cell.rate_per_s);
    let is_one = one.clone().any(|rate| rate.blocks == 1);
    is_one
        .then(|| {
            "The interval is that of one search: how far its six rounds lie apart. Another start of the same server may differ by \
             more."
                .to_owned()
        })
        .into_iter()
        .collect()
}

/// How it was done, where it was.
pub fn method(run: &Run) -> Option<String> {
    run.plan.workloads.iter().any(|w| w.find_max.is_some()).then(|| {
        "The highest rate that keeps an objective is looked for after the closed loop, on the same server: doubled or halved until it \
         is once kept and once missed, then six times anew around that edge, each from where chance puts its steps. A step keeps the \
         objective where its figure stays below the limit, under 1 % of its requests failed, and what is in flight did not grow. The \
         outcome is the median of the six."
            .to_owned()
    })
}

/// What it cannot tell, where it was done.
pub fn limits(run: &Run) -> Option<String> {
    run.plan.workloads.iter().any(|w| w.find_max.is_some()).then(|| {
        "A step shows what holds for its length: what fills up slowly (a log, a heap, a queue that grows by less than 0.2 %) breaks an \
         objective later."
            .to_owned()
    })
}
