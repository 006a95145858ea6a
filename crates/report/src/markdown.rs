//! Tables in Markdown that are aligned in their source, too.

use std::ops::Range;

use crate::escape::{markdown, markdown_code};
use crate::part::column;
use crate::table::{Column, Entry, Table};

/// A table with its columns padded to the same width.
pub fn table(table: &Table) -> String {
    let head: Vec<String> = table.columns.iter().map(head).collect();
    let rows = table.rows.iter().map(|row| {
        let entries = row.entries.iter().zip(&table.columns);
        entries.map(|(of, column)| entry(of, column)).collect()
    });
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
pub fn filled(head: &[&str], numbers: Range<usize>, rows: &[Vec<String>]) -> String {
    let is_filled = |at: &usize| rows.iter().any(|row| !row[*at].is_empty());
    let kept: Vec<usize> = (0..head.len()).filter(is_filled).collect();
    let columns = kept
        .iter()
        .map(|at| column(head[*at], "", numbers.contains(at)));
    let columns: Vec<Column> = columns.collect();
    let titles: Vec<String> = kept.iter().map(|at| head[*at].to_owned()).collect();
    let row = |row: &Vec<String>| kept.iter().map(|at| row[*at].clone()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => aligned(&titles, &rows, &columns),
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

fn entry(entry: &Entry, column: &Column) -> String {
    let mut text = match column.is_code {
        true => markdown_code(&entry.text),
        false => markdown(&entry.text),
    };
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
