//! The sources in a bundle: the experiment's file, and the files of its subjects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_lab::build::source;
use prony_lab::experiment::{Experiment, Origin, sha256};
use prony_lab::plan;
use prony_lab::subject::{self, Subject};
use prony_record::{Environment, Plan, Source};

use super::pack::{File, FileContent, SOURCE};
use super::words::BundleWords;
use crate::diagnoses;
use crate::home::Home;
use crate::paths::plain;
use crate::run::code::{self, git};

/// Files that all subjects together may have.
const FILES_MAX: usize = 20_000;
/// Revisions of an experiment that are looked at for the one that was run.
const REVISIONS_MAX: &str = "200";
/// Folders that hold what others made.
const SKIPPED: [&str; 4] = ["target", "node_modules", ".git", "__pycache__"];

/// The sources that were found.
#[derive(Default)]
pub struct Sources {
    /// Experiment and sources.
    pub files: Vec<File>,
    /// Path of the experiment in the bundle; empty: it was not found.
    pub experiment: String,
    /// Whether the sources are those that were measured.
    pub state: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Experiment and sources of a run.
pub fn collect(
    words: &BundleWords,
    plan: &Plan,
    environment: &Environment,
) -> anyhow::Result<Sources> {
    let home = Home::find(&mut std::io::sink())?;
    let root = home.subjects.parent().unwrap_or(&home.subjects).to_owned();
    let root = fs::canonicalize(&root).unwrap_or(root);
    let mut found = Sources::default();
    let Some((path, text)) = experiment(words, plan, &root)? else {
        found.state = "not packed".to_owned();
        found.notes.push(format!(
            "{} is not the file of this run any more (its digest was {}), and no revision of it is: the bundle can be verified and rendered, and not \
             reproduced; --experiment names the file",
            plan.experiment, plan.experiment_sha256
        ));
        return Ok(found);
    };
    let folder = path
        .parent()
        .map_or_else(|| root.clone(), Path::to_path_buf);
    let places = Places {
        root: &root,
        folder: &folder,
    };
    found.experiment = places
        .place(&path)
        .context("the experiment's file has no name")?;
    found.files.push(File {
        path: found.experiment.clone(),
        content: FileContent::Bytes(text.clone().into_bytes()),
        executable: false,
    });
    if words.records {
        found.state = "not packed".to_owned();
        return Ok(found);
    }
    if let Some(revised) = revised(plan) {
        found.state = "not packed".to_owned();
        found.notes.push(format!(
            "{revised}, which its repository has: the bundle can be verified and rendered, and not reproduced"
        ));
        return Ok(found);
    }
    let origin = Origin::new(path.display().to_string(), &folder);
    let experiment = Experiment::parse(&text, &origin);
    let experiment = experiment.map_err(|wrong| diagnoses::error(vec![wrong]))?;
    let subjects = subject::load_all(&experiment, &home.subjects).map_err(|wrong| {
        let wrong = diagnoses::error(wrong);
        anyhow::anyhow!("its subjects cannot be packed (--records leaves them out):\n{wrong}")
    })?;
    let mut files = of_subjects(&subjects, &originals(&subjects, plan), &places)?;
    for path in of_requests(plan, &folder) {
        let place = places.place(&path).with_context(|| {
            format!(
                "{} does not lie beside the experiment, so that it cannot be packed; --records leaves sources out",
                path.display()
            )
        })?;
        files.insert(place.clone(), read(&path, place)?);
    }
    files.remove(&found.experiment);
    found.files.extend(files.into_values());
    found.state = state(environment, &path);
    Ok(found)
}

/// A note where a subject was taken at a revision that its files do not name: of the repository around it, or by `--revision`.
fn revised(plan: &Plan) -> Option<String> {
    let around = plan::processes(plan).find_map(|subject| {
        let mut states = subject.repositories.iter();
        let state = states.find(|state| state.committed_unix_s > 0)?;
        let (id, revision) = (&subject.id, &state.revision);
        Some(format!("{id} was measured as it was at {revision}"))
    });
    let mut words = plan.command.iter().skip_while(|word| *word != "--revision");
    around.or_else(|| Some(format!("the run took {}", words.nth(1)?)))
}

/// The files that say what is sent: of requests, of scenarios, of bodies, of data.
fn of_requests(plan: &Plan, folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for source in plan.workloads.iter().filter_map(|w| w.source.as_ref()) {
        let scenario = source.scenario.as_ref().map(|of| &of.file);
        let files = source.file.iter().chain(&source.data).chain(scenario);
        paths.extend(files.map(|file| folder.join(&file.path)));
        let of_file = source.file.as_ref().map(|file| folder.join(&file.path));
        let bodies_in = of_file.and_then(|file| file.parent().map(Path::to_owned));
        let bodies_in = bodies_in.unwrap_or_else(|| folder.to_owned());
        paths.extend(source.bodies.iter().map(|body| bodies_in.join(&body.path)));
    }
    paths
}

/// The files of the subjects by their places, but for those below `originals`.
fn of_subjects(
    subjects: &[Subject],
    originals: &BTreeSet<PathBuf>,
    places: &Places<'_>,
) -> anyhow::Result<BTreeMap<String, File>> {
    let mut files: BTreeMap<String, File> = BTreeMap::new();
    for subject in subjects {
        for path in files_of(subject)? {
            // What others wrote and the user built is told by its digest, and is not the user's to hand on.
            if originals.iter().any(|folder| path.starts_with(folder)) {
                continue;
            }
            let Some(place) = places.place(&path) else {
                bail!(
                    "{}: {} lies neither below {} nor beside the experiment, so that it cannot be packed; --records leaves sources out",
                    subject.id,
                    path.display(),
                    places.root.display()
                );
            };
            if files.len() >= FILES_MAX {
                bail!(
                    "the subjects have more than {FILES_MAX} files; --records leaves sources out"
                );
            }
            files.entry(place.clone()).or_insert(read(&path, place)?);
        }
    }
    Ok(files)
}

/// The folders of what the user has built of others' systems, each as the subjects name it: now, and when it was run.
fn originals(subjects: &[Subject], plan: &Plan) -> BTreeSet<PathBuf> {
    let then = plan::processes(plan).map(|s| PathBuf::from(&s.originals_dir));
    let then = then.filter(|folder| !folder.as_os_str().is_empty());
    let roots: BTreeSet<PathBuf> = then.chain(source::originals()).collect();
    let needed = subjects.iter().flat_map(|s| s.needs.original_names());
    let names: BTreeSet<&str> = needed.filter_map(|path| path.split('/').next()).collect();
    let folders = roots
        .iter()
        .flat_map(|root| names.iter().map(|name| root.join(name)));
    folders
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect()
}

fn read(path: &Path, place: String) -> anyhow::Result<File> {
    let at = || path.display().to_string();
    let mode = fs::metadata(path).with_context(at)?.permissions().mode();
    Ok(File {
        path: place,
        content: FileContent::At(path.to_owned()),
        executable: mode & 0o100 != 0,
    })
}

/// Where files go in the bundle.
struct Places<'a> {
    /// Folder of `subjects/`.
    root: &'a Path,
    /// Folder of the experiment.
    folder: &'a Path,
}

