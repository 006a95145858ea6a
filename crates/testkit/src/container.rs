//! What a container refuses, for a test's commands: the system calls that the default filters
//! of Docker and Podman answer with an error, of those that Prony makes or may be tempted to.
//!
//! Not for: the rest of a container. Files, networks and capabilities stay as they are.
//!
//! No container engine is needed, and no unsafe code between fork and exec: a filter is of a
//! thread and of what it starts, so that a test's commands have it when they are started from
//! a thread that has it.

use std::collections::BTreeMap;
use std::thread;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

/// How a container's engine refuses a system call that it does not allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// "Operation not permitted", as Docker and Podman do.
    NotPermitted,
    /// "Function not implemented", as where the filter is older than the system call.
    NotImplemented,
}

impl Refusal {
    fn action(self) -> SeccompAction {
        let code = match self {
            Refusal::NotPermitted => libc::EPERM,
            Refusal::NotImplemented => libc::ENOSYS,
        };
        SeccompAction::Errno(code.unsigned_abs())
    }
}

/// Does `work` on a thread of its own, from which commands start as in a container: without
/// io_uring, which is refused in this way, without namespaces, mounts and `perf`.
///
/// # Panics
/// Where `work` does, and where this machine has no filters of system calls.
pub fn in_container<T: Send>(refusal: Refusal, work: impl FnOnce() -> T + Send) -> T {
    let calls = |calls: &[libc::c_long]| calls.iter().map(|&call| (call, vec![])).collect();
    let io_uring = calls(&[
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
    ]);
    let mut privileged: BTreeMap<libc::c_long, Vec<SeccompRule>> = calls(&[
        libc::SYS_bpf,
        libc::SYS_mount,
        libc::SYS_perf_event_open,
        libc::SYS_pivot_root,
        libc::SYS_setns,
        libc::SYS_umount2,
        libc::SYS_unshare,
    ]);
    privileged.insert(libc::SYS_clone, new_namespaces());
    let not_permitted = Refusal::NotPermitted.action();
    // Its flags are in memory, where no filter sees them; the C library then takes `clone`.
    let unseen = calls(&[libc::SYS_clone3]);
    let filters = [
        program(io_uring, refusal.action()),
        program(privileged, not_permitted),
        program(unseen, Refusal::NotImplemented.action()),
    ];
    thread::scope(|scope| {
        let contained = scope.spawn(move || {
            for filter in &filters {
                apply_filter(filter).expect("the kernel has filters of system calls");
            }
            work()
        });
        match contained.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// `clone` with any of the flags that make a namespace.
fn new_namespaces() -> Vec<SeccompRule> {
    let flags = [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ];
    let with = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_set, flag);
        SeccompRule::new(vec![condition.expect("it has six arguments")])
    };
    let rules = flags.into_iter().map(with);
    rules
        .map(|rule| rule.expect("it has a condition"))
        .collect()
}

fn program(rules: BTreeMap<libc::c_long, Vec<SeccompRule>>, refused: SeccompAction) -> BpfProgram {
    let machine: TargetArch = std::env::consts::ARCH.try_into().expect("it has filters");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine);
    filter
        .and_then(BpfProgram::try_from)
        .expect("a filter is short")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_contained_command_makes_no_namespaces_and_whoever_started_it_is_free() {
        let unshared = || {
            let output = Command::new("unshare").args(["-r", "true"]).output();
            output.expect("unshare is there").stderr
        };
        let free = unshared();
        let contained = in_container(Refusal::NotPermitted, unshared);
        let said = String::from_utf8_lossy(&contained).into_owned();
        assert!(said.contains("Operation not permitted"), "{said}");
        assert_eq!(unshared(), free, "the filter is of one thread");
    }
}
