//! What stands in the generated regions of a log.
//!
//! Not for: what changed (`changed`), the figures of one workload (`workload`), where regions stand (`document`).

use std::collections::BTreeMap;
use std::iter;

use prony_base::counted;
use prony_stats::{
    CHANGE_SESSIONS_MIN, Conclusion, Ratio, SESSION_DEGREES_MIN, SessionComparison, sorted,
};

use super::changed::{self, spaced};
use super::document::{OVERVIEW, Region, is_plain};
use super::entry::{Entry, Found, Revised, Section};
use super::history::{Account, Change, Difference, History, Unlike};
use super::{journey, workload};
use crate::escape::{clean, markdown, markdown_code};
use crate::lists::distinct;
use crate::markdown::filled;
use crate::numbers;
use crate::site::outline::anchor;
use crate::words::digits;

/// Name of the region with what was found.
const FINDINGS: &str = "findings";
/// Columns of the overview.
const HEAD: [&str; 3] = ["entry", "what changed", "what it did"];

/// The regions of a document, in order: the overview, then for each entry, newest last, its head, a region for each
/// workload, and what was found. `folder` is where [`journey::pictures`] are, as an address in the document; `document` is its text
/// until now, of which entries that are known nowhere else keep their rows in the overview.
pub fn regions(history: &History, folder: &str, document: &str) -> Vec<Region> {
    let text = overview(history, folder, document);
    let mut regions = vec![Region {
        id: OVERVIEW.to_owned(),
        entry: None,
        text,
    }];
    for (before, account) in beside(history) {
        let entry = &account.entry;
        let mut texts = vec![(entry.id.clone(), head(before, account))];
        let mut add = |part: &str, text| texts.push((format!("{}/{part}", entry.id), text));
        for (name, section) in names(&entry.sections).iter().zip(&entry.sections) {
            add(name, workload::section(section));
        }
        // Also where there are none: what a later version finds has its place then.
        add(FINDINGS, findings(&entry.findings));
        let own = Some(entry.id.clone());
        let region = |(id, text)| Region {
            id,
            entry: own.clone(),
            text,
        };
        regions.extend(texts.into_iter().map(region));
    }
    regions
}

/// The entries in a few lines for a terminal, newest last, and below them what may be claimed.
pub fn brief(history: &History) -> String {
    let row = |(before, account): (Option<&Entry>, &Account)| {
        let [changed, did] = summary(before, account);
        [title(&account.entry), changed, did].map(|words| clean(&words))
    };
    let table = filled(HEAD, 0..0, beside(history).map(row));
    let changes = changes_words(history).replace('`', "");
    format!("{table}\n\n{}\n{changes}\n", untold_words(history))
}

/// Each entry with the one before it.
fn beside(history: &History) -> impl Iterator<Item = (Option<&Entry>, &Account)> {
    let before = history.accounts.iter().map(|account| Some(&account.entry));
    iter::once(None).chain(before).zip(&history.accounts)
}

/// What the regions of workloads are named after: no two alike, though names may be in what a marker may hold.
pub fn names(sections: &[Section]) -> Vec<String> {
    let mut taken = vec![FINDINGS.to_owned()];
    for section in sections {
        let plain = section.workload.chars().filter(|c| is_plain(*c));
        let name: String = plain.collect();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut all = iter::once(name.clone()).chain(numbered);
        let free = all.find(|name| !name.is_empty() && !taken.contains(name));
        taken.extend(free);
    }
    taken.split_off(1)
}

fn title(entry: &Entry) -> String {
    let moment = numbers::moment(entry.moment_unix_ms());
    format!("{moment}: {}", entry.run)
}

/// Links to the headings of the entries.
fn links(history: &History) -> Vec<String> {
    let mut taken = BTreeMap::new();
    let link = |account: &Account| {
        let heading = title(&account.entry);
        let anchor = anchor(&heading, &mut taken);
        format!("[{}](#{anchor})", markdown(&heading))
    };
    history.accounts.iter().map(link).collect()
}

