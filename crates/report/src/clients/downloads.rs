//! Tables of clients that ask once on each connection and read to the end: the times of each connection,
//! then what it cost.
//!
//! The figures and counts are those that the client prints by name (`socket_ns`, `recv_calls` …); one that
//! it does not print is left empty.

use prony_findings::Code;

use super::Context;
use super::figures::{ClientFigures, SpreadFigure};
use super::sections::Section;
use super::words;
use crate::figures::{CellFigures, Figure};
use crate::metrics::Metric;
use crate::numbers::{self, NOTHING};
use crate::part::{Part, captioned, column, detail, median, ratio_word, with_ends};
use crate::plots::cells::cpu;
use crate::table::{Column, Entry, Table};

/// Codes of the findings that are footnotes on the time of a download.
const ON_DOWNLOAD: &[Code] = &[
    Code::P006,
    Code::P008,
    Code::P012,
    Code::P018,
    Code::P019,
    Code::P020,
];

/// What a column has of a client.
type Of<'a> = &'a dyn Fn(&CellFigures, &ClientFigures) -> Entry;

impl<'a> Context<'a> {
    /// The parts of a section on downloads.
    pub(super) fn downloads(&self, section: &Section<'a>) -> Vec<Part> {
        let mut tables = vec![captioned(
            "Each connection, and the whole run",
            self.times(section),
        )];
        if section.cells.iter().any(|c| c.ratio.is_some()) {
            let caption = words::ratio_caption(self.run);
            tables.push(captioned(caption, self.together(section)));
        }
        tables.push(captioned("What it cost", self.costs_of_downloads(section)));
        let mut part = Part {
            title: section.title.clone(),
            before: words::before(self.run, section),
            pictures: vec![cpu(&section.named(self.run, section.by_row()))],
            tables,
            after: words::marks(section),
            ..Part::default()
        };
        part.after.extend(self.absent(section));
        vec![part, self.counts(section)]
    }

