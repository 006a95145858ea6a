//! What stands in the generated regions of a log.
//!
//! Not for: the tables of one workload (`workload`), where regions stand (`document`).

use prony_base::{counted, plural};
use prony_record::CodeState;
use prony_stats::{CHANGE_SESSIONS_MIN, Conclusion, SESSION_DEGREES_MIN};

use super::document::{OVERVIEW, Region};
use super::entry::{Entry, Found, Pair, Revised, Section, digits};
use super::history::{Account, Difference, History, Unlike};
use super::workload;
use crate::escape::{markdown, markdown_code};
use crate::lists::push_under;
use crate::markdown::words;
use crate::numbers;

/// Cells that a finding names before it says how many more there are.
const CELLS_MAX: usize = 6;
/// Name of the region with what was found.
const FINDINGS: &str = "findings";

/// The regions of a document, in order: the overview, then for each entry, newest last, its head, a region for each
/// workload, and what was found. `folder` is where [`pictures`] are, as an address in the document.
pub fn regions(history: &History, folder: &str) -> Vec<Region> {
    let mut regions = vec![Region {
        id: OVERVIEW.to_owned(),
        entry: None,
        text: overview(history, folder),
    }];
    for account in &history.accounts {
        let entry = &account.entry;
        let mut add = |part: &str, text: String| {
            let slash = if part.is_empty() { "" } else { "/" };
            regions.push(Region {
                id: format!("{}{slash}{part}", entry.id),
                entry: Some(entry.id.clone()),
                text,
            });
        };
        add("", head(account));
        for (name, section) in names(&entry.sections).iter().zip(&entry.sections) {
            add(name, workload::section(section));
        }
        // Also where there are none: what a later version finds has its place then.
        add(FINDINGS, findings(&entry.findings));
    }
    regions
}

/// What the regions of workloads are named after: no two alike, though names may be in what a marker may hold.
fn names(sections: &[Section]) -> Vec<String> {
    let mut taken = vec![FINDINGS.to_owned()];
    for section in sections {
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._-".contains(*c);
        let name: String = section.workload.chars().filter(plain).collect();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let own = (!name.is_empty()).then(|| name.clone());
        let free = own
            .into_iter()
            .chain(numbered)
            .find(|name| !taken.contains(name));
        taken.extend(free);
    }
    taken.split_off(1)
}

