//! The tests of this room in one program: each is linked for itself, which takes longer than its tests do.

mod common;
mod docs;
mod framework;
mod interface;
mod validated;
