//! A run: every trial of a plan in its order, each under a supervisor of its own,
//! each recorded before the next one starts.
//!
//! Not for: making the plan, building subjects, or reading anything out of the
//! records. A failure in a trial is recorded and never ends the run.
//!
//! One trial, from the plan to its record: `tasks` lists it, [`run`] makes its order and starts a
//! [`Supervisor`], which carries out the order in namespaces of its own ([`crate::supervise::main`],
//! [`crate::trial::run`]) and reports the record, which [`Journal`] appends and syncs.
//!
//! ```no_run
//! use prony_lab::run::{Event, Options, run};
//! use prony_lab::supervise::{Interrupt, offer};
//! # let plan = prony_record::Plan::default();
//! # let environment = prony_record::Environment::default();
//! let prony = std::env::current_exe()?;
//! let options = Options {
//!     dir: "runs/ping".into(),
//!     resume: false,
//!     wanted: offer(&prony)?.wanted,
//!     prony,
//!     driver: "auto".to_owned(),
//!     wrk: None,
//!     profile: None,
//!     again: true,
//!     check_only: false,
//!     interrupt: Interrupt::default(),
//! };
//! let outcome = run(&plan, environment, &options, &mut |event: Event<'_>| {
//!     if let Event::Ended { trial, left, .. } = event {
//!         println!("{}: {:?}, {left} left", trial.cell, trial.outcome);
//!     }
//! })?;
//! println!("{} measured", outcome.measured);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod disturbed;
mod options;
mod pace;
mod tasks;
mod visits;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use prony_base::{Instant, Nanos, Random, clock};
use prony_record::{
    Cell, Environment, Histogram, Outcome, Phase, Plan, PlannedSubject, Source, Trial, Turned,
};

use crate::experiment::cores::list;
use crate::launch;
use crate::plan;
use crate::store::{self, Journal};
use crate::sums;
use crate::supervise::{Generator, Interrupt, Order, Report, Supervisor, TrialOrder};
use crate::sysctl::{self, Note};
pub use options::{Event, Options, Progress, RunError, RunOutcome, Wrk};
use options::{INTERRUPT_SLACK, POLL, TRIAL_SLACK};
use pace::Pace;
use tasks::{Task, WorkFolder, network_of, peer_of, services_of, subject_of, tasks, workload_of};

