//! What the tests of the program share.

use std::process::Command;
use std::time::Duration;

/// The program under test.
pub const SYSTEMS: &str = env!("CARGO_BIN_EXE_prony-systems");
/// How long anything may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program with these words, on a driver of its own choice.
pub fn systems(words: &[&str]) -> Command {
    let mut command = Command::new(SYSTEMS);
    command.args(words).env_remove("PRONY_DRIVER");
    command
}

/// What a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
