//! The `prony` command.
#![forbid(unsafe_code)]
fn main() {}
