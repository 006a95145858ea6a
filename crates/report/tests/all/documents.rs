//! Whole documents from runs made by hand.

use prony_record::{
    CellMetric, Dimension, Ended, GeneratorKind, Measurand, PlannedVisits, PublishedClaim, Stated,
    Visit,
};
use prony_report::{Plot, Rendered, Run, plot_svg, render};

use crate::fixture;

/// Where the pages go for someone who wants to look at them.
const PAGES: &str = "PRONY_REPORT_PAGES";

fn rendered(name: &str, run: &Run) -> Rendered {
    let rendered = render(run);
    assert_eq!(rendered, render(run), "{name}: the same bytes again");
    if let Some(folder) = std::env::var_os(PAGES) {
        let at = |ending: &str| std::path::Path::new(&folder).join(format!("{name}.{ending}"));
        std::fs::write(at("html"), &rendered.index_html).expect("a folder to write to");
        std::fs::write(at("md"), &rendered.document_md).expect("a folder to write to");
        std::fs::write(at("json"), &rendered.summary_json).expect("a folder to write to");
        std::fs::write(at("csv"), &rendered.summary_csv).expect("a folder to write to");
        for plot in Plot::ALL {
            let file = at(&format!("{plot:?}.svg"));
            std::fs::write(file, plot_svg(run, plot)).expect("a folder to write to");
        }
    }
    rendered
}

#[test]
fn a_quick_run_of_two_blocks() {
    let seen = rendered("quick", &fixture::quick());
    insta::assert_snapshot!("quick.md", seen.document_md);
    insta::assert_snapshot!("quick.csv", seen.summary_csv);
}

#[test]
fn what_was_asked_before_the_load_has_a_table_where_a_rest_is_asked_for() {
    let mut run = fixture::quick();
    let before = rendered("without-a-rest", &run).document_md;
    assert!(!before.contains("Before the load"), "{before}");
    run.plan.workloads[0].rest_ns = 10_000_000_000;
    for (trial, ms) in run.trials.iter_mut().zip(1..) {
        trial.ready_ns = Some(50_000_000);
        trial.first_answer_ns = Some(ms * 1_000_000);
        trial.after_rest_ns = Some(ms * 1_000);
    }
    let seen = rendered("rest", &run).document_md;
    let caption =
        "**Before the load: the first request after the start, and one after a rest of 10 s**";
    let table = seen.split(caption).nth(1).expect("a table");
    let lines: Vec<&str> = table.trim_start().lines().take(3).collect();
    insta::assert_snapshot!("rest", lines.join("\n"));
}

/// `run`, had it recorded ten times as much virtual memory as resident.
fn with_virtual_memory(mut run: Run) -> Run {
    let processes = run.trials.iter_mut().flat_map(|trial| &mut trial.processes);
    for process in processes {
        let memory = &mut process.memory;
        memory.virtual_peak_bytes = memory.peak_bytes.map(|bytes| bytes * 10);
    }
    run
}

#[test]
fn virtual_memory_is_told_of_runs_that_recorded_it_and_of_no_others() {
    let older = rendered("resident", &fixture::full());
    for text in [older.appendix_md, older.summary_csv, older.summary_json] {
        assert!(
            !text.contains("virtual memory") && !text.contains("virtual_peak"),
            "{text}"
        );
    }
    let mut run = with_virtual_memory(fixture::full());
    run.plan.published = vec![PublishedClaim {
        stated: Stated::Range {
            from: Some(310.0 * 1_048_576.0),
            to: None,
            dimension: Dimension::Bytes,
        },
        original: Some(Measurand {
            subject: "go/fasthttp".to_owned(),
            workload: "ping".to_owned(),
            metric: CellMetric::VirtualMemory,
            ..Measurand::default()
        }),
        ..PublishedClaim::default()
    }];
    let seen = rendered("virtual", &run);
    let columns = "| memory peak | virtual memory (peak) | received";
    assert!(seen.appendix_md.contains(columns), "{}", seen.appendix_md);
    assert!(
        !seen.document_md.contains("virtual memory (peak)"),
        "{}",
        seen.document_md
    );
    let columns = ",memory_peak_bytes,virtual_peak_bytes,received";
    assert!(seen.summary_csv.contains(columns), "{}", seen.summary_csv);
    let summary: serde_json::Value = serde_json::from_str(&seen.summary_json).expect("JSON");
    let all = summary["cells"].as_array().expect("cells");
    let cell = all.iter().find(|cell| cell["subject"] == "go/fasthttp");
    let figure = &cell.expect("the cell")["virtual_peak_bytes"];
    assert_eq!(figure["median"], 310.0 * 1_048_576.0);
    assert_eq!(summary["published"][0]["outcome"], "held");
    let run = with_virtual_memory(fixture::services::rows(2, None, &[64]));
    let rows = rendered("virtual-rows", &run).appendix_md;
    let columns = "| memory subject (peak) | virtual subject (peak) |";
    assert!(rows.contains(columns), "{rows}");
}

