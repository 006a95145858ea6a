//! The service that drives the subject, which runs once its window is known, and the process that it starts: Prony's
//! generator, which prints lines of JSON, or wrk, whose window is as long as it runs.
//!
//! Not for: the load itself (`prony-load`).

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::rc::Rc;

use prony_base::{Instant, Nanos, clock};
use prony_engine::{Receiver, mailbox};
use prony_record::{
    Arrival, GeneratorEvent, Histogram, HttpProtocol, LatencyOrigin, LoadReport, LoadSpec,
    LoadTarget, LoadTls, Pace, RateSearch, Role, Timestamps, Turn, Turned,
};
use prony_runtime::services::{Context, Failure, Service};
use rustix::process::Signal;
use rustix::thread::CapabilitySet;

use super::context::{Halt, TrialContext};
use super::log::Log;
use super::process::{Child, Children, StopSignal};
use super::start::Place;
use super::wrk;
use crate::exchange::Trust;
use crate::experiment::Spoken;
use crate::supervise::{Generator, TrialOrder};
use crate::{exchange, launch, plan, sending};

/// Slack for connecting and draining beyond the time-out of a request.
const SLACK: Nanos = Nanos::from_secs(15);
/// How long a generator may take to exit after it has reported its result.
const EXIT_TIMEOUT: Nanos = Nanos::from_secs(5);
/// How a generator that is no longer needed is stopped.
const STOP_SIGNAL: StopSignal = StopSignal {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};
/// The hidden command of `prony` that drives a subject.
const WORD: &str = "__generate";
/// Longest line of a generator: its histogram.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// Lines of a generator that may wait to be read; one that prints more is cut off.
const LINES_MAX: usize = 4096;
/// How long after its start the window of wrk begins, for its connections to be made.
const WRK_CONNECTS: Nanos = Nanos::from_millis(20);

/// The service that drives the subject.
pub struct Load {
    context: Rc<TrialContext>,
    children: Rc<Children>,
    spec: LoadSpec,
    window: Cell<Option<Window>>,
    driver: RefCell<Option<Driver>>,
    child: RefCell<Option<Rc<Child>>>,
}

impl Load {
    /// A load by `spec` that has not been started.
    pub fn new(context: Rc<TrialContext>, children: Rc<Children>, spec: LoadSpec) -> Rc<Load> {
        Rc::new(Load {
            context,
            children,
            spec,
            window: Cell::new(None),
            driver: RefCell::default(),
            child: RefCell::default(),
        })
    }

    /// The measured window; `None` before it is known.
    pub fn window(&self) -> Option<Window> {
        self.window.get()
    }

    /// Waits for its result and for its exit. Errors: it has none in time.
    pub async fn result(&self) -> Result<Driven, Halt> {
        let mut driver = self.take_driver()?;
        let search = plan::longest_search(&self.context.order.workload);
        // Where it is waited for from the beginning of the window, that is before it, too.
        let window = self.spec.requests_max.map_or(0, |_| self.spec.duration_ns);
        let timeout = Nanos(self.spec.timeout_ns) + SLACK + search + Nanos(window);
        let late = || format!("the generator had no result {timeout} after the window");
        driver.turns = None;
        let result = async { driver.result(&self.spec).await.map_err(Halt::Failed) };
        let driven = self.context.within(timeout, result, late).await?;
        self.await_exit(EXIT_TIMEOUT).await?;
        driver.log.close();
        Ok(driven)
    }

    fn take_driver(&self) -> Result<Driver, Halt> {
        let lacking = || Halt::Failed("the generator was not started".to_owned());
        self.driver.take().ok_or_else(lacking)
    }

    /// The generator's process, while it is there.
    pub fn pid(&self) -> Option<u32> {
        let child = self.child.borrow();
        child.as_ref().map(|child| child.pid())
    }

