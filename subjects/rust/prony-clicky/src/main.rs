//! The click counter: see the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    prony_clicky::run(
        |name| std::env::var_os(name),
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    )
}
