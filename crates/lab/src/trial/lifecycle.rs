//! The lifecycle of a trial: its phases, its services on one event loop of one thread on the
//! lab's cores (the generator's where it has none of its own), started in order and stopped in reverse, and cleanup of every
//! process that is left. One of the services samples the processes every 100 ms; those at the edges of the window are taken by
//! what measures, on time.
//!
//! Not for: what is measured ([`super::server`], [`super::program`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Config, DriverChoice, Handle, Task};
use prony_record::{
    Canary, CanaryPair, CoreUse, Histogram, Isolation, Outcome, Phase, Trial, Work,
};
use prony_runtime::services::{
    Context, Definition, Failure, Filter, Options, Reason, Service, ServiceError, ServiceId,
    Services,
};
use rustix::process::Signal;

use super::context::{Halt, TrialContext};
use super::log::{self, Log};
use super::process::{Children, Participant};
use super::profiling::{self, WholeRun};
use crate::network::{Network, PEER};
use crate::sample::machine;
use crate::sample::parse::CoreTimes;
use crate::supervise::{Report, TrialOrder};
use crate::{canary, launch};

/// Interval at which the processes are sampled.
const LOOK: Nanos = Nanos::from_millis(100);
/// In the window, one sample in this many reads memory: that costs ten times as much as the rest,
/// and is needed only for processes that end before the window does.
const MEMORY_ONE_IN: u32 = 10;
/// How long descendants of the subject may outlive it before they are recorded as left behind.
const GRACE: Nanos = Nanos::from_millis(500);
/// How long a killed process may take to end.
const KILL_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Slack beyond a service's own time-outs, after which it counts as stuck.
pub const STUCK: Nanos = Nanos::from_secs(30);
/// The property of a service that holds its place in the start order.
const STEP: &str = "step";
/// Interval at which remaining processes are looked for.
const PAUSE: Nanos = Nanos::from_millis(2);

/// The event loop of a trial: a few timers and descriptors, for which io_uring has no advantage.
pub fn config() -> Config {
    Config {
        driver: DriverChoice::Epoll,
        recv_buffers: 1,
        ..Config::default()
    }
}

/// The record of a trial whose event loop could not run.
pub fn without_loop(
    order: &TrialOrder,
    isolation: Isolation,
    error: &dyn std::fmt::Display,
) -> Trial {
    let reason = format!("the event loop of the trial cannot run: {error}");
    let phase = Phase::Prepare;
    Trial {
        isolation,
        outcome: Outcome::Failed { phase, reason },
        ..order.unfinished()
    }
}

/// A trial of one kind under way.
pub trait TrialCourse<'a> {
    /// What the kinds have in common.
    fn lifecycle(&mut self) -> &mut Lifecycle<'a>;

    /// Carries out all phases but the last.
    async fn carry_out(&mut self) -> Result<(), Halt>;

    /// Adds to the record what only this kind has. Yields the latencies of completed requests.
    fn finish(self, trial: &mut Trial) -> Option<Histogram>;
}

/// Starts and stops the services of a trial, and moves it from phase to phase.
pub struct Lifecycle<'a> {
    /// The state that its services share.
    pub context: Rc<TrialContext>,
    /// The services.
    pub services: Services,
    /// The processes.
    pub children: Rc<Children>,
    /// What is sampled beside the processes.
    pub watched: Rc<Watched>,
    began: &'a mut dyn FnMut(Report),
    canary_before: Option<Canary>,
    counters_before: Option<BTreeMap<String, u64>>,
    /// The network on whose far side the servers are, or a client's peer.
    pub network: Rc<Network>,
    /// Number of services added in start order.
    steps: Cell<i64>,
    /// The service that the next one requires.
    last: Cell<Option<i64>>,
}

/// A place in the start order of services.
#[derive(Clone, Copy, Debug)]
pub struct Mark(Option<i64>);

