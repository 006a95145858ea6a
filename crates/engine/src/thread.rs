//! The calling thread's standing with the kernel: its cores, its scheduling, its memory.
//! Not for: starting threads, or other processes.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;

use rustix::mm::MlockAllFlags;
use rustix::thread::{CpuSet, current_timer_slack, set_current_timer_slack};

/// Keeps the calling thread, and what it starts from now on, to `cores` (numbered from 0).
///
/// # Errors
/// None of the cores is there, or this process may not use them.
pub fn pin(cores: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &core in cores.iter().filter(|&&core| core < CpuSet::MAX_CPU as u32) {
        set.set(core as usize);
    }
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The cores that the calling thread may run on, rising.
///
/// # Errors
/// The kernel does not say.
pub fn cores() -> io::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let numbers = 0..CpuSet::MAX_CPU;
    let allowed = numbers.filter(|&core| set.is_set(core));
    Ok(allowed.map(|core| core as u32).collect())
}

/// The scheduling of a thread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Urgency {
    /// In turn with all others (`SCHED_OTHER`).
    Ordinary,
    /// Before all ordinary threads, until it waits (`SCHED_FIFO`). From 1, the least
    /// urgent, to 99. The kernel's throttle (`kernel.sched_rt_runtime_us`) may still
    /// take the core away from it.
    Fifo(u8),
}

/// Sets the calling thread's urgency. What it starts is ordinary.
///
/// # Errors
/// The user may not (`RLIMIT_RTPRIO`, `CAP_SYS_NICE`), or there is no such priority.
pub fn set_urgency(urgency: Urgency) -> io::Result<()> {
    let (policy, priority) = match urgency {
        Urgency::Ordinary => (libc::SCHED_OTHER, 0),
        Urgency::Fifo(priority) => (libc::SCHED_FIFO, libc::c_int::from(priority)),
    };
    // SAFETY: an all-zero sched_param is a valid one: integers only.
    let mut parameter: libc::sched_param = unsafe { MaybeUninit::zeroed().assume_init() };
    parameter.sched_priority = priority;
    // SAFETY: the call reads one sched_param, which lives across it; 0 is the calling thread.
    let result = unsafe {
        libc::sched_setscheduler(0, policy | libc::SCHED_RESET_ON_FORK, &raw const parameter)
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Keeps all memory of this process, what it has and what it will have, from being paged out.
///
/// # Errors
/// The user may not lock so much (`RLIMIT_MEMLOCK`, `CAP_IPC_LOCK`).
pub fn lock_memory() -> io::Result<()> {
    Ok(rustix::mm::mlockall(
        MlockAllFlags::CURRENT | MlockAllFlags::FUTURE,
    )?)
}

/// The least by which the kernel can be had to prolong a thread's waits.
pub(crate) const PRECISE_SLACK_NS: NonZeroU64 = NonZeroU64::new(1).expect("not zero");

/// While it lives, the kernel does not prolong the calling thread's waits; by default it may
/// by 50 µs.
pub(crate) struct PreciseTimers {
    /// None where the kernel does not say: then nothing was changed.
    before: Option<u64>,
}

impl PreciseTimers {
    pub fn new() -> PreciseTimers {
        let before = current_timer_slack().ok();
        if before.is_some() {
            // Refused nowhere that the question is answered.
            let _ = set_current_timer_slack(Some(PRECISE_SLACK_NS));
        }
        PreciseTimers { before }
    }
}

impl Drop for PreciseTimers {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = set_current_timer_slack(NonZeroU64::new(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_core_alone() {
        let tested = std::thread::spawn(|| {
            let before = cores().unwrap();
            pin(&before[..1]).unwrap();
            assert_eq!(cores().unwrap(), before[..1]);
            assert!(pin(&[]).is_err());
        });
        tested.join().unwrap();
    }

    #[test]
    fn waits_are_as_prolonged_as_before_once_precise_timers_are_gone() {
        let before = current_timer_slack().unwrap();
        let precise = PreciseTimers::new();
        assert_eq!(current_timer_slack().unwrap(), 1);
        drop(precise);
        assert_eq!(current_timer_slack().unwrap(), before);
    }

    #[test]
    fn there_is_no_priority_of_200() {
        let wrong = set_urgency(Urgency::Fifo(200)).unwrap_err();
        assert_eq!(wrong.kind(), io::ErrorKind::InvalidInput);
        set_urgency(Urgency::Ordinary).unwrap();
    }
}