fn title(entry: &Entry) -> String {
    let moment = numbers::moment(entry.moment_unix_ms());
    format!("{moment}: {}", entry.run)
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
const HEAD: [&str; 4] = ["entry", "code", "measured", "since the state before"];
/// Place of the verdict in the overviews of before: a column that is no longer there.
const VERDICT_BEFORE: usize = 3;

fn how_many(count: usize) -> String {
    match count {
        0 => "No run of this experiment has been found.\n\n".to_owned(),
        1 => "One entry.\n\n".to_owned(),
        _ => format!("{count} entries, newest last.\n\n"),
    }
}

/// The overview `text` with the rows that the one before it (`old`) has of entries that stand in the document, by their
/// `headings`, and that neither a run directory nor the history knows any more.
pub fn with_rows_kept(text: &str, old: &str, headings: &[&str]) -> String {
    let rows = |text: &str| -> Vec<Vec<String>> {
        let own = text.lines().filter(|line| line.starts_with("| ["));
        let own = own.map(cells_of).map(|mut row| {
            if row.len() == HEAD.len() + 1 {
                row.remove(VERDICT_BEFORE);
            }
            row
        });
        own.filter(|row| row.len() == HEAD.len()).collect()
    };
    let heading = |row: &Vec<String>| {
        let linked = row[0].strip_prefix('[').unwrap_or_default();
        linked.split("](#").next().unwrap_or_default().to_owned()
    };
    let mut all = rows(text);
    let count = how_many(all.len());
    let lead = text.find(&count).map_or("", |at| &text[..at]);
    let known: Vec<String> = all.iter().map(heading).collect();
    let mut kept = rows(old);
    kept.retain(|row| {
        let own = heading(row);
        !known.contains(&own) && headings.contains(&own.as_str())
    });
    if kept.is_empty() {
        return text.to_owned();
    }
    let told = format!(
        "{} known to this document alone: neither a run directory nor the history has {}.",
        if kept.len() == 1 {
            "One entry is".to_owned()
        } else {
            format!("{} are", entries(kept.len()))
        },
        if kept.len() == 1 { "it" } else { "them" },
    );
    all.extend(kept);
    // They begin with their dates.
    all.sort_by_key(heading);
    let table = text[lead.len()..].lines();
    let rest = table.skip_while(|line| !line.starts_with('|'));
    let rest: Vec<&str> = rest.skip_while(|line| line.starts_with('|')).collect();
    format!(
        "{lead}{}{}\n\n{told}\n{}\n",
        how_many(all.len()),
        words(&HEAD, &all),
        rest.join("\n")
    )
}

/// The cells of a table's row, without the blanks around them.
fn cells_of(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut escaped = false;
    let inner = row.trim().trim_start_matches('|');
    for c in inner.strip_suffix('|').unwrap_or(inner).chars() {
        match (c, escaped) {
            ('|', false) => cells.push(String::new()),
            _ => cells.last_mut().expect("one is there").push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

fn overview(history: &History, folder: &str) -> String {
    let newest = history.accounts.last();
    let mut text = newest.map_or_else(String::new, |account| short_answer(&account.entry, folder));
    text.push_str(&how_many(history.accounts.len()));
    let row = |account: &Account| {
        let entry = &account.entry;
        let heading = title(entry);
        vec![
            format!("[{}](#{})", markdown(&heading), anchor(&heading)),
            markdown(&state_words(entry)),
            measured_briefly(entry),
            markdown(&since_words(account)),
        ]
    };
    let rows: Vec<Vec<String>> = history.accounts.iter().map(row).collect();
    text.push_str(&words(&HEAD, &rows));
    text.push_str(&format!("\n\n{}\n", changes_words(history)));
    text
}

/// What the newest entry answers, as its document does, and its pictures; nothing of an entry that kept neither.
fn short_answer(entry: &Entry, folder: &str) -> String {
    if entry.answer.is_empty() {
        return String::new();
    }
    let heading = title(entry);
    let mut text = format!(
        "**Short answer of the newest entry, [{}](#{}):**\n\n",
        markdown(&heading),
        anchor(&heading)
    );
    let lines = entry
        .answer
        .iter()
        .map(|line| format!("- {}\n", markdown(line)));
    text.extend(lines);
    text.push('\n');
    for (of, path) in entry.pictures.iter().zip(addresses(entry)) {
        text.push_str(&format!("![{}]({folder}/{path})\n\n", markdown(&of.title)));
    }
    text
}

/// The files of an entry's pictures in the folder of its log.
fn addresses(entry: &Entry) -> impl Iterator<Item = String> {
    let of = |of: &super::entry::Drawn| format!("{}-{}.svg", entry.id, of.name);
    entry.pictures.iter().map(of)
}

/// The pictures that the regions of a log show: a path in its folder, and SVG.
pub fn pictures(history: &History) -> Vec<(String, String)> {
    let newest = history.accounts.last().map(|account| &account.entry);
    let of = |entry: &'_ Entry| -> Vec<(String, String)> {
        let svgs = entry.pictures.iter().map(|of| of.svg.clone());
        addresses(entry).zip(svgs).collect()
    };
    let newest = newest.filter(|entry| !entry.answer.is_empty());
    newest.map_or_else(Vec::new, of)
}

fn measured_briefly(entry: &Entry) -> String {
    let of = |name: &str| {
        let found = entry.settings.iter().find(|pair| pair.name == name);
        found.map_or("", |pair| pair.value.as_str())
    };
    let blocks = of("blocks");
    let word = plural(blocks.parse().unwrap_or(0_u64), "block");
    let mut text = format!("{blocks} {word} of {}", of("measured window"));
    if entry.settings.iter().any(|pair| pair.name == "--quick") {
        text.push_str(" (a short look)");
    }
    text.push_str(&states(entry));
    text
}

/// The revision that was measured, or else the code around the experiment.
pub fn state_words(entry: &Entry) -> String {
    match &entry.revised {
        Some(revised) => digits(&revised.commit).to_owned(),
        None => code_words(entry.code.as_ref()),
    }
}

/// `3128add0c0ff`, with what was changed and not committed.
fn code_words(code: Option<&CodeState>) -> String {
    match code {
        None => "no git".to_owned(),
        Some(code) if code.changes_sha256.is_empty() => digits(&code.commit).to_owned(),
        Some(code) => format!("{} with changes", digits(&code.commit)),
    }
}

/// The verdict, and what else must be known before any figure is read.
pub fn verdict_words(entry: &Entry) -> String {
    format!("{}{}", entry.verdict, states(entry))
}

/// `, unfinished`
fn states(entry: &Entry) -> String {
    let mut text = String::new();
    if entry.unfinished {
        text.push_str(", unfinished");
    }
    if entry.gone {
        text.push_str(", its run directory is gone");
    }
    text
}

/// What may be said of an entry beside the state before it, in a few words.
pub fn since_words(account: &Account) -> String {
    let compared = account.differences.len();
    if compared == 0 {
        let most = account
            .unlike
            .iter()
            .filter(|(why, _)| **why != Unlike::NoFigure);
        return match most.max_by_key(|(_, count)| **count) {
            None => "no figure to compare",
            Some((Unlike::SameState, _)) => "the same state again",
            Some((Unlike::OtherMachine, _)) => "another machine: not compared",
            Some((Unlike::OtherSettings, _)) => "other settings: not compared",
            Some(_) => "the first of its kind",
        }
        .to_owned();
    }
    let (higher, lower) = counts(account);
    let known = with_history(account).count();
    let rest = match compared - known {
        0 => String::new(),
        rest => format!(", {} not told apart", figures(rest)),
    };
    match (higher, lower) {
        (0, 0) if known > 0 => format!("no change shown in {}{rest}", figures(known)),
        (0, 0) => format!("{} not told apart", figures(compared)),
        _ => format!(
            "of {} {higher} higher, {lower} lower{rest}",
            figures(compared)
        ),
    }
}

fn figures(count: usize) -> String {
    counted(count, "figure")
}

fn counts(account: &Account) -> (usize, usize) {
    let lower = account.regressions().count();
    (account.claimed().count() - lower, lower)
}

/// The figures that have entries enough behind them to be told apart.
fn with_history(account: &Account) -> impl Iterator<Item = &Difference> {
    let known = |d: &&Difference| d.compared.conclusion != Conclusion::NotClaimed;
    account.differences.iter().filter(known)
}

/// Where figures changed over all entries, or why nothing is said of it.
pub fn changes_words(history: &History) -> String {
    let (searched, most) = history.searched;
    if searched == 0 {
        return format!(
            "Change points are looked for from {CHANGE_SESSIONS_MIN} entries with the same machine and settings; there \
             {}.",
            match most {
                1 => "is 1".to_owned(),
                most => format!("are {most}"),
            }
        );
    }
    if history.changes.is_empty() {
        return format!(
            "Change points: none in {} over {most} entries (5 % for all figures together).",
            figures(searched)
        );
    }
    let line = |change: &super::history::Change| {
        format!(
            "- {}: × {} from `{}` on (a step as clean comes by chance in {} of orders)\n",
            markdown(&cell_words(
                &change.workload,
                &change.label,
                change.connections
            )),
            numbers::ratio(change.ratio),
            change.entry,
            numbers::percent(change.chance),
        )
    };
    let lines: String = history.changes.iter().map(line).collect();
    format!(
        "Change points over {most} entries, {}, 5 % for all together:\n\n{lines}",
        figures(searched)
    )
}

fn cell_words(workload: &str, label: &str, connections: u32) -> String {
    match connections {
        0 => format!("{workload}: {label}"),
        n => format!(
            "{workload}: {label}, {}",
            numbers::counted(u64::from(n), "connection")
        ),
    }
}

/// `python/prony-wsgi as it was at 3128add0c0ff (v1.2); measured 2026-11-25 22:10 UTC`
fn revision_line(entry: &Entry, revised: &Revised) -> String {
    let named = match revised.commit.starts_with(&revised.revision) {
        true => String::new(),
        false => format!(" ({})", markdown(&revised.revision)),
    };
    format!(
        "{} as it was at {}{named}; measured {}",
        markdown(&revised.subject),
        markdown_code(digits(&revised.commit)),
        numbers::moment(entry.started_unix_ms)
    )
}

fn head(account: &Account) -> String {
    let entry = &account.entry;
    let mut text = format!("## {}\n\n", markdown(&title(entry)));
    let mut add = |name: &str, value: String| {
        text.push_str(&format!("* **{name}:** {value}\n"));
    };
    add("Code", code_line(entry.code.as_ref()));
    if let Some(revised) = &entry.revised {
        add("Revision", revision_line(entry, revised));
    }
    add("Prony", markdown(&entry.prony));
    let version = |pair: &Pair| format!("{} ({})", markdown(&pair.name), markdown(&pair.value));
    let versions: Vec<String> = entry.subjects.iter().map(version).collect();
    add("Subjects", versions.join("; "));
    let pairs = |pairs: &[Pair]| {
        let pair = |pair: &Pair| format!("{} {}", markdown(&pair.name), markdown(&pair.value));
        pairs.iter().map(pair).collect::<Vec<_>>().join("; ")
    };
    add(
        "Measured",
        format!(
            "{}. Again: {}",
            pairs(&entry.settings),
            markdown_code(&entry.command)
        ),
    );
    add("Machine", pairs(&entry.machine));
    if !entry.not_run.is_empty() {
        add("Not run", not_run(entry));
    }
    if entry.unfinished {
        add(
            "Unfinished",
            "trials that were planned are missing.".to_owned(),
        );
    }
    if entry.gone {
        add(
            "Gone",
            "its run directory is not there any more.".to_owned(),
        );
    }
    let limits = match entry.verdict.as_str() {
        "valid" => "",
        "invalid" => "some figures cannot be used; which, and why, stands below each table.",
        _ => "some figures are bounds; which, and why, stands below each table.",
    };
    if !limits.is_empty() {
        add("Limits", limits.to_owned());
    }
    text.push('\n');
    text.push_str(&since(account));
    text
}

fn code_line(code: Option<&CodeState>) -> String {
    let Some(code) = code else {
        return "kept in no git".to_owned();
    };
    let changes = match code.changes_sha256.as_str() {
        "" => String::new(),
        changes => format!(
            ", with changes that are not committed ({})",
            digits(changes)
        ),
    };
    format!(
        "`{}` {}{changes}",
        digits(&code.commit),
        markdown(&code.subject)
    )
}

fn not_run(entry: &Entry) -> String {
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for (what, reason, remedy) in &entry.not_run {
        let mut why = markdown(reason);
        if !remedy.is_empty() {
            why.push_str(&format!("; to change it: {}", markdown_code(remedy)));
        }
        push_under(&mut told, why, what.clone());
    }
    let part = |(why, cells): &(String, Vec<String>)| format!("{} ({why})", some(cells));
    told.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// The first few of `cells`, and how many more.
fn some(cells: &[String]) -> String {
    let mut shown: Vec<String> = cells
        .iter()
        .take(CELLS_MAX)
        .map(|cell| markdown(cell))
        .collect();
    let more = cells.len().saturating_sub(CELLS_MAX);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// What may be said of the entry beside those before it.
fn since(account: &Account) -> String {
    let mut text = String::from("**Since the state before:** ");
    let compared = account.differences.len();
    if compared == 0 {
        text.push_str(nothing_beside(account));
    } else {
        text.push_str(&beside(account));
    }
    text.push('\n');
    let left: usize = account
        .unlike
        .iter()
        .filter(|(why, _)| compared > 0 && **why != Unlike::SameState)
        .map(|(_, count)| count)
        .sum();
    if left > 0 {
        text.push_str(&format!(
            "{} nothing to be compared with: not measured, invalid, limited by the generator, without all blocks, or \
             measured before otherwise or elsewhere.\n",
            have(left)
        ));
    }
    let claimed: Vec<&Difference> = account.claimed().collect();
    if !claimed.is_empty() {
        text.push_str(&format!("\n{}\n", claims(&claimed)));
    }
    text
}

fn nothing_beside(account: &Account) -> &'static str {
    let why = account
        .unlike
        .iter()
        .filter(|(why, _)| **why != Unlike::NoFigure);
    match why.max_by_key(|(_, count)| **count) {
        None => "nothing was measured that could be compared.",
        Some((Unlike::SameState, _)) => {
            "the same state was measured again. That shows how far sessions of one state lie apart, and makes \
             later changes easier to tell."
        }
        Some((Unlike::OtherMachine, _)) => {
            "earlier entries are of another machine or kernel, and are not compared."
        }
        Some((Unlike::OtherSettings, _)) => {
            "earlier entries measured otherwise (other requests, blocks, windows or cores), and are not compared."
        }
        Some(_) => "nothing before it was measured in this way.",
    }
}

/// What the figures come to that have others beside them.
fn beside(account: &Account) -> String {
    let ratios: Vec<f64> = account
        .differences
        .iter()
        .map(|d| d.compared.ratio.0)
        .collect();
    let (low, high) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), r| {
            (low.min(*r), high.max(*r))
        });
    let range = match ratios.len() {
        _ if numbers::ratio(low) == numbers::ratio(high) => format!("× {}", numbers::ratio(low)),
        _ => format!("× {} to × {}", numbers::ratio(low), numbers::ratio(high)),
    };
    let count = match ratios.len() {
        1 => "1 rate is".to_owned(),
        n => format!("{n} rates are"),
    };
    let most = account
        .differences
        .iter()
        .map(|d| d.compared.degrees)
        .max()
        .unwrap_or(0);
    let known = with_history(account).count();
    if known == 0 {
        return format!(
            "{count} {range} of what they were, and not told apart. The runs were not interleaved, and how far runs of \
             one state lie apart is not known: that needs {} entries of one state ({SESSION_DEGREES_MIN} degrees of freedom, \
             there {} {most}).",
            SESSION_DEGREES_MIN + 1,
            if most == 1 { "is" } else { "are" },
        );
    }
    let (higher, lower) = counts(account);
    let without = match ratios.len() - known {
        0 => String::new(),
        rest => format!(" {} too few entries to be told apart.", have(rest)),
    };
    let said = match (higher, lower) {
        (0, 0) => format!("no change is shown in {}", figures(known)),
        _ if higher + lower == ratios.len() => format!("{higher} higher, {lower} lower"),
        _ => format!("{higher} higher, {lower} lower, the rest not told apart"),
    };
    let of = |get: fn(&Difference) -> Option<f64>| -> Vec<f64> {
        with_history(account).filter_map(get).collect()
    };
    format!(
        "{count} {range} of what they were; {said}.{without} Sessions of one state lie {} apart (standard deviation, up to \
         {most} degrees of freedom): a change of {} would be told in four of five cases (95 % for all figures together).",
        spread(&of(|d| d.compared.between)),
        spread(&of(|d| d.compared.resolution)),
    )
}

fn have(count: usize) -> String {
    match count {
        1 => "1 figure has".to_owned(),
        n => format!("{n} figures have"),
    }
}

/// `2.1 %`, or `2.1 % to 4.0 %`.
fn spread(shares: &[f64]) -> String {
    let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shares.iter().copied().fold(0.0, f64::max);
    let (low, high) = (numbers::percent(low), numbers::percent(high));
    if low == high {
        low
    } else {
        format!("{low} to {high}")
    }
}

fn claims(claimed: &[&Difference]) -> String {
    let last = |figures: &[f64]| {
        figures
            .last()
            .copied()
            .map_or_else(String::new, numbers::rate)
    };
    let row = |d: &&Difference| {
        let ends = d.compared.interval.map_or_else(String::new, |spread| {
            format!(
                "{}–{}",
                numbers::ratio(spread.low.0),
                numbers::ratio(spread.high.0)
            )
        });
        let direction = match d.compared.conclusion {
            Conclusion::Lower => "lower",
            _ => "higher",
        };
        vec![
            markdown(&cell_words(&d.workload, &d.label, d.connections)),
            last(&d.earlier),
            last(&d.later),
            format!("**× {}** ({ends})", numbers::ratio(d.compared.ratio.0)),
            format!("{direction} than {} before", entries(d.earlier.len())),
        ]
    };
    let rows: Vec<Vec<String>> = claimed.iter().map(row).collect();
    words(
        &["figure", "last before", "now, /s", "ratio (interval)", ""],
        &rows,
    )
}

fn entries(count: usize) -> String {
    counted(count, "entry")
}

fn findings(found: &[Found]) -> String {
    if found.is_empty() {
        return "### Findings\n\nNone.\n".to_owned();
    }
    let mut text =
        String::from("### Findings\n\nWith the numbers of connections in which each was seen.\n\n");
    for finding in found {
        let evidence = match finding.evidence.is_empty() {
            true => String::new(),
            false => {
                let shown: Vec<String> = finding.evidence.iter().map(|e| markdown(e)).collect();
                let of = match finding.count {
                    0 => "Seen",
                    _ => "In the first of them",
                };
                format!(" {of}: {}.", shown.join(" · "))
            }
        };
        let place = match finding.count {
            0 => "of the whole run".to_owned(),
            count => format!("in {}: {}", cells(count), some(&finding.places)),
        };
        text.push_str(&format!(
            "- **{} {}** ({}), {place}. {}{evidence}\n",
            finding.code,
            markdown(&finding.title),
            finding.severity,
            markdown(&finding.meaning),
        ));
    }
    text
}

fn cells(count: usize) -> String {
    counted(count, "cell")
}
