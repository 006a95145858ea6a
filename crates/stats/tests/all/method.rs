//! The arithmetic of docs/method.md, done again: each number that this computes is read out of the page, so that a change
//! of either is seen. Its commands are tried by `crates/cli/tests/all/readme.rs`.

use std::collections::BTreeMap;
use std::fs;

use prony_stats::{
    BLOCKS_INTERVAL_MIN, CONFIDENCE, CURVATURE_MIN, Conclusion, Growth, HALF_WIDTH_MAX,
    PERIODS_MIN, POWER, Rate, SECONDS_INTERVAL_MIN, SIZES_FACTOR_MIN, SIZES_MIN, SpreadKind,
    compare, compare_at, detectable, median, pooled_deviation, scaling, simultaneous, summarise,
    t_quantile,
};

fn page() -> String {
    fs::read_to_string(prony_testkit::root().join("docs/method.md")).expect("the page")
}

/// A worked example: what is given and what follows, by name, as it is printed.
struct Example {
    name: String,
    lines: BTreeMap<String, Vec<String>>,
}

impl Example {
    /// All of the page: blocks whose first line is `example NAME`, then `name = numbers   # how`.
    fn all() -> Vec<Example> {
        let page = page();
        let blocks = page.split("```text\nexample ").skip(1);
        let read = |block: &str| {
            let block = block.split("```").next().expect("its end");
            let (name, lines) = block.split_once('\n').expect("a line for its name");
            let line = |line: &str| {
                let (name, rest) = line.split_once('=').expect("name = numbers");
                let numbers = rest.split('#').next().unwrap_or_default();
                let numbers = numbers.split_whitespace().map(str::to_owned);
                (name.trim().to_owned(), numbers.collect())
            };
            Example {
                name: name.to_owned(),
                lines: lines.lines().map(line).collect(),
            }
        };
        blocks.map(read).collect()
    }

    fn named(name: &str) -> Example {
        let mut all = Example::all().into_iter();
        let found = all.find(|example| example.name == name);
        found.unwrap_or_else(|| panic!("docs/method.md has no example {name}"))
    }

    /// Numbers that are given.
    fn given(&mut self, name: &str) -> Vec<f64> {
        let texts = self.lines.remove(name);
        let texts = texts.unwrap_or_else(|| panic!("{}: no line {name}", self.name));
        let number = |text: &String| text.parse().expect("a number");
        texts.iter().map(number).collect()
    }

    /// Holds a line to what is computed, to the digits that are printed.
    fn holds(&mut self, name: &str, computed: &[f64]) {
        let texts = self.lines.remove(name);
        let texts = texts.unwrap_or_else(|| panic!("{}: no line {name}", self.name));
        let decimals = |text: &String| text.split_once('.').map_or(0, |(_, after)| after.len());
        let printed = texts.iter().zip(computed);
        let printed: Vec<String> = printed
            .map(|(text, value)| format!("{value:.*}", decimals(text)))
            .collect();
        assert_eq!(
            (texts.len(), printed),
            (computed.len(), texts),
            "example {}: {name}, computed and printed",
            self.name
        );
    }

    /// No line is left that nothing was computed for.
    fn finish(self) {
        assert!(self.lines.is_empty(), "{}: {:?}", self.name, self.lines);
    }
}

/// The pairs of the example `ratio`.
fn pairs() -> Vec<(f64, f64)> {
    let mut example = Example::named("ratio");
    let (server, reference) = (example.given("server"), example.given("reference"));
    assert_eq!(server.len(), reference.len());
    server.into_iter().zip(reference).collect()
}

/// Sample standard deviation and mean.
fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    ((squares / (count - 1.0)).sqrt(), mean)
}

#[test]
fn the_interval_of_a_ratio() {
    let (mut example, pairs) = (Example::named("ratio"), pairs());
    let (_, _) = (example.given("server"), example.given("reference"));
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| libm::log(a / b)).collect();
    let (deviation, mean) = spread(&logs);
    let count = logs.len() as f64;
    let t = t_quantile(0.5 + CONFIDENCE / 2.0, count - 1.0).expect("a quantile");
    example.holds("logarithms", &logs);
    example.holds("mean", &[mean]);
    example.holds("deviation", &[deviation]);
    example.holds("t", &[t]);
    example.holds("half", &[t * deviation / count.sqrt()]);
    let compared = compare(&pairs).expect("a comparison");
    assert_eq!(compared.conclusion, Conclusion::Higher);
    example.holds("ratio", &[compared.ratio.0]);
    example.holds("interval", &[compared.spread.low.0, compared.spread.high.0]);
    example.finish();
}

