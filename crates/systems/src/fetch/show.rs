//! What is told of URLs: lines for people, objects for programs.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

use indicatif::{BinaryBytes, ProgressDrawTarget};
use prony_base::{Nanos, PerSecond};
use prony_client::Timing;
use serde::Serialize;

use super::bars::{Bar, Bars};
use super::download::{Live, Told};
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
    pub fn ended(&mut self, job: &Job, live: &Live, told: &Told) -> io::Result<()> {
        self.ended += 1;
        self.bytes += told.bytes;
        let mut text = String::new();
        match &told.fault {
            Some(fault) => {
                text = failed(job, live, told, &fault.to_string());
            }
            None if !self.quiet => text = line(job, told),
            None => {}
        }
        if let Some(timing) = told.timing.filter(|_| self.timing) {
            text.push_str(&phases(told, &timing));
        }
        self.tell_people(&text);
        if self.json {
            let mut line = serde_json::to_string(&object(job, live, told))?;
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
fn rate(told: &Told) -> f64 {
    PerSecond::of(told.received, told.took).0
}

fn line(job: &Job, told: &Told) -> String {
    let to = match &told.file {
        Some(file) => file.display().to_string(),
        None => "standard output".to_owned(),
    };
    let mut text = format!(
        "{} -> {to}: {}{} in {}, {}/s",
        job.shown,
        BinaryBytes(told.bytes),
        on_the_wire(told),
        told.took,
        BinaryBytes(rate(told) as u64)
    );
    if told.resumed_from > 0 {
        let _ = write!(text, ", resumed from byte {}", told.resumed_from);
    }
    if let Some((algorithm, sum)) = &told.sum {
        let _ = write!(text, ", {} {sum}", algorithm.name());
    }
    text.push('\n');
    notes(&mut text, told);
    text
}

/// What the body took on the wire, where that is not what the file has.
fn on_the_wire(told: &Told) -> String {
    match told.received == told.bytes - told.resumed_from.min(told.bytes) {
        true => String::new(),
        false => format!(" ({} on the wire)", BinaryBytes(told.received)),
    }
}

fn notes(text: &mut String, told: &Told) {
    for note in &told.notes {
        let _ = writeln!(text, "  {note}");
    }
}

fn failed(job: &Job, live: &Live, told: &Told, why: &str) -> String {
    // The client's own errors begin with the URL.
    let mut text = match why.starts_with("http") {
        true => format!("prony: {why}\n"),
        false => format!("prony: {}: {why}\n", job.shown),
    };
    notes(&mut text, told);
    if let (Some(bytes), Some(file)) = (live.kept.get(), &told.file) {
        let _ = writeln!(
            text,
            "  {bytes} bytes are kept in {}: continue with --resume",
            part_of(file).display()
        );
    }
    text
}

/// When each step was over: of the last exchange, from its start.
fn phases(told: &Told, timing: &Timing) -> String {
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
    let version = told.version.map_or("-", |version| version.name());
    let how = if timing.reused { "reused" } else { "new" };
    let address = told.address.map(|address| address.to_string());
    let _ = writeln!(text, "{version} {how} {}", address.unwrap_or_default());
    text
}

/// Version of what `--json` prints.
const SCHEMA: u32 = 1;

/// What `--json` prints of a URL. Times in ns since the start of the last exchange.
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

fn object<'a>(job: &'a Job, live: &Live, told: &'a Told) -> Object<'a> {
    let sum = |name: &str| {
        let sum = told.sum.as_ref();
        sum.filter(|(algorithm, _)| algorithm.name() == name)
            .map(|(_, sum)| sum.as_str())
    };
    let ns = |at: Option<Nanos>| at.map(|at| at.0);
    Object {
        schema: SCHEMA,
        url: &job.shown,
        final_url: told.final_url.as_deref(),
        status: told.status,
        file: told.file.as_ref().map(|file| file.display().to_string()),
        bytes: told.bytes,
        received_bytes: told.received,
        resumed_from: told.resumed_from,
        sha256: sum("sha256"),
        sha512: sum("sha512"),
        took_ns: told.took.0,
        rate_bytes_per_s: rate(told).round(),
        protocol: told.version.map(|version| version.name()),
        address: told.address.map(|address| address.to_string()),
        reused: told.timing.map(|timing| timing.reused),
        retries: told.retries,
        timing: told.timing.map(|timing| Times {
            resolved_ns: ns(timing.resolved),
            connected_ns: ns(timing.connected),
            tls_ns: ns(timing.secured),
            sent_ns: timing.sent.0,
            first_byte_ns: timing.first_byte.0,
            done_ns: ns(timing.done),
        }),
        notes: &told.notes,
        kept_bytes: live.kept.get(),
        error: told.fault.as_ref().map(|fault| Failure {
            phase: fault.phase(),
            kind: fault.kind(),
            message: fault.to_string(),
        }),
    }
}
