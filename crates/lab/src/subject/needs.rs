//! What a machine must have for a subject. Pure.
//!
//! Not for: whether it is there ([`crate::plan::Facts`]).

use std::collections::BTreeMap;

use toml::Spanned;

use super::originals;
use super::repository::{self, Repository};
use crate::experiment::fields::Fields;
use crate::experiment::keys;
use crate::experiment::words::short;
use crate::launch;

/// `[needs]` of a subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Commands that must be on PATH, or absolute paths of programs.
    pub commands: Vec<String>,
    /// Files that must be there: absolute paths, or below `{originals}`, the folder of what the user has built.
    pub files: Vec<String>,
    /// The repository of what is below `{originals}`, and at which revision; `None`: nothing is needed there.
    pub original: Option<Repository>,
    /// Commands that would change it, by distribution (`debian`, `any`), and that which brings `cargo` alone.
    pub packages: BTreeMap<String, String>,
    /// The place or version for which they work; free text, may be empty.
    pub when: String,
    /// Capabilities of the kernel that it is not to lose where Prony has them, in small letters: `sys_nice`.
    pub capabilities: Vec<String>,
}

impl Needs {
    /// What it needs of what its user has built: paths below the folder `{originals}`, in the order of its file.
    pub fn original_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter_map(|file| originals::below(file))
    }
}

/// Reads them.
pub(super) fn read(table: &Fields<'_>) -> Needs {
    let files: Vec<Spanned<String>> = table.value("files");
    for file in &files {
        let message = match originals::below(file.get_ref()) {
            Some(path) if originals::leads_down(path) => continue,
            Some(_) => "a path below `{originals}` leads down from there",
            None if file.get_ref().starts_with('/') => continue,
            None => "a file that must be there is given by its absolute path",
        };
        table.problems.note(file.span(), message);
    }
    let listed = table.table_or_empty("packages");
    let command = |key: &'static str| Some((key.to_owned(), listed.get(key)?));
    let original = table.table("original");
    Needs {
        commands: table.value("commands"),
        files: keys::texts(files),
        original: original.and_then(|table| repository::repository(&table)),
        packages: ["debian", "any", "cargo"]
            .into_iter()
            .filter_map(command)
            .collect(),
        when: listed.get("when").unwrap_or_else(|| table.value("when")),
        capabilities: capabilities(table),
    }
}

/// `capabilities`, each one that the kernel has.
pub(crate) fn capabilities(table: &Fields<'_>) -> Vec<String> {
    let names: Vec<Spanned<String>> = table.value("capabilities");
    for name in &names {
        if launch::capability_named(name.get_ref()).is_none() {
            let message = format!("`{}` is no capability", short(name.get_ref()));
            let help = "capabilities = [\"sys_nice\"], as capabilities(7) lists them, in small letters without CAP_";
            table.problems.advise(name.span(), message, help);
        }
    }
    keys::texts(names)
}
