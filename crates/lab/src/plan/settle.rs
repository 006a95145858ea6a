//! Puts the results of builds into a plan: each subject's folder and version, and those whose build failed as not run.
//! Then draws the order in which the cells are run.

use prony_base::Random;
use prony_record::{NotRun, Plan, PlannedSubject};

use super::cells::planned_arrival;
use super::{rows, topology, visits};
use crate::build::BuildOutcome;

/// Puts the outcomes of builds, by the subject's id, into the plan. Subjects that failed are removed with their cells,
/// and the order is drawn again from the same seed. Where no cells are left, the caller reports `not_run` and ends.
pub fn settle(mut plan: Plan, outcomes: &[(String, BuildOutcome)]) -> Plan {
    for (id, outcome) in outcomes {
        match outcome {
            BuildOutcome::Ready(ready) => {
                let all = plan.subjects.iter_mut().chain(&mut plan.peers);
                let all = all.chain(&mut plan.backings).chain(&mut plan.fronts);
                let is = |s: &&mut PlannedSubject| s.id == *id || s.copy_of.as_ref() == Some(id);
                for subject in all.filter(is) {
                    subject.build_dir = ready.dir.clone();
                    subject.build_key = ready.key.clone();
                    subject.root_dir = ready.root_dir.clone();
                    subject.files_sha256 = ready.files.clone();
                    subject.originals_dir = ready.originals.clone();
                    subject.repositories = ready.repositories.clone();
                    subject.version = ready.version.clone();
                }
            }
            BuildOutcome::Failed(failed) => remove(&mut plan, failed.not_run(id)),
        }
    }
    finish(&mut plan);
    plan
}

/// Takes a subject, a peer or a service out of the plan, with all cells that need it.
fn remove(plan: &mut Plan, mut skipped: NotRun) {
    if plan
        .cells
        .iter()
        .any(|cell| topology::uses(&cell.around, &skipped.what))
    {
        skipped.reason = topology::with_cells(&skipped.reason, &skipped.what, &plan.cells);
    }
    let workloads = plan.workloads.iter().filter(|workload| {
        let client = workload.client.as_ref();
        client.is_some_and(|client| client.peer == skipped.what)
    });
    let without_peer: Vec<String> = workloads.map(|workload| workload.name.clone()).collect();
    // A copy goes with what it is one of.
    let subjects = &plan.subjects;
    let is_gone = |id: &str| {
        let copied = subjects.iter().find(|s| s.id == id);
        id == skipped.what || copied.is_some_and(|s| s.copy_of.as_ref() == Some(&skipped.what))
    };
    plan.cells.retain(|cell| {
        !is_gone(&cell.subject)
            && !without_peer.contains(&cell.workload)
            && !topology::uses(&cell.around, &skipped.what)
    });
    plan.peers.retain(|peer| peer.id != skipped.what);
    let cells = &plan.cells;
    topology::retain(&mut plan.backings, cells);
    topology::retain(&mut plan.fronts, cells);
    plan.subjects
        .retain(|subject| cells.iter().any(|cell| cell.subject == subject.id));
    for workload in &mut plan.workloads {
        let cells_of = || cells.iter().filter(|cell| cell.workload == workload.name);
        workload
            .connections
            .retain(|&connections| cells_of().any(|cell| cell.connections == connections));
        workload.arrival = planned_arrival(&workload.arrival, cells_of());
        if let Some(program) = &mut workload.program {
            program
                .counts
                .retain(|&count| cells_of().any(|cell| cell.count == Some(count)));
        }
    }
    plan.workloads
        .retain(|workload| cells.iter().any(|cell| cell.workload == workload.name));
    plan.settings
        .retain(|s| cells.iter().any(|cell| cell.settings.contains_key(&s.name)));
    let workloads = &plan.workloads;
    plan.networks.retain(|network| {
        let mut clients = workloads
            .iter()
            .filter_map(|workload| workload.client.as_ref());
        let mut servers = plan.cells.iter().map(|cell| &cell.around.network);
        clients.any(|client| client.network == network.name)
            || servers.any(|name| *name == network.name)
    });
    if plan.not_run.iter().all(|other| other.what != skipped.what) {
        plan.not_run.push(skipped);
    }
}

/// Draws the order, and drops rows and a reference that are not run.
pub(super) fn finish(plan: &mut Plan) {
    plan.order = order(plan.cells.len(), plan.blocks, plan.seed);
    visits::settle(plan);
    rows::settle(plan);
    let Some(reference) = plan.reference.take() else {
        return;
    };
    if plan.subjects.iter().any(|subject| subject.id == reference) {
        plan.reference = Some(reference);
        return;
    }
    let (why, change) = match plan.not_run.iter().any(|skipped| skipped.what == reference) {
        true => ("is not run", other_reference(plan)),
        false => ("is not among the selected cells", None),
    };
    plan.notes.push(format!(
        "the reference {reference} {why}: no ratios are made{}",
        change.unwrap_or_default()
    ));
}

/// Which subject could be the reference: the first one of those with the most cells, those without settings of their own before
/// others. `None`: it would have nothing beside it.
fn other_reference(plan: &Plan) -> Option<String> {
    let counts = |subject: &PlannedSubject| {
        let cells_of = plan.cells.iter().filter(|cell| cell.subject == subject.id);
        let plain = cells_of.clone().filter(|cell| cell.settings.is_empty());
        (plain.count(), cells_of.count())
    };
    let others = plan.subjects.iter().filter(|s| s.copy_of.is_none());
    let other = others.rev().max_by_key(|subject| counts(subject))?;
    (counts(other).1 < plan.cells.len()).then(|| {
        format!(
            "; to have {0} as the reference, set `reference = \"{0}\"` in [run] of the experiment",
            other.id
        )
    })
}

