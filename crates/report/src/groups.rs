//! Groups of servers' cells, each of which makes a table.

use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::numbers;

/// What the cells of one table have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the workload.
    pub workload: String,
    /// Connections.
    pub connections: u32,
    /// Requests that are to start a second, where a rate is said; users, where they do steps.
    pub asked_per_s: Option<f64>,
    /// Whether users do steps.
    pub of_users: bool,
}

impl Group {
    /// That of a cell.
    pub fn from_cell(cell: &CellFigures) -> Group {
        Group {
            workload: cell.workload.clone(),
            connections: cell.connections,
            asked_per_s: cell.asked_per_s,
            of_users: cell.users.is_some(),
        }
    }

    /// Whether `cell` is one of a server in all combinations, of this workload and size.
    pub fn has(&self, cell: &CellFigures) -> bool {
        cell.is_combined() && *self == Group::from_cell(cell)
    }

    /// Its cells.
    pub fn cells<'a>(&self, cells: &'a [CellFigures]) -> Vec<&'a CellFigures> {
        cells.iter().filter(|cell| self.has(cell)).collect()
    }

    /// Where it is in words: `hello with 100 connections`.
    pub fn place(&self) -> String {
        format!("{} with {}", self.workload, self.size())
    }

    /// Its size in words: `100 connections`, `100 connections at 1.00 k requests/s`.
    pub fn size(&self) -> String {
        let connections = numbers::counted(u64::from(self.connections), "connection");
        match self.asked_per_s {
            Some(rate) => {
                let what = if self.of_users { "users" } else { "requests" };
                format!("{connections} at {} {what}/s", numbers::rate(rate))
            }
            None => connections,
        }
    }
}

/// The groups of servers' cells, in the order of the cells.
pub fn groups(cells: &[CellFigures]) -> Vec<Group> {
    distinct(
        cells
            .iter()
            .filter(|c| c.is_combined())
            .map(Group::from_cell),
    )
}
