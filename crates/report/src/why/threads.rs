//! The table of the section: what each thread did, by name, as `top -H` shows them.

use std::collections::BTreeMap;

use prony_record::ProfiledThread;

use super::seen::Seen;
use super::words::{Work, is_busy, per_request};
use crate::numbers::{self, NOTHING};
use crate::part::{Captioned, column, detail};
use crate::table::{Entry, Row, Table};

/// Rows of one cell at the most: the threads with the most CPU time.
const ROWS_MAX: usize = 6;

/// The table; `None` where no thread was seen.
pub(super) fn table(all: &[Seen<'_>]) -> Option<Captioned> {
    let rows: Vec<Row> = all.iter().flat_map(rows).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = vec![
        column("subject", "", false),
        column("thread", "as top -H names it", false),
        column("busy", "of a core", true),
        column("waited for a core", "of the time", true),
        column("off CPU, µs each", "waiting and asleep", true),
        column("system calls", "each", true),
        column("switches", "each", true),
        detail(column("of them involuntary", "", true)),
        detail(column("samples", "", true)),
    ];
    Some(Captioned {
        caption: "Threads, by name: several of one name are added, and those that had less than 0.5 % of a core left out; each: for a request, or for what a program counts"
            .to_owned(),
        table: Table { columns, rows },
    })
}

/// Threads of one name together.
#[derive(Default)]
struct Together {
    count: u64,
    sum: ProfiledThread,
}

impl Together {
    fn add(&mut self, one: &ProfiledThread) {
        let sum = &mut self.sum;
        self.count += 1;
        sum.cpu_ns += one.cpu_ns;
        sum.delay_ns += one.delay_ns;
        sum.samples += one.samples;
        sum.switches_voluntary += one.switches_voluntary;
        sum.switches_involuntary += one.switches_involuntary;
        sum.syscalls = match (sum.syscalls, one.syscalls) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0) + b.unwrap_or(0)),
        };
    }
}

fn rows(seen: &Seen<'_>) -> Vec<Row> {
    // By strace everything waits for strace.
    let Some((trial, profile)) = seen.main else {
        return Vec::new();
    };
    let length = profile.length_ns as f64;
    if length == 0.0 {
        return Vec::new();
    }
    let mut by_name: BTreeMap<&str, Together> = BTreeMap::new();
    for thread in profile.threads.iter().filter(|one| is_busy(one, profile)) {
        by_name.entry(&thread.name).or_default().add(thread);
    }
    let mut all: Vec<(&str, Together)> = by_name.into_iter().collect();
    all.sort_by(|a, b| b.1.sum.cpu_ns.cmp(&a.1.sum.cpu_ns).then(a.0.cmp(b.0)));
    let requests = Work::of(trial, profile).map(|work| work.count);
    let each = |number: f64| requests.map_or(NOTHING.to_owned(), |r| per_request(number / r));
    let row = |(name, of): &(&str, Together)| {
        let sum = &of.sum;
        let shown = match of.count {
            1 => (*name).to_owned(),
            count => format!("{name} ×{count}"),
        };
        let off_ns = length * of.count as f64 - sum.cpu_ns as f64;
        let off = requests.map_or(NOTHING.to_owned(), |r| numbers::micros(off_ns.max(0.0) / r));
        let calls = sum
            .syscalls
            .map_or(NOTHING.to_owned(), |calls| each(calls as f64));
        let switches = sum.switches_voluntary + sum.switches_involuntary;
        let texts = [
            seen.cell.to_owned(),
            shown,
            numbers::percent(sum.cpu_ns as f64 / length),
            numbers::percent(sum.delay_ns as f64 / length),
            off,
            calls,
            each(switches as f64),
            each(sum.switches_involuntary as f64),
            numbers::count(sum.samples),
        ];
        Row {
            cell: seen.cell.to_owned(),
            entries: texts.map(Entry::text).into(),
            ..Row::default()
        }
    };
    all.iter().take(ROWS_MAX).map(row).collect()
}
