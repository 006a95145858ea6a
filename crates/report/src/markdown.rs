//! Tables in Markdown that are aligned in their source, too.

use std::ops::Range;

use crate::escape::markdown;
use crate::part::column;
use crate::table::{Column, Entry, Table};

/// A table with its columns padded to the same width.
pub fn table(table: &Table) -> String {
    let head: Vec<String> = table.columns.iter().map(head).collect();
    let rows = table
        .rows
        .iter()
        .map(|row| row.entries.iter().map(entry).collect());
    aligned(&head, &rows.collect::<Vec<_>>(), &table.columns)
}

/// A table of words that are Markdown already.
pub fn words(head: &[&str], rows: &[Vec<String>]) -> String {
    let columns: Vec<Column> = head
        .iter()
        .map(|title| Column {
            title: (*title).to_owned(),
            ..Column::default()
        })
        .collect();
    let head: Vec<String> = head.iter().map(|title| (*title).to_owned()).collect();
    aligned(&head, rows, &columns)
}

/// A table of words that are Markdown already, without the columns in which nothing stands; empty without rows. Columns within
/// `numbers` hold numbers.
pub fn filled<const N: usize>(
    head: [&str; N],
    numbers: Range<usize>,
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> = rows.into_iter().collect();
    let is_filled = |at: &usize| rows.iter().any(|row| !row[*at].is_empty());
    let kept: Vec<usize> = (0..N).filter(is_filled).collect();
    let of =
        |row: &[String; N]| -> Vec<String> { kept.iter().map(|at| row[*at].clone()).collect() };
    let columns = kept.iter().map(|at| column("", "", numbers.contains(at)));
    let columns: Vec<Column> = columns.collect();
    let texts: Vec<Vec<String>> = rows.iter().map(of).collect();
    match kept.is_empty() {
        true => String::new(),
        false => aligned(&of(&head.map(str::to_owned)), &texts, &columns),
    }
}

fn head(column: &Column) -> String {
    let title = markdown(&column.title);
    match (&*column.below, &*column.title) {
        ("", _) => title,
        (unit, _) if unit.starts_with('µ') => format!("{title}, {unit}"),
        (below, _) => format!("{title} ({below})"),
    }
}

fn entry(entry: &Entry) -> String {
    let mut text = markdown(&entry.text);
    if !entry.below.is_empty() {
        text.push_str(&format!(" ({})", markdown(&entry.below)));
    }
    if !entry.remark.is_empty() {
        text.push_str(&format!(", {}", entry.remark));
    }
    if entry.few {
        text.push('†');
    }
    for mark in &entry.marks {
        text.push_str(&format!("[^{mark}]"));
    }
    text
}

fn aligned(head: &[String], rows: &[Vec<String>], columns: &[Column]) -> String {
    let width = |at: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(at))
            .chain(head.get(at));
        cells
            .map(|text| text.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &[String]| {
        let mut line = String::from("|");
        for (at, (width, column)) in widths.iter().zip(columns).enumerate() {
            let text = row.get(at).map_or("", String::as_str);
            let gap = " ".repeat(width - text.chars().count());
            if column.numeric {
                line.push_str(&format!(" {gap}{text} |"));
            } else {
                line.push_str(&format!(" {text}{gap} |"));
            }
        }
        line
    };
    let mut lines = vec![line(head), String::from("|")];
    for (width, column) in widths.iter().zip(columns) {
        let dashes = "-".repeat(*width);
        lines[1].push_str(&if column.numeric {
            format!("-{dashes}:|")
        } else {
            format!(" {dashes} |")
        });
    }
    lines.extend(rows.iter().map(|row| line(row)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    #[test]
    fn columns_stand_under_each_other_in_the_source() {
        let column = |title: &str, numeric| Column {
            title: title.to_owned(),
            numeric,
            ..Column::default()
        };
        let row = |a: &str, b: &str| Row {
            entries: vec![Entry::text(a), Entry::text(b)],
            ..Row::default()
        };
        let shown = table(&Table {
            columns: vec![column("subject", false), column("requests/s", true)],
            rows: vec![row("a|b", "1.20 k"), row("longer name", "7")],
        });
        insta::assert_snapshot!(shown, @r"
        | subject     | requests/s |
        | ----------- |-----------:|
        | a\|b        |     1.20 k |
        | longer name |          7 |
        ");
    }
}