/// Failures before the measurement after which a cell is not tried again: one may be chance.
const EARLY_FAILURES_MAX: u32 = 2;
/// Runs all trials of `plan` that are not recorded yet. Blocks until they are done or the user interrupts it. The
/// calling thread must stay alive meanwhile: the kernel kills the supervisors with it.
///
/// Errors are those after which no trial can run; a failed trial is recorded and is not an error.
pub fn run(
    plan: &Plan,
    environment: Environment,
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<RunOutcome, RunError> {
    let tasks = tasks(plan, options.wrk.as_ref(), options.profile.as_ref())?;
    let journal = if options.resume {
        Journal::resume(&options.dir, plan, &environment)?
    } else {
        Journal::create(&options.dir, plan, &environment)?
    };
    let dir = options.dir.canonicalize()?;
    sums::unseal(&dir)?;
    if let Some(left) = Note::left_in(&dir, &plan.settings)? {
        left.settle()?;
    }
    let mut runner = Runner {
        plan,
        options,
        work: WorkFolder::open(&dir)?,
        dir,
        journal,
        progress,
        pace: Pace::new(
            Nanos(plan.warmup_ns) + Nanos(plan.duration_ns),
            searches(plan),
        ),
        early_failures: BTreeMap::new(),
        checked: BTreeSet::new(),
        unfit: BTreeMap::new(),
        done: 0,
        total: 0,
        outcome: RunOutcome::default(),
    };
    // The processes of a trial are pinned where they start; what the lab runs beside them is to disturb neither side.
    let lab = &plan.cores.lab;
    let all = launch::on_cores(lab, || runner.run_tasks(&tasks));
    all.map_err(|source| RunError::Cores {
        cores: list(lab),
        source,
    })??;
    sums::seal(&runner.dir)?;
    Ok(runner.outcome)
}

/// How long the searches of cells that have one usually take.
fn searches(plan: &Plan) -> BTreeMap<String, Nanos> {
    let length = |cell: &Cell| {
        let workload = plan.workload_of(cell)?;
        let is_one = workload.find_max.is_some();
        is_one.then(|| (cell.id.clone(), plan::search_length(workload)))
    };
    plan.cells.iter().filter_map(length).collect()
}

/// The longest that a trial can take when everything in it runs into its time-out.
fn deadline_of(order: &TrialOrder) -> Nanos {
    let workload = &order.workload;
    let start_and_stop = |subject: &PlannedSubject| {
        subject
            .ready
            .timeout_ns
            .saturating_add(subject.stop.timeout_ns)
    };
    let others = order.peer.iter().chain(&order.backings).chain(&order.front);
    let others = others.map(start_and_stop).fold(0, u64::saturating_add);
    let counter = workload.counter.as_ref();
    // A server that must keep its counter is restarted, and its counter read, once more.
    let again = u64::from(counter.is_some_and(|counter| counter.ended_by.is_some()));
    let starts = u64::from(order.cell.around.instances.max(1)) + again;
    let requests = 3 + 2 * u64::from(counter.is_some());
    let named = [
        others,
        start_and_stop(&order.subject).saturating_mul(starts),
        workload.timeout_ns.saturating_mul(requests),
        order.warmup_ns.saturating_mul(2),
        order.duration_ns,
        plan::longest_search(workload).0,
    ];
    named.iter().fold(TRIAL_SLACK, |sum, &ns| sum + Nanos(ns))
}

/// How long the servers of an interrupted trial may take to stop.
fn end_of(order: &TrialOrder) -> Nanos {
    let others = order.backings.iter().chain(&order.front);
    let all = others.chain([&order.subject]);
    let stops = all.map(|subject| subject.stop.timeout_ns);
    Nanos(stops.fold(0, u64::saturating_add))
}

struct Runner<'a> {
    plan: &'a Plan,
    options: &'a Options,
    dir: PathBuf,
    work: WorkFolder,
    journal: Journal,
    progress: &'a mut Progress<'a>,
    pace: Pace,
    /// By cell: trials that failed before anything was measured.
    early_failures: BTreeMap<String, u32>,
    /// Cells whose servers survived a pause.
    checked: BTreeSet<String>,
    /// Cells whose servers did not, and why.
    unfit: BTreeMap<String, String>,
    /// Trials that have ended or were left out, and trials in all.
    done: u32,
    total: u32,
    outcome: RunOutcome,
}

