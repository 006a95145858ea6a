//! Stacks of addresses to folded stacks of names. Pure: names come from the caller.
//!
//! The form is that of Brendan Gregg's stackcollapse, which every tool for flame graphs reads: a line for each stack, its
//! frames from the outermost to the innermost with `;` between them, a space, how often it was seen.

use std::collections::BTreeMap;

/// Addresses from here on are no addresses but marks: what follows is the kernel's, the user's, or a guest's.
const MARKS: u64 = -4095_i64 as u64;
const KERNEL: u64 = -128_i64 as u64;
const USER: u64 = -512_i64 as u64;
/// Frames of a stack that are kept, the innermost; the kernel gives at most 127.
const FRAMES_MAX: usize = 128;
/// Characters of a name that are kept: names of C++ templates have no end.
const NAME_CHARS_MAX: usize = 120;

/// A stack, innermost frame first.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Stack {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Addresses in the kernel.
    pub kernel: Vec<u64>,
    /// Addresses in the process, which called it.
    pub user: Vec<u64>,
}

/// Takes a chain of the kernel apart into addresses in the kernel and those in the process.
pub fn split(chain: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let (mut kernel, mut user) = (Vec::new(), Vec::new());
    let mut whose = 0;
    for &address in chain.iter().take(FRAMES_MAX) {
        match (address, whose) {
            (MARKS.., _) => whose = address,
            (_, KERNEL) => kernel.push(address),
            (_, USER) => user.push(address),
            _ => {}
        }
    }
    (kernel, user)
}

/// Gives names to addresses.
pub trait Names {
    /// The function of the kernel at `address`.
    fn kernel(&mut self, address: u64) -> String;
    /// The function of a process at `address`; `None`: no code of the process is there, as where a program keeps no frame
    /// pointers and the stack was followed into its data.
    fn user(&mut self, pid: u32, address: u64) -> Option<String>;
    /// The name of a thread.
    fn thread(&mut self, pid: u32, tid: u32) -> String;
}

/// The folded stacks of `stacks`, with how often each was seen; sorted, so that equal ones are one line.
pub fn folded(stacks: &BTreeMap<Stack, u64>, names: &mut dyn Names) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, count) in stacks {
        *lines.entry(line(stack, names)).or_default() += count;
    }
    let lines = lines
        .iter()
        .map(|(line, count)| format!("{line} {count}\n"));
    lines.collect()
}

fn line(stack: &Stack, names: &mut dyn Names) -> String {
    // Callers are known by where they go on after the call, which may already be the next function.
    let at = |index: usize, address: u64| address - u64::from(index > 0 && address > 0);
    let mut frames: Vec<String> = Vec::new();
    for (index, &address) in stack.kernel.iter().enumerate() {
        frames.push(format!("{}_[k]", plain(&names.kernel(at(index, address)))));
    }
    for (index, &address) in stack.user.iter().enumerate() {
        match names.user(stack.pid, at(index, address)) {
            Some(name) => frames.push(plain(&name)),
            None if frames.is_empty() => frames.push("[unknown]".to_owned()),
            None => {}
        }
    }
    frames.push(plain(&names.thread(stack.pid, stack.tid)));
    frames.reverse();
    frames.join(";")
}

/// A name as it may stand between semicolons, on one line, and not without end.
fn plain(name: &str) -> String {
    let (body, mark) = match name.strip_suffix("_[j]") {
        Some(body) => (body, "_[j]"),
        None => (name, ""),
    };
    let sound = |c: char| match c {
        ';' => ':',
        c if c.is_control() => '?',
        c => c,
    };
    let mut name_part: String = body.chars().take(NAME_CHARS_MAX).map(sound).collect();
    if body.chars().nth(NAME_CHARS_MAX).is_some() {
        name_part.push('…');
    }
    name_part + mark
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Told;

    impl Names for Told {
        fn kernel(&mut self, address: u64) -> String {
            format!("k{address:x}")
        }

        fn user(&mut self, pid: u32, address: u64) -> Option<String> {
            match address {
                0xdead.. => None,
                0x77 => Some("operator;()<very\nlong>".repeat(20)),
                0x88 => Some("handle_[j]".to_owned()),
                _ => Some(format!("u{pid}.{address:x}")),
            }
        }

        fn thread(&mut self, _: u32, tid: u32) -> String {
            ["main", "worker"][tid as usize % 2].to_owned()
        }
    }

    fn stack(tid: u32, kernel: &[u64], user: &[u64]) -> Stack {
        Stack {
            pid: 1,
            tid,
            kernel: kernel.to_vec(),
            user: user.to_vec(),
        }
    }

    #[test]
    fn a_chain_is_taken_apart_at_its_marks() {
        let chain = [KERNEL, 0xf1, 0xf2, USER, 0x11, 0x22];
        assert_eq!(split(&chain), (vec![0xf1, 0xf2], vec![0x11, 0x22]));
        // A guest's frames are left out, and frames without a mark are not guessed at.
        assert_eq!(split(&[-2048_i64 as u64, 5, USER, 6]), (vec![], vec![6]));
        assert_eq!(split(&[5, 6]), (vec![], vec![]));
    }

    #[test]
    fn stacks_are_folded_from_the_thread_to_the_innermost_function() {
        let stacks = BTreeMap::from([
            (stack(0, &[0xf1, 0xf3], &[0x11, 0x23]), 5),
            // The same functions in a thread of the same name.
            (stack(2, &[0xf1, 0xf3], &[0x11, 0x23]), 2),
            (stack(1, &[], &[0x11]), 1),
            // Followed into data: the innermost function alone is certain.
            (stack(1, &[], &[0x11, 0xdeae, 0xdeaf]), 3),
            (stack(1, &[], &[0xdeae]), 4),
            (stack(1, &[0xf1], &[]), 1),
            (stack(1, &[], &[0x77]), 1),
            (stack(1, &[], &[0x88, 0x12]), 1),
        ]);
        insta::assert_snapshot!(folded(&stacks, &mut Told));
        assert_eq!(folded(&BTreeMap::new(), &mut Told), "");
    }
}
