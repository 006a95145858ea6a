//! The answer as a terminal shows it: its sentences, and a table with bars of each question, at most fourteen lines of 80 columns.

use prony_base::Untrusted;

use super::Answer;
use super::ranking::{Ranked, Ranking};

/// Columns.
const WIDTH: usize = 80;
/// Columns of the places: `10–12`.
const PLACES: usize = 5;
/// Columns of the longest bar.
const BAR: usize = 12;

/// Lines of a table.
const LINES: usize = 14;
/// Lines that who is left out takes at the most.
const LEFT_OUT: usize = 3;

/// The sentences and the rankings.
pub fn text(answer: &Answer) -> String {
    let mut text = String::new();
    for sentence in answer.sentences() {
        for line in wrapped(&Untrusted(sentence).to_string(), WIDTH) {
            text.push_str(&format!("{line}\n"));
        }
    }
    for ranking in &answer.rankings {
        text.push_str(&format!("\n{}", table(ranking)));
    }
    text
}

/// A text in lines of so many columns, broken between words; a longer word is broken, too.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let chars: Vec<char> = word.chars().collect();
        for part in chars.chunks(columns.max(1)) {
            let line = lines.last_mut().expect("one at the least");
            let is_full = line.chars().count() + 1 + part.len() > columns;
            match (line.is_empty(), is_full) {
                (true, _) => line.extend(part),
                (false, false) => line.extend([' '].iter().chain(part)),
                (false, true) => lines.push(part.iter().collect()),
            }
        }
    }
    lines
}

/// As many of its rows as fourteen lines hold.
fn table(of: &Ranking) -> String {
    let tail = left_out(of);
    let fits = |rows: &usize| lines(&of.brief(*rows)).len() + tail.len() <= LINES;
    let rows = (1..=of.rows.len()).rev().find(fits).unwrap_or(1);
    [lines(&of.brief(rows)), tail].concat().join("\n") + "\n"
}

/// Who is left out, and why; of many how many.
fn left_out(of: &Ranking) -> Vec<String> {
    if of.left_out.is_empty() {
        return Vec::new();
    }
    let each = of.left_out.iter();
    let each = each.map(|out| Untrusted(&format!("{} ({})", out.name, out.why)).to_string());
    let all = format!("left out: {}", each.collect::<Vec<_>>().join("; "));
    let mut lines = wrapped(&all, WIDTH - PLACES - 2);
    if lines.len() > LEFT_OUT {
        lines = vec![format!(
            "left out: {}, which the document names",
            of.left_out.len()
        )];
    }
    lines
        .iter()
        .map(|line| format!("{:PLACES$}  {line}", ""))
        .collect()
}

/// Columns between which two spaces stand: places, name, bar, value, what it is beside the baseline. The title stands over name and bar, or on a
/// line of its own. A name that has no room goes on in the next line.
fn lines(of: &Ranking) -> Vec<String> {
    let clean = |text: &str| Untrusted(text).to_string();
    let head = Ranked {
        value: of.metric.clone(),
        beside: clean(&of.compared),
        ..Ranked::default()
    };
    let widest = |shown: fn(&Ranked) -> &str| {
        let rows = std::iter::once(&head).chain(&of.rows);
        let widths = rows.map(|row| clean(shown(row)).chars().count());
        widths.max().unwrap_or(0)
    };
    let [name, value, beside] = [
        widest(|row| &row.name),
        widest(|row| &row.value),
        widest(|row| &row.beside),
    ];
    // Two between columns.
    let name = name.min(WIDTH.saturating_sub(PLACES + 2 + 2 + value + 2 + beside));
    let left = WIDTH.saturating_sub(PLACES + 2 + name + 2 + value + 2 + beside + 2);
    let bar = if left >= 4 { left.min(BAR) } else { 0 };
    let lengths = || of.rows.iter().filter_map(|row| row.length());
    let most = lengths().fold(0.0, f64::max);
    let drawn = |row: &Ranked| match (bar, row.length()) {
        (0, _) => String::new(),
        (bar, None) => " ".repeat(bar + 2),
        (bar, Some(length)) => {
            let filled = "█".repeat((length / most * bar as f64).round() as usize);
            format!("  {filled:<bar$}")
        }
    };
    let row_lines = |row: &Ranked| {
        let place = row.place.map_or_else(String::new, String::from);
        let mut own = wrapped(&clean(&row.name), name).into_iter();
        let first = own.next().unwrap_or_default();
        let (shown, other) = (clean(&row.value), clean(&row.beside));
        let bar = drawn(row);
        let line = format!("{place:>PLACES$}  {first:<name$}{bar}  {shown:>value$}  {other}");
        let rest = own.map(|rest| format!("{:PLACES$}  {rest}", ""));
        let lines = std::iter::once(line.trim_end().to_owned()).chain(rest);
        lines.collect::<Vec<String>>()
    };
    let (title, head) = (clean(&of.title), row_lines(&head).concat());
    let room = name + bar + if bar > 0 { 2 } else { 0 };
    let mut lines = match title.chars().count() <= room {
        true => {
            let rest: String = head
                .chars()
                .skip(PLACES + 2 + title.chars().count())
                .collect();
            vec![format!("{:PLACES$}  {title}{rest}", "")]
        }
        false => {
            let title = wrapped(&title, WIDTH - PLACES - 2);
            let title = title.iter().map(|line| format!("{:PLACES$}  {line}", ""));
            title.chain([head]).collect()
        }
    };
    lines.extend(of.rows.iter().flat_map(row_lines));
    if of.more > 0 {
        lines.push(format!("{:PLACES$}  and {} more", "", of.more));
    }
    lines
}

impl Ranked {
    /// How long its bar is.
    fn length(&self) -> Option<f64> {
        let median = self.figure?.median;
        (median.is_finite() && median >= 0.0).then_some(median)
    }
}