/// The sections of figures.
#[test]
fn two_rates_of_which_one_is_too_much_for_one_server() {
    let seen = rendered("open", &fixture::open::rates());
    let (figures, _) = seen
        .document_md
        .split_once("## What this cannot tell")
        .expect("it");
    insta::assert_snapshot!("open.md", figures);
    insta::assert_snapshot!("open.csv", seen.summary_csv);
    assert!(
        !seen.summary_json.contains("null,\n          \"low\""),
        "a latency that never ended is a number"
    );
}

/// The sections of figures.
#[test]
fn users_have_tables_of_their_iterations_and_steps() {
    let run = fixture::users::users(8, false);
    let seen = rendered("users", &run);
    insta::assert_snapshot!("users.md", until_limits(&seen.document_md));
    let (figures, _) = seen.appendix_md.split_once("## Machine").expect("it");
    insta::assert_snapshot!("users-appendix.md", figures);
    let summary: serde_json::Value = serde_json::from_str(&seen.summary_json).expect("JSON");
    for (cell, planned) in summary["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .zip(&run.plan.cells)
    {
        let own = run.trials.iter().filter(|trial| trial.cell == planned.id);
        let loads = own.filter_map(|trial| trial.load.as_ref());
        let steps = loads.flat_map(|load| &load.scenario.as_ref().expect("users").steps);
        let sent: u64 = steps.map(|step| step.counts.sent).sum();
        let told = cell["users"]["steps"].as_array().expect("steps").iter();
        let told = told.map(|step| step["counts"]["sent"].as_u64().expect("a count"));
        assert_eq!(told.sum::<u64>(), sent);
    }
    let required: Vec<(&str, bool, bool)> = seen
        .required
        .iter()
        .map(|of| (&*of.cell, of.outcome.held, of.outcome.sure == Some(true)))
        .collect();
    let all = [
        ("rust/axum ping c=10", true, true),
        ("rust/axum ping c=10", true, true),
        ("slow/turtle ping c=10", false, true),
        ("slow/turtle ping c=10", true, true),
    ];
    assert_eq!(required, all, "{:?}", seen.required);
    assert!(
        seen.required[2]
            .outcome
            .sentence
            .starts_with("order p99 < 2ms: broken: "),
        "{}",
        seen.required[2].outcome.sentence
    );
}

#[test]
fn steps_of_several_scenarios_have_their_names_before_them() {
    let seen = rendered("users_several", &fixture::users::users(2, true));
    insta::assert_snapshot!("users_several.md", until_limits(&seen.document_md));
}

#[test]
fn arrivals_of_users_are_no_requests() {
    let seen = rendered("users_open", &fixture::users::arrivals());
    insta::assert_snapshot!("users_open.md", until_limits(&seen.document_md));
    assert!(
        !seen.document_md.contains("500 requests/s"),
        "{}",
        seen.document_md
    );
}

/// The sections of figures.
fn until_limits(document: &str) -> &str {
    let split = document.split_once("## What this cannot tell");
    split.expect("it").0
}

#[test]
fn searches_for_a_highest_rate_in_six_blocks() {
    let seen = rendered("searches", &fixture::searches::searches(6));
    insta::assert_snapshot!("searches.md", until_limits(&seen.document_md));
    insta::assert_snapshot!("searches.csv", seen.summary_csv);
    let curve = seen
        .pictures
        .iter()
        .find(|(_, svg)| svg.contains("offered rate"));
    let curve = &curve.expect("latency against rate").1;
    for said in ["p99 &lt; 10 ms", "requests to start a second", "≥ 49."] {
        assert!(curve.contains(said), "{said}: {curve}");
    }
}

#[test]
fn one_search_each_has_the_interval_of_its_rounds() {
    let seen = rendered("searches_quick", &fixture::searches::searches(1));
    insta::assert_snapshot!("searches_quick.md", until_limits(&seen.document_md));
}

#[test]
fn a_search_compared_and_exported_has_its_rate() {
    let run = fixture::searches::searches(6);
    let long = prony_report::export(&run, prony_report::Export::Long);
    let of = |subject: &str, metric: &str| {
        let rows = long.lines().filter(|row| row.contains(subject));
        rows.filter(|row| row.contains(metric)).count()
    };
    assert_eq!((of("axum", ",rate,"), of("axum", ",cpu_subject,")), (6, 6));
    assert_eq!(of("turtle", ",rate,"), 0);
    // Those of the closed loop before it are no figures of a search.
    assert_eq!((of("axum", ",p99,"), of("axum", ",p50,")), (0, 0));
    let compared = prony_report::compare::interleaved(&run, "rust/axum", "node/express");
    let sentence = compared.sentence();
    let place = " ping with 50 connections (highest rate that keeps p99 < 10 ms): ";
    assert!(sentence.contains(place), "{sentence}");
}

#[test]
fn three_rates_of_an_open_loop_are_drawn_with_the_first_that_is_lost() {
    let seen = rendered("three_rates", &fixture::searches::three_rates());
    let heading = "## ping, 100 connections: latency against offered rate";
    assert!(seen.document_md.contains(heading), "{}", seen.document_md);
    let curve = seen
        .pictures
        .iter()
        .find(|(_, svg)| svg.contains("offered rate"));
    let curve = &curve.expect("latency against rate").1;
    assert!(curve.contains("lost from 5.00 k"), "{curve}");
    assert!(curve.contains("kept up to 5.00 k"), "{curve}");
}

#[test]
fn twelve_blocks_with_a_copy_of_the_reference() {
    let seen = rendered("full", &fixture::full());
    insta::assert_snapshot!("full.md", seen.document_md);
    insta::assert_snapshot!("full-appendix.md", seen.appendix_md);
}

/// Claims of every kind on the run of twelve blocks, or on that of two.
fn with_claims(mut run: Run) -> Run {
    let of = |subject: &str, metric, over: Option<&str>| {
        let alone = |subject: &str| Measurand {
            subject: subject.to_owned(),
            workload: "ping".to_owned(),
            connections: Some(400),
            metric,
            ..Measurand::default()
        };
        let over = over.map(|over| Box::new(alone(over)));
        Some(Measurand {
            over,
            ..alone(subject)
        })
    };
    let (rate, errors) = (CellMetric::Rate, CellMetric::Errors);
    let claim = |text: &str, stated| PublishedClaim {
        text: text.to_owned(),
        source: "Somebody's benchmarks, first table".to_owned(),
        stated,
        ..PublishedClaim::default()
    };
    let against = |other| {
        (
            of("go/fasthttp", rate, other),
            of("rust/prony", rate, other),
        )
    };
    let mut claims = vec![
        claim("fasthttp is slower than axum | `a`", Stated::Lower),
        claim(
            "fasthttp has 1.5 times the rate of axum",
            Stated::Ratio {
                value: 1.5,
                within: 0.1,
            },
        ),
        claim(
            "fasthttp answers so many",
            Stated::Absolute {
                value: 170e3,
                dimension: Dimension::Rate,
            },
        ),
        claim(
            "fasthttp has no errors",
            Stated::Range {
                from: Some(0.0),
                to: Some(0.0),
                dimension: Dimension::Number,
            },
        ),
        claim("Drogon is faster than axum", Stated::Higher),
        claim("It is the fastest there is", Stated::Words),
        claim("Eight threads are faster", Stated::Higher),
        claim(
            "axum and actix-web are alike",
            Stated::Ratio {
                value: 1.0,
                within: 0.005,
            },
        ),
    ];
    for (at, claim) in claims.iter_mut().enumerate() {
        (claim.original, claim.ours) = match at {
            0 | 1 | 6 => against(Some("rust/axum")),
            2 => against(None),
            3 => (of("go/fasthttp", errors, None), None),
            4 => (of("cpp/drogon", rate, Some("rust/axum")), None),
            7 => (of("rust/actix-web", rate, Some("rust/axum")), None),
            _ => (None, None),
        };
    }
    claims[5].why_not = "no cell has all that there are".to_owned();
    claims[6].cores_min = 8;
    run.plan.published = claims;
    run
}

/// The section of published claims.
fn published(document: &str) -> &str {
    let (_, section) = document.split_once("## What was published").expect("it");
    until_limits(section)
}

#[test]
fn published_claims_have_a_table_of_what_came_out() {
    let seen = rendered("published", &with_claims(fixture::full()));
    insta::assert_snapshot!("published.md", published(&seen.document_md));
    assert!(seen.index_html.contains("<section id=\"published\">"));
    let summary: serde_json::Value = serde_json::from_str(&seen.summary_json).expect("JSON");
    assert_eq!(summary["published"][0]["outcome"], "held");
    // A run without any says nothing of them.
    let without = render(&fixture::full());
    assert!(
        !without.document_md.contains("published") && !without.summary_json.contains("published")
    );
}

#[test]
fn a_quick_run_settles_no_published_claim() {
    let seen = render(&with_claims(fixture::quick()));
    let section = published(&seen.document_md);
    assert!(section.contains("undecided"), "{section}");
    assert!(
        !section.contains("held") && !section.contains("contradicted,"),
        "{section}"
    );
}

/// `run`, had it been done in turns of 200 ms.
fn in_turns(mut run: Run) -> Run {
    run.plan.visits = Some(PlannedVisits {
        length_ns: 200_000_000,
        lead_in_ns: 20_000_000,
        ..PlannedVisits::default()
    });
    for trial in &mut run.trials {
        let Some(load) = trial
            .load
            .as_ref()
            .filter(|_| trial.generator == GeneratorKind::Prony)
        else {
            continue;
        };
        let visit = |number: u64| Visit {
            start_ns: number * 900_000_000,
            window_ns: load.window_ns / 10,
            completed: load.completed / 10,
            ..Visit::default()
        };
        trial.visits = (0..10).map(visit).collect();
    }
    run
}

/// Two blocks of fresh processes ranked nobody.
#[test]
fn a_quick_run_in_turns_ranks_what_differs_by_much() {
    let quick = render(&in_turns(fixture::quick()));
    let said = quick.document_md.split("## ").nth(1).expect("an answer");
    assert!(
        said.contains("A quick look: only large differences are ranked."),
        "{said}"
    );
    let summary: serde_json::Value = serde_json::from_str(&quick.summary_json).expect("JSON");
    let cells = summary["cells"].as_array().expect("cells");
    let of = |name: &str| {
        let cell = cells
            .iter()
            .find(|cell| cell["subject"] == name && cell["connections"] == 2);
        cell.expect("its cell")["ratio"].clone()
    };
    assert_eq!(of("go/fasthttp")["conclusion"], "lower");
    // Its turns do not differ at all: what is left is what restarts are taken to differ by.
    let (low, high) = (
        of("go/fasthttp")["low"].as_f64().expect("an end"),
        of("go/fasthttp")["high"].as_f64().expect("an end"),
    );
    assert!(high / low > 1.2 && high / low < 1.6, "{low} {high}");
    // Not in turns there is a range, and no claim.
    let fresh = render(&fixture::quick());
    assert!(
        fresh
            .document_md
            .contains("A first look: a ranking takes 6 blocks.")
    );
}

#[test]
fn of_visits_nothing_rarer_than_p99_is_told_and_the_document_says_how_it_was_measured() {
    let seen = rendered("visits", &in_turns(fixture::full()));
    // Each group's latencies are drawn, too: they were without a mark, as nothing has a maximum.
    let (_, latency) = seen
        .pictures
        .iter()
        .find(|(path, _)| path.ends_with("g1-1.svg"))
        .expect("drawn");
    assert!(latency.contains("data-figure=\"latency_ns.p99.median\""));
    let method = "visited in turns of 200 ms on average, after 20 ms of load that is not measured";
    assert!(seen.appendix_md.contains(method), "{}", seen.appendix_md);
    assert!(
        seen.appendix_md
            .contains("A trial is 10 visits of the same processes")
    );
    let figures = |run: &Run| -> Vec<serde_json::Value> {
        let summary: serde_json::Value =
            serde_json::from_str(&render(run).summary_json).expect("JSON");
        summary["cells"].as_array().expect("cells").clone()
    };
    for cell in figures(&in_turns(fixture::full())) {
        let latency = cell["latency_ns"].as_object().expect("latencies");
        assert!(
            latency.contains_key("p50") && latency.contains_key("p99"),
            "{cell}"
        );
        assert!(
            !latency.contains_key("p99_9") && !latency.contains_key("p99_99"),
            "{cell}"
        );
        assert!(cell["latency_max_ns"].is_null(), "{cell}");
    }
    let usual = figures(&fixture::full());
    assert!(
        usual
            .iter()
            .all(|cell| cell["latency_ns"]["p99_9"].is_object())
    );
}

#[test]
fn one_that_was_visited_and_one_that_was_not_have_no_ratio() {
    let mut run = in_turns(fixture::full());
    let reference = run.plan.reference.clone().expect("a reference");
    let own: Vec<String> = run
        .plan
        .cells
        .iter()
        .filter(|cell| cell.subject == reference)
        .map(|cell| cell.id.clone())
        .collect();
    let ratios = |run: &Run| render(run).summary_json.matches("reference_cell").count();
    assert!(ratios(&run) > 0);
    for trial in run
        .trials
        .iter_mut()
        .filter(|trial| own.contains(&trial.cell))
    {
        trial.visits.clear();
    }
    assert_eq!(ratios(&run), 0);
}

#[test]
fn everything_that_can_go_wrong() {
    let seen = rendered("failures", &fixture::failures());
    insta::assert_snapshot!("failures.md", seen.document_md);
    insta::assert_snapshot!("failures-appendix.md", seen.appendix_md);
}

#[test]
fn an_empty_run() {
    let seen = rendered("empty", &Run::default());
    insta::assert_snapshot!("empty.md", seen.document_md);
}

#[test]
fn seven_blocks_of_programs() {
    let seen = rendered("programs", &fixture::programs::runtime(7));
    insta::assert_snapshot!("programs.md", seen.document_md);
    insta::assert_snapshot!("programs-appendix.md", seen.appendix_md);
}

/// The sections of figures: the others are as in the runs above.
#[test]
fn one_work_in_several_workloads() {
    let seen = rendered("spread", &fixture::programs::spread(7));
    let (figures, _) = seen
        .document_md
        .split_once("## What this cannot tell")
        .expect("it");
    insta::assert_snapshot!("spread.md", figures);
}

#[test]
fn programs_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("program_faults", &fixture::programs::faults());
    insta::assert_snapshot!("program_faults.md", seen.document_md);
    let head: Vec<&str> = seen.summary_csv.lines().take(4).collect();
    insta::assert_snapshot!("program_faults.csv", head.join("\n"));
}

