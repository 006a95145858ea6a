//! What the kernel has counted for this process and its threads. Not for: other processes.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use prony_base::Nanos;

/// CPU time and switches, counted from the start or between two looks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Times that a thread waited.
    pub voluntary: u64,
    /// Times that the core was taken away from a thread.
    pub involuntary: u64,
    /// Peak resident memory of the process so far.
    pub peak_bytes: u64,
}

impl Usage {
    /// Of the whole process so far, threads that have ended included.
    pub fn of_this_process() -> Usage {
        let usage = Usage::read(UsageWho::RUSAGE_SELF);
        Usage {
            peak_bytes: peak_bytes().unwrap_or(usage.peak_bytes),
            ..usage
        }
    }

    /// Of the calling thread so far.
    pub fn of_this_thread() -> Usage {
        Usage::read(UsageWho::RUSAGE_THREAD)
    }

    fn read(who: UsageWho) -> Usage {
        // It cannot fail with these arguments.
        let Ok(usage) = getrusage(who) else {
            return Usage::default();
        };
        Usage {
            user: nanos(usage.user_time()),
            system: nanos(usage.system_time()),
            voluntary: usage.voluntary_context_switches() as u64,
            involuntary: usage.involuntary_context_switches() as u64,
            peak_bytes: usage.max_rss() as u64 * 1024,
        }
    }

    /// The usage since `earlier`, without what `others` used; the peak stays.
    pub fn since(self, earlier: Usage, others: Usage) -> Usage {
        let rise = |now: u64, then: u64, other: u64| now.saturating_sub(then).saturating_sub(other);
        Usage {
            user: Nanos(rise(self.user.0, earlier.user.0, others.user.0)),
            system: Nanos(rise(self.system.0, earlier.system.0, others.system.0)),
            voluntary: rise(self.voluntary, earlier.voluntary, others.voluntary),
            involuntary: rise(self.involuntary, earlier.involuntary, others.involuntary),
            peak_bytes: self.peak_bytes,
        }
    }

    /// CPU time in all.
    pub fn cpu(self) -> Nanos {
        Nanos(self.user.0 + self.system.0)
    }
}

/// Peak resident memory of this process since it executed its program; what getrusage gives has that
/// of the process which started it, too. `None` where `/proc` does not tell.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn nanos(time: TimeVal) -> Nanos {
    Nanos((time.tv_sec() as u64) * 1_000_000_000 + (time.tv_usec() as u64) * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_taken_off() {
        let usage = |user, voluntary| Usage {
            user: Nanos(user),
            voluntary,
            peak_bytes: 9,
            ..Usage::default()
        };
        let rest = usage(100, 9).since(usage(20, 2), usage(30, 3));
        assert_eq!(rest, usage(50, 4));
        assert_eq!(usage(1, 1).since(usage(2, 2), usage(0, 0)), usage(0, 0));
    }

    #[test]
    fn a_thread_is_a_part_of_its_process() {
        let thread = Usage::of_this_thread();
        let process = Usage::of_this_process();
        assert!(process.cpu() >= thread.cpu() && process.peak_bytes > 1 << 20);
    }
}
