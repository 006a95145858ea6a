//! Tables of clients that ask again and again: rates by row and client, what more of something brings,
//! who was the limit, CPU time, latency, and what both sides counted.

use prony_findings::Code;
use prony_record::DOWNLOADS;

use super::Context;
use super::figures::Counts;
use super::sections::Section;
use super::words::more;
use super::{steps, words};
use crate::figures::CellFigures;
use crate::grid::{Grid, verdict};
use crate::metrics::Metric;
use crate::numbers::{self, NOTHING};
use crate::part::{
    Part, captioned, column, detail, figures_word, limit_entry, median, plain, ratio_word,
    ratios_word, with_ends,
};
use crate::plots::Picture;
use crate::plots::cells::cpu;
use crate::ratio::RatioFigure;
use crate::table::{self, Entry, Table};

/// Codes of the findings that are footnotes on a rate.
const ON_RATE: &[Code] = &[
    Code::P006,
    Code::P008,
    Code::P012,
    Code::P018,
    Code::P019,
    Code::P020,
];
/// The same on CPU time.
const ON_CPU: &[Code] = &[Code::P007];
/// The same on who was the limit.
const ON_LIMIT: &[Code] = &[Code::P020, Code::P021];
/// The same on latency.
const ON_LATENCY: &[Code] = &[Code::P005, Code::P022];
/// The same on counts.
const ON_COUNTS: &[Code] = &[Code::P006, Code::P018];
/// Rows with pictures of their own; `summary.json` has the figures of all.
const PICTURED_MAX: usize = 12;

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
        let word = figures_word(section.cells.iter().filter_map(|c| c.rate_per_s));
        let rates = self.matrix(section, word, |cell| self.rate(cell));
        let mut tables = vec![captioned("Requests a second", rates)];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let word = ratio_word(&section.cells);
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            let caption = format!("Ratio of the rate to that of {reference}");
            let ratios = self.matrix(section, word, |cell| self.ratio(cell));
            tables.push(captioned(caption, ratios));
        }
        let caption = "What more of one thing brings: ratio of rates, all else equal";
        let steps = self.steps_table(section);
        tables.extend(steps.map(|table| captioned(caption, table)));
        Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            tables,
            after: self.absent(section),
            ..Part::default()
        }
    }

    fn rate(&self, cell: &CellFigures) -> Entry {
        let entry = self.places.entry(cell, Metric::RATE);
        let mut entry = with_ends(entry, cell.rate_per_s, numbers::rates);
        if cell.is_invalid() {
            entry.remark = "invalid";
        }
        self.notes.on(cell, ON_RATE, entry)
    }

    pub(super) fn ratio(&self, cell: &CellFigures) -> Entry {
        match &cell.ratio {
            None if cell.is_reference => Entry::text("1"),
            None => Entry::text(NOTHING),
            Some(ratio) => ratio_entry(self.places.path(cell, "ratio.ratio"), ratio),
        }
    }

    /// What more connections and threads bring; `None` where no rows differ in one number.
    fn steps_table(&self, section: &Section<'a>) -> Option<Table> {
        type Pair = (usize, usize, steps::Change);
        let pairs = steps::pairs(section);
        let head = column("more of", "", false);
        let mut grid = Grid::new().head(head, |(from, _, (what, fewer, more)): &Pair| Entry {
            text: format!("{what} {fewer} → {more}"),
            below: words::rest(&section.rows[*from], what),
            ..Entry::default()
        });
        let word = ratios_word(self.own.iter().map(|step| &step.ratio));
        for client in &section.columns {
            let head = column(section.label(self.run, client), word, true);
            grid = grid.head(head, move |(_, to, (what, ..))| {
                let cell = section.cell(&section.rows[*to], client);
                let own = |step: &(usize, &steps::Step)| {
                    cell.is_some_and(|cell| cell.cell == step.1.cell) && step.1.what == *what
                };
                let found = self.own.iter().enumerate().find(own);
                found.map_or_else(
                    || Entry::text(NOTHING),
                    |(at, of)| ratio_entry(format!("/clients/steps/{at}/ratio/ratio"), &of.ratio),
                )
            });
        }
        (!pairs.is_empty()).then(|| grid.rows(&pairs))
    }

    fn costs(&self, section: &Section<'a>) -> Part {
        Part {
            title: format!("{}: CPU time, memory and who was the limit", section.title),
            before: vec![words::COSTS.to_owned()],
            tables: vec![
                captioned(
                    "CPU time of the client a request, µs",
                    self.matrix(section, "user + system", |cell| self.cpu_client(cell)),
                ),
                captioned(
                    "CPU time of the peer a request, µs",
                    self.matrix(section, "", |cell| self.cpu_peer(cell)),
                ),
                captioned(
                    "Who was the limit",
                    self.matrix(section, "busy: client, peer", |cell| self.limit(cell)),
                ),
                captioned(
                    "Peak memory of the client",
                    self.matrix(section, "", |cell| self.places.entry(cell, Metric::MEMORY)),
                ),
            ],
            ..Part::default()
        }
    }

    fn cpu_client(&self, cell: &CellFigures) -> Entry {
        let mut entry = self.places.entry(cell, Metric::CPU);
        let client = cell.client.as_ref();
        let parts = client.and_then(|c| Some((c.cpu_user_ns?, c.cpu_system_ns?)));
        if let Some((user, system)) = parts {
            let micros = numbers::micros;
            entry.below = format!("{} + {}", micros(user.median), micros(system.median));
        }
        self.notes.on(cell, ON_CPU, entry)
    }

    fn cpu_peer(&self, cell: &CellFigures) -> Entry {
        let client = cell.client.as_ref();
        let figure = client.and_then(|client| client.cpu_peer_ns);
        let path = self.places.path(cell, "client.cpu_peer_ns.median");
        Entry::figure(path, median(figure), numbers::micros)
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
        let mut grid = self.list(section, false);
        for metric in [Metric::P50, Metric::P90, Metric::P99, Metric::MAX] {
            let mut head = metric.head();
            if metric.key == Metric::MAX.key {
                head.below = "of all blocks".into();
            }
            grid = grid.figure(head, move |cell| self.places.entry(cell, metric));
        }
        grid = grid.figure(column("in flight", "rate × mean latency", true), |cell| {
            let flight = cell.client.as_ref().and_then(|client| client.in_flight);
            let path = self.places.path(cell, "client.in_flight.median");
            let entry = Entry::figure(path, median(flight), numbers::three);
            self.notes.on(cell, ON_LATENCY, entry)
        });
        Part {
            title: format!("{}: latency by each client's own clock", section.title),
            before: vec![words::LATENCY.to_owned()],
            tables: vec![plain(self.listed(section, grid))],
            ..Part::default()
        }
    }

    pub(super) fn counts(&self, section: &Section<'a>) -> Part {
        let known = |name: &'static str,
                     of: fn(&Counts) -> Option<u64>,
                     otherwise: &'static str| {
            move |cell: &'a CellFigures| match cell.client.as_ref().and_then(|c| of(&c.counts)) {
                Some(count) => Entry::figure(
                    self.places.path(cell, &format!("client.counts.{name}")),
                    Some(count as f64),
                    |_| numbers::count(count),
                ),
                None => Entry::text(otherwise),
            }
        };
        let answered = known("answered", |c| Some(c.answered), NOTHING);
        let failed = known("failed", |c| Some(c.failed), NOTHING);
        let in_flight = known("in_flight", |c| c.in_flight, "not said");
        let by_peer = known("by_peer", |c| c.by_peer, "not counted");
        let mut grid = self
            .list(section, false)
            .figure(column("answered", "client", true), answered)
            .figure(detail(column("failed", "client", true)), move |cell| {
                self.notes.on(cell, &ON_COUNTS[..1], failed(cell))
            })
            .figure(
                detail(column("in flight at the end", "client", true)),
                in_flight,
            )
            .figure(column("requests", "peer", true), by_peer);
        if section.is_downloads() {
            let bytes = known("bytes", |c| Some(c.bytes), NOTHING);
            let by_peer = known("bytes_by_peer", |c| c.bytes_by_peer, "not counted");
            grid = grid
                .figure(column("bytes of bodies", "client", true), bytes)
                .figure(column("bytes of bodies", "peer", true), by_peer);
        }
        grid = grid
            .figure(column("agree", "", false), |cell| {
                let counts = cell.client.as_ref().map(|client| &client.counts);
                let agree = Entry::text(counts.map_or_else(String::new, words::agree));
                self.notes.on(cell, &ON_COUNTS[1..], agree)
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

/// `1.49 ×, 49 % more`, with its ends below.
pub fn ratio_entry(path: String, ratio: &RatioFigure) -> Entry {
    let text = match ratio.conclusion {
        "no-difference-shown" => format!("{} ×", numbers::ratio(ratio.ratio)),
        _ => more(ratio.ratio),
    };
    Entry {
        text,
        ..table::of_ratio(path, ratio, numbers::ratio)
    }
}
