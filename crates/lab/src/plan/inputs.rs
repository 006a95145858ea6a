//! What a plan is made from, in one value.

use prony_record::{Cell, ConnectionCap, Cores, NotRun};
use toml::Spanned;

use super::facts::Facts;
use super::options::{Options, is_selected};
use crate::experiment::types::is_listed;
use crate::experiment::{Experiment, Parts, Quick};
use crate::subject::Subject;

/// What a plan is made from.
pub struct Inputs<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What the entries of the experiment name.
    pub parts: Parts<'a, Subject>,
    /// What the machine has.
    pub facts: &'a Facts,
    /// What the command line says.
    pub options: &'a Options,
    /// The limit on connections.
    pub connection_cap: ConnectionCap,
    /// Cores by role.
    pub cores: Cores,
}

impl Inputs<'_> {
    /// What a quick run changes, if it is one.
    pub fn quick(&self) -> Option<&Quick> {
        self.options.quick.then_some(&self.experiment.quick)
    }

    /// The subject of a cell.
    pub fn subject_of(&self, cell: &Cell) -> Option<&Subject> {
        let mut subjects = self.parts.subjects.iter();
        subjects.find(|subject| subject.id == cell.subject)
    }

    /// The subjects among `names`, or all where there is no such list.
    pub fn listed(&self, names: &Option<Vec<Spanned<String>>>) -> impl Iterator<Item = &Subject> {
        let subjects = self.parts.subjects.iter();
        subjects.filter(|subject| is_listed(names, &subject.id))
    }

    /// Notes that `what` of a subject is not run, if it was selected.
    pub fn not_run(&self, subject: &Subject, what: &str, reason: String) -> Option<NotRun> {
        let what = format!("{} {what}", subject.id);
        let is_meant = is_selected(&self.options.only, &subject.id, &what);
        is_meant.then(|| NotRun::new(&what, reason, ""))
    }
}
