//! How time grows with size: one section for all sweeps of the same work, whatever workloads they are
//! spread over, since programs differ by orders of magnitude and so do the sizes that suit them.

use super::across::{ScalingFigure, decimals};
use super::context::Context;
use super::tables::{column, detail, spread_word};
use super::works::{Family, RowKey, Rows};
use super::{Captioned, Part, pictures, tables};
use crate::figures::CellFigures;
use crate::numbers::{self, NOTHING};
use crate::settings::THREADS;
use crate::table::{COLUMNS_MAX, Column, Entry, Row, Table};

const SCALING: &str = "The exponent p of time = constant × N^p: in each block the slope of the logarithms over all sizes, and \
     the interval over the blocks' slopes. What follows is said of the sizes measured and of no others.";
const START_UP: &str = "‡ The smallest size takes less than 10 ms: what a process does once shows in it, so that growth may look \
     slower at that end than it is.";

impl<'a> Context<'a> {
    /// The section of a family of sweeps.
    pub(super) fn sweep(&self, family: &Family<'a>) -> Part {
        let workloads = family.workloads();
        let own = self.cells.iter().copied();
        let own = own.filter(|c| workloads.contains(&c.workload.as_str()));
        let cells: Vec<&'a CellFigures> = own.collect();
        let all = self.across.scaling.iter().enumerate();
        let figures: Vec<(usize, &'a ScalingFigure)> = all
            .filter(|(_, f)| workloads.contains(&f.workload.as_str()))
            .collect();
        let times = Captioned {
            caption: "Times".to_owned(),
            table: self.times_table(&cells, true),
        };
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
            part.tables.push(Captioned {
                caption: "Exponents".to_owned(),
                table: self.scaling_table(&figures),
            });
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
        let mut columns = vec![column("subject", "", false)];
        columns.extend(by_threads.then(|| column(THREADS, "", false)));
        columns.extend(varying.iter().map(|(_, name)| column(*name, "", false)));
        // The picture has the times, too.
        let is_wide = columns.len() + 4 > COLUMNS_MAX;
        let times = |title: &str| Column {
            details: is_wide,
            ..column(title, "", true)
        };
        columns.extend([
            detail(column("sizes", "", false)),
            times("time of the smallest"),
            times("of the largest"),
            column("exponent", spread_word(interval), true),
            detail(column("small end", "", true)),
            detail(column("large end", "", true)),
            column("what follows", "", false),
        ]);
        let line = |wanted: &RowKey<'a>, (at, f): &(usize, &ScalingFigure)| {
            let mut entries = tables::row_start(wanted, &varying);
            if by_threads {
                let own = threads(f).unwrap_or_else(|| "1".to_owned());
                entries.insert(1, Entry::text(own));
            }
            entries.extend(scaling_entries(*at, f));
            Row {
                entries,
                ..Row::default()
            }
        };
        let lines = keys.iter().flat_map(|wanted| {
            let own = figures.iter().filter(|(_, f)| key(f) == *wanted);
            own.map(|figure| line(wanted, figure)).collect::<Vec<_>>()
        });
        Table {
            rows: lines.collect(),
            columns,
        }
    }
}

fn scaling_entries(at: usize, f: &ScalingFigure) -> Vec<Entry> {
    let path = |figure: &str| format!("/programs/scaling/{at}/{figure}");
    let mut exponent = Entry::figure(path("exponent"), Some(f.exponent), decimals);
    if f.blocks > 1 {
        exponent.below = format!("{}–{}", decimals(f.low), decimals(f.high));
    }
    let ends = (f.points.first(), f.points.last());
    let sizes = match ends {
        (Some(first), Some(last)) => format!(
            "{} from {} to {}",
            f.points.len(),
            numbers::count(first.0),
            numbers::count(last.0)
        ),
        _ => NOTHING.to_owned(),
    };
    let time = |place: usize, point: Option<&(u64, f64)>| {
        let value = point.map(|point| point.1);
        Entry::figure(path(&format!("points/{place}/1")), value, numbers::time)
    };
    let mark = if f.start_up { " ‡" } else { "" };
    vec![
        Entry::text(sizes),
        time(0, ends.0),
        time(f.points.len().saturating_sub(1), ends.1),
        exponent,
        Entry::figure(path("small_end"), Some(f.small_end), decimals),
        Entry::figure(path("large_end"), Some(f.large_end), decimals),
        Entry::text(format!("{}{mark}", f.says)),
    ]
}
