//! How time grows with size: one section for all sweeps of the same work, whatever workloads they are
//! spread over, since programs differ by orders of magnitude and so do the sizes that suit them.

use super::across::{ScalingFigure, decimals};
use super::context::Context;
use super::works::Family;
use super::{Part, captioned, pictures};
use crate::figure::spread_word;
use crate::grid::Grid;
use crate::numbers::{self, NOTHING};
use crate::part::{column, detail};
use crate::table::{Entry, Table};
use crate::words::paragraph;

impl<'a> Context<'a> {
    /// The section of a family of sweeps.
    pub(super) fn sweep(&self, family: &Family<'a>) -> Part {
        let workloads = family.workloads();
        let own = self.cells.iter().copied();
        let own = own.filter(|c| workloads.contains(&c.workload.as_str()));
        let all = self.across.scaling.iter().enumerate();
        let figures: Vec<(usize, &'a ScalingFigure)> = all
            .filter(|(_, f)| workloads.contains(&f.workload.as_str()))
            .collect();
        let mut part = Part {
            title: format!(
                "How the time of {} grows with N",
                family.title(&self.run.plan)
            ),
            before: self.asked(family, &workloads),
            ..Part::default()
        };
        if !figures.is_empty() {
            part.before.push(paragraph("programs: growth"));
            part.pictures = vec![pictures::growth(self, &figures)];
            part.tables = vec![captioned("Exponents", exponents(self, &figures))];
        }
        let times = self.times_table(&own.collect::<Vec<_>>(), true);
        part.tables.push(captioned("Times", times));
        if figures.iter().any(|(_, f)| f.start_up) {
            part.after.push(paragraph("programs: start-up"));
        }
        part
    }
}

/// A line of the table: what it is of, the place of its figure, and that.
type Line<'a> = (String, usize, &'a ScalingFigure);

fn exponents<'l>(context: &Context<'_>, figures: &[(usize, &'l ScalingFigure)]) -> Table {
    let line = |(at, f): &(usize, &'l ScalingFigure)| {
        let label = context.unusual_label(&f.subject, &f.settings);
        (label, *at, *f)
    };
    let lines: Vec<Line<'_>> = figures.iter().map(line).collect();
    let spreads = figures.iter().map(|(_, f)| f.figure());
    let decimal = |title: &'static str, name: &'static str, of: fn(&ScalingFigure) -> f64| {
        let entry =
            move |(_, at, f): &Line<'_>| Entry::figure(path(*at, name), Some(of(f)), decimals);
        (detail(column(title, "", true)), entry)
    };
    let (small, small_end) = decimal("small end", "small_end", |f| f.small_end);
    let (large, large_end) = decimal("large end", "large_end", |f| f.large_end);
    Grid::new()
        .head(column("subject", "", false), |line: &Line<'_>| {
            Entry::text(&*line.0)
        })
        .head(detail(column("sizes", "", false)), |(_, _, f)| {
            Entry::text(sizes(f))
        })
        .head(column("time of the smallest", "", true), |line| {
            time(line, 0)
        })
        .head(column("of the largest", "", true), |line| {
            time(line, line.2.points.len().saturating_sub(1))
        })
        .head(column("exponent", spread_word(spreads), true), exponent)
        .head(small, small_end)
        .head(large, large_end)
        .head(column("what follows", "", false), |(_, _, f)| {
            let mark = if f.start_up { " ‡" } else { "" };
            Entry::text(format!("{}{mark}", f.says))
        })
        .rows(&lines)
}

fn path(at: usize, figure: &str) -> String {
    format!("/programs/scaling/{at}/{figure}")
}

fn exponent((_, at, f): &Line<'_>) -> Entry {
    let mut exponent = Entry::figure(path(*at, "exponent"), Some(f.exponent), decimals);
    if let Some((low, high)) = f.figure().ends() {
        exponent.below = format!("{}–{}", decimals(low), decimals(high));
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

fn time((_, at, f): &Line<'_>, place: usize) -> Entry {
    let path = path(*at, &format!("points/{place}/1"));
    Entry::figure(
        path,
        f.points.get(place).map(|point| point.1),
        numbers::time,
    )
}
