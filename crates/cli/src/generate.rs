//! The generator process of a trial: `prony load` with its words read from a
//! pipe and its figures printed for a program. Only the lab calls it; see
//! [`GeneratorEvent`] for what it prints.

use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use prony_base::{Instant, Nanos, clock};
use prony_load::{LoadResult, LoadSpec, Objective, Observer, find_max_after};
use prony_record::{FindMax, GeneratorEvent, RateSearch, Turn, Turned};
use serde::Deserialize as _;

use crate::signals::interruption;
use crate::{Ending, Streams};

/// A load of so many requests has no warm-up, and may be over in milliseconds: so long before it begins it is announced, for clocks to
/// be read on time.
const NOTICE: Nanos = Nanos::from_millis(50);
/// Longest order: 64 requests with bodies of a megabyte are well below it.
const ORDER_BYTES_MAX: u64 = 1 << 30;

/// Reads a [`LoadSpec`] as JSON from standard input, after it the turns of a load that is made of them, runs it, and
/// prints a [`GeneratorEvent`] a line on standard output.
pub fn run(streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let input = BufReader::new(io::stdin().take(ORDER_BYTES_MAX));
    let mut input = serde_json::Deserializer::from_reader(input);
    let spec = LoadSpec::deserialize(&mut input).context("the load specification is not one")?;
    let mut announcer = Announcer {
        notice: match spec.requests_max {
            None => Nanos::ZERO,
            Some(_) => NOTICE,
        },
        out: streams.out,
        turns: input,
        interrupted: interruption()?,
        failed: None,
    };
    let outcome = prony_load::run(&spec, &mut announcer)?;
    if let Some(error) = announcer.failed {
        return Err(error).context("cannot announce the window, or read the next turn");
    }
    if let Some(why) = &outcome.fallback {
        writeln!(streams.err, "using epoll, not io_uring: {why}")?;
    }
    let search = match &spec.find_max {
        Some(settings) if !outcome.interrupted => {
            Some(look_for(settings, &spec, &outcome, announcer.interrupted)?)
        }
        _ => None,
    };
    let interrupted = outcome.interrupted || search.as_ref().is_some_and(|of| of.interrupted);
    let finished = GeneratorEvent::Finished {
        report: outcome.report,
        histogram: outcome.histogram,
        search,
    };
    print(streams.out, &finished)?;
    Ok(if interrupted {
        Ending::Interrupted
    } else {
        Ending::Done
    })
}

/// The search after the window where a highest rate is requested: its steps announce nothing.
fn look_for(
    settings: &FindMax,
    spec: &LoadSpec,
    closed: &LoadResult,
    mut interrupted: Arc<AtomicBool>,
) -> anyhow::Result<RateSearch> {
    let objective: Objective = settings
        .objective
        .parse()
        .map_err(|reason: String| anyhow!(reason))?;
    let step = LoadSpec {
        duration_ns: settings.step_ns,
        ..spec.clone()
    };
    let search = find_max_after(
        &closed.report,
        &step,
        &objective,
        &mut interrupted,
        &mut |_, _| {},
    );
    search.context("the search for the highest rate could not continue")
}

fn print(out: &mut dyn Write, event: &GeneratorEvent) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

struct Announcer<'a, R: Read> {
    /// How long before its beginning the load is announced.
    notice: Nanos,
    out: &'a mut dyn Write,
    turns: Turns<R>,
    interrupted: Arc<AtomicBool>,
    failed: Option<io::Error>,
}

/// The turns, which follow the specification.
type Turns<R> = serde_json::Deserializer<serde_json::de::IoRead<R>>;

impl<R: Read> Observer for Announcer<'_, R> {
    fn begin(&mut self, _opened: usize) -> Option<Instant> {
        Some(clock::monotonic() + self.notice)
    }

    fn connected(&mut self, start: Instant, end: Instant) {
        let event = GeneratorEvent::Connected {
            window_start_ns: start.0,
            window_end_ns: end.0,
        };
        self.failed = print(self.out, &event).err();
        if self.notice > Nanos::ZERO {
            // A closed loop begins when it is let go.
            thread::sleep(Duration::from_nanos(start.since(clock::monotonic()).0));
        }
    }

    fn turn(&mut self) -> Option<Turn> {
        if self.failed.is_some() || self.interrupted.load(Relaxed) {
            return None;
        }
        match Turn::deserialize(&mut self.turns) {
            Ok(turn) => Some(turn),
            Err(error) => {
                // The end of the input is that of the turns.
                self.failed = (!error.is_eof()).then(|| error.into());
                None
            }
        }
    }

    fn turned(&mut self, turned: &Turned) {
        self.failed = print(self.out, &GeneratorEvent::Turned(*turned)).err();
    }

    fn progress(&mut self, _completed: u64, _failed: u64) -> bool {
        self.failed.is_none() && !self.interrupted.load(Relaxed)
    }
}
