//! What a plan says of threads that have no processor each: they are run all the same, and a
//! reader must know it. Pure.
//!
//! Not for: clients, whose trials have a finding of their own (P021).

use std::collections::BTreeMap;

use prony_base::counted;
use prony_record::{Cell, Cores, Plan, Work};

use super::program;
use crate::experiment::{Experiment, THREADS};

/// A sentence for each number of threads that is more than there are processors for, or that the
/// machine cannot give. `is_given`: a person said whose which cores are.
pub fn notes(experiment: &Experiment, plan: &Plan, is_given: bool) -> Vec<String> {
    let cores = &plan.cores;
    let mut notes: Vec<String> = too_few_cores(experiment, cores, is_given)
        .into_iter()
        .collect();
    let mut crowds: BTreeMap<(u32, usize), Vec<&str>> = BTreeMap::new();
    let of_subject = plan.cells.iter().filter_map(|cell| of_subject(plan, cell));
    let around = plan.backings.iter().chain(&plan.fronts);
    let around = around.map(|service| (service.id.as_str(), service.threads, cores.subject.len()));
    for (who, threads, processors) in of_subject.chain(around) {
        if processors > 0 && threads as usize > processors {
            let crowd = crowds.entry((threads, processors)).or_default();
            if !crowd.contains(&who) {
                crowd.push(who);
            }
        }
    }
    for ((threads, processors), crowd) in crowds {
        notes.push(format!(
            "{threads} threads on {} take turns: {}",
            counted(processors, "processor"),
            crowd.join(", ")
        ));
    }
    notes.extend(generators(plan));
    notes
}

/// `[run] threads` of servers: cores are given, and a machine may have fewer.
fn too_few_cores(experiment: &Experiment, cores: &Cores, is_given: bool) -> Option<String> {
    let wanted = experiment.run.threads? as usize;
    let given = cores.subject.len();
    if program::is_all_programs(experiment) || given == 0 || wanted <= given {
        return None;
    }
    if is_given {
        return Some(format!(
            "[run] asks for {wanted} processors of the subject, and its list of cores has {given}"
        ));
    }
    let mut all: Vec<u32> = [&cores.subject[..], &cores.generator[..]].concat();
    all.sort_unstable();
    all.dedup();
    Some(format!(
        "[run] asks for {wanted} processors of the subject, and it has {given}: the machine has {}, of which one \
         core at the least is the generator's",
        all.len()
    ))
}

/// Who a cell's subject is, the threads that it is told to use, and the processors that it has.
fn of_subject<'a>(plan: &'a Plan, cell: &'a Cell) -> Option<(&'a str, u32, usize)> {
    let subject = plan.subject_of(cell)?;
    let workload = plan.workload_of(cell)?;
    let set = cell.settings.get(THREADS);
    let set = set.and_then(|value| value.parse().ok());
    let mut processors = plan.cores.subject.clone();
    let usual = match workload.work() {
        Work::Client(_) => return None,
        Work::Program(_) => {
            processors.extend(&plan.cores.generator);
            subject.program_threads
        }
        Work::Server if subject.mentions(Work::Server, "{threads}") => subject.threads,
        Work::Server => return None,
    };
    processors.sort_unstable();
    processors.dedup();
    Some((&subject.id, set.unwrap_or(usual), processors.len()))
}

/// Threads of the generator that a setting asks for.
fn generators(plan: &Plan) -> Option<String> {
    let processors = plan.cores.generator.len();
    let most = plan.cells.iter().map(|cell| cell.around.generators).max()?;
    (processors > 0 && most as usize > processors).then(|| {
        format!(
            "{most} threads of the generator on {} take turns: they may be the limit, and add to latency",
            counted(processors, "processor")
        )
    })
}