    /// Sends it a turn, of a load in turns.
    pub fn turn(&self, turn: &Turn) -> Result<(), Halt> {
        let refused =
            |why: &str| Halt::Failed(format!("the generator cannot be given its turn: {why}"));
        let mut driver = self.driver.borrow_mut();
        let input = driver.as_mut().and_then(|driver| driver.turns.as_mut());
        let input = input.ok_or_else(|| refused("it is not driven in turns"))?;
        let mut line = serde_json::to_vec(turn).map_err(|error| refused(&error.to_string()))?;
        line.push(b'\n');
        // A generator that is gone by now is seen by its exit.
        let _ = input.write_all(&line);
        Ok(())
    }

    /// Waits for the result of its turn, which lasts `length`.
    pub async fn await_turn(&self, length: Nanos) -> Result<Turned, Halt> {
        let mut driver = self.take_driver()?;
        let timeout = Nanos(self.spec.timeout_ns) + length + SLACK;
        let late = || format!("the generator had not ended its turn after {timeout}");
        let result = async {
            match driver.event().await.map_err(Halt::Failed)? {
                GeneratorEvent::Turned(turned) => Ok(turned),
                _ => Err(Halt::Failed(
                    "the generator ended in the middle of its turn".to_owned(),
                )),
            }
        };
        let turned = self.context.within(timeout, result, late).await;
        *self.driver.borrow_mut() = Some(driver);
        turned
    }

    /// Longest that it may take until its window is known.
    pub fn start_timeout(&self) -> Nanos {
        (Nanos(self.spec.timeout_ns) + Nanos(self.spec.warmup_ns) + SLACK) * 2
    }

    async fn begin(&self) -> Result<(), Halt> {
        let io = Halt::io("the generator cannot be started");
        let mut driver = match &self.context.order.generator {
            Generator::Prony | Generator::Profile { .. } => {
                Driver::prony(&self.context.order, &self.spec, self.log()?).map_err(io)?
            }
            Generator::Wrk { .. } => {
                let warmup = self.wrk(self.spec.warmup_ns)?;
                self.follow(&warmup);
                let limit = Nanos(self.spec.warmup_ns) + Nanos(self.spec.timeout_ns) + SLACK;
                self.await_exit(limit).await?;
                self.wrk(self.spec.duration_ns)?
            }
        };
        self.follow(&driver);
        let timeout = Nanos(self.spec.timeout_ns) + Nanos(self.spec.warmup_ns) + SLACK;
        let late = || format!("the generator had not connected after {timeout}");
        let known = async { driver.window(&self.spec).await.map_err(Halt::Failed) };
        let window = self.context.within(timeout, known, late).await?;
        self.window.set(Some(window));
        *self.driver.borrow_mut() = Some(driver);
        Ok(())
    }

    fn wrk(&self, length_ns: u64) -> Result<Driver, Halt> {
        let Generator::Wrk { path, version } = &self.context.order.generator else {
            return Err(Halt::Failed("the generator is not wrk".to_owned()));
        };
        let seconds = length_ns.div_ceil(1_000_000_000).max(1);
        let wrk = (path.as_path(), version.as_str());
        Driver::wrk(&self.context.order, &self.spec, wrk, seconds, self.log()?)
            .map_err(Halt::io("wrk cannot be started"))
    }

    fn log(&self) -> Result<Log, Halt> {
        self.context.log(".generator")
    }

    fn follow(&self, driver: &Driver) {
        let child = self
            .children
            .follow(driver.pid, Role::Generator, STOP_SIGNAL);
        *self.child.borrow_mut() = Some(child);
    }

    fn await_exit(&self, timeout: Nanos) -> impl Future<Output = Result<(), Halt>> {
        let (context, child) = (self.context.clone(), self.child.borrow().clone());
        async move {
            let late = || format!("the generator did not end within {timeout}");
            let ended = async {
                if let Some(child) = &child {
                    child.await_end().await;
                }
                Ok(())
            };
            context.within(timeout, ended, late).await
        }
    }
}

