//! What more connections, client threads or server threads bring: the rate of one row of a section over
//! that of an earlier row that differs from it in this one number.
//!
//! Not for: comparing clients with each other.

use prony_findings::Records;
use serde::Serialize;

use super::sections::{RowKey, Section, sections};
use crate::figures::CellFigures;
use crate::ratio::RatioFigure;
use crate::{Run, ratio};

/// The rate of a client with more of something over that with less, all else equal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The client.
    pub subject: String,
    /// The cell with more.
    pub cell: String,
    /// What there is more of: `connections`, `client threads`, `server threads`.
    pub what: &'static str,
    /// From how many.
    pub from: String,
    /// To how many.
    pub to: String,
    /// The ratio of rates; its `reference_cell` is the cell with less.
    pub ratio: RatioFigure,
}

/// One number that differs between two rows: its name, and both values.
type Change = (&'static str, (String, String));

/// Pairs of rows that differ in one number: the earlier one, the later one, and the number. Of each
/// later row the nearest earlier one.
fn pairs<'s, 'a>(section: &'s Section<'a>) -> Vec<(&'s RowKey<'a>, &'s RowKey<'a>, Change)> {
    let rows = section.rows.iter().enumerate();
    let pair = |(at, later): (usize, &'s RowKey<'a>)| {
        let mut earlier = section.rows[..at].iter().rev();
        earlier.find_map(|earlier| Some((earlier, later, change(earlier, later)?)))
    };
    rows.filter_map(pair).collect()
}

fn change(from: &RowKey<'_>, to: &RowKey<'_>) -> Option<Change> {
    let numbers = from.numbers().into_iter().zip(to.numbers());
    let names = ["connections", "client threads", "server threads"];
    let numbers = names.into_iter().zip(numbers);
    let mut differ = numbers.filter(|(_, (from, to))| from != to);
    let one = differ.next()?;
    differ.next().is_none().then_some(one)
}

/// All steps of the sections on requests.
pub fn steps(run: &Run, records: &Records<'_>, cells: &[CellFigures]) -> Vec<Step> {
    let mut steps = Vec::new();
    for section in sections(run, cells).iter().filter(|s| !s.is_downloads()) {
        for (from, to, (what, (fewer, more))) in pairs(section) {
            let step = |column| {
                let (less, cell) = (section.cell(from, column)?, section.cell(to, column)?);
                Some(Step {
                    subject: cell.subject.clone(),
                    cell: cell.cell.clone(),
                    what,
                    from: fewer.clone(),
                    to: more.clone(),
                    ratio: ratio::rates(&less.case(records), &cell.case(records))?,
                })
            };
            steps.extend(section.columns.iter().filter_map(step));
        }
    }
    steps
}