impl Places<'_> {
    /// The place of a file: as it lies in Prony's folder, or beside the experiment.
    fn place(&self, path: &Path) -> Option<String> {
        let under = |root: &Path, name: &str| {
            let rest = path.strip_prefix(root).ok()?.to_str()?;
            (!rest.is_empty()).then(|| format!("{name}/{rest}"))
        };
        under(self.root, SOURCE).or_else(|| under(self.folder, &format!("{SOURCE}/experiment")))
    }
}

/// The file of the run, told by its digest: as it lies there, or a revision of it.
fn experiment(
    words: &BundleWords,
    plan: &Plan,
    root: &Path,
) -> anyhow::Result<Option<(PathBuf, String)>> {
    // That of all bytes is of runs from before claims were left out of it.
    let is_it = |bytes: &[u8]| {
        let text = str::from_utf8(bytes).ok();
        code::digest(bytes) == plan.experiment_sha256
            || text.is_some_and(|text| sha256(text) == plan.experiment_sha256)
    };
    if let Some(path) = &words.experiment {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        if !is_it(&bytes) {
            bail!(
                "{}: is not the file of this run: its digest differs",
                path.display()
            );
        }
        return Ok(Some((fs::canonicalize(path)?, String::from_utf8(bytes)?)));
    }
    let places = [PathBuf::from(&plan.experiment), root.join(&plan.experiment)];
    for path in &places {
        if let (Ok(canonical), Ok(bytes)) = (fs::canonicalize(path), fs::read(path))
            && is_it(&bytes)
        {
            return Ok(Some((canonical, String::from_utf8(bytes)?)));
        }
    }
    for path in &places {
        if let Ok(canonical) = fs::canonicalize(path)
            && let Some(bytes) = revision(&canonical, is_it)
        {
            return Ok(Some((canonical, String::from_utf8(bytes)?)));
        }
    }
    Ok(None)
}

