//! The load generator: arrivals, workers, recorders.
#![forbid(unsafe_code)]
