//! For tests only.
#![forbid(unsafe_code)]