#[test]
fn deadlines_with_and_without_the_throttle() {
    let seen = rendered("realtime", &fixture::programs::realtime(2));
    insta::assert_snapshot!("realtime.md", seen.document_md);
}

#[test]
fn seven_blocks_of_clients_that_ask() {
    let seen = rendered("clients", &fixture::clients::requests(7));
    insta::assert_snapshot!("clients.md", seen.document_md);
    let head: Vec<&str> = seen.summary_csv.lines().take(4).collect();
    insta::assert_snapshot!("clients.csv", head.join("\n"));
}

#[test]
fn six_blocks_of_downloads_over_two_networks() {
    let seen = rendered("downloads", &fixture::clients::downloads(6));
    insta::assert_snapshot!("downloads.md", seen.document_md);
    insta::assert_snapshot!("downloads-appendix.md", seen.appendix_md);
}

#[test]
fn clients_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("client_faults", &fixture::clients::faults());
    insta::assert_snapshot!("client_faults.md", seen.document_md);
    insta::assert_snapshot!("client_faults-appendix.md", seen.appendix_md);
}

#[test]
fn seven_blocks_of_rows_that_are_killed() {
    let run = fixture::services::rows(7, Some(Ended::Killed), &[256]);
    let seen = rendered("rows", &run);
    insta::assert_snapshot!("rows.md", seen.document_md);
    insta::assert_snapshot!("rows-appendix.md", seen.appendix_md);
    insta::assert_snapshot!("rows.csv", seen.summary_csv);
    let (_, section) = seen
        .index_html
        .split_once("<section id=\"r1\">")
        .expect("it");
    let (section, _) = section.split_once("</section>").expect("its end");
    insta::assert_snapshot!("rows.html", section);
}

