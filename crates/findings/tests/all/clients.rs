//! Each finding on clients provoked, and just not provoked; and that those on servers and on
//! programs are silent.

use prony_findings::client::{Busy, Limit};
use prony_findings::{Code, Finding, Records, Severity, findings};
use prony_record::{
    Cell, ClientFigures, ClientReport, CoreUse, Cores, LatencyNs, Outcome, PeerCounts, Plan,
    PlannedClient, PlannedSubject, PlannedWorkload, ProcessRecord, ProgramLine, ProgramReport,
    Role, Spread, Trial,
};

pub const MS: u64 = 1_000_000;
const COUNT: u64 = 50_000;
/// Connections of every cell; the latency of a good run keeps them all in flight.
const CONNECTIONS: u32 = 10;

pub fn plan() -> Plan {
    let workload = |name: &str, work: &str| PlannedWorkload {
        name: name.to_owned(),
        client: Some(PlannedClient {
            work: work.to_owned(),
            threads: 1,
            peer: "c/nginx".to_owned(),
            peer_threads: 1,
            ..PlannedClient::default()
        }),
        ..PlannedWorkload::default()
    };
    let cells = ["page", "file"].iter().flat_map(|work| {
        ["a", "b"].map(|id| Cell {
            id: format!("{id} {work}"),
            subject: id.to_owned(),
            workload: (*work).to_owned(),
            connections: CONNECTIONS,
            ..Cell::default()
        })
    });
    Plan {
        duration_ns: 1000 * MS,
        cores: Cores {
            subject: vec![0],
            generator: vec![1],
            ..Cores::default()
        },
        subjects: ["a", "b"]
            .map(|id| PlannedSubject {
                id: id.to_owned(),
                ..PlannedSubject::default()
            })
            .into(),
        workloads: vec![workload("page", "requests"), workload("file", "downloads")],
        cells: cells.collect(),
        ..Plan::default()
    }
}

/// A run with nothing to find: a second of requests by a client that has time left, to a peer
/// that has.
fn good(cell: &str, block: u32) -> Trial {
    let downloads = cell.ends_with("file");
    let count = if downloads { 10 } else { COUNT };
    let mean = 1000.0 * MS as f64 * f64::from(CONNECTIONS) / count as f64 * 0.97;
    let at = |factor: f64| (mean * factor) as u64;
    let in_flight = if downloads { 0 } else { 10 };
    let figures = ClientFigures {
        connections: CONNECTIONS,
        in_flight: Some(in_flight),
        latency: Some(LatencyNs {
            count,
            min: at(0.6),
            mean,
            p50: at(0.95),
            p90: at(1.2),
            p99: at(1.5),
            max: at(3.0),
            ..LatencyNs::default()
        }),
        ..ClientFigures::default()
    };
    let core = |core, role, busy: u64| CoreUse {
        core,
        role: Some(role),
        busy_ns: busy * MS,
        steal_ns: 0,
        ksoftirqd_ns: None,
    };
    Trial {
        cell: cell.to_owned(),
        block,
        outcome: Outcome::Measured,
        sampled_ns: 1040 * MS,
        program: Some(ProgramReport {
            wall_ns: 1030 * MS,
            user_ns: 200 * MS,
            system_ns: 400 * MS,
            peak_bytes: 20 << 20,
            lines: vec![ProgramLine {
                measure: if downloads { "downloads" } else { "requests" }.to_owned(),
                threads: 1,
                count,
                elapsed_ns: 1000 * MS,
                bytes: count * 117,
                client: Some(figures),
                ..ProgramLine::default()
            }],
        }),
        client: Some(ClientReport {
            peer: PeerCounts {
                requests: Some(count + in_flight),
                bytes: Some(count * 117),
                source: "stub_status".to_owned(),
            },
            page_status: 200,
            page_head_bytes: 240,
            page_body_bytes: 117,
            ..ClientReport::default()
        }),
        processes: vec![ProcessRecord {
            role: Role::Peer,
            name: "nginx".to_owned(),
            cpu_ns: 700 * MS,
            ..ProcessRecord::default()
        }],
        cores: vec![core(0, Role::Subject, 700), core(1, Role::Peer, 800)],
        ..Trial::default()
    }
}

pub fn in_plan(plan: &Plan, cell: &str, change: impl Fn(&mut Trial)) -> Vec<Finding> {
    let of_block = |block| plan.cells.iter().map(move |c| good(&c.id, block));
    let mut trials: Vec<Trial> = (0..3).flat_map(of_block).collect();
    trials
        .iter_mut()
        .filter(|t| t.cell == cell)
        .for_each(change);
    findings(&Records::new(plan, &trials))
}

