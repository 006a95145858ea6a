//! The servers of one workload and block, alive together and visited in turns.
//!
//! ```text
//! start and check each, stopped at once ──> warm up in turns ──> check that they bear the pause (once a run)
//!     ──> visits: every subject once a round, in an order drawn anew ──> end each, its record written at once
//! ```
//!
//! One supervisor has its turn at a time and is waited for; the processes of all others are stopped meanwhile. A subject
//! that fails leaves the turns with the record of its failure, the others go on. Where one does not bear the pause, or dies
//! before that is known, all that it is compared with are measured by themselves, in this block and in all later ones: what
//! is compared is measured alike.
//!
//! Not for: what happens in a turn ([`crate::trial`]).

use std::time::Duration;

use prony_base::{Instant, Nanos, Random, clock};
use prony_record::{Histogram, Outcome, Plan, PlannedVisits, Trial, Turned};

use super::options::{POLL, Progress, RunError, TRIAL_SLACK};
use super::tasks::Task;
use super::{Reported, Runner, Watch, deadline_of, end_of};
use crate::plan::visits;
use crate::supervise::{Generator, TurnOrder};

/// Length of the load after the pause of the check.
const CHECK: Nanos = Nanos::from_millis(50);
/// Retries where the load sent nothing, as on a busy machine.
const CHECKS_MAX: u32 = 20;
/// Slack beyond the length of a turn and the time-out of a request, after which its trial counts as hung.
const TURN_SLACK: Nanos = Nanos::from_secs(30);

/// Groups tasks that are visited in turns; the groups run one after the other.
pub fn units<'a>(plan: &Plan, tasks: Vec<Task<'a>>) -> Vec<Vec<Task<'a>>> {
    let mut units: Vec<Vec<Task<'a>>> = Vec::new();
    for task in tasks {
        let is_mate = |unit: &&mut Vec<Task<'a>>| {
            unit.first().is_some_and(|first| {
                first.block == task.block
                    && is_planned(plan, first)
                    && visits::is_beside(first.cell, task.cell)
            })
        };
        let mates = units.iter_mut().find(is_mate);
        match mates.filter(|_| is_planned(plan, &task)) {
            Some(mates) => mates.push(task),
            None => units.push(vec![task]),
        }
    }
    units
}

fn is_planned(plan: &Plan, task: &Task<'_>) -> bool {
    task.generator == Generator::Prony && visits::is_visited(plan, task.cell)
}

/// One subject of the turns.
struct Member<'t, 'a> {
    task: &'t Task<'a>,
    watch: Watch,
    /// Its record if its supervisor reports none.
    record: Trial,
    /// Time-out of its stop.
    stop: Nanos,
    /// Time-out of a request.
    timeout: Nanos,
    /// Its record, once it has ended.
    ended: Option<(Trial, Option<Histogram>)>,
    is_recorded: bool,
}

impl Member<'_, '_> {
    /// Waits up to `limit` for the result of the last order; stores the record of a trial that has ended.
    fn receive(&mut self, limit: Nanos, progress: &mut Progress<'_>) -> Option<Turned> {
        self.watch.deadline = clock::monotonic() + limit;
        match self.watch.receive(self.stop, progress) {
            Ok(Reported::Waiting) => None,
            Ok(Reported::Turned(turned)) => Some(turned),
            Ok(Reported::Ended(result)) => {
                self.ended = Some(*result);
                None
            }
            Err(reason) => {
                self.watch.supervisor.end();
                let mut record = self.record.clone();
                record.outcome = self.watch.outcome(reason);
                self.ended = Some((record, None));
                None
            }
        }
    }

    /// Runs one turn.
    fn turn(&mut self, turn: TurnOrder, progress: &mut Progress<'_>) -> Option<Turned> {
        let length = match turn {
            TurnOrder::WarmUp { length_ns } => length_ns,
            TurnOrder::Visit {
                lead_in_ns,
                window_ns,
            } => lead_in_ns + window_ns,
            TurnOrder::Finish => 0,
        };
        self.watch.supervisor.turn(turn);
        self.receive(Nanos(length) + self.timeout * 2 + TURN_SLACK, progress)
    }
}

/// The members of one group, and the tasks after it.
struct Group<'t, 'a> {
    visits: &'t PlannedVisits,
    members: Vec<Member<'t, 'a>>,
    /// Members that are measured alone after the others.
    unfit: Vec<&'t Task<'a>>,
    /// Why all are to be, once that is known.
    why: Option<String>,
    later: &'t [Task<'a>],
    began: Instant,
}

impl<'p> Runner<'p> {
    /// Whether a task is measured in turns, as far as is known so far.
    pub(super) fn is_visited(&self, task: &Task<'_>) -> bool {
        is_planned(self.plan, task) && !self.unfit.contains_key(&task.cell.id)
    }

