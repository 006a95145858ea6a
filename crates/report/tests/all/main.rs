//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod answer;
mod compare;
mod documents;
mod fixture;
mod joined;
mod log;
mod pilot;
mod programs;
mod robustness;
mod why;
