//! What stands in the generated regions of a log.
//!
//! Not for: what changed (`changed`), the figures of one workload (`workload`), where regions stand (`document`).

use std::iter;

use prony_base::counted;
use prony_stats::{CHANGE_SESSIONS_MIN, Conclusion, SESSION_DEGREES_MIN};

use super::changed::{Changed, block};
use super::document::{OVERVIEW, Region};
use super::entry::{Entry, Found, Revised, Section, digits};
use super::history::{Account, Change, Difference, History, Unlike};
use super::{journey, workload};
use crate::escape::{markdown, markdown_code};
use crate::lists::push_under;
use crate::markdown::filled;
use crate::numbers;

/// Cells that were not run and are named before it is said how many more there are.
const CELLS_MAX: usize = 6;
/// Name of the region with what was found.
const FINDINGS: &str = "findings";

/// The regions of a document, in order: the overview, then for each entry, newest last, its head, a region for each
/// workload, and what was found. `folder` is where [`journey::pictures`] are, as an address in the document; `document` is its text
/// until now, of which entries that are known nowhere else keep their rows in the overview.
pub fn regions(history: &History, folder: &str, document: &str) -> Vec<Region> {
    let mut regions = vec![Region {
        id: OVERVIEW.to_owned(),
        entry: None,
        text: overview(history, folder, document),
    }];
    for (before, account) in beside(history) {
        let entry = &account.entry;
        let mut add = |part: &str, text: String| {
            let slash = if part.is_empty() { "" } else { "/" };
            regions.push(Region {
                id: format!("{}{slash}{part}", entry.id),
                entry: Some(entry.id.clone()),
                text,
            });
        };
        add("", head(before, account));
        for (name, section) in names(&entry.sections).iter().zip(&entry.sections) {
            add(name, workload::section(section));
        }
        // Also where there are none: what a later version finds has its place then.
        add(FINDINGS, findings(&entry.findings));
    }
    regions
}

/// Each entry with the one before it.
pub fn beside(history: &History) -> impl Iterator<Item = (Option<&Entry>, &Account)> {
    let before = history.accounts.iter().map(|account| Some(&account.entry));
    iter::once(None).chain(before).zip(&history.accounts)
}

/// What the regions of workloads are named after: no two alike, though names may be in what a marker may hold.
pub fn names(sections: &[Section]) -> Vec<String> {
    let mut taken = vec![FINDINGS.to_owned()];
    for section in sections {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
        let name: String = section.workload.chars().filter(plain).collect();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut all = iter::once(name.clone()).chain(numbered);
        let free = all.find(|name| !name.is_empty() && !taken.contains(name));
        taken.extend(free);
    }
    taken.split_off(1)
}

pub fn title(entry: &Entry) -> String {
    let moment = numbers::moment(entry.moment_unix_ms());
    format!("{moment}: {}", entry.run)
}

/// A link to an entry's heading.
fn linked(entry: &Entry) -> String {
    let heading = title(entry);
    format!("[{}](#{})", markdown(&heading), anchor(&heading))
}

/// The address that a heading gets on GitHub and in most other renderers.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}

/// Columns of the overview.
pub const HEAD: [&str; 3] = ["entry", "what changed", "what it did"];

fn overview(history: &History, folder: &str, document: &str) -> String {
    let mut text = String::new();
    let newest = history.accounts.last().map(|account| &account.entry);
    if let Some(entry) = newest.filter(|entry| !entry.answer.is_empty()) {
        let lines = entry.answer.iter();
        let lines: String = lines
            .map(|line| format!("- {}\n", markdown(line)))
            .collect();
        text = format!(
            "**Short answer of the newest entry, {}:**\n\n{lines}\n",
            linked(entry)
        );
    }
    for (path, title, _) in journey::pictures(history) {
        text.push_str(&format!("![{}]({folder}/{path})\n\n", markdown(&title)));
    }
    let row = |(before, account): (Option<&Entry>, &Account)| {
        let [changed, did] = summary(before, account).map(|words| markdown(&words));
        vec![linked(&account.entry), changed, did]
    };
    let mut rows: Vec<Vec<String>> = beside(history).map(row).collect();
    rows.extend(rows_kept(document, history));
    // They begin with their dates.
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    let table = match rows.len() {
        0 => "No run of this experiment has been found.".to_owned(),
        count => format!(
            "{}, newest last.\n\n{}",
            counted(count, "entry"),
            filled(&HEAD, 0..0, &rows)
        ),
    };
    let (untold, changes) = (untold_words(history), changes_words(history));
    format!("{text}{table}\n\n{untold}\n\n{changes}\n")
}

