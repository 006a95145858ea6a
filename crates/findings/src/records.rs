//! The records as rules look at them: by cell.

use std::collections::BTreeMap;

use crate::measure;
use prony_record::{
    Cell, CounterReport, Ended, GeneratorKind, Outcome, Plan, PlannedClient, PlannedCounter,
    PlannedRow, PlannedSubject, PlannedWorkload, ProgramReport, Trial, Work,
};

/// A plan and its trials by Prony's own generator, and apart from these the ones by another. Trials that profile are in
/// neither.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    by_cell: BTreeMap<&'a str, Vec<&'a Trial>>,
    by_others: BTreeMap<&'a str, Vec<&'a Trial>>,
}

impl<'a> Records<'a> {
    /// Sorts `trials` by cell and block. Of a trial that was done again after an interruption
    /// the last record counts.
    pub fn new(plan: &'a Plan, trials: &'a [Trial]) -> Records<'a> {
        let mut last: BTreeMap<(&str, u32), &Trial> = BTreeMap::new();
        for trial in trials
            .iter()
            .filter(|t| t.generator == GeneratorKind::Prony)
        {
            last.insert((&trial.cell, trial.block), trial);
        }
        let mut by_cell: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
        for ((cell, _), trial) in last {
            by_cell.entry(cell).or_default().push(trial);
        }
        let mut by_others: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
        for trial in trials.iter().filter(|t| t.generator == GeneratorKind::Wrk) {
            by_others.entry(&trial.cell).or_default().push(trial);
        }
        Records {
            plan,
            by_cell,
            by_others,
        }
    }

    /// The trials of a cell by another generator: cross-checks, which are in no figure.
    pub fn by_others(&self, cell: &str) -> &[&'a Trial] {
        self.by_others.get(cell).map_or(&[], Vec::as_slice)
    }

    /// The trials of a cell by block.
    pub fn trials(&self, cell: &str) -> &[&'a Trial] {
        self.by_cell.get(cell).map_or(&[], Vec::as_slice)
    }

    /// Every cell of the plan, in its order.
    pub fn cases(&self) -> impl Iterator<Item = Case<'_>> {
        self.plan.cells.iter().map(|cell| self.case(cell))
    }

    /// One cell.
    pub fn case<'b>(&'b self, cell: &'b Cell) -> Case<'b> {
        Case {
            records: self,
            cell,
            subject: self.plan.subjects.iter().find(|s| s.id == cell.subject),
            workload: self.plan.workloads.iter().find(|w| w.name == cell.workload),
        }
    }
}

/// One cell with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// All records.
    pub records: &'a Records<'a>,
    /// The cell.
    pub cell: &'a Cell,
    /// Its subject, where the plan has it.
    pub subject: Option<&'a PlannedSubject>,
    /// Its workload, where the plan has it.
    pub workload: Option<&'a PlannedWorkload>,
}

impl<'a> Case<'a> {
    /// All its trials by block.
    pub fn trials(&self) -> &'a [&'a Trial] {
        self.records.trials(&self.cell.id)
    }

    /// The trials of a server whose whole window was measured.
    pub fn measured(&self) -> impl Iterator<Item = &'a Trial> + use<'a> {
        let trials = self.trials().iter().copied();
        let of_server = |trial: &&Trial| trial.load.is_some() && trial.program.is_none();
        let ended = trials.filter(|trial| trial.outcome == Outcome::Measured);
        ended.filter(of_server)
    }

    /// The trials of a program that ran to its end; a client is one, too.
    pub fn runs(&self) -> impl Iterator<Item = (&'a Trial, &'a ProgramReport)> + use<'a> {
        let trials = self.trials().iter().copied();
        let ended = trials.filter(|trial| trial.outcome == Outcome::Measured);
        ended.filter_map(|trial| Some((trial, trial.program.as_ref()?)))
    }

    /// All that were measured, of whichever kind.
    pub fn complete(&self) -> impl Iterator<Item = &'a Trial> + use<'a> {
        self.measured().chain(self.runs().map(|(trial, _)| trial))
    }

    /// The blocks in which others used its cores, or its generator's, each with the part of the window ([`prony_record::disturbed`]).
    pub fn disturbed(&self) -> BTreeMap<u32, f64> {
        prony_record::disturbed(self.measured())
    }

    /// The rate of each measured block: requests a second of a server, counts a second of a program; of a search the
    /// highest that it found, where it found one.
    pub fn rates(&self) -> Vec<(u32, f64)> {
        if self.is_search() {
            let found = |trial: &'a Trial| {
                let highest = trial.search.as_ref()?.highest?;
                Some((trial.block, highest.rate_per_s))
            };
            return self.measured().filter_map(found).collect();
        }
        let of_server = self
            .measured()
            .filter_map(|trial| Some((trial.block, measure::rate(trial.load.as_ref()?)?.0)));
        let of_program = self
            .runs()
            .filter_map(|(trial, run)| Some((trial.block, measure::program_rate(run)?.0)));
        of_server.chain(of_program).collect()
    }

    /// Whether it looks for the highest rate that keeps an objective.
    pub fn is_search(&self) -> bool {
        self.workload.is_some_and(|w| w.find_max.is_some())
    }

    /// Whose work it is; of a cell whose workload the plan has not, as far as the cell tells.
    pub fn is_program(&self) -> bool {
        let by_workload = |w: &PlannedWorkload| matches!(w.work(), Work::Program(_));
        self.cell.count.is_some() || self.workload.is_some_and(by_workload)
    }

    /// What its client is asked to do, where it is one.
    pub fn client(&self) -> Option<&'a PlannedClient> {
        self.workload.and_then(|w| w.client.as_ref())
    }

    /// Whether it is the work of a client against a peer.
    pub fn is_client(&self) -> bool {
        self.client().is_some()
    }

    /// The row of its workload's own table that it is, where that has one.
    pub fn row(&self) -> Option<&'a PlannedRow> {
        let rows = &self.workload?.rows;
        rows.iter().find(|row| shows(row, self.cell))
    }

    /// The cell of the row that its row stands beside, with as many connections.
    pub fn baseline_cell(&self) -> Option<&'a Cell> {
        let title = self.row()?.baseline.as_ref()?;
        let mut rows = self.workload?.rows.iter();
        let other = rows.find(|row| &row.title == title)?;
        let same = |cell: &&Cell| {
            cell.workload == self.cell.workload
                && cell.connections == self.cell.connections
                && shows(other, cell)
        };
        self.records.plan.cells.iter().find(same)
    }

    /// The number that its requests raise, where they do.
    pub fn counter(&self) -> Option<&'a PlannedCounter> {
        self.workload?.counter.as_ref()
    }

    /// Whether its subject is killed while the last requests are out: that these fail is meant.
    pub fn is_killed(&self) -> bool {
        let ended = self.counter().and_then(|counter| counter.ended_by);
        ended == Some(Ended::Killed)
    }

    /// What came of the number, in each measured block.
    pub fn counters(&self) -> impl Iterator<Item = (&'a Trial, &'a CounterReport)> + use<'a> {
        self.measured()
            .filter_map(|trial| Some((trial, trial.counter.as_ref()?)))
    }
}

/// Whether `cell` is what `row` says, in whichever workload and with however many connections.
fn shows(row: &PlannedRow, cell: &Cell) -> bool {
    row.subject == cell.subject && row.settings == cell.settings
}