impl<'a> Lifecycle<'a> {
    /// The lifecycle of a trial that has not begun. `began` is called at each phase.
    pub fn new(
        context: Rc<TrialContext>,
        handle: &Handle,
        network: Network,
        began: &'a mut dyn FnMut(Report),
    ) -> Lifecycle<'a> {
        Lifecycle {
            services: Services::new(handle, Options::default()),
            children: Children::new(context.clone()),
            watched: Rc::default(),
            context,
            began,
            canary_before: None,
            counters_before: None,
            network: Rc::new(network),
            steps: Cell::new(0),
            last: Cell::new(None),
        }
    }

    /// The network counters of both sides, those of servers added up: over loopback, where both are on one, the kernel does
    /// that.
    fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = machine::network_counters();
        let is_server = self.context.order.workload.work() == Work::Server;
        for (name, value) in self.network.peer_counters() {
            let own = name.strip_prefix(PEER).filter(|_| is_server);
            *counters.entry(own.unwrap_or(&name).to_owned()).or_default() += value;
        }
        counters
    }

    /// Runs the first phase: makes the folder, pins to the sampler's cores, runs the canary, reads the network counters.
    pub fn prepare(&mut self) -> Result<(), Halt> {
        (self.began)(Report::Phase {
            phase: Phase::Prepare,
        });
        let context = self.context.clone();
        let order = &context.order;
        std::fs::create_dir_all(&order.work_dir)
            .map_err(Halt::io("the trial's folder cannot be made"))?;
        let own = order.cores.of_sampler();
        if !own.is_empty() {
            launch::pin(own).map_err(Halt::io("the sampler's cores cannot be had"))?;
        }
        context.trial.borrow_mut().isolation.pinned = !order.cores.subject.is_empty();
        self.canary_before = Some(canary::run(&order.cores.subject));
        if !matches!(order.workload.work(), Work::Program(_)) {
            self.counters_before = Some(self.counters());
        }
        Ok(())
    }

    /// Begins the next phase and reports it.
    pub fn enter(&mut self, phase: Phase) {
        self.context.enter(phase);
        (self.began)(Report::Phase { phase });
    }

    /// Sends a report to the run.
    pub fn report(&mut self, report: Report) {
        (self.began)(report);
    }

    /// Adds a service and waits until it runs. Errors: why it does not.
    pub async fn bring_up<S: Service>(&self, definition: Definition<S>) -> Result<ServiceId, Halt> {
        let added = self.services.add(definition);
        let id = added.map_err(|error| Halt::Failed(error.to_string()))?;
        let started = self.context.unless_interrupted(self.services.start(id));
        started.await?.map_err(|error| self.halt(id, &error))?;
        Ok(id)
    }

    fn halt(&self, id: ServiceId, error: &ServiceError) -> Halt {
        match self.services.reason(id) {
            Some(Reason::StartFailed(why)) => Halt::Failed(why),
            _ => Halt::Failed(error.to_string()),
        }
    }

    /// Starts the services that every process requires: children and sampling.
    pub async fn watch_over(&self) -> Result<(), Halt> {
        let children = Definition::shared("children", self.children.clone())
            .provides::<Rc<Children>>(|children| children)
            .stop_timeout(STUCK);
        self.bring_up(children).await?;
        let sampling = self
            .sampling(true)
            .requires::<Rc<Children>>(|_, _, _| {}, |_, _| {});
        self.bring_up(sampling).await.map(drop)
    }

    /// Starts the service that bounds logs and drains a profile, and leaves the processes alone.
    pub async fn watch_files(&self) -> Result<(), Halt> {
        self.bring_up(self.sampling(false)).await.map(drop)
    }

    fn sampling(&self, processes: bool) -> Definition<Sampling> {
        let sampling = Sampling {
            context: self.context.clone(),
            children: self.children.clone(),
            watched: self.watched.clone(),
            processes,
            task: RefCell::default(),
        };
        Definition::shared("sampling", Rc::new(sampling))
            .provides::<Rc<Sampling>>(|sampling| sampling)
    }

    /// Reads the clocks of processes and cores at the start of a window, of which `samples` were taken before.
    pub fn open_window(&self, samples: u32) -> OpenWindow {
        let (start, own) = (clock::monotonic(), clock::process_cpu());
        self.context.sampler.borrow_mut().begin();
        self.context.begin_profile();
        self.watched.in_window.set(Some(samples));
        OpenWindow {
            start,
            own,
            cores: machine::core_times(),
        }
    }

    /// Reads them at its end, and adds what was used in it to the record. Yields the time of the reading, and the CPU time that
    /// this process used meanwhile.
    pub fn close_window(&self, window: OpenWindow) -> (Instant, Nanos) {
        self.watched.in_window.set(None);
        let end = clock::monotonic();
        self.context.sampler.borrow_mut().end();
        self.context.end_profile();
        self.children.collect();
        let after = machine::core_times();
        let used = machine::core_use(&window.cores, &after, &self.context.order.cores);
        let mut trial = self.context.trial.borrow_mut();
        add_up(&mut trial.cores, used);
        trial.sampled_ns += end.since(window.start).0;
        (
            end,
            Nanos(clock::process_cpu().0.saturating_sub(window.own.0)),
        )
    }

    /// Starts a server, which will be stopped before everything started so far.
    pub async fn start(&self, participant: &Rc<Participant>) -> Result<ServiceId, Halt> {
        self.watched.logs.borrow_mut().push(participant.log.clone());
        let number = self.steps.get() + 1;
        self.steps.set(number);
        let definition = Definition::shared(participant.title.clone(), participant.clone())
            .requires::<Rc<Children>>(|_, _, _| {}, |_, _| {})
            .requires::<Rc<Sampling>>(|_, _, _| {}, |_, _| {})
            .provides::<Rc<Participant>>(|participant| participant)
            .stop_timeout(participant.stop_signal.timeout + STUCK);
        let definition = self.after_last(definition).property(STEP, number);
        let id = self.bring_up(definition).await?;
        self.last.set(Some(number));
        Ok(id)
    }

    /// Makes `definition` require the last service in order.
    pub fn after_last<S: Service>(&self, definition: Definition<S>) -> Definition<S> {
        match self.last.get() {
            None => definition,
            Some(last) => definition
                .requires::<Rc<Participant>>(|_, _, _| {}, |_, _| {})
                .filter::<Rc<Participant>>(Filter::equal(STEP, last)),
        }
    }

    /// Makes services started from now on follow the service that was last at `mark`.
    pub fn follow(&self, mark: Mark) {
        self.last.set(mark.0);
    }

    /// The last service in order.
    pub fn mark(&self) -> Mark {
        Mark(self.last.get())
    }

    /// Stops all services in reverse order, then kills whatever is left.
    pub async fn stop(&mut self) {
        self.context.stop();
        self.read_kernel_counters();
        self.enter(Phase::Stop);
        self.services.stop_all().await;
        self.clear(&[]).await;
        // Only now can no process of the trial run on the canary's core.
        self.run_canary_again();
        self.context.leave();
    }

    /// Reads the network counters for the last time; later calls change nothing.
    pub fn read_kernel_counters(&mut self) {
        let Some(before) = self.counters_before.take() else {
            return;
        };
        let after = self.counters();
        let mut trial = self.context.trial.borrow_mut();
        let own = trial.isolation.network_namespace;
        trial.kernel = machine::kernel_counters(own, before, after);
    }

    /// Runs the canary again, where a window was measured: nothing else depends on the machine's speed.
    fn run_canary_again(&mut self) {
        let mut trial = self.context.trial.borrow_mut();
        if let (Some(before), true) = (self.canary_before, trial.window_ns > 0) {
            let after = canary::run(&self.context.order.cores.subject);
            trial.canary = Some(CanaryPair { before, after });
        }
    }

    /// Kills whatever is left of the trial except `kept` and their descendants. What is alive after a grace period is recorded.
    pub async fn clear(&self, spared: &[u32]) {
        let grace = clock::monotonic() + GRACE;
        let mut is_named = false;
        loop {
            self.children.collect();
            let left = left(spared);
            if left.is_empty() {
                return;
            }
            let now = clock::monotonic();
            if now > grace + KILL_TIMEOUT {
                return self
                    .context
                    .note("a process could not be killed".to_owned());
            }
            if now > grace {
                if !std::mem::replace(&mut is_named, true) {
                    let mut sampler = self.context.sampler.borrow_mut();
                    sampler.look();
                    let names = left.iter().map(|&pid| sampler.name_of(pid));
                    self.context.trial.borrow_mut().left_behind.extend(names);
                }
                for pid in left {
                    launch::signal(pid, Signal::KILL);
                }
            }
            self.context.handle.sleep(PAUSE).await;
        }
    }

    /// The record without its processes. `end`: the result of all phases but the last.
    pub fn finish(&self, end: Result<(), Halt>, failed_in: Phase) -> Trial {
        let mut trial = self.context.trial.take();
        trial.outcome = match end {
            Ok(()) => Outcome::Measured,
            Err(Halt::Interrupted) => Outcome::Interrupted,
            Err(Halt::Failed(reason)) => Outcome::Failed {
                phase: failed_in,
                reason,
            },
        };
        trial
    }
}