impl Service for Load {
    async fn start(&self, _: &Context) -> Result<(), Failure> {
        let begun = self.context.unless_stopping(self.begin()).await;
        if begun.is_err()
            && let Some(child) = self.child.take()
        {
            // A start that failed is not followed by a stop.
            self.children.end(&child).await;
        }
        begun.map_err(Failure::from)
    }

    async fn stop(&self, _: &Context) -> Result<(), Failure> {
        if let Some(driver) = &mut *self.driver.borrow_mut() {
            driver.turns = None;
        }
        let child = self.child.borrow().clone();
        if let Some(child) = child {
            self.children.end(&child).await;
        }
        Ok(())
    }
}

/// The measured window on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Window {
    /// Its start.
    pub start: Instant,
    /// Its end.
    pub end: Instant,
}

/// The result of a generator: report, histogram, and search where there was one.
pub type Driven = (LoadReport, Option<Histogram>, Option<RateSearch>);

/// A started generator.
struct Driver {
    pid: u32,
    /// Its standard error.
    log: Log,
    lines: Receiver<String>,
    /// Its standard input, over which a load in turns receives them, until there are no more.
    turns: Option<ChildStdin>,
    kind: Kind,
}

enum Kind {
    Prony,
    Wrk { printed: String, version: String },
}

/// The load of a trial, resolved.
///
/// `entry`: the first server that requests go to; `further`: the others, round robin.
///
/// # Errors
/// A file of its requests is not the one that was planned.
pub fn spec(order: &TrialOrder, entry: &Place, further: &[Place]) -> Result<LoadSpec, String> {
    let (threads, requests_max) = (threads(order), order.workload.requests_max);
    let target = |place: &Place| LoadTarget {
        url: format!(
            "{}://{}{}",
            place.trust.as_ref().map_or("http", |_| "https"),
            place.authority,
            order.workload.request.path
        ),
        address: place.address.to_string(),
    };
    let spoken = Spoken::from_cell(&order.cell);
    let tls = entry.trust.as_ref().map(|trust| LoadTls {
        host: exchange::name_in(&entry.authority).to_owned(),
        authorities: match trust {
            Trust::Certificate(file) => vec![file.clone()],
            Trust::Machine => Vec::new(),
        },
        no_resumption: !spoken.resumes,
        ..LoadTls::default()
    });
    let spec = LoadSpec {
        tls,
        protocol: spoken.protocol,
        depth: spoken.depth,
        requests_per_connection: spoken.requests_per_connection,
        target: target(entry),
        further: further.iter().map(target).collect(),
        threads: threads.min(order.cell.connections.max(1)),
        connections: order.cell.connections,
        warmup_ns: requests_max.map_or(order.warmup_ns, |_| 0),
        duration_ns: order.duration_ns,
        requests_max,
        timeout_ns: order.workload.timeout_ns,
        expected_status: vec![order.workload.expect_status],
        checks: Some(&order.workload.expect_checks)
            .filter(|checks| !checks.is_empty())
            .cloned(),
        driver: order.driver.clone(),
        exact: true,
        look_before_sleep_ns: order.cell.look_before_sleep_ns,
        // What the lab itself does there would else end the looking in some trials and not in others.
        cores_are_own: true,
        in_turns: order.in_turns,
        latency_from: match order.workload.arrival.is_open() {
            true => LatencyOrigin::Intended,
            false => LatencyOrigin::Submitted,
        },
        pace: pace(&order.workload.arrival, order.cell.rate_per_s),
        seed: order.seed,
        find_max: order.workload.find_max.clone(),
        // On every driver, so that runs and their logs can be compared.
        timestamps: Some(Timestamps::User),
        ..LoadSpec::default()
    };
    let mut sent = sending::from_workload(&order.workload, &entry.authority, order.seed)?;
    if spoken.requests_per_connection == Some(1) && spoken.protocol == HttpProtocol::Http1 {
        sent = sent.closing();
    }
    let users = sending::users_to_verify(&sent, 1 + further.len());
    Ok(sent.into_spec(LoadSpec {
        // The server may keep what it was sent while its answers were checked.
        counter_from: match order.workload.source {
            Some(_) => users.max(sending::VERIFIED_MAX as u64),
            None => 0,
        },
        ..spec
    }))
}

