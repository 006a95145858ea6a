//! A fixed piece of work, timed before and after each trial on the subject's
//! core: when it takes longer after than before, the machine changed under the
//! trial. Not a benchmark of the machine: only its drift means anything.

use std::hint::black_box;

use prony_base::clock;
use prony_record::Canary;

/// Rounds of which the fastest counts, so that one interruption does not.
const ROUNDS: u32 = 5;
const COMPUTATIONS: u64 = 2_000_000;
const SYSCALLS: u32 = 10_000;

/// Times the canary on the first of `cores` (none: wherever the thread is). Takes about 20 ms.
pub fn run(cores: &[u32]) -> Canary {
    let first = &cores[..cores.len().min(1)];
    let timed = || Canary {
        compute_ns: fastest(compute),
        syscalls_ns: fastest(call),
    };
    // A core that cannot be had gives no canary; the trial says that it is not pinned.
    crate::launch::on_cores(first, timed).unwrap_or_default()
}

fn fastest(work: fn()) -> u64 {
    let timed = |_| {
        let start = clock::monotonic();
        work();
        clock::monotonic().since(start).0
    };
    (0..ROUNDS).map(timed).min().unwrap_or(0)
}

/// A chain of multiplications, each of which needs the one before it.
fn compute() {
    let mut x = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..COMPUTATIONS {
        x ^= x << 13;
        x ^= x >> 7;
        x = x.wrapping_mul(0x2545_F491_4F6C_DD1D);
    }
    black_box(x);
}

/// The cheapest system call that libraries do not answer themselves.
fn call() {
    for _ in 0..SYSCALLS {
        black_box(rustix::process::getppid());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canary_measures_both_kinds_of_work() {
        let canary = run(&[]);
        assert!(canary.compute_ns > 0 && canary.syscalls_ns > 0);
    }
}
