//! The section of servers on each workload and size: pictures, and a table with a row for each cell.

use prony_findings::{Code, Records, Verdict};

use crate::answer::ranking::{BY_RATE, By, FOREMOST, RankedQuestion};
use crate::figure::spread_word;
use crate::figures::{CellFigures, labelled};
use crate::grid::{Grid, verdict};
use crate::groups::{Group, groups};
use crate::metrics::Metric;
use crate::notes::Notes;
use crate::numbers::{RATE, TIME};
use crate::part::{Part, column, detail, named, plain, ratio_word, verdict_column};
use crate::plots::Picture;
use crate::plots::cells::{cpu, latency};
use crate::sent::sent;
use crate::table::{self, ERRORS, Entry, ON_TITLE, Shown, Table};
use crate::{Run, programs, rest, rows, threads, users};

/// The parts of the document: one for each group, the leader of its cells first.
pub fn parts(run: &Run, cells: &[CellFigures], notes: &Notes) -> Vec<Part> {
    let records = Records::new(&run.plan, &run.trials);
    let part = |group: Group| {
        let mut own = group.cells(cells);
        own.sort_by(|a, b| b.standing().total_cmp(&a.standing()));
        let labelled = labelled(&own);
        let pictures = [latency(&labelled), cpu(&labelled)];
        let title = programs::title(&run.plan, &group.workload);
        Part {
            title: format!("{title}, {}", group.size()),
            is_group: true,
            request: request(run, &group.workload),
            pictures: pictures.into_iter().filter(Picture::has_marks).collect(),
            tables: [plain(of_cells(run, notes, &own))]
                .into_iter()
                .chain(rest::table(run, notes, &own))
                .chain(users::tables(notes, &own))
                .chain(threads::table(&records, &own))
                .collect(),
            ..Part::default()
        }
    };
    named(groups(cells).into_iter().map(part).collect(), 'g')
}

/// Who answers the most requests of each workload and size; where a schedule says how many there are, who answers the soonest.
pub fn questions(cells: &[CellFigures]) -> Vec<RankedQuestion<'_>> {
    let groups = groups(cells);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| rank(&groups, *at));
    // Those that stand at the top are in the plan's order there.
    let top = order.len().min(FOREMOST);
    order[..top].sort_unstable();
    let question = |at: usize| question(&groups[at], groups[at].cells(cells));
    order.into_iter().map(question).collect()
}

fn question<'a>(group: &Group, cells: Vec<&'a CellFigures>) -> RankedQuestion<'a> {
    let by = match cells.iter().any(|cell| cell.open.is_some()) {
        true => By {
            heading: "p99",
            path: Metric::P99.shown.path,
            unit: TIME,
            falls: true,
            ratio: Some(Metric::P99),
            bound: Code::P001,
        },
        false => BY_RATE,
    };
    let title = format!("{}, {}", group.workload, group.size());
    RankedQuestion::new(title, by, labelled(&cells))
}

/// Of too many groups those of each workload with its most connections come first, then those with its fewest.
fn rank(groups: &[Group], at: usize) -> usize {
    let own = |group: &&Group| group.workload == groups[at].workload;
    let is = |of: Option<&Group>| of.is_some_and(|of| *of == groups[at]);
    match (is(groups.iter().rfind(own)), is(groups.iter().find(own))) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    }
}

/// `POST /ping` with its body.
fn request(run: &Run, workload: &str) -> String {
    let planned = run.plan.workloads.iter().find(|w| w.name == workload);
    planned.map_or_else(String::new, |workload| sent(workload, true))
}

/// The table of the cells of one workload and number of connections, and of one rate where one is said. In an open loop what
/// was drawn (requests, or users) stands beside what was completed, and there is no ratio of rates that the schedule gives.
fn of_cells(run: &Run, notes: &Notes, cells: &[&CellFigures]) -> Table {
    let reference = run.plan.reference.as_deref();
    let is_open = cells.iter().any(|cell| cell.open.is_some());
    let [rate, others @ .., _, _, _] = Metric::ALL;
    let rate = rate
        .shown
        .below(spread_word(cells.iter().filter_map(|c| c.rate_per_s)));
    let mut rate_head = rate.head();
    let mut grid = Grid::new().head(column("subject", "", false), |cell| {
        notes.on(cell, ON_TITLE, name(cell))
    });
    if is_open {
        let of_users = cells.iter().any(|cell| cell.users.is_some());
        let (completed, drawn) = match of_users {
            true => ("requests/s", "users drawn/s"),
            false => ("completed/s", "drawn/s"),
        };
        completed.clone_into(&mut rate_head.title);
        let drawn = Shown::new(drawn, "open.drawn_per_s", RATE);
        grid = grid.head(drawn.head(), move |cell| notes.entry(cell, &drawn));
    }
    grid = grid.figure(rate_head, move |cell| Entry {
        remark: remark(cell),
        ..notes.entry(cell, &rate)
    });
    if !is_open {
        let title = reference.map_or_else(|| "ratio".to_owned(), |id| format!("ratio to {id}"));
        let head = column(title, ratio_word(cells), true);
        grid = grid.figure(head, table::ratio);
    }
    // What older runs did not record is no column of dashes.
    let others = others.into_iter();
    let others = others.filter(|of| of.is_in(cells.iter().copied()));
    let start = Metric::OF_START.map(|metric| metric.shown.detail());
    grid = grid
        .shown(notes, others.map(|metric| metric.shown))
        .shown(notes, notes.present(cells, start))
        .shown(notes, [ERRORS]);
    grid = rows::more_columns(grid, cells, notes);
    grid.head(detail(verdict_column()), verdict).cells(cells)
}

/// What a rate must be read with.
pub fn remark(cell: &CellFigures) -> &'static str {
    match cell.verdict {
        Some(Verdict::Bound) => "at least",
        Some(Verdict::Invalid) => "invalid",
        _ => "",
    }
}

/// The label, and what the reader must know of the subject to read the row.
pub fn name(cell: &CellFigures) -> Entry {
    Entry {
        text: cell.label.clone(),
        below: table::standing(cell),
        ..Entry::default()
    }
}
