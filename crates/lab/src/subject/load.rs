//! Loads the subjects of an experiment: from their folders, or from a command or an address. Keys of the experiment's
//! entry override those of the subject's file.
//!
//! Not for: reading one `subject.toml` ([`Subject::load`]).

use std::path::{Path, PathBuf};

use prony_base::Nanos;
use prony_record::Source;
use toml::Spanned;

use super::file::{FILE, Subject, blank};
use super::needs::Needs;
use super::program::{Program, Role};
use super::repository;
use crate::diagnosis::{Diagnoses, Diagnosis, nearest, quoted};
use crate::experiment::words::short;
use crate::experiment::{
    Experiment, From, Origin, SubjectEntry, check_names, check_peers, check_settings,
};
use crate::plan::{check_published, check_services};

/// Folders looked at for the name of a subject that is not there.
const FOLDERS_MAX: usize = 2_000;

/// Characters of a command in its summary.
const SUMMARY_CHARS_MAX: usize = 200;

/// Loads as [`load_all_at`] does, without other revisions.
pub fn load_all(experiment: &Experiment, root: &Path) -> Result<Vec<Subject>, Vec<Diagnoses>> {
    load_all_at(experiment, root, None)
}

/// Loads the subjects of all entries of an experiment, in the order of [`Experiment::entries`],
/// and checks the experiment against them. `root` is the folder `subjects/`; `revisions` checks out other revisions; without it there are none.
///
/// Every file with problems is in the error.
pub fn load_all_at(
    experiment: &Experiment,
    root: &Path,
    revisions: Option<&dyn AtRevision>,
) -> Result<Vec<Subject>, Vec<Diagnoses>> {
    let mut subjects = Vec::with_capacity(experiment.subjects.len());
    let mut wrong: Vec<Diagnoses> = Vec::new();
    let mut here: Vec<Diagnosis> = Vec::new();
    for (kind, entries) in [
        ("subject", &experiment.subjects),
        ("subject", &experiment.peers),
        (Role::Backing.name(), &experiment.backings),
        (Role::Front.name(), &experiment.fronts),
    ] {
        for entry in entries {
            match load_one(entry, kind, &experiment.origin, root, revisions) {
                Ok(subject) => subjects.push(subject),
                Err(Missing::Here(problem)) => here.push(problem),
                Err(Missing::There(problems)) => wrong.push(problems),
            }
        }
    }
    if !here.is_empty() {
        wrong.insert(0, experiment.diagnoses(here));
    }
    if wrong.is_empty() {
        let ids: Vec<String> = subjects.iter().map(|s: &Subject| s.id.clone()).collect();
        let names = check_names(experiment, &ids)
            .and_then(|()| check_settings(experiment, &subjects))
            .and_then(|()| check_peers(experiment, &subjects))
            .and_then(|()| check_services(experiment, &subjects))
            .and_then(|()| check_published(experiment, &subjects));
        wrong.extend(names.err());
    }
    // Two entries of one folder would report the same file twice.
    wrong.dedup();
    if wrong.is_empty() {
        Ok(subjects)
    } else {
        Err(wrong)
    }
}

enum Missing {
    Here(Diagnosis),
    There(Diagnoses),
}

fn load_one(
    entry: &SubjectEntry,
    kind: &str,
    origin: &Origin,
    root: &Path,
    revisions: Option<&dyn AtRevision>,
) -> Result<Subject, Missing> {
    let subject = match &entry.from {
        From::Ref(reference) => {
            let folder = find(reference, kind, &origin.folder, root).map_err(Missing::Here)?;
            let subject = Subject::load(&folder).map_err(Missing::There)?;
            match &entry.revision {
                Some(revision) => at_revision(subject, revision, &folder, revisions)?,
                None => subject,
            }
        }
        From::Command(command) => from_command(command, origin),
        From::Url(url) => from_url(url),
    };
    Ok(with_entry(subject, entry))
}

/// The folder that `ref` names: under `root`, relative to the experiment, or in `subjects/` beside it.
fn find(
    reference: &Spanned<String>,
    kind: &str,
    folder: &Path,
    root: &Path,
) -> Result<PathBuf, Diagnosis> {
    let typed = reference.get_ref().as_str();
    let relative_only = ["./", "../", "/"]
        .iter()
        .any(|start| typed.starts_with(start));
    let mut places = vec![folder.join(typed)];
    if !relative_only {
        places.insert(0, root.join(typed));
        places.push(folder.join("subjects").join(typed));
    }
    if let Some(found) = places.iter().find(|place| place.join(FILE).is_file()) {
        return Ok(found.clone());
    }
    let mut there = folders(root);
    there.retain(|id| kind_of_folder(id) == kind);
    let words: Vec<&str> = there.iter().map(String::as_str).collect();
    let message = format!("there is no {kind} `{}`", short(typed));
    let looked: Vec<String> = places
        .iter()
        .map(|place| place.join(FILE).display().to_string())
        .collect();
    let help = match nearest(typed, words.iter().copied()) {
        Some(word) => format!("did you mean `{word}`?"),
        None if words.is_empty() => format!("looked for {}", quoted(&looked)),
        None => format!("{kind}s here: {}", quoted(&words)),
    };
    Err(Diagnosis::new(reference.span(), message).help(help))
}

