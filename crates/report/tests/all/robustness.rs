//! Whatever the records say, a document comes out, and it is bound to them.

use prony_base::Random;
use prony_record::{CellMetric, Measurand, PublishedClaim, Stated};
use prony_report::{Plot, Run, plot_svg, render};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::fixture;

const NUMBERS: [u64; 6] = [0, 1, 7, u32::MAX as u64, 1 << 53, u64::MAX];
const FLOATS: [f64; 6] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e308];
const TEXTS: [&str; 6] = [
    "",
    "</td></svg><script>alert('x')</script>",
    "a|b`c``d\n# e\r\n---\u{1b}[31m",
    "{{ v }}{% endif %}",
    "\u{202e}\u{0}é漢字",
    "=1+1,\"x\"",
];

/// Every leaf of a value, changed with the given chance where its type allows the change.
fn scrambled<T: Serialize + DeserializeOwned>(value: &T, random: &mut Random, percent: u64) -> T {
    let mut json = serde_json::to_value(value).expect("records are JSON");
    let mut paths = Vec::new();
    paths_of(&json, String::new(), &mut paths);
    for path in paths {
        let Some(place) = json
            .pointer_mut(&path)
            .filter(|_| random.chance(percent, 100))
        else {
            continue;
        };
        let before = place.clone();
        *place = other(&before, random);
        if serde_json::from_value::<T>(json.clone()).is_err()
            && let Some(place) = json.pointer_mut(&path)
        {
            *place = before;
        }
    }
    serde_json::from_value(json).expect("only changes that can be read were kept")
}

fn paths_of(value: &Value, path: String, paths: &mut Vec<String>) {
    paths.push(path.clone());
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                paths_of(field, format!("{path}/{name}"), paths);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                paths_of(item, format!("{path}/{at}"), paths);
            }
        }
        _ => {}
    }
}

fn other(value: &Value, random: &mut Random) -> Value {
    let mut any = |count: usize| random.below(count as u64) as usize;
    match value {
        Value::Number(_) => NUMBERS[any(NUMBERS.len())].into(),
        Value::String(_) => TEXTS[any(TEXTS.len())].into(),
        Value::Array(items) => items[..any(items.len() + 1)].to_vec().into(),
        Value::Bool(_) => Value::Bool(any(2) == 0),
        other => other.clone(),
    }
}

/// A run whose records contradict themselves and each other.
fn absurd(seed: u64) -> Run {
    let mut random = Random::new(seed);
    let mut run = match random.below(9) {
        0 => fixture::quick(),
        1 => fixture::failures(),
        2 => fixture::programs::realtime(2),
        3 => some_programs(&mut random),
        4 => fixture::clients::faults(),
        5 => fixture::clients::downloads(1),
        6 => fixture::services::faults(),
        7 => fixture::services::rows(1, Some(prony_record::Ended::Killed), &[1, 64]),
        _ => fixture::clients::requests(1),
    };
    run.trials.truncate(random.below(12) as usize + 1);
    let percent = [2, 10, 40][random.below(3) as usize];
    run.plan.published = claims(&run, &mut random);
    run.plan = scrambled(&run.plan, &mut random, percent / 2);
    run.environment = scrambled(&run.environment, &mut random, percent);
    for trial in &mut run.trials {
        *trial = scrambled(trial, &mut random, percent);
        let lines = trial.program.iter_mut().flat_map(|p| &mut p.lines);
        for spread in lines.flat_map(|line| line.figures.values_mut()) {
            for float in [&mut spread.mean, &mut spread.max, &mut spread.stdev] {
                if random.chance(percent, 100) {
                    *float = FLOATS[random.below(FLOATS.len() as u64) as usize];
                }
            }
        }
        if let Some(load) = &mut trial.load {
            for float in [
                &mut load.rate_per_s,
                &mut load.latency_ns.mean,
                &mut load.latency_ns.stdev,
            ] {
                if random.chance(percent, 100) {
                    *float = FLOATS[random.below(FLOATS.len() as u64) as usize];
                }
            }
        }
    }
    for histogram in run.histograms.values_mut() {
        *histogram = scrambled(histogram, &mut random, percent);
    }
    run
}

