//! What the generator added, schedules, and servers that froze: P001, P005, P028 and P029.

use prony_findings::{Code, Finding, Severity, Verdict, verdict};
use prony_record::{
    Arrivals, GeneratorDelay, LatencyNs, LatencyOrigin, LoadReport, NEVER, Pace, Timestamps,
};

use super::rules::{SECOND, WINDOW, evidence, found, none, only, reported};

fn mean_of(count: u64, mean: f64) -> LatencyNs {
    LatencyNs {
        count,
        mean,
        p50: mean as u64,
        ..LatencyNs::default()
    }
}

/// A million requests of 1 ms on 100 connections; of each millisecond `pick_up_us` is pick-up at most, and
/// between two of them lie `handling_us` and `lateness_us`.
fn added(load: &mut LoadReport, pick_up_us: f64, handling_us: f64, lateness_us: f64) {
    let all = load.completed;
    load.delay = Some(GeneratorDelay {
        pick_up_ns: mean_of(all, pick_up_us * 1e3),
        handling_ns: mean_of(all, handling_us * 1e3),
        lateness_ns: mean_of(all, lateness_us * 1e3),
        ..GeneratorDelay::default()
    });
    load.latency_ns.mean = (1_000.0 - handling_us - lateness_us) * 1e3;
    load.latency_ns.p50 = 1_000_000;
}

#[test]
fn p001_half_of_the_latency_may_be_the_generators() {
    let with = |us: f64| found(reported(move |load| added(load, us, 0.0, 0.0)));
    let finding = only(Code::P001, Severity::Bound, &with(500.0));
    let share = "generator's part of the latencies, at most";
    assert_eq!(evidence(&finding, share), 0.5);
    none(&with(499.0));
    // Some stalls of the generator are in the mean and not in the median.
    none(&found(reported(|load| {
        added(load, 600.0, 0.0, 0.0);
        load.delay.as_mut().expect("some").pick_up_ns.p50 = 10_000;
    })));
    // With the kernel's stamps the latency ends when the answer arrived.
    none(&found(reported(|load| {
        added(load, 199.0, 0.0, 0.0);
        load.timestamps = Timestamps::Kernel;
        load.latency_ns.mean -= 199e3;
    })));
    // Of fewer than half of the answers: the usual one woke the thread.
    let of_tenths = |tenths: u64, us: f64| {
        found(reported(move |load| {
            added(load, us, 0.0, 0.0);
            let delay = load.delay.as_mut().expect("some");
            delay.pick_up_ns.count = load.completed * tenths / 10;
        }))
    };
    none(&of_tenths(4, 1_900.0));
    only(Code::P001, Severity::Bound, &of_tenths(6, 950.0));
}

#[test]
fn p001_a_fifth_of_the_connections_time_is_the_generators() {
    let with = |us: f64| found(reported(move |load| added(load, 0.0, us, us)));
    let finding = only(Code::P001, Severity::Bound, &with(100.0));
    assert_eq!(
        evidence(&finding, "generator's part of the connections' time"),
        0.2
    );
    none(&with(99.0));
}

/// 1,000 a second for ten seconds over 100 connections, each answered within a millisecond.
pub fn open(load: &mut LoadReport) {
    load.pace = Pace::Constant {
        rate_per_s: 1_000.0,
    };
    load.latency_from = LatencyOrigin::Intended;
    (load.completed, load.counts.completed) = (10_000, 10_000);
    load.rate_per_s = 1_000.0;
    load.received_bytes = 1_000_000;
    load.latency_ns.count = 10_000;
    load.slices.completed = vec![100; 100];
    added(load, 10.0, 10.0, 10.0);
    load.latency_ns.mean = 1e6;
    load.arrivals = Some(Arrivals {
        scheduled: 10_000,
        sent: 10_000,
        in_window: 10_000,
        ..Arrivals::default()
    });
}

#[test]
fn an_open_loop_with_idle_connections_has_no_finding() {
    none(&found(reported(open)));
}

#[test]
fn p001_a_generator_that_does_not_keep_up_is_no_measurement() {
    let found = found(reported(|load| {
        open(load);
        load.completed = 8_000;
        load.received_bytes = 800_000;
        let arrivals = load.arrivals.as_mut().expect("a schedule");
        arrivals.generator_short = true;
    }));
    let finding = only(Code::P001, Severity::Invalid, &found);
    assert_eq!(verdict(&found), Verdict::Invalid);
    assert_eq!(evidence(&finding, "drawn"), 1_000.0);
    assert_eq!(evidence(&finding, "completed"), 800.0);
}

#[test]
fn p001_in_an_open_loop_lateness_is_part_of_the_latency() {
    let late = |us: f64| {
        found(reported(move |load| {
            open(load);
            added(load, 0.0, 0.0, us);
            load.latency_ns.mean = 1e6;
        }))
    };
    only(Code::P001, Severity::Bound, &late(200.0));
    none(&late(199.0));
}

#[test]
fn p001_a_busy_generator_that_keeps_a_schedule_is_not_the_limit() {
    none(&found(|trial| {
        trial.cores[1].busy_ns = WINDOW;
        let load = trial.load.as_mut().expect("a load");
        open(load);
        load.cpu_ns = WINDOW;
        load.threads_cpu[0].cpu_ns = WINDOW;
    }));
}

/// A schedule whose requests waited for slots, and of which so many were completed.
pub fn waited(load: &mut LoadReport, completed: u64) {
    open(load);
    load.completed = completed;
    let slot_wait_ns = mean_of(10_000, 4e8);
    load.delay.as_mut().expect("some").slot_wait_ns = slot_wait_ns;
    load.latency_ns.mean = 4e8 + 1e6;
    let arrivals = load.arrivals.as_mut().expect("a schedule");
    arrivals.waiting_max = 1_000;
}