/// The kind of subject in the folder `id`, by its first part: services lie in folders of their role.
fn kind_of_folder(id: &str) -> &str {
    let folder = id.split('/').next().unwrap_or_default();
    let services = [Role::Backing.name(), Role::Front.name()];
    let found = services.iter().find(|name| **name == folder);
    found.copied().unwrap_or("subject")
}

/// The subjects under `root`: `language/name`, sorted.
pub fn folders(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for language in names_in(root) {
        for name in names_in(&root.join(&language)) {
            if root.join(&language).join(&name).join(FILE).is_file() {
                found.push(format!("{language}/{name}"));
            }
        }
    }
    found.sort();
    found
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.take(FOLDERS_MAX).collect()
}

/// A subject that is only a command; it runs in the experiment's folder.
pub(super) fn from_command(command: &[String], origin: &Origin) -> Subject {
    let program = command.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or_default();
    let mut needs = Needs::default();
    if program.starts_with('{') {
        // `{prony}` and `{dir}/…` are known only when it is started.
    } else if program.contains('/') {
        let path = origin.folder.join(program.trim_start_matches("./"));
        needs.files.push(path.display().to_string());
    } else {
        needs.commands.push(program.to_owned());
    }
    Subject {
        source: Source::Command {
            dir: origin.folder.display().to_string(),
        },
        needs,
        start: command.to_vec(),
        ..blank(name, &words_of(command))
    }
}

fn words_of(command: &[String]) -> String {
    let line: String = command.join(" ").chars().take(SUMMARY_CHARS_MAX).collect();
    format!("`{line}`")
}

fn from_url(url: &str) -> Subject {
    let name = url.trim_start_matches("http://");
    let mut subject = Subject {
        source: Source::Url {
            url: url.to_owned(),
        },
        ..blank(name, &format!("a server that already runs at {url}"))
    };
    subject.ready.timeout_ns = Nanos::from_secs(5).0;
    subject
}

/// The subjects of an experiment without looking at any file; for fuzzing.
pub(crate) fn stand_ins(experiment: &Experiment) -> Vec<Subject> {
    let stand_in = |entry: &SubjectEntry| {
        let subject = match &entry.from {
            From::Ref(reference) => blank(reference.get_ref(), "a stand-in"),
            From::Command(command) => Subject {
                needs: Needs::default(),
                ..from_command(command, &experiment.origin)
            },
            From::Url(url) => from_url(url),
        };
        with_entry(subject, entry)
    };
    experiment.entries().map(stand_in).collect()
}

/// Overrides what a subject's file says by what the experiment's entry says.
fn with_entry(mut subject: Subject, entry: &SubjectEntry) -> Subject {
    if let Some(name) = &entry.name {
        subject.id = name.get_ref().clone();
        subject.name = name.get_ref().clone();
    }
    subject.threads = entry.threads.or(subject.threads);
    let needs = &mut subject.needs;
    needs.commands.extend(entry.commands.iter().cloned());
    let more = entry.capabilities.iter().cloned();
    needs.capabilities.extend(more);
    if !entry.works.is_empty() {
        // A command that is said to do works is a program, any other a server.
        subject.program = Some(Program {
            cmd: std::mem::take(&mut subject.start),
            works: entry.works.clone(),
            output: entry.output.clone(),
            ..Program::default()
        });
    }
    if !subject.start.is_empty() {
        subject.start.extend(entry.args.iter().cloned());
        subject.env.extend(entry.env.clone());
    }
    let client = subject.client.iter_mut().map(|client| &mut client.program);
    for program in subject.program.iter_mut().chain(client) {
        program.cmd.extend(entry.args.iter().cloned());
        program.env.extend(entry.env.clone());
    }
    if let Some(endpoints) = &entry.endpoints {
        subject.endpoints.clone_from(endpoints);
    }
    if let Some(ready) = &entry.ready {
        subject.ready = ready.clone();
    }
    if let Some(stop) = &entry.stop {
        subject.stop = stop.clone();
    }
    subject
}

/// Checks out folders at other revisions of the repository that they are in.
pub trait AtRevision {
    /// Checks out `folder` at `revision`: the path of the copy and the state of the repository. Errors: a sentence.
    fn folder(
        &self,
        folder: &Path,
        revision: &str,
    ) -> Result<(PathBuf, prony_record::Repository), String>;
}

/// The subject at another revision: of the repository that it is built from, or else of the one that its folder lies in.
fn at_revision(
    mut subject: Subject,
    revision: &Spanned<String>,
    folder: &Path,
    revisions: Option<&dyn AtRevision>,
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
    let nowhere = || Err(format!("no repository can be asked for `{typed}` here"));
    let found = revisions.map_or_else(nowhere, |revisions| revisions.folder(folder, typed));
    let (there, state) =
        found.map_err(|why| Missing::Here(Diagnosis::new(revision.span(), why)))?;
    if !there.join(FILE).is_file() {
        let message = format!("at `{}` there was no {FILE} in this folder", short(typed));
        let wrong = Diagnosis::new(revision.span(), message);
        return Err(Missing::Here(wrong.help(folder.display().to_string())));
    }
    let mut subject = Subject::load(&there).map_err(Missing::There)?;
    subject.revision = Some(state);
    Ok(subject)
}
