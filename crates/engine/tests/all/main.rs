//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.
//! `descriptors` counts those of its process: it is a program of its own.

mod busy;
mod driver;
mod sim;
