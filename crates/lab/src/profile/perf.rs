//! The kernel's samples and counters of single threads, through `perf_event_open`.
//!
//! A ring of samples is of one thread on one core, since the kernel gives no others that threads and processes which start
//! later inherit. Not for: what the samples mean ([`super::fold`]).

use std::io;

use perf_event::events::{Software, Tracepoint};
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use serde::{Deserialize, Serialize};

/// Samples a second: a prime, so that what a program does every millisecond is not always seen at the same point of it.
pub const RATE_PER_S: u32 = 997;

/// The time that samples are of.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Time in user mode alone.
    User,
    /// Time in user mode and in the kernel.
    Kernel,
}

/// Where the kernel says its tracepoints' numbers, which root alone may read.
const SYSTEM_CALLS: [&str; 2] = [
    "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
    "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id",
];
/// Types of records in a ring, by the kernel's numbers.
const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
/// Bytes of a ring where there are few and where there are many: what comes within 100 ms, several times over.
const RING_BYTES: [usize; 2] = [256 << 10, 64 << 10];
/// Rings up to which they are large.
const RINGS_FEW: usize = 8;

fn cpu_clock(rate_per_s: u32, reach: Reach) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .sample_frequency(u64::from(rate_per_s))
        .sample(SampleFlag::TID)
        .sample(SampleFlag::CALLCHAIN)
        .exclude_kernel(reach == Reach::User)
        .exclude_hv(reach == Reach::User)
        .inherit(true);
    builder
}

/// Whether this process may take samples of itself, and so of its children.
pub fn try_sampling(reach: Reach) -> io::Result<()> {
    let mut builder = cpu_clock(RATE_PER_S, reach);
    builder.observe_self().one_cpu(0).build().map(drop)
}

/// The number of the tracepoint of system calls, where this process may count there.
pub fn try_counting() -> io::Result<u64> {
    let read = |path: &&str| std::fs::read_to_string(path);
    let text = read(&SYSTEM_CALLS[0]).or_else(|_| read(&SYSTEM_CALLS[1]))?;
    let number = text.trim().parse().map_err(io::Error::other)?;
    let mut builder = system_calls(number);
    builder.observe_self().build().map(|_| number)
}

fn system_calls(tracepoint: u64) -> Builder<'static> {
    let mut builder = Builder::new(Tracepoint::with_id(tracepoint));
    // A system call enters the kernel: counting there is what is asked for.
    builder
        .exclude_kernel(false)
        .exclude_hv(false)
        .inherit(true);
    builder
}

/// What a thread's ring held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found {
    /// A stack, innermost frame first, as the kernel gives it ([`super::fold::split`]).
    Stack {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// Addresses, and marks of whose they are.
        chain: Vec<u64>,
    },
    /// The number of samples that were lost: the buffer was full.
    Lost(u64),
}

/// Samples of one thread, and of what it starts, on one core.
pub struct Ring(Sampler);

impl Ring {
    /// Opens it; nothing is sampled yet. `rings`: how many there are to be.
    pub fn open(
        tid: u32,
        core: u32,
        rings: usize,
        rate_per_s: u32,
        reach: Reach,
    ) -> io::Result<Ring> {
        let bytes = RING_BYTES[usize::from(rings > RINGS_FEW)];
        let mut builder = cpu_clock(rate_per_s, reach);
        builder
            .observe_pid(tid.cast_signed())
            .one_cpu(core as usize);
        Ok(Ring(builder.build()?.sampled(bytes)?))
    }

    /// Begins to take samples.
    pub fn enable(&mut self) -> io::Result<()> {
        self.0.enable()
    }

    /// Takes no more samples.
    pub fn disable(&mut self) -> io::Result<()> {
        self.0.disable()
    }

    /// The next record that is waiting to be read.
    pub fn next(&mut self) -> Option<Found> {
        while let Some(record) = self.0.next_record() {
            if let Some(found) = found(record.ty(), &record.to_contiguous()) {
                return Some(found);
            }
        }
        None
    }
}

/// System calls of one thread, and of what it starts.
pub struct SystemCalls(Counter);

impl SystemCalls {
    /// Opens it; nothing is counted yet.
    pub fn open(tid: u32, tracepoint: u64) -> io::Result<SystemCalls> {
        let mut builder = system_calls(tracepoint);
        Ok(SystemCalls(builder.observe_pid(tid.cast_signed()).build()?))
    }

    /// Begins to count.
    pub fn enable(&mut self) -> io::Result<()> {
        self.0.enable()
    }

    /// Ends the counting, and says how many there were.
    pub fn end(&mut self) -> io::Result<u64> {
        self.0.disable()?;
        self.0.read()
    }
}

/// Reads a record of a ring of [`cpu_clock`]; `None`: it says nothing of samples, or is cut off.
fn found(kind: u32, bytes: &[u8]) -> Option<Found> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    match kind {
        SAMPLE => {
            let frames = usize::try_from(long(8)?).ok()?;
            let chain = bytes.get(16..)?.chunks_exact(8).take(frames);
            let chain = chain.map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap_or_default()));
            Some(Found::Stack {
                pid: word(0)?,
                tid: word(4)?,
                chain: chain.collect(),
            })
        }
        LOST => Some(Found::Lost(long(8)?)),
        LOST_SAMPLES => Some(Found::Lost(long(0)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32], longs: &[u64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        let longs = longs.iter().flat_map(|long| long.to_ne_bytes());
        words.chain(longs).collect()
    }

    #[test]
    fn a_record_is_a_stack_of_a_thread_or_says_what_was_lost() {
        let sample = bytes(&[7, 9], &[2, 0xa0, 0xb0]);
        let stack = Found::Stack {
            pid: 7,
            tid: 9,
            chain: vec![0xa0, 0xb0],
        };
        assert_eq!(found(SAMPLE, &sample), Some(stack));
        assert_eq!(found(LOST, &bytes(&[], &[1, 5])), Some(Found::Lost(5)));
        assert_eq!(found(LOST_SAMPLES, &bytes(&[], &[6])), Some(Found::Lost(6)));
        assert_eq!(found(3, &sample), None);
    }

    #[test]
    fn a_record_that_is_cut_off_is_never_read_beyond_its_end() {
        let sample = bytes(&[7, 9], &[2, 0xa0, 0xb0]);
        for length in 0..sample.len() {
            let read = found(SAMPLE, &sample[..length]);
            assert!(
                match read {
                    Some(Found::Stack { chain, .. }) => length >= 16 && chain.len() < 2,
                    Some(Found::Lost(_)) => false,
                    None => length < 16,
                },
                "{length}"
            );
        }
    }
}
