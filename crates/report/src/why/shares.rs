//! The trials that profile a cell, taken together, and where their samples fell, from folded stacks. Pure; a line that is none is passed over.

use std::collections::BTreeMap;

use prony_record::{GeneratorKind, Outcome, ProfileReport, Trial};

use crate::Run;

/// What frames of the kernel end in.
const KERNEL: &str = "_[k]";
/// Beginnings of the kernel's functions that every system call on a file or socket goes through, directly or by io_uring, or every interrupt: they
/// say that the kernel was called, and not what for.
const GENERAL: &str = "entry_ asm_ sysvec_ do_syscall_ x64_sys_call el0 el1 invoke_syscall __x64_sys_ __arm64_sys_ __se_sys_ __do_sys_ __sys_ \
    ___sys_ ____sys_ ksys_ vfs_ new_sync_ do_iter_ do_readv do_writev io_ __io_ sock_ __sock_ inet";

/// How samples are shared out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shares {
    /// All samples.
    pub total: u64,
    /// Those in the kernel.
    pub kernel: u64,
    /// Samples by function, the most first: each is counted once. In the kernel by the outermost function that is not
    /// general, in user mode by the innermost.
    pub by_function: Vec<(String, u64)>,
}

/// One line: its frames from the outermost, the first of which is the thread, and its samples.
fn line(text: &str) -> Option<(Vec<&str>, u64)> {
    let (frames, count) = text.rsplit_once(' ')?;
    Some((frames.split(';').collect(), count.parse().ok()?))
}

/// All samples of folded stacks.
pub fn total(folded: &str) -> u64 {
    let counts = folded.lines().filter_map(line).map(|(_, count)| count);
    counts.fold(0, u64::saturating_add)
}

/// Shares them out.
pub fn shares(folded: &str) -> Shares {
    let mut shares = Shares::default();
    let mut by_function: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, count) in folded.lines().filter_map(line) {
        shares.total = shares.total.saturating_add(count);
        let kernel: Vec<&str> = frames
            .iter()
            .filter_map(|f| f.strip_suffix(KERNEL))
            .collect();
        let telling = kernel.iter().find(|name| !is_general(name));
        let name = match telling.or(kernel.last()) {
            Some(name) => name,
            None => *frames.last().unwrap_or(&""),
        };
        if !kernel.is_empty() {
            shares.kernel = shares.kernel.saturating_add(count);
        }
        let of = by_function.entry(readable(name)).or_default();
        *of = of.saturating_add(count);
    }
    shares.by_function = by_function.into_iter().collect();
    shares
        .by_function
        .sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    shares
}

fn is_general(name: &str) -> bool {
    let mut beginnings = GENERAL.split(' ');
    beginnings.any(|beginning| name.starts_with(beginning))
}

/// Without the mark of what a compiler made at run time.
fn readable(name: &str) -> String {
    name.strip_suffix("_[j]").unwrap_or(name).to_owned()
}

/// All trials of a cell that profile it: what one did not see, another did.
pub(crate) struct Seen<'a> {
    /// The cell.
    pub(crate) cell: &'a str,
    /// The trial with samples and clocks.
    pub(crate) main: Option<(&'a Trial, &'a ProfileReport)>,
    /// The trial by strace.
    pub(crate) strace: Option<(&'a Trial, &'a ProfileReport)>,
}

/// What was seen of a cell; `None`: nothing.
pub(crate) fn seen<'a>(cell: &'a str, trials: &[&'a Trial]) -> Option<Seen<'a>> {
    let own = |is_main: bool| {
        // Of one that was done again after an interruption the last record counts.
        let mut own = trials.iter().rev().filter(|trial| {
            trial.cell == cell
                && trial.outcome == Outcome::Measured
                && (trial.generator == GeneratorKind::Profile) == is_main
        });
        own.find_map(|trial| Some((*trial, trial.profile.as_ref()?)))
    };
    let (main, strace) = (own(true), own(false));
    (main.is_some() || strace.is_some()).then_some(Seen { cell, main, strace })
}

impl Seen<'_> {
    /// The folded stacks, where there are any.
    pub(crate) fn folded<'r>(&self, run: &'r Run) -> Option<&'r str> {
        let name = self.main?.1.folded.as_ref()?;
        let text = run.profiles.get(name)?;
        (total(text) > 0).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDED: &str = "\
HttpCon;main;serve;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];__x64_sys_writev_[k];vfs_writev_[k];sock_write_iter_[k];tcp_sendmsg_[k];tcp_push_[k] 62
HttpCon;main;serve;entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];__x64_sys_epoll_wait_[k];do_epoll_wait_[k];schedule_[k] 18
HttpCon;main;serve;entry_SYSCALL_64_after_hwframe_[k] 1
HttpCon;main;serve;parse 9
HttpCon;main;handle_[j] 6
HttpCon;[unknown] 4
";

    #[test]
    fn the_kernel_is_named_by_what_it_was_called_for_and_user_mode_by_the_innermost() {
        let shares = shares(FOLDED);
        assert_eq!((shares.total, shares.kernel), (100, 81));
        let said: Vec<String> = shares
            .by_function
            .iter()
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        assert_eq!(
            said,
            [
                "tcp_sendmsg 62",
                "do_epoll_wait 18",
                "parse 9",
                "handle 6",
                "[unknown] 4",
                "entry_SYSCALL_64_after_hwframe 1"
            ]
        );
        let sum: u64 = shares.by_function.iter().map(|(_, count)| count).sum();
        assert_eq!(sum, shares.total);
    }

    #[test]
    fn what_is_no_folded_stack_is_passed_over() {
        let text = "no number\n;; 3\n\n 4\nx 18446744073709551615\nx 7\n";
        assert_eq!(total(text), u64::MAX);
        assert_eq!(shares(text).total, u64::MAX);
        assert_eq!(shares(""), Shares::default());
    }
}
