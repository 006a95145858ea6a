//! The figures of programs, against what the records were made from.

use prony_report::{Run, render};
use serde_json::Value;

use crate::fixture;

fn summary(run: &Run) -> Value {
    serde_json::from_str(&render(run).summary_json).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Of `list` the one whose fields are these.
#[track_caller]
fn one<'a>(list: &'a Value, fields: &[(&str, &str)]) -> &'a Value {
    let list = list.as_array().expect("a list");
    let fits = |entry: &&Value| fields.iter().all(|(name, value)| entry[*name] == *value);
    let found: Vec<&Value> = list.iter().filter(fits).collect();
    assert_eq!(found.len(), 1, "{fields:?}");
    found[0]
}

#[test]
fn a_program_compares_with_the_usual_values_of_settings_that_it_lacks() {
    let summary = summary(&fixture::programs::runtime(6));
    let cell = |id: &str| one(&summary["cells"], &[("cell", id)])["ratio"].clone();
    let without = cell("python/asyncio coroutine n=1000000 threads=2");
    assert_eq!(
        without["reference_cell"],
        "rust/prony coroutine n=1000000 allocator=std hardening=on threads=2"
    );
    let with = cell("rust/tokio coroutine n=1000000 allocator=mimalloc threads=1");
    assert_eq!(
        with["reference_cell"],
        "rust/prony coroutine n=1000000 allocator=mimalloc hardening=on threads=1"
    );
    // 21.4 ms and 95.4 ms but for the noise.
    assert!((number(&with["ratio"]) - 21.4 / 95.4).abs() < 0.01);
    assert_eq!(with["conclusion"], "lower");
}

#[test]
fn a_setting_does_what_the_records_say() {
    let summary = summary(&fixture::programs::runtime(6));
    let effects = &summary["programs"]["effects"];
    let of = |subject: &str, setting: &str| {
        let all = [("subject", subject), ("setting", setting)];
        let list = effects.as_array().expect("a list").iter();
        let whole = list.filter(|e| e["workload"].is_null());
        let whole: Value = whole.cloned().collect();
        one(&whole, &all)["ratio"].clone()
    };
    let faster = of("cpp/coroutines", "allocator");
    assert!((number(&faster["ratio"]) - 1.0 / 0.78).abs() < 0.01);
    assert_eq!(faster["conclusion"], "higher");
    let nothing = of("cpp/coroutines", "hardening");
    assert_eq!(nothing["conclusion"], "no-difference-shown");
    assert!((number(&nothing["ratio"]) - 1.0).abs() < 0.01);
    // What a subject does not have is not shown of it.
    let list = effects.as_array().expect("a list");
    let lacks = |e: &&Value| e["subject"] == "rust/tokio" && e["setting"] == "hardening";
    assert_eq!(list.iter().filter(lacks).count(), 0);
    assert!(list.iter().all(|e| e["setting"] != "threads"));
}

#[test]
fn two_threads_are_measured_against_twice_one() {
    let run = fixture::programs::runtime(6);
    let mut more = run.clone();
    more.plan.cores.subject = vec![0];
    for (run, most) in [(run, 1.0), (more, 0.5)] {
        let summary = summary(&run);
        let fields = [
            ("subject", "python/asyncio"),
            ("workload", "coroutine"),
            ("cell", "python/asyncio coroutine n=1000000 threads=2"),
        ];
        let seen = one(&summary["programs"]["efficiencies"], &fields);
        assert!((number(&seen["ratio"]["ratio"]) - 1.0 / 1.04).abs() < 0.01);
        assert_eq!(number(&seen["most"]), most);
    }
}

#[test]
fn exponents_are_those_that_the_times_were_made_with() {
    let summary = summary(&fixture::programs::runtime(6));
    let scaling = summary["programs"]["scaling"].as_array().expect("a list");
    assert!(scaling.iter().all(|f| f["workload"] == "start"));
    for (subject, exponent, growth) in [
        ("cpp/coroutines", 2.0, "consistent"),
        ("rust/tokio", 1.4, "between"),
    ] {
        let of_subject = || scaling.iter().filter(|f| f["subject"] == subject);
        assert!(of_subject().count() > 0, "{subject} has an exponent");
        for figure in of_subject() {
            assert!((number(&figure["exponent"]) - exponent).abs() < 0.02);
            assert_eq!(figure["growth"], growth);
            assert_eq!(figure["start_up"], false);
        }
    }
}

/// A constant of a second before the work: the small end is flat, and no power is named.
#[test]
fn a_start_that_dwarfs_the_work_is_a_curve() {
    let mut run = fixture::programs::runtime(6);
    for trial in &mut run.trials {
        let report = trial.program.as_mut().expect("a program");
        report.lines[0].elapsed_ns += 100_000_000;
    }
    let summary = summary(&run);
    let scaling = summary["programs"]["scaling"].as_array().expect("a list");
    let mut own = scaling.iter().filter(|f| f["subject"] == "rust/prony");
    assert!(own.all(|f| f["growth"] == "curved"));
    let document = render(&run).document_md;
    assert!(document.contains("no single power: N^"));
}

