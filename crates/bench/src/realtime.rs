//! A job of fixed length with a deadline, each run scheduled by the one before.

use std::cell::RefCell;
use std::rc::Rc;

use prony_base::clock;
use prony_engine::thread::{self, Urgency};
use prony_record::{Durations, Histogram, Missed, ProgramLine, SCHEMA};
use prony_runtime::events::Events;
use prony_runtime::realtime::{DIGITS, Deadlines, Settings};

use crate::{BenchError, Done, Order, Work};

/// Rounds of the job: about 150 us on a core of 3 GHz.
const ROUNDS: u64 = 75_000;
/// Priority under `SCHED_FIFO`, in the middle of what a user may ask for.
const PRIORITY: u8 = 50;

/// A chain of dependent computations, the same in every run: nothing to wait for, no
/// memory, no system call.
fn job(seed: u64) -> u64 {
    let mut x = std::hint::black_box(seed | 1);
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x)
}

/// The event that schedules a run.
struct Next;

/// On a single thread: two that both keep their core would only wait for each other.
pub fn run(order: &Order) -> Result<Done, BenchError> {
    if order.threads != 1 {
        let wrong = "realtime runs on one thread, which it keeps for itself";
        return Err(BenchError::Order(wrong.to_owned()));
    }
    let settings = Settings {
        core: thread::cores().ok().and_then(|cores| cores.last().copied()),
        priority: Some(PRIORITY),
        lock_memory: true,
    };
    let refused = settings.apply();
    let before = clock::monotonic();
    let watched = watch(order);
    let elapsed = clock::monotonic().since(before);
    // The calling thread is ordinary again, whatever it does next.
    let _ = thread::set_urgency(Urgency::Ordinary);
    let (deadlines, checksum) = watched?;
    Ok(Done {
        line: ProgramLine {
            measure: "runs".to_owned(),
            threads: 1,
            count: deadlines.count(),
            elapsed_ns: elapsed.0,
            bytes: 0,
            checksum: checksum.to_string(),
            durations: Some(durations(&deadlines)),
            ..ProgramLine::default()
        },
        notes: refused.iter().map(ToString::to_string).collect(),
    })
}

/// Runs the job as often as ordered, each time as an event of the loop's queue.
fn watch(order: &Order) -> Result<(Deadlines, u64), BenchError> {
    let (count, deadline) = (order.count, order.deadline);
    let watched = prony_engine::run(&order.config(), |handle| async move {
        let events = Events::new(&handle);
        let state = Rc::new(RefCell::new((Deadlines::new(deadline), 0_u64)));
        let (theirs, next) = (state.clone(), events.emitter());
        let registration = events.on(move |_: &Next, _| {
            let (deadlines, checksum) = &mut *theirs.borrow_mut();
            let seed = deadlines.count();
            *checksum = checksum.wrapping_add(deadlines.run(|| job(seed)));
            if deadlines.count() < count {
                // There is room: no more than one waits.
                let _ = next.push(Next);
            }
        });
        let _ = events.push(Next);
        events.drain().await;
        drop(registration);
        state.replace((Deadlines::new(deadline), 0))
    })?;
    match watched.0.count() == count {
        true => Ok(watched),
        false => Err(BenchError::Wrong {
            work: Work::Realtime,
            wrong: format!("{} runs instead of {count}", watched.0.count()),
        }),
    }
}

fn durations(deadlines: &Deadlines) -> Durations {
    let missed = deadlines.missed().iter();
    Durations {
        count: deadlines.count(),
        min_ns: deadlines.min().0,
        mean_ns: deadlines.mean_ns(),
        max_ns: deadlines.max().0,
        deadline_ns: deadlines.limit().0,
        missed: missed
            .map(|missed| Missed {
                run: missed.run,
                ns: missed.took.0,
            })
            .collect(),
        missed_count: deadlines.missed_count(),
        histogram: Histogram {
            schema: SCHEMA,
            unit: "ns".to_owned(),
            digits: DIGITS,
            counts: deadlines.histogram().collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_one_event_and_has_a_length() {
        let order = Order {
            count: 3,
            ..Order::default()
        };
        let line = run(&order).unwrap().line;
        let durations = line.durations.unwrap();
        assert_eq!((line.count, durations.count), (3, 3));
        assert_eq!(durations.histogram.total(), 3);
        assert!(durations.min_ns > 0 && durations.min_ns <= durations.max_ns);
        let sum = (0..3).fold(0_u64, |sum, seed| sum.wrapping_add(job(seed)));
        assert_eq!(line.checksum, sum.to_string());
    }

    #[test]
    fn it_has_one_thread() {
        let order = Order {
            threads: 2,
            ..Order::default()
        };
        assert!(run(&order).is_err());
    }
}
