//! The table of the section: what each thread did, by name.

use super::shares::Seen;
use super::words::{Work, per_request};
use crate::numbers::{self, MICROS, NOTHING};
use crate::part::{Captioned, captioned, column, detail};
use crate::table::{Row, Table};
use crate::threads::{self, SameName, by_name};
use crate::words::paragraph;

/// The table; `None` where no thread was seen.
pub(super) fn table(all: &[Seen<'_>]) -> Option<Captioned> {
    let rows: Vec<Row> = all.iter().flat_map(rows).collect();
    let more = [
        column("off CPU, µs each", "waiting and asleep", true),
        column("system calls", "each", true),
        column("switches", "each", true),
        detail(column("of them involuntary", "", true)),
        detail(column("samples", "", true)),
    ];
    let columns = threads::columns().into_iter().chain(more).collect();
    let table = Table { columns, rows };
    (!table.rows.is_empty()).then(|| captioned(paragraph("threads of profiles"), table))
}

fn rows(seen: &Seen<'_>) -> Vec<Row> {
    // By strace everything waits for strace.
    let Some((trial, profile)) = seen.main.filter(|(_, profile)| profile.length_ns > 0) else {
        return Vec::new();
    };
    let length = profile.length_ns as f64;
    let threads = profile
        .threads
        .iter()
        .map(|one| ("", &*one.name, one.clone()));
    let by_name = by_name(threads, |ns| ns as f64 / length);
    let requests = Work::of(trial, profile).map(|work| work.count);
    let each = |number: f64, show: fn(f64) -> String| {
        requests.map_or(NOTHING.to_owned(), |requests| show(number / requests))
    };
    let more = |of: &SameName| {
        let sum = &of.sum;
        let off_ns = length * of.count as f64 - sum.cpu_ns as f64;
        let calls = sum.syscalls.map(|calls| each(calls as f64, per_request));
        let switches = sum.switches_voluntary + sum.switches_involuntary;
        vec![
            each(off_ns.max(0.0), |ns| MICROS.text(ns)),
            calls.unwrap_or_else(|| NOTHING.to_owned()),
            each(switches as f64, per_request),
            each(sum.switches_involuntary as f64, per_request),
            numbers::count(sum.samples),
        ]
    };
    threads::rows(seen.cell, seen.cell, vec![by_name], more)
}