/// The descendants of this process except `kept` and their descendants.
fn left(spared: &[u32]) -> Vec<u32> {
    let mut left = launch::descendants(std::process::id());
    let spared: Vec<u32> = spared.iter().copied().flat_map(launch::family).collect();
    left.retain(|pid| !spared.contains(pid));
    left
}

/// Closes the log of `who`, and records that it was cut if it was.
pub fn close(log: log::Log, who: &str, trial: &mut Trial) {
    if log.was_cut() {
        let cut = format!(
            "the {who}'s log passed {} MiB and was emptied",
            log::LOG_BYTES_MAX >> 20
        );
        trial.notes.push(cut);
    }
    log.close();
}

/// The clocks at the start of a window.
pub struct OpenWindow {
    /// When they were read.
    pub start: Instant,
    /// CPU time of this process.
    own: Nanos,
    cores: BTreeMap<u32, CoreTimes>,
}

/// Adds the use of each core in another window.
fn add_up(all: &mut Vec<CoreUse>, more: Vec<CoreUse>) {
    for one in more {
        match all.iter_mut().find(|sum| sum.core == one.core) {
            None => all.push(one),
            Some(sum) => {
                sum.busy_ns += one.busy_ns;
                sum.steal_ns += one.steal_ns;
                let both = sum.ksoftirqd_ns.zip(one.ksoftirqd_ns);
                sum.ksoftirqd_ns = both.map(|(a, b)| a + b);
            }
        }
    }
}

