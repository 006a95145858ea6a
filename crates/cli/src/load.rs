//! `prony load`: drive one URL.

mod ending;
mod find_max;
mod pace;
mod summary;
mod trace;
pub mod words;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use prony_base::{Instant, Nanos, clock, counted};
use prony_load::prepare::{RequestParts, Url, prepare};
use prony_load::{LoadResult, LoadSpec, Observer};
use prony_stats::{log, whole_seconds};
use serde::Serialize;

use crate::cause::CannotWrite;
use crate::signals::interruption;
use crate::{Ending, Streams};
use words::LoadWords;

/// Length of a run for which neither a length nor a number of requests is given, as in wrk.
const DURATION: Nanos = Nanos::from_secs(10);
/// A body file larger than this is refused: each connection sends it again and again.
const BODY_BYTES_MAX: u64 = 1 << 30;

/// Runs `prony load`.
pub fn run(words: &LoadWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let spec = resolve(words)?;
    if let Some(crowded) = crowded(words.threads) {
        writeln!(streams.err, "prony: {crowded}")?;
    }
    if let Some(objective) = &words.find_max {
        return find_max::run(&spec, objective, words.json.as_deref(), streams);
    }
    let to_stdout = words.json.as_deref() == Some(Path::new("-"));
    if !to_stdout {
        write!(streams.out, "{}", summary::heading(&spec))?;
        streams.out.flush()?;
    }
    let mut live = LiveLine::new(spec.duration_ns)?;
    let outcome = prony_load::run(&spec, &mut live);
    live.bar.finish_and_clear();
    let outcome = outcome?;
    if let Some(why) = &outcome.fallback {
        writeln!(streams.err, "prony: using epoll, not io_uring: {why}")?;
    }
    if let Some(file) = &words.json {
        write_json(file, &outcome.report, streams)?;
    }
    if let Some(file) = &words.seconds {
        write_seconds(file, &spec, &outcome, streams)?;
    }
    if let Some(file) = &words.trace {
        trace::write(file, &outcome.trace).with_context(CannotWrite::at(file))?;
        if outcome.trace.len() as u64 >= trace::ROWS_MAX {
            let rows = counted(trace::ROWS_MAX, "request");
            writeln!(
                streams.err,
                "prony: {} has the first {rows} and no more",
                file.display()
            )?;
        }
    }
    if !to_stdout {
        write!(streams.out, "{}", summary::text(&outcome, words.latency))?;
    }
    Ok(ending::of(&outcome, words.allow_failures))
}

/// Threads without a processor each are taken as they are, and said.
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

/// The words, checked, with nothing left to default.
fn resolve(words: &LoadWords) -> anyhow::Result<LoadSpec> {
    if words.connections < words.threads {
        bail!(
            "{} cannot be shared out over {} threads: give at least as many connections (-c) as threads (-t)",
            counted(words.connections, "connection"),
            words.threads
        );
    }
    let url = Url::parse(&words.url)?;
    let address = url.resolve()?;
    prony_lab::target::check(&url.host, &[address.ip()], words.yes_i_own_this_host)?;
    let headers = words
        .headers
        .iter()
        .map(|text| header(text))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let body = body(words)?;
    let method = words
        .method
        .clone()
        .unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let parts = RequestParts {
        method: &method,
        path: &url.path,
        authority: &url.authority,
        headers: &headers,
        body: &body,
    };
    let pace = pace::pace(words)?;
    let unbounded = words.requests.is_some() && words.duration.is_none();
    let usual = match words.find_max {
        Some(_) => find_max::STEP,
        None => DURATION,
    };
    Ok(LoadSpec {
        target: url.target(address),
        further: Vec::new(),
        threads: words.threads,
        connections: words.connections,
        warmup_ns: words.warmup.unwrap_or_default().0,
        duration_ns: if unbounded {
            Nanos::MAX
        } else {
            words.duration.unwrap_or(usual)
        }
        .0,
        requests_max: words.requests,
        timeout_ns: words.timeout.0,
        requests: vec![prepare(&parts, None)?],
        expected_status: Vec::new(),
        driver: crate::driver::chosen()?,
        exact: !words.coalesce,
        latency_from: pace::latency_from(words, &pace),
        pace,
        // 0 is the usual limit.
        queue_max: words.queue.unwrap_or(0),
        seed: words.seed,
        spin: words.spin,
        timestamps: pace::timestamps(words),
        in_turns: false,
        trace_max: words.trace.as_ref().map_or(0, |_| trace::ROWS_MAX),
        find_max: None,
    })
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("`{text}` is not a header: write it as 'Name: value'");
    };
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn body(words: &LoadWords) -> anyhow::Result<Vec<u8>> {
    let Some(file) = &words.body_file else {
        return Ok(words.body.clone().unwrap_or_default().into_bytes());
    };
    let cannot = || format!("cannot read the body from {}", file.display());
    let length = fs::metadata(file).with_context(cannot)?.len();
    if length > BODY_BYTES_MAX {
        bail!(
            "{} has {length} bytes; a body may have {BODY_BYTES_MAX}",
            file.display()
        );
    }
    fs::read(file).with_context(cannot)
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
    fn new(duration_ns: u64) -> anyhow::Result<LiveLine> {
        let interrupted = interruption()?;
        let shown = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(duration_ns / 1_000_000), shown);
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
        let elapsed = now.since(self.start);
        let since = now.since(self.last.0).as_secs_f64();
        if since > 0.0 {
            let rate = completed.saturating_sub(self.last.1) as f64 / since;
            let left = if self.end == Instant::NEVER {
                String::new()
            } else {
                format!(" of {}", self.end.since(self.start))
            };
            let failed = if failed == 0 {
                String::new()
            } else {
                format!(", {failed} failed")
            };
            self.bar.set_message(format!(
                "{elapsed}{left}: {rate:.0} requests/s, {completed} completed{failed}"
            ));
        }
        self.last = (now, completed);
        !self.interrupted.load(Relaxed)
    }
}
