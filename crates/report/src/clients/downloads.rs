//! Tables of clients that ask once on each connection and read to the end: the times of each connection,
//! then what it cost.
//!
//! The figures and counts are those that the client prints by name (`socket_ns`, `recv_calls` …); one that
//! it does not print is left empty.

use prony_findings::Code;

use super::context::Context;
use super::figures::{ClientFigures, SpreadFigure};
use super::sections::Section;
use super::words;
use crate::figures::{CellFigures, Figure};
use crate::numbers::{self, NOTHING};
use crate::part::{Captioned, Part, column, detail, median, ratios_word, with_ends};
use crate::table::{Column, Entry};

/// Codes of the findings that are footnotes on the time of a download.
const ON_DOWNLOAD: &[Code] = &[
    Code::P006,
    Code::P008,
    Code::P012,
    Code::P018,
    Code::P019,
    Code::P020,
];

impl<'a> Context<'a> {
    /// The parts of a section on downloads.
    pub(super) fn downloads(&self, section: &Section<'a>) -> Vec<Part> {
        let mut tables = vec![
            Captioned {
                caption: "Each connection, and the whole run".to_owned(),
                table: self.list_of_downloads(section, times_heads(), |cell, client| {
                    self.times(cell, client)
                }),
            },
            Captioned {
                caption: "What it cost".to_owned(),
                table: self.list_of_downloads(section, costs_heads(), |cell, client| {
                    self.costs_of_downloads(cell, client)
                }),
            },
        ];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let word = ratios_word(section.cells.iter().filter_map(|c| c.ratio.as_ref()));
            let heads = vec![
                column("MiB/s, all connections", "", true),
                column("ratio", word, true),
                column("who was the limit", "busy: client, peer", false),
            ];
            tables.insert(
                1,
                Captioned {
                    caption: words::ratio_caption(self.run),
                    table: self.list_of_downloads(section, heads, |cell, client| {
                        vec![
                            self.overall(cell, client),
                            self.ratio(cell),
                            self.limit(cell),
                        ]
                    }),
                },
            );
        }
        let mut part = Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            pictures: self
                .pictures_of_downloads(section, &section.by_row())
                .into(),
            tables,
            after: words::marks(section),
            ..Part::default()
        };
        part.after.extend(self.absent(section));
        vec![part, self.counts(section)]
    }

    fn list_of_downloads(
        &self,
        section: &Section<'a>,
        heads: Vec<Column>,
        entries: impl Fn(&'a CellFigures, &'a ClientFigures) -> Vec<Entry>,
    ) -> crate::table::Table {
        let mut table = self.list(section, heads, |cell| {
            cell.client
                .as_ref()
                .map_or_else(Vec::new, |client| entries(cell, client))
        });
        for (row, cell) in table.rows.iter_mut().zip(section.by_row()) {
            if cell.client.as_ref().is_some_and(|client| client.discards)
                && let Some(name) = row.entries.first_mut()
            {
                name.text.push_str(words::DISCARDS);
            }
        }
        table
    }

    fn times(&self, cell: &'a CellFigures, client: &'a ClientFigures) -> Vec<Entry> {
        let time = |name: &str| self.mean_time(cell, client, name);
        let mut entries = vec![
            time("socket_ns"),
            time("setup_ns"),
            time("connect_ns"),
            time("first_byte_ns"),
        ];
        entries.extend(self.each_download(cell, client));
        let run = match client.figures.contains_key("run_ns") {
            true => time("run_ns"),
            false => {
                let path = self.places.path(cell, "client.elapsed_ns.median");
                let entry = Entry::figure(path, median(client.elapsed_ns), numbers::time);
                with_ends(entry, client.elapsed_ns, numbers::times)
            }
        };
        let memory = client.figures.get("pss_bytes").map(|spread| spread.mean);
        let path = self
            .places
            .path(cell, "client.figures.pss_bytes.mean.median");
        let memory_entry = Entry::figure(path, median(memory), numbers::bytes);
        entries.extend([run, with_ends(memory_entry, memory, numbers::sizes)]);
        entries
    }

    /// A mean over the connections, with its spread over the blocks.
    fn mean_time(&self, cell: &CellFigures, client: &ClientFigures, name: &str) -> Entry {
        let mean = client.figures.get(name).map(|spread| spread.mean);
        let path = self
            .places
            .path(cell, &format!("client.figures.{name}.mean.median"));
        with_ends(
            Entry::figure(path, median(mean), numbers::time),
            mean,
            numbers::times,
        )
    }

    /// Time and rate of one download, then how far those of the connections lie apart.
    fn each_download(&self, cell: &CellFigures, client: &ClientFigures) -> [Entry; 2] {
        let download = client.figures.get("download_ns");
        let rate = client.download_bytes_per_s;
        let path = self
            .places
            .path(cell, "client.figures.download_ns.mean.median");
        let mut mean = Entry::figure(path, download.map(|s| s.mean.median), numbers::time);
        if let Some(rate) = rate {
            mean.text
                .push_str(&format!(" @ {} MiB/s", mib(rate.median)));
        }
        mean = with_ends(mean, download.map(|s| s.mean), numbers::times);
        mean.marks = self.notes.marks(&cell.cell, ON_DOWNLOAD);
        let spread = download.map_or_else(|| NOTHING.to_owned(), over_connections);
        [mean, Entry::text(spread)]
    }

    fn overall(&self, cell: &CellFigures, client: &ClientFigures) -> Entry {
        let path = self.places.path(cell, "client.bytes_per_s.median");
        let entry = Entry::figure(path, median(client.bytes_per_s), mib);
        with_ends(entry, client.bytes_per_s, |low, high| {
            format!("{}–{}", mib(low), mib(high))
        })
    }

    fn costs_of_downloads(&self, cell: &'a CellFigures, client: &'a ClientFigures) -> Vec<Entry> {
        let cpu = |name: &str, figure: Option<Figure>| {
            let path = self.places.path(cell, &format!("client.{name}.median"));
            let entry = Entry::figure(path, median(figure), seconds);
            with_ends(entry, figure, |low, high| {
                format!("{}–{}", seconds(low), seconds(high))
            })
        };
        let calls = tally(client, receives);
        let answered = client.counts.bytes as f64 / cell.trials.measured.len().max(1) as f64;
        let each = calls
            .filter(|calls| calls.median > 0.0)
            .map(|calls| answered / calls.median);
        let waits = tally(client, |name| name.ends_with("_calls") && !receives(name));
        let switches = tally(client, |name| name.ends_with("_switches"));
        let stall = client.figures.get("stall_ns");
        vec![
            cpu("cpu_user_ns_per_gib", client.cpu_user_ns_per_gib),
            cpu("cpu_system_ns_per_gib", client.cpu_system_ns_per_gib),
            cpu("ksoftirqd_ns_per_gib", client.ksoftirqd_ns_per_gib),
            cpu("busy_ns_per_gib", client.busy_ns_per_gib),
            counted(calls),
            Entry::text(each.map_or_else(|| NOTHING.to_owned(), numbers::bytes)),
            counted(waits),
            counted(switches),
            Entry::figure(
                self.places.path(cell, "client.figures.stall_ns.max"),
                stall.map(|stall| stall.max),
                numbers::time,
            ),
            Entry::figure(
                self.places.path(cell, "memory_peak_bytes.median"),
                median(cell.memory_peak_bytes()),
                numbers::bytes,
            ),
        ]
    }
}

