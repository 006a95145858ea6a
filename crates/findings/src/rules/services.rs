//! P023 to P027: numbers that a service keeps, and what shares its cores.

use prony_record::{Cell, CounterReport, Ended, Role, Trial};

use super::seen::{Seen, finding, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::measure;
use crate::records::Case;

const UNCOUNTED: (&str, &str) = (
    "The subject acknowledged requests that its counter does not include: its rate is not that of the requested work.",
    "Fix the subject: each acknowledged request must be counted once, whichever instance received it.",
);

/// P023: the number after the load is below what it was before and what was acknowledged.
pub(super) fn uncounted(case: &Case<'_>) -> Vec<Finding> {
    numbers(case, Code::P023, |counter| {
        let missing = counter.uncounted().filter(|&missing| missing > 0)?;
        let evidence = vec![
            Evidence::count("acknowledged", counter.acknowledged),
            Evidence::count("of these not counted", missing),
        ];
        let seen = Seen::note(missing as f64, UNCOUNTED, evidence);
        Some(seen.severity(Severity::Invalid))
    })
}

/// A finding on the number of each measured block, by what `look` sees.
fn numbers(
    case: &Case<'_>,
    code: Code,
    look: impl Fn(&CounterReport) -> Option<Seen>,
) -> Vec<Finding> {
    let trials = case.counters().map(|(trial, _)| trial);
    worst(case, code, trials, |trial| look(trial.counter.as_ref()?))
}

const LOST_STOPPED: (&str, &str) = (
    "The subject was stopped in the way that it declares, and did not keep all that it had acknowledged.",
    "Make the subject write its data before it exits, and allow the time for that in [stop].",
);
const LOST_DURABLE: (&str, &str) = (
    "The subject was killed and did not keep all that it had acknowledged, although this row states that it answers \
     only when its count is durable.",
    "Fix the subject: it answers too early, or its writes do not survive a crash.",
);
const LOST_KILLED: (&str, &str) = (
    "The subject was killed, and what it had acknowledged but not yet written is lost. It answers before it writes, so \
     this is the price of its design and not a fault: the number is what one crash costs.",
    "Nothing, if the loss is acceptable; otherwise make it answer after writing, or write more often.",
);
const LOST_STATED: (&str, &str) = (
    "The row states that nothing is kept: nothing that is missing was promised, and its rate is that of a service \
     without persistence.",
    "Nothing, as long as its rate is not presented as that of a service that keeps what it acknowledges.",
);
/// The setting by which a row states when the subject answers, and the value that promises durability.
const STATED_DURABLE: (&str, &str) = ("ack", "synced");
/// The setting by which a row states where the subject keeps its number, and the value for nowhere.
const STATED_FORGETFUL: (&str, &str) = ("backend", "none");

fn states(cell: &Cell, (name, value): (&str, &str)) -> bool {
    cell.settings.get(name).is_some_and(|one| one == value)
}

/// Whether a cell states that its subject keeps nothing: its setting `backend` is `none`.
pub fn keeps_nothing(cell: &Cell) -> bool {
    states(cell, STATED_FORGETFUL)
}

/// P024: the subject's number after its restart is below its number before the load and the
/// acknowledged requests together. After a kill that is for information, unless the row states durability;
/// always, where the row states that nothing is kept.
pub(super) fn lost(case: &Case<'_>) -> Vec<Finding> {
    let killed = case.is_killed();
    let (text, severity) = match killed {
        _ if keeps_nothing(case.cell) => (LOST_STATED, Severity::Note),
        false => (LOST_STOPPED, Severity::Invalid),
        true if states(case.cell, STATED_DURABLE) => (LOST_DURABLE, Severity::Invalid),
        true => (LOST_KILLED, Severity::Note),
    };
    let ended = case.counter().and_then(|counter| counter.ended_by);
    numbers(case, Code::P024, |counter| {
        let lost = counter.lost().filter(|&lost| lost > 0)?;
        let evidence = vec![
            Evidence::text(
                "ended",
                match ended {
                    Some(Ended::Killed) => "by SIGKILL, under load",
                    _ => "as its [stop] says",
                },
            ),
            Evidence::count("acknowledged", counter.acknowledged),
            Evidence::count("lost", lost),
        ];
        Some(Seen::note(lost as f64, text, evidence).severity(severity))
    })
}

const INVENTED: (&str, &str) = (
    "The subject's counter rose by more than all requests together, answered or not, can have added: something is \
     counted twice, or another client sent requests.",
    "Look for retries behind the subject that apply an increment twice, and for state left by an earlier run.",
);

/// P025: the number is above what it was before and all that was ever sent.
pub(super) fn invented(case: &Case<'_>) -> Vec<Finding> {
    numbers(case, Code::P025, |counter| {
        let more = counter.invented();
        let sent = counter.acknowledged.saturating_add(counter.unanswered);
        let evidence = vec![
            Evidence::count("sent", sent),
            Evidence::count("counted beyond that", more),
        ];
        let seen = Seen::note(more as f64, INVENTED, evidence);
        (more > 0).then(|| seen.severity(Severity::Invalid))
    })
}

const SHARED: (&str, &str) = (
    "The services around the subject run on the subject's cores: their CPU time is taken from the subject's, and the \
     rate is that of all of them together.",
    "Read the rate as that of this machine with everything on it. With cores or a machine of its own for \
     each, the subject could be faster.",
);

/// P026: a front or a backing service ran beside the subject, on its cores.
pub(super) fn shared_cores(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P026, case.measured(), |trial| {
        let roles = [
            ("the subject", Role::Subject),
            ("the front", Role::Front),
            ("the backing services", Role::Backing),
        ];
        let around = |role| measure::processes(trial, role).next().is_some();
        if !around(Role::Front) && !around(Role::Backing) {
            return None;
        }
        let used = |(who, role)| Some((who, cores_of(trial, role)?));
        let used: Vec<(&str, f64)> = roles.into_iter().filter_map(used).collect();
        let by_others: f64 = used.iter().skip(1).map(|(_, cores)| cores).sum();
        let evidence = used
            .into_iter()
            .map(|(who, cores)| Evidence::number(format!("used by {who}"), cores, Unit::Cores));
        let seen = Seen::note(by_others, SHARED, evidence.collect());
        Some(seen)
    })
}

fn cores_of(trial: &Trial, role: Role) -> Option<f64> {
    Some(measure::share_of_window(trial, measure::cpu(trial, role)?)?.0)
}

const INSTANCES: (&str, &str) = (
    "There are more instances of the subject than cores for them: they share the cores. The row shows what several \
     processes cost, not what they gain.",
    "Compare instances on a machine with a core for each, and one more for the generator.",
);

/// P027: more instances than the subject has cores.
pub(super) fn more_instances(case: &Case<'_>) -> Vec<Finding> {
    let (instances, cores) = (
        case.cell.around.instances,
        case.records.plan.cores.subject.len(),
    );
    let blocks: Vec<u32> = case.measured().map(|trial| trial.block).collect();
    if cores == 0 || instances <= 1 || instances as usize <= cores || blocks.is_empty() {
        return Vec::new();
    }
    let evidence = vec![
        Evidence::count("instances", u64::from(instances)),
        Evidence::count("cores of the subject", cores as u64),
    ];
    let seen = Seen::note(0.0, INSTANCES, evidence);
    vec![finding(case, Code::P027, blocks, seen)]
}
