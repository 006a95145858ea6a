//! What runs told of planted slow-downs, live: `examples/slower` at `--budget 5m`, five runs of the servers in Rust and Go, three of Node's. Their trials lie in
//! `pools/live-SERVER.csv`; each holds all slow-downs and a copy at once, so that a run has a sixth of its time for each.
//! docs/method.md ("What was shown") has what `--nocapture` prints.
//!
//! The truth is planted: a server that is slower by 5 % does as much more arithmetic as takes 5 % of the time of an
//! answer, so that it answers 1/1.05 times as many.

use std::collections::BTreeMap;
use std::fs;

use prony_stats::{CONFIDENCE, Comparison, Conclusion, compare_at, simultaneous};
use prony_testkit::root;

/// Each server, how often it was run, and in how many of these runs 3 % were told.
const SERVERS: [(&str, usize, usize); 3] = [("rust", 5, 5), ("go", 5, 4), ("node", 3, 1)];
/// Slow-downs in percent; `00` is the copy.
const SLOWER: [(&str, f64); 5] = [
    ("00", 0.0),
    ("1", 1.0),
    ("3", 3.0),
    ("5", 5.0),
    ("10", 10.0),
];
/// Ratios of a run, which hold together.
const TOGETHER: usize = SLOWER.len();
/// `prony compare --interleave` of Node's server and the one that is slower by 3 %, at `--budget 5m`: the runs, in each of which
/// it was told.
const PAIRS: usize = 4;

/// A run: by slow-down and block the rate.
type Run = BTreeMap<String, BTreeMap<u32, f64>>;

fn runs(server: &str) -> Vec<Run> {
    let path = root().join(format!("crates/stats/tests/pools/live-{server}.csv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let mut runs: BTreeMap<u32, Run> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [run, block, slower, rate] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}");
        };
        let run = runs.entry(run.parse().expect("a run")).or_default();
        let of = run.entry(slower.to_owned()).or_default();
        of.insert(
            block.parse().expect("a block"),
            rate.parse().expect("a rate"),
        );
    }
    runs.into_values().collect()
}

fn compared(run: &Run, slower: &str, together: usize) -> Comparison {
    let base = &run["0"];
    let pairs = run[slower].iter().map(|(block, rate)| (*rate, base[block]));
    compare_at(&pairs.collect::<Vec<_>>(), simultaneous(together)).expect("pairs")
}

#[derive(Default)]
struct Told {
    right: usize,
    wrong: usize,
    held: usize,
    runs: usize,
}

fn told(runs: &[Run], slower: &str, percent: f64, together: usize) -> Told {
    let truth = 1.0 / (1.0 + percent / 100.0);
    let mut told = Told::default();
    for run in runs {
        let seen = compared(run, slower, together);
        told.runs += 1;
        told.right += usize::from(seen.conclusion == Conclusion::Lower);
        told.wrong += usize::from(seen.conclusion == Conclusion::Higher);
        let (low, high) = (seen.spread.low.0, seen.spread.high.0);
        told.held += usize::from((low..=high).contains(&truth));
        println!(
            "  {} blocks: {:+.2} % ({:+.2} to {:+.2})",
            run[slower].len(),
            100.0 * (seen.ratio.0 - 1.0),
            100.0 * (low - 1.0),
            100.0 * (high - 1.0)
        );
    }
    told
}

#[test]
fn planted_slow_downs_are_told_live_and_a_copy_never_is() {
    let (mut intervals, mut held) = (0, 0);
    for (server, count, told_3) in SERVERS {
        let runs = runs(server);
        assert_eq!(runs.len(), count, "{server}");
        for (slower, percent) in SLOWER {
            println!("{server}, slower by {percent} %:");
            let told = told(&runs, slower, percent, TOGETHER);
            println!("  told {} of {}, held {}", told.right, told.runs, told.held);
            intervals += told.runs;
            held += told.held;
            assert_eq!(told.wrong, 0, "{server}, {percent} %");
            // From 5 % on all of them.
            let least = match percent {
                0.0..3.0 => 0,
                3.0..5.0 => told_3,
                _ => told.runs,
            };
            assert!(told.right >= least, "{server}, {percent} %");
            if slower == "00" {
                assert_eq!(told.right, 0, "{server}: a copy");
            }
        }
    }
    println!("{held} of {intervals} intervals hold what was planted");
    assert!(
        held as f64 >= 0.94 * intervals as f64,
        "{held} of {intervals}"
    );
}

#[test]
fn three_percent_of_node_are_told_by_a_run_that_has_nothing_else_to_tell() {
    let runs = runs("pair-node");
    assert_eq!(runs.len(), PAIRS);
    let slower = told(&runs, "3", 3.0, 1);
    assert_eq!((slower.right, slower.held), (PAIRS, PAIRS));
    let copy = told(&runs, "00", 0.0, 1);
    assert_eq!((copy.right, copy.wrong), (0, 0));
}

/// Runs of `prony compare --interleave A B -c 50` of servers of `examples/slower` with a budget of a minute (Node two, 1 % five), of which B is slower by
/// so many percent; with the blocks that others disturbed, which a run leaves out; `nb-…`: beside a process that takes 30 % of a core for 5 s in every 20. By name: the percent, and of each block the rates of B and A.
fn commands() -> BTreeMap<String, (f64, Vec<(f64, f64)>)> {
    let path = root().join("crates/stats/tests/pools/compare.csv");
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let mut rates: BTreeMap<(&str, &str, &str), BTreeMap<&str, f64>> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [run, slower, block, side, rate] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("five columns: {line}");
        };
        let of_block = rates.entry((run, slower, block)).or_default();
        of_block.insert(side, rate.parse().expect("a rate"));
    }
    let mut runs: BTreeMap<String, (f64, Vec<(f64, f64)>)> = BTreeMap::new();
    for ((run, slower, _), of_block) in rates {
        let percent = slower.parse().expect("a percentage");
        let (_, pairs) = runs.entry(run.to_owned()).or_insert((percent, Vec::new()));
        pairs.push((of_block["B"], of_block["A"]));
    }
    runs
}

#[test]
fn of_two_commands_a_slow_down_is_told_in_a_minute_and_equals_rarely() {
    let (mut told, mut planted, mut equals, mut claimed) = (0, 0, 0, 0);
    for (run, (percent, pairs)) in commands() {
        let seen = compare_at(&pairs, CONFIDENCE).expect("pairs");
        let is_claimed = matches!(seen.conclusion, Conclusion::Lower | Conclusion::Higher);
        println!(
            "{run}: {:.3} ({:.3} to {:.3}), {:?}",
            seen.ratio.0, seen.spread.low.0, seen.spread.high.0, seen.conclusion
        );
        if percent > 0.0 {
            planted += 1;
            told += usize::from(seen.conclusion == Conclusion::Lower);
            assert_ne!(seen.conclusion, Conclusion::Higher, "{run}");
        } else {
            equals += 1;
            claimed += usize::from(is_claimed);
        }
    }
    assert_eq!((planted, equals), (29, 15));
    assert!(told >= 27, "{told} of {planted}");
    assert!(claimed <= 2, "{claimed} of {equals}");
}
