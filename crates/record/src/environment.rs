//! The machine that a run was done on.

use serde::{Deserialize, Serialize};

use crate::MachineCheck;

/// What a reader must know of the machine to read the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Schema version ([`crate::SCHEMA`]).
    pub schema: u32,
    /// Version of how figures are measured ([`crate::METHOD`]).
    #[serde(default)]
    pub method: u32,
    /// Start of the run, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Version of Prony.
    pub prony_version: String,
    /// Last commit that touched what it was built from, with `+` where that was changed; empty where not known.
    pub prony_commit: String,
    /// Driver of the generator's event loops, and why if it is not the ring.
    pub driver: String,
    /// SHA-256 of the running `prony`, in hexadecimal, where its commit does not say what it is made of.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prony_sha256: String,
    /// SHA-256 of the program `prony-systems`, where something that is measured is started as it; empty where nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub systems_sha256: String,
    /// State of the code around the experiment's file; `None` where no git keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeState>,
    /// What tells this machine from others, from which the machine's own id cannot be told; empty where it has
    /// none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// Processor's model.
    pub cpu_model: String,
    /// Processors online.
    pub cpus: u32,
    /// Threads on one core (2: SMT).
    pub threads_per_core: u32,
    /// Memory.
    pub memory_bytes: u64,
    /// Kernel: name and release.
    pub kernel: String,
    /// Distribution.
    pub distribution: String,
    /// Hypervisor or container, empty where none was seen.
    pub virtualisation: String,
    /// Further facts that bear on the figures (governor, mitigations, sysctls, limits), in the order to show.
    pub facts: Vec<Fact>,
    /// Compilers, runtimes and tools by version, in the order to show.
    pub software: Vec<Software>,
    /// What of the machine spoils measurements (`prony doctor`), as it was before the first trial; empty where it was not
    /// recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<MachineCheck>,
}

/// State of a repository.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct CodeState {
    /// The commit, in full.
    pub commit: String,
    /// First line of its message.
    pub subject: String,
    /// The last commit that touched more than Markdown, in full; empty where it was not recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_commit: String,
    /// SHA-256, in hexadecimal, of what differs from the commit in files that git follows, Markdown aside; empty:
    /// nothing does.
    pub changes_sha256: String,
}

/// One fact about the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Its name: `net.core.somaxconn`.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One tool and its version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Software {
    /// Its command.
    pub name: String,
    /// The line that it printed of itself.
    pub version: String,
}
