use prony_record::{Counts, GeneratorKind, LoadReport, ProfiledThread};

use prony_record::ProfileReport;

use super::*;

/// What a trial saw of a server with one busy thread and one that waits.
fn profiled(generator: GeneratorKind, profile: ProfileReport) -> Trial {
    Trial {
        cell: "c/nginx ping c=2".to_owned(),
        generator,
        outcome: Outcome::Measured,
        load: Some(LoadReport {
            completed: 90_000,
            window_ns: 3_000_000_000,
            counts: Counts {
                sent: 1_000,
                ..Counts::default()
            },
            ..LoadReport::default()
        }),
        profile: Some(profile),
        ..Trial::default()
    }
}

fn by_perf() -> ProfileReport {
    let thread = |name: &str, tid: u32, cpu_ns: u64, syscalls: u64| ProfiledThread {
        pid: 7,
        tid,
        name: name.to_owned(),
        cpu_ns,
        delay_ns: 1_000_000,
        syscalls: Some(syscalls),
        switches_voluntary: syscalls / 100,
        ..ProfiledThread::default()
    };
    ProfileReport {
        rate_per_s: 997,
        length_ns: 3_000_000_000,
        samples: 2_990,
        kernel: true,
        syscalls_by: Some("perf".to_owned()),
        threads: vec![
            thread("HttpCon", 8, 2_997_000_000, 171_000),
            thread("HttpCon", 9, 0, 0),
            thread("main", 7, 30_000_000, 90),
        ],
        ..ProfileReport::default()
    }
}

const FOLDED: &str = "\
HttpCon;serve;do_syscall_64_[k];__x64_sys_writev_[k];tcp_sendmsg_[k];ip_output_[k] 1854
HttpCon;serve;do_syscall_64_[k];__x64_sys_epoll_wait_[k];do_epoll_wait_[k] 598
HttpCon;serve;parse 538
";

fn said(main: Option<&Trial>, strace: Option<&Trial>, folded: &str) -> String {
    let with = |trial: Option<&'static Trial>| trial.and_then(|t| Some((t, t.profile.as_ref()?)));
    // Tests may leak a trial.
    let kept = |trial: Option<&Trial>| with(trial.map(|t| &*Box::leak(Box::new(t.clone()))));
    let seen = Seen {
        cell: "c/nginx ping c=2",
        main: kept(main),
        strace: kept(strace),
    };
    words::sentence(&seen, folded)
}

#[test]
fn one_sentence_says_where_the_time_went_in_each_way_of_looking() {
    let whole = profiled(GeneratorKind::Profile, by_perf());
    let mut late = by_perf();
    late.length_ns /= 2;
    let late = profiled(GeneratorKind::Profile, late);
    let user = profiled(
        GeneratorKind::Profile,
        ProfileReport {
            kernel: false,
            syscalls_by: None,
            ..by_perf()
        },
    );
    let strace = profiled(
        GeneratorKind::ProfileStrace,
        ProfileReport {
            syscalls: [("writev".to_owned(), 1_000), ("epoll_wait".to_owned(), 900)].into(),
            syscalls_by: Some("strace".to_owned()),
            ..ProfileReport::default()
        },
    );
    let refused = profiled(
        GeneratorKind::Profile,
        ProfileReport {
            rate_per_s: 0,
            samples: 0,
            syscalls_by: None,
            ..by_perf()
        },
    );
    let mut program = profiled(
        GeneratorKind::Profile,
        ProfileReport {
            syscalls_by: Some("perf".to_owned()),
            ..by_perf()
        },
    );
    program.load = None;
    program.program = Some(prony_record::ProgramReport {
        lines: vec![prony_record::ProgramLine {
            measure: "coroutines".to_owned(),
            count: 20_000,
            ..prony_record::ProgramLine::default()
        }],
        ..prony_record::ProgramReport::default()
    });
    let nothing = profiled(GeneratorKind::Profile, ProfileReport::default());
    let lines = [
        said(Some(&whole), None, FOLDED),
        said(Some(&late), None, FOLDED),
        said(Some(&user), Some(&strace), "HttpCon;serve;parse 538\n"),
        said(None, Some(&strace), ""),
        said(Some(&refused), None, ""),
        said(Some(&whole), None, "HttpCon;serve;parse 99\n"),
        said(Some(&program), None, FOLDED),
        said(Some(&nothing), None, ""),
    ];
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_same_stacks_give_the_same_picture_and_none_give_none() {
    let svg = flame::svg("c/nginx ping c=2", FOLDED);
    assert_eq!(svg, flame::svg("c/nginx ping c=2", FOLDED));
    assert!(svg.contains("tcp_sendmsg (1,854 samples, 62.01%)"), "{svg}");
    assert!(!svg.contains("<script"), "{svg}");
    assert_eq!(flame::svg("x", ""), "");
    assert_eq!(flame::svg("x", "no number\n"), "");
}

#[test]
fn a_picture_as_an_address_ends_no_attribute() {
    let address = flame::address(&flame::svg("a \"quoted\" <cell>", FOLDED));
    assert!(
        address.starts_with("data:image/svg+xml,%3C%3Fxml"),
        "{address}"
    );
    assert!(
        !address.contains(['"', '<', '>', '#', '&', '\n']),
        "{address}"
    );
}
