//! The records as rules look at them: by cell.

use std::collections::BTreeMap;

use prony_record::{Cell, Outcome, Plan, PlannedSubject, PlannedWorkload, Trial};

/// A plan and its trials by Prony's own generator.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    /// What was to be done.
    pub plan: &'a Plan,
    by_cell: BTreeMap<&'a str, Vec<&'a Trial>>,
}

impl<'a> Records<'a> {
    /// Sorts `trials` by cell and block. Of a trial that was done again after an interruption
    /// the last record counts.
    pub fn new(plan: &'a Plan, trials: &'a [Trial]) -> Records<'a> {
        let mut last: BTreeMap<(&str, u32), &Trial> = BTreeMap::new();
        for trial in trials.iter().filter(|t| t.generator == "prony") {
            last.insert((&trial.cell, trial.block), trial);
        }
        let mut by_cell: BTreeMap<&str, Vec<&Trial>> = BTreeMap::new();
        for ((cell, _), trial) in last {
            by_cell.entry(cell).or_default().push(trial);
        }
        Records { plan, by_cell }
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

    /// Those whose whole window was measured.
    pub fn measured(&self) -> impl Iterator<Item = &'a Trial> + use<'a> {
        let trials = self.trials().iter().copied();
        trials.filter(|trial| trial.outcome == Outcome::Measured && trial.load.is_some())
    }
}
