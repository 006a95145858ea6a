//! Records, statistics and findings to documents; pure.
#![forbid(unsafe_code)]
