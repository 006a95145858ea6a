//! What a terminal takes.

use std::env;
use std::io::{self, IsTerminal as _};

/// Colour only on a terminal, and not where `NO_COLOR` is set.
pub fn colour() -> bool {
    io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
