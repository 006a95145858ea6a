//! `prony load`: drive one URL.

pub mod agents;
mod answer_words;
mod debug;
mod ending;
mod expect;
mod find_max;
pub mod form;
pub mod from;
mod identity;
mod live;
mod outputs;
mod pace;
pub mod require;
mod script;
mod source_words;
mod sources;
mod summary;
mod tls;
mod trace;
mod watch;
mod way;
pub mod words;

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use prony_base::{Instant, Nanos, clock, counted};
use prony_load::prepare::LoadUrl;
use prony_load::{LoadResult, LoadSpec, Observer};
use prony_record::Pace;
use prony_stats::{log, whole_seconds};
use serde::Serialize;

use crate::cause::CannotWrite;
use crate::signals::interruption;
use crate::{Ending, Streams};
use live::LiveScreen;
use outputs::{FinishedLoad, Outputs, WholeReport};
use watch::{JudgedLoad, LoadWatch};
use words::LoadWords;

/// Length of a run for which neither a length nor a number of requests is given, as in wrk.
const DURATION: Nanos = Nanos::from_secs(10);

/// Threads where none are asked for and there are connections enough.
const THREADS: u32 = 2;

/// Runs `prony load`.
pub fn run(words: &LoadWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    // Each connection takes one; hosts and the lab do the same.
    prony_program::children::raise_open_files();
    let (mut spec, notes) = resolve(words)?;
    for note in notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    if words.debug.print_request {
        return debug::print_request(&spec, streams);
    }
    if let Some(count) = words.debug.debug {
        return debug::exchanges(&spec, count, words.allow_failures, streams);
    }
    if let Some(crowded) = crowded(spec.threads).filter(|_| words.agents.count().is_none()) {
        writeln!(streams.err, "prony: {crowded}")?;
    }
    for file in [&words.json, &words.seconds, &words.trace]
        .into_iter()
        .flatten()
    {
        check_writable(file)?;
    }
    if let Some(objective) = &words.pace.find_max {
        return find_max::run(&spec, objective, words.json.as_deref(), streams);
    }
    let to_stdout = words.json.as_deref() == Some(Path::new("-"));
    let flags = (to_stdout, words.yes_i_own_this_host);
    let scripted = script::prepare(&words.script, &words.urls, flags, &mut spec)?;
    let outputs = Outputs::open(&words.outputs, &spec, streams.err)?;
    if !to_stdout {
        write!(streams.out, "{}", summary::heading(&spec))?;
        streams.out.flush()?;
    }
    let (outcome, judged, outputs, notes) = watched(words, &spec, scripted.as_ref(), outputs)?;
    if let Some(why) = &outcome.fallback {
        writeln!(streams.err, "prony: using epoll, not io_uring: {why}")?;
    }
    if !to_stdout {
        write!(streams.out, "{}", summary::text(&outcome, words.latency))?;
        write!(streams.out, "{}", agents::text(&outcome.report.agents))?;
        write!(streams.out, "{}{}", notes.concat(), require::text(&judged))?;
    }
    let script_failed = script::end(scripted.as_ref(), &outcome, to_stdout, streams)?;
    let finished = FinishedLoad {
        spec: &spec,
        outcome: &outcome,
        requirements: &judged.requirements,
        stopped: judged.stopped.as_deref(),
        script_failed: script_failed.as_deref(),
    };
    let mut failures = outputs.finish(&finished);
    failures.extend(write_files(words, &finished, streams));
    let mut failures = failures.into_iter();
    if let Some(first) = failures.next() {
        for further in failures {
            writeln!(streams.err, "prony: {further:#}")?;
        }
        return Err(first);
    }
    if script_failed.is_some() {
        return Ok(Ending::Failed);
    }
    let allow_failures = words.allow_failures || judged.errors_are_judged;
    Ok(judged.ending(ending::ending(&outcome, allow_failures)))
}

/// Runs `spec` and shows how it goes; also returns lines on what was changed meanwhile.
fn watched(
    words: &LoadWords,
    spec: &LoadSpec,
    scripted: Option<&prony_script::Scripted>,
    outputs: Outputs,
) -> anyhow::Result<(LoadResult, JudgedLoad, Outputs, Vec<String>)> {
    let interrupted = interruption()?;
    let mut notes = Vec::new();
    let ran = |shown: &mut dyn Observer| {
        let mut watch = LoadWatch::new(shown, scripted, &words.judged, outputs);
        let outcome = match words.agents.count() {
            None => script::run(spec, scripted, &mut watch).map_err(tls::explained),
            Some(_) => agents::run(spec, &words.agents, words.yes_i_own_this_host, &mut watch),
        };
        outcome.map(|mut outcome| {
            let (judged, outputs) = watch.judged(&words.judged, &mut outcome);
            (outcome, judged, outputs)
        })
    };
    let ended = if words.live && live::can_draw() {
        live::end_with_terminal(&interrupted)?;
        let mut screen = LiveScreen::new(spec, interrupted)?;
        let ended = ran(&mut screen);
        notes = screen.end();
        ended
    } else {
        let mut line = LiveLine::new(spec.duration_ns, interrupted)?;
        let ended = ran(&mut line);
        line.bar.finish_and_clear();
        ended
    };
    let (outcome, judged, outputs) = ended?;
    Ok((outcome, judged, outputs, notes))
}

