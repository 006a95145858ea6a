//! Setting a ring up, and what to do where the kernel refuses.

use std::io;

use io_uring::IoUring;

use crate::config::{Config, Error};

/// A ring of the size that the settings ask for.
pub(super) fn build(config: &Config) -> io::Result<IoUring> {
    // Room for a burst on every connection; what does not fit waits in the kernel.
    let completions = config.connections_hint.saturating_mul(4);
    let least = config.submissions_max.next_power_of_two() * 2;
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        // The kernel says in shared memory when there is something to ask it for.
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_clamp()
        .setup_cqsize(completions.clamp(least, 65_536).next_power_of_two())
        .build(config.submissions_max)
}

/// The error of a setting up that failed, with advice.
pub(super) fn unavailable(cause: io::Error) -> Error {
    let advice = match cause.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "set the sysctl kernel.io_uring_disabled to 0, or let the container's seccomp \
             profile allow io_uring_setup, or use the driver epoll"
        }
        Some(libc::ENOSYS | libc::EINVAL) => {
            "it needs Linux 6.1 or newer, and a sandbox that passes io_uring on; \
             use the driver epoll"
        }
        Some(libc::ENOMEM) => {
            "raise the limit of locked memory (ulimit -l), or use the driver epoll"
        }
        Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files (ulimit -n)",
        _ => "use the driver epoll",
    };
    Error::RingUnavailable { cause, advice }
}