fn overview(history: &History, folder: &str, document: &str) -> String {
    let links = links(history);
    let newest = history.accounts.last().zip(links.last());
    let mut text = match newest {
        Some((Account { entry, .. }, link)) if !entry.answer.is_empty() => {
            let line = |line: &String| format!("- {}\n", markdown(line));
            let lines: String = entry.answer.iter().map(line).collect();
            format!("**Short answer of the newest entry, {link}:**\n\n{lines}\n")
        }
        _ => String::new(),
    };
    for (path, title, _) in journey::pictures(history) {
        text.push_str(&format!("![{}]({folder}/{path})\n\n", markdown(&title)));
    }
    let row = |(link, (before, account)): (String, (Option<&Entry>, &Account))| {
        let [changed, did] = summary(before, account).map(|words| markdown(&words));
        [link, changed, did]
    };
    let mut rows: Vec<[String; 3]> = links.into_iter().zip(beside(history)).map(row).collect();
    rows.extend(rows_kept(document, history));
    // They begin with their dates.
    rows.sort_by(|a, b| a[0].cmp(&b[0]));
    let table = match rows.len() {
        0 => "No run of this experiment has been found.".to_owned(),
        count => {
            let (count, table) = (counted(count, "entry"), filled(HEAD, 0..0, rows));
            format!("{count}, newest last.\n\n{table}")
        }
    };
    let (untold, changes) = (untold_words(history), changes_words(history));
    format!("{text}{table}\n\n{untold}\n\n{changes}\n")
}

/// The rows in the overview of `document` of entries that stand in it, and that `history` does not know any more. Overviews of before
/// had more columns between the first two and the last.
fn rows_kept(document: &str, history: &History) -> Vec<[String; 3]> {
    let lines: Vec<&str> = document.lines().collect();
    let entries = history.accounts.iter().map(|account| &account.entry);
    let row = |pair: &[&str]| {
        let begin = pair[0].strip_prefix("<!-- prony:begin ")?;
        let id = begin.strip_suffix(" -->")?;
        let start = format!("| [{}](#", pair[1].strip_prefix("## ")?);
        let old = lines.iter().find(|line| line.starts_with(&start))?;
        let cells = old.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
        let mut cells = cells.map(|cell| cell.trim().to_owned());
        let (entry, changed) = (cells.next()?, cells.next()?);
        let row = [entry, changed, cells.last().unwrap_or_default()];
        entries.clone().all(|entry| entry.id != id).then_some(row)
    };
    lines.windows(2).filter_map(row).collect()
}

/// What changed in an entry, with what must be known before any figure is read, and what it did.
fn summary(before: Option<&Entry>, account: &Account) -> [String; 2] {
    let entry = &account.entry;
    let is_quick = entry.settings.iter().any(|fact| fact.name == "--quick");
    let states = [
        (is_quick, "a short look"),
        (entry.unfinished, "unfinished"),
        (entry.verdict == "invalid", "some figures cannot be used"),
        (entry.gone, "its run directory is gone"),
    ];
    let state = |(is, state): (bool, &str)| is.then(|| format!("; {state}"));
    let states: String = states.into_iter().filter_map(state).collect();
    [
        changed::words(before, entry) + &states,
        since_words(account),
    ]
}

/// What may be said of an entry beside the state before it, in a few words; empty where nothing is told apart.
fn since_words(account: &Account) -> String {
    let compared = account.differences.len();
    let lower = account.regressions().count();
    let higher = account.claimed().count() - lower;
    let why = account.unlike.iter();
    let why = why.filter(|(why, _)| **why != Unlike::NoFigure);
    let why = why.max_by_key(|(_, count)| **count);
    match why.map(|(why, _)| why) {
        _ if higher + lower > 0 => {
            return format!("{higher} higher, {lower} lower of {}", figures(compared));
        }
        _ if compared > 0 => "",
        None => "no figure to compare",
        Some(Unlike::SameState) => "the same state again",
        Some(Unlike::OtherMachine) => "another machine: not compared",
        Some(Unlike::OtherSettings) => "other settings: not compared",
        Some(_) => "the first of its kind",
    }
    .to_owned()
}

