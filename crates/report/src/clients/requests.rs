//! Tables of clients that ask again and again: rates by row and client, what more of something brings,
//! who was the limit, CPU time, latency, and what both sides counted.

use prony_findings::Code;
use prony_record::DOWNLOADS;

use super::Context;
use super::sections::{Section, row_of};
use super::words;
use crate::figure::{OF_ALL, spread_word};
use crate::figures::CellFigures;
use crate::grid::{Crossed, crossed, verdict};
use crate::numbers::{BYTES, COUNT, FigureUnit, MICROS, NOTHING, RATE, TIME};
use crate::part::{Captioned, Part, captioned, column, detail, limit_entry, plain, ratio_word};
use crate::plots::Picture;
use crate::plots::cells::cpu;
use crate::table::{self, Entry, Shown};
use crate::words::paragraph;

/// Codes of the findings that are footnotes on a rate, or on the time of a download.
pub const ON_RATE: &[Code] = &[
    Code::P006,
    Code::P008,
    Code::P012,
    Code::P018,
    Code::P019,
    Code::P020,
];
/// The same on who was the limit.
const ON_LIMIT: &[Code] = &[Code::P020, Code::P021];
/// Rows with pictures of their own; `summary.json` has the figures of all.
const PICTURED_MAX: usize = 12;

const REQUESTS: Shown = Shown::new("", "rate_per_s", RATE)
    .with_ends()
    .marked(ON_RATE);
const CPU: Shown = Shown::new("", "cpu_subject_ns", MICROS).marked(&[Code::P007]);
const CPU_PEER: Shown = Shown::new("", "client.cpu_peer_ns", MICROS);
const MEMORY: Shown = Shown::new("", "memory_peak_bytes", BYTES);
const LATENCIES: [Shown; 5] = [
    Shown::new("p50", "latency_ns.p50", TIME),
    Shown::new("p90", "latency_ns.p90", TIME).detail(),
    Shown::new("p99", "latency_ns.p99", TIME),
    Shown::new("max", "latency_max_ns", TIME)
        .below(OF_ALL)
        .detail(),
    Shown::new("in flight", "client.in_flight", FigureUnit::Of(1))
        .below("rate × mean latency")
        .marked(&[Code::P005, Code::P022]),
];
const COUNTS: [Shown; 4] = [
    Shown::new("answered", "client.counts.answered", COUNT).below("client"),
    Shown::new("failed", "client.counts.failed", COUNT)
        .below("client")
        .marked(&[Code::P006])
        .detail(),
    Shown::new("in flight at the end", "client.counts.in_flight", COUNT)
        .below("client")
        .detail(),
    Shown::new("requests", "client.counts.by_peer", COUNT).below("peer"),
];
const BODIES: [Shown; 2] = [
    Shown::new("bytes of bodies", "client.counts.bytes", COUNT).below("client"),
    Shown::new("bytes of bodies", "client.counts.bytes_by_peer", COUNT).below("peer"),
];

impl<'a> Context<'a> {
    /// The parts of a section on requests.
    pub(super) fn requests(&self, section: &Section<'a>) -> Vec<Part> {
        let mut rates = self.rates(section);
        for (title, cells) in section.pictured().into_iter().take(PICTURED_MAX) {
            let picture = cpu(&section.named(self.run, cells));
            rates.pictures.push(Picture {
                title: format!("{}: {title}", picture.title),
                ..picture
            });
        }
        vec![
            rates,
            self.costs(section),
            self.latencies(section),
            self.counts(section),
        ]
    }

