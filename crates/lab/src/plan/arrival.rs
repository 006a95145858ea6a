//! Rates of open arrivals: an axis of cells, as connections are. Pure.

use prony_record::{Arrival, Cell};

use crate::experiment::Experiment;

/// The rates of a workload's cells: quick ones if asked; one `None` where no rate is an axis.
pub(super) fn rates(arrival: &Arrival, experiment: &Experiment, quick: bool) -> Vec<Option<f64>> {
    let (Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s }) = arrival else {
        return vec![None];
    };
    let mut rates = rates_per_s.clone();
    if let Some(kept) = experiment.quick.rates.as_ref().filter(|_| quick) {
        let few: Vec<f64> = rates
            .iter()
            .copied()
            .filter(|rate| kept.get_ref().contains(rate))
            .collect();
        rates.truncate(1);
        if !few.is_empty() {
            rates = few;
        }
    }
    rates.into_iter().map(Some).collect()
}

/// The arrival of a workload with the rates that its `cells` have.
pub(super) fn planned<'a>(arrival: &Arrival, cells: impl Iterator<Item = &'a Cell>) -> Arrival {
    let mut planned = arrival.clone();
    if let Arrival::Constant { rates_per_s } | Arrival::Poisson { rates_per_s } = &mut planned {
        *rates_per_s = super::once(cells.filter_map(|cell| cell.rate_per_s));
    }
    planned
}