fn times_heads() -> Vec<Column> {
    vec![
        detail(column("socket creation", "each", true)),
        detail(column("job set-up", "each", true)),
        column("connect", "each", true),
        column("first byte", "each", true),
        column("download @ rate", "each", true),
        column("over connections", "min–max, standard deviation", true),
        column("run time", "", true),
        column("average memory", "Pss", true),
    ]
}

fn costs_heads() -> Vec<Column> {
    vec![
        column("CPU user", "s/GiB", true),
        column("CPU system", "s/GiB", true),
        detail(column("ksoftirqd", "s/GiB", true)),
        column("its cores busy", "s/GiB", true),
        column("receives", "calls, or completions", true),
        detail(column("bytes", "a receive", true)),
        detail(column("waits", "", true)),
        detail(column("context switches", "", true)),
        column("longest stall", "of all", true),
        column("peak memory", "resident", true),
    ]
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

/// Whether a tally is of receives: calls, or what a ring completed, which has no call of its own.
fn receives(name: &str) -> bool {
    name.starts_with("recv") || name.starts_with("read") || name == "completions"
}

fn counted(figure: Option<Figure>) -> Entry {
    let text = median(figure).map_or_else(|| NOTHING.to_owned(), numbers::rate);
    with_ends(Entry::text(text), figure, numbers::rates)
}

fn over_connections(spread: &SpreadFigure) -> String {
    format!(
        "{}, {}",
        numbers::times(spread.min, spread.max),
        numbers::time(spread.stdev.median)
    )
}

/// Bytes a second in MiB a second.
pub fn mib(bytes_per_s: f64) -> String {
    numbers::three(bytes_per_s / 1_048_576.0)
}

/// Nanoseconds in seconds.
pub fn seconds(ns: f64) -> String {
    numbers::three(ns / 1e9)
}