pub fn found(change: impl Fn(&mut Trial)) -> Vec<Finding> {
    in_plan(&plan(), "a page", change)
}

pub fn line(change: impl Fn(&mut ProgramLine)) -> impl Fn(&mut Trial) {
    move |trial| change(&mut trial.program.as_mut().expect("a program").lines[0])
}

pub fn figures(change: impl Fn(&mut ClientFigures)) -> impl Fn(&mut Trial) {
    line(move |line| change(line.client.as_mut().expect("a client")))
}

pub fn latency(change: impl Fn(&mut LatencyNs)) -> impl Fn(&mut Trial) {
    figures(move |figures| change(figures.latency.as_mut().expect("a latency")))
}

pub fn peer(change: impl Fn(&mut PeerCounts)) -> impl Fn(&mut Trial) {
    move |trial| change(&mut trial.client.as_mut().expect("a client").peer)
}

#[track_caller]
fn only(code: Code, severity: Severity, found: &[Finding]) -> Finding {
    assert_eq!(found.len(), 1, "{found:#?}");
    let seen = (found[0].code, found[0].severity);
    assert_eq!(seen, (code, severity), "{found:#?}");
    found[0].clone()
}

#[track_caller]
fn none(found: &[Finding]) {
    assert_eq!(found, []);
}

#[test]
fn good_runs_have_no_finding() {
    none(&found(|_| {}));
}

/// A client waits, works on its own threads, and has the same peak wherever it asks.
#[test]
fn what_is_of_other_programs_is_silent() {
    none(&found(|trial| {
        let program = trial.program.as_mut().expect("a program");
        (program.user_ns, program.system_ns) = (MS, MS);
        program.lines[0].checksum = "another".to_owned();
    }));
}

#[test]
fn p005_more_in_flight_than_connections() {
    let mean = |factor: f64| latency(move |l| l.mean = 0.97 * 0.2 * MS as f64 * factor);
    none(&found(mean(1.05)));
    let seen = only(Code::P005, Severity::Note, &found(mean(1.06)));
    assert!(seen.meaning.contains("The rate stands"));
    // Nothing confirms the count.
    let seen = found(|trial| {
        mean(1.06)(trial);
        peer(|p| p.requests = None)(trial);
    });
    only(Code::P005, Severity::Invalid, &seen);
    let seen = found(|trial| {
        mean(1.06)(trial);
        trial.program.as_mut().expect("a program").wall_ns = 1601 * MS;
    });
    let codes: Vec<(Code, Severity)> = seen.iter().map(|f| (f.code, f.severity)).collect();
    assert_eq!(
        codes,
        [
            (Code::P005, Severity::Invalid),
            (Code::P019, Severity::Note)
        ]
    );
}

#[test]
fn p005_few_in_flight_without_full_cores() {
    let mean = |factor: f64| latency(move |l| l.mean = 0.2 * MS as f64 * factor);
    none(&found(mean(0.80)));
    only(Code::P005, Severity::Note, &found(mean(0.79)));
    none(&found(|trial| {
        mean(0.79)(trial);
        trial.cores[0].busy_ns = 990 * MS;
    }));
    let downloads = in_plan(&plan(), "a file", latency(|l| l.mean *= 0.7));
    none(&downloads);
}

#[test]
fn p006_failures_by_the_clients_own_names() {
    let seen = found(|trial| {
        figures(|f| {
            f.failed = 3;
            f.failed_by_kind = [("timeout".to_owned(), 3), ("reset".to_owned(), 0)].into();
        })(trial);
        peer(|p| p.requests = p.requests.map(|n| n + 3))(trial);
    });
    let finding = only(Code::P006, Severity::Note, &seen);
    assert!(finding.evidence.iter().any(|e| e.what == "timeout"));
    assert!(finding.evidence.iter().all(|e| e.what != "reset"));
}

#[test]
fn p006_attempts_to_connect_that_failed() {
    let unconnected = |count: u64| {
        found(line(move |l| {
            l.tallies.insert("connect_failed".to_owned(), count);
        }))
    };
    only(Code::P006, Severity::Note, &unconnected(1));
    none(&unconnected(0));
}

#[test]
fn p007_more_cpu_time_than_its_threads_have() {
    let used = |ms: u64| {
        found(move |trial| trial.program.as_mut().expect("a program").system_ns = ms * MS)
    };
    only(Code::P007, Severity::Note, &used(900));
    none(&used(880));
}

