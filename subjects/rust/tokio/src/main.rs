//! One work, on one thread or on many, and what came of it as a line of JSON. Each thread has a runtime of its own.

mod registry;
mod services;
mod works;

use std::thread;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use serde::Serialize;

#[derive(Parser)]
pub struct Options {
    #[arg(long)]
    work: Work,
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=u64::from(u32::MAX)))]
    count: u64,
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Of the work `start`: how a service gets what it requires.
    #[arg(long, default_value = "explicit")]
    injection: Injection,
    /// Of the work `event`: 1 or 8.
    #[arg(long, default_value = "1", value_parser = ["1", "8"])]
    priorities: String,
    /// Of the work `event`: what sees the events.
    #[arg(long, default_value = "coroutine")]
    handler: Handling,
    /// Of the work `event`: bytes that each carries, 0 or 32.
    #[arg(long, default_value = "0", value_parser = ["0", "32"])]
    payload: String,
    /// Of the work `coroutine`: through the queue of events, or as tasks of the runtime.
    #[arg(long, default_value = "events")]
    through: Through,
    /// Of the work `serializer`: the library.
    #[arg(long, default_value = "serde-json")]
    json: Json,
}

/// A library for JSON.
#[derive(Clone, Copy, ValueEnum)]
pub enum Json {
    SerdeJson,
    SonicRs,
    SimdJson,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Through {
    Events,
    Tasks,
}

/// What sees the events.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Handling {
    Coroutine,
    Plain,
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum Work {
    Coroutine,
    Event,
    Start,
    StartStop,
    Serializer,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Injection {
    Explicit,
    Constructor,
}

/// What came of a work on one thread.
#[derive(Default)]
pub struct WorkOutcome {
    checksum: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Line {
    measure: &'static str,
    threads: u64,
    count: u64,
    elapsed_ns: u64,
    bytes: u64,
    checksum: String,
}

fn measure(work: Work) -> &'static str {
    match work {
        Work::Coroutine => "coroutines",
        Work::Event => "events",
        Work::Start => "services",
        Work::StartStop => "cycles",
        Work::Serializer => "messages",
    }
}

/// The work on this thread, from the making of its runtime to the end of it.
fn run(options: &Options) -> WorkOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        match options.work {
            Work::Coroutine if options.through == Through::Tasks => {
                works::coroutine_by_tasks(options.count).await
            }
            Work::Coroutine => works::coroutine(options.count).await,
            Work::Event => {
                let priorities = if options.priorities == "8" { 8 } else { 1 };
                let words = options.payload == "32";
                works::event(options.count, priorities, options.handler, words).await
            }
            Work::Start => {
                services::start(options.count, options.injection == Injection::Constructor).await
            }
            Work::StartStop => services::start_stop(options.count).await,
            Work::Serializer => works::serializer(options.count, options.json),
        }
    })
}

fn main() {
    let options = Options::parse();
    let begun = Instant::now();
    let outcomes: Vec<WorkOutcome> = if options.threads == 1 {
        vec![run(&options)]
    } else {
        thread::scope(|scope| {
            let threads: Vec<_> = (0..options.threads)
                .map(|_| scope.spawn(|| run(&options)))
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended
                .map(|outcome| outcome.expect("a panic ends the process"))
                .collect()
        })
    };
    let elapsed = begun.elapsed();
    let line = Line {
        measure: measure(options.work),
        threads: options.threads,
        count: options.count * options.threads,
        elapsed_ns: elapsed.as_nanos() as u64,
        bytes: outcomes.iter().map(|outcome| outcome.bytes).sum(),
        checksum: outcomes
            .iter()
            .fold(0u64, |sum, outcome| sum.wrapping_add(outcome.checksum))
            .to_string(),
    };
    println!(
        "{}",
        serde_json::to_string(&line).expect("a line of numbers")
    );
}