    /// The trials of one workload and block, visited in turns and recorded; `later` are those after them.
    pub(super) fn run_in_turns<'a>(
        &mut self,
        tasks: &[Task<'a>],
        later: &[Task<'a>],
    ) -> Result<(), RunError> {
        let Some(visits) = self.plan.visits.as_ref() else {
            return Ok(());
        };
        let (fit, unfit): (Vec<_>, Vec<_>) = tasks.iter().partition(|task| self.is_visited(task));
        let mut group = Group {
            visits,
            members: Vec::new(),
            unfit,
            why: None,
            later,
            began: clock::monotonic(),
        };
        self.bring_up(&mut group, &fit)?;
        self.warm_up(&mut group)?;
        self.check(&mut group)?;
        self.give_up_where_one_is_unfit(&mut group);
        self.visit_all(&mut group)?;
        self.finish(&mut group)?;
        for task in group.unfit {
            if self.options.interrupt.is_raised() {
                self.outcome.interrupted = true;
                return Ok(());
            }
            self.run_alone(task, later)?;
        }
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.options.interrupt.is_raised()
    }

    /// Starts and checks one after the other; each is stopped when the next one starts.
    fn bring_up<'t, 'a>(
        &mut self,
        group: &mut Group<'t, 'a>,
        tasks: &[&'t Task<'a>],
    ) -> Result<(), RunError> {
        for &task in tasks {
            if self.is_interrupted() {
                break;
            }
            if self.leave_out(task) {
                continue;
            }
            let mut order = self.order(task)?;
            order.in_turns = true;
            let limit = deadline_of(&order);
            let mut member = Member {
                task,
                record: order.unfinished(),
                stop: end_of(&order),
                timeout: Nanos(order.workload.timeout_ns),
                watch: self.start(task, order)?,
                ended: None,
                is_recorded: false,
            };
            member.receive(limit, self.progress);
            group.members.push(member);
            self.record_ended(group)?;
        }
        Ok(())
    }

    /// Warm-up in turns as long as those of the visits, so that the first pauses are not longer than later ones.
    fn warm_up(&mut self, group: &mut Group<'_, '_>) -> Result<(), RunError> {
        let all = Nanos(self.plan.warmup_ns);
        // At least one, in which the generator connects.
        let turns = all.0.div_ceil(group.visits.length_ns.max(1)).max(1);
        let turn = TurnOrder::WarmUp {
            length_ns: all.0 / turns,
        };
        for _ in 0..turns {
            for at in 0..group.members.len() {
                self.one_turn(group, at, turn)?;
            }
        }
        Ok(())
    }

    /// Once for each cell: stops all members for the longest pause to be expected. If one then does not
    /// answer on the same connections, none of them is visited.
    fn check(&mut self, group: &mut Group<'_, '_>) -> Result<(), RunError> {
        let is_new = |member: &Member<'_, '_>| !self.checked.contains(&member.task.cell.id);
        if group.members.len() < 2 || !group.members.iter().any(is_new) {
            return Ok(());
        }
        let duration = Nanos(self.plan.duration_ns);
        let pause = visits::pause_max(group.visits, duration, group.members.len());
        let until = clock::monotonic() + pause;
        while clock::monotonic() < until && !self.is_interrupted() {
            let left = Duration::from(until.since(clock::monotonic()));
            std::thread::sleep(POLL.min(left));
        }
        let turn = TurnOrder::WarmUp { length_ns: CHECK.0 };
        for at in 0..group.members.len() {
            let mut turned = self.one_turn(group, at, turn)?;
            for _ in 0..CHECKS_MAX {
                // A generator that was scheduled too late for its turn has sent nothing, which is not the subject's fault.
                if turned == Some(Turned::default()) {
                    turned = self.one_turn(group, at, turn)?;
                }
            }
            let Some(turned) = turned else {
                continue;
            };
            let cell = &group.members[at].task.cell.id;
            self.checked.insert(cell.clone());
            let why = why_unfit(&turned, pause).map(|why| format!("{cell}: {why}"));
            group.why = group.why.take().or(why);
        }
        Ok(())
    }

    /// Ends all members where one was found unfit: they are measured by themselves.
    fn give_up_where_one_is_unfit(&mut self, group: &mut Group<'_, '_>) {
        let Some(why) = group.why.take() else {
            return;
        };
        for member in group.members.drain(..).filter(|m| !m.is_recorded) {
            let Member {
                task, mut watch, ..
            } = member;
            watch.supervisor.end();
            self.work.remove(&task.stem());
            self.unfit.insert(task.cell.id.clone(), why.clone());
            group.unfit.push(task);
        }
    }

    /// Visits every subject once a round.
    fn visit_all(&mut self, group: &mut Group<'_, '_>) -> Result<(), RunError> {
        let Some(first) = group.members.first() else {
            return Ok(());
        };
        let purpose = format!("visits {} {}", first.task.cell.id, first.task.block);
        let mut random = Random::of(self.plan.seed, &purpose);
        let duration = Nanos(self.plan.duration_ns);
        let (least, most) = visits::lengths(group.visits, duration);
        let mut order: Vec<usize> = (0..group.members.len()).collect();
        for _ in 0..visits::count(group.visits, duration) {
            random.shuffle(&mut order);
            // The same for all of a round, so that each is measured for the same time.
            let window = least + Nanos(random.below((most - least).0 + 1));
            let turn = TurnOrder::Visit {
                lead_in_ns: group.visits.lead_in_ns,
                window_ns: window.0,
            };
            for &at in &order {
                self.one_turn(group, at, turn)?;
            }
        }
        Ok(())
    }

    /// Ends all members that are left, one after the other.
    fn finish(&mut self, group: &mut Group<'_, '_>) -> Result<(), RunError> {
        if self.is_interrupted() {
            // All are interrupted before one is waited for.
            for member in group.members.iter_mut().filter(|m| !m.is_recorded) {
                member.watch.interrupt(member.stop);
            }
        }
        for at in 0..group.members.len() {
            let member = &mut group.members[at];
            if member.is_recorded {
                continue;
            }
            if !self.options.interrupt.is_raised() {
                member.watch.supervisor.turn(TurnOrder::Finish);
            }
            let limit = member.stop + member.timeout * 2 + TRIAL_SLACK;
            // A turn that was under way when the run was interrupted may still be reported.
            while member.ended.is_none() {
                member.receive(limit, self.progress);
            }
            self.record_ended(group)?;
        }
        Ok(())
    }

    /// Runs a turn of one member, unless it has ended or the run is interrupted.
    fn one_turn(
        &mut self,
        group: &mut Group<'_, '_>,
        at: usize,
        turn: TurnOrder,
    ) -> Result<Option<Turned>, RunError> {
        let is_interrupted = self.is_interrupted();
        let member = &mut group.members[at];
        if member.is_recorded || is_interrupted || group.why.is_some() {
            return Ok(None);
        }
        let turned = member.turn(turn, self.progress);
        // One that dies before it was checked may have died of being stopped. If it was something else, it dies by itself, too.
        if let Some((record, _)) = &member.ended
            && let Outcome::Failed { reason, .. } = &record.outcome
            && !self.checked.contains(&member.task.cell.id)
        {
            group.why = Some(format!("{}: {reason}", member.task.cell.id));
            member.ended = None;
            return Ok(None);
        }
        self.record_ended(group)?;
        Ok(turned)
    }

    /// Records those that have ended since.
    fn record_ended(&mut self, group: &mut Group<'_, '_>) -> Result<(), RunError> {
        let share = clock::monotonic().since(group.began).0 / group.members.len().max(1) as u64;
        for member in &mut group.members {
            let Some(result) = member.ended.take() else {
                continue;
            };
            member.is_recorded = true;
            self.record(member.task, result, Nanos(share), group.later)?;
        }
        Ok(())
    }
}

/// Why a subject cannot be visited, by the result of the load after the pause.
fn why_unfit(turned: &Turned, pause: Nanos) -> Option<String> {
    let after = format!("after a pause of {pause}");
    if turned.answered == 0 {
        return Some(format!("{after} it did not answer"));
    }
    if turned.lost > 0 {
        return Some(format!("{after} it failed {} requests", turned.lost));
    }
    let closed = turned.closed_by_server.max(turned.opened);
    (closed > 0).then(|| format!("{after} it had closed {closed} of its connections"))
}

#[cfg(test)]
mod tests {
    use prony_record::Cell;

