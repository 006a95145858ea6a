//! Which trials others disturbed, by who used the cores: what was measured has no part in it.

use std::collections::BTreeMap;

use crate::trial::{Role, Trial};

/// Part of the window that others used of a core of either side, beyond what is usual in the cell, from which a trial is disturbed.
pub const DISTURBED: f64 = 0.05;
/// And the least time: the kernel counts in ticks of 10 ms.
const TIME_MIN_NS: f64 = 50e6;

/// The blocks of one server's cell that others disturbed, of its measured trials, each with the part of its window that these used: processes
/// of neither side, and what the hypervisor gave away. What is usual in the cell (its median: what the kernel does for it in threads of its own,
/// the lab on a shared core) is no disturbance. Not of programs, whose cores are as busy as they make them.
pub fn disturbed<'a>(trials: impl IntoIterator<Item = &'a Trial>) -> BTreeMap<u32, f64> {
    let all = trials
        .into_iter()
        .filter_map(|trial| Some((trial, taken(trial)?)));
    let all: Vec<(&Trial, f64)> = all.collect();
    let mut shares: Vec<f64> = all.iter().map(|(_, share)| *share).collect();
    shares.sort_unstable_by(f64::total_cmp);
    let usual = shares
        .get(shares.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(0.0);
    let beyond = all.into_iter().map(|(trial, share)| (trial, share - usual));
    let over = beyond.filter(|(trial, share)| {
        *share > DISTURBED && share * trial.sampled_ns as f64 >= TIME_MIN_NS
    });
    over.map(|(trial, share)| (trial.block, share)).collect()
}

/// The larger part of its window that a side's cores were used by none of its processes. `None` where cores were not a side's own.
fn taken(trial: &Trial) -> Option<f64> {
    if trial.sampled_ns == 0 || trial.load.is_none() || trial.program.is_some() {
        return None;
    }
    let sides = [
        &[Role::Subject, Role::Backing, Role::Front][..],
        &[Role::Generator, Role::Peer],
    ];
    let of_side = |roles: &[Role]| {
        let cores = trial
            .cores
            .iter()
            .filter(|core| core.role.is_some_and(|role| roles.contains(&role)));
        let used = cores.map(|core| {
            let others = core.busy_ns as f64 + core.steal_ns as f64;
            others - core.ksoftirqd_ns.unwrap_or(0) as f64
        });
        let by_prony = trial
            .processes
            .iter()
            .filter(|process| roles.contains(&process.role));
        let by_prony: f64 = by_prony.map(|process| process.cpu_ns as f64).sum();
        let used = used.reduce(|sum, one| sum + one)?;
        Some((used - by_prony) / trial.sampled_ns as f64)
    };
    sides.into_iter().filter_map(of_side).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreUse, LoadReport, ProcessRecord};

    /// A second in which the subject used so many milliseconds of its core, which was busy for so many.
    fn trial(block: u32, own_ms: u64, busy_ms: u64, steal_ms: u64) -> Trial {
        let core = |core, role, busy: u64, steal: u64| CoreUse {
            core,
            role: Some(role),
            busy_ns: busy * 1_000_000,
            steal_ns: steal * 1_000_000,
            ksoftirqd_ns: None,
        };
        let process = |role, cpu_ms: u64| ProcessRecord {
            role,
            cpu_ns: cpu_ms * 1_000_000,
            ..ProcessRecord::default()
        };
        Trial {
            block,
            sampled_ns: 1_000_000_000,
            load: Some(LoadReport::default()),
            cores: vec![
                core(0, Role::Subject, busy_ms, steal_ms),
                core(1, Role::Generator, 400, 0),
            ],
            processes: vec![
                process(Role::Subject, own_ms),
                process(Role::Generator, 390),
            ],
            ..Trial::default()
        }
    }

    #[test]
    fn what_others_used_of_a_core_disturbs_and_what_is_usual_does_not() {
        // The kernel always does a tenth more than the subject's own clock has.
        let mut trials: Vec<Trial> = (0..6).map(|block| trial(block, 880, 980, 0)).collect();
        assert!(disturbed(&trials).is_empty());
        trials[2] = trial(2, 600, 1000, 0);
        trials[4] = trial(4, 800, 900, 100);
        // However slow the subject was, nobody else was there.
        trials[5] = trial(5, 200, 300, 0);
        let found = disturbed(&trials);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [2, 4]);
        assert!((found[&2] - 0.3).abs() < 1e-9 && (found[&4] - 0.1).abs() < 1e-9);
        // A few ticks of a short window may be the counting's.
        for short in &mut trials {
            short.sampled_ns /= 100;
        }
        assert!(disturbed(&trials[..1]).is_empty());
    }

    #[test]
    fn a_trial_without_cores_of_its_own_tells_nothing() {
        let mut alone = trial(0, 0, 1000, 0);
        alone.cores.iter_mut().for_each(|core| core.role = None);
        let usual = trial(1, 1000, 1000, 0);
        assert!(disturbed([&alone, &usual, &usual]).is_empty());
    }
}
