//! Tables of clients that ask again and again: rates by row and client, what more of something brings,
//! who was the limit, CPU time, latency, and what both sides counted.

use prony_findings::{Code, Verdict};
use prony_record::DOWNLOADS;

use super::context::Context;
use super::sections::Section;
use super::words::more;
use super::{steps, words};
use crate::figures::CellFigures;
use crate::metrics::Metric;
use crate::numbers::{self, NOTHING};
use crate::part::{
    Captioned, Part, column, detail, median, plain, ratios_word, spread_word, with_ends,
};
use crate::ratio::RatioFigure;
use crate::table::{self, Entry, Row, Table};

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
            rates
                .pictures
                .extend(self.pictures_of_requests(section, &title, &cells));
        }
        vec![
            rates,
            self.costs(section),
            self.latencies(section),
            self.counts(section),
        ]
    }

    fn rates(&self, section: &Section<'a>) -> Part {
        let figures = section.cells.iter().filter_map(|c| c.rate_per_s);
        let word = spread_word(figures.map(|f| (f.is_interval(), f.blocks)));
        let mut tables = vec![Captioned {
            caption: "Requests a second".to_owned(),
            table: self.matrix(section, word, |cell| self.rate(cell)),
        }];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let word = ratios_word(section.cells.iter().filter_map(|c| c.ratio.as_ref()));
            let reference = self.run.plan.reference.as_deref().unwrap_or(NOTHING);
            tables.push(Captioned {
                caption: format!("Ratio of the rate to that of {reference}"),
                table: self.matrix(section, word, |cell| self.ratio(cell)),
            });
        }
        tables.extend(self.steps_table(section).map(|table| Captioned {
            caption: "What more of one thing brings: ratio of rates, all else equal".to_owned(),
            table,
        }));
        Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            tables,
            pictures_last: true,
            after: self.absent(section),
            ..Part::default()
        }
    }

    fn rate(&self, cell: &CellFigures) -> Entry {
        let path = self.places.path(cell, "rate_per_s.median");
        let entry = Entry::figure(path, median(cell.rate_per_s), numbers::rate);
        let mut entry = with_ends(entry, cell.rate_per_s, numbers::rates);
        entry.marks = self.notes.marks(&cell.cell, ON_RATE);
        if cell.verdict == Some(Verdict::Invalid) {
            entry.remark = "invalid";
        }
        entry
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
        let rows = steps::pairs(section).into_iter().map(|(from, to, change)| {
            let (what, fewer, more) = &change;
            let same = &section.rows[from];
            let mut entries = vec![Entry {
                text: format!("{what} {fewer} → {more}"),
                below: words::rest(same, what),
                ..Entry::default()
            }];
            entries.extend(section.columns.iter().map(|client| {
                let cell = section.cell(&section.rows[to], client);
                let own = |step: &(usize, &steps::Step)| {
                    cell.is_some_and(|cell| cell.cell == step.1.cell) && step.1.what == *what
                };
                let mut steps = self.steps.iter().enumerate();
                steps.find(own).map_or_else(
                    || Entry::text(NOTHING),
                    |(at, step)| {
                        ratio_entry(format!("/clients/steps/{at}/ratio/ratio"), &step.ratio)
                    },
                )
            }));
            Row {
                entries,
                ..Row::default()
            }
        });
        let rows: Vec<Row> = rows.collect();
        let word = ratios_word(self.steps.iter().map(|step| &step.ratio));
        let mut columns = vec![column("more of", "", false)];
        let clients = section.columns.iter();
        columns.extend(clients.map(|c| column(section.label(self.run, c), word, true)));
        (!rows.is_empty()).then_some(Table { columns, rows })
    }

    fn costs(&self, section: &Section<'a>) -> Part {
        let caption = |caption: &str, table| Captioned {
            caption: caption.to_owned(),
            table,
        };
        Part {
            title: format!("{}: CPU time, memory and who was the limit", section.title),
            before: vec![words::COSTS.to_owned()],
            tables: vec![
                caption(
                    "CPU time of the client a request, µs",
                    self.matrix(section, "user + system", |cell| self.cpu_client(cell)),
                ),
                caption(
                    "CPU time of the peer a request, µs",
                    self.matrix(section, "", |cell| self.cpu_peer(cell)),
                ),
                caption(
                    "Who was the limit",
                    self.matrix(section, "busy: client, peer", |cell| self.limit(cell)),
                ),
                caption(
                    "Peak memory of the client",
                    self.matrix(section, "", |cell| {
                        let path = self.places.path(cell, "memory_peak_bytes.median");
                        Entry::figure(path, median(cell.memory_peak_bytes()), numbers::bytes)
                    }),
                ),
            ],
            ..Part::default()
        }
    }

    fn cpu_client(&self, cell: &CellFigures) -> Entry {
        let path = self.places.path(cell, "cpu_subject_ns.median");
        let mut entry = Entry::figure(path, median(cell.cpu_subject_ns()), numbers::micros);
        let client = cell.client.as_ref();
        let parts = client.and_then(|c| Some((c.cpu_user_ns?, c.cpu_system_ns?)));
        if let Some((user, system)) = parts {
            let micros = numbers::micros;
            entry.below = format!("{} + {}", micros(user.median), micros(system.median));
        }
        entry.marks = self.notes.marks(&cell.cell, ON_CPU);
        entry
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
        let blocks: u32 = client.limits.values().sum();
        let most = client.limits.get(client.limit).copied().unwrap_or(0);
        let name = match client.limit {
            // A download has no trips to go round.
            "round trips" if client.work == DOWNLOADS => "neither",
            name => name,
        };
        let text = match name {
            "" => "not known".to_owned(),
            name if most < blocks => format!("{name} in {most} of {blocks} blocks"),
            name => name.to_owned(),
        };
        let share = |figure| median(figure).map_or(NOTHING.to_owned(), numbers::percent);
        Entry {
            text,
            below: format!("{}, {}", share(client.busy_client), share(client.busy_peer)),
            marks: self.notes.marks(&cell.cell, ON_LIMIT),
            ..Entry::default()
        }
    }

    fn latencies(&self, section: &Section<'a>) -> Part {
        let metrics = [Metric::P50, Metric::P90, Metric::P99, Metric::MAX];
        let mut columns = metrics.map(Metric::head).to_vec();
        columns[3].below = "of all blocks".into();
        columns.push(column("in flight", "rate × mean latency", true));
        let entries = |cell: &'a CellFigures| {
            let entry = |metric: Metric| self.places.entry(cell, metric);
            let mut entries: Vec<Entry> = metrics.map(entry).into();
            let flight = cell.client.as_ref().and_then(|client| client.in_flight);
            let path = self.places.path(cell, "client.in_flight.median");
            let mut flight = Entry::figure(path, median(flight), numbers::three);
            flight.marks = self.notes.marks(&cell.cell, ON_LATENCY);
            entries.push(flight);
            entries
        };
        Part {
            title: format!("{}: latency by each client's own clock", section.title),
            before: vec![words::LATENCY.to_owned()],
            tables: vec![plain(self.list(section, columns, entries))],
            ..Part::default()
        }
    }

    pub(super) fn counts(&self, section: &Section<'a>) -> Part {
        let downloads = section.is_downloads();
        let mut columns = vec![
            column("answered", "client", true),
            detail(column("failed", "client", true)),
            detail(column("in flight at the end", "client", true)),
            column("requests", "peer", true),
        ];
        if downloads {
            columns.push(column("bytes of bodies", "client", true));
            columns.push(column("bytes of bodies", "peer", true));
        }
        columns.push(column("agree", "", false));
        columns.push(detail(column("verdict", "", false)));
        let entries = |cell: &'a CellFigures| {
            let Some(client) = &cell.client else {
                return Vec::new();
            };
            let counts = &client.counts;
            let known = |name: &str, count: Option<u64>, otherwise: &str| match count {
                Some(count) => Entry::figure(
                    self.places.path(cell, &format!("client.counts.{name}")),
                    Some(count as f64),
                    |_| numbers::count(count),
                ),
                None => Entry::text(otherwise),
            };
            let mut failed = known("failed", Some(counts.failed), NOTHING);
            failed.marks = self.notes.marks(&cell.cell, &ON_COUNTS[..1]);
            let mut agree = Entry::text(words::agree(counts));
            agree.marks = self.notes.marks(&cell.cell, &ON_COUNTS[1..]);
            let mut entries = vec![
                known("answered", Some(counts.answered), NOTHING),
                failed,
                known("in_flight", counts.in_flight, "not said"),
                known("by_peer", counts.by_peer, "not counted"),
            ];
            if downloads {
                entries.push(known("bytes", Some(counts.bytes), NOTHING));
                entries.push(known("bytes_by_peer", counts.bytes_by_peer, "not counted"));
            }
            entries.extend([agree, Entry::text(table::verdict_text(cell))]);
            entries
        };
        let mut part = Part {
            title: format!("{}: what both sides counted", section.title),
            before: vec![words::counts(section)],
            tables: vec![plain(self.list(section, columns, entries))],
            ..Part::default()
        };
        // The verdict stands in a column: a badge beside it would say it twice.
        for row in part.tables.iter_mut().flat_map(|t| &mut t.table.rows) {
            row.badge = "";
        }
        part
    }
}

/// `1.49 ×, 49 % more`, with its ends below.
pub fn ratio_entry(path: String, ratio: &RatioFigure) -> Entry {
    let same = ratio.conclusion == "no-difference-shown";
    let show = |ratio| match same {
        true => format!("{} ×", numbers::ratio(ratio)),
        false => more(ratio),
    };
    let mut entry = Entry::figure(path, Some(ratio.ratio), show);
    if ratio.blocks > 1 {
        entry.below = format!(
            "{}–{}",
            numbers::ratio(ratio.low),
            numbers::ratio(ratio.high)
        );
    }
    if same {
        entry.remark = "no difference shown";
    }
    entry
}
