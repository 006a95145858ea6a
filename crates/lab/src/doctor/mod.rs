//! What of a machine spoils measurements, how much, and the command that mends it: [`read`] from the files of the
//! kernel, [`measure`] where reading tells nothing; [`change`] mends what can be undone.
//!
//! Nothing is guessed: what cannot be read is unknown, with the reason. Not for: facts that only describe the machine
//! ([`crate::environment`]), or what happens in a trial (its findings).
//!
//! ```
//! use prony_lab::doctor::{Tree, read};
//! let checks = read::all(&Tree::at("/no/such/folder"));
//! assert!(checks.iter().all(|check| check.found.starts_with("/no/such/folder/")));
//! ```

pub mod change;
pub mod measure;
pub mod read;
mod tree;

use std::path::Path;

use prony_record::MachineCheck;

pub use tree::Tree;

/// Everything that can be read, and what can be measured in less than half a second: for a run. `tree` is this machine.
pub fn in_brief(tree: &Tree) -> Vec<MachineCheck> {
    let mut checks = read::all(tree);
    checks.extend(measure::in_brief(tree));
    checks
}

/// Everything, measured in a few seconds. `folder` is where a file is synced; it is made where it is not there.
pub fn in_full(tree: &Tree, folder: &Path) -> Vec<MachineCheck> {
    let mut checks = read::all(tree);
    checks.extend(measure::in_full(tree, folder));
    checks
}
