//! A trial of a server: a set of [`prony_runtime`] services on one event loop of one thread, that of the sampler.
//!
//! ```text
//! children <- sampling <- backings, ready <- instances, ready <- front, ready <- load
//!                                                          (an arrow: is required by)
//! ```
//!
//! Usually the subject is one instance without backing services or a front. Each service starts once
//! those that it requires run, and the trial moves from phase to phase as they start; at the
//! end, whatever ended it, they stop in reverse order. A process
//! that ends too early fails the current phase. Only for the edges of the window does the thread
//! sleep outside of the loop, so that the clocks are read on time.
//!
//! Where the workload has a counter, the number that the subject keeps is read before and
//! after the load, and once more when the subject was ended and started anew.
//!
//! Not for: programs ([`super::program`]), or starting the servers ([`super::participants`]).

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_record::{CounterReport, Ended, Histogram, Phase, PlannedCounter, Role, Source, Trial};
use prony_runtime::services::Definition;
use prony_wire::Method;

use super::context::{Halt, TrialContext};
use super::counter::{self, Expected, Resting};
use super::generator::{self, Driven, Load, Window};
use super::lifecycle::{self, Lifecycle, STUCK, Sampling, TrialCourse};
use super::participants::Participants;
use super::profiling;
use super::start::{Place, Places};
use crate::experiment::Spoken;
use crate::supervise::{Generator, TrialOrder, Turns};
use crate::verify::Verified;
use crate::{launch, sending, verify, walk};

/// How long before the window the memory marks are reset, and before its end the last sample is taken.
const SHORTLY: Nanos = Nanos::from_millis(10);
/// Clocks read later than this after an edge of the window are noted in the record.
const LATE: Nanos = Nanos::from_millis(1);
/// How long a counter may take to settle.
const COUNTER_TIMEOUT: Nanos = Nanos::from_secs(15);
/// Interval at which it is read.
const COUNTER_PAUSE: Nanos = Nanos::from_millis(25);
/// How long the end of a process is waited for where what it answered with has ended.
const END_GRACE: Nanos = Nanos::from_millis(200);

/// A trial of a server under way.
pub struct ServerTrial<'a> {
    pub(super) lifecycle: Lifecycle<'a>,
    pub(super) context: Rc<TrialContext>,
    pub(super) participants: Participants,
    /// Receives its turns, in a trial in turns.
    pub(super) turns: Turns,
    /// The load's result, where the window ended with it.
    driven: RefCell<Option<Result<Driven, Halt>>>,
    histogram: Option<Histogram>,
    counter: Option<PlannedCounter>,
}

