//! `prony bench`: one work of the runtime by itself, and what else is measured alone.

mod client;
mod figures;
mod io;
mod profile;
pub mod words;

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use prony_base::{Nanos, PerSecond};
use prony_bench::{BenchError, Done, Order, Work};

use figures::{grouped, write_line};
use prony_program::{Ending, Streams};
use words::{BenchCommand, BenchWords, HandlerWord, InjectionWord, ThroughWord};

/// Runs `prony bench`.
pub fn run(words: &BenchWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    match (&words.other, words.work) {
        (Some(BenchCommand::Io(words)), _) => io::run(words, streams),
        (Some(BenchCommand::Client(words)), _) => client::run(words, streams),
        (None, Some(work)) => run_work(work, words, streams),
        (None, None) => bail!("the name of a work is missing"),
    }
}

/// Does the work, then prints what it measured as a line for people or for programs.
fn run_work(work: Work, words: &BenchWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    refuse_what_is_of_others(work, words)?;
    let usual = Order::default();
    let order = Order {
        count: words.count.unwrap_or(work.count()),
        threads: words.threads,
        injection: match words.injection {
            None | Some(InjectionWord::Explicit) => prony_bench::Injection::Explicit,
            Some(InjectionWord::Constructor) => prony_bench::Injection::Constructor,
        },
        priorities: words.priorities.unwrap_or(usual.priorities),
        handling: match words.handler {
            None | Some(HandlerWord::Coroutine) => prony_bench::Handling::Coroutine,
            Some(HandlerWord::Plain) => prony_bench::Handling::Plain,
            Some(HandlerWord::None) => prony_bench::Handling::None,
        },
        payload: words.payload.unwrap_or(usual.payload),
        through: match words.through {
            None | Some(ThroughWord::Events) => prony_bench::Through::Events,
            Some(ThroughWord::Tasks) => prony_bench::Through::Tasks,
        },
        deadline: words.deadline.unwrap_or(usual.deadline),
        driver: prony_program::driver::chosen()?
            .parse()
            .map_err(anyhow::Error::msg)?,
    };
    let done = match prony_bench::run(work, &order) {
        Ok(done) => done,
        Err(wrong @ BenchError::Wrong { .. }) => {
            writeln!(streams.err, "prony: {wrong}")?;
            return Ok(Ending::Failed);
        }
        Err(error) => return Err(error.into()),
    };
    for note in &done.notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    let peak_bytes =
        prony_bench::peak_bytes().context("the peak memory of this process cannot be read")?;
    if words.json {
        write_line(&done.line, Some(peak_bytes), streams)?;
    } else {
        streams
            .out
            .write_all(for_people(work, &done, peak_bytes).as_bytes())?;
    }
    Ok(Ending::Done)
}

/// What is of another work would be typed in vain: who does so expects something of it.
fn refuse_what_is_of_others(work: Work, words: &BenchWords) -> anyhow::Result<()> {
    for (is_given, flag, of) in [
        (words.injection.is_some(), "--injection", Work::Start),
        (words.priorities.is_some(), "--priorities", Work::Event),
        (words.handler.is_some(), "--handler", Work::Event),
        (words.payload.is_some(), "--payload", Work::Event),
        (words.through.is_some(), "--through", Work::Coroutine),
        (words.deadline.is_some(), "--deadline", Work::Realtime),
    ] {
        if is_given && work != of {
            bail!("{flag} belongs to the work {of} and has no effect on {work}: leave it out");
        }
    }
    Ok(())
}

fn for_people(work: Work, done: &Done, peak_bytes: u64) -> String {
    let line = &done.line;
    let a_second = |count: u64| PerSecond::of(count, Nanos(line.elapsed_ns)).0;
    let threads = match line.threads {
        1 => "one thread".to_owned(),
        more => format!("{more} threads"),
    };
    let rate = |count: u64| grouped(a_second(count) as u64);
    let mut text = format!(
        "prony bench {work}, {threads}: {} µs, {} B peak memory, {} {}/s",
        grouped(line.elapsed_ns / 1_000),
        grouped(peak_bytes),
        rate(line.count),
        line.measure,
    );
    if line.bytes > 0 {
        let _ = write!(text, ", {:.0} MB/s", a_second(line.bytes) / 1e6);
    }
    text.push('\n');
    if let Some(durations) = &line.durations {
        for missed in &durations.missed {
            let _ = writeln!(
                text,
                "run {} took {} µs, which exceeds the deadline of {} µs",
                grouped(missed.run),
                grouped(missed.ns / 1_000),
                grouped(durations.deadline_ns / 1_000),
            );
        }
        let _ = writeln!(
            text,
            "min/max/mean: {}/{}/{:.0} µs; {} of {} runs missed the deadline of {} µs",
            grouped(durations.min_ns / 1_000),
            grouped(durations.max_ns / 1_000),
            durations.mean_ns / 1e3,
            grouped(durations.missed_count),
            grouped(durations.count),
            grouped(durations.deadline_ns / 1_000),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_record::{Durations, Missed};

    #[test]
    fn digits_are_grouped_by_three() {
        let of = |number| grouped(number);
        assert_eq!(of(7), "7");
        assert_eq!(of(999), "999");
        assert_eq!(of(1_000), "1,000");
        assert_eq!(of(12_345_678), "12,345,678");
    }

    #[test]
    fn a_line_says_time_memory_and_rate() {
        let mut done = Done::default();
        done.line.measure = "messages".to_owned();
        done.line.threads = 2;
        done.line.count = 10_000;
        done.line.elapsed_ns = 2_000_000;
        done.line.bytes = 300_000_000;
        assert_eq!(
            for_people(Work::Serializer, &done, 6_553_600),
            "prony bench serializer, 2 threads: 2,000 µs, 6,553,600 B peak memory, \
             5,000,000 messages/s, 150000 MB/s\n"
        );
    }

    #[test]
    fn every_missed_deadline_has_its_line() {
        let mut done = Done::default();
        done.line.measure = "runs".to_owned();
        done.line.threads = 1;
        done.line.elapsed_ns = 1_000_000_000;
        done.line.count = 4;
        done.line.durations = Some(Durations {
            count: 4,
            min_ns: 142_000,
            mean_ns: 147_400.0,
            max_ns: 51_101_000,
            deadline_ns: 2_000_000,
            missed: vec![Missed {
                run: 3,
                ns: 51_101_000,
            }],
            missed_count: 1,
            ..Durations::default()
        });
        let text = for_people(Work::Realtime, &done, 4_096);
        assert!(text.contains("run 3 took 51,101 µs, which exceeds the deadline of 2,000 µs\n"));
        assert!(text.ends_with(
            "min/max/mean: 142/51,101/147 µs; 1 of 4 runs missed the deadline of 2,000 µs\n"
        ));
    }
}