/// The sections of figures: the others are as in the run above.
#[test]
fn ten_blocks_of_rows_at_two_numbers_of_connections() {
    let run = fixture::services::rows(10, None, &[64, 256]);
    let seen = rendered("rows_twice", &run);
    let (figures, _) = seen
        .document_md
        .split_once("## What this cannot tell")
        .expect("it");
    insta::assert_snapshot!("rows_twice.md", figures);
}

#[test]
fn rows_in_two_blocks_where_everything_goes_wrong() {
    let seen = rendered("row_faults", &fixture::services::faults());
    insta::assert_snapshot!("row_faults.md", seen.document_md);
}

/// The sections of figures.
#[test]
fn all_combinations_with_what_is_around_them() {
    let seen = rendered("combined", &fixture::services::combined());
    let (figures, _) = seen
        .document_md
        .split_once("## What this cannot tell")
        .expect("it");
    insta::assert_snapshot!("combined.md", figures);
}

/// Every kind of run that there is a fixture of.
fn all_kinds() -> Vec<(&'static str, Run)> {
    let rows = |blocks, ended| fixture::services::rows(blocks, ended, &[64, 256]);
    vec![
        ("full", fixture::full()),
        ("failures", fixture::failures()),
        ("programs", fixture::programs::faults()),
        ("realtime", fixture::programs::realtime(2)),
        ("clients", fixture::clients::faults()),
        ("downloads", fixture::clients::downloads(6)),
        ("rows", rows(7, Some(Ended::Killed))),
        ("row faults", fixture::services::faults()),
        ("combined", fixture::services::combined()),
    ]
}