/// Checks before a run that a file can be written at its end: without it the run would be in vain.
fn check_writable(file: &Path) -> anyhow::Result<()> {
    // What a symbolic link leads to, or a pipe, is seen when it is written.
    let is_new = fs::symlink_metadata(file).is_err();
    if file == Path::new("-") || !is_new && !file.is_file() && !file.is_dir() {
        return Ok(());
    }
    let opened = File::options().append(true).create(true).open(file);
    opened.with_context(CannotWrite::at(file))?;
    if is_new {
        fs::remove_file(file).with_context(CannotWrite::at(file))?;
    }
    Ok(())
}

/// Writes the files that are written at the end of a run. What failed.
fn write_files(
    words: &LoadWords,
    finished: &FinishedLoad<'_>,
    streams: &mut Streams<'_>,
) -> Vec<anyhow::Error> {
    let (spec, outcome) = (finished.spec, finished.outcome);
    let json = words.json.as_deref();
    let json = json.map(|file| write_json(file, &WholeReport::new(finished), streams));
    let seconds = words.seconds.as_deref();
    let seconds = seconds.map(|file| write_seconds(file, spec, outcome, streams));
    let trace = words.trace.as_deref();
    let trace = trace.map(|file| write_trace(file, outcome, streams));
    let failed = words.expect.keep_failed.as_deref();
    let failed = failed.map(|folder| expect::write(folder, &outcome.failed_answers));
    let all = [json, seconds, trace, failed].into_iter().flatten();
    all.filter_map(Result::err).collect()
}

/// Writes the times of single requests.
fn write_trace(file: &Path, outcome: &LoadResult, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    trace::write(file, &outcome.trace).with_context(CannotWrite::at(file))?;
    if outcome.trace.len() as u64 >= trace::ROWS_MAX {
        let rows = counted(trace::ROWS_MAX, "request");
        writeln!(
            streams.err,
            "prony: {} has the first {rows} and no more",
            file.display()
        )?;
    }
    Ok(())
}

/// A warning about threads that have no processor each.
fn crowded(threads: u32) -> Option<String> {
    let processors = std::thread::available_parallelism().ok()?.get();
    (threads as usize > processors).then(|| {
        format!(
            "{threads} threads on {} take turns: they may be the limit, and add to latency",
            counted(processors, "processor")
        )
    })
}

/// Writes a report to a file, or to standard output for `-`.
fn write_json(
    file: &Path,
    report: &impl Serialize,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    if file == Path::new("-") {
        streams.out.write_all(text.as_bytes())?;
        return Ok(());
    }
    fs::write(file, text).with_context(CannotWrite::at(file))
}

/// Writes the log of the run's whole seconds that `prony stats` reads.
fn write_seconds(
    file: &Path,
    spec: &LoadSpec,
    outcome: &LoadResult,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let (report, slices) = (&outcome.report, &outcome.report.slices);
    let seconds = whole_seconds(&slices.completed, slices.slice_ns);
    if seconds.is_empty() {
        let why = "prony: the run was shorter than a second: no line is written";
        writeln!(streams.err, "{why} to {}", file.display())?;
    }
    let counts: Vec<u64> = seconds.iter().map(|count| *count as u64).collect();
    // When a request failed is not recorded: a second's own failures are known only where there are none.
    let failed = report.counts.failed.total();
    let header = format!(
        "{} @ {}: requests by second, {}, {failed} failed in all",
        report.generator,
        spec.target.url,
        counted(spec.connections, "connection")
    );
    fs::write(file, log(&header, &counts, failed == 0)).with_context(CannotWrite::at(file))
}