impl<'a> ServerTrial<'a> {
    /// A trial that has not begun.
    pub fn new(lifecycle: Lifecycle<'a>, turns: Turns) -> ServerTrial<'a> {
        let context = lifecycle.context.clone();
        // wrk does not tell what was acknowledged before and after its window.
        let knows = context.order.generator == Generator::Prony;
        ServerTrial {
            counter: context.order.workload.counter.clone().filter(|_| knows),
            participants: Participants::new(&lifecycle),
            lifecycle,
            turns,
            context,
            driven: RefCell::default(),
            histogram: None,
        }
    }

    /// Checks the responses of every server that the load goes to; the record keeps the checks of the
    /// first, or of the first that fails.
    fn verify(&self, places: &Places) -> Result<(), Halt> {
        let order = &self.context.order;
        let several = places.entries().len() > 1;
        for (number, place) in places.entries().iter().enumerate() {
            let verified = verified(order, place, number).map_err(Halt::Failed)?;
            let checks = verified.checks;
            let failed = verify::failed_must(&checks);
            let names = [verify::REQUESTS, walk::STEPS];
            let extent = checks.iter().find(|check| names.contains(&&*check.name));
            if let Some(extent) = extent.filter(|of| of.passed && number == 0) {
                let detail = &extent.detail;
                self.context
                    .note(format!("checked before the load: {detail}"));
            }
            if number == 0 || failed.is_some() {
                self.context.trial.borrow_mut().verification = checks;
            }
            if let Some(Nanos(first)) = verified.first {
                let recorded = &mut self.context.trial.borrow_mut().first_answer_ns;
                *recorded = (*recorded).max(Some(first));
            }
            self.lifecycle.children.collect();
            self.participants.check_alive("its answers were checked")?;
            match failed {
                Some(failed) if several => {
                    return Err(Halt::Failed(format!("instance {number}: {failed}")));
                }
                Some(failed) => return Err(Halt::Failed(failed)),
                None => {}
            }
        }
        Ok(())
    }

    /// Leaves the servers alone as long as the workload says, and then times one request to each; the record has the slowest.
    async fn rest_and_time(&self, places: &Places) -> Result<(), Halt> {
        let order = &self.context.order;
        if order.workload.rest_ns == 0 {
            return Ok(());
        }
        let sleeping = self.context.handle.sleep(Nanos(order.workload.rest_ns));
        let living = self.participants.while_alive("its rest was over", sleeping);
        self.context.unless_interrupted(living).await??;
        for place in places.entries() {
            let sent = sending::from_workload(&order.workload, &place.authority, order.seed);
            let sent = sent.map_err(Halt::Failed)?;
            let took = verify::time_one(&subject_of(order, place, &sent), order.seed);
            let Nanos(took) = took.map_err(|why| {
                let rest = Nanos(order.workload.rest_ns);
                Halt::Failed(format!("no answer after a rest of {rest}: {why}"))
            })?;
            let recorded = &mut self.context.trial.borrow_mut().after_rest_ns;
            *recorded = (*recorded).max(Some(took));
        }
        Ok(())
    }

    pub(super) async fn start_load(&self, places: &Places) -> Result<(Rc<Load>, Window), Halt> {
        let Some((entry, further)) = places.entries().split_first() else {
            return Err(Halt::Failed("there is nothing to ask".to_owned()));
        };
        let spec = generator::spec(&self.context.order, entry, further).map_err(Halt::Failed)?;
        if !self.context.order.generator.is_own() && !further.is_empty() {
            let sentence = "wrk asks one address: the load went to the first instance only";
            self.context.note(sentence.to_owned());
        }
        let load = Load::new(self.context.clone(), self.lifecycle.children.clone(), spec);
        let definition = Definition::shared("load", load.clone())
            .requires::<Rc<Sampling>>(|_, _, _| {}, |_, _| {})
            .start_timeout(load.start_timeout())
            .stop_timeout(STUCK);
        let up = self
            .lifecycle
            .bring_up(self.lifecycle.after_last(definition));
        self.participants.while_alive("the window", up).await??;
        match load.window() {
            Some(window) => Ok((load, window)),
            None => Err(Halt::Failed("the generator has no window".to_owned())),
        }
    }

    async fn warm_up_and_measure(
        &mut self,
        window: Window,
        load: &Load,
    ) -> Result<Result<(), Halt>, Halt> {
        self.warm_up(window).await?;
        self.lifecycle.enter(Phase::Measure);
        match self.context.order.workload.requests_max {
            None => self.measure(window).await,
            Some(_) => self.measure_to_last(window, load).await,
        }
    }

    /// Waits until shortly before the window, and resets the memory marks.
    async fn warm_up(&self, window: Window) -> Result<(), Halt> {
        let sleeping = (self.context.handle).sleep_until(shortly_before(window.start));
        let living = self.participants.while_alive("the window", sleeping);
        self.context.unless_interrupted(living).await??;
        self.context.sampler.borrow_mut().reset_peaks();
        self.context.open_profile();
        Ok(())
    }

    /// Measures the window. The inner result is an error where the subject did not survive it: what
    /// was measured is kept either way.
    async fn measure(&mut self, window: Window) -> Result<Result<(), Halt>, Halt> {
        let sleeping = self.context.handle.sleep_until(shortly_before(window.end));
        let waiting = self.context.unless_interrupted(sleeping);
        let (watched, late, used) = self.pass_window(window, 0, waiting).await;
        let lived = self.end_window(watched.is_ok(), used);
        self.note_late(late);
        watched?;
        Ok(lived)
    }

    /// Whether the subject lived through the window, which `was_watched`; one that is to be killed is.
    fn end_window(&mut self, was_watched: bool, used: Nanos) -> Result<(), Halt> {
        let lived = self.participants.check_alive("the window ended");
        if was_watched && lived.is_ok() && self.is_ended_by(Ended::Killed) {
            // As early as its clocks allow, so that outstanding requests are not answered.
            self.participants.kill();
        }
        self.context.trial.borrow_mut().sampler_cpu_ns = Some(used.0);
        lived
    }

    /// Measures the window of a number of requests, which ends when the generator has told of the last of them.
    async fn measure_to_last(
        &mut self,
        window: Window,
        load: &Load,
    ) -> Result<Result<(), Halt>, Halt> {
        let told = async {
            let driven = self.context.unless_interrupted(load.result()).await?;
            self.driven.replace(Some(driven));
            Ok(())
        };
        // It is over as soon as it is told: there is no end to wait for, and none to be late at.
        let until_told = Window {
            end: window.start,
            ..window
        };
        let (watched, _, used) = self.pass_window(until_told, 0, told).await;
        let lived = self.end_window(watched.is_ok(), used);
        watched?;
        Ok(lived)
    }

    /// Reads all clocks at both edges of a window, of which `samples` were taken before; it is slept through by `waiting`,
    /// which ends shortly before it does. Yields how that ended, how late the clocks were read, and the CPU time of this process.
    pub(super) async fn pass_window(
        &self,
        window: Window,
        samples: u32,
        waiting: impl Future<Output = Result<(), Halt>>,
    ) -> (Result<(), Halt>, Nanos, Nanos) {
        launch::sleep_until(window.start);
        let open = self.lifecycle.open_window(samples);
        let start = open.start;
        let waited = waiting.await;
        self.context.sampler.borrow_mut().look();
        if waited.is_ok() {
            launch::sleep_until(window.end);
        }
        let (end, used) = self.lifecycle.close_window(open);
        let measured = window.end.since(window.start);
        let measured = measured.min(end.since(window.start));
        self.context.trial.borrow_mut().window_ns += measured.0;
        let late = start.since(window.start).max(end.since(window.end));
        (waited, late, used)
    }

    /// Notes in the record that clocks were read late.
    pub(super) fn note_late(&self, late: Nanos) {
        if late > LATE {
            let sentence = format!("the processes' clocks were read up to {late} late");
            self.context.note(sentence);
        }
    }

    pub(super) async fn drain(&mut self, load: &Load) -> Result<(), Halt> {
        let driven = match self.driven.take() {
            Some(driven) => driven,
            None => self.context.unless_interrupted(load.result()).await?,
        };
        let (report, histogram, search) = driven?;
        let mut trial = self.context.trial.borrow_mut();
        if self.context.order.generator.is_own() {
            trial.window_ns = report.window_ns;
        }
        trial.load = Some(report);
        trial.search = search;
        // Profiling distorts latencies, so a profile trial keeps none.
        self.histogram = histogram.filter(|_| self.context.order.generator == Generator::Prony);
        Ok(())
    }

    fn is_ended_by(&self, how: Ended) -> bool {
        let ended_by = self.counter.as_ref().and_then(|counter| counter.ended_by);
        ended_by == Some(how) && !matches!(self.context.order.subject.source, Source::Url { .. })
    }

    /// Reads the counter before the load and after the checks, which raise it too.
    async fn read_counter_before(&self, places: &Places) -> Result<(), Halt> {
        let Some(counter) = &self.counter else {
            return Ok(());
        };
        let before = self.read_counter(counter, places, None).await?;
        self.context.trial.borrow_mut().counter = Some(CounterReport {
            before,
            ..CounterReport::default()
        });
        Ok(())
    }

    /// Reads the counter after the load, and again after the subject was stopped and restarted.
    async fn read_counter_after(&mut self, places: &Places) -> Result<(), Halt> {
        let Some((counter, expected)) = self.note_acknowledged() else {
            return Ok(());
        };
        // The kernel's counters are those of the load.
        self.lifecycle.read_kernel_counters();
        let (stopped, killed) = (
            self.is_ended_by(Ended::Stopped),
            self.is_ended_by(Ended::Killed),
        );
        if !killed {
            let after = self.read_counter(&counter, places, Some(expected)).await?;
            self.note_counter(|report| report.after = Some(after));
        }
        if !(stopped || killed) {
            return Ok(());
        }
        self.context.sampler.borrow_mut().close();
        self.participants.stop(&self.lifecycle).await?;
        let places = places
            .anew(&self.context.trial.borrow())
            .map_err(Halt::io("there is no place to listen"))?;
        self.participants
            .start_anew(&self.lifecycle, &places)
            .await?;
        let kept = self.read_counter(&counter, &places, Some(expected)).await?;
        self.note_counter(|report| report.kept = Some(kept));
        Ok(())
    }

    /// Records what the load must have added, and returns the counter's expected range.
    fn note_acknowledged(&self) -> Option<(PlannedCounter, Expected)> {
        let counter = self.counter.clone()?;
        let mut trial = self.context.trial.borrow_mut();
        let counts = trial.load.as_ref()?.counts;
        let report = trial.counter.as_mut()?;
        let unanswered = counts.sent.saturating_sub(counts.acknowledged);
        report.acknowledged = counts.acknowledged.saturating_mul(counter.adds);
        report.unanswered = unanswered.saturating_mul(counter.adds);
        let least = report.before.saturating_add(report.acknowledged);
        let most = least.saturating_add(report.unanswered);
        Some((counter, Expected { least, most }))
    }

    fn note_counter(&self, note: impl FnOnce(&mut CounterReport)) {
        if let Some(report) = &mut self.context.trial.borrow_mut().counter {
            note(report);
        }
    }

    /// Reads the counter of the instances until it has settled.
    async fn read_counter(
        &self,
        counter: &PlannedCounter,
        places: &Places,
        expected: Option<Expected>,
    ) -> Result<u64, Halt> {
        let shared = !self.context.order.backings.is_empty();
        let mut resting = Resting::new(expected, shared);
        let deadline = clock::monotonic() + COUNTER_TIMEOUT;
        loop {
            self.lifecycle.children.collect();
            self.participants.check_alive("its number was read")?;
            let ask = |place| ask_number(counter, place);
            let readings: Result<Vec<u64>, Halt> = places.instances.iter().map(ask).collect();
            let readings = match readings {
                Ok(readings) => readings,
                Err(unread) => {
                    // What ends takes its connections with it first: its end says more than theirs.
                    let grace = self.context.handle.sleep(END_GRACE);
                    let living = self.participants.while_alive("its number was read", grace);
                    self.context.unless_interrupted(living).await??;
                    return Err(unread);
                }
            };
            let now = clock::monotonic();
            if let Some(number) = resting.add(now, &readings) {
                return Ok(number);
            }
            if now > deadline {
                let (path, unrest) = (&counter.path, resting.unrest());
                let reason = format!("the number at {path} after {COUNTER_TIMEOUT}: {unrest}");
                return Err(Halt::Failed(reason));
            }
            let pausing = self.context.handle.sleep(COUNTER_PAUSE);
            self.context.unless_interrupted(pausing).await?;
        }
    }
}

impl<'a> TrialCourse<'a> for ServerTrial<'a> {
    fn lifecycle(&mut self) -> &mut Lifecycle<'a> {
        &mut self.lifecycle
    }

    async fn carry_out(&mut self) -> Result<(), Halt> {
        self.lifecycle.prepare()?;
        let places = Places::find(
            &self.context.order,
            &self.lifecycle.network,
            &self.context.trial.borrow(),
        )
        .map_err(Halt::io("there is no place to listen"))?;
        self.lifecycle.enter(Phase::Start);
        self.lifecycle.watch_over().await?;
        self.participants.start(&self.lifecycle, &places).await?;
        self.lifecycle.enter(Phase::Ready);
        self.participants
            .wait_ready(&self.lifecycle, &places)
            .await?;
        self.lifecycle.enter(Phase::Verify);
        self.verify(&places)?;
        if self.context.order.check_only {
            return Ok(());
        }
        self.rest_and_time(&places).await?;
        self.read_counter_before(&places).await?;
        self.lifecycle.enter(Phase::WarmUp);
        if self.context.order.in_turns {
            return self.run_turns(&places).await;
        }
        let strace = profiling::attach(&self.context, &self.lifecycle.children).await?;
        let (load, window) = self.start_load(&places).await?;
        // A generator that fills its core would keep the clocks from being read in time.
        // An ordinary user may not be urgent; the record says when they were read late.
        let _ = launch::urgent(true);
        let lived = self.warm_up_and_measure(window, &load).await;
        let _ = launch::urgent(false);
        let lived = lived?;
        self.lifecycle
            .enter(match self.context.order.workload.find_max {
                Some(_) => Phase::Search,
                None => Phase::Drain,
            });
        let drained = self.drain(&load).await;
        if let Some(strace) = strace {
            profiling::detach(&self.context, &self.lifecycle.children, strace).await;
        }
        if let Err(failed) = lived {
            // What was measured until then is kept; the failure is that of the window.
            self.context.leave();
            self.context.blame(Phase::Measure);
            return Err(failed);
        }
        drained?;
        self.read_counter_after(&places).await
    }

    fn finish(self, trial: &mut Trial) -> Option<Histogram> {
        for participant in self.participants.all() {
            let Some(log) = participant.log.take() else {
                continue;
            };
            if participant.role == Role::Subject && trial.log_tail.is_empty() {
                trial.log_tail = log.tail();
            }
            lifecycle::close(log, &participant.title, trial);
        }
        lifecycle::keep_processes(&self.context, "", trial);
        self.histogram
    }
}