#[test]
fn a_finding_had_a_footnote_and_no_table_had_its_mark() {
    let mut seen = 0;
    for (name, run) in all_kinds() {
        let document = render(&run).appendix_md;
        let Some((tables, notes)) = document.split_once("\n[^1]: ") else {
            assert!(!document.contains("[^"), "{name}");
            continue;
        };
        let (before_codes, _) = tables.split_once("| note").expect("the list of codes");
        // What is narrow enough stands in the document alone.
        let before_codes = format!("{before_codes}{}", render(&run).document_md);
        let defined = 1 + notes.matches("\n[^").count();
        for number in 1..=defined {
            let mark = format!("[^{number}]");
            let marked = before_codes
                .lines()
                .any(|line| line.starts_with('|') && line.contains(&mark));
            assert!(marked, "{name}: note {number} is on no figure");
        }
        seen += defined;
    }
    assert!(seen > 20, "{seen} notes in all");
}

/// What a reader of a document meets: the answer first, no table that is too wide, and no mark without its note.
#[test]
fn documents_answer_first_and_stay_narrow() {
    for (name, run) in all_kinds() {
        let seen = render(&run);
        for document in [&seen.document_md, &seen.appendix_md] {
            for at in document.match_indices("[^").map(|(at, _)| at) {
                let mark = document[at..].split_once(']').expect("its end").0;
                assert!(document.contains(&format!("\n{mark}]: ")), "{name}: {mark}");
            }
        }
        // An escaped bar is no border.
        let plain = seen.document_md.replace("\\|", "");
        let answer = plain.split("\n## ").nth(1).expect("the first section");
        assert!(answer.starts_with("Short answer"), "{name}");
        assert!(answer.len() > 200, "{name}: {answer}");
        let (figures, _) = plain
            .split_once("## What ")
            .expect("the end of the figures");
        for line in figures.lines().filter(|line| line.starts_with('|')) {
            assert!(line.matches('|').count() <= 8, "{name}: {line}");
        }
        let shown = seen.document_md.matches("](pictures/").count();
        assert!(shown >= 2, "{name}: {shown} pictures");
        for (path, svg) in &seen.pictures {
            let text = format!("{}{}", seen.document_md, seen.appendix_md);
            assert!(text.contains(&format!("]({path})")), "{name}: {path}");
            assert!(svg.starts_with("<svg "), "{name}: {path}");
            let number = |text: &str, attribute: &str| -> f64 {
                let found = text.split(&format!(" {attribute}=\"")).nth(1);
                let value = found.and_then(|rest| rest.split('"').next());
                value
                    .and_then(|value| value.parse().ok())
                    .expect("a number")
            };
            let (width, height) = (number(svg, "width"), number(svg, "height"));
            for bar in svg.split("<rect class=\"bar").skip(1) {
                let right = number(bar, "x") + number(bar, "width");
                let bottom = number(bar, "y") + number(bar, "height");
                assert!(right <= width && bottom <= height, "{name}: {path}: {bar}");
            }
        }
    }
}