/// What holds of all figures that no table of changes names, once for the log: by the newest entry that has figures to compare.
fn untold_words(history: &History) -> String {
    let mut newest = history.accounts.iter().rev();
    let newest = newest.find(|account| !account.differences.is_empty());
    let all = newest.map_or(&[][..], |account| &account.differences);
    let all = all.iter().map(|d| &d.compared);
    let is_known = |of: &&SessionComparison| of.conclusion != Conclusion::NotClaimed;
    let known = all.clone().filter(is_known);
    let spread = |get: fn(&SessionComparison) -> Option<f64>| {
        let values = sorted(&known.clone().filter_map(get).collect::<Vec<_>>());
        let ends = values.first().into_iter().chain(values.last());
        distinct(ends.map(|end| numbers::percent(*end))).join(" to ")
    };
    let rest = match all.clone().count() - known.clone().count() {
        0 => String::new(),
        rest => {
            let rest = figures(rest);
            format!(" Too few entries stand behind {rest} of the newest one.")
        }
    };
    match known.clone().count() {
        0 => format!(
            "No change can be told yet. That takes {} entries of one state ({SESSION_DEGREES_MIN} degrees of freedom), which show \
             how far runs of it lie apart; there are {} degrees.",
            SESSION_DEGREES_MIN + 1,
            all.map(|of| of.degrees).max().unwrap_or(0),
        ),
        _ => format!(
            "A figure that no table of changes names is not told apart from the state before. Runs of one state lie {} apart \
             (standard deviation). A change of {} would be told in four of five cases (95 % for all figures together).{rest}",
            spread(|of| of.between),
            spread(|of| of.resolution),
        ),
    }
}

/// Where figures changed over all entries, or why nothing is said of it.
fn changes_words(history: &History) -> String {
    let (searched, most) = history.searched;
    let of = figures(searched);
    let of = format!("{of} over {most} entries (5 % for all figures together)");
    let row = |change: &Change| {
        [
            markdown(&change.place),
            change.entry.clone(),
            format!("× {}", numbers::ratio(change.ratio)),
            format!("{} of orders", numbers::percent(change.chance)),
        ]
    };
    let head = ["figure", "from here on", "ratio", "by chance"];
    let table = filled(head, 0..0, history.changes.iter().map(row));
    match (searched, table.is_empty()) {
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
    let again = markdown_code(&entry.command);
    let changed = changed::tables(before, entry);
    let did = match since_words(account).as_str() {
        "" => String::new(),
        did => format!("\n**What it did:** {did}.\n{}", claims(account)),
    };
    format!(
        "## {title}\n\n{revision}* **All figures:** `document.md` of the run. Again: {again}\n\n{changed}{did}"
    )
}

/// A table of what is claimed; nothing where nothing is.
fn claims(account: &Account) -> String {
    let row = |d: &Difference| {
        let last = |of: &[f64]| of.last().copied().map_or_else(String::new, numbers::rate);
        let ratio = |of: Ratio| numbers::ratio(of.0);
        let ends = d.compared.interval.map_or_else(String::new, |of| {
            format!(" ({}–{})", ratio(of.low), ratio(of.high))
        });
        [
            markdown(&d.place),
            last(&d.sides.earlier),
            last(&d.sides.later),
            format!("**× {}**{ends}", ratio(d.compared.ratio)),
            counted(d.sides.earlier.len(), "entry"),
        ]
    };
    let head = ["figure", "before", "now, /s", "ratio", "against"];
    spaced(&filled(head, 0..0, account.claimed().map(row)))
}

fn findings(found: &[Found]) -> String {
    let row = |finding: &Found| {
        let place = match finding.count {
            0 => "of the whole run".to_owned(),
            count => counted(count, "cell"),
        };
        let title = markdown(&finding.title);
        [finding.code.clone(), title, finding.severity.clone(), place]
    };
    let head = ["code", "finding", "severity", "seen in"];
    let table = match found {
        [] => "None.".to_owned(),
        found => filled(head, 0..0, found.iter().map(row)),
    };
    format!("### Findings\n\n{table}\n")
}
