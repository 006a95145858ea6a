//! A trial of a client: its peer is started and its counters are read, the client runs to its end, and the counters
//! are read again.
//!
//! ```text
//! children <- sampling <- peer <- ready <- client        (an arrow: is required by)
//! ```
//!
//! The peer is a server as in any trial, on the generator's cores; the client runs as a
//! program does, under a parent that waits, on the subject's. Both sides' counts are
//! recorded, whether they agree or not: that is judged from the record.
//!
//! Not for: what the lines mean ([`crate::printed`]), or networks ([`crate::network`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::Handle;
use prony_record::{
    CheckLevel, CheckResult, ClientReport, CountsSign, DOWNLOADS, Exit, Isolation, Output, Phase,
    PlannedClient, ProgramLine, REQUESTS, Role, Trial, layout,
};
use prony_runtime::services::Definition;
use prony_wire::Method;
use rustix::process::Signal;

use super::context::{Halt, POLL_MAX, TrialContext, in_words};
use super::lifecycle::{self, Lifecycle, STUCK};
use super::process::{Participant, StopSignal};
use super::profiling::WholeRun;
use super::program;
use super::runner::{Runner, translate};
use super::start::{self, Place, Resolved};
use crate::counts::{Patterns, Readings};
use crate::experiment::THREADS;
use crate::launch;
use crate::network::Network;
use crate::plan::client::seconds;
use crate::printed::{self, AskedClient};
use crate::sample::machine;
use crate::sample::parse::CoreTimes;
use crate::supervise::{Interrupt, Report, TrialOrder};

/// How long the peer's counters may take to settle after the client has ended.
const SETTLE: Nanos = Nanos::from_secs(5);
/// First interval at which they are read; it doubles each time.
const PAUSE_MIN: Nanos = Nanos::from_millis(1);
/// Bytes of a tool's own output that a record keeps.
const SAID_BYTES_MAX: usize = 16 << 10;

/// Runs a trial to its end. `began` is called at each phase.
pub fn run(
    order: &TrialOrder,
    asked: &PlannedClient,
    network: Network,
    isolation: Isolation,
    interrupt: &Interrupt,
    began: &mut dyn FnMut(Report),
) -> Trial {
    let ran = prony_engine::run(&lifecycle::config(), |handle| async move {
        let context = TrialContext::new(order.clone(), isolation, interrupt, handle.clone());
        let mut running = Running::new(context, asked, network, &handle, began);
        let end = running.until_read().await;
        let failed_in = running.context.phase();
        running.peer_counters.1 = running.peer.network.peer_counters();
        running.lifecycle.stop().await;
        running.finish(end, failed_in)
    });
    ran.unwrap_or_else(|error| lifecycle::without_loop(order, isolation, &error))
}

/// Threads that the client is told to use.
fn threads(order: &TrialOrder, asked: &PlannedClient) -> u32 {
    let setting = order.cell.settings.get(THREADS);
    let threads = setting.and_then(|value| value.parse().ok());
    threads.unwrap_or(asked.threads).max(1)
}

struct Running<'a> {
    lifecycle: Lifecycle<'a>,
    context: Rc<TrialContext>,
    asked: &'a PlannedClient,
    threads: u32,
    peer: Rc<Participant>,
    runner: Option<Rc<Runner>>,
    translation: Resolved,
    readings: Readings,
    /// The kernel's counters of the peer's side of the network, before and after.
    peer_counters: (BTreeMap<String, u64>, BTreeMap<String, u64>),
    report: ClientReport,
    line: Option<ProgramLine>,
}

