//! The parts of a document around its tables, as far as they tell of clients.

use prony_base::counted;
use prony_record::{ClientReport, Plan};

use super::figures::Counts;
use super::sections::{RowKey, Section};
use crate::Run;
use crate::numbers;

/// What marks a client that lets the kernel throw bodies away.
pub const DISCARDS: &str = " ◊";

/// What stands above the tables of costs.
pub const COSTS: &str = "CPU time of the client is the kernel's account of its whole process, start and end included, ÷ answers. That of \
     the peer is its processes' own clocks around the run ÷ requests that it counted. Over loopback each side's core does part of the \
     other's network work. A side is the limit where its busiest core or thread was busy for 95 % of the time: of the client's whole \
     run, or while the peer was asked. Where neither was, each waited for the other: rate is connections ÷ round trip, \
     and more connections bring more.";

/// What stands above the table of latencies.
pub const LATENCY: &str = "From the sending of a request to the last byte of its answer, as each client takes it: \
     by its own clock, at its own moments, rounded as it likes. Medians over the blocks. A closed loop asks \
     less while answers are slow. Rate × mean latency is the number of requests in flight (Little's law): \
     more than connections cannot be, and fewer are explained by what the client does between two requests.";

/// What a reader must know before the tables of a section.
pub fn before(run: &Run, section: &Section<'_>) -> Vec<String> {
    let asked = section.asked;
    let report = report(run, section);
    let network = report.map_or("", |report| report.network.as_str());
    let network = match network {
        "" | "loopback" => String::new(),
        words => format!(" Between the two sides: {words}."),
    };
    let mut said = Vec::new();
    if section.is_downloads() {
        let rows = match &section.rows[..] {
            [one] => format!("{}. ", one.words()),
            _ => String::new(),
        };
        said.push(format!(
            "{rows}Each connection asks once for {} and reads to the end.{network}",
            path(&asked.path, "/testpayload")
        ));
        said.push(
            "Connections are in total, over all threads. Times of a connection are means over the connections, \
             then the median of the blocks, with the blocks' range below. What lies between the \
             connections has a column of its own."
                .to_owned(),
        );
    } else {
        said.push(format!(
            "Each client asks for {} again and again for {}, in a closed loop: on each connection the next \
             request is sent when the last is answered.{network}",
            path(&asked.path, "the page"),
            numbers::duration(run.plan.duration_ns)
        ));
        said.push(
            "Connections are in total for all clients, shared out over their threads, and not for each thread."
                .to_owned(),
        );
    }
    said.extend(report.filter(|r| r.page_body_bytes > 0).map(|report| {
        let (head, body) = (report.page_head_bytes, report.page_body_bytes);
        format!(
            "An answer weighs {} bytes as the peer sent it to Prony before the clients started: {} of head and \
             {} of body.",
            numbers::count(head.saturating_add(body)),
            numbers::count(head),
            numbers::count(body)
        )
    }));
    said.extend(crowded(&run.plan, section));
    said
}

fn path(path: &str, otherwise: &str) -> String {
    match path {
        "" => otherwise.to_owned(),
        path => path.to_owned(),
    }
}

/// What the lab noted beside the first run of the section.
fn report<'a>(run: &'a Run, section: &Section<'_>) -> Option<&'a ClientReport> {
    let own = |trial: &&prony_record::Trial| section.cells.iter().any(|c| c.cell == trial.cell);
    let mut reports = run
        .trials
        .iter()
        .filter(own)
        .filter_map(|t| t.client.as_ref());
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
    format!(
        "Sums over the blocks. The peer's own counter{source} is read before the client starts and after it has \
         ended, without the readings themselves. They agree where requests − answered − failed is what was in \
         flight when the client stopped: to the unit where it says that, else from none to one for each \
         connection."
    )
}

/// Whether both sides' counts agree, in words.
pub fn agree(counts: &Counts) -> String {
    match (counts.compared, counts.agree) {
        (0, _) => "not compared".to_owned(),
        (compared, agree) if compared == agree && counts.in_flight.is_some() => {
            "yes, to the unit".to_owned()
        }
        (compared, agree) if compared == agree => "yes".to_owned(),
        (compared, agree) => format!("no: in {agree} of {compared} blocks"),
    }
}