#[test]
fn one_failed_block_of_twelve_took_the_figures_of_the_others_along() {
    let sound = render(&fixture::full());
    let mut run = fixture::full();
    let cell = run.plan.cells[2].id.clone();
    let failing = |t: &&mut prony_record::Trial| t.cell == cell && t.block == 4;
    let trial = run.trials.iter_mut().find(failing).expect("a trial");
    trial.outcome = prony_record::Outcome::Failed {
        phase: prony_record::Phase::Measure,
        reason: "the subject ended by signal 9 in the window".to_owned(),
    };
    let seen = render(&run);
    let row = |text: &str| -> String {
        let mut rows = text.lines().filter(|line| line.starts_with("| actix-web"));
        rows.next().expect("a row").to_owned()
    };
    let (before, now) = (row(&sound.document_md), row(&seen.document_md));
    assert!(now.starts_with("| actix-web (11 of 12 blocks)[^"), "{now}");
    assert!(!now.contains("invalid"), "{now}");
    // Eleven blocks have a rate, an interval and a ratio as twelve have.
    let columns = |row: &str| row.split('|').filter(|entry| entry.contains('–')).count();
    assert_eq!(columns(&now), columns(&before), "{now}");
    let csv = seen
        .summary_csv
        .lines()
        .find(|line| line.starts_with(&cell));
    let fields: Vec<&str> = csv.expect("a line").split(',').collect();
    assert_eq!(fields[5..8], ["valid", "11", "1"]);
}

/// The answer of twelve blocks on axum, actix-web, fasthttp and prony as a terminal shows it, after `change` of the trials of one.
fn answer_after(subject: &str, change: impl Fn(&mut prony_record::Trial)) -> String {
    let mut run = fixture::full();
    let of = |t: &&mut prony_record::Trial| t.cell.starts_with(&format!("{subject} "));
    run.trials.iter_mut().filter(of).for_each(change);
    render(&run).answer_txt
}

/// The line of a subject in it.
fn line_of<'a>(answer: &'a str, subject: &str) -> &'a str {
    let has = |line: &&str| {
        let rest: String = line.chars().skip(7).collect();
        rest.starts_with(&format!("{subject} "))
    };
    answer
        .lines()
        .find(has)
        .unwrap_or_else(|| panic!("{subject}: {answer}"))
}

