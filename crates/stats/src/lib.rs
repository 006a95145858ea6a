//! Samples to summaries, intervals and comparisons; pure.
//!
//! ```
//! use prony_stats::{compare, summarise, Rate};
//!
//! // Requests a second of one cell, a value a block.
//! let rates = summarise::<Rate>(&[99.0, 101.0, 100.0]).unwrap();
//! assert_eq!((rates.median.0, rates.spread.low.0), (100.0, 99.0));
//! // The same blocks of the reference.
//! let compared = compare(&[(99.0, 50.0), (101.0, 50.0), (100.0, 50.0)]).unwrap();
//! assert!((compared.ratio.0 - 2.0).abs() < 0.001);
//! ```
//!
//! The rules, and where they are:
//!
//! - the block is the unit of repetition; under [`BLOCKS_INTERVAL_MIN`] there is the range and no
//!   interval, and nothing is claimed ([`summarise`], [`compare`]);
//! - ratios go to a declared reference: [`compare`] takes pairs of one block and knows no winner;
//! - how small a difference a run could have told is said by [`detectable`], of what the blocks left over;
//! - how a time is best spent on blocks and windows is said of a pilot ([`Design`]), and how long to warm up ([`settling`](settling()));
//! - what was not interleaved is compared with the variance between sessions, and not at all without a
//!   history of them ([`compare_sessions`], [`change_points`]);
//! - of runs that are joined, what differs from run to run is in the interval, too ([`Variance::of_runs`]);
//! - where the values stand in two groups there is no interval ([`two_modes`]), and that of a ratio reaches over both;
//! - what a comparison's own blocks tell badly, how they vary, the subject's other ones tell better ([`moderated`](moderated()));
//! - a far percentile needs separate slow periods ([`Tail`]);
//! - the deviation over the seconds of one run is told as what it is, and has an interval only where
//!   the seconds are not seen to go together ([`seconds`](seconds()));
//! - how time grows with size is said from a sweep only, by the interval of its exponent, and not
//!   at all where no single power fits ([`scaling`]).
//!
//! What an interval assumes is a [`Warning`] where the data contradict it, and this where
//! they cannot: blocks are independent of each other. Intervals that are shown together hold together
//! where they are made with the confidence of [`simultaneous`] ones, or of a family's ([`together`]).
//!
//! Not for: reading files, choosing what to compare, writing sentences. The same input gives
//! the same bits on every machine: transcendental functions come from `libm`.
//!
//! # Central types
//! - [`Summary`]: median and interval of one quantity over the blocks.
//! - [`Comparison`]: a ratio to the reference, with its interval and what may be concluded of it.
//! - [`Design`]: the blocks and windows that tell most in a given time.
#![forbid(unsafe_code)]

mod budget;
mod changes;
mod compare;
mod little;
mod moderated;
mod modes;
mod over_seconds;
mod power;
mod quantile;
mod runs;
mod scaling;
mod search;
mod seconds;
mod sessions;
mod settling;
mod special;
mod steady;
mod summary;
mod tail;
mod units;

pub use budget::{
    Allocation, BETWEEN_MIN, BlockCost, Design, PilotNoise, WINDOWS, window_variance,
};
pub use changes::{CHANGE_SESSIONS_MIN, ChangePoint, change_points};
pub use compare::{
    Comparison, Conclusion, compare, compare_at, compare_by, compare_from, simultaneous,
};
pub use little::in_flight;
pub use moderated::{Siblings, TURNED_BLOCKS_MIN, Variance, moderated, of_turns, together};
pub use modes::{TwoModes, two_modes};
pub use over_seconds::{ratio_over_seconds, share_over_seconds};
pub use power::{FirstBlocks, POWER, detectable, detectable_by, independent, pooled_deviation};
pub use prony_record::SpreadKind;
pub use quantile::{median, quantile, sorted};
pub use scaling::{
    CURVATURE_MIN, Growth, HALF_WIDTH_MAX, RESOLUTION, SIZES_FACTOR_MIN, SIZES_MIN, Scaling,
    scaling,
};
pub use search::{Found, Highest, Search, Step};
pub use seconds::{
    BadLine, MeanInterval, Reading, SECONDS_INTERVAL_MIN, Seconds, combined, log, readings,
    seconds, whole_seconds,
};
pub use sessions::{SESSION_DEGREES_MIN, SessionComparison, chance, compare_sessions};
pub use settling::{SETTLING_SLICES_MIN, Settling, settling};
pub use special::{normal_quantile, t_distribution, t_quantile};
pub use steady::{Freeze, SLICES_MIN, Steadiness, freeze, steadiness};
pub use summary::{Spread, Summary, Warning, summarise};
pub use tail::{PERIODS_MIN, Tail};
pub use units::{Bytes, Connections, Exponent, Quantity, Rate, Ratio, Share, Time};

/// Blocks from which medians and ratios have an interval, and ratios may be called different. Of fewer not even
/// smallest and largest value hold the median with [`CONFIDENCE`].
pub const BLOCKS_INTERVAL_MIN: usize = 6;
/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;
