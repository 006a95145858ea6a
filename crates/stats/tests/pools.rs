//! What runs tell of planted slow-downs, held against pools of real trials: `examples/slower` has servers of three languages that
//! are slower by a known part, and copies that are not. Their trials, measured once on two cores that nothing else used,
//! lie in `pools/`; what these scatter by is drawn for simulated runs. `PRONY_LONG=1` draws as many runs as the figures in
//! docs/method.md rest on; `--nocapture` shows them.
//!
//! All servers of a pool are one program, so that what disturbs one may disturb each: residuals are drawn from all of them, with
//! either sign.

use std::collections::BTreeMap;
use std::fs;

use prony_base::Random;
use prony_stats::{Comparison, Conclusion, POWER, compare_at, detectable, simultaneous};
use prony_testkit::root;

const SERVERS: [&str; 3] = ["rust", "go", "node"];
const METRICS: [&str; 3] = ["rate_per_s", "p50_ns", "cpu_ns_per_request"];
/// How trials were made, and the blocks that a run of two servers and a copy has in five minutes, by what a trial of the pools
/// took: 1.6 s, and 2.9 s in visits.
const METHODS: [(&str, usize); 2] = [("fresh", 60), ("visits", 34)];

/// Of each metric and each slow-down, the logarithms of its ratios to the server that has none, block by block.
type Pool = BTreeMap<&'static str, BTreeMap<String, Vec<f64>>>;