/// As [`waited`], and overloaded.
pub fn overloaded(load: &mut LoadReport) {
    waited(load, 9_000);
    let arrivals = load.arrivals.as_mut().expect("a schedule");
    (arrivals.overloaded, arrivals.dropped) = (true, 7);
}

/// As many as once waited were answered after all.
#[test]
fn p029_not_where_a_queue_was_worked_off() {
    none(&found(reported(|load| waited(load, 9_950))));
}

#[test]
fn p029_a_server_that_does_not_keep_up_is_a_fact() {
    let found = found(reported(overloaded));
    let finding = only(Code::P029, Severity::Note, &found);
    assert_eq!(verdict(&found), Verdict::Valid);
    assert_eq!(evidence(&finding, "drawn"), 1_000.0);
    assert_eq!(evidence(&finding, "completed"), 900.0);
    assert_eq!(evidence(&finding, "never sent"), 7.0);
}

fn has(code: Code, found: &[Finding]) -> bool {
    found.iter().any(|finding| finding.code == code)
}

/// Latency, handling and lateness are taken at different places: a piece that none of them has is a gap.
#[test]
fn p005_the_times_of_a_connection_add_up_or_it_is_said() {
    let with = |latency_us: f64, handling_us: f64, lateness_us: f64| {
        found(reported(move |load| {
            added(load, 0.0, handling_us, lateness_us);
            load.latency_ns.mean = latency_us * 1e3;
        }))
    };
    assert!(!has(Code::P005, &with(700.0, 150.0, 150.0)));
    assert!(!has(Code::P005, &with(700.0, 50.0, 50.0)), "80 %");
    let gap = with(700.0, 50.0, 40.0);
    let finding = gap.iter().find(|f| f.code == Code::P005).expect("it");
    assert_eq!(finding.severity, Severity::Note);
    let near = |what: &str, expected: f64| {
        let seen = evidence(finding, what);
        assert!((seen - expected).abs() < 1e-6, "{what}: {seen}");
    };
    near("in flight by Little's law", 70.0);
    near("in the generator's hands", 9.0);
    // Counted twice: the latency reaches from answer to answer, and handling is in it.
    let twice = with(1_000.0, 30.0, 0.0);
    let finding = twice.iter().find(|f| f.code == Code::P005).expect("it");
    assert_eq!(finding.severity, Severity::Invalid);
}

#[test]
fn p005_think_time_is_time_of_a_connection_and_a_schedule_may_leave_it_idle() {
    let think = |think_ns: u64| {
        found(reported(move |load| {
            added(load, 0.0, 10.0, 10.0);
            load.latency_ns.mean = 480_000.0;
            load.pace = Pace::Closed { think_ns };
        }))
    };
    assert!(!has(Code::P005, &think(500_000)));
    assert!(has(Code::P005, &think(100_000)));
    let more = found(reported(|load| {
        open(load);
        load.latency_ns.mean = 1.03e8;
    }));
    only(Code::P005, Severity::Invalid, &more);
}

/// Slices from `from` to `to` are empty, and some request has waited for as long.
pub fn frozen(load: &mut LoadReport, from: usize, to: usize) {
    load.slices.completed[from..to].fill(0);
    load.latency_ns.p50 = 1_000_000;
    load.latency_ns.min = 900_000;
    load.latency_ns.max = (to - from) as u64 * SECOND / 10;
}

#[test]
fn p028_a_server_frozen_for_ten_to_ninety_percent_of_the_window() {
    for tenths in 1..=9 {
        let found = found(reported(move |load| frozen(load, 5, 5 + tenths * 10)));
        let finding = found.iter().find(|f| f.code == Code::P028);
        let finding = finding.unwrap_or_else(|| panic!("{tenths} tenths: {found:#?}"));
        let seen = evidence(finding, "part of the window in such times");
        assert_eq!(seen, tenths as f64 / 10.0);
    }
}

#[test]
fn p028_a_freeze_that_the_end_of_the_window_cuts_off() {
    let found = found(reported(|load| frozen(load, 97, 100)));
    let finding = only(Code::P028, Severity::Note, &found);
    let seen = evidence(&finding, "longest time without an answer");
    assert_eq!(seen, 0.3 * SECOND as f64);
    // An older generator dropped what was answered after the window.
    let found = super::rules::found(reported(|load| {
        load.slices.completed[97..].fill(0);
        load.latency_ns.p50 = 1_000_000;
    }));
    only(Code::P028, Severity::Note, &found);
}

#[test]
fn p028_in_an_open_loop_the_median_itself_may_be_of_frozen_requests() {
    let found = found(reported(|load| {
        open(load);
        frozen(load, 20, 80);
        load.latency_ns.p50 = 5 * SECOND;
        load.latency_ns.max = NEVER;
    }));
    assert!(has(Code::P028, &found), "{found:#?}");
}

#[test]
fn p028_not_for_short_stalls_pauses_of_the_schedule_and_slow_servers() {
    let none = |change: fn(&mut LoadReport)| {
        let found = found(reported(change));
        assert!(!has(Code::P028, &found), "{found:#?}");
    };
    none(|load| frozen(load, 50, 52));
    // Nothing was asked for meanwhile: no request took long.
    none(|load| {
        open(load);
        frozen(load, 50, 60);
        load.latency_ns.max = 2_000_000;
    });
    // All hundred are answered at once, once a second.
    none(|load| {
        for (at, slice) in load.slices.completed.iter_mut().enumerate() {
            *slice = if at % 10 == 0 { 100 } else { 0 };
        }
        (load.latency_ns.p50, load.latency_ns.min) = (SECOND, SECOND);
        load.latency_ns.max = SECOND;
    });
}
