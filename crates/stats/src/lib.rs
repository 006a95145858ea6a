//! Samples to summaries, intervals and comparisons; pure.
#![forbid(unsafe_code)]
