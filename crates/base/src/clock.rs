//! The clocks of this machine. Only the crates that touch the machine call
//! these; the pure ones take time as an argument.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::units::{Instant, Nanos};

fn nanos(t: Timespec) -> u64 {
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Now, on `CLOCK_MONOTONIC`: never steps, and is the same for all processes
/// of the machine.
pub fn monotonic() -> Instant {
    Instant(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Nanoseconds since the Unix epoch by the wall clock, which may step: for
/// dates in a record, never for a length of time.
pub fn unix_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// CPU time that this process has used, all its threads together.
pub fn process_cpu() -> Nanos {
    Nanos(nanos(clock_gettime(ClockId::ProcessCPUTime)))
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Nanos {
    Nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_never_steps_back() {
        let mut last = monotonic();
        for _ in 0..1_000 {
            let now = monotonic();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_thread_uses_no_more_than_its_process() {
        let thread = thread_cpu();
        assert!(process_cpu() >= thread);
    }
}
