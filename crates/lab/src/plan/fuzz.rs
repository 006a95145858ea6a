//! The hook for fuzzing: any bytes as an experiment and as a subject, planned with stand-ins.

use super::check::check_services;
use super::facts::Facts;
use super::options::Options;
use super::published::check_published;
use super::resolve::plan;
use crate::cap;
use crate::experiment::{Experiment, Origin, check_names};
use crate::subject::{Subject, stand_ins};

/// Hook for fuzzing: any bytes as an experiment and as a subject; whatever is
/// wrong with them is shown. Must not panic.
pub fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let origin = Origin::new("experiment.toml", "/nowhere");
    match Experiment::parse(text, &origin) {
        Err(wrong) => drop(wrong.render(true)),
        Ok(experiment) => plan_of(&experiment),
    }
    if let Err(wrong) = Subject::parse(text, &origin) {
        drop(wrong.render(false));
    }
}

/// Plans `experiment` with stand-ins for its subjects; for fuzzing.
fn plan_of(experiment: &Experiment) {
    let subjects = stand_ins(experiment);
    let ids: Vec<String> = subjects.iter().map(|subject| subject.id.clone()).collect();
    let facts = Facts {
        cores: vec![vec![0], vec![1]],
        limits: cap::Limits::example(),
        ..Facts::default()
    };
    if check_names(experiment, &ids).is_err() {
        return;
    }
    // What is wrong here is only said, and planned all the same.
    drop(check_services(experiment, &subjects));
    drop(check_published(experiment, &subjects));
    for quick in [false, true] {
        let options = Options {
            quick,
            ..Options::default()
        };
        if let Ok(plan) = plan(experiment, &subjects, &facts, &options) {
            assert_eq!(plan.order.len(), plan.blocks as usize);
            assert!(plan.order.iter().all(|row| row.len() == plan.cells.len()));
        }
    }
}
