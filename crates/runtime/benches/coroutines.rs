//! The coroutine work: one task waits for an event, again and again; each time it has
//! first started a second task, which sets the event and ends.
//!
//! `cargo bench -p prony-runtime --bench coroutines` prints CPU nanoseconds per round, best
//! of several, for the engine's bare tasks and for coroutines whose panics are caught.
//! Without `--bench` (as in a test run) it makes a few rounds, to show that it works.

use std::cell::Cell;
use std::rc::Rc;

use prony_base::clock;
use prony_engine::{Config, Handle, run};
use prony_runtime::coroutines::{AutoEvent, Coroutines};

fn main() {
    let is_bench = std::env::args().any(|word| word == "--bench");
    let (rounds, repeats) = if is_bench { (5_000_000, 5) } else { (1_000, 1) };
    let mut best = [f64::INFINITY; 3];
    for _ in 0..repeats {
        let times = [bare(rounds), caught(rounds), resumed(rounds)];
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time / rounds as f64);
        }
    }
    println!("bare tasks of the engine: {:.1} ns a round", best[0]);
    println!("coroutines:               {:.1} ns a round", best[1]);
    println!("two that take turns:      {:.1} ns a round", best[2]);
}

/// CPU time of this thread in nanoseconds, from the making of the loop to its end: on a
/// machine that others use too, the time by the clock says little.
fn timed<F: Future<Output = u64>>(rounds: u64, main: impl FnOnce(Handle) -> F) -> f64 {
    let start = clock::thread_cpu();
    let sum = run(&Config::default(), main).expect("the loop runs");
    assert_eq!(sum, rounds * (rounds - 1) / 2, "each round ran once");
    (clock::thread_cpu() - start).0 as f64
}

fn bare(rounds: u64) -> f64 {
    timed(rounds, |handle| async move {
        let own = handle.clone();
        let waiting = handle.spawn(async move {
            let shared = Rc::new((AutoEvent::new(), Cell::new(0)));
            for round in 0..rounds {
                let theirs = shared.clone();
                let setting = own.spawn(async move {
                    let (event, sum) = &*theirs;
                    sum.set(sum.get() + round);
                    event.set();
                });
                setting.detach();
                shared.0.wait().await;
            }
            shared.1.get()
        });
        waiting.await
    })
}

fn caught(rounds: u64) -> f64 {
    timed(rounds, |handle| async move {
        let coroutines = Coroutines::new(&handle);
        let own = coroutines.clone();
        let waiting = coroutines.spawn(async move {
            let shared = Rc::new((AutoEvent::new(), Cell::new(0)));
            for round in 0..rounds {
                let theirs = shared.clone();
                let setting = own.spawn(async move {
                    let (event, sum) = &*theirs;
                    sum.set(sum.get() + round);
                    event.set();
                });
                setting.detach();
                shared.0.wait().await;
            }
            shared.1.get()
        });
        waiting.await.expect("it does not panic")
    })
}

/// No task is made in a round: two wake each other.
fn resumed(rounds: u64) -> f64 {
    timed(rounds, |handle| async move {
        let (ping, pong) = (Rc::new(AutoEvent::new()), Rc::new(AutoEvent::new()));
        let (their_ping, their_pong) = (ping.clone(), pong.clone());
        let answering = handle.spawn(async move {
            loop {
                their_ping.wait().await;
                their_pong.set();
            }
        });
        let mut sum = 0;
        for round in 0..rounds {
            ping.set();
            pong.wait().await;
            sum += round;
        }
        drop(answering);
        sum
    })
}
