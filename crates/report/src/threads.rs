//! CPU time by named thread, as `top -H` shows it: of each cell its busiest threads, those of one name together.
//!
//! Not for: what a profile saw of threads (`why`).

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_findings::{Records, measure};
use prony_record::{Role, Trial};

use crate::figure::Figure;
use crate::figures::CellFigures;
use crate::numbers::{self, NOTHING};
use crate::part::{Captioned, captioned, column, detail};
use crate::table::{Entry, Row, Table};

/// Rows of one cell at the most: the threads with the most CPU time.
const ROWS_MAX: usize = 6;

/// Part of a core under which threads are left out.
const SHARE_MIN: f64 = 0.005;

const CAPTION: &str = "Threads by name, as top -H shows them: shares of a core, the median over the blocks. Several of one \
     name are added, and those under 0.5 % of a core left out";

/// The table of these cells, for the appendix; `None` where no thread is known.
pub fn table(records: &Records<'_>, cells: &[&CellFigures]) -> Option<Captioned> {
    let columns = [
        column("subject", "", false),
        column("whose", "", false),
        column("thread", "", false),
        column("busy", "of a core", true),
        column("the busiest of them", "of a core", true),
        column("waited for a core", "of the time", true),
    ];
    let columns = columns.into_iter().map(detail).collect();
    let rows: Vec<Row> = cells.iter().flat_map(|cell| rows(records, cell)).collect();
    (!rows.is_empty()).then(|| captioned(CAPTION, Table { columns, rows }))
}

/// Threads of one role and name in a trial, as shares of the time.
#[derive(Default)]
struct SameName {
    count: usize,
    busy: f64,
    busiest: f64,
    waited: f64,
}

/// A role and a name, and what each block that has them says.
type ByName<'a> = BTreeMap<(&'static str, &'a str), Vec<SameName>>;

fn rows(records: &Records<'_>, cell: &CellFigures) -> Vec<Row> {
    let Some(planned) = records.plan.cells.iter().find(|of| of.id == cell.cell) else {
        return Vec::new();
    };
    let trials: Vec<&Trial> = records.case(planned).measured().collect();
    let mut by_name: ByName<'_> = BTreeMap::new();
    for trial in &trials {
        for (key, of) in of_trial(trial) {
            by_name.entry(key).or_default().push(of);
        }
    }
    let over = |of: &[SameName], get: fn(&SameName) -> f64| {
        let values: Vec<f64> = of.iter().map(get).collect();
        Figure::range(&values).map_or(0.0, |figure| figure.median)
    };
    let mut all: Vec<(&(&str, &str), &Vec<SameName>, f64)> = by_name
        .iter()
        .map(|(key, of)| (key, of, over(of, |of| of.busy)))
        .filter(|(_, _, busy)| *busy >= SHARE_MIN)
        .collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all.truncate(ROWS_MAX);
    let row = |((whose, name), of, busy): (&(&str, &str), &Vec<SameName>, f64)| {
        let several = of.iter().map(|of| of.count).max().unwrap_or(1);
        let (thread, busiest) = match several {
            0 | 1 => ((*name).to_owned(), NOTHING.to_owned()),
            many => (
                format!("{name} ×{many}"),
                numbers::percent(over(of, |of| of.busiest)),
            ),
        };
        let texts = [
            cell.label.clone(),
            (*whose).to_owned(),
            thread,
            numbers::percent(busy),
            busiest,
            numbers::percent(over(of, |of| of.waited)),
        ];
        Row {
            cell: cell.cell.clone(),
            entries: texts.map(Entry::text).into(),
            ..Row::default()
        }
    };
    all.into_iter().map(row).collect()
}

fn of_trial(trial: &Trial) -> BTreeMap<(&'static str, &str), SameName> {
    let mut by_name: BTreeMap<(&'static str, &str), SameName> = BTreeMap::new();
    let share = |ns: u64| measure::share_of_window(trial, Nanos(ns)).map_or(0.0, |share| share.0);
    for process in &trial.processes {
        for thread in &process.threads {
            let busy = share(thread.cpu_ns);
            // What slept all the time is no thread of `top`'s first screen.
            if busy <= 0.0 {
                continue;
            }
            let key = (whose(process.role), thread.name.as_str());
            let of = by_name.entry(key).or_default();
            of.count += 1;
            of.busy += busy;
            of.busiest = of.busiest.max(busy);
            of.waited += share(thread.delay_ns);
        }
    }
    by_name
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
