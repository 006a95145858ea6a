//! The reports on URLs: lines for people, objects for programs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use indicatif::{BinaryBytes, ProgressDrawTarget};
use prony_base::{Nanos, PerSecond};
use prony_client::Timing;
use serde::Serialize;

use super::bars::{Bar, Bars};
use super::download::{DownloadReport, Live};
use super::file::part_of;
use super::plan::Job;
use super::words::FetchWords;
use prony_program::Streams;

/// Tells of a run.
pub struct Show<'s, 'a> {
    streams: &'s mut Streams<'a>,
    bars: Option<Bars>,
    quiet: bool,
    timing: bool,
    json: bool,
    count: usize,
    ended: usize,
    /// Of those that are over.
    bytes: u64,
}

impl<'s, 'a> Show<'s, 'a> {
    /// For a run of `count` URLs.
    ///
    /// # Errors
    /// None that a terminal makes.
    pub fn new(
        words: &FetchWords,
        count: usize,
        streams: &'s mut Streams<'a>,
    ) -> anyhow::Result<Show<'s, 'a>> {
        let wanted = !words.quiet && io::stderr().is_terminal();
        let bars = wanted.then(|| Bars::new(ProgressDrawTarget::stderr()));
        Ok(Show {
            streams,
            bars: bars.transpose()?,
            quiet: words.quiet,
            timing: words.timing,
            json: words.json,
            count,
            ended: 0,
            bytes: 0,
        })
    }

    /// The bar of one more URL.
    pub fn bar(&self) -> Option<Bar> {
        self.bars.as_ref().map(Bars::add)
    }

    /// How far those under way are.
    pub fn tick<'l>(&mut self, running: impl Iterator<Item = (&'l Live, &'l mut Option<Bar>)>) {
        let Some(bars) = &self.bars else { return };
        let mut bytes = self.bytes;
        for (live, bar) in running {
            if let Some(bar) = bar {
                bar.tick(&live.name.borrow(), live.bytes.get(), live.total.get());
            }
            bytes += live.bytes.get();
        }
        bars.tick(self.ended, self.count, bytes);
    }

    /// Says something that is of no one URL.
    pub fn say(&mut self, text: &str) {
        if !self.quiet {
            self.tell_people(&format!("prony: {text}\n"));
        }
    }

    /// One URL is over.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn ended(&mut self, job: &Job, live: &Live, report: &DownloadReport) -> io::Result<()> {
        self.ended += 1;
        self.bytes += report.bytes;
        let mut text = String::new();
        match &report.fault {
            Some(fault) => {
                text = failed(job, live, report, &fault.to_string());
            }
            None if !self.quiet => text = line(job, report),
            None => {}
        }
        if let Some(timing) = report.timing.filter(|_| self.timing) {
            text.push_str(&phases(report, &timing));
        }
        self.tell_people(&text);
        if self.json {
            let mut line = serde_json::to_string(&object(job, live, report))?;
            line.push('\n');
            self.streams.out.write_all(line.as_bytes())?;
            self.streams.out.flush()?;
        }
        Ok(())
    }

    /// Takes the bars off the terminal.
    pub fn clear(&mut self) {
        if let Some(bars) = self.bars.take() {
            bars.clear();
        }
    }

    fn tell_people(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let err = &mut self.streams.err;
        // A standard error without a reader must not end a run.
        let mut write = || drop(err.write_all(text.as_bytes()));
        match &self.bars {
            Some(bars) => bars.above(write),
            None => write(),
        }
    }
}

/// Bytes a second that came on the wire, in this run.
fn rate(report: &DownloadReport) -> f64 {
    PerSecond::of(report.received, report.took).0
}

fn line(job: &Job, report: &DownloadReport) -> String {
    let to = match &report.file {
        Some(file) => file.display().to_string(),
        None => "standard output".to_owned(),
    };
    let mut text = format!(
        "{} -> {to}: {}{} in {}, {}/s",
        job.shown,
        BinaryBytes(report.bytes),
        on_the_wire(report),
        report.took,
        BinaryBytes(rate(report) as u64)
    );
    if report.resumed_from > 0 {
        let _ = write!(text, ", resumed from byte {}", report.resumed_from);
    }
    if let Some((algorithm, sum)) = &report.sum {
        let _ = write!(text, ", {} {sum}", algorithm.name());
    }
    text.push('\n');
    notes(&mut text, report);
    text
}