/// Threads of the generator: one for each of its cores, where the cell does not say.
fn threads(order: &TrialOrder) -> u32 {
    let cores = u32::try_from(order.cores.generator.len()).unwrap_or(1);
    match order.cell.around.generators {
        0 => cores.max(1),
        threads => threads,
    }
}

/// When the requests of a cell start. `rate_per_s`: the cell's, where its workload has several.
fn pace(arrival: &Arrival, rate_per_s: Option<f64>) -> Pace {
    let rate = |rates: &[f64]| rate_per_s.or(rates.first().copied()).unwrap_or_default();
    match arrival {
        Arrival::Closed => Pace::Closed { think_ns: 0 },
        Arrival::Think { think_ns } => Pace::Closed {
            think_ns: *think_ns,
        },
        Arrival::Constant { rates_per_s } => Pace::Constant {
            rate_per_s: rate(rates_per_s),
        },
        Arrival::Poisson { rates_per_s } => Pace::Poisson {
            rate_per_s: rate(rates_per_s),
        },
        Arrival::Stages { points, poisson } => Pace::Stages {
            points: points.clone(),
            poisson: *poisson,
        },
    }
}

impl Driver {
    /// Starts Prony's generator.
    fn prony(order: &TrialOrder, spec: &LoadSpec, log: Log) -> io::Result<Driver> {
        let mut command = Command::new(&order.prony);
        command.arg(WORD).stdin(Stdio::piped());
        let (mut child, lines) = started(command, &log, &order.cores.generator)?;
        let mut input = child.stdin.take();
        if let Some(input) = &mut input {
            let text = serde_json::to_vec(spec)?;
            // A generator that is gone by now is seen by its exit.
            let _ = input.write_all(&text);
        }
        Ok(Driver {
            pid: child.id(),
            log,
            lines,
            turns: input.filter(|_| spec.in_turns),
            kind: Kind::Prony,
        })
    }

    /// Starts wrk for `seconds` with the first request of the workload.
    fn wrk(
        order: &TrialOrder,
        spec: &LoadSpec,
        wrk: (&Path, &str),
        seconds: u64,
        log: Log,
    ) -> io::Result<Driver> {
        let (path, version) = wrk;
        let body = order
            .workload
            .request
            .body
            .replace(exchange::PLACEHOLDER, "1");
        let url = spec.target.url.replace(exchange::PLACEHOLDER, "1");
        let script = order.work_dir.join("wrk.lua");
        let template = &order.workload.request;
        std::fs::write(
            &script,
            wrk::script(&template.method, &body, &template.headers),
        )?;
        let mut command = Command::new(path);
        let script = script.display().to_string();
        command
            .args(wrk::arguments(spec, seconds, &script, &url))
            .stdin(Stdio::null());
        launch::without_capabilities(&mut command, CapabilitySet::empty(), false);
        let (child, lines) = started(command, &log, &order.cores.generator)?;
        Ok(Driver {
            pid: child.id(),
            log,
            lines,
            turns: None,
            kind: Kind::Wrk {
                printed: String::new(),
                version: version.to_owned(),
            },
        })
    }