/// Claims on any cells of a run, by any metric.
fn claims(run: &Run, random: &mut Random) -> Vec<PublishedClaim> {
    let mut measurand = || {
        let cell = &run.plan.cells[random.below(run.plan.cells.len() as u64) as usize];
        let metric = random.below(CellMetric::ALL.len() as u64) as usize;
        Measurand {
            subject: cell.subject.clone(),
            workload: cell.workload.clone(),
            connections: (cell.connections > 0).then_some(cell.connections),
            settings: cell.settings.clone(),
            metric: CellMetric::ALL[metric],
            ..Measurand::default()
        }
    };
    let mut claim = || {
        let over = Some(Box::new(measurand()));
        PublishedClaim {
            text: "A is faster than B".to_owned(),
            stated: Stated::Higher,
            original: Some(measurand()),
            ours: Some(Measurand {
                over,
                ..measurand()
            }),
            ..PublishedClaim::default()
        }
    };
    (0..4).map(|_| claim()).collect()
}

/// A few cells of programs, some of them beside each other in the plan, and one server.
fn some_programs(random: &mut Random) -> Run {
    let mut run = fixture::programs::runtime(1);
    let from = random.below(150) as usize;
    run.plan.cells = run.plan.cells.split_off(from);
    run.plan.cells.truncate(24);
    run.trials = run.trials.split_off(from);
    if random.chance(1, 3) {
        let other = fixture::quick();
        run.plan.cells.extend(other.plan.cells);
        run.plan.workloads.extend(other.plan.workloads);
        run.trials.splice(0..0, other.trials);
    }
    run
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_records_give_the_same_document_twice(seed in any::<u64>()) {
        let run = absurd(seed);
        let rendered = render(&run);
        prop_assert_eq!(&rendered, &render(&run));
        let page = &rendered.index_html;
        prop_assert!(!page.contains("<script"), "nothing that a subject wrote becomes markup");
        prop_assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        let acting = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        prop_assert!(!page.contains(acting) && !rendered.document_md.contains(acting));
        for plot in Plot::ALL {
            prop_assert!(!plot_svg(&run, plot).contains("NaN"));
        }
        let summary: Result<Value, _> = serde_json::from_str(&rendered.summary_json);
        prop_assert!(summary.is_ok());
    }
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let page = render(&fixture::failures()).index_html;
    for needs in [
        "src=",
        "url(",
        "@import",
        "<link",
        "<script",
        "href=\"http",
        "//cdn",
    ] {
        assert!(!page.contains(needs), "{needs}");
    }
    // The only addresses are the name of the SVG vocabulary.
    assert_eq!(
        page.matches("http://").count(),
        page.matches("http://www.w3.org/2000/svg").count()
    );
}

/// The value of `name="…"` in `tag`.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let start = tag.find(&format!("{name}=\""))? + name.len() + 2;
    tag[start..].split('"').next()
}

/// Looks up every number that the page binds to a figure, and gives how many there were.
#[track_caller]
fn numbers_of(run: &Run) -> usize {
    let rendered = render(run);
    let summary: Value = serde_json::from_str(&rendered.summary_json).expect("JSON");
    let cells = summary["cells"].as_array().expect("cells");
    let (mut row, mut compared) = ("", 0);
    for tag in rendered.index_html.split('<') {
        if let Some(cell) = attribute(tag, "data-cell") {
            row = cell;
        }
        let (Some(figure), Some(value)) =
            (attribute(tag, "data-figure"), attribute(tag, "data-value"))
        else {
            continue;
        };
        let found = if figure.starts_with('/') {
            summary.pointer(figure)
        } else {
            let cell = cells.iter().find(|c| c["cell"] == row).expect("a cell");
            cell.pointer(&format!("/{}", figure.replace('.', "/")))
        };
        let expected = found.and_then(Value::as_f64).expect("a number");
        let shown: f64 = value.parse().expect("a number");
        // serde_json reads a number to within one unit of its last bit.
        let near = (expected - shown).abs() <= f64::EPSILON * expected.abs();
        assert!(near, "{row} {figure}: {expected} and {shown}");
        compared += 1;
    }
    compared
}

