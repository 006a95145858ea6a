//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod common;
mod docs;
mod framework;
mod interface;
mod validated;