impl Runner<'_> {
    fn run_tasks(&mut self, tasks: &[Task<'_>]) -> Result<(), RunError> {
        self.total = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        for trial in self.journal.trials() {
            if store::is_finished(trial) && failed_early(self.plan, trial) {
                *self.early_failures.entry(trial.cell.clone()).or_default() += 1;
            }
        }
        let open = self.open_tasks(tasks);
        self.outcome.reused = self.total - u32::try_from(open.len()).unwrap_or(self.total);
        self.done = self.outcome.reused;
        let left = self.time_left(&open);
        (self.progress)(Event::Begun {
            reused: self.done,
            total: self.total,
            left,
        });
        self.run_units(open)?;
        if self.options.again && !self.options.check_only && !self.outcome.interrupted {
            let tasks = disturbed::tasks(self.plan, self.journal.trials());
            let open = self.open_tasks(&tasks);
            self.total += u32::try_from(open.len()).unwrap_or(0);
            self.run_units(open)?;
        }
        Ok(())
    }

    /// Runs and records these trials.
    fn run_units(&mut self, open: Vec<Task<'_>>) -> Result<(), RunError> {
        let units = visits::units(self.plan, open);
        for (index, unit) in units.iter().enumerate() {
            if self.options.interrupt.is_raised() {
                self.outcome.interrupted = true;
                break;
            }
            let later: Vec<Task<'_>> = units[index + 1..].iter().flatten().cloned().collect();
            match unit.as_slice() {
                [task] if !self.is_visited(task) => self.run_alone(task, &later)?,
                tasks => self.run_in_turns(tasks, &later)?,
            }
        }
        Ok(())
    }

    /// Runs and records one trial; `later` are those after it.
    fn run_alone(&mut self, task: &Task<'_>, later: &[Task<'_>]) -> Result<(), RunError> {
        if self.leave_out(task) {
            return Ok(());
        }
        let start = clock::monotonic();
        let (mut trial, histogram) = self.run_trial(task)?;
        if let Some(why) = self.unfit.get(&task.cell.id)
            && plan::visits::is_visited(self.plan, task.cell)
        {
            trial
                .notes
                .push(format!("measured by itself, not in turns: {why}"));
        }
        let length = clock::monotonic().since(start);
        self.record(task, (trial, histogram), length, later)
    }

    /// Skips a trial whose cell has failed before; returns whether it did.
    fn leave_out(&mut self, task: &Task<'_>) -> bool {
        if !self.is_hopeless(task.cell) {
            return false;
        }
        self.done += 1;
        self.outcome.left_out += 1;
        (self.progress)(Event::LeftOut {
            cell: task.cell,
            block: task.block,
            done: self.done,
            total: self.total,
        });
        true
    }

    /// Records the result of a trial that took `length`, and reports it.
    fn record(
        &mut self,
        task: &Task<'_>,
        (trial, histogram): (Trial, Option<Histogram>),
        length: Nanos,
        later: &[Task<'_>],
    ) -> Result<(), RunError> {
        self.journal
            .append(trial, histogram.as_ref(), &task.stem())?;
        self.work.remove(&task.stem());
        self.pace.note(&task.cell.id, length);
        self.done += 1;
        let left = self.time_left(later);
        self.count_last(left);
        Ok(())
    }

    /// The tasks for which no finished trial is recorded.
    fn open_tasks<'t>(&self, tasks: &[Task<'t>]) -> Vec<Task<'t>> {
        let ended = self.journal.trials().iter();
        let ended = ended.filter(|trial| store::is_finished(trial));
        let finished: HashSet<_> = ended
            .map(|trial| (trial.cell.clone(), trial.block, trial.generator))
            .collect();
        let open = |task: &&Task<'_>| {
            !finished.contains(&(task.cell.id.clone(), task.block, task.generator.kind()))
        };
        tasks.iter().filter(open).cloned().collect()
    }

    fn is_hopeless(&self, cell: &Cell) -> bool {
        self.early_failures
            .get(&cell.id)
            .is_some_and(|&failures| failures >= EARLY_FAILURES_MAX)
    }

    fn time_left(&self, tasks: &[Task<'_>]) -> Nanos {
        let hopeful = tasks.iter().filter(|task| !self.is_hopeless(task.cell));
        self.pace.left(hopeful.map(|task| task.cell.id.as_str()))
    }

    /// Counts the trial that was recorded last, and reports it.
    fn count_last(&mut self, left: Nanos) {
        let Some(trial) = self.journal.trials().last() else {
            return;
        };
        match trial.outcome {
            Outcome::Measured => self.outcome.measured += 1,
            Outcome::Failed { .. } => self.outcome.failed += 1,
            Outcome::Interrupted => self.outcome.interrupted = true,
        }
        if failed_early(self.plan, trial) {
            *self.early_failures.entry(trial.cell.clone()).or_default() += 1;
        }
        (self.progress)(Event::Ended {
            trial,
            done: self.done,
            total: self.total,
            left,
        });
    }

    /// Runs one trial under a supervisor of its own.
    fn run_trial(&mut self, task: &Task<'_>) -> Result<(Trial, Option<Histogram>), RunError> {
        let order = self.order(task)?;
        let stop = end_of(&order);
        let mut record = order.unfinished();
        let values = sysctl::wanted(&order.cell, &order.settings);
        let note = Note::write(&self.dir, &values)?;
        let mut watch = self.start(task, order)?;
        let result = watch.result(stop, self.progress);
        if result.is_err() {
            watch.supervisor.end();
        }
        // Whatever became of the supervisor, the kernel is as it was before.
        note.map_or(Ok(()), Note::settle)?;
        Ok(result.unwrap_or_else(|reason| {
            record.outcome = watch.outcome(reason);
            (record, None)
        }))
    }

    /// Starts the supervisor of a trial.
    fn start(&mut self, task: &Task<'_>, order: TrialOrder) -> Result<Watch, RunError> {
        (self.progress)(Event::Started {
            cell: task.cell,
            block: task.block,
            generator: task.generator.kind(),
        });
        let deadline = deadline_of(&order);
        let mut wanted = self.options.wanted;
        // A server that already runs is reached over the host's network only.
        wanted.network &= !matches!(order.subject.source, Source::Url { .. });
        let supervisor = Supervisor::start(&self.options.prony, wanted, Order::Trial(order))?;
        Ok(Watch {
            supervisor,
            interrupt: self.options.interrupt.clone(),
            deadline: clock::monotonic() + deadline,
            interrupted: false,
            phase: Phase::Prepare,
        })
    }

    fn order(&self, task: &Task<'_>) -> Result<TrialOrder, RunError> {
        let purpose = format!("trial {} {}", task.cell.id, task.block);
        let named = |name: &String| task.cell.settings.contains_key(name);
        let workload = workload_of(self.plan, task.cell)?;
        let (backings, front) = services_of(self.plan, task.cell)?;
        let mut asks = workload.clone();
        let (mut warmup_ns, mut duration_ns) = (self.plan.warmup_ns, self.plan.duration_ns);
        if let Generator::Profile { pass } = &task.generator {
            (asks.find_max, asks.requests_max) = (None, None);
            duration_ns = self
                .plan
                .profile
                .as_ref()
                .map_or(duration_ns, |p| p.window_ns);
            // strace counts from before the load until after it: all requests are to be in the window.
            warmup_ns *= u64::from(pass.strace.is_none());
        }
        // Only Prony's own generator reports acknowledged requests.
        asks.counter = asks.counter.filter(|_| task.generator == Generator::Prony);
        Ok(TrialOrder {
            cell: task.cell.clone(),
            subject: subject_of(self.plan, task.cell)?.clone(),
            workload: asks,
            peer: peer_of(self.plan, task.cell, workload)?.cloned(),
            backings: backings.into_iter().cloned().collect(),
            front: front.cloned(),
            network: network_of(self.plan, task.cell, workload)?.cloned(),
            settings: self
                .plan
                .settings
                .iter()
                .filter(|setting| named(&setting.name))
                .cloned()
                .collect(),
            cores: self.plan.cores.clone(),
            warmup_ns,
            duration_ns,
            block: task.block,
            position: task.position,
            seed: Random::of(self.plan.seed, &purpose).next_u64(),
            in_turns: false,
            check_only: self.options.check_only,
            generator: task.generator.clone(),
            driver: self.options.driver.clone(),
            prony: absolute(&self.options.prony),
            work_dir: self.work.folder(&task.stem()),
            run_dir: self.dir.clone(),
            file_stem: task.stem(),
        })
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A running supervisor.
struct Watch {
    /// The supervisor.
    supervisor: Supervisor,
    /// Raised when the user interrupts the run.
    interrupt: Interrupt,
    /// When it counts as hung.
    deadline: Instant,
    /// Whether it was asked to end.
    interrupted: bool,
    /// The current phase of its trial.
    phase: Phase,
}

impl Watch {
    /// Waits for the trial's record. Errors: why there is none.
    fn result(
        &mut self,
        stop: Nanos,
        progress: &mut Progress<'_>,
    ) -> Result<(Trial, Option<Histogram>), String> {
        match self.receive(stop, progress)? {
            Reported::Ended(result) => Ok(*result),
            Reported::Waiting | Reported::Turned(_) => {
                Err("the supervisor did not report a trial".to_owned())
            }
        }
    }

    /// Waits for the next report that is not a phase. Errors: why there is none.
    fn receive(&mut self, stop: Nanos, progress: &mut Progress<'_>) -> Result<Reported, String> {
        loop {
            match self
                .supervisor
                .next(POLL)
                .map_err(|error| error.to_string())?
            {
                Some(Report::Phase { phase }) => {
                    self.phase = phase;
                    progress(Event::Phase(phase));
                }
                Some(Report::Trial { trial, histogram }) => {
                    return Ok(Reported::Ended(Box::new((trial, histogram))));
                }
                Some(Report::Waiting) => return Ok(Reported::Waiting),
                Some(Report::Turned(turned)) => return Ok(Reported::Turned(turned)),
                Some(_) => return Err("the supervisor did not report a trial".to_owned()),
                None => {}
            }
            let now = clock::monotonic();
            if self.interrupt.is_raised() {
                self.interrupt(stop);
            }
            if now > self.deadline {
                return Err("the trial hung and was ended".to_owned());
            }
        }
    }

    /// How a trial ended that has no record, for this reason.
    fn outcome(&self, reason: String) -> Outcome {
        match self.interrupted {
            true => Outcome::Interrupted,
            false => Outcome::Failed {
                phase: self.phase,
                reason,
            },
        }
    }

    /// Requests a graceful end, once.
    fn interrupt(&mut self, stop: Nanos) {
        if !self.interrupted {
            self.interrupted = true;
            let soon = clock::monotonic() + stop + INTERRUPT_SLACK;
            self.deadline = self.deadline.min(soon);
            self.supervisor.interrupt();
        }
    }
}

/// A report of a supervisor that is not a phase.
enum Reported {
    /// The trial waits for its first turn.
    Waiting,
    /// A turn of it is over.
    Turned(Turned),
    /// It has ended.
    Ended(Box<(Trial, Option<Histogram>)>),
}

/// Whether a trial failed before anything was measured, and so will likely fail again. A program is under no load, so
/// that any failure counts; a client is its own load.
fn failed_early(plan: &Plan, trial: &Trial) -> bool {
    let is_program = || {
        let cell = plan.cells.iter().find(|cell| cell.id == trial.cell);
        cell.is_some_and(|cell| cell.count.is_some() || !plan::is_server(plan, cell))
    };
    match &trial.outcome {
        Outcome::Failed { phase, .. } => *phase <= Phase::Verify || is_program(),
        Outcome::Measured | Outcome::Interrupted => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use prony_record::PlannedWorkload;

    use super::options::wrk_version;
    use super::*;
    use crate::launch::Wanted;
    use crate::profile::Means;
    use crate::supervise::SupervisorError;

    fn plan() -> Plan {
        let cell = |id: &str, subject: &str| Cell {
            id: id.to_owned(),
            subject: subject.to_owned(),
            workload: "ping".to_owned(),
            ..Cell::default()
        };
        let subject = |id: &str| PlannedSubject {
            id: id.to_owned(),
            ..PlannedSubject::default()
        };
        Plan {
            cells: vec![cell("a ping c=1", "a"), cell("b ping c=1", "b")],
            subjects: vec![subject("a"), subject("b")],
            workloads: vec![PlannedWorkload {
                name: "ping".to_owned(),
                ..PlannedWorkload::default()
            }],
            order: vec![vec![1, 0], vec![0, 1]],
            reference: Some("a".to_owned()),
            ..Plan::default()
        }
    }

    fn wrk() -> Wrk {
        Wrk {
            path: "/usr/bin/wrk".into(),
            version: "wrk 4".into(),
        }
    }

    #[test]
    fn the_cross_check_follows_the_first_block_and_is_of_the_reference() {
        let plan = plan();
        let stems: Vec<String> = tasks(&plan, Some(&wrk()), None)
            .unwrap()
            .iter()
            .map(Task::stem)
            .collect();
        assert_eq!(
            stems,
            [
                "b00-p00-b_ping_c_1",
                "b00-p01-a_ping_c_1",
                "b00-p02-a_ping_c_1-wrk",
                "b01-p00-a_ping_c_1",
                "b01-p01-b_ping_c_1"
            ]
        );
        assert_eq!(tasks(&plan, None, None).unwrap().len(), 4);
    }

    #[test]
    fn profiles_follow_all_blocks_and_are_as_many_as_the_machine_needs() {
        let denied = || std::io::Error::from_raw_os_error(13);
        let mut plan = plan();
        plan.blocks = 2;
        let may = Means::new(&|_| Ok(()), &|| Ok(7), None);
        // Only where the plan says so.
        assert_eq!(tasks(&plan, None, Some(&may)).unwrap().len(), 4);
        plan.profile = Some(crate::profile::planned());
        let stems = |means: &Means| -> Vec<String> {
            let all = tasks(&plan, None, Some(means)).unwrap();
            all.iter().skip(4).map(Task::stem).collect()
        };
        assert_eq!(
            stems(&may),
            ["b02-p00-a_ping_c_1-profile", "b02-p01-b_ping_c_1-profile"]
        );
        let by_strace = Means::new(&|_| Ok(()), &|| Err(denied()), Some("/bin/strace".into()));
        assert_eq!(
            stems(&by_strace),
            [
                "b02-p00-a_ping_c_1-profile",
                "b02-p01-a_ping_c_1-profile-strace",
                "b02-p02-b_ping_c_1-profile",
                "b02-p03-b_ping_c_1-profile-strace"
            ]
        );
    }

    #[test]
    fn a_plan_that_names_what_it_does_not_hold_is_refused() {
        let mut broken = plan();
        broken.order[0][0] = 7;
        assert!(tasks(&broken, None, None).is_err());
        let mut broken = plan();
        broken.cells[0].workload = "other".to_owned();
        let error = tasks(&broken, None, None).unwrap_err().to_string();
        assert!(
            error.contains("`a ping c=1` names workload `other`"),
            "{error}"
        );
    }

    /// A plan whose first cell has a database, a proxy and two instances.
    fn plan_with_services() -> Plan {
        let service = |id: &str, seconds: u64| PlannedSubject {
            id: id.to_owned(),
            ready: prony_record::ReadySign {
                timeout_ns: Nanos::from_secs(seconds).0,
                ..Default::default()
            },
            ..PlannedSubject::default()
        };
        let mut plan = plan();
        plan.backings = vec![service("redis", 7)];
        plan.fronts = vec![service("nginx", 11)];
        plan.subjects[0].ready.timeout_ns = Nanos::from_secs(3).0;
        plan.subjects[0].stop.timeout_ns = Nanos::from_secs(2).0;
        plan.cells[0].around = prony_record::Around {
            backings: vec!["redis".to_owned()],
            front: Some("nginx".to_owned()),
            instances: 2,
            ..Default::default()
        };
        plan
    }

    #[test]
    fn services_that_the_plan_does_not_hold_are_said_and_wrk_spares_them() {
        let plan = plan_with_services();
        let (backings, front) = services_of(&plan, &plan.cells[0]).unwrap();
        assert_eq!(
            (backings[0].id.as_str(), front.unwrap().id.as_str()),
            ("redis", "nginx")
        );
        assert_eq!(tasks(&plan, Some(&wrk()), None).unwrap().len(), 4);
        let mut broken = plan;
        broken.fronts.clear();
        let error = tasks(&broken, None, None).unwrap_err().to_string();
        assert!(error.contains("names front `nginx`"), "{error}");
    }

    #[test]
    fn every_process_has_its_time_before_a_trial_counts_as_hung() {
        let plan = plan_with_services();
        let order = |at: usize| {
            let (backings, front) = services_of(&plan, &plan.cells[at]).unwrap();
            TrialOrder {
                subject: plan.subjects[0].clone(),
                backings: backings.into_iter().cloned().collect(),
                front: front.cloned(),
                ..order_of(&plan.cells[at])
            }
        };
        // A subject alone: 3 s to start, 2 s to stop.
        let alone = TRIAL_SLACK + Nanos::from_secs(5);
        assert_eq!(deadline_of(&order(1)), alone);
        // A second instance, the database and the proxy.
        assert_eq!(deadline_of(&order(0)), alone + Nanos::from_secs(5 + 7 + 11));
        let mut asks = order(1);
        asks.workload.counter = Some(prony_record::PlannedCounter {
            ended_by: Some(prony_record::Ended::Killed),
            ..Default::default()
        });
        assert_eq!(deadline_of(&asks), alone + Nanos::from_secs(5));
        assert_eq!(end_of(&order(0)), Nanos::from_secs(2));
    }

    fn order_of(cell: &Cell) -> TrialOrder {
        TrialOrder {
            cell: cell.clone(),
            subject: PlannedSubject::default(),
            workload: PlannedWorkload::default(),
            settings: Vec::new(),
            peer: None,
            backings: Vec::new(),
            front: None,
            network: None,
            cores: prony_record::Cores::default(),
            warmup_ns: 0,
            duration_ns: 0,
            block: 0,
            position: 0,
            seed: 0,
            in_turns: false,
            check_only: false,
            generator: Generator::Prony,
            driver: String::new(),
            prony: PathBuf::new(),
            work_dir: PathBuf::new(),
            run_dir: PathBuf::new(),
            file_stem: String::new(),
        }
    }

    #[test]
    fn the_version_of_wrk() {
        let text = "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\nUsage: wrk";
        assert_eq!(wrk_version(text).as_deref(), Some("wrk debian/4.1.0-3+b2"));
        assert_eq!(wrk_version("work 1"), None);
    }

    /// What comes of a trial whose supervisor is a shell script, with so much time.
    fn result_of_script(name: &str, script: &str, time: Nanos) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("prony-{name}-{}", std::process::id()));
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut watch = Watch {
            supervisor: started(&path),
            interrupt: Interrupt::default(),
            deadline: clock::monotonic() + time,
            interrupted: false,
            phase: Phase::Measure,
        };
        let result = watch.result(Nanos::ZERO, &mut |_: Event<'_>| {});
        std::fs::remove_file(&path).unwrap();
        result.expect_err("a script reports no trial")
    }

    fn started(path: &Path) -> Supervisor {
        loop {
            match Supervisor::start(path, Wanted::default(), Order::Probe) {
                // Another test that forks at this moment holds the script open for writing.
                Err(SupervisorError::Start { source, .. })
                    if source.kind() == io::ErrorKind::ExecutableFileBusy => {}
                result => return result.unwrap(),
            }
        }
    }

    #[test]
    fn a_supervisor_that_hangs_is_ended_at_the_deadline() {
        let script = "while read line; do :; done";
        let reason = result_of_script("hangs", script, Nanos::ZERO);
        assert_eq!(reason, "the trial hung and was ended");
    }

    #[test]
    fn a_supervisor_that_reports_nothing_more_is_not_waited_for() {
        // It lives on after it has closed its output, until its input ends too. Were the
        // deadline waited for, however far it is, the reason would be the other one.
        let script = "exec cat >/dev/null";
        let reason = result_of_script("closes", script, Nanos::from_secs(30));
        let ended = "the supervisor ended without a result (exit status: 0)";
        assert_eq!(reason, ended);
    }

    #[test]
    fn only_failures_before_the_load_and_of_programs_are_hopeless() {
        let failed = |phase| Trial {
            outcome: Outcome::Failed {
                phase,
                reason: String::new(),
            },
            ..Trial::default()
        };
        let mut plan = plan();
        assert!(failed_early(&plan, &failed(Phase::Verify)));
        assert!(!failed_early(&plan, &failed(Phase::Measure)));
        assert!(!failed_early(&plan, &Trial::default()));
        plan.cells[0].count = Some(10);
        let mut of_program = failed(Phase::Measure);
        of_program.cell.clone_from(&plan.cells[0].id);
        assert!(failed_early(&plan, &of_program));
    }
}
