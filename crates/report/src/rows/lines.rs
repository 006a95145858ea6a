//! What stands around the tables of rows and services, in sentences.

use prony_record::{Ended, NotRun, Output, Plan, PlannedRow};

use super::sections::{Rows, Section, quoted};
use crate::Run;
use crate::figures::CellFigures;
use crate::lists::distinct;

use crate::sent::sent;
use crate::words::listed;

/// What the deviation of rows is.
const DEVIATION: &str = "Deviation over seconds: of each trial the rates of its whole seconds (ten slices of 100 ms each), \
     their mean and their sample standard deviation (n − 1); shown is the trial whose deviation is in the middle of \
     the blocks, and below it the number of its seconds. It tells how steady one run was. How far off another \
     run may be is told by what stands below the rate, which rests on the blocks.";

/// How the durability of a number was looked at.
const DURABILITY: &str = "Each request that was answered as expected (in warm-up, window and drain) must be in the number \
     that the service tells afterwards.";

/// What a reader must know before the tables of a workload.
pub fn before(run: &Run, section: &Section<'_>) -> Vec<String> {
    let workload = section.workload;
    let request = &workload.request;
    let body = match request.body.as_str() {
        "" => String::new(),
        body => format!(" with the body “{body}”"),
    };
    let gets = match &workload.source {
        Some(_) => format!("Every row gets {}", sent(workload, true)),
        None => format!(
            "Every row gets the request “{} {}”{body}",
            request.method, request.path
        ),
    };
    let source = workload.source.as_ref();
    let right = match source.and_then(|source| source.scenario.as_ref()) {
        Some(_) => "it is as its step says".to_owned(),
        None => format!("its status is {}", workload.expect_status),
    };
    let mut said = vec![format!(
        "{gets}; an answer counts as correct if {right}. A ratio is to \
         another row of the table, in the same blocks."
    )];
    said.extend(on_its_cores(&run.plan, section));
    if let Some(counter) = &workload.counter {
        let then = match counter.ended_by {
            None => "It is not started anew, so what it would have kept is not known.".to_owned(),
            Some(Ended::Stopped) => "It is then stopped as it says it wants to be, and started anew in the same \
                 folder with the same services behind it. Asked again, it tells what was kept."
                .to_owned(),
            Some(Ended::Killed) => "At the end of the window it is killed while requests are out, and started anew in \
                 the same folder with the same services behind it. Asked again, it tells what was kept. Requests \
                 without an answer may have been counted and can hide as much of a loss."
                .to_owned(),
        };
        said.push(format!("{DURABILITY} {then}"));
    }
    said
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
    let place = match cores.len() {
        0 => "Nothing is pinned: all of them, the subject and the generator share the machine's cores.".to_owned(),
        1 => format!("They and the subject share core {}: what they take, it does not get.", cores[0]),
        _ => format!(
            "They and the subject share the cores {}: what they take, it does not get.",
            listed(&cores)
        ),
    };
    (!names.is_empty()).then(|| format!("Around the subject: {}. {place}", listed(&names)))
}

/// What stands below a table: what has no figures.
pub fn after(run: &Run, rows: &Rows<'_>) -> Vec<String> {
    let of_row = |(row, cell): &(&PlannedRow, Option<&CellFigures>)| {
        let Some(cell) = cell else {
            let why = match not_run(&run.plan, row) {
                Some(not) => not.reason.clone(),
                None => "this run's plan does not have it".to_owned(),
            };
            return Some(format!("{} was not run: {why}.", quoted(&row.title)));
        };
        let failed = cell.trials.failed.first()?;
        let blocks = cell.trials.failed.len();
        Some(format!(
            "{} failed in {}: {}.",
            quoted(&row.title),
            match (blocks, cell.trials.measured.len()) {
                (_, 0) => format!(
                    "block {}, and was not measured",
                    failed.block.saturating_add(1)
                ),
                (1, _) => format!(
                    "block {}, which is in no figure",
                    failed.block.saturating_add(1)
                ),
                (n, _) => format!("{n} blocks, which are in no figure"),
            },
            failed.reason.trim_end_matches('.')
        ))
    };
    rows.rows.iter().filter_map(of_row).collect()
}

/// Why a row was left out: because of itself, of its subject, or of what its settings want around it.
fn not_run<'a>(plan: &'a Plan, row: &PlannedRow) -> Option<&'a NotRun> {
    let wants = |not: &&NotRun| {
        let set = |setting: &&prony_record::PlannedSetting| {
            let value = row.settings.get(&setting.name);
            let backing = value.and_then(|value| setting.backing_of.get(value));
            let front = value.and_then(|value| setting.front_of.get(value));
            backing.is_some_and(|ids| ids.contains(&not.what)) || front == Some(&not.what)
        };
        not.what == row.subject || plan.settings.iter().any(|setting| set(&setting))
    };
    let named =
        |not: &&NotRun| not.what == row.title || not.what.ends_with(&format!(": {}", row.title));
    let by_id = |not: &&NotRun| {
        let rest = not.what.strip_prefix(&row.subject);
        let words: Vec<&str> = rest.unwrap_or_default().split(' ').collect();
        let set = |(name, value): (&String, &String)| words.contains(&&*format!("{name}={value}"));
        let settings = words
            .iter()
            .filter(|word| word.contains('=') && !word.starts_with("c="));
        rest.is_some_and(|rest| rest.starts_with(' '))
            && settings.count() == row.settings.len()
            && row.settings.iter().all(set)
    };
    let not = &plan.not_run;
    let found = not.iter().find(named).or_else(|| not.iter().find(by_id));
    found.or_else(|| not.iter().find(wants))
}

/// How services were measured.
pub fn method(run: &Run) -> Option<String> {
    let plan = &run.plan;
    let rows = plan.workloads.iter().any(|w| !w.rows.is_empty());
    let numbers = plan.workloads.iter().any(|w| w.counter.is_some());
    let around = !plan.backings.is_empty() || !plan.fronts.is_empty();
    let mut said = Vec::new();
    if around {
        said.push(
            "Services behind a subject and proxies before it are started fresh in each trial, in order and each \
             ready by its own sign, and run on the subject's cores. With a proxy the generator asks it, else it \
             shares its connections out over the subject's instances.",
        );
    }
    if rows {
        said.push(DEVIATION);
        said.push(
            "CPU time a request is that of each process, whatever it did in the window, ÷ requests answered; \
             processes of one name are taken together. A side is full where its busiest core or thread was busy \
             for 95 % of the window. Where neither side is full, each waits: for the other, a disk or a lock.",
        );
    }
    if numbers {
        said.push("Numbers that services keep are read before the load and after it, outside of the window.");
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// What a document on services cannot tell.
pub fn limits_of_document(run: &Run) -> Option<String> {
    let around = !run.plan.backings.is_empty() || !run.plan.fronts.is_empty();
    let said = "Proxy, services and subject share one machine. On machines of their own none would take CPU time from \
         the subject, and each step between them would cost a network's delay. The CPU time of each process \
         carries over to that; the rates of rows with something around the subject do not.";
    around.then(|| said.to_owned())
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
            let said = of(backings, fronts).expect("something stands around it");
            assert!(said.starts_with("Services behind a subject and proxies before it"));
        }
    }
}