    /// Waits for the window. Errors: the generator reported something else.
    async fn window(&mut self, spec: &LoadSpec) -> Result<Window, String> {
        if let Kind::Wrk { .. } = self.kind {
            // Wholly within the time that wrk runs for.
            let start = clock::monotonic() + WRK_CONNECTS;
            let end = start + (Nanos(spec.duration_ns) - WRK_CONNECTS * 2);
            return Ok(Window { start, end });
        }
        match self.event().await? {
            GeneratorEvent::Connected {
                window_start_ns,
                window_end_ns,
            } => match spec.in_turns {
                // Each turn has its own.
                true => Ok(Window {
                    start: Instant::ZERO,
                    end: Instant::ZERO,
                }),
                false => checked_window(spec, window_start_ns, window_end_ns),
            },
            GeneratorEvent::Finished { .. } | GeneratorEvent::Turned(_) => {
                Err("the generator finished before it had connected".to_owned())
            }
        }
    }

    /// Waits for its result.
    async fn result(&mut self, spec: &LoadSpec) -> Result<Driven, String> {
        if let Kind::Wrk { printed, version } = &mut self.kind {
            while let Some(line) = self.lines.recv().await {
                printed.push_str(&line);
                printed.push('\n');
            }
            let report = wrk::report(printed, spec, version);
            let unread = || format!("the output of wrk holds no rate: {}", printed.trim());
            return report.map(|report| (report, None, None)).ok_or_else(unread);
        }
        match self.event().await? {
            GeneratorEvent::Finished {
                report,
                histogram,
                search,
            } => Ok((report, Some(histogram), search)),
            GeneratorEvent::Turned(_) => Err("the generator had a turn too many".to_owned()),
            GeneratorEvent::Connected { .. } => Err("the generator connected twice".to_owned()),
        }
    }

    async fn event(&mut self) -> Result<GeneratorEvent, String> {
        let Some(line) = self.lines.recv().await else {
            return Err(match self.log.tail().last() {
                Some(line) => format!("the generator ended without a result; it said: {line}"),
                None => "the generator ended without a result".to_owned(),
            });
        };
        let garbled = |error| format!("the generator printed what is no event: {error}");
        serde_json::from_str(&line).map_err(garbled)
    }
}

/// Checks that the sampler can keep to a window: in the near future, and as long as requested.
fn checked_window(spec: &LoadSpec, start: u64, end: u64) -> Result<Window, String> {
    let latest = clock::monotonic() + Nanos(spec.warmup_ns) + Nanos::from_secs(60);
    let length = end.saturating_sub(start);
    let bounded = length > 0 && length <= spec.duration_ns.saturating_mul(2);
    if !bounded || Instant(start) > latest {
        return Err(format!(
            "the generator's window from {start} to {end} is not the one asked for"
        ));
    }
    Ok(Window {
        start: Instant(start),
        end: Instant(end),
    })
}

/// Starts a generator on `cores`, whose lines arrive in a mailbox.
fn started(
    mut command: Command,
    log: &Log,
    cores: &[u32],
) -> io::Result<(std::process::Child, Receiver<String>)> {
    command.stdout(Stdio::piped()).stderr(log.writer()?);
    // Only the process: the thread that reads its lines is the supervisor's.
    let mut child = launch::on_cores(cores, || launch::start(&mut command))??;
    let (send, lines) = mailbox(LINES_MAX);
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut reader = BufReader::new(output);
            let mut line = Vec::new();
            while let Ok(1..) = reader
                .by_ref()
                .take(LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                if send.send(text).is_err() {
                    break;
                }
                line.clear();
            }
        });
    }
    Ok((child, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_becomes_the_pace_of_its_cell() {
        let rates_per_s = vec![1_000.0, 2_000.0];
        let constant = Arrival::Constant {
            rates_per_s: rates_per_s.clone(),
        };
        let rate_per_s = 2_000.0;
        assert_eq!(pace(&constant, Some(2e3)), Pace::Constant { rate_per_s });
        let poisson = Arrival::Poisson { rates_per_s };
        assert_eq!(pace(&poisson, Some(2e3)), Pace::Poisson { rate_per_s });
        assert_eq!(pace(&Arrival::Closed, None), Pace::default());
        let think = Arrival::Think { think_ns: 7 };
        assert_eq!(pace(&think, None), Pace::Closed { think_ns: 7 });
    }
}