#[test]
fn a_family_of_intervals() {
    let (mut example, pairs) = (Example::named("family"), pairs());
    let comparisons = example.given("comparisons")[0] as usize;
    let each = simultaneous(comparisons);
    example.holds("confidence", &[100.0 * each]);
    let t = t_quantile(0.5 + each / 2.0, pairs.len() as f64 - 1.0);
    example.holds("t", &[t.expect("a quantile")]);
    let compared = compare_at(&pairs, each).expect("a comparison");
    assert_eq!(compared.conclusion, Conclusion::Higher);
    example.holds("interval", &[compared.spread.low.0, compared.spread.high.0]);
    example.finish();
}

/// The chance, in percent, that the median lies between the `rank`-th smallest and largest of `count` values.
fn held(count: u32, rank: u32) -> f64 {
    let (mut ways, mut outside) = (1.0, 0.0);
    for below in 0..rank {
        outside += ways;
        ways *= f64::from(count - below) / f64::from(below + 1);
    }
    100.0 * (1.0 - 2.0 * outside / f64::from(count).exp2())
}

#[test]
fn the_interval_of_a_median() {
    let mut example = Example::named("median");
    let values = example.given("values");
    let count = values.len() as u32;
    let (outer, inner) = (held(count, 1), held(count, 2));
    example.holds("median", &[median(&values).expect("values")]);
    example.holds("outer", &[outer]);
    example.holds("inner", &[inner]);
    let part = (outer - 100.0 * CONFIDENCE) / (outer - inner);
    let others = f64::from(count) - 1.0;
    example.holds("part", &[part]);
    example.holds("share", &[others * part / (1.0 + (others - 1.0) * part)]);
    let summary = summarise::<Rate>(&values).expect("values");
    assert_eq!(summary.spread.kind, SpreadKind::Interval);
    example.holds("interval", &[summary.spread.low.0, summary.spread.high.0]);
    example.finish();
}

#[test]
fn the_resolution_of_a_run() {
    let (mut example, pairs) = (Example::named("resolution"), pairs());
    let blocks = example.given("blocks")[0] as usize;
    let comparisons = example.given("comparisons");
    assert_eq!(blocks, pairs.len());
    let deviation = pooled_deviation(std::slice::from_ref(&pairs)).expect("a deviation");
    example.holds("deviation", &[deviation]);
    let of = |count: &f64| detectable(deviation, blocks, *count as usize).expect("blocks");
    let resolutions: Vec<f64> = comparisons.iter().map(|count| of(count).0).collect();
    let shift = |resolution: &f64| libm::log1p(*resolution) * (blocks as f64).sqrt() / deviation;
    example.holds("shift", &resolutions.iter().map(shift).collect::<Vec<_>>());
    let percent: Vec<f64> = resolutions.iter().map(|share| 100.0 * share).collect();
    example.holds("resolution", &percent);
    example.finish();
}

#[test]
fn each_example_is_computed_here() {
    let names: Vec<String> = Example::all().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["ratio", "family", "median", "resolution"]);
}

/// The numbers where `{}` stands in a sentence of the page.
fn numbers(pattern: &str) -> Vec<f64> {
    let page = page();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = pattern.split("{}").collect();
    let found = page.match_indices(parts[0]).find_map(|(at, first)| {
        let mut rest = &page[at + first.len()..];
        let mut numbers = Vec::new();
        for part in &parts[1..] {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | ',')))?;
            let text = rest[..end].trim_end_matches(['.', ',']);
            numbers.push(number(text)?);
            rest = rest[text.len()..].strip_prefix(part)?;
        }
        Some(numbers)
    });
    found.unwrap_or_else(|| panic!("docs/method.md does not say: {pattern}"))
}

fn number(text: &str) -> Option<f64> {
    const WORDS: [(&str, f64); 5] = [
        ("three", 3.0),
        ("six", 6.0),
        ("eight", 8.0),
        ("ten", 10.0),
        ("twenty", 20.0),
    ];
    let word = WORDS.iter().find(|(word, _)| *word == text);
    word.map(|(_, value)| *value)
        .or_else(|| text.replace(',', "").parse().ok())
}

/// What is computed, to the decimals that the page prints.
#[track_caller]
fn is_printed(computed: f64, decimals: usize, printed: f64) {
    assert_eq!(
        format!("{computed:.decimals$}"),
        format!("{printed:.decimals$}")
    );
}