/// What follows from marks in the tables of downloads.
pub fn marks(section: &Section<'_>) -> Vec<String> {
    let discards =
        |c: &&&crate::figures::CellFigures| c.client.as_ref().is_some_and(|c| c.discards);
    let any = section.cells.iter().find(discards).is_some();
    let said = format!(
        "{} The kernel throws the bodies away (MSG_TRUNC): their bytes are counted, not seen. No program that \
         looks at what it downloads can be as fast.",
        DISCARDS.trim_start()
    );
    if any { vec![said] } else { Vec::new() }
}

/// What the ratios of downloads refer to.
pub fn ratio_caption(run: &Run) -> String {
    let reference = run.plan.reference.as_deref().unwrap_or("the reference");
    format!(
        "All connections together, and the ratio to {reference} with the first value of each setting"
    )
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

/// `1.49 ×, 49 % more`, `0.80 ×, 20 % less`; over 10 and under a hundredth the factor alone says it.
pub fn more(ratio: f64) -> String {
    let factor = format!("{} ×", numbers::ratio(ratio));
    if !(0.01..10.0).contains(&ratio) {
        return factor;
    }
    let percents = (ratio - 1.0) * 100.0;
    let size = percents.abs();
    let digits = match size {
        _ if size < 0.05 => return format!("{factor}, the same"),
        _ if size < 9.95 => format!("{size:.1}"),
        _ => format!("{size:.0}"),
    };
    let word = if percents > 0.0 { "more" } else { "less" };
    format!("{factor}, {digits} % {word}")
}

/// How clients were measured, in some lines.
pub fn method(run: &Run) -> Vec<String> {
    let plan = &run.plan;
    let pinned = match plan.cores.subject.is_empty() {
        true => "nothing is pinned to cores",
        false => "client and peer each keep to their own cores",
    };
    let mut lines = vec![format!(
        "Each trial of a client starts a fresh peer, asks for the page once to see that it is right and what it \
         weighs, reads the peer's counter, runs the client once from a fresh process to its end, and reads the \
         counter again; {pinned}. Nothing is warmed up: the start of the client is in its CPU time and its whole \
         run, and not in the time by its own clock."
    )];
    lines.push(
        "The rate is what the client counted ÷ the time by its own clock, and stands only where the peer counted \
         as many. Of tools that print no figures for machines, what they printed is translated after they have \
         ended. CPU time and peak memory of the client are the kernel's account of its process and of the \
         children that it waited for."
            .to_owned(),
    );
    if plan
        .workloads
        .iter()
        .any(|w| w.client.as_ref().is_some_and(|c| c.work == "downloads"))
    {
        lines.push(
            "Of downloads, socket creation, job set-up, connect, first byte, download and stall are what the client \
             takes by its own clock on each connection; memory is the mean over the run of the sum of Pss of \
             mappings that are no files. CPU time for a GiB is what the client says of its own, without that of taking \
             its memory, where it says that and the kernel's account of the whole process is no less; else the \
             latter. In neither is what the kernel's own thread (ksoftirqd) received for it on its cores; beside both \
             stands the time for which these were busy, whatever ran there."
                .to_owned(),
        );
    }
    lines
}

/// What a document on clients cannot tell.
pub fn limits() -> [String; 3] {
    [
        "Each latency is the client's own word. Clients take it at different moments: before or after the call \
         that sends, at the first or the last byte, when they get to look. Rates, CPU time and counts are \
         checked by others; latencies are held only against Little's law."
            .to_owned(),
        "A client that fills the peer shows the peer's rate. Where the table says that the peer was the limit, \
         only CPU time a request tells clients apart."
            .to_owned(),
        "Loopback has no wire: no loss, no delay, no interrupts. Each side's core does part of the other's network \
         work, so CPU time belongs to this peer and this network, too; compare it within this document only."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_says_how_much_more_or_less_it_is() {
        let said = [1.4917, 0.8, 1.0, 1.034, 0.9655, 12.34, 0.043, 0.00211].map(more);
        assert_eq!(
            said,
            [
                "1.49 ×, 49 % more",
                "0.80 ×, 20 % less",
                "1.00 ×, the same",
                "1.03 ×, 3.4 % more",
                "0.97 ×, 3.4 % less",
                "12.34 ×",
                "0.0430 ×, 96 % less",
                "0.00211 ×",
            ]
        );
        assert_eq!(more(f64::NAN), "– ×");
    }

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
