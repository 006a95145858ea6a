//! Puts the results of builds into a plan: each subject's folder and version, and those whose build failed as not run.

use prony_record::{NotRun, Plan, PlannedSubject};

use super::cells::planned_arrival;
use super::order::order;
use super::{rows, topology, visits};
use crate::build::BuildOutcome;

/// Puts the outcomes of builds, by the subject's id, into the plan. Subjects that failed are removed with their cells,
/// and the order is drawn again from the same seed. Where no cells are left, the caller reports `not_run` and ends.
pub fn settle(mut plan: Plan, outcomes: &[(String, BuildOutcome)]) -> Plan {
    for (id, outcome) in outcomes {
        match outcome {
            BuildOutcome::Ready(ready) => {
                let all = plan.subjects.iter_mut().chain(&mut plan.peers);
                let all = all.chain(&mut plan.backings).chain(&mut plan.fronts);
                let is = |s: &&mut PlannedSubject| s.id == *id || s.copy_of.as_ref() == Some(id);
                for subject in all.filter(is) {
                    subject.build_dir = ready.dir.clone();
                    subject.build_key = ready.key.clone();
                    subject.root_dir = ready.root_dir.clone();
                    subject.files_sha256 = ready.files.clone();
                    subject.originals_dir = ready.originals.clone();
                    subject.repositories = ready.repositories.clone();
                    subject.version = ready.version.clone();
                }
            }
            BuildOutcome::Failed(failed) => remove(&mut plan, failed.not_run(id)),
        }
    }
    finish(&mut plan);
    plan
}

/// Takes a subject, a peer or a service out of the plan, with all cells that need it.
fn remove(plan: &mut Plan, mut gone: NotRun) {
    if plan
        .cells
        .iter()
        .any(|cell| topology::uses(&cell.around, &gone.what))
    {
        gone.reason = topology::with_cells(&gone.reason, &gone.what, &plan.cells);
    }
    let workloads = plan.workloads.iter().filter(|workload| {
        let asked = workload.client.as_ref();
        asked.is_some_and(|asked| asked.peer == gone.what)
    });
    let without_peer: Vec<String> = workloads.map(|workload| workload.name.clone()).collect();
    // A copy goes with what it is one of.
    let subjects = &plan.subjects;
    let is_gone = |id: &str| {
        let copied = subjects.iter().find(|s| s.id == id);
        id == gone.what || copied.is_some_and(|s| s.copy_of.as_ref() == Some(&gone.what))
    };
    plan.cells.retain(|cell| {
        !is_gone(&cell.subject)
            && !without_peer.contains(&cell.workload)
            && !topology::uses(&cell.around, &gone.what)
    });
    plan.peers.retain(|peer| peer.id != gone.what);
    let cells = &plan.cells;
    topology::retain(&mut plan.backings, cells);
    topology::retain(&mut plan.fronts, cells);
    plan.subjects
        .retain(|subject| cells.iter().any(|cell| cell.subject == subject.id));
    for workload in &mut plan.workloads {
        let own = || cells.iter().filter(|cell| cell.workload == workload.name);
        workload
            .connections
            .retain(|&connections| own().any(|cell| cell.connections == connections));
        workload.arrival = planned_arrival(&workload.arrival, own());
        if let Some(program) = &mut workload.program {
            program
                .counts
                .retain(|&count| own().any(|cell| cell.count == Some(count)));
        }
    }
    plan.workloads
        .retain(|workload| cells.iter().any(|cell| cell.workload == workload.name));
    plan.settings
        .retain(|s| cells.iter().any(|cell| cell.settings.contains_key(&s.name)));
    let workloads = &plan.workloads;
    plan.networks.retain(|network| {
        let mut clients = workloads
            .iter()
            .filter_map(|workload| workload.client.as_ref());
        let mut servers = plan.cells.iter().map(|cell| &cell.around.network);
        clients.any(|client| client.network == network.name)
            || servers.any(|name| *name == network.name)
    });
    if plan.not_run.iter().all(|other| other.what != gone.what) {
        plan.not_run.push(gone);
    }
}

/// Draws the order, and drops rows and a reference that are not run.
pub(super) fn finish(plan: &mut Plan) {
    plan.order = order(plan.cells.len(), plan.blocks, plan.seed);
    visits::settle(plan);
    rows::settle(plan);
    let Some(reference) = plan.reference.take() else {
        return;
    };
    if plan.subjects.iter().any(|subject| subject.id == reference) {
        plan.reference = Some(reference);
        return;
    }
    let why = match plan.not_run.iter().any(|gone| gone.what == reference) {
        true => "is not run",
        false => "is not among the selected cells",
    };
    plan.notes.push(format!(
        "the reference {reference} {why}: there are no ratios, and nothing takes its place"
    ));
}