#[test]
fn p012_other_bytes_than_the_page() {
    let bytes = |each: u64| found(line(move |l| l.bytes = each * COUNT / 100));
    none(&bytes(11_600));
    only(Code::P012, Severity::Note, &bytes(11_500));
    only(Code::P012, Severity::Note, &bytes(35_700));
    // The tool does not say.
    none(&bytes(0));
    let with_heads = |each: u64| {
        found(line(move |l| {
            l.bytes = 0;
            l.tallies
                .insert("bytes_with_heads".to_owned(), each * COUNT);
        }))
    };
    none(&with_heads(428));
    only(Code::P012, Severity::Note, &with_heads(429));
    only(Code::P012, Severity::Note, &with_heads(285));
}

#[test]
fn p018_off_by_one_is_seen() {
    let requests = |off: i64| {
        found(peer(move |p| {
            p.requests = p.requests.and_then(|n| n.checked_add_signed(off));
        }))
    };
    let named = |found: &[Finding]| -> Vec<String> {
        let finding = only(Code::P018, Severity::Invalid, found);
        let evidence = finding.evidence.into_iter().map(|e| e.what);
        evidence.filter(|what| what.contains("that the")).collect()
    };
    let unaccounted = "requests that the client does not account for";
    assert_eq!(named(&requests(1)), [unaccounted]);
    assert_eq!(named(&requests(-1)), ["requests that the peer never saw"]);
    none(&requests(0));
    none(&found(peer(|p| p.requests = None)));
}

#[test]
fn p018_in_flight_that_is_not_said_is_up_to_one_a_connection() {
    let off = |off: i64| {
        found(move |trial| {
            figures(|f| f.in_flight = None)(trial);
            peer(|p| p.requests = COUNT.checked_add_signed(off))(trial);
        })
    };
    for fine in [0, 1, 10] {
        none(&off(fine));
    }
    only(Code::P018, Severity::Invalid, &off(-1));
    only(Code::P018, Severity::Invalid, &off(11));
}

#[test]
fn p018_bytes_of_downloads() {
    let seen = in_plan(
        &plan(),
        "a file",
        peer(|p| p.bytes = p.bytes.map(|n| n + 1)),
    );
    let finding = only(Code::P018, Severity::Invalid, &seen);
    assert_eq!(finding.cell, "a file");
}

#[test]
fn p019_a_run_that_is_longer_than_it_says() {
    let wall = |ms: u64| found(move |t| t.program.as_mut().expect("a program").wall_ns = ms * MS);
    only(Code::P019, Severity::Note, &wall(1601));
    none(&wall(1600));
    // Its own clock ran for longer than it did.
    only(Code::P019, Severity::Invalid, &wall(989));
    none(&wall(991));
}

#[test]
fn p019_not_the_time_that_it_was_told() {
    let slow = |ms: u64| {
        found(move |trial| {
            line(|l| l.elapsed_ns = ms * MS)(trial);
            latency(|l| l.mean *= ms as f64 / 1000.0)(trial);
            trial.program.as_mut().expect("a program").wall_ns = (ms + 30) * MS;
        })
    };
    only(Code::P019, Severity::Note, &slow(1101));
    only(Code::P019, Severity::Note, &slow(880));
    none(&slow(1099));
}

#[test]
fn p019_a_rate_that_is_not_count_over_elapsed() {
    let rate = |per_s: f64| {
        found(line(move |l| {
            let spread = Spread {
                mean: per_s,
                ..Spread::default()
            };
            l.figures.insert("requests_per_s".to_owned(), spread);
        }))
    };
    only(Code::P019, Severity::Note, &rate(52_000.0));
    none(&rate(50_900.0));
}

#[test]
fn p019_percentiles_that_fall_and_a_mean_beyond_the_largest() {
    let falls = latency(|l| l.p90 = l.p50 / 2);
    only(Code::P019, Severity::Invalid, &found(falls));
    let beyond = latency(|l| {
        (l.min, l.p50, l.p90, l.p99, l.max) = (1000, 2000, 3000, 4000, 150_000);
    });
    only(Code::P019, Severity::Invalid, &found(beyond));
    let below = latency(|l| l.min = (l.mean * 1.03) as u64);
    only(
        Code::P019,
        Severity::Invalid,
        &found(|trial| {
            below(trial);
            latency(|l| (l.p50, l.p90, l.p99) = (l.min, l.min, l.min))(trial);
        }),
    );
}

