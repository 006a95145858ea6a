//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod corpus;
mod faults;
mod guard_page;
mod hooks;
mod properties;
mod reads;
mod vectors;
mod whole;
mod work;
mod writes;
