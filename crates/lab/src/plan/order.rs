//! In which order the cells are run: balanced by seed, so that neither time nor
//! neighbourhood favours a cell.
//!
//! Every block runs each cell once. Over `n` blocks of `n` cells each cell stands
//! once in each place, and for even `n` each cell follows each other one exactly
//! once; for odd `n` that takes `2n` blocks, in which it does so exactly twice.
//! (E. J. Williams, "Experimental designs balanced for the estimation of residual
//! effects of treatments", Australian Journal of Scientific Research A 2, 1949.)
//!
//! Fewer blocks are rows of that square, evenly apart: no cell stands twice in one
//! place, and a cell that is early in one block is late in another, so that a
//! machine which grows slower favours no cell. What is not balanced is which cell
//! begins a block after which one ended the block before.

use prony_base::Random;

/// For each block the cells, from 0, in the order in which they are run.
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