#[test]
fn p019_what_rounding_explains_and_what_is_not_given_contradicts_nothing() {
    none(&found(latency(|l| (l.p50, l.p90) = (204_000, 200_000))));
    only(
        Code::P019,
        Severity::Invalid,
        &found(latency(|l| (l.p50, l.p90) = (204_001, 200_000))),
    );
    // Without a mean there is no Little's law, and nothing that it could contradict.
    none(&found(latency(|l| l.mean = 0.0)));
    none(&found(latency(|l| (l.min, l.p99_9) = (0, 0))));
}

/// Findings where the cores of both sides were busy for so many of 1,040 ms.
pub fn busy(client: u64, peer: u64) -> Vec<Finding> {
    found(move |trial| {
        trial.cores[0].busy_ns = client * MS;
        trial.cores[1].busy_ns = peer * MS;
    })
}

#[test]
fn p020_the_peer_was_the_limit() {
    // The peer is asked for 1000 ms of the 1040 ms.
    only(Code::P020, Severity::Bound, &busy(900, 951));
    none(&busy(900, 949));
    none(&busy(1000, 1000));
    // Something else filled its core.
    none(&found(|trial| {
        trial.cores[1].busy_ns = 1000 * MS;
        trial.processes[0].cpu_ns = 490 * MS;
    }));
}

#[test]
fn the_limit_is_named_only_where_both_sides_are_known() {
    let cores = plan().cores;
    let limit = |change: fn(&mut Trial)| {
        let mut trial = good("a page", 0);
        change(&mut trial);
        Busy::new(&trial, &cores).limit()
    };
    assert_eq!(limit(|_| {}), Some(Limit::RoundTrips));
    assert_eq!(
        limit(|t| t.cores[0].busy_ns = 1000 * MS),
        Some(Limit::Client)
    );
    let both = |t: &mut Trial| t.cores.iter_mut().for_each(|c| c.busy_ns = 1000 * MS);
    assert_eq!(limit(both), Some(Limit::Both));
    // Something else filled the client's core.
    let other = |t: &mut Trial| {
        t.cores[0].busy_ns = 1040 * MS;
        t.program.as_mut().expect("a program").system_ns = 290 * MS;
    };
    assert_eq!(limit(other), Some(Limit::RoundTrips));
    // Of the client its CPU time is known anyway.
    assert_eq!(limit(|t| t.cores.clear()), Some(Limit::RoundTrips));
    let nothing = |t: &mut Trial| {
        t.cores.clear();
        t.processes.clear();
    };
    assert_eq!(limit(nothing), None);
}

#[test]
fn p021_more_threads_than_cores() {
    only(Code::P021, Severity::Note, &found(line(|l| l.threads = 2)));
    let mut peer = plan();
    for workload in &mut peer.workloads {
        workload.client.as_mut().expect("a client").peer_threads = 2;
    }
    let seen = in_plan(&peer, "a page", |_| {});
    assert!(seen.iter().all(|f| f.code == Code::P021) && seen.len() == 4);
    peer.cores = Cores::default();
    none(&in_plan(&peer, "a page", |_| {}));
}

#[test]
fn p022_percentiles_that_are_not_given_and_answers_without_latency() {
    let seen = found(latency(|l| (l.p90, l.p99) = (0, 0)));
    only(Code::P022, Severity::Note, &seen);
    only(
        Code::P022,
        Severity::Note,
        &found(figures(|f| f.latency = None)),
    );
    only(
        Code::P022,
        Severity::Note,
        &found(latency(|l| l.count -= 511)),
    );
    none(&found(latency(|l| l.count -= 510)));
    none(&found(latency(|l| l.count += 510)));
    none(&in_plan(&plan(), "a file", figures(|f| f.latency = None)));
}

/// Nothing that a file may say makes a rule divide by zero or overflow.
#[test]
fn nothing_at_all_is_no_finding_but_for_the_latency() {
    let seen = found(|trial| {
        trial.client = None;
        trial.program.as_mut().expect("a program").lines.clear();
    });
    none(&seen);
    let most = found(|trial| {
        line(|l| {
            (l.count, l.elapsed_ns, l.bytes) = (u64::MAX, u64::MAX, u64::MAX);
        })(trial);
        peer(|p| (p.requests, p.bytes) = (Some(0), Some(0)))(trial);
    });
    assert!(most.iter().any(|f| f.code == Code::P018));
}