/// The cells of each block, from 0, in the order in which they are run.
///
/// It is balanced by seed, so that neither time nor neighbourhood favours a cell.
///
/// Every block runs each cell once. Over `n` blocks of `n` cells each cell stands
/// once in each place, and for even `n` each cell follows each other one exactly
/// once; for odd `n` that takes `2n` blocks, in which it does so exactly twice.
/// (E. J. Williams, "Experimental designs balanced for the estimation of residual
/// effects of treatments", Australian Journal of Scientific Research A 2, 1949.)
///
/// Fewer blocks are rows of that square, evenly apart: no cell stands twice in one
/// place, and a cell that is early in one block is late in another, so that a
/// machine which grows slower favours no cell. What is not balanced is which cell
/// begins a block after which one ended the block before.
pub fn order(cells: usize, blocks: u32, seed: u64) -> Vec<Vec<u32>> {
    let mut random = Random::of(seed, "order");
    let mut labels: Vec<u32> = (0..cells as u32).collect();
    random.shuffle(&mut labels);
    let base = zigzag(cells);
    let mut order: Vec<Vec<u32>> = Vec::with_capacity(blocks as usize);
    let mut mirrored = false;
    while order.len() < blocks as usize {
        let count = (blocks as usize - order.len()).min(cells.max(1));
        for shift in shifts(cells, count, &mut random) {
            let mut row: Vec<u32> = base.iter().map(|at| labels[(at + shift) % cells]).collect();
            if mirrored {
                row.reverse();
            }
            order.push(row);
        }
        mirrored = !mirrored;
    }
    order
}

/// 0, 1, n-1, 2, n-2, …: neighbours differ by each amount once.
fn zigzag(cells: usize) -> Vec<usize> {
    let step = |place: usize| match place {
        0 => 0,
        odd if odd % 2 == 1 => odd.div_ceil(2),
        even => cells - even / 2,
    };
    (0..cells).map(step).collect()
}

/// `count` different rows of the square, evenly apart, in random order.
fn shifts(cells: usize, count: usize, random: &mut Random) -> Vec<usize> {
    let start = random.below(cells as u64) as usize;
    let mut shifts: Vec<usize> = (0..count).map(|row| start + row * cells / count).collect();
    random.shuffle(&mut shifts);
    shifts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How often each cell stands in each place, and follows each other one.
    fn counts(order: &[Vec<u32>], cells: usize) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let mut places = vec![vec![0; cells]; cells];
        let mut follows = vec![vec![0; cells]; cells];
        for row in order {
            for (place, &cell) in row.iter().enumerate() {
                places[cell as usize][place] += 1;
            }
            for pair in row.windows(2) {
                follows[pair[0] as usize][pair[1] as usize] += 1;
            }
        }
        (places, follows)
    }

    #[test]
    fn a_seed_gives_the_same_order_and_another_one_another() {
        assert_eq!(order(9, 5, 1), order(9, 5, 1));
        assert_ne!(order(9, 5, 1), order(9, 5, 2));
    }

    #[test]
    fn no_cells_and_one_cell_have_an_order() {
        assert_eq!(order(0, 2, 1), vec![Vec::<u32>::new(); 2]);
        assert_eq!(order(1, 3, 1), [[0], [0], [0]]);
    }

    proptest! {
        #[test]
        fn every_block_is_a_permutation(cells in 0_usize..60, blocks in 0_u32..80, seed: u64) {
            let order = order(cells, blocks, seed);
            prop_assert_eq!(order.len(), blocks as usize);
            for mut row in order {
                row.sort_unstable();
                prop_assert_eq!(row, (0..cells as u32).collect::<Vec<_>>());
            }
        }

        #[test]
        fn whole_squares_balance_places_and_neighbours(cells in 2_usize..24, rounds in 1_u32..3, seed: u64) {
            let squares = if cells % 2 == 0 { rounds } else { 2 * rounds };
            let (places, follows) = counts(&order(cells, cells as u32 * squares, seed), cells);
            prop_assert!(places.iter().flatten().all(|&count| count == squares));
            for (one, row) in follows.iter().enumerate() {
                for (other, &count) in row.iter().enumerate() {
                    prop_assert_eq!(count, if one == other { 0 } else { squares });
                }
            }
        }

        #[test]
        fn a_part_of_a_square_repeats_no_place_and_few_neighbours(
            cells in 2_usize..60, part in 1_u32..100, seed: u64,
        ) {
            let blocks = 1 + part % cells as u32;
            let (places, follows) = counts(&order(cells, blocks, seed), cells);
            prop_assert!(places.iter().flatten().all(|&count| count <= 1));
            let often = if cells % 2 == 0 { 1 } else { 2 };
            prop_assert!(follows.iter().flatten().all(|&count| count <= often));
        }

        #[test]
        fn nobody_is_early_in_all_blocks(cells in 4_usize..60, blocks in 2_u32..60, seed: u64) {
            let order = order(cells, blocks.min(cells as u32), seed);
            let mut sums = vec![0_usize; cells];
            for row in &order {
                for (place, &cell) in row.iter().enumerate() {
                    sums[cell as usize] += place;
                }
            }
            let middle = (cells - 1) as f64 / 2.0;
            for sum in sums {
                let mean = sum as f64 / order.len() as f64;
                prop_assert!((mean - middle).abs() <= cells as f64 / 10.0 + 1.0, "{mean} of {middle}");
            }
        }
    }
}