#[test]
fn every_number_on_the_page_is_that_of_the_summary() {
    // 8 rows of 15 figures, but for 2 ratios of the reference; the time to ready of 2 rows; and 8 rows in 3 pictures of 1, 5 and 2.
    assert_eq!(numbers_of(&fixture::quick()), 8 * 15 - 2 + 2 + 8 * 8);
}

#[test]
fn every_number_of_programs_is_that_of_the_summary() {
    // 2 rows of 9 figures, each in 3 rankings.
    assert_eq!(numbers_of(&fixture::programs::realtime(2)), 2 * (9 + 3));
    // 186 rows of 4 figures and more, 78 of them in the overview again with their picture.
    assert!(numbers_of(&fixture::programs::runtime(2)) > 186 * 4 + 78 * 2);
}

#[test]
fn every_number_of_clients_is_that_of_the_summary() {
    // 38 cells: rate, CPU time of both sides, memory, 4 latencies, what was in flight, 2 or 3 counts and
    // more; rate and CPU time again in pictures.
    assert!(numbers_of(&fixture::clients::requests(2)) > 38 * 11 + 38 * 3);
    assert!(numbers_of(&fixture::clients::downloads(2)) > 12 * 12);
    numbers_of(&fixture::clients::faults());
}

#[test]
fn every_number_of_rows_is_that_of_the_summary() {
    // 8 rows: rate, deviation, 6 of latency, bytes received, errors, CPU time of 2 sides, memory, 2 of the number, and
    // the rate again in the picture; 7 ratios.
    let rows = fixture::services::rows(7, Some(prony_record::Ended::Stopped), &[256]);
    assert!(numbers_of(&rows) >= 8 * 16 + 7);
    numbers_of(&fixture::services::faults());
    assert!(numbers_of(&fixture::services::combined()) > 8 * 15);
}

/// The part of a document before its first table.
fn answer_of(run: &Run) -> String {
    let document = render(run).document_md;
    let (answer, _) = document.split_once("## Backends").expect("a section");
    answer.to_owned()
}

/// Under six blocks no row is said to cost anything, and an invalid one never.
#[test]
fn rows_are_compared_only_where_the_data_carry_it() {
    let mut run = fixture::services::rows(6, Some(prony_record::Ended::Stopped), &[256]);
    let seen = answer_of(&run);
    let nginx = |text: &str| -> String {
        let mut lines = text
            .lines()
            .filter(|line| line.contains("| nginx in front "));
        lines.next().unwrap_or_default().to_owned()
    };
    assert!(nginx(&seen).contains("−65 % ("), "{seen}");
    let of_nginx = run.plan.cells[5].id.clone();
    for trial in run.trials.iter_mut().filter(|t| t.cell == of_nginx) {
        let counter = trial.counter.as_mut().expect("a number");
        counter.after = counter.after.map(|after| after - 1);
    }
    let seen = answer_of(&run);
    assert_eq!(nginx(&seen), "");
    assert!(seen.contains("Left out: nginx in front ("), "{seen}");
    run.trials.retain(|trial| trial.block < 5);
    let seen = answer_of(&run);
    assert!(
        !seen.contains("farthest is") && !seen.contains(" to −"),
        "{seen}"
    );
}

/// Rows have pictures by their titles, and documents without services do not speak of them.
#[test]
fn rows_have_their_own_pictures_and_others_nothing_of_them() {
    let rows = fixture::services::rows(1, None, &[64]);
    let svg = plot_svg(&rows, Plot::Rate);
    assert!(svg.contains("Backends and infrastructure, beside No backend: requests/s"));
    assert!(svg.contains("nginx in front"));
    assert!(plot_svg(&rows, Plot::Latency).contains("nginx in front"));
    for run in [fixture::failures(), fixture::clients::requests(1)] {
        let seen = render(&run);
        for word in ["durability", "deviation", "instances", "backing"] {
            assert!(!seen.document_md.contains(word), "{word}");
            assert!(!seen.summary_csv.contains(word), "{word}");
        }
        assert!(!seen.summary_json.contains("\"service\""));
    }
}

