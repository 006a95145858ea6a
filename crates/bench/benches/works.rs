//! Every work in turn, several rounds: `cargo bench -p prony-bench [-- NAME...]` prints the
//! best rate of each by the clock on the wall and by CPU time, which says more on a machine
//! that others use too; `--once`: of one round. Without `--bench` (as in a test run) each is done
//! a few times, to show that it still works. `prony bench` does one in a process of its own.

use prony_base::clock;
use prony_bench::{Handling, Order, Payload, Through, Work, run};

const ROUNDS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let large = words.iter().any(|word| word == "--bench");
    let rounds = match large && !words.iter().any(|word| word == "--once") {
        true => ROUNDS,
        false => 1,
    };
    let named = |work: &Work| {
        let mut names = words
            .iter()
            .filter(|word| !word.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|name| name == work.name())
    };
    for work in Work::ALL.into_iter().filter(named) {
        for (name, order) in variants(work) {
            let order = Order {
                count: if large { work.count() } else { 10 },
                ..order
            };
            compare(work, name, &order, rounds);
        }
    }
}

/// What a work is done with, beside the usual.
fn variants(work: Work) -> Vec<(&'static str, Order)> {
    let usual = Order::default;
    let change = |change: fn(&mut Order)| change;
    let mut all = vec![("", usual())];
    let others = match work {
        Work::Coroutine => vec![("tasks", change(|order| order.through = Through::Tasks))],
        Work::Event => vec![
            ("8 priorities", change(|order| order.priorities = 8)),
            ("plain, 32 B", |order| {
                (order.handling, order.payload) = (Handling::Plain, Payload::Words);
            }),
            ("none, 32 B", |order| {
                (order.handling, order.payload) = (Handling::None, Payload::Words);
            }),
            ("plain", |order| order.handling = Handling::Plain),
            ("none", |order| order.handling = Handling::None),
        ],
        _ => Vec::new(),
    };
    for (name, change) in others {
        let mut order = usual();
        change(&mut order);
        all.push((name, order));
    }
    all
}

fn compare(work: Work, name: &str, order: &Order, rounds: usize) {
    let (mut wall, mut cpu) = (u64::MAX, u64::MAX);
    for _ in 0..rounds {
        let before = clock::process_cpu();
        let done = run(work, order).expect("a work that is done");
        cpu = cpu.min((clock::process_cpu() - before).0);
        wall = wall.min(done.line.elapsed_ns);
    }
    let each = |elapsed: u64| elapsed as f64 / order.count as f64;
    println!(
        "{work:<11} {name:<13} n={}: {:.1} ms, {:.1} ns each, {:.2} M/s; CPU {:.1} ms, {:.1} ns each",
        order.count,
        wall as f64 / 1e6,
        each(wall),
        1e3 / each(wall),
        cpu as f64 / 1e6,
        each(cpu),
    );
}