    use super::*;

    #[test]
    fn who_answers_on_the_same_connections_bears_the_pause() {
        let pause = Nanos::from_millis(800);
        let good = Turned {
            answered: 9,
            ..Turned::default()
        };
        assert_eq!(why_unfit(&good, pause), None);
        let why = |turned| why_unfit(&turned, pause).expect("unfit");
        assert!(why(Turned::default()).ends_with("did not answer"));
        assert!(why(Turned { lost: 2, ..good }).ends_with("failed 2 requests"));
        let closed = Turned {
            closed_by_server: 3,
            opened: 3,
            ..good
        };
        assert_eq!(
            why(closed),
            "after a pause of 800ms it had closed 3 of its connections"
        );
    }

    #[test]
    fn what_is_compared_is_visited_together_block_by_block() {
        let cell = |id: &str, connections| Cell {
            id: id.to_owned(),
            connections,
            ..Cell::default()
        };
        let cells = [
            cell("a", 1),
            cell("b", 1),
            cell("a9", 9),
            cell("b9", 9),
            cell("x", 1),
        ];
        let plan = Plan {
            visits: Some(PlannedVisits {
                fresh: vec![prony_record::NotVisited {
                    cell: "x".to_owned(),
                    reason: String::new(),
                }],
                ..PlannedVisits::default()
            }),
            ..Plan::default()
        };
        let task = |block, at: usize| Task {
            cell: &cells[at],
            block,
            position: 0,
            generator: Generator::Prony,
        };
        let tasks = [(0, 2), (0, 4), (0, 1), (0, 0), (0, 3), (1, 0), (1, 1)];
        let tasks = tasks.iter().map(|&(block, at)| task(block, at)).collect();
        let units = units(&plan, tasks);
        let ids: Vec<Vec<&str>> = units
            .iter()
            .map(|unit| unit.iter().map(|task| task.cell.id.as_str()).collect())
            .collect();
        assert_eq!(
            ids,
            [vec!["a9", "b9"], vec!["x"], vec!["b", "a"], vec!["a", "b"]]
        );
    }
}