fn limited_by_the_generator(trial: &mut prony_record::Trial) {
    trial.cores[0].busy_ns = 1_500_000_000;
    trial.processes[0].threads[0].cpu_ns = 1_400_000_000;
    trial.cores[1].busy_ns = 1_990_000_000;
}

#[test]
fn a_rate_that_was_the_generators_was_compared_as_if_it_were_the_subjects() {
    let seen = answer_after("rust/prony", limited_by_the_generator);
    assert!(seen.contains("prony leads, at least +61 % ("), "{seen}");
    assert!(line_of(&seen, "prony").contains(" ≥ "), "{seen}");
    assert!(line_of(&seen, "fasthttp").contains("−7.7 % ("), "{seen}");
    assert!(seen.contains("≥, ≤: the generator was the limit"), "{seen}");
    let seen = answer_after("go/fasthttp", limited_by_the_generator);
    assert!(
        line_of(&seen, "fasthttp").ends_with("not told: a bound"),
        "{seen}"
    );
    // Of a reference that is at least so fast others are slower; nothing else is known.
    let seen = answer_after("rust/axum", limited_by_the_generator);
    assert!(
        line_of(&seen, "fasthttp").contains("−7.7 % or lower ("),
        "{seen}"
    );
    for subject in ["prony", "actix-web"] {
        assert!(
            line_of(&seen, subject).ends_with("not told: a bound"),
            "{seen}"
        );
    }
    assert!(!seen.contains("axum leads"), "{seen}");
}

#[test]
fn an_invalid_cell_was_ranked() {
    let wrong = |trial: &mut prony_record::Trial| {
        if trial.block.is_multiple_of(2) {
            trial.outcome = prony_record::Outcome::Failed {
                phase: prony_record::Phase::Measure,
                reason: "the subject ended by signal 9 in the window".to_owned(),
            };
        }
    };
    let seen = answer_after("rust/prony", wrong);
    assert!(!seen.contains("prony leads"), "{seen}");
    assert!(seen.contains("       left out: prony ("), "{seen}");
    assert!(seen.contains("(P010)"), "{seen}");
    // Without its reference nothing is compared.
    let seen = answer_after("rust/axum", wrong);
    assert!(!seen.contains(" leads"), "{seen}");
    assert!(line_of(&seen, "prony").ends_with("229 k"), "{seen}");
    assert!(seen.contains("       left out: rust/axum ("), "{seen}");
}

#[test]
fn a_setting_of_the_kernel_was_listed_twice_with_other_values() {
    let mut run = fixture::quick();
    let fact = |name: &str, value: &str| prony_record::Fact {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    run.environment.facts = vec![
        fact("net.core.somaxconn", "4096"),
        fact("net.ipv4.tcp_tw_reuse", "2"),
        fact("net.core.somaxconn in trials", "65535"),
        fact("net.ipv4.tcp_tw_reuse in trials", "2"),
        fact("net.ipv4.tcp_fin_timeout in trials", "60"),
    ];
    let document = render(&run).appendix_md;
    let lines = |name: &str| -> Vec<&str> {
        let of_setting = |line: &&str| line.starts_with("| net.") && line.contains(name);
        document.lines().filter(of_setting).collect()
    };
    let one = |name: &str| {
        let lines = lines(name);
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0]
    };
    assert!(one("somaxconn").contains("| 65535 in trials, 4096 on the host "));
    assert!(one("tw\\_reuse").contains("| 2 "));
    assert!(one("fin\\_timeout").contains("| 60 "));
}

#[test]
fn a_column_of_the_csv_stood_there_twice() {
    let mut run = fixture::clients::requests(2);
    let service = fixture::services::rows(2, None, &[64]);
    run.plan.cells.extend(service.plan.cells);
    run.plan.subjects.extend(service.plan.subjects);
    run.plan.workloads.extend(service.plan.workloads);
    run.plan.settings.extend(service.plan.settings);
    run.plan.backings.extend(service.plan.backings);
    run.plan.fronts.extend(service.plan.fronts);
    run.trials.extend(service.trials);
    let csv = render(&run).summary_csv;
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let once: std::collections::BTreeSet<&str> = head.iter().copied().collect();
    assert_eq!(once.len(), head.len(), "{head:?}");
    let limit = head.iter().position(|name| *name == "limit").expect("it");
    for kind in ["rust/prony-clicky", "client"] {
        let row = csv.lines().find(|line| line.contains(kind)).expect("a row");
        assert!(row.split(',').count() >= head.len(), "{row}");
        let said = row.split(',').nth(limit).unwrap_or_default();
        assert!(!said.is_empty() || row.contains('"'), "{row}");
    }
}

