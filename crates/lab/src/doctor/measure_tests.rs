use std::fs;

use prony_record::MachineState::{Healthy, Spoils, Unknown};

use super::*;

const SECOND: Nanos = Nanos::from_secs(1);

/// Two cores, of which the first has been busy and stolen for so many steps of 10 ms; one process.
fn usage(busy: u64, stolen: u64, lab: Nanos, neighbour: u64) -> Usage {
    let core = |busy, steal| CoreTimes {
        busy_ns: busy * parse::TICK_NS,
        steal_ns: steal * parse::TICK_NS,
        ksoftirqd_ns: None,
    };
    let used = Nanos(neighbour * parse::TICK_NS);
    Usage {
        cores: BTreeMap::from([(0, core(busy, stolen)), (1, core(0, 0))]),
        processes: BTreeMap::from([(7, ("cc1".to_owned(), used))]),
        lab,
    }
}

#[test]
fn stolen_time_is_a_part_of_all_cores() {
    let none = usage(0, 0, Nanos::ZERO, 0);
    let result = steal(&none, &usage(0, 10, Nanos::ZERO, 0), SECOND);
    assert_eq!(result.state, Spoils);
    assert!(
        result.found.starts_with("5.0 % of the CPU time in "),
        "{}",
        result.found
    );
    assert_eq!(
        steal(&none, &usage(0, 1, Nanos::ZERO, 0), SECOND).state,
        Healthy
    );
    // Two steps of a clock are no tenth of a short time.
    let short = Nanos::from_millis(100);
    assert_eq!(
        steal(&none, &usage(0, 2, Nanos::ZERO, 0), short).state,
        Healthy
    );
}

#[test]
fn neighbours_are_all_that_is_not_prony() {
    let none = usage(0, 0, Nanos::ZERO, 0);
    let result = neighbours(&none, &usage(80, 0, Nanos::from_millis(300), 50), SECOND);
    assert_eq!(result.state, Spoils);
    assert!(
        result.found.starts_with("others used 0.50 of 2 cores in "),
        "{}",
        result.found
    );
    assert!(result.found.ends_with(": cc1 (7)"), "{}", result.found);
    assert_eq!(result.brief, "others use 0.5 of 2 cores");
    let lab = usage(30, 0, Nanos::from_millis(300), 0);
    assert_eq!(neighbours(&none, &lab, SECOND).state, Healthy);
    // One that began meanwhile is named, too.
    let mut began = none.clone();
    began.processes.clear();
    let result = neighbours(&began, &usage(80, 0, Nanos::ZERO, 50), SECOND);
    assert_eq!((result.state, result.found.contains("cc1")), (Spoils, true));
}

#[test]
fn cpu_time_of_a_process_is_read_whatever_it_is_called() {
    let text = "7 (a) b) R 1 7 7 0 -1 4194560 1 0 0 0 30 12 1 1 20 0 1 0 99 0 0";
    assert_eq!(cpu_of(text), Some(Nanos::from_millis(420)));
    assert_eq!(cpu_of("7 (a"), None);
    assert_eq!(cpu_of("7 (a) R 1"), None);
}

#[test]
fn lateness_spoils_by_its_median_and_by_its_tail() {
    let all = |late: Nanos, tail: Nanos| {
        let mut all = vec![late; 98];
        all.extend([tail, tail]);
        wake_up(&all, Some(50_000))
    };
    let (little, much) = (Nanos::from_micros(60), Nanos::from_millis(3));
    let result = all(little, little);
    assert_eq!(result.state, Healthy);
    assert!(result.found.contains("(timer slack "), "{}", result.found);
    assert_eq!(all(little, much).state, Spoils);
    assert_eq!(all(much, much).state, Spoils);
    assert_eq!(wake_up(&[], None).state, Healthy);
}

#[test]
fn what_is_slow_is_told_from_what_is_not() {
    assert_eq!(
        (clock_cost(25.0).state, clock_cost(900.0).state),
        (Healthy, Spoils)
    );
    let trip = |us| vec![Nanos::from_micros(us); 10];
    assert_eq!(
        (ceiling(&trip(30)).state, ceiling(&trip(900)).state),
        (Healthy, Spoils)
    );
    assert!(
        ceiling(&trip(50))
            .found
            .starts_with("at most 20000 round trips a second")
    );
    assert_eq!(ceiling(&[]).state, Unknown);
    let sync = |ms| vec![Nanos::from_millis(ms); 10];
    assert_eq!(
        (synced(&sync(2)).state, synced(&sync(50)).state),
        (Healthy, Spoils)
    );
    assert_eq!(or_refused(Ok(None)).state, Healthy);
    assert_eq!(
        or_refused(Ok(Some("not permitted".to_owned()))).state,
        Spoils
    );
    assert_eq!(or_refused(Err("no memory".to_owned())).state, Unknown);
}

#[test]
fn this_machine_is_measured_and_what_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let checks = in_full(&Tree::here(), &folder.path().join("new"));
    let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let expected = [
        "wake-up",
        "steal",
        "neighbours",
        "clock",
        "io_uring",
        "loopback",
        "disk sync",
    ];
    assert_eq!(names, expected);
    assert!(
        checks.iter().all(|check| check.state != Unknown),
        "{checks:?}"
    );
    assert_eq!(fs::read_dir(folder.path().join("new")).unwrap().count(), 0);
    fs::write(folder.path().join("file"), "").unwrap();
    let result = sync(&folder.path().join("file"));
    assert_eq!(result.state, Unknown);
    let nowhere = Tree::at(folder.path());
    let checks = in_brief(&nowhere);
    let unknown = |check: &&MachineCheck| check.state == Unknown;
    let unknown: Vec<&str> = checks
        .iter()
        .filter(unknown)
        .map(|c| c.name.as_str())
        .collect();
    assert_eq!(unknown, ["steal", "neighbours"]);
}
