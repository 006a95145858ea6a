//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.
//! `faults` plays the program `prony` in its own trials: it is a program of its own.

mod broken;
mod corpus;
