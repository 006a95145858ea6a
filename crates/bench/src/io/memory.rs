//! How much memory this process has of its own while a run goes on: the proportional set
//! size of all mappings that are not of files, every 100 ms. Not for: peaks, which the
//! kernel knows better.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::order::IoError;
use crate::BenchError;
use crate::usage::Usage;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Looks that are kept: nearly three hours of them.
const SAMPLES_MAX: usize = 100_000;

/// The samples of a thread beside the run, and what that thread used itself.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Bytes, one value a look; none in a run shorter than the time between looks.
    pub samples: Vec<u64>,
    /// CPU time and switches of the thread that looked.
    pub thread_usage: Usage,
}

/// A thread that looks, until it is stopped.
pub struct Sampler {
    stop: Sender<()>,
    thread: JoinHandle<Memory>,
}

impl Sampler {
    /// Begins to look. The kernel puts the thread on an idle core, where there is one.
    pub fn start() -> Result<Sampler, IoError> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("memory".to_owned());
        let thread = thread.spawn(move || {
            let mut memory = Memory::default();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if memory.samples.len() < SAMPLES_MAX {
                    memory.samples.extend(own_pss_bytes());
                }
            }
            memory.thread_usage = Usage::of_this_thread();
            memory
        });
        let thread = thread.map_err(BenchError::Thread)?;
        Ok(Sampler { stop, thread })
    }

    /// Ends the thread.
    pub fn finish(self) -> Result<Memory, IoError> {
        drop(self.stop);
        Ok(self.thread.join().map_err(|_| BenchError::Panicked)?)
    }
}

fn own_pss_bytes() -> Option<u64> {
    fs::read_to_string("/proc/self/smaps")
        .ok()
        .map(|text| pss_bytes(&text))
}

/// Sum of `Pss` over the mappings of a `smaps` that have no file.
fn pss_bytes(smaps: &str) -> u64 {
    let mut kib = 0;
    let mut is_counted = false;
    for line in smaps.lines() {
        if let Some(rest) = line.strip_prefix("Pss:") {
            let number = rest.trim().trim_end_matches(" kB").parse::<u64>();
            kib += number.unwrap_or(0) * u64::from(is_counted);
        } else if let Some(inode) = inode(line) {
            is_counted = inode == "0";
        }
    }
    kib * 1024
}

/// The inode, where the line is the first of a mapping: `from-to perms offset device inode`.
fn inode(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    let (from, _) = words.next()?.split_once('-')?;
    u64::from_str_radix(from, 16).ok()?;
    words.nth(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_files_do_not_count() {
        let smaps = "\
55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]
Size:                132 kB
Rss:                  12 kB
Pss:                  12 kB
Pss_Dirty:            12 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f0000100000 r--p 00000000 fe:00 1234                       /usr/lib/libc.so.6
Pss:                 500 kB
7f1000000000-7f1000100000 rw-p 00000000 00:00 0
Pss:                   8 kB
7f2000000000-7f2000100000 rw-s 00000000 00:0e 77                         anon_inode:[io_uring]
Pss:                  64 kB
";
        assert_eq!(pss_bytes(smaps), 20 * 1024);
        assert_eq!(pss_bytes(""), 0);
        assert_eq!(pss_bytes("nonsense\nPss: 7 kB\n"), 0);
    }

    #[test]
    fn this_process_has_memory_of_its_own() {
        assert!(own_pss_bytes().unwrap() > 4096);
    }
}
