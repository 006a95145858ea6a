//! What others disturbed, measured once more after all else.
//!
//! Which blocks these are is read from who used the cores ([`prony_record::disturbed`]), so that no figure chooses what is measured again.

use std::collections::{BTreeMap, BTreeSet};

use prony_record::{Cell, GeneratorKind, Outcome, Plan, Trial};

use super::tasks::Task;
use crate::plan::visits::is_beside;
use crate::supervise::Generator;

/// Fewer blocks have no interval that these could spoil.
const BLOCKS_MIN: u32 = 6;

/// The trials that a run of `plan` has beside those planned, where these came out as in `trials`: of the cells that are compared with each
/// other, each block in which one of them was disturbed, up to a third of the blocks. Such a block has a number of its own, after those
/// of the plan and that of its profiles. What is measured again is not measured a third time.
pub(super) fn tasks<'a>(plan: &'a Plan, trials: &[Trial]) -> Vec<Task<'a>> {
    let mut again = Vec::new();
    if plan.blocks < BLOCKS_MIN {
        return again;
    }
    let is_counted = |trial: &&Trial| {
        trial.outcome == Outcome::Measured
            && trial.generator == GeneratorKind::Prony
            && trial.block < plan.blocks
    };
    let blocks = |cell: &Cell| {
        let counted = trials.iter().filter(is_counted);
        prony_record::disturbed(counted.filter(|trial| trial.cell == cell.id)).into_keys()
    };
    let tables: BTreeMap<(&str, u32), &Cell> = plan
        .cells
        .iter()
        .map(|cell| ((&*cell.workload, cell.connections), cell))
        .collect();
    for first in tables.into_values() {
        let cells = plan.cells.iter().filter(|cell| is_beside(first, cell));
        let disturbed: BTreeSet<u32> = cells.flat_map(blocks).collect();
        let most = plan.blocks as usize / 3;
        for (block, of) in (plan.blocks + 1..).zip(disturbed.into_iter().take(most)) {
            let order = plan.order.get(of as usize).into_iter().flatten();
            let cells = order.filter_map(|&index| plan.cells.get(index as usize));
            let beside = (0..).zip(cells).filter(|(_, cell)| is_beside(first, cell));
            again.extend(beside.map(|(position, cell)| Task {
                cell,
                block,
                position,
                generator: Generator::Prony,
            }));
        }
    }
    again
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_record::{CoreUse, LoadReport, ProcessRecord, Role};

    fn cell(id: &str, connections: u32) -> Cell {
        Cell {
            id: id.to_owned(),
            workload: "ping".to_owned(),
            connections,
            ..Cell::default()
        }
    }

    /// A second in which others used so much of the subject's core.
    fn trial(cell: &str, block: u32, others_ms: u64) -> Trial {
        Trial {
            cell: cell.to_owned(),
            block,
            generator: GeneratorKind::Prony,
            outcome: Outcome::Measured,
            sampled_ns: 1_000_000_000,
            load: Some(LoadReport::default()),
            cores: vec![CoreUse {
                role: Some(Role::Subject),
                busy_ns: 1_000_000_000,
                ..CoreUse::default()
            }],
            processes: vec![ProcessRecord {
                role: Role::Subject,
                cpu_ns: (1_000 - others_ms) * 1_000_000,
                ..ProcessRecord::default()
            }],
            ..Trial::default()
        }
    }

    #[test]
    fn what_was_disturbed_is_measured_again_with_what_it_is_compared_with() {
        let cells = vec![cell("a", 2), cell("b", 2), cell("a4", 4), cell("b4", 4)];
        let plan = Plan {
            blocks: 6,
            order: vec![vec![3, 1, 0, 2]; 6],
            cells,
            ..Plan::default()
        };
        let disturbed = |of: &[(&str, u32)]| {
            let mut trials = Vec::new();
            for cell in &plan.cells {
                for block in 0..6 {
                    let is_one = of.contains(&(&*cell.id, block));
                    trials.push(trial(&cell.id, block, if is_one { 300 } else { 0 }));
                }
            }
            let named = |task: &Task<'_>| (task.cell.id.clone(), task.block);
            tasks(&plan, &trials).iter().map(named).collect::<Vec<_>>()
        };
        assert!(disturbed(&[]).is_empty());
        let of = |id: &str, block| (id.to_owned(), block);
        assert_eq!(disturbed(&[("b", 4)]), [of("b", 7), of("a", 7)]);
        // Each table by itself; of the third that is disturbed, no more.
        let all = disturbed(&[("a", 0), ("b", 1), ("a", 2), ("b4", 5)]);
        let expected = [
            of("b", 7),
            of("a", 7),
            of("b", 8),
            of("a", 8),
            of("b4", 7),
            of("a4", 7),
        ];
        assert_eq!(all, expected);
        // Fewer blocks have no interval.
        let few = Plan {
            blocks: 5,
            ..plan.clone()
        };
        assert!(
            tasks(
                &few,
                &[trial("a", 0, 300), trial("a", 1, 0), trial("a", 2, 0)]
            )
            .is_empty()
        );
    }
}