/// The words, checked, with nothing left to default; and what the user has to know of them.
fn resolve(words: &LoadWords) -> anyhow::Result<(LoadSpec, Vec<String>)> {
    let threads = threads(words)?;
    let requests = sources::resolve(words)?;
    require::check_steps(&words.judged, requests.scenario.as_ref())?;
    let (url, replay) = (&requests.url, requests.replay);
    let addresses = addresses(words, url)?;
    let mut targets = addresses.iter().map(|&address| url.target(address));
    let requests_max = words.requests.or_else(|| length_of(replay.as_ref()));
    let pace = replay.map_or_else(|| pace::pace(words), Ok)?;
    let usual = match (requests_max, words.pace.find_max) {
        (Some(_), _) => Nanos::MAX,
        (None, Some(_)) => find_max::STEP,
        (None, None) => DURATION,
    };
    let may_fail = words.answers.may_fail();
    let statuses = words.expect.expect_status.as_ref().map(|of| of.0.clone());
    let mut spec = LoadSpec {
        target: targets.next().context("a URL has an address")?,
        further: targets.collect(),
        threads,
        connections: words.connections,
        warmup_ns: words.warmup.unwrap_or_default().0,
        duration_ns: words.duration.unwrap_or(usual).0,
        requests_max,
        timeout_ns: words.timeout.0,
        requests: requests.all,
        order: requests.order,
        sequence: requests.sequence,
        has_fields: requests.has_fields,
        data: requests.data,
        cookies: words.identity.cookies,
        expected_status: statuses.unwrap_or_default(),
        checks: expect::checks(&words.expect, requests.scenario.is_some(), may_fail)?,
        scenario: requests.scenario,
        driver: crate::driver::chosen()?,
        exact: !words.coalesce,
        latency_from: pace::latency_from(words, &pace),
        pace,
        // 0 is the usual limit.
        queue_max: words.queue.unwrap_or(0),
        seed: words.seed,
        spin: words.spin.is_always(),
        look_before_sleep_ns: match words.coalesce {
            // It waits for several, and a look ends with the first.
            true => 0,
            false => words.spin.look_before_sleep().0,
        },
        timestamps: pace::timestamps(words),
        in_turns: false,
        trace_max: words.trace.as_ref().map_or(0, |_| trace::ROWS_MAX),
        find_max: None,
        tls: tls::resolve(url, &words.tls)?,
        // By the words of the command line, only one of the two is given.
        requests_per_connection: (words.way.requests_per_connection)
            .or(words.way.no_keepalive.then_some(1)),
        protocol: words.way.http2.into(),
        depth: words.way.pipeline.or(words.way.streams).unwrap_or(1),
        sources: words.way.source.iter().map(ToString::to_string).collect(),
        ..LoadSpec::default()
    };
    (spec.follow_max, spec.decodes) = (words.answers.follow, words.answers.compressed);
    form::apply(&words.form, url, &mut spec)?;
    Ok((spec, requests.notes))
}

/// Threads in all: at least one for each machine, and a connection for each.
fn threads(words: &LoadWords) -> anyhow::Result<u32> {
    let machines = words.agents.count().unwrap_or(1);
    let usual = THREADS.saturating_mul(machines);
    let threads = words.threads.unwrap_or(usual.min(words.connections));
    if words.connections < threads {
        bail!(
            "{} cannot be shared out over {threads} threads: give at least as many connections (-c) as threads (-t)",
            counted(words.connections, "connection"),
        );
    }
    if threads < machines {
        bail!(
            "{} cannot be shared out over {machines} machines: give at least one thread (-t) and one connection (-c) for each",
            counted(threads, "thread"),
        );
    }
    Ok(threads)
}

/// Where connections go, which may be sent load.
fn addresses(words: &LoadWords, url: &LoadUrl) -> anyhow::Result<Vec<SocketAddr>> {
    let is_owned = words.yes_i_own_this_host;
    let (addresses, host) = match form::address(&words.form, url, is_owned)? {
        Some((address, host)) => (vec![address], host),
        None => (way::addresses(url, &words.way)?, url.host.clone()),
    };
    let all: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
    prony_load::target::check(&host, &all, is_owned)?;
    Ok(addresses)
}

/// How many requests a log that is replayed has.
fn length_of(replay: Option<&Pace>) -> Option<u64> {
    match replay {
        Some(Pace::Times { times_ns }) => Some(times_ns.len() as u64),
        _ => None,
    }
}

/// A line on a terminal that follows the run, and the ear for Ctrl-C.
struct LiveLine {
    bar: ProgressBar,
    interrupted: Arc<AtomicBool>,
    start: Instant,
    end: Instant,
    last: (Instant, u64),
}

impl LiveLine {
    fn new(duration_ns: u64, interrupted: Arc<AtomicBool>) -> anyhow::Result<LiveLine> {
        let bar = ProgressBar::new(duration_ns / 1_000_000);
        bar.set_style(ProgressStyle::with_template("  {msg}")?);
        bar.set_message("connecting");
        Ok(LiveLine {
            bar,
            interrupted,
            start: Instant::ZERO,
            end: Instant::NEVER,
            last: (Instant::ZERO, 0),
        })
    }
}

impl Observer for LiveLine {
    fn connected(&mut self, start: Instant, end: Instant) {
        (self.start, self.end, self.last) = (start, end, (start, 0));
    }

    fn progress(&mut self, completed: u64, failed: u64) -> bool {
        let now = clock::monotonic();
        if self.start == Instant::ZERO {
            // It has not begun: agents are started, or connect.
            return !self.interrupted.load(Relaxed);
        }
        let elapsed = now.since(self.start);
        let since = now.since(self.last.0).as_secs_f64();
        if since > 0.0 {
            let rate = completed.saturating_sub(self.last.1) as f64 / since;
            let left = match self.end {
                Instant::NEVER => String::new(),
                end => format!(" of {}", end.since(self.start)),
            };
            let failed = match failed {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            self.bar.set_message(format!(
                "{elapsed}{left}: {rate:.0} requests/s, {completed} completed{failed}"
            ));
        }
        self.last = (now, completed);
        !self.interrupted.load(Relaxed)
    }
}
