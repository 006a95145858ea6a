//! The tests of this crate in one program: each program is linked for itself, which takes longer than its tests do.

mod clients;
mod figures;
mod generator;
mod programs;
mod rules;
mod searches;
mod services;
mod twins;