#[test]
fn numbers_within_sentences() {
    let found = numbers("of {} that share nothing, each has {} %, after");
    is_printed(100.0 * simultaneous(found[0] as usize), 2, found[1]);
    let found = numbers(
        "of {} blocks the smallest and the largest contain the median with {} %, the next two with {} %",
    );
    is_printed(held(found[0] as u32, 1), 1, found[1]);
    is_printed(held(found[0] as u32, 2), 1, found[2]);
    let rounds = numbers("Then {} rounds each")[0] as u32;
    let found = numbers("the interval between the smallest and the largest ({} %)");
    is_printed(held(rounds, 1), 1, found[0]);
    let found = numbers("extended by 1/√n ({} % at {} requests/s and {} s)");
    is_printed(100.0 / (found[1] * found[2]).sqrt(), 1, found[0]);
    let found = numbers("smaller row: {} × is {} % more");
    is_printed(100.0 * (found[0] - 1.0), 0, found[1]);
    // Of 1514 bytes on the link 1448 are payload, where TCP has its time stamps.
    let found = numbers("of {} Gbit/s, {} MiB/s are payload");
    let bytes = found[0] * 1e9 / 8.0 * 1448.0 / 1514.0;
    is_printed(bytes / f64::from(1 << 20), 0, found[1]);
}

#[test]
fn numbers_that_are_limits_here() {
    assert_eq!(
        numbers("Under {} blocks** there is")[0],
        BLOCKS_INTERVAL_MIN as f64
    );
    assert_eq!(
        numbers("difference of a rate that {} % of such")[0],
        100.0 * POWER
    );
    assert_eq!(
        numbers("all of them hold in {} % of such")[0],
        100.0 * CONFIDENCE
    );
    assert_eq!(
        numbers("rests on fewer than {} separate")[0],
        PERIODS_MIN as f64
    );
    assert_eq!(
        numbers("are correlated, or under {} seconds")[0],
        SECONDS_INTERVAL_MIN as f64
    );
    let found = numbers("that has at least {} sizes over at least a factor of {}, the exponent");
    assert_eq!(found, [SIZES_MIN as f64, SIZES_FACTOR_MIN]);
    assert_eq!(numbers("| more than {} to either side")[0], HALF_WIDTH_MAX);
    assert_eq!(
        numbers("of the sizes differ by more than {}, and")[0],
        CURVATURE_MIN
    );
}

/// Six blocks of a sweep over three decades, whose exponent has the interval from `low` to `high`.
fn sweep(low: f64, high: f64) -> Vec<Vec<(f64, f64)>> {
    const APART: [f64; 6] = [-5.0, -3.0, -1.0, 1.0, 3.0, 5.0];
    let (deviation, _) = spread(&APART);
    let t = t_quantile(0.5 + CONFIDENCE / 2.0, 5.0).expect("a quantile");
    let unit = (high - low) / 2.0 * 6.0_f64.sqrt() / (t * deviation);
    let block = |apart: f64| {
        let power = (low + high) / 2.0 + apart * unit;
        let point = |size: f64| (size, 1e9 * libm::pow(size, power));
        [1e3, 1e4, 1e5, 1e6].map(point).to_vec()
    };
    APART.map(block).to_vec()
}

#[test]
fn what_is_said_of_an_exponent() {
    let growth = |low: f64, high: f64| scaling(&sweep(low, high)).expect("a sweep").growth;
    let [low, high, low_square, high_square] =
        numbers("| {}–{}, or {}–{}: holds one whole number")[..]
    else {
        panic!("four numbers");
    };
    assert_eq!(growth(low, high), Growth::Consistent(1));
    assert_eq!(growth(low_square, high_square), Growth::Consistent(2));
    let none = numbers("| {}–{}: holds none | grows as N^{}");
    assert_eq!(growth(none[0], none[1]), Growth::Between);
    is_printed((none[0] + none[1]) / 2.0, 1, none[2]);
    // N log N over as many decades, from a thousand on.
    let found = numbers("over {} decades the latter has an exponent of about {}");
    let sizes = (0..=found[0] as i32).map(|decade| 1e3 * 10_f64.powi(decade));
    let block: Vec<(f64, f64)> = sizes.map(|n| (n, 1e6 * n * libm::log(n))).collect();
    let seen = scaling(&vec![block; 6]).expect("a sweep");
    is_printed(seen.exponent.0, 1, found[1]);
}
