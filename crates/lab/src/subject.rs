//! Subjects: the `subject.toml` of a folder, or what an experiment says of a
//! command or an address, as one type.
//!
//! Not for: building ([`crate::build`]), whether a machine has what a subject
//! needs ([`crate::plan`]), or starting one.
//!
//! ```
//! use prony_lab::experiment::Origin;
//! use prony_lab::subject::Subject;
//! let text = r#"
//! name = "mine"
//! language = "rust"
//! role = "server"
//! summary = "A server"
//! endpoints = ["/ping"]
//! [start]
//! cmd = ["{build}/server", "--port", "{port}"]
//! [build]
//! cmd = "make OUT={build}"
//! inputs = ["Makefile", "src"]
//! [ready]
//! http = "/ping"
//! [version]
//! cmd = "make version"
//! "#;
//! let subject = Subject::parse(text, &Origin::new("subject.toml", "/srv/mine"))?;
//! assert_eq!(subject.id, "rust/mine");
//! # Ok::<(), prony_lab::diagnosis::Diagnoses>(())
//! ```

pub(crate) mod client;
pub(crate) mod file;
mod load;
pub(crate) mod needs;
pub(crate) mod originals;
pub(crate) mod program;
pub(crate) mod repository;
mod root;
pub(crate) mod server;

pub use client::Client;
pub use file::{Build, FILE, ORIGINALS, Subject};
pub(crate) use load::stand_ins;
pub use load::{AtRevision, folders, load_all, load_all_at};
pub use needs::Needs;
pub use program::{Program, Role, Variants};
pub use repository::Repository;
pub use root::RootFs;

#[cfg(test)]
mod tests;
