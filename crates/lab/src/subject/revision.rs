//! A subject at another revision than the one that lies there: `revision` beside `ref`.
//!
//! Not for: checking anything out ([`crate::build::source::Revisions`]).

use std::path::{Path, PathBuf};

use toml::Spanned;

use super::{FILE, Missing, Subject, repository};
use crate::diagnosis::Diagnosis;
use crate::experiment::words::short;

/// Has folders as they were at other revisions of the repository around them.
pub trait AtRevision {
    /// The folder that was `folder` at `revision`, and which state that is; an error is a sentence.
    fn folder(
        &self,
        folder: &Path,
        revision: &str,
    ) -> Result<(PathBuf, prony_record::Repository), String>;
}

/// Has none: for looking at experiments without running them.
pub(super) struct Nowhere;

impl AtRevision for Nowhere {
    fn folder(
        &self,
        _: &Path,
        revision: &str,
    ) -> Result<(PathBuf, prony_record::Repository), String> {
        Err(format!("no repository can be asked for `{revision}` here"))
    }
}

/// The subject at another revision: of the repository that it is built from, or else of the one that its folder lies in.
pub(super) fn at_revision(
    mut subject: Subject,
    revision: &Spanned<String>,
    folder: &Path,
    revisions: &dyn AtRevision,
) -> Result<Subject, Missing> {
    let typed = revision.get_ref();
    if let Some(source) = subject.repositories.first_mut() {
        if let Some((message, help)) = repository::revision_problem(typed) {
            let wrong = Diagnosis::new(revision.span(), message).help(help);
            return Err(Missing::Here(wrong));
        }
        source.revision.clone_from(typed);
        return Ok(subject);
    }
    let (there, state) = revisions
        .folder(folder, typed)
        .map_err(|why| Missing::Here(Diagnosis::new(revision.span(), why)))?;
    if !there.join(FILE).is_file() {
        let message = format!("at `{}` there was no {FILE} in this folder", short(typed));
        let wrong = Diagnosis::new(revision.span(), message);
        return Err(Missing::Here(wrong.help(folder.display().to_string())));
    }
    let mut subject = Subject::load(&there).map_err(Missing::There)?;
    subject.revision = Some(state);
    Ok(subject)
}
