//! Every work in turn, several rounds: `cargo bench -p prony-bench [-- NAME...]` prints the
//! best and the median rate of each. Without `--bench` (as in a test run) each is done
//! a few times, to show that it still works. `prony bench` does one in a process of its own.

use prony_bench::{Order, Work, run};

const ROUNDS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let large = words.iter().any(|word| word == "--bench");
    let named = |work: &Work| {
        let mut names = words
            .iter()
            .filter(|word| !word.starts_with('-'))
            .peekable();
        names.peek().is_none() || names.any(|name| name == work.name())
    };
    for work in Work::ALL.into_iter().filter(named) {
        for priorities in if work == Work::Event {
            &[1, 8][..]
        } else {
            &[1]
        } {
            let order = Order {
                count: if large { work.count() } else { 10 },
                priorities: *priorities,
                ..Order::default()
            };
            compare(work, &order, if large { ROUNDS } else { 1 });
        }
    }
}

fn compare(work: Work, order: &Order, rounds: usize) {
    let mut nanos: Vec<u64> = (0..rounds)
        .map(|_| {
            run(work, order)
                .expect("a work that is done")
                .line
                .elapsed_ns
        })
        .collect();
    nanos.sort_unstable();
    let (best, median) = (nanos[0], nanos[nanos.len() / 2]);
    let each = |elapsed: u64| elapsed as f64 / order.count as f64;
    println!(
        "{work:<11} n={} priorities={}: best {:.1} ms, {:.1} ns each, {:.2} M/s; median {:.1} ms",
        order.count,
        order.priorities,
        best as f64 / 1e6,
        each(best),
        1e3 / each(best),
        median as f64 / 1e6,
    );
}
