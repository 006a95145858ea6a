//! Whole trials, and what goes wrong in them: subjects with a fault, and Prony
//! itself killed.
//!
//! This test plays the prony binary in its own trials: called with `__supervise` or
//! `__generate` it is what `prony` is by these words, with `__run` it does one run, with
//! `__allocate` it is a program of known size, with `__serve` a server that needs nothing but itself.
//! Subjects need Python 3; without it the tests are skipped and say so.

mod clients;
mod fixture;
mod killed;
mod networks;
mod play;
mod profiles;
mod programs;
mod roots;
mod services;
mod tests;
mod visits;

use std::os::fd::AsFd;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("__supervise") => {
            prony_lab::supervise::main(std::io::stdin().as_fd(), std::io::stdout())
        }
        Some("__generate") => play::generate(),
        Some("__serve") => roots::serve(&words[2..]),
        Some("__allocate") => play::allocate(&words[2..]),
        Some("__run") => play::run(&words[2..]),
        _ => tests::all(),
    }
}