#[test]
fn one_of_a_thing_was_said_in_the_plural() {
    let one = [fixture::subject("rust/axum", "axum", 142_000.0)];
    let mut run = fixture::run(&one, &[1], 1);
    let mut runs = vec![run.clone()];
    run.trials.clear();
    runs.push(run);
    for run in runs {
        let seen = render(&run);
        let svg = plot_svg(&run, Plot::Rate);
        for text in [&seen.document_md, &seen.index_html, &svg] {
            let words: Vec<&str> = text.split([' ', '\n', '>', '<', '|']).collect();
            for pair in words.windows(2) {
                let noun = pair[1].trim_end_matches(['.', ',', ':', ';']);
                let many = [
                    "trials",
                    "blocks",
                    "cells",
                    "connections",
                    "subjects",
                    "requests",
                    "cores",
                ];
                assert!(
                    !(["1", "one"].contains(&pair[0]) && many.contains(&noun)),
                    "{pair:?}"
                );
            }
        }
    }
}

/// Threads of one name are added, and shares are of the time over which the samplers looked.
#[test]
fn the_appendix_has_what_wrk_and_top_show() {
    let mut run = fixture::full();
    let cell = run.plan.cells[0].id.clone();
    for trial in run.trials.iter_mut().filter(|t| t.cell == cell) {
        let load = trial.load.as_mut().expect("a load");
        (load.latency_ns.mean, load.latency_ns.stdev) = (1_234_000.0, 567_000.0);
        let mut own = trial.processes.iter_mut();
        let own = own.find(|p| p.role == prony_record::Role::Subject);
        let own = &mut own.expect("a subject").threads;
        let mut one = own[0].clone();
        one.name = "worker".to_owned();
        (one.cpu_ns, one.delay_ns) = (trial.window_ns / 2, trial.window_ns / 100);
        let mut other = one.clone();
        other.cpu_ns = trial.window_ns / 4;
        let asleep = prony_record::ThreadRecord {
            name: "asleep".to_owned(),
            cpu_ns: trial.window_ns / 1000,
            ..one.clone()
        };
        *own = vec![one, other, asleep];
        trial.sampled_ns = trial.window_ns;
    }
    let seen = render(&run);
    let summary: serde_json::Value = serde_json::from_str(&seen.summary_json).expect("JSON");
    let of = &summary["cells"][0];
    assert_eq!(of["latency_mean_ns"]["median"], 1_234_000.0);
    assert_eq!(of["latency_stdev_ns"]["median"], 567_000.0);
    assert!(of["latency_p75_ns"]["median"].as_f64() > Some(0.0));
    assert!(of["received_bytes_per_s"]["median"].as_f64() > Some(0.0));
    let label = of["label"].as_str().expect("a label");
    let lines = seen.appendix_md.lines();
    let rows = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<&str>>());
    let mut of_thread =
        rows.filter(|row| row.len() > 5 && row[1..3] == [label, "worker ×2 (the subject's)"]);
    let row = of_thread.next().expect("a row");
    assert_eq!(row[3..6], ["75.0 %", "50.0 %", "2.0 %"]);
    assert!(!seen.appendix_md.contains("asleep"));
    assert!(!seen.document_md.contains("worker"), "the appendix has it");
}

/// Nanoseconds that this thread had a core for: what else runs on the machine adds nothing to them.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split(' ').next().expect("three numbers");
    first.parse().expect("nanoseconds")
}

/// Ten thousand in the long tier, a twenty-fifth of them else.
#[test]
fn ten_thousand_trials_are_rendered_in_two_seconds_and_half_a_gigabyte() {
    let blocks = if prony_testkit::long() { 250 } else { 10 };
    let sizes: Vec<u32> = (1..=10).map(|size| size * 40).collect();
    let run = fixture::run(&fixture::four(), &sizes, blocks);
    assert_eq!(run.trials.len() as u32, 4 * 10 * blocks);
    let began = cpu_ns();
    let rendered = prony_report::render(&run);
    let took_ns = cpu_ns() - began;
    assert!(
        rendered.document_md.lines().count() < 400,
        "it does not grow with its blocks"
    );
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let most = most.and_then(|most| most.trim().strip_suffix(" kB"));
    let most_kib: u64 = most.and_then(|most| most.parse().ok()).expect("kilobytes");
    let ms = took_ns / 1_000_000;
    println!(
        "{} trials in {ms} ms of CPU time, {most_kib} KiB",
        run.trials.len()
    );
    assert!(most_kib < 500_000, "{most_kib} KiB");
    assert!(ms < 2_000, "{ms} ms");
}

#[test]
fn a_section_that_is_called_like_the_document_is_linked_to() {
    let mut run = fixture::programs::spread(7);
    run.plan.title = "Overview".into();
    let document = render(&run).document_md;
    assert!(document.contains("# Overview\n"), "{document}");
    assert!(document.contains("[Overview](#overview-1)"), "{document}");
}
