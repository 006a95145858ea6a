//! CPU time by named thread, as `top -H` shows it: of each cell its busiest threads, those of one name together.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_findings::{Records, measure};
use prony_record::{ProfiledThread, Role, Trial};

use crate::figure::Figure;
use crate::figures::CellFigures;
use crate::numbers::{self, NOTHING};
use crate::part::{Captioned, captioned, column, detail};
use crate::table::{Column, Entry, Row, Table};
use crate::words::paragraph;

/// Rows of one cell at the most: the threads with the most CPU time.
const ROWS_MAX: usize = 6;

/// Part of a core under which threads are left out.
pub const SHARE_MIN: f64 = 0.005;

/// The table of these cells, for the appendix; `None` where no thread is known.
pub fn table(records: &Records<'_>, cells: &[&CellFigures]) -> Option<Captioned> {
    let rows = |cell: &&CellFigures| {
        let trials = cell.case(records).measured().map(of_trial).collect();
        rows(&cell.cell, &cell.label, trials, |_| Vec::new())
    };
    let rows: Vec<Row> = cells.iter().flat_map(rows).collect();
    let columns = columns().map(detail).into();
    let table = Table { columns, rows };
    (!table.rows.is_empty()).then(|| captioned(paragraph("threads"), table))
}

/// The columns that each table of threads has.
pub fn columns() -> [Column; 5] {
    [
        column("subject", "", false),
        column("thread", "", false),
        column("busy", "of a core", true),
        detail(column("the busiest of them", "of a core", true)),
        column("waited for a core", "of the time", true),
    ]
}

/// Threads of one name and side in a trial, as shares of the time.
#[derive(Default)]
pub struct SameName {
    /// How many.
    pub count: usize,
    /// All that they did.
    pub sum: ProfiledThread,
    busy: f64,
    busiest: f64,
    waited: f64,
}

/// By whose they are, and their name.
pub type ByName<'a> = BTreeMap<(&'static str, &'a str), SameName>;

/// Threads of a trial, of each whose it is, by name; `share` is what part of the time so long is. What slept all the time is no thread of
/// `top`'s first screen.
pub fn by_name<'a>(
    threads: impl Iterator<Item = (&'static str, &'a str, ProfiledThread)>,
    share: impl Fn(u64) -> f64,
) -> ByName<'a> {
    let mut by_name = ByName::new();
    for (whose, name, one) in threads.filter(|(.., one)| share(one.cpu_ns) > 0.0) {
        let of = by_name.entry((whose, name)).or_default();
        of.count += 1;
        of.busy += share(one.cpu_ns);
        of.busiest = of.busiest.max(share(one.cpu_ns));
        of.waited += share(one.delay_ns);
        let sum = &mut of.sum;
        // Saturates: a file may say anything.
        let sums = [
            (&mut sum.cpu_ns, one.cpu_ns),
            (&mut sum.samples, one.samples),
            (&mut sum.switches_voluntary, one.switches_voluntary),
            (&mut sum.switches_involuntary, one.switches_involuntary),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        let calls = [sum.syscalls, one.syscalls].into_iter().flatten();
        sum.syscalls = calls.reduce(u64::saturating_add);
    }
    by_name
}

/// The rows of a cell's busiest threads, at the median over its trials; `more` is what stands in further columns.
pub fn rows(
    cell: &str,
    label: &str,
    trials: Vec<ByName<'_>>,
    more: impl Fn(&SameName) -> Vec<String>,
) -> Vec<Row> {
    let mut all: BTreeMap<(&str, &str), Vec<SameName>> = BTreeMap::new();
    for (key, of) in trials.into_iter().flatten() {
        all.entry(key).or_default().push(of);
    }
    let over = |of: &[SameName], get: fn(&SameName) -> f64| {
        Figure::range(of.iter().map(get)).map_or(0.0, |figure| figure.median)
    };
    let busy = all
        .iter()
        .map(|(key, of)| (over(of, |of| of.busy), key, of));
    let mut busy: Vec<_> = busy.filter(|(busy, ..)| *busy >= SHARE_MIN).collect();
    busy.sort_by(|a, b| b.0.total_cmp(&a.0));
    let row = |(busy, (whose, name), of): (f64, &(&str, &str), &Vec<SameName>)| {
        let count = of.iter().map(|of| of.count).max().unwrap_or(1);
        let (name, busiest) = match count {
            0 | 1 => ((*name).to_owned(), NOTHING.to_owned()),
            many => (
                format!("{name} ×{many}"),
                numbers::percent(over(of, |of| of.busiest)),
            ),
        };
        let waited = numbers::percent(over(of, |of| of.waited));
        let texts = [
            label.to_owned(),
            name,
            numbers::percent(busy),
            busiest,
            waited,
        ];
        let more = of.first().map(&more).unwrap_or_default();
        let mut entries: Vec<Entry> = texts.into_iter().chain(more).map(Entry::text).collect();
        (*whose).clone_into(&mut entries[1].below);
        Row {
            cell: cell.to_owned(),
            entries,
            ..Row::default()
        }
    };
    busy.into_iter().take(ROWS_MAX).map(row).collect()
}

fn of_trial(trial: &Trial) -> ByName<'_> {
    let share = |ns: u64| measure::share_of_window(trial, Nanos(ns)).map_or(0.0, |share| share.0);
    let threads = trial.processes.iter().flat_map(|process| {
        let own = process.threads.iter();
        own.map(|thread| {
            let looked = looked_ns(trial, process.role, &thread.name);
            let one = ProfiledThread {
                cpu_ns: thread.cpu_ns.saturating_sub(looked),
                delay_ns: thread.delay_ns,
                ..ProfiledThread::default()
            };
            (whose(process.role), &*thread.name, one)
        })
    });
    by_name(threads, share)
}

/// The time in which a thread of the generator looked for answers instead of sleeping, which is no work.
fn looked_ns(trial: &Trial, role: Role, name: &str) -> u64 {
    let load = trial.load.as_ref().filter(|_| role == Role::Generator);
    let mut threads = load.iter().flat_map(|load| &load.threads_cpu);
    threads
        .find(|thread| thread.name == name)
        .map_or(0, |thread| thread.spun_ns)
}

fn whose(role: Role) -> &'static str {
    match role {
        Role::Subject => "the subject's",
        Role::Generator => "the generator's",
        Role::Peer => "the peer's",
        Role::Backing => "of a service behind it",
        Role::Front => "the proxy's",
    }
}
