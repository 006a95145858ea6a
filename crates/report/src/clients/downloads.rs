//! Tables of clients that ask once on each connection and read to the end: the times of each connection,
//! then what it cost.
//!
//! The figures and counts are those that the client prints by name (`socket_ns`, `recv_calls` …); one that
//! it does not print is left empty.

use super::Context;
use super::figures::ClientFigures;
use super::requests::ON_RATE;
use super::sections::Section;
use super::words;
use crate::figures::{CellFigures, Figure};
use crate::grid::Grid;
use crate::numbers::{self, BYTES, MIB, NOTHING, RATE, SECONDS, TIME};
use crate::part::{Part, captioned, column, detail, median, ratio_word};
use crate::plots::cells::cpu;
use crate::table::{Entry, Shown, Table};
use crate::words::paragraph;

const ALL: Shown = Shown::new("MiB/s, all connections", "client.bytes_per_s", MIB).with_ends();

/// A time that the client takes on each connection.
const fn each(title: &'static str, path: &'static str) -> Shown {
    Shown::new(title, path, TIME).below("each").with_ends()
}

const TIMES: [Shown; 4] = [
    each("socket creation", "client.figures.socket_ns.mean").detail(),
    each("job set-up", "client.figures.setup_ns.mean").detail(),
    each("connect", "client.figures.connect_ns.mean"),
    each("first byte", "client.figures.first_byte_ns.mean"),
];
const DOWNLOAD: Shown = each("download @ rate", "client.figures.download_ns.mean").marked(ON_RATE);
const RUN: Shown = Shown::new("run time", "client.figures.run_ns.mean", TIME).with_ends();
/// By a client that does not print it.
const ELAPSED: Shown = Shown::new("run time", "client.elapsed_ns", TIME).with_ends();
const PSS: Shown = Shown::new("average memory", "client.figures.pss_bytes.mean", BYTES)
    .below("Pss")
    .with_ends();

/// A CPU time of its processes or cores.
const fn per_gib(title: &'static str, path: &'static str) -> Shown {
    Shown::new(title, path, SECONDS).below("s/GiB").with_ends()
}

const CPU: [Shown; 4] = [
    per_gib("CPU user", "client.cpu_user_ns_per_gib"),
    per_gib("CPU system", "client.cpu_system_ns_per_gib"),
    per_gib("ksoftirqd", "client.ksoftirqd_ns_per_gib").detail(),
    per_gib("its cores busy", "client.busy_ns_per_gib"),
];
const REST: [Shown; 2] = [
    Shown::new("longest stall", "client.figures.stall_ns.max", TIME).below("of all"),
    Shown::new("peak memory", "memory_peak_bytes", BYTES).below("resident"),
];

impl<'a> Context<'a> {
    /// The parts of a section on downloads.
    pub(super) fn downloads(&self, section: &Section<'a>) -> Vec<Part> {
        let times = self.listed(section, self.times(section));
        let mut tables = vec![captioned("Each connection, and the whole run", times)];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let caption = words::ratio_caption(self.run);
            tables.push(captioned(caption, self.together(section)));
        }
        let costs = self.listed(section, self.costs_of_downloads(section));
        tables.push(captioned("What it cost", costs));
        let discards = |c: &&CellFigures| c.client.as_ref().is_some_and(|c| c.discards);
        let any = section.cells.iter().copied().any(|cell| discards(&cell));
        let part = Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            pictures: vec![cpu(&section.named(self.run, section.by_row()))],
            tables,
            after: Vec::from_iter(any.then(|| paragraph("clients: discards"))),
            ..Part::default()
        };
        vec![part, self.counts(section)]
    }

    /// All connections together.
    fn together(&self, section: &Section<'a>) -> Table {
        let ratio = column("ratio", ratio_word(&section.cells), true);
        let limit = column("who was the limit", "busy: client, peer", false);
        let grid = self
            .list(section, true)
            .shown(self.notes, [ALL])
            .figure(ratio, |cell| self.ratio(cell))
            .figure(limit, |cell| self.limit(cell));
        self.listed(section, grid)
    }

    fn times<'f>(&'f self, section: &'f Section<'a>) -> Grid<'f, &'a CellFigures> {
        let over = column("over connections", "min–max, standard deviation", true);
        self.list(section, true)
            .shown(self.notes, TIMES)
            .figure(DOWNLOAD.head(), |cell| {
                let mut mean = self.notes.entry(cell, &DOWNLOAD);
                let rate = cell.client.as_ref().and_then(|of| of.download_bytes_per_s);
                if let Some(rate) = rate {
                    mean.text += &format!(" @ {} MiB/s", MIB.text(rate.median));
                }
                mean
            })
            .figure(over, |cell| {
                let client = cell.client.as_ref();
                let spread = client.and_then(|of| of.figures.get("download_ns"));
                let words = spread.map(|of| {
                    let ends = TIME.ends(of.min, of.max);
                    format!("{ends}, {}", numbers::time(of.stdev.median))
                });
                Entry::text(words.unwrap_or_else(|| NOTHING.to_owned()))
            })
            .figure(RUN.head(), |cell| match self.notes.entry(cell, &RUN) {
                run if run.value.is_some() => run,
                _ => self.notes.entry(cell, &ELAPSED),
            })
            .shown(self.notes, [PSS])
    }

    fn costs_of_downloads<'f>(&'f self, section: &'f Section<'a>) -> Grid<'f, &'a CellFigures> {
        let waits = |name: &str| name.ends_with("_calls") && !is_receive(name);
        let switches = |name: &str| name.ends_with("_switches");
        self.list(section, true)
            .shown(self.notes, CPU)
            .figure(column("receives", "calls, or completions", true), |cell| {
                tallied(cell, is_receive)
            })
            .figure(detail(column("bytes", "a receive", true)), |cell| {
                let bytes = bytes_each(cell).map(numbers::bytes);
                Entry::text(bytes.unwrap_or_else(|| NOTHING.to_owned()))
            })
            .figure(detail(column("waits", "", true)), move |cell| {
                tallied(cell, waits)
            })
            .figure(detail(column("context switches", "", true)), move |cell| {
                tallied(cell, switches)
            })
            .shown(self.notes, REST)
    }
}

/// Bytes of a receive.
fn bytes_each(cell: &CellFigures) -> Option<f64> {
    let client = cell.client.as_ref()?;
    let all = client.counts.bytes as f64 / cell.trials.measured.len().max(1) as f64;
    let calls = tally(client, is_receive).filter(|calls| calls.median > 0.0);
    Some(all / calls?.median)
}

/// The tallies whose names `fits`, together; `None` where there is none.
fn tally(client: &ClientFigures, fits: impl Fn(&str) -> bool) -> Option<Figure> {
    let own = client.tallies.iter().filter(|(name, _)| fits(name));
    own.map(|(_, figure)| *figure).reduce(|sum, more| Figure {
        median: sum.median + more.median,
        low: sum.low + more.low,
        high: sum.high + more.high,
        ..sum
    })
}

fn tallied(cell: &CellFigures, fits: fn(&str) -> bool) -> Entry {
    let figure = cell.client.as_ref().and_then(|client| tally(client, fits));
    let ends = figure.and_then(|of| of.ends());
    Entry {
        text: median(figure).map_or_else(|| NOTHING.to_owned(), numbers::rate),
        below: ends.map_or_else(String::new, |(low, high)| RATE.ends(low, high)),
        ..Entry::default()
    }
}

/// Whether a tally is of receives: calls, or what a ring completed, which has no call of its own.
fn is_receive(name: &str) -> bool {
    name.starts_with("recv") || name.starts_with("read") || name == "completions"
}
