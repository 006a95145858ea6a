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
use prony_stats::{
    CONFIDENCE, Comparison, Conclusion, FirstBlocks, POWER, Rate, Ratio, Siblings, Spread,
    SpreadKind, Variance, compare_at, compare_by, detectable, detectable_by, median, moderated,
    simultaneous, summarise, t_quantile, together,
};
use prony_testkit::root;

const SERVERS: [&str; 3] = ["rust", "go", "node"];
const METRICS: [&str; 3] = ["rate_per_s", "p50_ns", "cpu_ns_per_request"];
/// How trials were made, and the blocks that a run of two servers and a copy has in five minutes, by what a trial of the pools
/// took: 1.6 s, and 2.9 s in visits.
const METHODS: [(&str, usize); 2] = [("fresh", 60), ("visits", 34)];

/// Of each metric and each slow-down, the logarithms of its ratios to the server that has none, block by block.
type Pool = BTreeMap<&'static str, BTreeMap<String, Vec<f64>>>;

/// The pools of a kind: how its trials were made, and of which servers. `copies`: 64 blocks of a server and its copy alone, each in three visits
/// of 200 ms, as `compare` has them.
const KINDS: [(&str, &[&str]); 3] = [
    ("fresh", &SERVERS),
    ("visits", &SERVERS),
    ("copies", &["c", "rust", "go", "node", "python"]),
];

/// One recorded trial.
struct Row {
    block: u32,
    slower: String,
    /// In the order of [`METRICS`].
    values: [f64; 3],
}

fn rows(name: &str) -> Vec<Row> {
    let path = root().join(format!("crates/stats/tests/pools/{name}.csv"));
    let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let columns = METRICS.map(|metric| {
        let column = lines[0].iter().position(|name| *name == metric);
        column.expect("its column")
    });
    let row = |line: &Vec<&str>| Row {
        block: line[0].parse().expect("a block"),
        slower: line[1].to_owned(),
        values: columns.map(|column| line[column].parse().expect("a number")),
    };
    lines[1..].iter().map(row).collect()
}

