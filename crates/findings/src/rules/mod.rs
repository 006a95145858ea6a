//! One function a finding, and the table of them.
//!
//! A rule looks at one [`Case`] and knows nothing of the others. Most look at each measured
//! trial by itself and report the worst one ([`seen::worst`]); the finding then names all blocks.

mod answers;
mod clients;
mod crowd;
mod machine;
mod open;
mod programs;
mod saturation;
mod search;
mod seen;
mod services;
mod stability;

use crate::code::Code;
use crate::finding::Finding;
use crate::records::{Case, Records};
pub use services::keeps_nothing;

/// A rule.
#[derive(Clone, Copy)]
enum Rule {
    /// A rule that looks at one cell.
    Cell(fn(&Case<'_>) -> Vec<Finding>),
    /// A rule that looks at the whole run.
    Run(fn(&Records<'_>) -> Option<Finding>),
}

/// Which rule finds what.
const RULES: &[(Code, Rule)] = &[
    (Code::P001, Rule::Cell(saturation::generator_saturated)),
    (Code::P002, Rule::Cell(answers::refused_or_reset)),
    (Code::P003, Rule::Cell(answers::keep_alive)),
    (Code::P004, Rule::Cell(machine::listen_overflow)),
    (Code::P005, Rule::Cell(saturation::not_in_flight)),
    (Code::P006, Rule::Cell(answers::failed)),
    (Code::P007, Rule::Cell(machine::more_cores)),
    (Code::P008, Rule::Cell(stability::unstable)),
    (Code::P009, Rule::Run(machine::drifted)),
    (Code::P010, Rule::Cell(answers::not_measured)),
    (Code::P011, Rule::Cell(answers::capability)),
    (Code::P012, Rule::Cell(crowd::other_work)),
    (Code::P013, Rule::Cell(programs::too_short)),
    (Code::P014, Rule::Cell(programs::not_running)),
    (Code::P015, Rule::Cell(programs::checksum_differs)),
    (Code::P016, Rule::Cell(programs::same_peak)),
    (Code::P017, Rule::Cell(programs::deadlines_missed)),
    (Code::P018, Rule::Cell(clients::counts_disagree)),
    (Code::P019, Rule::Cell(clients::own_clock)),
    (Code::P020, Rule::Cell(clients::peer_saturated)),
    (Code::P021, Rule::Cell(clients::crowded)),
    (Code::P022, Rule::Cell(clients::latency_incomplete)),
    (Code::P023, Rule::Cell(services::uncounted)),
    (Code::P024, Rule::Cell(services::lost)),
    (Code::P025, Rule::Cell(services::invented)),
    (Code::P026, Rule::Cell(services::shared_cores)),
    (Code::P027, Rule::Cell(services::more_instances)),
    (Code::P028, Rule::Cell(stability::froze)),
    (Code::P029, Rule::Cell(open::overloaded)),
    (Code::P030, Rule::Cell(saturation::other_generator)),
    (Code::P031, Rule::Cell(search::nowhere)),
    (Code::P032, Rule::Cell(saturation::both_sleep)),
];

/// All findings, by cell in the plan's order and by code; then those on the run.
pub fn findings(records: &Records<'_>) -> Vec<Finding> {
    let of_cell = |case: Case<'_>| -> Vec<Finding> {
        let rules = RULES.iter().filter_map(|(_, rule)| match rule {
            Rule::Cell(rule) => Some(rule(&case)),
            Rule::Run(_) => None,
        });
        rules.flatten().collect()
    };
    let of_run = RULES.iter().filter_map(|(_, rule)| match rule {
        Rule::Run(rule) => rule(records),
        Rule::Cell(_) => None,
    });
    records.cases().flat_map(of_cell).chain(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_rule_and_they_stand_in_order() {
        let with_rule: Vec<Code> = RULES.iter().map(|(code, _)| *code).collect();
        assert_eq!(with_rule, Code::ALL);
    }
}
