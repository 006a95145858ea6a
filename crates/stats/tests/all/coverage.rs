//! What intervals and claims promise, held against simulated runs of which the truth is known: how often an interval
//! holds it, how often something is claimed where nothing is, and how often what a run says that it can tell is told.
//! `PRONY_LONG=1` makes as many replicates as the figures in docs/method.md rest on.

use prony_base::Random;
use prony_stats::{
    CONFIDENCE, Comparison, Conclusion, POWER, Rate, Siblings, SpreadKind, Summary, Variance,
    compare, compare_at, compare_by, detectable, median, moderated, normal_quantile, simultaneous,
    summarise, t_quantile, together,
};

/// Standard deviation of the logarithm of a trial's rate.
const NOISE: f64 = 0.03;

fn normal(random: &mut Random) -> f64 {
    let unit = random.unit().clamp(1e-12, 1.0 - 1e-12);
    normal_quantile(unit).expect("it is between 0 and 1")
}

/// How trials come about: for each block the logarithm of the rate of each of so many equal subjects.
type World = fn(&mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>>;

/// Each trial by itself.
fn independent(random: &mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>> {
    let mut block = || (0..subjects).map(|_| NOISE * normal(random)).collect();
    (0..blocks).map(|_| block()).collect()
}

fn shifted(block: Vec<f64>, by: f64) -> Vec<f64> {
    block.into_iter().map(|log| log + by).collect()
}

/// The machine becomes a third slower over the run.
fn drift(random: &mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>> {
    let all = independent(random, blocks, subjects)
        .into_iter()
        .enumerate();
    all.map(|(at, block)| shifted(block, -0.4 * at as f64 / blocks as f64))
        .collect()
}

/// Blocks share a mood of the machine that lasts for several of them, three times as large as a trial's own noise.
fn moods(random: &mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>> {
    let mut mood = 3.0 * NOISE * normal(random);
    let mut all = Vec::new();
    for block in independent(random, blocks, subjects) {
        mood = 0.8 * mood + 0.6 * 3.0 * NOISE * normal(random);
        all.push(shifted(block, mood));
    }
    all
}

/// One trial in ten is disturbed: up to a quarter slower.
fn outliers(random: &mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>> {
    let mut all = independent(random, blocks, subjects);
    for log in all.iter_mut().flatten() {
        if random.chance(1, 10) {
            *log -= 0.25 * random.unit();
        }
    }
    all
}

/// Each start is in one of two modes, 6 % apart.
fn two_modes(random: &mut Random, blocks: usize, subjects: usize) -> Vec<Vec<f64>> {
    let mut all = independent(random, blocks, subjects);
    for log in all.iter_mut().flatten() {
        *log = 0.3 * *log + if random.chance(1, 2) { 0.06 } else { 0.0 };
    }
    all
}

const WORLDS: [(&str, World); 5] = [
    ("independent", independent),
    ("drift", drift),
    ("moods", moods),
    ("outliers", outliers),
    ("two modes", two_modes),
];

/// The pairs of subject `number` and the first one, where the former is faster by so much.
fn pairs(world: &[Vec<f64>], number: usize, difference: f64) -> Vec<(f64, f64)> {
    let pair = |block: &Vec<f64>| {
        (
            1e4 * libm::exp(block[number] + difference),
            1e4 * libm::exp(block[0]),
        )
    };
    world.iter().map(pair).collect()
}

fn is_claimed(pairs: &[(f64, f64)], comparisons: usize) -> bool {
    let compared = compare_at(pairs, simultaneous(comparisons)).expect("pairs");
    matches!(compared.conclusion, Conclusion::Higher | Conclusion::Lower)
}

/// A share, and three standard errors of it in so many tries.
fn slack(share: f64, tries: u64) -> f64 {
    3.0 * (share * (1.0 - share) / tries as f64).sqrt()
}

#[test]
fn the_interval_of_a_paired_ratio_holds_it() {
    let tries = prony_testkit::seeds(1_000, 20_000);
    for (name, world) in WORLDS {
        for blocks in [6, 12, 20] {
            let mut random = Random::of(blocks as u64, name);
            let (mut held, mut given) = (0, 0);
            for _ in 0..tries {
                let trials = world(&mut random, blocks, 2);
                let compared = compare(&pairs(&trials, 1, 0.1)).expect("pairs");
                if compared.spread.kind == SpreadKind::Interval {
                    given += 1;
                    let truth = libm::exp(0.1);
                    let (low, high) = (compared.spread.low.0, compared.spread.high.0);
                    held += u64::from((low..=high).contains(&truth));
                }
            }
            let share = held as f64 / given as f64;
            println!("{name}, {blocks} blocks: {share:.4} of {given}");
            assert!(
                share >= 0.94 - slack(0.95, given),
                "{name}, {blocks} blocks: {share}"
            );
            assert!(given * 2 > tries, "{name}: an interval is usual");
        }
    }
}

#[test]
fn of_equal_subjects_a_document_claims_a_difference_in_one_of_twenty_at_the_most() {
    const SUBJECTS: usize = 10;
    let tries = prony_testkit::seeds(500, 10_000);
    for (name, world) in WORLDS {
        for blocks in [6, 12] {
            let mut random = Random::of(blocks as u64, name);
            let mut claimed = 0;
            for _ in 0..tries {
                // All against the same reference, so that their claims are not independent.
                let trials = world(&mut random, blocks, SUBJECTS + 1);
                let mut all = 1..=SUBJECTS;
                let any = all.any(|number| is_claimed(&pairs(&trials, number, 0.0), SUBJECTS));
                claimed += u64::from(any);
            }
            let share = claimed as f64 / tries as f64;
            println!("{name}, {blocks} blocks: {share:.4}");
            assert!(
                share <= 0.055 + slack(0.05, tries),
                "{name}, {blocks} blocks: {share}"
            );
        }
    }
}

/// All comparisons of a workload, in which each subject has so many cells and is as noisy as the reference or up to three times that.
fn document(
    world: World,
    random: &mut Random,
    blocks: usize,
    cells: usize,
    are_a_family: bool,
) -> Vec<Vec<Comparison>> {
    let of_cell = |random: &mut Random, noisier: f64| {
        let trials = world(random, blocks, 2);
        let mut pairs = pairs(&trials, 1, 0.1);
        for (value, _) in &mut pairs {
            *value *= libm::exp(noisier * NOISE * normal(random));
        }
        pairs
    };
    let pairs = [0.0, 0.0, 1.0, 2.0, 3.0].map(|noisier| {
        let all = (0..cells).map(|_| of_cell(random, noisier));
        all.collect::<Vec<_>>()
    });
    let own = pairs.each_ref().map(|of| {
        let of = of.iter().filter_map(|pairs| Variance::from_pairs(pairs));
        of.collect::<Vec<_>>()
    });
    let (variances, alike) = moderated(&own);
    let siblings = own.each_ref().map(|own| Siblings::new(own, alike));
    let confidence = match are_a_family {
        true => together(&siblings),
        false => CONFIDENCE,
    };
    let by = |(pairs, variance): (&Vec<(f64, f64)>, &Variance)| {
        compare_by(pairs, confidence, Some(*variance)).expect("pairs")
    };
    let subjects = pairs.iter().zip(variances);
    subjects
        .map(|(pairs, variances)| pairs.iter().zip(&variances).map(by).collect())
        .collect()
}

#[test]
fn intervals_by_moderated_variances_hold_the_ratios_of_every_subject() {
    let tries = prony_testkit::seeds(20, 2_000);
    for (name, world) in WORLDS {
        for (blocks, cells) in [(6, 2), (6, 6), (12, 4)] {
            let mut random = Random::of(blocks as u64, name);
            let (mut held, mut given) = ([0; 5], [0; 5]);
            let mut any_missed = 0;
            let mut widths = 0.0;
            for _ in 0..tries {
                let alone = document(world, &mut random, blocks, cells, false);
                let together = document(world, &mut random, blocks, cells, true);
                let holds = |of: &Comparison| {
                    let (low, high) = (of.spread.low.0, of.spread.high.0);
                    (low..=high).contains(&libm::exp(0.1))
                };
                for (at, of) in alone.iter().enumerate() {
                    let of = of
                        .iter()
                        .filter(|of| of.spread.kind == SpreadKind::Interval);
                    held[at] += of.clone().filter(|of| holds(of)).count();
                    given[at] += of.count();
                }
                let mut all = together.iter().flatten();
                widths += all
                    .clone()
                    .map(|of| libm::log(of.spread.high.0 / of.spread.low.0))
                    .sum::<f64>()
                    / (5 * cells) as f64;
                any_missed += u64::from(all.any(|of| !holds(of)));
            }
            let shares: Vec<f64> = (0..5)
                .map(|at| held[at] as f64 / given[at] as f64)
                .collect();
            let missed = any_missed as f64 / tries as f64;
            println!(
                "{name}, {blocks} blocks, {cells} cells: {shares:.4?} held, any missed {missed:.4}, {:.4} wide",
                widths / tries as f64
            );
            for (share, given) in shares.iter().zip(given) {
                assert!(
                    *share >= 0.94 - slack(0.95, given as u64),
                    "{name}, {blocks} blocks, {cells} cells: {share}"
                );
            }
            assert!(
                missed <= 0.055 + slack(0.05, tries),
                "{name}, {blocks} blocks, {cells} cells: {missed}"
            );
        }
    }
}

/// Whatever the noise is, if the sides are equal, each block's ratio is as likely as its inverse.
#[test]
fn with_the_signs_of_blocks_thrown_like_coins_nothing_is_claimed() {
    const COMPARISONS: usize = 5;
    let tries = prony_testkit::seeds(500, 10_000);
    for (name, world) in WORLDS {
        let mut random = Random::of(8, name);
        let mut claimed = 0;
        for _ in 0..tries {
            let mut any = false;
            for _ in 0..COMPARISONS {
                let mut trials = world(&mut random, 8, 2);
                for block in &mut trials {
                    if random.chance(1, 2) {
                        block.reverse();
                    }
                }
                any |= is_claimed(&pairs(&trials, 1, 0.0), COMPARISONS);
            }
            claimed += u64::from(any);
        }
        let share = claimed as f64 / tries as f64;
        println!("{name}: {share:.4}");
        assert!(share <= 0.055 + slack(0.05, tries), "{name}: {share}");
    }
}

#[test]
fn what_a_run_says_that_it_can_tell_is_told_in_four_of_five() {
    let tries = prony_testkit::seeds(1_000, 20_000);
    for (blocks, comparisons) in [(6, 1), (6, 10), (12, 4), (30, 20)] {
        let deviation = NOISE * 2.0_f64.sqrt();
        let least = detectable(deviation, blocks, comparisons)
            .expect("blocks enough")
            .0;
        let mut random = Random::of(blocks as u64, "power");
        let (mut told, mut wrong) = (0, 0);
        for _ in 0..tries {
            let trials = independent(&mut random, blocks, 2);
            let pairs = pairs(&trials, 1, libm::log1p(least));
            let compared = compare_at(&pairs, simultaneous(comparisons)).expect("pairs");
            told += u64::from(compared.conclusion == Conclusion::Higher);
            wrong += u64::from(compared.conclusion == Conclusion::Lower);
        }
        let share = told as f64 / tries as f64;
        println!(
            "{blocks} blocks, {comparisons} comparisons: {:.2} % told in {share:.4}",
            least * 100.0
        );
        assert!(
            (share - POWER).abs() <= 0.01 + slack(POWER, tries),
            "{blocks} blocks: {share}"
        );
        assert_eq!(wrong, 0, "never the wrong sign");
    }
}

/// Rates of one subject with their true median, by name.
fn single(name: &str, random: &mut Random, blocks: usize) -> Vec<f64> {
    let mut logs = |world: World| world(random, blocks, 1).into_iter().flatten().collect();
    let logs: Vec<f64> = match name {
        "normal" => {
            let value = |_| 1.0 + NOISE * normal(random);
            return (0..blocks).map(value).collect();
        }
        "log-normal" => (0..blocks).map(|_| normal(random)).collect(),
        "outliers" => logs(outliers),
        "two modes" => logs(two_modes),
        other => panic!("{other}"),
    };
    logs.into_iter().map(libm::exp).collect()
}

/// Width of Student's interval of the mean, where `t` is the quantile.
fn t_width(values: &[f64], t: f64) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    2.0 * t * (squares / (n - 1.0) / n).sqrt()
}

#[test]
fn the_interval_of_a_median_holds_it_and_is_hardly_wider_than_that_of_a_mean() {
    let tries = prony_testkit::seeds(1_000, 20_000);
    for name in ["normal", "log-normal", "outliers", "two modes"] {
        let mut random = Random::of(1, name);
        let truth = match name {
            "normal" | "log-normal" => 1.0,
            "two modes" => libm::exp(0.03),
            _ => median(&single(name, &mut random, 400_001)).expect("values"),
        };
        for blocks in [6, 7, 8, 9, 10, 11, 12, 20, 27] {
            let t = t_quantile(0.975, (blocks - 1) as f64).expect("degrees");
            let (mut held, mut given, mut width, mut of_mean) = (0, 0, 0.0, 0.0);
            for _ in 0..tries {
                let values = single(name, &mut random, blocks);
                let seen: Summary<Rate> = summarise(&values).expect("values");
                if seen.spread.kind == SpreadKind::Interval {
                    let (low, high) = (seen.spread.low.0, seen.spread.high.0);
                    given += 1;
                    held += u64::from((low..=high).contains(&truth));
                    width += high - low;
                    of_mean += t_width(&values, t);
                }
            }
            let (share, ratio) = (held as f64 / given as f64, width / of_mean);
            println!(
                "{name}, {blocks} blocks: {share:.4} of {given}, {ratio:.2} of Student's width"
            );
            assert!(
                share >= 0.94 - slack(0.95, given),
                "{name}, {blocks} blocks: {share}"
            );
            assert!(
                name != "normal" || ratio <= 1.3,
                "{name}, {blocks} blocks: {ratio}"
            );
        }
    }
}
