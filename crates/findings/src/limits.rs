//! The thresholds of all rules; the pages in `docs/findings` give the same numbers.

use prony_base::Nanos;

/// The kernel counts the time of cores in ticks of 10 ms: shorter windows have too few of them.
pub const CORE_TIMES_FROM: Nanos = Nanos::from_millis(100);
/// P001: a side is saturated from this share of the window on.
pub const SATURATED_SHARE: f64 = 0.95;
/// P001: and the generator's own threads used this share of the window.
pub const SATURATED_OWN_SHARE: f64 = 0.5;
/// P001: part of the latencies, or of the connections' time, that is the generator's own from which it shows.
pub const GENERATOR_SHARE: f64 = 0.20;
/// P001: the same of what is only known to be at most so much.
pub const GENERATOR_BOUND_SHARE: f64 = 0.50;
/// P001: part of a cell's trials up to which it is a note: a median is of none of these, and what they are off by is in the interval.
pub const BOUND_BLOCKS_SHARE: f64 = 1.0 / 3.0;
/// P003: closings an answer from which keep-alive is not honoured.
pub const CLOSED_SHARE: f64 = 0.01;
/// P003: closings an answer from which keep-alive is limited.
pub const CLOSED_SHARE_INFO: f64 = 0.0001;
/// P005: connections in flight under this part of those asked for are a gap.
pub const IN_FLIGHT_SHARE: f64 = 0.80;
/// P005: what is allowed above all connections, beside the edges of the window.
pub const IN_FLIGHT_OVER: f64 = 0.02;
/// P002, P006: requests that failed make a cell invalid from this share on.
pub const FAILED_SHARE: f64 = 0.01;
/// P007: CPU time over that of the declared cores.
pub const CORES_OVER: f64 = 1.05;
/// P009: drift of the canary, at the median of the trials.
pub const CANARY_DRIFT: f64 = 0.02;
/// P009: part of the measured time that the hypervisor took, or in which a thread waited for a core.
pub const WAIT_SHARE: f64 = 0.01;
/// P010: part of the blocks that failed, from which the others do not stand for the cell.
pub const FAILED_BLOCKS_SHARE: f64 = 0.5;
/// P032: where the median latency is longer, something else than a wake-up is waited for.
pub const WAKE_UPS_NS: u64 = 200_000;
/// P032: a side sleeps where it did so this often for each request.
pub const SLEEPS_A_REQUEST: f64 = 0.2;
/// P012: bytes an answer over those of the reference, or the other way round.
pub const BYTES_RATIO: f64 = 1.20;
/// P013: a run shorter than this is mostly the start of a process and of its clock.
pub const ELAPSED_NS_MIN: u64 = 5_000_000;
/// P014: CPU time under this part of what its threads could have used.
pub const RUNNING_SHARE: f64 = 0.80;
/// P014: shorter runs are not looked at: the kernel's accounting is too coarse for them.
pub const RUNNING_WALL_NS_MIN: u64 = 20_000_000;
/// P016: smaller peaks are mostly the program itself, and alike by nature.
pub const PEAK_BYTES_MIN: u64 = 16 << 20;
/// P016: blocks in which peaks are the same, at the least.
pub const PEAK_BLOCKS_MIN: usize = 2;
/// P017: missed deadlines that the evidence names one by one.
pub const MISSED_NAMED_MAX: usize = 5;
/// P006: kinds of failures that the evidence names, by a client's own names.
pub const KINDS_NAMED_MAX: usize = 6;
/// P012: how far bytes of a body may be off those of the page: the last answers may be cut.
pub const PAGE_OFF: f64 = 0.01;
/// P019: what the start and the end of a client may take beside the time by its own clock.
pub const BESIDE_NS: f64 = 5e8;
/// P019: and this part of that time.
pub const BESIDE_SHARE: f64 = 0.10;
/// P019: elapsed over the whole run, from which it cannot be.
pub const ELAPSED_OVER: f64 = 1.01;
/// P019: how far the time for which a client asked may be off what it was told.
pub const DURATION_SHARE: f64 = 0.05;
/// P019: and at the least this much.
pub const DURATION_NS: f64 = 1e8;
/// P019: how far a rate that a client gives may be off count ÷ elapsed.
pub const RATE_OFF: f64 = 0.02;
/// P019: what rounding of printed figures explains.
pub const ROUNDED: f64 = 1.02;
/// P022: how far the number of latencies may be off that of answers.
pub const LATENCY_OFF: f64 = 0.01;
/// P028: a freeze is this many times the median latency.
pub const FROZEN_LATENCIES: f64 = 3.0;
/// P028: or, where the median itself is of frozen requests, this part of the window.
pub const FROZEN_SHARE: f64 = 0.30;
/// P030: another generator's rate may lie so far beyond those of the blocks.
pub const GENERATORS_APART: f64 = 0.10;
