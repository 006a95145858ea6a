//! What a machine must have for a subject. Pure.
//!
//! Not for: whether it is there ([`crate::plan::Facts`]).

use std::collections::BTreeMap;

use toml::Spanned;

use super::originals;
use super::repository::Repository;
use crate::diagnosis::Diagnosis;
use crate::experiment::fields::{Fields, Problems};

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
    /// Where or for which version they work; free text, may be empty.
    pub when: String,
    /// Capabilities of the kernel that it is not to lose where Prony has them, in small letters: `sys_nice`.
    pub capabilities: Vec<String>,
}

impl Needs {
    /// What it needs of what its user has built: paths below the folder `{originals}`, in the order of its file.
    pub fn of_originals(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter_map(|file| originals::below(file))
    }
}

/// Reads them, but for the original and the capabilities.
pub(super) fn read(table: &mut Fields<'_, '_>, p: &mut Problems) -> Needs {
    let mut needs = Needs::default();
    let commands = table.texts("commands", p).unwrap_or_default();
    let files = table.texts("files", p).unwrap_or_default();
    for file in &files {
        let message = match originals::below(file.get_ref()) {
            Some(path) if originals::leads_down(path) => continue,
            Some(_) => "a path below `{originals}` leads down from there",
            None if file.get_ref().starts_with('/') => continue,
            None => "a file that must be there is given by its absolute path",
        };
        p.note(Diagnosis::new(file.span(), message));
    }
    let mut when = table.text("when", p);
    if let Some(mut listed) = table.table("packages", "packages = {…}", p) {
        for key in ["debian", "any", "cargo"] {
            let command = listed.text(key, p);
            let command = command.map(|command| (key.to_owned(), command.into_inner()));
            needs.packages.extend(command);
        }
        when = listed.text("when", p).or(when);
        listed.finish(&[], p);
    }
    needs.commands = commands.into_iter().map(Spanned::into_inner).collect();
    needs.files = files.into_iter().map(Spanned::into_inner).collect();
    needs.when = when.map(Spanned::into_inner).unwrap_or_default();
    needs
}