impl<'a> Running<'a> {
    fn new(
        context: Rc<TrialContext>,
        asked: &'a PlannedClient,
        network: Network,
        handle: &Handle,
        began: &'a mut dyn FnMut(Report),
    ) -> Running<'a> {
        let order = &context.order;
        let peer = order.peer.clone().unwrap_or_default();
        let own = peer.counts.as_ref().map_or(0, |sign| sign.own_requests);
        let (words, counters) = (network.words().to_owned(), network.peer_counters());
        let participant = Participant {
            role: Role::Peer,
            title: "peer".to_owned(),
            resolved: Resolved::default(),
            cores: order.cores.generator.clone(),
            stop_signal: StopSignal {
                signal: launch::signal_named(&peer.stop.signal).unwrap_or(Signal::TERM),
                timeout: Nanos(peer.stop.timeout_ns),
            },
            log_name: ".peer".to_owned(),
            output: Output::File,
            reader: RefCell::default(),
            network: Rc::new(network),
            log: Rc::default(),
            child: RefCell::default(),
            started: Cell::default(),
        };
        Running {
            peer: Rc::new(participant),
            threads: threads(order, asked),
            asked,
            runner: None,
            translation: Resolved::default(),
            readings: Readings::new(own),
            peer_counters: (counters, BTreeMap::new()),
            report: ClientReport {
                network: words,
                ..ClientReport::default()
            },
            line: None,
            lifecycle: Lifecycle::new(context.clone(), handle, began),
            context,
        }
    }

    /// Runs all phases but the last.
    async fn until_read(&mut self) -> Result<(), Halt> {
        self.lifecycle.prepare()?;
        let place = self.set_up()?;
        self.lifecycle.enter(Phase::Start);
        self.lifecycle.watch_over().await?;
        self.lifecycle.start(&self.peer).await?;
        self.lifecycle.enter(Phase::Ready);
        let peer = self.context.order.peer.clone().unwrap_or_default();
        self.lifecycle
            .wait_ready(&self.peer, &peer.ready, &place)
            .await?;
        self.lifecycle.enter(Phase::Verify);
        let page = self.look_at_page(&place);
        self.check("page", page)?;
        self.count(&place).await?;
        self.readings.start();
        self.lifecycle.enter(Phase::Measure);
        self.measure().await?;
        self.lifecycle.enter(Phase::Drain);
        self.count(&place).await?;
        let source = format!("GET {} of {}", self.sign()?.path, peer.name);
        self.report.peer = self.readings.counted(&source);
        let read = self.read().await;
        if let Err(Halt::Interrupted) = read {
            return Err(Halt::Interrupted);
        }
        let read = read.map_err(|halt| halt.to_string());
        self.check("output", read)
    }

    /// Resolves the network, the commands of peer and client, and the client's files.
    fn set_up(&mut self) -> Result<Place, Halt> {
        let order = &self.context.order;
        let lacks = |what: &str| Halt::Failed(format!("the trial has no {what}"));
        let peer = order.peer.as_ref().ok_or_else(|| lacks("peer"))?;
        let place = Place::of_peer(&self.peer.network, &self.context.trial.borrow())
            .map_err(Halt::io("there is no place to listen"))?;
        let (client, translation) = start::resolve_client(order, self.asked, self.threads, &place);
        if client.command.is_empty() {
            return Err(lacks("command that runs the subject as a client"));
        }
        if let Some(participant) = Rc::get_mut(&mut self.peer) {
            participant.resolved = start::resolve_peer(order, peer, self.asked, &place);
        }
        self.translation = translation;
        let output = self.file(".output.log");
        File::create(&output).map_err(Halt::io("a log cannot be written"))?;
        let log = Rc::new(RefCell::new(Some(self.context.log("")?)));
        self.lifecycle.watched.logs.borrow_mut().push(log.clone());
        let runner = Runner::new(self.context.clone(), client, output, self.file(".log"), log);
        self.runner = Some(runner);
        Ok(place)
    }

    fn file(&self, ending: &str) -> PathBuf {
        let name = format!("{}{ending}", self.context.order.file_stem);
        self.context.order.run_dir.join(layout::LOGS).join(name)
    }

    fn runner(&self) -> Result<Rc<Runner>, Halt> {
        let lacking = || Halt::Failed("there is no client to run".to_owned());
        self.runner.clone().ok_or_else(lacking)
    }

    /// Records a check that must pass. Errors: it did not.
    fn check(&self, name: &str, result: Result<(), String>) -> Result<(), Halt> {
        self.context
            .trial
            .borrow_mut()
            .verification
            .push(CheckResult {
                name: name.to_owned(),
                level: CheckLevel::Must,
                passed: result.is_ok(),
                detail: result.clone().err().unwrap_or_default(),
            });
        result.map_err(Halt::Failed)
    }

    /// Requests the page once, as the clients will; of a payload only its head.
    fn look_at_page(&mut self, place: &Place) -> Result<(), String> {
        let path = &self.asked.path;
        let downloads = self.asked.work == DOWNLOADS;
        let method = if downloads { Method::Head } else { Method::Get };
        let mut page = place.request(&method, path)?;
        if downloads && page.content_length.is_none() {
            page = place.request(&Method::Get, path)?;
        }
        self.report.page_status = page.status;
        self.report.page_head_bytes = page.head_bytes;
        // Of a HEAD, those that it says a GET has.
        self.report.page_body_bytes = match page.content_length {
            Some(bytes) if downloads => bytes,
            _ => page.body_bytes,
        };
        if page.status != 200 {
            let status = page.status;
            return Err(format!("the peer answers `{path}` with status {status}"));
        }
        let (came, asked) = (self.report.page_body_bytes, self.asked.payload_bytes);
        if downloads && came != asked {
            return Err(format!(
                "the peer serves {came} bytes at `{path}`, not {asked}"
            ));
        }
        Ok(())
    }

    fn sign(&self) -> Result<CountsSign, Halt> {
        let peer = self.context.order.peer.as_ref();
        let sign = peer.and_then(|peer| peer.counts.clone());
        sign.ok_or_else(|| Halt::Failed("the peer does not say what it counts".to_owned()))
    }

    /// Reads the peer's counters until only the readings themselves change them.
    async fn count(&mut self, place: &Place) -> Result<(), Halt> {
        let sign = self.sign()?;
        let patterns = Patterns::new(&sign).map_err(Halt::Failed)?;
        // A request just before a reading may be missing from it for so long.
        let stale = Nanos(sign.refresh_ns + sign.refresh_ns / 5);
        let deadline = clock::monotonic() + SETTLE + stale * 4;
        let mut pause = PAUSE_MIN;
        loop {
            let waiting = self.context.handle.sleep(stale);
            self.context.unless_interrupted(waiting).await?;
            self.lifecycle.children.collect();
            self.peer.lives("its counts were read")?;
            let page = place.request(&Method::Get, &sign.path);
            let reading = page
                .and_then(|page| patterns.read(&page.body))
                .map_err(|why| {
                    Halt::Failed(format!("the peer's counts at {}: {why}", sign.path))
                })?;
            if self.readings.add(reading) {
                return Ok(());
            }
            if clock::monotonic() > deadline {
                let reason = format!("the peer's counts did not come to rest within {SETTLE}");
                return Err(Halt::Failed(reason));
            }
            let pausing = self.context.handle.sleep(pause);
            self.context.unless_interrupted(pausing).await?;
            pause = (pause * 2).min(POLL_MAX);
        }
    }

    /// How long the client may run.
    fn timeout(&self) -> Nanos {
        let own = match self.asked.work == REQUESTS {
            true => Nanos::from_secs(seconds(Nanos(self.context.order.duration_ns))),
            false => Nanos::ZERO,
        };
        own + Nanos(self.context.order.workload.timeout_ns)
    }

    /// Starts the client and waits for its end.
    async fn measure(&mut self) -> Result<(), Halt> {
        let runner = self.runner()?;
        let cores = machine::core_times();
        let (start, own) = (clock::monotonic(), clock::process_cpu());
        {
            let mut sampler = self.context.sampler.borrow_mut();
            sampler.reset_peaks();
            sampler.begin();
        }
        let rule = &self.context.order.subject.stop;
        let client = Definition::shared("client", runner.clone())
            .stop_timeout(Nanos(rule.timeout_ns) + STUCK);
        self.lifecycle.up(self.lifecycle.after_last(client)).await?;
        if let Some(pid) = runner.pid() {
            let order = &self.context.order;
            let whole = WholeRun::begin(order, pid, &order.cores.subject);
            *self.lifecycle.watched.whole.borrow_mut() = whole;
        }
        self.lifecycle.watched.in_window.set(Some(0));
        let timeout = self.timeout();
        let late = || runner.with_last_line(format!("it had not ended after {timeout}"));
        let ended = self.context.within(timeout, runner.ended(), late);
        let living = self.peer.while_alive("the client ended", ended);
        let waited = self.context.unless_interrupted(living).await;
        self.lifecycle.watched.in_window.set(None);
        self.note_window(start, &cores);
        let used = clock::process_cpu().0.saturating_sub(own.0);
        self.context.trial.borrow_mut().sampler_cpu_ns = Some(used);
        waited???;
        self.note_end(&runner)?;
        match runner.exit() {
            Some(Exit::Code { code: 0 }) | None => Ok(()),
            Some(exit) => {
                let reason = format!("it {}", in_words(&exit));
                Err(Halt::Failed(runner.with_last_line(reason)))
            }
        }
    }

    /// Ends the sampling of the peer, and records the use of cores while the client ran.
    fn note_window(&self, start: Instant, cores: &BTreeMap<u32, CoreTimes>) {
        let mut sampler = self.context.sampler.borrow_mut();
        sampler.look();
        sampler.end();
        let order = &self.context.order;
        let mut used = machine::core_use(cores, &machine::core_times(), &order.cores);
        for core in used
            .iter_mut()
            .filter(|core| core.role == Some(Role::Generator))
        {
            core.role = Some(Role::Peer);
        }
        let mut trial = self.context.trial.borrow_mut();
        trial.cores = used;
        trial.sampled_ns = clock::monotonic().since(start).0;
    }

    /// Records the client's resource usage at its exit.
    fn note_end(&self, runner: &Runner) -> Result<(), Halt> {
        self.lifecycle.children.collect();
        self.peer.lives("the client ended")?;
        if let Some(usage) = runner.usage() {
            let mut trial = self.context.trial.borrow_mut();
            trial.window_ns = usage.wall_ns;
            trial.program = Some(usage);
        }
        Ok(())
    }

    /// Reads what it printed, translated where that is needed.
    async fn read(&mut self) -> Result<(), Halt> {
        let runner = self.runner()?;
        program::all_preloaded(&runner.errors())?;
        let unreadable = || Halt::io("its output cannot be read");
        let mut text = program::read(runner.output()).map_err(unreadable())?;
        if !self.translation.command.is_empty() {
            self.report.said = start_of(&text, SAID_BYTES_MAX);
            let output = self.file(".line.log");
            let (context, children) = (&self.context, &self.lifecycle.children);
            translate(
                context,
                children,
                &self.translation,
                runner.output(),
                &output,
            )
            .await?;
            text = program::read(&output).map_err(unreadable())?;
            // Its one line is part of the record.
            let _ = std::fs::remove_file(&output);
        }
        let subject = &self.context.order.subject;
        let mut texts = subject.client.iter().chain(subject.client_env.values());
        let asked = AskedClient {
            told_threads: texts.any(|text| text.contains("{threads}")),
            work: &self.asked.work,
            connections: self.context.order.cell.connections,
            threads: self.threads,
            body_bytes: self.report.page_body_bytes,
            wall_ns: runner.usage().map_or(0, |usage| usage.wall_ns),
        };
        let line = printed::read_client(&text, &asked).map_err(Halt::Failed)?;
        self.line = Some(line);
        Ok(())
    }

    fn finish(mut self, end: Result<(), Halt>, failed_in: Phase) -> Trial {
        let mut trial = self.lifecycle.finish(end, failed_in);
        if let Some(report) = &mut trial.program {
            report.lines.extend(self.line.take());
        }
        trial.client = Some(self.report);
        if let Some(whole) = self.lifecycle.watched.whole.take() {
            whole.keep(&self.context.order, &mut trial);
        }
        let (before, after) = self.peer_counters;
        let theirs = machine::kernel_counters(true, before, after);
        trial.kernel.before.extend(theirs.before);
        trial.kernel.after.extend(theirs.after);
        let sampler = self.context.sampler.take();
        if sampler.is_full() {
            let full =
                "not all processes and threads of the peer were followed: there were too many";
            trial.notes.push(full.to_owned());
        }
        // The client is recorded by what the kernel says of it at its end, with all that it
        // waited for; its parent is Prony's own.
        let mut processes = sampler.records();
        processes.retain(|process| process.role == Role::Peer);
        if let Some(runner) = self.runner {
            processes.extend(runner.record());
            trial.log_tail = runner.tail();
            runner.close(&mut trial);
        }
        processes.sort_by_key(|process| (process.role, process.pid));
        trial.processes = processes;
        if let Some(log) = self.peer.log.take() {
            lifecycle::close(log, "peer", &mut trial);
        }
        trial
    }
}

/// The first `bytes_max` bytes of a text, at the most, without a cut character.
fn start_of(text: &str, bytes_max: usize) -> String {
    let end = (0..=bytes_max.min(text.len())).rfind(|&at| text.is_char_boundary(at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_text_has_whole_characters() {
        assert_eq!(start_of("aäb", 2), "a");
        assert_eq!(start_of("aäb", 3), "aä");
        assert_eq!(start_of("aäb", 9), "aäb");
        assert_eq!(start_of("", 9), "");
    }
}
