//! What belongs together: the cells of one work against one peer over one network make a section; in
//! it, a row is a workload with its connections and threads, a column is a client with its settings.
//!
//! Not for: figures.

use std::collections::BTreeMap;

use prony_base::plural;
use prony_record::{DOWNLOADS, PlannedClient, PlannedSetting, PlannedWorkload};

use super::figures::OFF;
use crate::figures::{self, CellFigures, NamedCells};
use crate::lists::distinct;
use crate::settings::THREADS;
use crate::{Run, numbers};

/// The cells of one work, peer and network.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// What the clients are asked to do; of its workloads the first.
    pub asked: &'a PlannedClient,
    /// The rows, in the plan's order.
    pub rows: Vec<RowKey<'a>>,
    /// The columns, in the plan's order.
    pub columns: Vec<ColumnKey<'a>>,
    /// All its cells.
    pub cells: Vec<&'a CellFigures>,
    /// Its heading.
    pub title: String,
}

/// A row: a workload with one number of connections and of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct RowKey<'a> {
    /// The workload.
    pub workload: &'a str,
    /// Connections in all.
    pub connections: u32,
    /// Threads of the client.
    pub threads: String,
    /// Threads of the peer.
    pub peer_threads: u32,
}

/// A column: the client and its settings but for the threads.
pub type ColumnKey<'a> = (&'a str, BTreeMap<String, String>);

impl RowKey<'_> {
    /// Connections, client threads and server threads.
    pub fn numbers(&self) -> [String; 3] {
        let connections = self.connections.to_string();
        [
            connections,
            self.threads.clone(),
            self.peer_threads.to_string(),
        ]
    }

    /// `10 connections, 1 client thread, 2 server threads`.
    pub fn words(&self) -> String {
        // A number of threads may be the value of a setting, which need not be one.
        let of = |n: &str, one: &str| format!("{n} {}", plural(n.parse().unwrap_or(0_u64), one));
        format!(
            "{}, {}, {}",
            numbers::counted(self.connections.into(), "connection"),
            of(&self.threads, "client thread"),
            of(&self.peer_threads.to_string(), "server thread"),
        )
    }
}

/// The row of a cell, where it is a client's.
pub fn row_of(cell: &CellFigures) -> Option<RowKey<'_>> {
    let client = cell.client.as_ref()?;
    Some(RowKey {
        workload: &cell.workload,
        connections: cell.connections,
        threads: client.threads.clone(),
        peer_threads: client.peer_threads,
    })
}

/// The column of a cell.
pub fn column_of(cell: &CellFigures) -> ColumnKey<'_> {
    let mut settings = cell.settings.clone();
    settings.remove(THREADS);
    (&cell.subject, settings)
}

/// The sections, in the plan's order.
pub fn sections<'a>(run: &'a Run, cells: &'a [CellFigures]) -> Vec<Section<'a>> {
    let plan = &run.plan;
    let planned = |cell: &CellFigures| -> Option<&'a PlannedWorkload> {
        let own = |w: &&PlannedWorkload| w.name == cell.workload && w.client.is_some();
        plan.workloads.iter().find(own)
    };
    let mut sections: Vec<Section<'a>> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.client.is_some()) {
        let Some(asked) = planned(cell).and_then(|w| w.client.as_ref()) else {
            continue;
        };
        let same = |section: &&mut Section<'a>| {
            let key = |c: &'a PlannedClient| {
                let what = (&c.work, &c.path, c.payload_bytes, &c.args);
                (&c.peer, &c.network, what)
            };
            key(section.asked) == key(asked)
        };
        match sections.iter_mut().find(same) {
            Some(section) => section.cells.push(cell),
            None => sections.push(Section {
                asked,
                rows: Vec::new(),
                columns: Vec::new(),
                cells: vec![cell],
                title: title(run, asked),
            }),
        }
    }
    for section in &mut sections {
        section.rows = distinct(section.cells.iter().filter_map(|c| row_of(c)));
        section.columns = distinct(section.cells.iter().map(|c| column_of(c)));
        let place = |id: &str| plan.subjects.iter().position(|s| s.id == id);
        section.columns.sort_by_key(|(subject, _)| place(subject));
    }
    sections
}