/// A second that is cut short is none, and one second has no deviation.
#[test]
fn the_deviation_is_that_of_whole_seconds() {
    let deviation = |completed: Vec<u64>| {
        let mut run = fixture::services::rows(1, None, &[64]);
        let load = run.trials[0].load.as_mut().expect("a load");
        load.slices.completed = completed;
        let summary: Value = serde_json::from_str(&render(&run).summary_json).expect("JSON");
        let seconds = &summary["cells"][0]["service"]["seconds"];
        (
            seconds["count"].as_u64(),
            seconds["deviation_per_s"].as_f64(),
        )
    };
    // Seconds of 100, 200 and 300: a deviation of 100; the last five slices are no second.
    let three: Vec<u64> = (0..35).map(|slice| 10 * (1 + slice / 10)).collect();
    assert_eq!(deviation(three.clone()), (Some(3), Some(100.0)));
    assert_eq!(deviation(three[..19].to_vec()), (None, None));
}

#[test]
fn marks_and_notes_belong_to_each_other() {
    let rendered = render(&fixture::failures());
    let (page, document) = (&rendered.index_html, &rendered.appendix_md);
    for number in 1..=9 {
        assert!(page.contains(&format!("id=\"note-{number}\"")), "{number}");
        assert!(
            page.contains(&format!("href=\"#note-{number}\"")),
            "{number}"
        );
        assert!(document.contains(&format!("[^{number}]: **P")), "{number}");
        assert!(
            document.matches(&format!("[^{number}]")).count() > 2,
            "{number}"
        );
    }
    assert!(!document.contains("[^11]"));
}

/// A run of servers alone says nothing of programs, and one of programs nothing of servers.
#[test]
fn a_document_has_only_what_its_run_has() {
    let servers = render(&fixture::failures());
    for word in ["program", "--s0", "elapsed", "checksum"] {
        assert!(!servers.index_html.contains(word), "{word}");
        assert!(!servers.summary_csv.contains(word), "{word}");
    }
    let programs = render(&fixture::programs::faults());
    for word in ["requests/s", "loopback", "latency", "generator", "Latency"] {
        assert!(!programs.document_md.contains(word), "{word}");
    }
}

#[test]
fn servers_and_programs_stand_in_one_document() {
    let mut run = fixture::quick();
    let programs = fixture::programs::realtime(2);
    run.plan.workloads.extend(programs.plan.workloads);
    run.plan.cells.extend(programs.plan.cells);
    run.plan.settings = programs.plan.settings;
    run.trials.extend(programs.trials);
    let document = render(&run).document_md;
    for heading in ["ping, 400 connections", "realtime, n = 20,000"] {
        assert!(document.contains(&format!("\n## {heading}\n")), "{heading}");
    }
    for ranking in ["**ping, 2 connections**", "**realtime: "] {
        assert!(document.contains(ranking), "{ranking}");
    }
}

/// A run of clients alone says nothing of a generator, and the others nothing of peers.
#[test]
fn clients_are_told_of_only_where_there_are_some() {
    for run in [fixture::failures(), fixture::programs::faults()] {
        let seen = render(&run);
        for word in ["peer", "server threads", "requests_by_peer", "round trips"] {
            assert!(!seen.document_md.contains(word), "{word}");
            assert!(!seen.summary_csv.contains(word), "{word}");
        }
        assert!(!seen.summary_json.contains("\"client\""));
    }
    let clients = render(&fixture::clients::requests(2));
    for word in ["generator", "checksum", "warm-up for"] {
        assert!(!clients.document_md.contains(word), "{word}");
    }
}