    fn rates(&self, section: &Section<'a>) -> Part {
        let word = spread_word(section.cells.iter().filter_map(|c| c.rate_per_s));
        let rate = |cell: &'a CellFigures| Entry {
            remark: if cell.is_invalid() { "invalid" } else { "" },
            ..self.notes.entry(cell, &REQUESTS)
        };
        let mut tables = vec![self.matrix(section, ("Requests a second", word), rate)];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let word = ratio_word(&section.cells);
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            let caption = format!("Ratio of the rate to that of {reference}");
            tables.push(self.matrix(section, (&caption, word), |cell| self.ratio(cell)));
        }
        tables.extend(self.steps_table(section));
        Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            tables,
            ..Part::default()
        }
    }

    pub(super) fn ratio(&self, cell: &CellFigures) -> Entry {
        match &cell.ratio {
            None if cell.is_reference => Entry::text("1"),
            None => Entry::text(NOTHING),
            Some(ratio) => table::change(cell.address("ratio.ratio"), ratio),
        }
    }

    /// What more connections and threads bring; `None` where no rows differ in one number.
    fn steps_table(&self, section: &Section<'a>) -> Option<Captioned> {
        let step = |(at, step): (usize, &super::Step)| {
            let cell = section.cells.iter().find(|cell| cell.cell == step.cell)?;
            let rest = row_of(cell).map_or_else(String::new, |row| words::rest(&row, step.what));
            let row = Entry {
                text: format!("{} {} → {}", step.what, step.from, step.to),
                below: rest,
                ..Entry::default()
            };
            let path = format!("/clients/steps/{at}/ratio/ratio");
            Some(Crossed {
                row: vec![row],
                column: section.label_of(self.run, cell),
                entry: table::change(path, &step.ratio),
            })
        };
        let all: Vec<Crossed> = self.steps.iter().enumerate().filter_map(step).collect();
        let word = spread_word(self.steps.iter().map(|step| step.ratio.figure()));
        let caption = "What more of one thing brings: change of the rate, all else equal";
        (!all.is_empty()).then(|| captioned(caption, crossed(&["more of"], word, all)))
    }

    fn costs(&self, section: &Section<'a>) -> Part {
        let of = |caption: &'static str, column: &'static Shown| {
            self.matrix(section, (caption, ""), |cell| {
                self.notes.entry(cell, column)
            })
        };
        let cpu = ("CPU time of the client a request, µs", "user + system");
        let limit = ("Who was the limit", "busy: client, peer");
        Part {
            title: format!("{}: CPU time, memory and who was the limit", section.title),
            before: vec![paragraph("clients: costs")],
            tables: vec![
                self.matrix(section, cpu, |cell| self.cpu(cell)),
                of("CPU time of the peer a request, µs", &CPU_PEER),
                self.matrix(section, limit, |cell| self.limit(cell)),
                of("Peak memory of the client", &MEMORY),
            ],
            ..Part::default()
        }
    }

    fn cpu(&self, cell: &CellFigures) -> Entry {
        let client = cell.client.as_ref();
        let parts = client.and_then(|c| Some((c.cpu_user_ns?.median, c.cpu_system_ns?.median)));
        let below = parts.map_or_else(String::new, |(user, system)| {
            format!("{} + {}", MICROS.text(user), MICROS.text(system))
        });
        let entry = self.notes.entry(cell, &CPU);
        Entry { below, ..entry }
    }

    pub(super) fn limit(&self, cell: &CellFigures) -> Entry {
        let Some(client) = &cell.client else {
            return Entry::text(NOTHING);
        };
        let name = match client.limit {
            // A download has no trips to go round.
            "round trips" if client.work == DOWNLOADS => "neither",
            name => name,
        };
        let busy = [client.busy_client, client.busy_peer];
        let limit = limit_entry(name, (client.limit, &client.limits), busy);
        self.notes.on(cell, ON_LIMIT, limit)
    }

    fn latencies(&self, section: &Section<'a>) -> Part {
        let grid = self.list(section, false).shown(self.notes, LATENCIES);
        Part {
            title: format!("{}: latency by each client's own clock", section.title),
            before: vec![paragraph("clients: latency")],
            tables: vec![plain(self.listed(section, grid))],
            ..Part::default()
        }
    }

    pub(super) fn counts(&self, section: &Section<'a>) -> Part {
        let mut grid = self.list(section, false).shown(self.notes, COUNTS);
        if section.is_downloads() {
            grid = grid.shown(self.notes, BODIES);
        }
        grid = grid
            .figure(column("agree", "", false), |cell| {
                let counts = cell.client.as_ref().map(|client| &client.counts);
                let agree = Entry::text(counts.map_or_else(String::new, words::agree));
                self.notes.on(cell, &[Code::P018], agree)
            })
            .figure(detail(column("verdict", "", false)), verdict);
        let mut table = self.listed(section, grid);
        // The verdict stands in a column: a badge beside it would say it twice.
        table.rows.iter_mut().for_each(|row| row.badge = "");
        Part {
            title: format!("{}: what both sides counted", section.title),
            before: vec![words::counts(section)],
            tables: vec![plain(table)],
            ..Part::default()
        }
    }
}