/// Puts the processes that were followed into the record; `of` says in a note of whom those are that were too many.
pub fn keep_processes(context: &TrialContext, of: &str, trial: &mut Trial) {
    let sampler = context.sampler.take();
    if sampler.is_full() {
        let full = format!("not all processes and threads{of} were followed: there were too many");
        trial.notes.push(full);
    }
    if let Some(profiler) = context.profiler.take() {
        profiling::keep(profiler, &sampler, context, trial);
    }
    trial.processes = sampler.records();
}

/// What is sampled beside the processes.
#[derive(Default)]
pub struct Watched {
    /// Logs, whose size is bounded.
    pub logs: RefCell<Vec<Rc<RefCell<Option<Log>>>>>,
    /// Samples since the start of the window; `None` outside of it.
    pub in_window: Cell<Option<u32>>,
    /// The profile of a client.
    pub run_sample: RefCell<Option<WholeRun>>,
}

/// Samples the processes.
pub struct Sampling {
    context: Rc<TrialContext>,
    children: Rc<Children>,
    watched: Rc<Watched>,
    /// Whether it looks at the processes.
    processes: bool,
    task: RefCell<Option<Task<()>>>,
}

impl Service for Sampling {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let (context, children) = (self.context.clone(), self.children.clone());
        let (watched, processes) = (self.watched.clone(), self.processes);
        let looking = self.context.handle.spawn(async move {
            loop {
                context.handle.sleep(LOOK).await;
                context.awake.wait().await;
                children.collect();
                look(&context, &watched, processes);
            }
        });
        *self.task.borrow_mut() = Some(looking);
        Ok(())
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        let task = self.task.take();
        drop(task);
        Ok(())
    }
}

fn look(context: &TrialContext, watched: &Watched, processes: bool) {
    let mut sampler = context.sampler.borrow_mut();
    if processes {
        sampler.look();
    }
    if let Some(looks) = watched.in_window.get() {
        if looks % MEMORY_ONE_IN == 0 {
            sampler.note_memory();
        }
        watched.in_window.set(Some(looks + 1));
        if let Some(profiler) = &mut *context.profiler.borrow_mut() {
            profiler.drain();
        }
        if let Some(run_sample) = &mut *watched.run_sample.borrow_mut() {
            run_sample.look();
        }
    }
    for log in watched.logs.borrow().iter() {
        if let Some(log) = &mut *log.borrow_mut() {
            log.bound();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_core_did_in_each_window_is_added_up() {
        let did = |core, busy_ns, ksoftirqd_ns| CoreUse {
            core,
            busy_ns,
            steal_ns: busy_ns / 10,
            ksoftirqd_ns,
            ..CoreUse::default()
        };
        let mut all = Vec::new();
        add_up(&mut all, vec![did(0, 10, Some(1)), did(1, 20, None)]);
        add_up(&mut all, vec![did(1, 30, None), did(0, 5, Some(2))]);
        let of = |core: &CoreUse| (core.core, core.busy_ns, core.steal_ns, core.ksoftirqd_ns);
        let sums: Vec<_> = all.iter().map(of).collect();
        assert_eq!(sums, [(0, 15, 1, Some(3)), (1, 50, 5, None)]);
    }
}
