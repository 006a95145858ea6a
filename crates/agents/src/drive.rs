//! Drives a load with agents, from beginning to end: what carries their messages on one side, and whoever watches the load on the other.

use std::time::Duration;

use prony_base::{Instant, Nanos, clock};
use prony_load::{LoadResult, Observer};
use prony_record::LoadSpec;

use crate::fleet::{Fleet, FleetError, FleetEvent, FleetOptions};
use crate::pipes::{Carried, Pipes};

/// Longest wait for a line, after which it is looked what else is due.
const WAIT: Duration = Duration::from_millis(5);
/// Lines that are taken before it is looked again.
const LINES_AT_ONCE: u32 = 1_000;
/// Time between two calls of [`Observer::progress`].
const PROGRESS_EVERY: Nanos = Nanos::from_millis(250);

/// Runs a load with the agents at the other ends of `pipes`, which are called `names` in the same order.
///
/// # Errors
/// An agent could not do its part before the load began, or nothing is left of it.
pub fn run(
    spec: &LoadSpec,
    names: &[String],
    options: FleetOptions,
    pipes: Pipes,
    observer: &mut dyn Observer,
) -> Result<LoadResult, FleetError> {
    let mut fleet = Fleet::new(spec.clone(), names, options, clock::monotonic())?;
    let mut told = Instant::ZERO;
    while !fleet.is_over() {
        carry(&mut fleet, &pipes)?;
        tell(&mut fleet, observer);
        let now = clock::monotonic();
        if now.since(told) >= PROGRESS_EVERY {
            told = now;
            let (completed, failed) = fleet.so_far();
            if !observer.progress(completed, failed) && !fleet.is_over() {
                fleet.stop(now)?;
            }
            if let Some(rate) = observer.rate().filter(|rate| *rate >= 0.0) {
                fleet.set_rate(rate, now);
            }
        }
        fleet.tick(clock::monotonic())?;
    }
    drop(pipes);
    tell(&mut fleet, observer);
    let outcome = fleet.result()?;
    outcome.rest.iter().for_each(|rest| observer.interval(rest));
    Ok(outcome.result)
}

/// Tells what has happened.
fn tell(fleet: &mut Fleet, observer: &mut dyn Observer) {
    while let Some(event) = fleet.event() {
        match event {
            FleetEvent::Connected { start, end } => observer.connected(start, end),
            FleetEvent::Second(second) => observer.interval(&second),
        }
    }
}

/// Carries what is to be said, and takes what was.
fn carry(fleet: &mut Fleet, pipes: &Pipes) -> Result<(), FleetError> {
    for (agent, line) in fleet.outgoing() {
        pipes.send(agent, line);
    }
    let mut wait = WAIT;
    for _ in 0..LINES_AT_ONCE {
        let Some((agent, carried)) = pipes.receive(wait) else {
            break;
        };
        match carried {
            Carried::Line(line, at) => fleet.received(agent, &line, at)?,
            Carried::Alive => fleet.is_heard(agent, clock::monotonic()),
            Carried::Closed(why) => fleet.closed(agent, why, clock::monotonic())?,
        }
        wait = Duration::ZERO;
    }
    Ok(())
}