/// The rows in the overview of `document` of entries that stand in it, and that `history` does not know any more. Overviews of before
/// had more columns between the first two and the last.
fn rows_kept(document: &str, history: &History) -> Vec<Vec<String>> {
    let lines: Vec<&str> = document.lines().collect();
    let row = |pair: &[&str]| {
        let id = pair[0].strip_prefix("<!-- prony:begin ")?;
        let mut known = history.accounts.iter().map(|account| &account.entry.id);
        let is_known = known.any(|known| id.strip_suffix(" -->") == Some(known));
        let heading = pair[1].strip_prefix("## ").filter(|_| !is_known)?;
        let start = format!("| [{heading}](#");
        let old = lines.iter().find(|line| line.starts_with(&start))?;
        let cells = old.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let mut cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        cells.resize(cells.len().max(HEAD.len()), String::new());
        cells.drain(2..cells.len() - 1);
        Some(cells)
    };
    lines.windows(2).filter_map(row).collect()
}

/// What changed in an entry, with what must be known before any figure is read, and what it did.
pub fn summary(before: Option<&Entry>, account: &Account) -> [String; 2] {
    let changed = Changed::of(before, &account.entry).words();
    let changed = format!("{changed}{}", states(&account.entry));
    [changed, since_words(account)]
}

/// `; unfinished`
fn states(entry: &Entry) -> String {
    let words = |is: bool, words: &'static str| if is { words } else { "" };
    let is_quick = entry.settings.iter().any(|pair| pair.name == "--quick");
    let is_invalid = entry.verdict == "invalid";
    [
        words(is_quick, "; a short look"),
        words(entry.unfinished, "; unfinished"),
        words(is_invalid, "; some figures cannot be used"),
        words(entry.gone, "; its run directory is gone"),
    ]
    .concat()
}

/// What may be said of an entry beside the state before it, in a few words; empty where nothing is told apart.
fn since_words(account: &Account) -> String {
    let compared = account.differences.len();
    if compared > 0 {
        let lower = account.regressions().count();
        return match account.claimed().count() - lower {
            0 if lower == 0 => String::new(),
            higher => format!("{higher} higher, {lower} lower of {}", figures(compared)),
        };
    }
    let why = account.unlike.iter();
    let why = why.filter(|(why, _)| **why != Unlike::NoFigure);
    match why.max_by_key(|(_, count)| **count) {
        None => "no figure to compare",
        Some((Unlike::SameState, _)) => "the same state again",
        Some((Unlike::OtherMachine, _)) => "another machine: not compared",
        Some((Unlike::OtherSettings, _)) => "other settings: not compared",
        Some(_) => "the first of its kind",
    }
    .to_owned()
}

/// What holds of all figures that no table of changes names, once for the log: by the newest entry that has figures to compare.
pub fn untold_words(history: &History) -> String {
    let mut newest = history.accounts.iter().rev();
    let newest = newest.find(|account| !account.differences.is_empty());
    let all = newest.map_or(&[][..], |account| &account.differences);
    let known = all.iter();
    let known = known.filter(|d| d.compared.conclusion != Conclusion::NotClaimed);
    let spread = |get: fn(&Difference) -> Option<f64>| {
        let mut ends: Vec<f64> = known.clone().filter_map(get).collect();
        ends.sort_by(f64::total_cmp);
        let mut ends: Vec<String> = ends.into_iter().map(numbers::percent).collect();
        ends.dedup();
        match ends.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            ends => ends.concat(),
        }
    };
    match (known.clone().count(), all.len()) {
        (0, _) => format!(
            "No change can be told yet. That takes {} entries of one state ({SESSION_DEGREES_MIN} degrees of freedom), which show \
             how far runs of it lie apart; there are {} degrees.",
            SESSION_DEGREES_MIN + 1,
            all.iter().map(|d| d.compared.degrees).max().unwrap_or(0),
        ),
        (known, all) => format!(
            "A figure that no table of changes names is not told apart from the state before. Runs of one state lie {} apart \
             (standard deviation). A change of {} would be told in four of five cases (95 % for all figures together).{}",
            spread(|d| d.compared.between),
            spread(|d| d.compared.resolution),
            match all - known {
                0 => String::new(),
                rest => format!(
                    " Too few entries stand behind {} of the newest one.",
                    figures(rest)
                ),
            },
        ),
    }
}

