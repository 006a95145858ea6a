//! How fast the event queue is: pushes events, all before any is dispatched, then
//! dispatches them; the clock runs from making the loop to its end.
//!
//! `cargo run --release -p prony-runtime --example events -- [COUNT] [PRIORITIES] [WAY]`
//!
//! `WAY`: `emitter` (the type is looked up once), `push` (for every event), `payload`
//! (as emitter, with 16 bytes in each event), `handler` (as emitter, with a handler).

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;

use prony_base::clock;
use prony_engine::{Config, Handle, run};
use prony_runtime::events::{Emitter, Events, Options, Originator, Priority, PushError};

/// Everything that it says is in what comes with it: number, originator, priority.
struct Tick;

/// An event with something in it.
struct Payload(u64, u64);

fn queue(handle: &Handle, count: u64) -> Events {
    let options = Options {
        waiting_max: count,
        ..Options::default()
    };
    Events::with_options(handle, options)
}

fn fill<E: 'static>(
    emitter: &Emitter<E>,
    count: u64,
    priorities: u64,
    make: impl Fn(u64) -> E,
) -> Result<(), PushError<E>> {
    if priorities == 1 {
        for number in 0..count {
            emitter.push(make(number))?;
        }
        return Ok(());
    }
    for number in 0..count {
        emitter.push_at(Priority(1000 + number % priorities), make(number))?;
    }
    Ok(())
}

async fn work(handle: Handle, count: u64, priorities: u64, way: &str) -> Result<(), String> {
    let events = queue(&handle, count);
    let sum = Rc::new(Cell::new(0));
    let mut expected = 0;
    let handler = (way == "handler").then(|| {
        expected = (0..count).sum();
        let sum = sum.clone();
        events.on(move |event: &Payload, _| sum.set(sum.get() + event.0 + event.1))
    });
    let tick = events.emitter::<Tick>().from(Originator(1));
    let payload = events.emitter::<Payload>().from(Originator(1));
    let pushed = match way {
        "emitter" => fill(&tick, count, priorities, |_| Tick).map_err(|error| error.to_string()),
        "push" => (0..count)
            .try_for_each(|_| events.push(Tick).map(|_| ()))
            .map_err(|error| error.to_string()),
        "payload" | "handler" => fill(&payload, count, priorities, |number| Payload(number, 0))
            .map_err(|error| error.to_string()),
        _ => return Err(format!("\"{way}\" is no way")),
    };
    pushed?;
    assert_eq!(events.waiting(), count);
    events.drain().await;
    assert_eq!(events.stats().counts.dispatched, count);
    assert_eq!(sum.get(), expected);
    drop(handler);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let count: u64 = words.next().map_or(Ok(1_000_000), |word| word.parse())?;
    let priorities: u64 = words.next().map_or(Ok(1), |word| word.parse())?;
    let way = words.next().unwrap_or_else(|| "emitter".to_owned());
    let began = clock::monotonic();
    run(&Config::default(), |handle| {
        work(handle, count, priorities, &way)
    })??;
    let (took, cpu) = (clock::monotonic().since(began), clock::process_cpu());
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("?")
        .trim();
    println!(
        "{way}, {priorities} priorities: {count} events in {took} ({cpu} of CPU), {:.1} M/s, peak {peak}",
        count as f64 / took.as_micros_f64()
    );
    Ok(())
}
