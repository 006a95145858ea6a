use super::super::entry::Section;
use super::*;

fn entry(day: u64, state: &str, rate: f64) -> Entry {
    Entry {
        id: format!("day-{day}"),
        started_unix_ms: day * 86_400_000,
        environment: "this machine".to_owned(),
        sections: vec![Section {
            title: "Hello".to_owned(),
            cells: vec![CellEntry {
                id: "a hello c=10".to_owned(),
                label: "a".to_owned(),
                connections: 10,
                series: "a hello c=10, 10 s".to_owned(),
                state: state.to_owned(),
                session: Some(rate),
                ..CellEntry::default()
            }],
            ..Section::default()
        }],
        ..Entry::default()
    }
}

/// Six sessions of one state.
fn six() -> Vec<Entry> {
    [100.0, 101.0, 99.0, 100.0, 100.0, 100.5]
        .iter()
        .zip(1..)
        .map(|(rate, day)| entry(day, "old", *rate))
        .collect()
}

#[test]
fn a_slower_state_after_six_sessions_is_a_regression() {
    let mut entries = six();
    entries.push(entry(9, "new", 80.0));
    entries.reverse();
    let seen = history(&entries);
    let last = seen.accounts.last().unwrap();
    assert_eq!(last.regressions().count(), 1);
    assert_eq!(last.differences[0].sides.beside.len(), 6);
    assert_eq!(seen.accounts[0].unlike[&Unlike::First], 1);
    assert_eq!(seen.accounts[3].unlike[&Unlike::SameState], 1);
    assert!(seen.accounts[..6].iter().all(|a| a.differences.is_empty()));
}

#[test]
fn the_same_with_one_session_is_not_claimed() {
    let seen = history(&[entry(1, "old", 100.0), entry(2, "new", 50.0)]);
    let last = seen.accounts.last().unwrap();
    assert_eq!(last.claimed().count(), 0);
    assert_eq!(last.differences.len(), 1);
    assert!((last.differences[0].compared.ratio.0 - 0.5).abs() < 1e-9);
}

#[test]
fn other_machines_and_other_settings_are_never_compared() {
    let mut entries = six();
    let mut elsewhere = entry(9, "new", 50.0);
    elsewhere.environment = "another".to_owned();
    entries.push(elsewhere);
    let mut longer = entry(10, "new", 50.0);
    longer.sections[0].cells[0].series = "a hello c=10, 60 s".to_owned();
    entries.push(longer);
    let seen = history(&entries);
    assert_eq!(seen.accounts[6].unlike[&Unlike::OtherMachine], 1);
    assert_eq!(seen.accounts[7].unlike[&Unlike::OtherSettings], 1);
    assert!(seen.accounts.iter().all(|a| a.differences.is_empty()));
}

#[test]
fn a_figure_that_is_not_the_subjects_is_not_compared() {
    let mut entries = six();
    let mut limited = entry(9, "new", 50.0);
    limited.sections[0].cells[0].session = None;
    entries.push(limited);
    let seen = history(&entries);
    assert_eq!(seen.accounts[6].unlike[&Unlike::NoFigure], 1);
}

#[test]
fn what_was_said_of_an_entry_does_not_change_with_later_ones() {
    let mut entries = six();
    entries.push(entry(9, "new", 80.0));
    let before = history(&entries).accounts;
    entries.push(entry(10, "newer", 120.0));
    assert_eq!(history(&entries).accounts[..7], before);
}

#[test]
fn a_change_is_searched_for_from_eight_entries() {
    let mut entries: Vec<Entry> = (1..=4).map(|d| entry(d, "old", 100.0 + d as f64)).collect();
    entries.extend((5..=7).map(|d| entry(d, "new", 50.0 + d as f64)));
    assert_eq!(history(&entries).searched, (0, 7));
    entries.push(entry(8, "new", 58.5));
    let seen = history(&entries);
    assert_eq!(seen.searched, (1, 8));
    assert_eq!(seen.changes.len(), 1);
    assert_eq!(seen.changes[0].entry, "day-5");
}
