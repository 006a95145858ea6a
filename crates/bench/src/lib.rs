//! Works of a fixed size that measure the runtime, each run to its end.
#![forbid(unsafe_code)]
