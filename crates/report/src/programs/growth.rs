//! How time grows with size: one section for all sweeps of the same work, whatever workloads they are
//! spread over, since programs differ by orders of magnitude and so do the sizes that suit them.

use super::across::{ScalingFigure, decimals};
use super::context::Context;
use super::tables::of_row;
use super::works::{Family, RowKey, Rows};
use super::{Part, captioned, pictures};
use crate::figures::CellFigures;
use crate::numbers::{self, NOTHING};
use crate::part::{column, detail, spread_word};
use crate::settings::THREADS;
use crate::table::{COLUMNS_MAX, Column, Entry, Table};

const SCALING: &str = "The exponent p of time = constant × N^p: in each block the slope of the logarithms over all sizes, and \
     the interval over the blocks' slopes. What follows is said of the sizes measured and of no others.";
const START_UP: &str = "‡ The smallest size takes less than 10 ms: what a process does once shows in it, so that growth may look \
     slower at that end than it is.";

impl<'a> Context<'a> {
    /// The section of a family of sweeps.
    pub(super) fn sweep(&self, family: &Family<'a>) -> Part {
        let workloads = family.workloads();
        let own = self.own.cells.iter().copied();
        let own = own.filter(|c| workloads.contains(&c.workload.as_str()));
        let cells: Vec<&'a CellFigures> = own.collect();
        let all = self.own.across.scaling.iter().enumerate();
        let figures: Vec<(usize, &'a ScalingFigure)> = all
            .filter(|(_, f)| workloads.contains(&f.workload.as_str()))
            .collect();
        let times = captioned("Times", self.times_table(&cells, true));
        let mut part = Part {
            title: format!(
                "How the time of {} grows with N",
                family.title(&self.run.plan)
            ),
            ..Part::default()
        };
        part.before = self.asked(family, &workloads);
        if !figures.is_empty() {
            part.before.push(SCALING.to_owned());
            part.pictures = vec![pictures::growth(self, &figures)];
            let table = self.scaling_table(&figures);
            part.tables.push(captioned("Exponents", table));
        }
        part.tables.push(times);
        if figures.iter().any(|(_, f)| f.start_up) {
            part.after.push(START_UP.to_owned());
        }
        part.after.extend(self.absent(&family.members));
        part
    }

    fn scaling_table(&self, figures: &[(usize, &'a ScalingFigure)]) -> Table {
        let of_rows = figures.iter().map(|(_, f)| ("", &*f.subject, &f.settings));
        let rows = Rows::new(&self.run.plan, &of_rows.collect::<Vec<_>>());
        let key = |f: &'a ScalingFigure| rows.key(&f.subject, &f.settings);
        let (keys, varying) = rows.arranged(figures.iter().map(|(_, f)| key(f)).collect());
        let threads = |f: &ScalingFigure| f.settings.get(THREADS).cloned();
        let by_threads = figures.iter().any(|(_, f)| threads(f).is_some());
        let interval = figures
            .iter()
            .map(|(_, f)| (f.spread == "interval", f.blocks));
        let mut lines: Vec<Line<'_>> = Vec::new();
        for wanted in &keys {
            let own = figures.iter().filter(|(_, f)| key(f) == *wanted);
            lines.extend(own.map(|(at, f)| (wanted, *at, *f)));
        }
        let mut heads = of_row(&varying, |line: &Line<'_>| line.0);
        if by_threads {
            heads = heads.head_at(1, column(THREADS, "", false), |(_, _, f)| {
                Entry::text(threads(f).unwrap_or_else(|| "1".to_owned()))
            });
        }
        // The picture has the times, too.
        let is_wide = heads.width() + 4 > COLUMNS_MAX;
        let times = |title: &str| Column {
            details: is_wide,
            ..column(title, "", true)
        };
        heads
            .head(detail(column("sizes", "", false)), |(_, _, f)| {
                Entry::text(sizes(f))
            })
            .head(times("time of the smallest"), |(_, at, f)| {
                time(*at, 0, f.points.first())
            })
            .head(times("of the largest"), |(_, at, f)| {
                time(*at, f.points.len().saturating_sub(1), f.points.last())
            })
            .head(
                column("exponent", spread_word(interval), true),
                |(_, at, f)| exponent(*at, f),
            )
            .head(detail(column("small end", "", true)), |(_, at, f)| {
                Entry::figure(path(*at, "small_end"), Some(f.small_end), decimals)
            })
            .head(detail(column("large end", "", true)), |(_, at, f)| {
                Entry::figure(path(*at, "large_end"), Some(f.large_end), decimals)
            })
            .head(column("what follows", "", false), |(_, _, f)| {
                let mark = if f.start_up { " ‡" } else { "" };
                Entry::text(format!("{}{mark}", f.says))
            })
            .rows(&lines)
    }
}

/// A line of the table: its row, and the figure with its place.
type Line<'a> = (&'a RowKey<'a>, usize, &'a ScalingFigure);

fn path(at: usize, figure: &str) -> String {
    format!("/programs/scaling/{at}/{figure}")
}

fn exponent(at: usize, f: &ScalingFigure) -> Entry {
    let mut exponent = Entry::figure(path(at, "exponent"), Some(f.exponent), decimals);
    if f.blocks > 1 {
        exponent.below = format!("{}–{}", decimals(f.low), decimals(f.high));
    }
    exponent
}

fn sizes(f: &ScalingFigure) -> String {
    match (f.points.first(), f.points.last()) {
        (Some(first), Some(last)) => format!(
            "{} from {} to {}",
            f.points.len(),
            numbers::count(first.0),
            numbers::count(last.0)
        ),
        _ => NOTHING.to_owned(),
    }
}

fn time(at: usize, place: usize, point: Option<&(u64, f64)>) -> Entry {
    let path = path(at, &format!("points/{place}/1"));
    Entry::figure(path, point.map(|point| point.1), numbers::time)
}
