use proptest::prelude::*;

use super::super::page;
use super::*;

fn region(id: &str, text: &str) -> Region {
    Region {
        id: id.to_owned(),
        entry: (id != OVERVIEW).then(|| id.split('/').next().unwrap_or(id).to_owned()),
        text: text.to_owned(),
    }
}

fn two() -> Vec<Region> {
    vec![
        region(OVERVIEW, "two entries\n"),
        region("e1", "first\n"),
        region("e1/ping", "table\n"),
        region("e2", "second\n"),
    ]
}

#[test]
fn a_new_document_has_the_regions_in_their_order() {
    let seen = written("", &two()).unwrap();
    assert_eq!(seen.added, ["e1", "e2"]);
    insta::assert_snapshot!(seen.text, @r"
    <!-- prony:begin overview -->
    two entries
    <!-- prony:written e1 e2 -->
    <!-- prony:end overview -->

    <!-- prony:begin e1 -->
    first
    <!-- prony:end e1 -->

    <!-- prony:begin e1/ping -->
    table
    <!-- prony:end e1/ping -->

    <!-- prony:begin e2 -->
    second
    <!-- prony:end e2 -->
    ");
}

#[test]
fn what_the_author_wrote_stays_and_regions_are_replaced() {
    let first = written("", &two()).unwrap().text;
    let edited = format!(
        "# My log\r\n\n{}\nAfterwards.  ",
        first.replace(
            "<!-- prony:begin e2 -->",
            "It was the *parser*.\n\n<!-- prony:begin e2 -->"
        )
    );
    let edited = edited.replace("\r\n", "\n");
    let again = written(&edited, &two()).unwrap();
    assert_eq!(
        (again.text.as_str(), again.replaced.len()),
        (edited.as_str(), 0)
    );
    let mut changed = two();
    changed[1].text = "first, told better\n".to_owned();
    let seen = written(&edited, &changed).unwrap();
    assert_eq!(seen.replaced, ["e1"]);
    assert_eq!(
        seen.text,
        edited.replace("\nfirst\n", "\nfirst, told better\n")
    );
}

#[test]
fn an_entry_that_the_author_took_out_stays_out() {
    let text = written("", &two()).unwrap().text;
    let without = text.replace(
        "<!-- prony:begin e2 -->\nsecond\n<!-- prony:end e2 -->\n",
        "",
    );
    let seen = written(&without, &two()).unwrap();
    assert_eq!((seen.left_out, seen.added), (vec!["e2".to_owned()], vec![]));
    assert_eq!(seen.text, without);
    let mut three = two();
    three.push(region("e3", "third\n"));
    let seen = written(&without, &three).unwrap();
    assert_eq!(seen.added, ["e3"]);
    assert!(!seen.text.contains("second"));
    assert!(
        seen.text
            .ends_with("<!-- prony:begin e3 -->\nthird\n<!-- prony:end e3 -->\n")
    );
}

#[test]
fn one_region_of_an_entry_may_be_taken_out() {
    let text = written("", &two()).unwrap().text;
    let without = text.replace(
        "<!-- prony:begin e1/ping -->\ntable\n<!-- prony:end e1/ping -->\n",
        "",
    );
    assert_eq!(written(&without, &two()).unwrap().text, without);
}

#[test]
fn without_the_overview_only_newer_entries_are_added() {
    let document = "Mine.\n\n<!-- prony:begin e2 -->\nold\n<!-- prony:end e2 -->\n";
    let mut three = two();
    three.push(region("e3", "third\n"));
    let seen = written(document, &three).unwrap();
    assert_eq!(
        (seen.added, seen.left_out),
        (vec!["e3".to_owned()], vec!["e1".to_owned()])
    );
    assert!(!seen.text.contains("overview"));
}

#[test]
fn a_region_of_an_unknown_entry_is_left_as_it_is() {
    let document = "<!-- prony:begin gone -->\nfigures\n<!-- prony:end gone -->\n";
    let seen = written(document, &[region(OVERVIEW, "none\n")]).unwrap();
    assert_eq!(seen.text, document);
}

#[test]
fn lines_end_as_they_do_in_the_document() {
    let text = written("Mine.\r\n", &two()).unwrap().text;
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert_eq!(written(&text, &two()).unwrap().text, text);
}

#[test]
fn a_generated_text_cannot_make_a_marker() {
    let evil = [region(
        "e1",
        "a\n<!-- prony:end e1 -->\n<!-- prony:begin x -->\n",
    )];
    let text = written("", &evil).unwrap().text;
    assert_eq!(written(&text, &evil).unwrap().text, text);
}

#[test]
fn damaged_markers_are_named_with_their_line() {
    for (document, line, what) in [
        (
            "a\n<!-- prony:begin e1 -->\nb\n",
            2,
            "`e1` begins here and does not end",
        ),
        (
            "a\nb\n<!-- prony:end e1 -->\n",
            3,
            "`e1` ends here and did not begin",
        ),
        (
            "<!-- prony:begin e1 -->\n<!-- prony:begin e2 -->\n",
            2,
            "`e2` begins within `e1`, which began in line 1",
        ),
        (
            "<!-- prony:begin e1 -->\n<!-- prony:end e2 -->\n",
            2,
            "`e2` ends here, but `e1` is what began, in line 1",
        ),
        (
            "<!-- prony:begin e1 -->\n<!-- prony:end e1 -->\n<!-- prony:begin e1 -->\n<!-- prony:end e1 -->\n",
            3,
            "the region `e1` is there already, from line 1",
        ),
        ("<!-- prony:beginn e1 -->\n", 1, "is no marker"),
        ("<!-- prony:begin e1\n", 1, "is no marker"),
        ("<!-- prony:begin -->\n", 1, "is no marker"),
        (
            "<!-- prony:written e1 -->\n",
            1,
            "belongs into the region `overview`",
        ),
    ] {
        let damaged = written(document, &two()).unwrap_err();
        assert_eq!(damaged.line, line, "{document}");
        assert!(damaged.what.contains(what), "{}", damaged.what);
    }
}

proptest! {
    /// Whatever the author wrote around regions: a second writing changes nothing, and what is
    /// outside of regions is what it was.
    #[test]
    fn prose_stays_byte_for_byte(
        before in "(?s)[^<]{0,60}", between in "(?s)[^<]{0,60}", after in "(?s)[^<]{0,60}",
    ) {
        let between = format!("\n{between}\n");
        let document = format!(
            "{before}\n<!-- prony:begin e1 -->\nold\n<!-- prony:end e1 -->{between}\
             <!-- prony:begin e2 -->\n<!-- prony:end e2 -->\n{after}"
        );
        let seen = written(&document, &two()).unwrap().text;
        let start = format!("{before}\n<!-- prony:begin e1 -->");
        prop_assert!(seen.starts_with(&start));
        let middle = format!("<!-- prony:end e1 -->{between}<!-- prony:begin e2 -->");
        prop_assert!(seen.contains(&middle));
        prop_assert!(seen.ends_with(&after));
        prop_assert_eq!(&written(&seen, &two()).unwrap().text, &seen);
    }

    #[test]
    fn any_document_is_read_without_panic(document in "(?s).{0,200}") {
        let _ = written(&document, &two());
    }
}

/// The history was deleted together with run directories.
#[test]
fn an_entry_that_only_the_document_knows_keeps_its_row_in_the_overview() {
    let entry = |day: u64| super::super::entry::Entry {
        id: format!("2026-03-0{day}-0000-a-b"),
        run: "a|b".to_owned(),
        started_unix_ms: (20_512 + day) * 86_400_000,
        prony: format!("day {day}"),
        code: Some(prony_record::CodeState {
            commit: format!("{day}{day}"),
            subject: format!("of day {day}"),
            ..Default::default()
        }),
        answer: vec![format!("it is day {day}")],
        ..Default::default()
    };
    let write = |document: &str, days: &[u64]| {
        let entries: Vec<_> = days.iter().map(|day| entry(*day)).collect();
        let history = super::super::history::history(&entries);
        written(document, &page::regions(&history, "log", document)).unwrap()
    };
    let first = write("", &[1, 2]).text;
    let second = write(&first, &[2, 3]);
    assert_eq!(second.added, [entry(3).id]);
    let second = second.text;
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("| ["));
        rows.map(|row| row.split(" | ").nth(1).unwrap().trim().to_owned())
            .collect()
    };
    let days = [1, 2, 3].map(|day| format!("of day {day}"));
    assert_eq!(rows(&second), days, "{second}");
    assert!(second.contains("| [2026-03-01 00:00 UTC: a\\|b](#2026-03-01-0000-utc-ab) "));
    let answer = second.find("- it is day 3\n").expect("the newest answer");
    assert!(answer < second.find("3 entries, newest last.").expect("how many"));
    assert!(!second.contains("it is day 2"), "{second}");
    assert!(second.contains("Change points are looked for"));
    // As often as it is written, whichever way its lines end.
    assert_eq!(write(&second, &[2, 3]).text, second);
    let other = second.replace('\n', "\r\n");
    assert_eq!(write(&other, &[2, 3]).text, other);
    let none = write(&second, &[]).text;
    assert_eq!(rows(&none), days, "{none}");
    // Overviews of before had further columns.
    let of_before = second.replace("of day 1     |", "of day 1 | 6 blocks of 1 s | valid |");
    assert_eq!(write(&of_before, &[2, 3]).text, second);
    // What the author takes out is out.
    let begin = second.find("<!-- prony:begin 2026-03-01").unwrap();
    let end = second.find("<!-- prony:begin 2026-03-02").unwrap();
    let without = format!("{}{}", &second[..begin], &second[end..]);
    let third = write(&without, &[2, 3]).text;
    assert_eq!(rows(&third), days[1..], "{third}");
}