/// Where figures changed over all entries, or why nothing is said of it.
pub fn changes_words(history: &History) -> String {
    let (searched, most) = history.searched;
    let of = figures(searched);
    let of = format!("{of} over {most} entries (5 % for all figures together)");
    let row = |change: &Change| {
        vec![
            markdown(&change.place),
            change.entry.clone(),
            format!("× {}", numbers::ratio(change.ratio)),
            format!("{} of orders", numbers::percent(change.chance)),
        ]
    };
    let rows: Vec<Vec<String>> = history.changes.iter().map(row).collect();
    let head = ["figure", "from here on", "ratio", "by chance"];
    let table = filled(&head, 0..0, &rows);
    match (searched, rows.is_empty()) {
        (0, _) => format!(
            "Change points are looked for from {CHANGE_SESSIONS_MIN} entries on (same machine and settings); until now: {most}."
        ),
        (_, true) => format!("Change points: none in {of}."),
        (_, false) => format!("Change points in {of}:\n\n{table}"),
    }
}

fn figures(count: usize) -> String {
    counted(count, "figure")
}

/// `* **Revision:** python/prony-wsgi as it was at 3128add0c0ff (v1.2); measured 2026-11-25 22:10 UTC`
fn revision_line(entry: &Entry, revised: &Revised) -> String {
    let named = match revised.commit.starts_with(&revised.revision) {
        true => String::new(),
        false => format!(" ({})", markdown(&revised.revision)),
    };
    let subject = markdown(&revised.subject);
    let commit = markdown_code(digits(&revised.commit));
    let moment = numbers::moment(entry.started_unix_ms);
    format!("* **Revision:** {subject} as it was at {commit}{named}; measured {moment}\n")
}

fn head(before: Option<&Entry>, account: &Account) -> String {
    let entry = &account.entry;
    let title = markdown(&title(entry));
    let revised = entry.revised.as_ref();
    let revision = revised.map_or_else(String::new, |revised| revision_line(entry, revised));
    let states = states(entry);
    let state = states
        .strip_prefix("; ")
        .map(|is| format!("* **State:** {is}\n"));
    let state = state.unwrap_or_default();
    let again = markdown_code(&entry.command);
    let changed = Changed::of(before, entry).tables();
    let did = match since_words(account).as_str() {
        "" => String::new(),
        did => format!("\n**What it did:** {did}.\n{}", claims(account)),
    };
    let not_run = not_run(entry);
    format!(
        "## {title}\n\n{revision}{state}* **All figures:** `document.md` of the run. Again: {again}\n\n{changed}{did}{not_run}"
    )
}

/// What was not run, in a table; nothing where all was.
fn not_run(entry: &Entry) -> String {
    let mut told: Vec<([String; 2], Vec<String>)> = Vec::new();
    for (what, reason, remedy) in &entry.not_run {
        let remedy = Some(markdown_code(remedy)).filter(|_| !remedy.is_empty());
        let why = [markdown(reason), remedy.unwrap_or_default()];
        push_under(&mut told, why, markdown(what));
    }
    let row = |([reason, remedy], mut cells): ([String; 2], Vec<String>)| {
        let more = cells.len().saturating_sub(CELLS_MAX);
        cells.truncate(CELLS_MAX);
        cells.extend((more > 0).then(|| format!("and {more} more")));
        vec![cells.join(", "), reason, remedy]
    };
    let rows: Vec<Vec<String>> = told.into_iter().map(row).collect();
    let head = ["not run", "why", "what would change it"];
    block(&filled(&head, 0..0, &rows))
}

/// A table of what is claimed; nothing where nothing is.
fn claims(account: &Account) -> String {
    let row = |d: &Difference| {
        let last = |of: &[f64]| of.last().copied().map_or_else(String::new, numbers::rate);
        let ratio = numbers::ratio(d.compared.ratio.0);
        let ends = d.compared.interval.map_or_else(String::new, |of| {
            format!(
                " ({}–{})",
                numbers::ratio(of.low.0),
                numbers::ratio(of.high.0)
            )
        });
        vec![
            markdown(&d.place),
            last(&d.earlier),
            last(&d.later),
            format!("**× {ratio}**{ends}"),
            counted(d.earlier.len(), "entry"),
        ]
    };
    let rows: Vec<Vec<String>> = account.claimed().map(row).collect();
    let head = ["figure", "before", "now, /s", "ratio", "against"];
    block(&filled(&head, 0..0, &rows))
}

fn findings(found: &[Found]) -> String {
    let row = |finding: &Found| {
        let place = match finding.count {
            0 => "of the whole run".to_owned(),
            count => counted(count, "cell"),
        };
        let title = markdown(&finding.title);
        vec![finding.code.clone(), title, finding.severity.clone(), place]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    let table = filled(&["code", "finding", "severity", "seen in"], 0..0, &rows);
    let none = if rows.is_empty() { "None." } else { "" };
    format!("### Findings\n\n{none}{table}\n")
}
