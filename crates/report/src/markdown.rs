//! Tables in Markdown that are aligned in their source, too.

use std::ops::Range;

use crate::escape::{markdown, markdown_code};
use crate::table::{Column, Entry, Table};

/// A table with its columns padded to the same width.
pub fn table(table: &Table) -> String {
    let heads = table.columns.iter().map(|of| (head(of), of.numeric));
    let rows = table.rows.iter().map(|row| {
        let entries = row.entries.iter().zip(&table.columns);
        entries.map(|(of, column)| entry(of, column)).collect()
    });
    aligned(&heads.collect::<Vec<_>>(), &rows.collect::<Vec<_>>())
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
    let of = |row: &[String; N]| kept.iter().map(|at| row[*at].clone()).collect();
    let heads = kept
        .iter()
        .map(|at| (head[*at].to_owned(), numbers.contains(at)));
    let texts: Vec<Vec<String>> = rows.iter().map(of).collect();
    match kept.is_empty() {
        true => String::new(),
        false => aligned(&heads.collect::<Vec<_>>(), &texts),
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

/// Rows under heads, of which each says whether its column holds numbers.
fn aligned(heads: &[(String, bool)], rows: &[Vec<String>]) -> String {
    let width = |(at, (head, _)): (usize, &(String, bool))| {
        let texts = rows.iter().filter_map(|row| row.get(at)).chain([head]);
        let widest = texts.map(|text| text.chars().count()).max();
        widest.unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = heads.iter().enumerate().map(width).collect();
    let line = |texts: &mut dyn Iterator<Item = &String>| {
        let columns = widths.iter().zip(heads);
        let padded = columns.map(|(width, (_, is_number))| {
            let text = texts.next().map_or("", String::as_str);
            match is_number {
                true => format!(" {text:>width$} |"),
                false => format!(" {text:<width$} |"),
            }
        });
        format!("|{}", padded.collect::<String>())
    };
    let rules = widths.iter().zip(heads).map(|(width, (_, is_number))| {
        let dashes = "-".repeat(*width);
        match is_number {
            true => format!("-{dashes}:|"),
            false => format!(" {dashes} |"),
        }
    });
    let head = line(&mut heads.iter().map(|(head, _)| head));
    let rule = format!("|{}", rules.collect::<String>());
    let rows = rows.iter().map(|row| line(&mut row.iter()));
    [head, rule]
        .into_iter()
        .chain(rows)
        .collect::<Vec<_>>()
        .join("\n")
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
