//! Trials that profile: what they say stands in the section "Why", and nothing else knows of them.

use prony_record::{GeneratorKind, Outcome, PlannedProfile, ProfileReport, ProfiledThread, Trial};
use prony_report::{Run, render};

use crate::fixture;

const FOLDED: &str = "\
axum;main;do_syscall_64_[k];__x64_sys_writev_[k];tcp_sendmsg_[k] 700
axum;main;<unsafe>|`name`;parse_[head] 300
";

fn usual() -> Run {
    let subjects = [
        fixture::subject("rust/axum", "axum", 100_000.0),
        fixture::subject("c/nginx", "nginx", 120_000.0),
    ];
    let mut run = fixture::run(&subjects, &[2], 6);
    run.plan.reference = Some("rust/axum".to_owned());
    run
}

/// A trial that profiles the first cell: as another one, but that it is a tenth as fast and used much of everything.
fn profile(run: &Run, generator: GeneratorKind, report: ProfileReport) -> Trial {
    let mut trial = run.trials[0].clone();
    trial.cell.clone_from(&run.plan.cells[0].id);
    trial.generator = generator;
    trial.block = run.plan.blocks;
    trial.histogram = None;
    trial.sampler_cpu_ns = Some(trial.sampled_ns);
    trial.isolation.network_namespace = false;
    trial.started_unix_ms += 1_000_000_000;
    let load = trial.load.as_mut().expect("a load");
    load.completed /= 10;
    load.rate_per_s /= 10.0;
    load.counts.failed.timeout = 99;
    trial.profile = Some(report);
    trial
}

fn profiled() -> Run {
    let mut run = usual();
    run.plan.profile = Some(PlannedProfile {
        window_ns: 3_000_000_000,
        rate_per_s: 997,
    });
    let name = "profiles/b06-p00-profile.folded".to_owned();
    let report = ProfileReport {
        rate_per_s: 997,
        length_ns: 2_000_000_000,
        folded: Some(name.clone()),
        samples: 1_000,
        kernel: true,
        syscalls_by: Some("perf".to_owned()),
        threads: vec![ProfiledThread {
            pid: 3,
            tid: 3,
            name: "axum".to_owned(),
            cpu_ns: 1_990_000_000,
            samples: 1_000,
            syscalls: Some(40_000),
            ..ProfiledThread::default()
        }],
        refused: vec!["something was refused".to_owned()],
        ..ProfileReport::default()
    };
    run.trials
        .push(profile(&run, GeneratorKind::Profile, report));
    run.trials.push(profile(
        &run,
        GeneratorKind::ProfileStrace,
        ProfileReport::default(),
    ));
    let mut failed = profile(&run, GeneratorKind::Profile, ProfileReport::default());
    failed.cell.clone_from(&run.plan.cells[1].id);
    failed.profile = None;
    failed.outcome = Outcome::Failed {
        phase: prony_record::Phase::Measure,
        reason: "the subject died".to_owned(),
    };
    run.trials.push(failed);
    run.profiles.insert(name, FOLDED.to_owned());
    run
}

/// The section "Why", and the text without it.
fn apart(document: &str) -> (String, String) {
    apart_at(document, "## Why\n")
}

fn apart_at(document: &str, heading: &str) -> (String, String) {
    let (before, rest) = document.split_once(heading).expect("the section");
    let (section, after) = rest.split_once("\n## ").expect("another section");
    (section.to_owned(), format!("{before}## {after}"))
}

#[test]
fn figures_claims_and_findings_are_the_same_with_profiles_and_without() {
    let (with, without) = (render(&profiled()), render(&usual()));
    assert_eq!(with.summary_json, without.summary_json);
    assert_eq!(with.summary_csv, without.summary_csv);
    assert_eq!(with.answer_txt, without.answer_txt);
    assert_eq!(apart(&with.document_md).1, without.document_md);
    let (_, appendix) = apart_at(&with.appendix_md, "## Threads of the profiles\n");
    assert_eq!(appendix, without.appendix_md);
    for export in [
        prony_report::Export::Long,
        prony_report::Export::Benchstat,
        prony_report::Export::Junit,
    ] {
        assert_eq!(
            prony_report::export(&profiled(), export),
            prony_report::export(&usual(), export)
        );
    }
    let own = |picture: &&(String, String)| !picture.0.contains("flame");
    let pictures: Vec<_> = with.pictures.iter().filter(own).cloned().collect();
    assert_eq!(pictures, without.pictures);
}

#[test]
fn the_section_says_where_the_time_went_what_was_refused_and_what_failed() {
    let rendered = render(&profiled());
    insta::assert_snapshot!(apart(&rendered.document_md).0);
    let flames = rendered.pictures.iter().filter(|p| p.0.contains("flame"));
    let flames: Vec<&str> = flames.map(|picture| picture.0.as_str()).collect();
    assert_eq!(flames, ["pictures/flame-1.svg"]);
    assert!(rendered.index_html.contains("<section id=\"why\">"));
    assert!(rendered.index_html.contains("src=\"data:image/svg+xml,"));
    assert!(!render(&usual()).index_html.contains("id=\"why\""));
}

#[test]
fn a_profile_whose_stacks_are_not_there_or_are_none_is_said_without_a_picture() {
    let mut gone = profiled();
    gone.profiles.clear();
    let mut garbled = profiled();
    for folded in garbled.profiles.values_mut() {
        *folded = "\u{0};;;\n 7 7 x\n-1\n".to_owned();
    }
    for run in [gone, garbled] {
        let rendered = render(&run);
        let section = apart(&rendered.document_md).0;
        assert!(
            section.contains("too few samples (0) to say where"),
            "{section}"
        );
        assert!(!section.contains("flame-"), "{section}");
    }
}