#[test]
fn servers_programs_and_clients_stand_in_one_document() {
    let mut run = fixture::quick();
    for other in [
        fixture::programs::realtime(2),
        fixture::clients::requests(2),
    ] {
        run.plan.workloads.extend(other.plan.workloads);
        run.plan.cells.extend(other.plan.cells);
        run.plan.settings.extend(other.plan.settings);
        run.plan.subjects.extend(other.plan.subjects);
        run.trials.extend(other.trials);
    }
    let rendered = render(&run);
    let document = rendered.document_md;
    for heading in [
        "ping, 400 connections",
        "realtime, n = 20,000",
        "Requests to c/nginx over loopback",
    ] {
        assert!(document.contains(&format!("\n## {heading}\n")), "{heading}");
    }
    assert!(rendered.appendix_md.contains("cores of generator and peer"));
}

/// Under six blocks no client is called faster or cheaper than another.
#[test]
fn few_blocks_rank_no_clients() {
    let claims = |run: &Run| {
        let answer = render(run).document_md;
        let (answer, _) = answer.split_once("## Requests").expect("a section");
        answer.contains(" leads") || answer.contains("share the first place")
    };
    let mut run = fixture::clients::requests(6);
    assert!(claims(&run));
    run.trials.retain(|trial| trial.block < 5);
    assert!(!claims(&run));
}

/// Of a client whose counts are not its peer's the answer says nothing but that.
#[test]
fn what_counts_otherwise_is_compared_with_nothing() {
    let mut run = fixture::clients::requests(6);
    for trial in &mut run.trials {
        if trial.cell.starts_with("rust/prony-client") {
            let client = trial.client.as_mut().expect("a client");
            client.peer.requests = client.peer.requests.map(|n| n - 1);
        }
    }
    let document = render(&run).document_md;
    let (answer, _) = document.split_once("## Requests").expect("a section");
    assert!(!answer.contains("prony-client leads"), "{answer}");
    assert!(answer.contains("Left out: prony-client ("), "{answer}");
}

/// One size, however often it is measured, tells nothing of growth; nor do few blocks.
#[test]
fn no_complexity_without_a_sweep_and_enough_blocks() {
    let claims = |run: &Run| {
        let document = render(run).document_md;
        document.contains("O(N") || document.contains("grows as")
    };
    let swept = fixture::programs::runtime(6);
    assert!(claims(&swept));
    let mut one_size = swept.clone();
    for workload in &mut one_size.plan.workloads {
        let program = workload.program.as_mut().expect("a program");
        program.counts.truncate(1);
    }
    let other = |count: u64| [30_000, 100_000].contains(&count);
    one_size
        .trials
        .retain(|trial| !trial.cell.contains("n=30000") && !trial.cell.contains("n=100000 "));
    one_size
        .plan
        .cells
        .retain(|cell| !cell.count.is_some_and(other));
    assert!(!claims(&one_size));
    let mut few = swept;
    few.trials.retain(|trial| trial.block < 5);
    let seen = render(&few);
    assert!(!claims(&few));
    for word in [
        "faster than it",
        "slower:",
        "faster for",
        "no difference is seen",
    ] {
        assert!(
            !seen.document_md.contains(word),
            "{word}: nothing is ranked"
        );
    }
}

#[test]
fn a_single_picture_carries_its_own_style() {
    let svg = plot_svg(&fixture::quick(), Plot::Rate);
    assert!(svg.contains("<style>") && svg.contains("prefers-color-scheme: dark"));
    insta::assert_snapshot!(svg);
    assert_eq!(plot_svg(&Run::default(), Plot::Cpu), "");
    let programs = fixture::programs::runtime(1);
    let svg = plot_svg(&programs, Plot::Rate);
    assert!(svg.contains("coroutine, n = 1,000,000: rate a second") && svg.contains("<style>"));
    assert_eq!(plot_svg(&programs, Plot::Latency), "");
    let clients = fixture::clients::requests(1);
    let svg = plot_svg(&clients, Plot::Cpu);
    assert!(svg.contains("1 connection, 1 client thread, 1 server thread"));
    assert!(plot_svg(&clients, Plot::Latency).contains("data-figure=\"latency_ns.p99.median\""));
}

#[test]
fn nothing_that_was_planned_was_run() {
    let mut run = fixture::failures();
    run.trials.clear();
    run.histograms.clear();
    insta::assert_snapshot!(render(&run).document_md);
}
