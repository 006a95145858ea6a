//! The parts of a document around its tables, as far as they tell of clients.

use prony_base::counted;
use prony_record::{ClientReport, DOWNLOADS, Plan};

use super::figures::Counts;
use super::sections::{RowKey, Section};
use crate::figure::in_blocks;
use crate::words::{paragraph, paragraphs};
use crate::{Run, numbers};

/// What marks a client that lets the kernel throw bodies away.
pub const DISCARDS: &str = " ◊";

/// What a reader must know before the tables of a section.
pub fn before(run: &Run, section: &Section<'_>) -> Vec<String> {
    let asked = section.asked;
    let report = report(run, section);
    let network = match report.map_or("", |report| report.network.as_str()) {
        "" | "loopback" => String::new(),
        words => format!(" Between the two sides: {words}."),
    };
    let (name, path) = match section.is_downloads() {
        true => ("clients: downloads", path(&asked.path, "/testpayload")),
        false => ("clients: requests", path(&asked.path, "the page")),
    };
    let mut lines = paragraphs(name);
    lines[0] = lines[0].replace("{path}", path);
    lines[0] = lines[0].replace("{time}", &numbers::duration(run.plan.duration_ns)) + &network;
    if let ([one], true) = (&section.rows[..], section.is_downloads()) {
        lines[0] = format!("{}. {}", one.words(), lines[0]);
    }
    lines.extend(report.filter(|r| r.page_body_bytes > 0).map(|report| {
        let (head, body) = (report.page_head_bytes, report.page_body_bytes);
        format!(
            "An answer weighs {} bytes: {} of head and {} of body.",
            numbers::count(head.saturating_add(body)),
            numbers::count(head),
            numbers::count(body)
        )
    }));
    lines.extend(crowded(&run.plan, section));
    lines
}

fn path<'a>(path: &'a str, otherwise: &'a str) -> &'a str {
    if path.is_empty() { otherwise } else { path }
}

/// What the lab noted beside the first run of the section.
fn report<'a>(run: &'a Run, section: &Section<'_>) -> Option<&'a ClientReport> {
    let own = |trial: &&prony_record::Trial| section.cells.iter().any(|c| c.cell == trial.cell);
    let own = run.trials.iter().filter(own);
    let mut reports = own.filter_map(|trial| trial.client.as_ref());
    reports.find(|report| report.page_body_bytes > 0 || !report.network.is_empty())
}

/// Rows with more threads than cores.
fn crowded(plan: &Plan, section: &Section<'_>) -> Option<String> {
    let (own, peer) = (plan.cores.subject.len(), plan.cores.generator.len());
    let over = |row: &&RowKey<'_>| {
        let threads = row.threads.parse().unwrap_or(0);
        own > 0 && threads > own || peer > 0 && row.peer_threads as usize > peer
    };
    let rows = section.rows.iter().filter(over).count();
    let cores = |n: usize| counted(n, "core");
    (rows > 0).then(|| {
        format!(
            "The clients have {} and the peer {}. In {} of {} more threads than that take turns.",
            cores(own),
            cores(peer),
            rows,
            counted(section.rows.len(), "row"),
        )
    })
}

/// What stands above the table of counts.
pub fn counts(section: &Section<'_>) -> String {
    let sources = section.cells.iter().filter_map(|c| c.client.as_ref());
    let mut sources = sources.map(|client| client.counts.source.as_str());
    let source = match sources.find(|source| !source.is_empty()) {
        Some(source) => format!(" ({source})"),
        None => String::new(),
    };
    paragraph("clients: counts").replace("{source}", &source)
}

/// Whether both sides' counts agree, in words.
pub fn agree(counts: &Counts) -> String {
    match (counts.compared, counts.agree) {
        (0, _) => "not compared".to_owned(),
        (compared, agree) if compared == agree && counts.in_flight.is_some() => {
            "yes, to the unit".to_owned()
        }
        (compared, agree) if compared == agree => "yes".to_owned(),
        (compared, agree) => format!("no: in {}", in_blocks(agree, compared)),
    }
}

/// What the ratios of downloads refer to.
pub fn ratio_caption(run: &Run) -> String {
    let reference = run.plan.reference.as_deref().unwrap_or("the reference");
    format!("All connections together, beside {reference} with the first value of each setting")
}

/// The two numbers of a row that a step leaves as they are.
pub fn rest(row: &RowKey<'_>, what: &str) -> String {
    let words = row.words();
    let kept = words.split(", ").filter(|part| {
        let stem = what.trim_end_matches('s');
        !part.contains(stem)
    });
    kept.collect::<Vec<_>>().join(", ")
}

/// How clients were measured, in some lines.
pub fn method(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let pinned = match plan.cores.subject.is_empty() {
        true => "nothing is pinned to cores",
        false => "client and peer each keep to their own cores",
    };
    let mut lines = paragraphs("clients: method");
    lines[0] = lines[0].replace("{pinned}", pinned);
    let mut clients = plan.workloads.iter().filter_map(|w| w.client.as_ref());
    if clients.any(|client| client.work == DOWNLOADS) {
        lines.push(paragraph("clients: method of downloads"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_names_what_stays_as_it_is() {
        let row = RowKey {
            workload: "w",
            connections: 10,
            threads: "1".to_owned(),
            peer_threads: 2,
        };
        assert_eq!(
            rest(&row, "connections"),
            "1 client thread, 2 server threads"
        );
        assert_eq!(
            rest(&row, "server threads"),
            "10 connections, 1 client thread"
        );
    }
}