/// The bytes of the body on the wire, where these are not those of the file.
fn on_the_wire(report: &DownloadReport) -> String {
    match report.received == report.bytes - report.resumed_from.min(report.bytes) {
        true => String::new(),
        false => format!(" ({} on the wire)", BinaryBytes(report.received)),
    }
}

fn notes(text: &mut String, report: &DownloadReport) {
    for note in &report.notes {
        let _ = writeln!(text, "  {note}");
    }
}

fn failed(job: &Job, live: &Live, report: &DownloadReport, why: &str) -> String {
    // The client's own errors begin with the URL.
    let mut text = match why.starts_with("http") {
        true => format!("prony: {why}\n"),
        false => format!("prony: {}: {why}\n", job.shown),
    };
    notes(&mut text, report);
    if let (Some(bytes), Some(file)) = (live.left.get(), &report.file) {
        let _ = writeln!(
            text,
            "  {bytes} bytes are kept in {}: continue with --resume",
            part_of(file).display()
        );
    }
    text
}

/// When each step was over: of the last exchange, from its start.
fn phases(report: &DownloadReport, timing: &Timing) -> String {
    let mut text = String::from("  ");
    let shown = |at: Option<Nanos>| at.map_or("-".to_owned(), |at| at.to_string());
    for (name, at) in [
        ("resolved", timing.resolved),
        ("connected", timing.connected),
        ("tls", timing.secured),
        ("sent", Some(timing.sent)),
        ("first byte", Some(timing.first_byte)),
        ("done", timing.done),
    ] {
        let _ = write!(text, "{name} {}  ", shown(at));
    }
    let version = report.version.map_or("-", |version| version.name());
    let how = if timing.reused { "reused" } else { "new" };
    let address = report.address.map(|address| address.to_string());
    let _ = writeln!(text, "{version} {how} {}", address.unwrap_or_default());
    text
}

/// Version of what `--json` prints.
const SCHEMA: u32 = 1;

/// The object that `--json` prints of a URL. Times in ns since the start of the last exchange.
#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    url: &'a str,
    final_url: Option<&'a str>,
    status: Option<u16>,
    file: Option<String>,
    bytes: u64,
    received_bytes: u64,
    resumed_from: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha512: Option<&'a str>,
    took_ns: u64,
    rate_bytes_per_s: f64,
    protocol: Option<&'static str>,
    address: Option<String>,
    reused: Option<bool>,
    retries: u32,
    timing: Option<Times>,
    notes: &'a [String],
    kept_bytes: Option<u64>,
    error: Option<Failure>,
}

#[derive(Serialize)]
struct Times {
    resolved_ns: Option<u64>,
    connected_ns: Option<u64>,
    tls_ns: Option<u64>,
    sent_ns: u64,
    first_byte_ns: u64,
    done_ns: Option<u64>,
}

#[derive(Serialize)]
struct Failure {
    phase: &'static str,
    kind: &'static str,
    message: String,
}

fn object<'a>(job: &'a Job, live: &Live, report: &'a DownloadReport) -> Object<'a> {
    let sum = |name: &str| {
        let sum = report.sum.as_ref();
        sum.filter(|(algorithm, _)| algorithm.name() == name)
            .map(|(_, sum)| sum.as_str())
    };
    let ns = |at: Option<Nanos>| at.map(|at| at.0);
    Object {
        schema: SCHEMA,
        url: &job.shown,
        final_url: report.final_url.as_deref(),
        status: report.status,
        file: report.file.as_ref().map(|file| file.display().to_string()),
        bytes: report.bytes,
        received_bytes: report.received,
        resumed_from: report.resumed_from,
        sha256: sum("sha256"),
        sha512: sum("sha512"),
        took_ns: report.took.0,
        rate_bytes_per_s: rate(report).round(),
        protocol: report.version.map(|version| version.name()),
        address: report.address.map(|address| address.to_string()),
        reused: report.timing.map(|timing| timing.reused),
        retries: report.retries,
        timing: report.timing.map(|timing| Times {
            resolved_ns: ns(timing.resolved),
            connected_ns: ns(timing.connected),
            tls_ns: ns(timing.secured),
            sent_ns: timing.sent.0,
            first_byte_ns: timing.first_byte.0,
            done_ns: ns(timing.done),
        }),
        notes: &report.notes,
        kept_bytes: live.left.get(),
        error: report.fault.as_ref().map(|fault| Failure {
            phase: fault.phase(),
            kind: fault.kind(),
            message: fault.to_string(),
        }),
    }
}