/// The content of a file at the newest revision of its repository that is the right one.
fn revision(path: &Path, is_it: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let (folder, name) = (path.parent()?, path.file_name()?.to_str()?);
    let commits = git(
        folder,
        &["log", "--format=%H", "-n", REVISIONS_MAX, "--", name],
    )?;
    let commits = String::from_utf8(commits).ok()?;
    let mut all = commits
        .lines()
        .filter_map(|commit| git(folder, &["show", &format!("{commit}:./{name}")]));
    all.find(|bytes| is_it(bytes))
}

/// The files of a subject: its folder and inputs, or what a command names in its folder.
fn files_of(subject: &Subject) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    match &subject.source {
        Source::Folder { dir } => {
            let dir = fs::canonicalize(dir).with_context(|| dir.clone())?;
            let inputs = subject.build.iter().flat_map(|build| &build.inputs);
            for place in std::iter::once(dir.clone()).chain(inputs.map(|input| dir.join(input))) {
                walk(&plain(&place), &mut files)?;
            }
        }
        Source::Command { dir } => {
            let dir = fs::canonicalize(dir).with_context(|| dir.clone())?;
            let programs = subject.programs().flat_map(|program| &program.cmd);
            let translate = subject.client.iter().flat_map(|client| &client.translate);
            for word in subject.start.iter().chain(programs).chain(translate) {
                let path = plain(&dir.join(word));
                // Programs of the machine are told by the environment, and are not handed on.
                if path.starts_with(&dir) && path.is_file() {
                    files.insert(path);
                }
            }
        }
        Source::Url { .. } | Source::Unknown => {}
    }
    Ok(files)
}

/// The files below `place`: of a git repository those that it does not ignore. Links are not followed.
fn walk(place: &Path, files: &mut BTreeSet<PathBuf>) -> anyhow::Result<()> {
    let Ok(meta) = fs::symlink_metadata(place) else {
        return Ok(());
    };
    if meta.is_file() {
        files.insert(place.to_owned());
    }
    if !meta.is_dir() {
        return Ok(());
    }
    // What git ignores was made there, or is not meant for others.
    let listed = git(
        place,
        &[
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
    );
    if let Some(listed) = listed {
        for name in listed
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
        {
            let path = place.join(std::str::from_utf8(name)?);
            if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) {
                files.insert(path);
            }
        }
        return Ok(());
    }
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let entry = entry?;
        if files.len() > FILES_MAX {
            bail!("{}: more than {FILES_MAX} files", place.display());
        }
        if !SKIPPED.iter().any(|name| entry.file_name() == *name) {
            walk(&entry.path(), files)?;
        }
    }
    Ok(())
}

/// Whether what lies there now is what was measured, as far as git tells.
fn state(environment: &Environment, experiment: &Path) -> String {
    match (&environment.code, code::of_experiment(experiment)) {
        (Some(then), Some(now))
            if then.source_commit == now.source_commit
                && then.changes_sha256 == now.changes_sha256 =>
        {
            "as measured".to_owned()
        }
        (Some(then), _) => format!(
            "as they lay there when it was packed, and not as measured, which was at commit {}",
            then.commit
        ),
        (None, _) => {
            "as they lay there when it was packed; no git says whether they are what was measured"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_that_no_file_names_is_known_by_the_words_of_the_run() {
        let said = |words: &[&str]| {
            let command = words.iter().map(|&word| word.to_owned()).collect();
            revised(&Plan {
                command,
                ..Plan::default()
            })
        };
        assert_eq!(said(&["run", "x.toml", "--quick"]), None);
        let asked = ["run", "x.toml", "--revision", "cpp/mine@v1.2", "--quick"];
        assert_eq!(said(&asked).as_deref(), Some("the run took cpp/mine@v1.2"));
    }
}