/// `Requests to c/nginx over loopback`.
fn title(run: &Run, asked: &PlannedClient) -> String {
    let network = network(run, asked);
    let args = match asked.args.is_empty() {
        true => String::new(),
        false => format!(", with {}", asked.args.join(" ")),
    };
    let what = match (asked.work.as_str(), asked.payload_bytes) {
        (DOWNLOADS, 0) => "Downloads from".to_owned(),
        (DOWNLOADS, bytes) => format!("Downloads of {} from", numbers::bytes(bytes as f64)),
        _ => "Requests to".to_owned(),
    };
    format!("{what} {} over {network}{args}", asked.peer)
}

/// What a heading calls a network.
fn network<'a>(run: &'a Run, asked: &'a PlannedClient) -> &'a str {
    let planned = run.plan.networks.iter().find(|n| n.name == asked.network);
    match (planned, asked.network.as_str()) {
        (Some(network), _) => network.heading(),
        (None, "") => "loopback",
        (None, name) => name,
    }
}

impl<'a> Section<'a> {
    /// What a client is called among those of its section: its name, unless there is only one, and its
    /// settings that differ, those left out that are off.
    pub fn label(&self, run: &Run, column: &ColumnKey<'_>) -> String {
        let several = distinct(self.columns.iter().map(|of| of.0)).len() > 1;
        let differs =
            |name: &String| distinct(self.cells.iter().map(|c| c.settings.get(name))).len() > 1;
        let word = |setting: &PlannedSetting| {
            let (name, value) = column.1.get_key_value(&setting.name)?;
            let is_told = !OFF.contains(&value.as_str()) && differs(name);
            is_told.then(|| format!("{name}={value}"))
        };
        let mut words: Vec<String> = run.plan.settings.iter().filter_map(word).collect();
        if several || words.is_empty() {
            words.insert(0, figures::name_of(&run.plan, column.0).to_owned());
        }
        words.join(", ")
    }

    /// What a row is called among those of its section.
    pub fn name_of(&self, row: &RowKey<'_>) -> String {
        self.with_workload(row, row.words())
    }

    /// The same in short: `10 / 1 / 2`.
    pub fn short(&self, row: &RowKey<'_>) -> String {
        let connections = numbers::count(row.connections.into());
        let short = format!("{connections} / {} / {}", row.threads, row.peer_threads);
        self.with_workload(row, short)
    }

    /// With its workload, where rows cannot be told apart by their numbers.
    fn with_workload(&self, row: &RowKey<'_>, numbers: String) -> String {
        let words = distinct(self.rows.iter().map(RowKey::words));
        match words.len() < self.rows.len() {
            true => format!("{}: {numbers}", row.workload),
            false => numbers,
        }
    }

    /// [`Section::label`] of a cell.
    pub fn label_of(&self, run: &Run, cell: &CellFigures) -> String {
        self.label(run, &column_of(cell))
    }

    /// These cells with their labels.
    pub fn named(&self, run: &Run, cells: Vec<&'a CellFigures>) -> NamedCells<'a> {
        let cells = cells.into_iter();
        cells.map(|cell| (self.label_of(run, cell), cell)).collect()
    }

    /// Whether its work is downloads.
    pub fn is_downloads(&self) -> bool {
        self.asked.work == DOWNLOADS
    }

    /// The cell of a row and a column.
    pub fn cell(&self, row: &RowKey<'_>, column: &ColumnKey<'_>) -> Option<&'a CellFigures> {
        let fits =
            |cell: &&&CellFigures| row_of(cell).as_ref() == Some(row) && column_of(cell) == *column;
        self.cells.iter().find(fits).copied()
    }

    /// The cells of a row, in the order of the columns.
    pub fn of_row(&self, row: &RowKey<'_>) -> Vec<&'a CellFigures> {
        let columns = self.columns.iter();
        columns.filter_map(|c| self.cell(row, c)).collect()
    }

    /// The groups of cells that each have a picture of their own, with their names.
    pub fn pictured(&self) -> Vec<(String, Vec<&'a CellFigures>)> {
        let rows = self.rows.iter();
        rows.map(|row| (row.words(), self.of_row(row))).collect()
    }

    /// All cells, row by row.
    pub fn by_row(&self) -> Vec<&'a CellFigures> {
        self.rows.iter().flat_map(|row| self.of_row(row)).collect()
    }
}