/// Checks the answers of one of the servers that the load goes to, by its number among them.
fn verified(order: &TrialOrder, place: &Place, number: usize) -> Result<Verified, String> {
    let source = order.workload.source.as_ref();
    if let Some(scenario) = source.and_then(|source| source.scenario.as_ref()) {
        let load = generator::spec(order, place, &[])?;
        let before = (number * scenario.flows.len()) as u64;
        let timeout = verify::answer_timeout(&order.workload);
        let checks = walk::walk(&load, scenario, before, timeout);
        return Ok(Verified::from(checks));
    }
    let sent = sending::from_workload(&order.workload, &place.authority, order.seed)?;
    Ok(verify::verify(&subject_of(order, place, &sent), order.seed))
}

fn subject_of<'a>(
    order: &'a TrialOrder,
    place: &'a Place,
    sent: &'a sending::SentSource,
) -> verify::Subject<'a> {
    verify::Subject {
        workload: &order.workload,
        sent,
        to: place.destination(),
        protocol: Spoken::from_cell(&order.cell).protocol,
    }
}

/// Requests the counter of one instance.
fn ask_number(counter: &PlannedCounter, place: &Place) -> Result<u64, Halt> {
    let page = place.request(&Method::Get, &counter.path);
    let number = page.and_then(|page| counter::number(page.status, &page.body));
    number.map_err(|why| {
        let (path, address) = (&counter.path, &place.authority);
        Halt::Failed(format!(
            "the number at {path} of {address} cannot be read: {why}"
        ))
    })
}

/// When what lasts until `moment` is woken: the rest of the way it is waited for outside of the loop.
pub(super) fn shortly_before(moment: Instant) -> Instant {
    Instant(moment.0.saturating_sub(SHORTLY.0))
}