fn pool(name: &str) -> Pool {
    let rows = rows(name);
    let bases = rows.iter().filter(|row| row.slower == "0");
    let bases: BTreeMap<u32, [f64; 3]> = bases.map(|row| (row.block, row.values)).collect();
    let mut all = Pool::new();
    for (at, metric) in METRICS.into_iter().enumerate() {
        let of_metric = all.entry(metric).or_default();
        for row in rows.iter().filter(|row| row.slower != "0") {
            if let Some(base) = bases.get(&row.block) {
                let logs = of_metric.entry(row.slower.clone()).or_default();
                logs.push(libm::log(row.values[at] / base[at]));
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
    pool.values().flat_map(|logs| centred(logs)).collect()
}

fn centred(logs: &[f64]) -> Vec<f64> {
    // What so many values miss their own mean by is smaller than what they miss the true one by.
    let n = logs.len() as f64;
    let wider = (n / (n - 1.0)).sqrt();
    logs.iter().map(|log| (log - mean(logs)) * wider).collect()
}

fn deviation(residuals: &[f64]) -> f64 {
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    (squares / residuals.len() as f64).sqrt()
}

/// So many blocks in which one server's values are those of the other times `e^difference`.
fn pairs(
    residuals: &[f64],
    difference: f64,
    blocks: usize,
    random: &mut Random,
) -> Vec<(f64, f64)> {
    let pair = |_| {
        let residual = residuals[random.below(residuals.len() as u64) as usize];
        let sign = if random.chance(1, 2) { 1.0 } else { -1.0 };
        (1e4 * libm::exp(difference + sign * residual), 1e4)
    };
    (0..blocks).map(pair).collect()
}

/// A run of these.
fn drawn(residuals: &[f64], difference: f64, blocks: usize, random: &mut Random) -> Comparison {
    let pairs = pairs(residuals, difference, blocks, random);
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

/// A document has the servers of all languages, each in several cells; their variances are moderated by each other.
#[test]
fn of_every_server_in_a_document_intervals_hold_the_ratio() {
    let tries = prony_testkit::seeds(20, 1_000);
    for (method, servers) in KINDS {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let of_server = |server: &&str| residuals(&pool(&format!("{method}-{server}"))[metric]);
            let residuals: Vec<Vec<f64>> = servers.iter().map(of_server).collect();
            for (blocks, cells) in [(6, 3), (10, 4), (20, 2)] {
                let mut random = Random::of(at as u64, method);
                let mut held = vec![0_u64; servers.len()];
                let (mut any_missed, mut width, mut own_width) = (0_u64, 0.0, 0.0);
                for _ in 0..tries {
                    let mut of_server = |of: &Vec<f64>| {
                        let all = (0..cells).map(|_| pairs(of, 0.0, blocks, &mut random));
                        all.collect::<Vec<_>>()
                    };
                    let document: Vec<_> = residuals.iter().map(&mut of_server).collect();
                    let of_cells = |of: &Vec<Vec<(f64, f64)>>| -> Vec<Variance> {
                        of.iter()
                            .filter_map(|pairs| Variance::from_pairs(pairs))
                            .collect()
                    };
                    let variances: Vec<Vec<Variance>> = document.iter().map(of_cells).collect();
                    let (moderated, alike) = moderated(&variances);
                    let siblings = variances.iter().map(|of| Siblings::new(of, alike));
                    let of_family = together(&siblings.collect::<Vec<_>>());
                    let mut is_missed = false;
                    for ((of, variances), held) in document.iter().zip(moderated).zip(&mut held) {
                        for (pairs, variance) in of.iter().zip(variances) {
                            let by = |confidence| {
                                compare_by(pairs, confidence, Some(variance))
                                    .expect("pairs")
                                    .spread
                            };
                            let holds = |of: &Spread<Ratio>| of.low.0 <= 1.0 && of.high.0 >= 1.0;
                            let together = by(of_family);
                            *held += u64::from(holds(&by(CONFIDENCE)));
                            is_missed |= !holds(&together);
                            let own = compare_at(pairs, simultaneous(servers.len() * cells))
                                .expect("pairs");
                            let log = |of: &Spread<Ratio>| libm::log(of.high.0 / of.low.0);
                            width += log(&together);
                            own_width += log(&own.spread);
                        }
                    }
                    any_missed += u64::from(is_missed);
                }
                let count = tries * cells as u64;
                let missed = any_missed as f64 / tries as f64;
                let held: Vec<f64> = held
                    .iter()
                    .map(|held| *held as f64 / count as f64)
                    .collect();
                let name = format!("{method}, {metric}, {blocks} blocks, {cells} cells");
                println!(
                    "{name}: held {held:.4?}, any missed {missed:.4}, {:.2} of the width",
                    width / own_width
                );
                for (held, server) in held.iter().zip(servers) {
                    assert!(
                        *held >= 0.94 - slack(0.95, count),
                        "{name}, {server}: {held}"
                    );
                }
                assert!(missed <= 0.055 + slack(0.05, tries), "{name}: {missed}");
            }
        }
    }
}

/// What a run that is given a time keeps of its blocks: one in ten is disturbed and up to a quarter slower on one side, nine of ten of these are
/// known by who used the cores and left out. `None` where that is over a third: nothing is claimed then.
fn kept_in_time(residuals: &[f64], random: &mut Random) -> Option<Vec<(f64, f64)>> {
    // By what starting took.
    let blocks = 10 + random.below(21) as usize;
    let mut all = pairs(residuals, 0.0, blocks, random);
    all.retain_mut(|(value, base)| {
        if !random.chance(1, 10) {
            return true;
        }
        let side = if random.chance(1, 2) { value } else { base };
        *side *= 1.0 - 0.25 * random.unit();
        random.chance(1, 10)
    });
    (3 * all.len() >= 2 * blocks).then_some(all)
}

#[test]
fn of_runs_in_a_time_with_blocks_left_out_intervals_hold_the_ratio() {
    let tries = prony_testkit::seeds(400, 10_000);
    let (method, servers) = KINDS[2];
    for server in servers {
        for (metric, logs) in pool(&format!("{method}-{server}")) {
            let residuals = residuals(&logs);
            let mut random = Random::of(2, server);
            let kept = (0..tries).filter_map(|_| kept_in_time(&residuals, &mut random));
            let compared = kept.map(|kept| compare_at(&kept, CONFIDENCE).expect("pairs"));
            let (mut decided, mut held) = (0, 0);
            for of in compared {
                decided += 1;
                held += u64::from(of.spread.low.0 <= 1.0 && of.spread.high.0 >= 1.0);
            }
            let share = held as f64 / decided as f64;
            println!("{server}, {metric}: {decided} of {tries} decided, {share:.4} held");
            assert!(
                share >= 0.94 - slack(0.95, decided),
                "{server} {metric}: {share}"
            );
            assert!(decided * 10 >= tries * 9, "{server} {metric}: {decided}");
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

/// What the first blocks of a comparison and of a copy show, which have the reference in common.
fn first_blocks(sides: &[Vec<(f64, f64)>; 2], blocks: usize) -> FirstBlocks {
    let own = sides.each_ref().map(|pairs| {
        let variance = Variance::from_pairs(&pairs[..blocks]);
        vec![variance.expect("blocks")]
    });
    let variances: Vec<Variance> = moderated(&own).0.into_iter().flatten().collect();
    let squares: f64 = variances.iter().map(|of| of.variance).sum();
    FirstBlocks {
        blocks,
        comparisons: sides.len(),
        deviation: (squares / sides.len() as f64).sqrt(),
        degrees: variances[0].degrees,
        confidence: CONFIDENCE,
    }
}

#[test]
fn what_a_run_will_tell_is_foretold_after_three_fifths_of_its_blocks() {
    let tries = prony_testkit::seeds(40, 3_000);
    for server in SERVERS {
        let pool = pool(&format!("visits-{server}"));
        // Of one side of a ratio.
        let residuals = residuals(&pool["rate_per_s"]);
        let residuals: Vec<f64> = residuals.iter().map(|of| of / 2_f64.sqrt()).collect();
        for (seen, blocks) in [(8, 13), (11, 18), (21, 34)] {
            let name = format!("{server}, {seen} of {blocks} blocks");
            let mut random = Random::of(blocks as u64, server);
            let (mut held, mut widest) = (0_u64, 0.0_f64);
            for _ in 0..tries {
                let [a, b, copy] = [0, 1, 2].map(|_| pairs(&residuals, 0.0, blocks, &mut random));
                let beside_a = |of: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
                    of.iter().zip(&a).map(|(of, a)| (of.0, a.0)).collect()
                };
                let sides = [b, copy].map(beside_a);
                let foretold = first_blocks(&sides, seen).forecast(blocks);
                let (low, high) = foretold.expect("blocks to come");
                let end = first_blocks(&sides, blocks);
                let told = detectable_by(end.deviation, blocks, end.degrees, end.confidence);
                held += u64::from((low.0..=high.0).contains(&told.expect("blocks").0));
                widest = widest.max(high.0 / low.0);
            }
            let held = held as f64 / tries as f64;
            println!("{name}: foretold {held:.3}, at most {widest:.2} apart");
            assert!(held >= 0.88 - slack(0.9, tries), "{name}: {held}");
            assert!(widest <= 2.1, "{name}: {widest}");
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

/// What a trial with the defaults of an experiment takes: windows of 10 s after 2 s of warm-up. Five minutes have seven blocks of two
/// servers and a copy.
const DEFAULT_BLOCKS: usize = 7;

/// At equal time, beside the defaults: half the width of an interval, of t and of the standard error.
#[test]
fn visits_give_narrower_intervals_than_windows_of_ten_seconds_in_the_same_time() {
    let [_, (_, visits_blocks)] = METHODS;
    let half = |pool: &Pool, metric: &str, blocks: usize| {
        let quantile = t_quantile(0.975, (blocks - 1) as f64).expect("degrees");
        quantile * deviation(&residuals(&pool[metric])) / (blocks as f64).sqrt()
    };
    for server in SERVERS {
        let [default, visits] =
            ["default", "visits"].map(|method| pool(&format!("{method}-{server}")));
        for metric in METRICS {
            let by_default = half(&default, metric, DEFAULT_BLOCKS);
            let in_visits = half(&visits, metric, visits_blocks);
            println!(
                "{server}, {metric}: ±{:.2} % by default, ±{:.2} % in visits; {:.2} of the width",
                100.0 * by_default,
                100.0 * in_visits,
                in_visits / by_default
            );
            assert!(in_visits < by_default, "{server} {metric}");
        }
    }
}

/// Whether a difference is claimed, of logarithms of paired ratios, one a block.
fn is_claimed(logs: &[f64], confidence: f64) -> bool {
    let pairs: Vec<(f64, f64)> = logs.iter().map(|&log| (libm::exp(log), 1.0)).collect();
    let seen = compare_at(&pairs, confidence).expect("pairs").conclusion;
    matches!(seen, Conclusion::Higher | Conclusion::Lower)
}

/// In how many of so many runs something was claimed.
#[derive(Default)]
struct Claims {
    runs: u64,
    by_metric: [u64; 3],
    /// Of any metric.
    any: u64,
}

impl Claims {
    fn add(&mut self, claimed: [bool; 3]) {
        self.runs += 1;
        for (count, is_claimed) in self.by_metric.iter_mut().zip(claimed) {
            *count += u64::from(is_claimed);
        }
        self.any += u64::from(claimed.contains(&true));
    }

    fn share(&self, count: u64) -> f64 {
        count as f64 / self.runs as f64
    }

    fn by_metric(&self) -> [f64; 3] {
        self.by_metric.map(|count| self.share(count))
    }
}

/// Every pool, with the blocks that five minutes have by its method.
fn pools() -> impl Iterator<Item = (String, usize, Pool)> {
    let of = |(method, blocks)| {
        SERVERS.into_iter().map(move |server| {
            let name = format!("{method}-{server}");
            let pool = pool(&name);
            (name, blocks, pool)
        })
    };
    METHODS.into_iter().flat_map(of)
}

/// Sides of a block are exchangeable where both are the same program, so that flipping the sign of whole blocks, of all metrics and
/// all comparisons alike, makes runs as good as the recorded ones. What follows within a run upon each other stays together.
#[test]
fn of_recorded_blocks_whose_sides_are_flipped_at_random_few_claim_a_difference() {
    let tries = prony_testkit::seeds(100, 10_000);
    let mut shares = Vec::new();
    for (name, _, pool) in pools() {
        let levels: Vec<&String> = pool[METRICS[0]].keys().collect();
        // One copy as it was recorded; and all servers of the run, each less its own slow-down.
        for family in [vec![levels[0]], levels] {
            let of = |metric: &str| -> Vec<Vec<f64>> {
                let logs = family.iter().map(|level| &pool[metric][*level]);
                let is_copy = family.len() == 1;
                let as_equal = logs.map(|logs| if is_copy { logs.clone() } else { centred(logs) });
                as_equal.collect()
            };
            let recorded = METRICS.map(of);
            let all = recorded[0][0].len();
            for blocks in [6, 12, all] {
                let mut random = Random::of(blocks as u64, &name);
                let mut claims = Claims::default();
                for _ in 0..tries {
                    let first = random.below((all - blocks + 1) as u64) as usize;
                    let signs: Vec<f64> = (0..blocks)
                        .map(|_| if random.chance(1, 2) { 1.0 } else { -1.0 })
                        .collect();
                    let confidence = simultaneous(family.len());
                    let flipped = |logs: &Vec<f64>| {
                        let logs = logs[first..].iter().zip(&signs);
                        let logs: Vec<f64> = logs.map(|(log, sign)| log * sign).collect();
                        is_claimed(&logs, confidence)
                    };
                    claims.add(recorded.each_ref().map(|all| all.iter().any(flipped)));
                }
                let [rate, p50, cpu] = claims.by_metric();
                println!(
                    "{name}, {} compared, {blocks} blocks: rate {rate:.3}, p50 {p50:.3}, CPU {cpu:.3}; any of the three {:.3}",
                    family.len(),
                    claims.share(claims.any)
                );
                shares.extend(claims.by_metric());
                for share in claims.by_metric() {
                    // Six of sixteen recorded blocks are few: their own tails are seen as often as they stand there.
                    let limit = 0.07 + slack(0.05, tries);
                    assert!(share <= limit, "{name}, {blocks} blocks: {share}");
                }
            }
        }
    }
    let most = shares.iter().copied().fold(0.0, f64::max);
    let over = shares.iter().filter(|share| **share > 0.055).count();
    println!(
        "by metric {:.3} on average, {most:.3} at the most; over 0.055 in {over} of {}",
        mean(&shares),
        shares.len()
    );
    assert!(mean(&shares) <= 0.055, "{shares:?}");
}

/// By how much the three metrics of each recorded block miss their means together.
fn joint_residuals(pool: &Pool) -> Vec<[f64; 3]> {
    let columns = METRICS.map(|metric| residuals(&pool[metric]));
    let blocks = 0..columns[0].len();
    blocks
        .map(|at| columns.each_ref().map(|of| of[at]))
        .collect()
}

/// What metrics are claimed of one copy, in a run whose blocks are drawn whole.
fn claimed_of_copy(
    joint: &[[f64; 3]],
    blocks: usize,
    confidence: f64,
    random: &mut Random,
) -> [bool; 3] {
    let mut logs: [Vec<f64>; 3] = Default::default();
    for _ in 0..blocks {
        let block = joint[random.below(joint.len() as u64) as usize];
        let sign = if random.chance(1, 2) { 1.0 } else { -1.0 };
        for (of_metric, residual) in logs.iter_mut().zip(block) {
            of_metric.push(sign * residual);
        }
    }
    logs.map(|logs| is_claimed(&logs, confidence))
}

/// Each metric is a family by itself, so that a run of a copy claims something of *any* of them more often than of each; by how
/// much, and what it would cost to take them together, is what docs/decisions/claims.md rests on.
#[test]
fn of_a_copy_any_metric_at_all_is_claimed_in_few_runs_more_than_each_by_itself() {
    let tries = prony_testkit::seeds(200, 10_000);
    let (mut by_metric, mut apart, mut together) = (0.0_f64, Vec::new(), Vec::new());
    for (name, five_minutes, pool) in pools() {
        let joint = joint_residuals(&pool);
        for blocks in [6, 12, five_minutes] {
            let [own, all] = [1, METRICS.len()].map(|count| {
                let mut random = Random::of(blocks as u64, &name);
                let mut claims = Claims::default();
                for _ in 0..tries {
                    let confidence = simultaneous(count);
                    claims.add(claimed_of_copy(&joint, blocks, confidence, &mut random));
                }
                claims
            });
            let (any, any_together) = (own.share(own.any), all.share(all.any));
            let [rate, p50, cpu] = own.by_metric();
            println!(
                "{name}, {blocks} blocks: rate {rate:.3}, p50 {p50:.3}, CPU {cpu:.3}; any of the three {any:.3}, taken together {any_together:.3}"
            );
            by_metric = own.by_metric().into_iter().fold(by_metric, f64::max);
            apart.push(any);
            together.push(any_together);
            for share in own.by_metric() {
                assert!(share <= 0.055 + slack(0.05, tries), "{name}: {share}");
            }
            assert!(
                any_together <= 0.055 + slack(0.05, tries),
                "{name}: {any_together}"
            );
            // No more than three times that of one, whatever they have in common.
            assert!(any <= 3.0 * 0.055 + slack(0.15, tries), "{name}: {any}");
        }
    }
    let [apart, together] = [apart, together].map(|shares| {
        let most = shares.iter().copied().fold(0.0, f64::max);
        format!("{:.3} on average, {most:.3} at the most", mean(&shares))
    });
    println!("each {by_metric:.3} at the most; any {apart}; taken together {together}");
    for blocks in [6, 12, 34, 60] {
        let least = |count| detectable(0.03, blocks, count).expect("blocks enough").0;
        println!(
            "{blocks} blocks, deviation 3 %: from {:.2} % on are told in 4 of 5; three metrics together {:.2} %, four {:.2} %",
            100.0 * least(1),
            100.0 * least(3),
            100.0 * least(4)
        );
    }
}

/// By how much values of one cell miss its median, as logarithms, of all cells of a pool together.
fn around_medians(name: &str, metric: usize) -> Vec<f64> {
    let mut cells: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in rows(name) {
        let logs = cells.entry(row.slower).or_default();
        logs.push(libm::log(row.values[metric]));
    }
    let of = |logs: &Vec<f64>| {
        let middle = median(logs).expect("values");
        logs.iter().map(move |log| log - middle).collect::<Vec<_>>()
    };
    cells.values().flat_map(of).collect()
}

/// What was seen of intervals: whether they were intervals at all, and held the truth.
#[derive(Clone, Copy, Default)]
struct Held {
    intervals: u64,
    held: u64,
}

impl Held {
    fn add(&mut self, holds: Option<bool>) {
        self.intervals += u64::from(holds.is_some());
        self.held += u64::from(holds == Some(true));
    }

    fn share(self) -> f64 {
        self.held as f64 / self.intervals as f64
    }
}

#[test]
fn intervals_of_medians_hold_those_of_recorded_trials() {
    let tries = prony_testkit::seeds(200, 20_000);
    let mut shares = Vec::new();
    for (name, _, _) in pools() {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let logs = around_medians(&name, at);
            let truth = libm::exp(median(&logs).expect("values"));
            for blocks in [6, 12] {
                let mut random = Random::of(blocks as u64, &name);
                let mut seen = Held::default();
                for _ in 0..tries {
                    let drawn = |_| logs[random.below(logs.len() as u64) as usize];
                    let values: Vec<f64> = (0..blocks).map(drawn).map(libm::exp).collect();
                    let spread = summarise::<Rate>(&values).expect("values").spread;
                    let holds = (spread.low.0..=spread.high.0).contains(&truth);
                    seen.add((spread.kind == SpreadKind::Interval).then_some(holds));
                }
                let share = seen.share();
                println!(
                    "{name}, {metric}, {blocks} blocks: median held in {share:.3} of {}",
                    seen.intervals
                );
                assert!(
                    share >= 0.94 - slack(0.95, seen.intervals),
                    "{name} {metric}: {share}"
                );
                shares.push(share);
            }
        }
    }
    let least = shares.iter().copied().fold(1.0, f64::min);
    let most = shares.iter().copied().fold(0.0, f64::max);
    println!("held in {least:.3} to {most:.3}");
}

/// Whether Student's interval of `some` holds the mean of `others`, which misses the truth itself; as it is, and widened by that.
fn holds_other(some: &[f64], others: &[f64]) -> Option<[bool; 2]> {
    let pairs: Vec<(f64, f64)> = some.iter().map(|&log| (libm::exp(log), 1.0)).collect();
    let seen = compare_at(&pairs, simultaneous(1)).expect("pairs");
    if seen.spread.kind != SpreadKind::Interval {
        return None;
    }
    let half = libm::log(seen.spread.high.0 / seen.ratio.0);
    let wider = (1.0 + some.len() as f64 / others.len() as f64).sqrt();
    let apart = (libm::log(seen.ratio.0) - mean(others)).abs();
    Some([half, half * wider].map(|half| apart <= half))
}

/// The truth is what blocks say that are not in the interval. It has an error of its own: an interval from n blocks, held against the
/// mean of m others, is to be wider by √(1 + n/m).
#[test]
fn intervals_hold_what_blocks_say_that_are_not_in_them() {
    let tries = prony_testkit::seeds(30, 2_000);
    let mut by_parity = [[Held::default(); 2]; 3];
    let mut shares = Vec::new();
    for (name, _, pool) in pools() {
        for (at, metric) in METRICS.into_iter().enumerate() {
            for logs in pool[metric].values() {
                let part = |odd: usize| -> Vec<f64> {
                    logs.iter().skip(odd).step_by(2).copied().collect()
                };
                for odd in [0, 1] {
                    let holds = holds_other(&part(odd), &part(1 - odd));
                    for (form, seen) in by_parity[at].iter_mut().enumerate() {
                        seen.add(holds.map(|holds| holds[form]));
                    }
                }
            }
            let blocks = 6;
            let mut random = Random::of(1, &name);
            let mut seen = [Held::default(); 2];
            for _ in 0..tries {
                for logs in pool[metric].values() {
                    let mut logs = logs.clone();
                    random.shuffle(&mut logs);
                    let half = logs.len() / 2;
                    let holds = holds_other(&logs[..blocks], &logs[half..]);
                    for (form, seen) in seen.iter_mut().enumerate() {
                        seen.add(holds.map(|holds| holds[form]));
                    }
                }
            }
            let [as_is, widened] = seen.map(Held::share);
            println!(
                "{name}, {metric}, 6 blocks against the other half: held in {as_is:.3} as it is, {widened:.3} widened"
            );
            shares.push(widened);
            // Of a pool of 16 or 20 blocks a far value is on one side or on the other, and a percentile has few different
            // values: the 94 % that are asked for are not reached by each (docs/method.md, What was shown).
            assert!(
                widened >= 0.89 - slack(0.95, tries),
                "{name} {metric}: {widened}"
            );
        }
    }
    let least = shares.iter().copied().fold(1.0, f64::min);
    let under = shares.iter().filter(|share| **share < 0.94).count();
    println!(
        "widened {:.3} on average, {least:.3} at the least; under 0.94 in {under} of {}",
        mean(&shares),
        shares.len()
    );
    assert!(mean(&shares) >= 0.93, "{shares:?}");
    for (metric, [as_is, widened]) in METRICS.into_iter().zip(by_parity) {
        println!(
            "{metric}, even blocks against odd ones and back: {} of {} as it is, {} widened",
            as_is.held, as_is.intervals, widened.held
        );
        assert!(
            widened.share() >= 0.94 - slack(0.95, widened.intervals),
            "{metric}"
        );
    }
}
