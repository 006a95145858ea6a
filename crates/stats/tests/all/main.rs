//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod coverage;
mod live;
mod method;
mod pools;