#[test]
fn a_checksum_that_differs_makes_a_cell_invalid_and_no_sentence_compares_it() {
    let mut run = fixture::programs::runtime(6);
    let wrong = |cell: &str| cell.starts_with("rust/tokio coroutine");
    for trial in run.trials.iter_mut().filter(|t| wrong(&t.cell)) {
        trial.program.as_mut().expect("a program").lines[0].checksum = "0".to_owned();
    }
    let rendered = render(&run);
    let mut rankings = rendered.answer_txt.split("\n\n");
    let coroutine = rankings
        .find(|of| of.starts_with("       coroutine, n"))
        .expect("its ranking");
    assert!(coroutine.contains("asyncio"), "{coroutine}");
    assert!(coroutine.contains("left out: rust/tokio ("), "{coroutine}");
    assert!(coroutine.contains("(P015)"), "{coroutine}");
    let row = |l: &&str| l.starts_with("| rust/tokio[^") && l.contains(" invalid |");
    assert!(rendered.appendix_md.lines().any(|l| row(&l)));
}

#[test]
fn what_was_not_run_is_named_with_its_reason() {
    let mut run = fixture::programs::realtime(2);
    let gone = "rust/prony realtime n=20000 throttle=-1";
    run.plan.cells.retain(|cell| cell.id != gone);
    run.trials.retain(|trial| trial.cell != gone);
    run.plan.not_run = vec![prony_record::NotRun {
        what: gone.to_owned(),
        reason: "kernel.sched_rt_runtime_us may not be written".to_owned(),
        remedy: "sysctl -w kernel.sched_rt_runtime_us=-1".to_owned(),
    }];
    let document = render(&run).document_md;
    let section = section(&document, "What was not run").join("\n");
    for part in [
        "rust/prony realtime n=20000 throttle=-1",
        "kernel.sched",
        "`sysctl -w kernel.sched_rt_runtime_us=-1`",
    ] {
        assert!(section.contains(part), "{section}");
    }
}

#[test]
fn no_deadline_missed_is_said() {
    let mut run = fixture::programs::realtime(2);
    run.trials
        .retain(|trial| trial.cell.ends_with("throttle=-1"));
    let document = render(&run).document_md;
    assert!(document.contains("No deadline was missed."));
    assert!(!document.contains("**Missed deadlines**"));
}

/// The machine's drift is a note on the run, once, and marks no figure.
#[test]
fn a_machine_that_drifts_is_one_note_of_the_run() {
    let mut run = fixture::programs::realtime(2);
    for trial in &mut run.trials {
        trial.canary.as_mut().expect("a canary").after.compute_ns *= 2;
    }
    let seen = render(&run);
    let evidence = "canary, after against before, at the median: 100 %";
    let (document, appendix) = (seen.document_md, seen.appendix_md);
    let line = format!("- **P009, machine drifted** ({evidence}");
    assert_eq!(document.matches(&line).count(), 1, "{document}");
    assert_eq!(appendix.matches("| P009 |").count(), 1, "{appendix}");
    let seen = format!("    - the whole run: {evidence}");
    assert!(appendix.contains(&seen), "{appendix}");
}

/// The lines of the section with this heading.
#[track_caller]
fn section<'a>(document: &'a str, heading: &str) -> Vec<&'a str> {
    let start = format!("## {heading}");
    let lines = document.lines().skip_while(|line| *line != start);
    let section = lines.skip(1).take_while(|line| !line.starts_with("## "));
    let section: Vec<&str> = section.collect();
    assert!(!section.is_empty(), "no section {heading}");
    section
}

#[test]
fn a_subject_without_a_setting_for_threads_stands_where_its_number_belongs() {
    let mut run = fixture::programs::spread(2);
    let tables_with_asyncio = |run: &Run| {
        let document = render(run).document_md;
        let mut seen = Vec::new();
        let mut caption = "";
        for line in section(&document, "Overview") {
            if line.starts_with("**") {
                caption = line;
            } else if line.starts_with("| python/asyncio") {
                seen.push(caption.to_owned());
            }
        }
        seen.dedup();
        seen
    };
    assert_eq!(tables_with_asyncio(&run), ["**1 thread**"]);
    for subject in &mut run.plan.subjects {
        subject.program_threads = 2;
    }
    assert_eq!(tables_with_asyncio(&run), ["**2 threads**"]);
}

#[test]
fn the_fastest_is_named_only_from_six_blocks() {
    let of_blocks = |blocks| {
        let document = render(&fixture::programs::spread(blocks)).document_md;
        let answer = section(&document, "Short answer").join("\n");
        assert!(answer.contains("rust/prony"), "{answer}");
        answer.contains(" leads") || answer.contains("share the first place")
    };
    assert!(!of_blocks(1) && !of_blocks(5));
    assert!(of_blocks(6));
}

#[test]
fn sweeps_of_one_work_are_one_section_with_all_its_subjects() {
    let run = fixture::programs::spread(7);
    let document = render(&run).document_md;
    let heading = "How the time of start grows with N";
    assert_eq!(document.matches(&format!("## {heading}")).count(), 1);
    let exponents = section(&document, heading);
    for subject in ["rust/prony", "cpp/coroutines", "rust/tokio"] {
        let row = |line: &&&str| line.starts_with(&format!("| {subject}")) && line.contains("N");
        assert_eq!(exponents.iter().filter(row).count(), 1, "{subject}");
    }
    // Other arguments are another work.
    let mut other = run;
    let few = other
        .plan
        .workloads
        .iter_mut()
        .find(|w| w.name == "start-few");
    let program = few.expect("one").program.as_mut().expect("a program");
    program.args = vec!["--slowly".to_owned()];
    let document = render(&other).document_md;
    assert_eq!(document.matches("## How the time of").count(), 2);
}