    fn list_of_downloads<const N: usize>(
        &self,
        section: &Section<'a>,
        columns: [(Column, Of<'_>); N],
    ) -> Table {
        let mut grid = self.list(section, true);
        for (head, of) in columns {
            grid = grid.figure(head, move |cell| match &cell.client {
                Some(client) => of(cell, client),
                None => Entry::text(NOTHING),
            });
        }
        self.listed(section, grid)
    }

    /// All connections together.
    fn together(&self, section: &Section<'a>) -> Table {
        let rate: Of<'_> = &|cell, client| {
            self.figure(
                cell,
                "client.bytes_per_s",
                client.bytes_per_s,
                mib,
                |l, h| format!("{}–{}", mib(l), mib(h)),
            )
        };
        let word = ratio_word(&section.cells);
        let limit = column("who was the limit", "busy: client, peer", false);
        self.list_of_downloads(
            section,
            [
                (column("MiB/s, all connections", "", true), rate),
                (column("ratio", word, true), &|cell, _| self.ratio(cell)),
                (limit, &|cell, _| self.limit(cell)),
            ],
        )
    }

    fn times(&self, section: &Section<'a>) -> Table {
        let each = |title: &str| column(title, "each", true);
        let run: Of<'_> = &|cell, client| match client.figures.contains_key("run_ns") {
            true => self.mean(cell, client, "run_ns"),
            false => {
                let (path, of) = ("client.elapsed_ns", client.elapsed_ns);
                self.figure(cell, path, of, numbers::time, numbers::times)
            }
        };
        let memory: Of<'_> = &|cell, client| {
            let of = client.figures.get("pss_bytes").map(|spread| spread.mean);
            let path = "client.figures.pss_bytes.mean";
            self.figure(cell, path, of, numbers::bytes, numbers::sizes)
        };
        let over = column("over connections", "min–max, standard deviation", true);
        self.list_of_downloads(
            section,
            [
                (detail(each("socket creation")), &|cell, client| {
                    self.mean(cell, client, "socket_ns")
                }),
                (detail(each("job set-up")), &|cell, client| {
                    self.mean(cell, client, "setup_ns")
                }),
                (each("connect"), &|cell, client| {
                    self.mean(cell, client, "connect_ns")
                }),
                (each("first byte"), &|cell, client| {
                    self.mean(cell, client, "first_byte_ns")
                }),
                (each("download @ rate"), &|cell, client| {
                    self.download(cell, client)
                }),
                (over, &|_, client| {
                    let spread = client.figures.get("download_ns");
                    Entry::text(spread.map_or_else(|| NOTHING.to_owned(), over_connections))
                }),
                (column("run time", "", true), run),
                (column("average memory", "Pss", true), memory),
            ],
        )
    }

    /// A figure with its spread over the blocks; `path` is that of the whole of it.
    fn figure(
        &self,
        cell: &CellFigures,
        path: &str,
        figure: Option<Figure>,
        show: fn(f64) -> String,
        ends: fn(f64, f64) -> String,
    ) -> Entry {
        let path = self.places.path(cell, &format!("{path}.median"));
        with_ends(Entry::figure(path, median(figure), show), figure, ends)
    }

    /// The mean of a time over the connections.
    fn mean(&self, cell: &CellFigures, client: &ClientFigures, name: &str) -> Entry {
        let mean = client.figures.get(name).map(|spread| spread.mean);
        let path = format!("client.figures.{name}.mean");
        self.figure(cell, &path, mean, numbers::time, numbers::times)
    }

    /// Time and rate of one download.
    fn download(&self, cell: &CellFigures, client: &ClientFigures) -> Entry {
        let mut mean = self.mean(cell, client, "download_ns");
        if let Some(rate) = client.download_bytes_per_s {
            let rate = format!(" @ {} MiB/s", mib(rate.median));
            mean.text.push_str(&rate);
        }
        self.notes.on(cell, ON_DOWNLOAD, mean)
    }

    fn costs_of_downloads(&self, section: &Section<'a>) -> Table {
        let cpu = |cell: &CellFigures, name: &str, figure: Option<Figure>| {
            self.figure(cell, &format!("client.{name}"), figure, seconds, |l, h| {
                format!("{}–{}", seconds(l), seconds(h))
            })
        };
        let bytes: Of<'_> = &|cell, client| {
            let all = client.counts.bytes as f64 / cell.trials.measured.len().max(1) as f64;
            let calls = tally(client, receives).filter(|calls| calls.median > 0.0);
            let each = calls.map(|calls| numbers::bytes(all / calls.median));
            Entry::text(each.unwrap_or_else(|| NOTHING.to_owned()))
        };
        let waits = |name: &str| name.ends_with("_calls") && !receives(name);
        let stall: Of<'_> = &|cell, client| {
            let path = self.places.path(cell, "client.figures.stall_ns.max");
            let stall = client.figures.get("stall_ns").map(|stall| stall.max);
            Entry::figure(path, stall, numbers::time)
        };
        let per_gib = |title: &str| column(title, "s/GiB", true);
        self.list_of_downloads(
            section,
            [
                (per_gib("CPU user"), &|cell, of| {
                    cpu(cell, "cpu_user_ns_per_gib", of.cpu_user_ns_per_gib)
                }),
                (per_gib("CPU system"), &|cell, of| {
                    cpu(cell, "cpu_system_ns_per_gib", of.cpu_system_ns_per_gib)
                }),
                (detail(per_gib("ksoftirqd")), &|cell, of| {
                    cpu(cell, "ksoftirqd_ns_per_gib", of.ksoftirqd_ns_per_gib)
                }),
                (per_gib("its cores busy"), &|cell, of| {
                    cpu(cell, "busy_ns_per_gib", of.busy_ns_per_gib)
                }),
                (
                    column("receives", "calls, or completions", true),
                    &|_, client| counted(tally(client, receives)),
                ),
                (detail(column("bytes", "a receive", true)), bytes),
                (detail(column("waits", "", true)), &|_, client| {
                    counted(tally(client, waits))
                }),
                (
                    detail(column("context switches", "", true)),
                    &|_, client| counted(tally(client, |name| name.ends_with("_switches"))),
                ),
                (column("longest stall", "of all", true), stall),
                (column("peak memory", "resident", true), &|cell, _| {
                    self.places.entry(cell, Metric::MEMORY)
                }),
            ],
        )
    }
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