fn pool(name: &str) -> Pool {
    let path = root().join(format!("crates/stats/tests/pools/{name}.csv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let mut all = Pool::new();
    for metric in METRICS {
        let column = rows[0].iter().position(|name| *name == metric);
        let value = |row: &Vec<&str>| -> f64 {
            row[column.expect("its column")].parse().expect("a number")
        };
        let bases = rows[1..].iter().filter(|row| row[1] == "0");
        let bases: BTreeMap<&str, f64> = bases.map(|row| (row[0], value(row))).collect();
        let of_metric = all.entry(metric).or_default();
        for row in rows[1..].iter().filter(|row| row[1] != "0") {
            if let Some(base) = bases.get(row[0]) {
                let logs = of_metric.entry(row[1].to_owned()).or_default();
                logs.push(libm::log(value(row) / base));
            }
        }
    }
    all
}

fn mean(logs: &[f64]) -> f64 {
    logs.iter().sum::<f64>() / logs.len() as f64
}

/// By how much the ratios of each slow-down miss their mean, of all of them together.
fn residuals(pool: &BTreeMap<String, Vec<f64>>) -> Vec<f64> {
    let of = |logs: &Vec<f64>| -> Vec<f64> {
        // What so many values miss their own mean by is smaller than what they miss the true one by.
        let n = logs.len() as f64;
        let wider = (n / (n - 1.0)).sqrt();
        logs.iter().map(|log| (log - mean(logs)) * wider).collect()
    };
    pool.values().flat_map(of).collect()
}

fn deviation(residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    (squares / residuals.len() as f64).sqrt()
}

/// A run of so many blocks in which one server's values are those of the other times `e^difference`.
fn drawn(residuals: &[f64], difference: f64, blocks: usize, random: &mut Random) -> Comparison {
    let pair = |_| {
        let residual = residuals[random.below(residuals.len() as u64) as usize];
        let sign = if random.chance(1, 2) { 1.0 } else { -1.0 };
        (1e4 * libm::exp(difference + sign * residual), 1e4)
    };
    let pairs: Vec<(f64, f64)> = (0..blocks).map(pair).collect();
    compare_at(&pairs, simultaneous(1)).expect("pairs")
}

/// Three standard errors of a share in so many tries.
fn slack(share: f64, tries: u64) -> f64 {
    3.0 * (share * (1.0 - share) / tries as f64).sqrt()
}

#[test]
fn of_a_copy_a_difference_is_claimed_in_one_of_twenty_runs_at_the_most() {
    let tries = prony_testkit::seeds(400, 20_000);
    for (method, five_minutes) in METHODS {
        for server in SERVERS {
            for (metric, logs) in pool(&format!("{method}-{server}")) {
                let residuals = residuals(&logs);
                for blocks in [6, 12, five_minutes] {
                    let mut random = Random::of(blocks as u64, server);
                    let claimed = (0..tries).filter(|_| {
                        let seen = drawn(&residuals, 0.0, blocks, &mut random).conclusion;
                        matches!(seen, Conclusion::Higher | Conclusion::Lower)
                    });
                    let share = claimed.count() as f64 / tries as f64;
                    println!("{method}, {server}, {metric}, {blocks} blocks: {share:.3} claimed");
                    assert!(
                        share <= 0.055 + slack(0.05, tries),
                        "{method} {server} {metric}, {blocks} blocks: {share}"
                    );
                }
            }
        }
    }
}

/// What became of simulated runs, as parts of them.
struct Told {
    right: f64,
    wrong: f64,
    held: f64,
}

fn told(residuals: &[f64], truth: f64, blocks: usize, tries: u64, seed: &str) -> Told {
    let mut random = Random::of(1, seed);
    let (mut right, mut wrong, mut held) = (0, 0, 0);
    for _ in 0..tries {
        let seen = drawn(residuals, truth, blocks, &mut random);
        right += u64::from(seen.conclusion == Conclusion::Lower);
        wrong += u64::from(seen.conclusion == Conclusion::Higher);
        let (low, high) = (seen.spread.low.0, seen.spread.high.0);
        held += u64::from((low..=high).contains(&libm::exp(truth)));
    }
    let [right, wrong, held] = [right, wrong, held].map(|count| count as f64 / tries as f64);
    Told { right, wrong, held }
}

#[test]
fn slow_downs_are_told_as_often_as_a_run_says_beforehand_and_intervals_hold_them() {
    let tries = prony_testkit::seeds(400, 20_000);
    for (method, blocks) in METHODS {
        for server in SERVERS {
            for (metric, logs) in pool(&format!("{method}-{server}")) {
                let residuals = residuals(&logs);
                let least = detectable(deviation(&residuals), blocks, 1);
                let least = least.expect("blocks enough").0;
                for percent in [10.0, 5.0, 3.0, 1.0] {
                    let truth = libm::log1p(-percent / 100.0);
                    let name = format!("{method} {server} {metric} {percent} %");
                    let seen = told(&residuals, truth, blocks, tries, &name);
                    println!(
                        "{name}: told {:.3}, held {:.3}, wrong {:.4}; {:.2} % are told in 4 of 5",
                        seen.right,
                        seen.held,
                        seen.wrong,
                        100.0 * least
                    );
                    assert!(
                        seen.held >= 0.94 - slack(0.95, tries),
                        "{name}: {}",
                        seen.held
                    );
                    assert!(
                        seen.wrong <= 0.025 + slack(0.025, tries),
                        "{name}: {}",
                        seen.wrong
                    );
                    // A run says of which size 80 % would be claimed.
                    if truth.abs() >= libm::log1p(least) {
                        assert!(seen.right >= POWER - 0.03, "{name}: {}", seen.right);
                    }
                    if method == "visits" && percent > 1.0 {
                        assert!(seen.right >= 0.99, "{name}: {}", seen.right);
                        assert_eq!(seen.wrong, 0.0, "{name}");
                    }
                }
            }
        }
    }
}

/// At equal time: the standard error of a mean goes with the deviation and with the root of what a trial takes.
#[test]
fn visits_give_narrower_intervals_than_fresh_processes_in_the_same_time() {
    let [(_, fresh_blocks), (_, visits_blocks)] = METHODS;
    let longer = (fresh_blocks as f64 / visits_blocks as f64).sqrt();
    for server in SERVERS {
        let [fresh, visits] = ["fresh", "visits"].map(|method| pool(&format!("{method}-{server}")));
        for metric in METRICS {
            let [fresh, visits] = [&fresh, &visits].map(|of| deviation(&residuals(&of[metric])));
            let width = longer * visits / fresh;
            println!(
                "{server}, {metric}: {:.2} % fresh, {:.2} % in visits; {width:.2} of the width",
                100.0 * fresh,
                100.0 * visits
            );
            let most = if server == "rust" { 0.75 } else { 0.5 };
            assert!(width <= most, "{server} {metric}: {width}");
        }
    }
}
