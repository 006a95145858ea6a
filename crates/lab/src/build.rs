//! Building subjects, once for each content: a folder of the cache holds what one
//! state of a subject's files and tools was built to.
//!
//! ```text
//! <cache>/build/rust-axum-0123456789ab/        what the build wrote; {build}
//! <cache>/build/rust-axum-0123456789ab/.done   written last: the build is whole
//! <cache>/build/rust-axum-0123456789ab.lock    exclusive while building, shared while used
//! <cache>/build/rust-axum-0123456789ab.log     what the build printed
//! ```
//!
//! A subject with a `[source]` is built in a work tree of that repository, `{build}/source` ([`mod@source`]).
//!
//! The key is a SHA-256 over `subject.toml`, the inputs (names, modes and contents,
//! sorted), the commits of its repositories, what the tools in `needs.commands` say of their version, and what of the
//! user's environment reaches builds and can change them ([`crate::passed`]). A subject with a `[root]` is built
//! in that root file system, which is made before and cached likewise (`build/root.rs`). A build that
//! was cut off has no marker and is begun anew. Older builds of a subject are
//! removed but for the newest two and those in use.
//!
//! Not for: starting processes. A [`Launcher`] does that, which sees to it that none
//! outlives Prony.

pub mod clean;
mod command;
mod job;
mod root;
pub mod shelf;
pub mod source;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use prony_program::sibling;
use prony_record::{Repository as Recorded, Source};
use sha2::{Digest as _, Sha256};

use crate::experiment::words::{SYSTEMS, fill};
use crate::launch::{Resolved, on_path};
use crate::root::{INSIDE, Rooted};
use crate::subject::{Build, Subject};
use crate::sums::hex;
pub use job::{BuildContext, CommandSpec, Failed, Finished, LaunchError, Launcher};
use job::{interrupted, part, plain_name, quote, tail, temporary};
pub use shelf::KEPT;
use shelf::{Held, Shelf};
use source::{Fetched, Git};

/// Files among the inputs of one subject, and their bytes together, at the most.
const INPUT_FILES_MAX: usize = 10_000;
const INPUT_BYTES_MAX: u64 = 256 << 20;
/// Folders among the inputs that hold what others made of them.
const SKIPPED: [&str; 4] = ["target", "node_modules", ".git", "__pycache__"];
/// How long a tool may take to print its version.
const VERSION_TIMEOUT: Nanos = Nanos::from_secs(60);

/// What came of a build.
#[derive(Debug)]
pub enum BuildOutcome {
    /// The subject can be started.
    Ready(Ready),
    /// It cannot be used.
    Failed(Failed),
}

/// A subject that can be started.
#[derive(Debug, Default)]
pub struct Ready {
    /// Absolute folder of what was built; empty where nothing is built.
    pub dir: String,
    /// Absolute folder of its root file system; empty: the machine's own.
    pub root_dir: String,
    /// Key in the cache; empty where nothing is built.
    pub key: String,
    /// SHA-256 over the files in its folder where nothing is built, and over those that it needs of its user's own builds;
    /// empty where there are none, or those of its own folder cannot be read.
    pub files: String,
    /// Absolute folder of its user's own builds; empty where it needs none.
    pub originals: String,
    /// The repositories that it was built from, at which commits.
    pub repositories: Vec<Recorded>,
    /// The line that its version command printed; empty where it printed none.
    pub version: String,
    /// Whether an earlier build was used.
    pub cached: bool,
    /// Keeps the build and the root file system from being removed as long as this lives.
    pub hold: Vec<File>,
}

/// Builds `subject` unless the cache has it, and reads its version. Blocking;
/// several subjects may be built at the same time, by several Pronys too.
pub fn build(
    subject: &Subject,
    context: &BuildContext<'_>,
    launcher: &dyn Launcher,
) -> BuildOutcome {
    match build_or_fail(subject, context, launcher) {
        Ok(ready) => BuildOutcome::Ready(ready),
        Err(failed) => BuildOutcome::Failed(failed),
    }
}

/// How long the last build of `subject` took; `None`: it is not known.
pub fn last_time(subject: &Subject, context: &BuildContext<'_>) -> Option<Nanos> {
    Shelf::for_build(context, "build")
        .ok()?
        .last_time(&prefix(subject))
}

fn build_or_fail(
    subject: &Subject,
    context: &BuildContext<'_>,
    launcher: &dyn Launcher,
) -> Result<Ready, Failed> {
    let shelf = Shelf::for_build(context, "build")?;
    let mut job = Job {
        subject,
        context,
        launcher,
        dir: PathBuf::new(),
        shelf,
        rooted: None,
    };
    let (originals, of_originals) = job.resolve_originals()?;
    let root = subject.root_if(lacks(subject));
    let root = root.map(|root| root::made(root, context, launcher));
    let root = root.transpose()?;
    job.rooted = root.as_ref().map(|root| job.rooted(root));
    let root_dir = job
        .rooted
        .iter()
        .map(|rooted| rooted.dir.display().to_string());
    let root_dir: String = root_dir.collect();
    let Some(plan) = &subject.build else {
        let version = job.version()?;
        let of_subject = job.files().unwrap_or_default();
        return Ok(Ready {
            root_dir,
            files: both(of_subject, of_originals),
            originals,
            repositories: subject.revision.iter().cloned().collect(),
            version,
            hold: root.into_iter().map(|root| root.lock).collect(),
            ..Ready::default()
        });
    };
    let sources = job.sources()?;
    let key = job.key(plan, &sources)?;
    let stem = format!("{}{}", job.prefix(), &key[..12]);
    job.dir = job.shelf.root.join(&stem);
    let held = job.built(plan, &stem, &sources)?;
    let version = job.version()?;
    job.shelf
        .remove_old(&job.prefix(), &stem, job.context.builds_max);
    Ok(Ready {
        dir: job.dir.display().to_string(),
        root_dir,
        key,
        files: of_originals,
        originals,
        repositories: subject
            .revision
            .iter()
            .cloned()
            .chain(sources.into_iter().map(|one| one.recorded))
            .collect(),
        version,
        cached: held.cached,
        hold: root
            .into_iter()
            .chain([held])
            .map(|held| held.lock)
            .collect(),
    })
}

/// One build.
struct Job<'a> {
    subject: &'a Subject,
    context: &'a BuildContext<'a>,
    launcher: &'a dyn Launcher,
    /// `{build}`.
    dir: PathBuf,
    /// Where all builds are.
    shelf: Shelf<'a>,
    /// The root file system that its commands are run in; `None`: the machine's own.
    rooted: Option<Rooted>,
}

/// Whether this machine lacks something that `subject` needs.
fn lacks(subject: &Subject) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut commands = subject.needs.commands.iter();
    let mut files = subject.needs.files.iter();
    commands.any(|command| !on_path(command, &path)) || files.any(|file| !Path::new(file).exists())
}

impl Job<'_> {
    /// What the names of all of this subject's builds begin with.
    fn prefix(&self) -> String {
        prefix(self.subject)
    }

    fn folder(&self) -> PathBuf {
        self.subject
            .folder()
            .map_or_else(|| self.shelf.root.clone(), Path::to_path_buf)
    }

    /// Puts quoted paths in for the placeholders of a shell command.
    fn fill(&self, command: &str) -> String {
        let path = |path: &Path| quote(&path.display().to_string());
        let values = [
            ("{dir}", path(&self.folder())),
            ("{build}", path(&self.dir)),
            ("{prony}", path(self.context.prony)),
            (SYSTEMS, path(&sibling::SYSTEMS.beside(self.context.prony))),
            (
                "{originals}",
                path(self.context.originals.unwrap_or(Path::new(""))),
            ),
        ];
        fill(command, &values)
    }

    fn shell(&self, command: &str, log: PathBuf, timeout: Nanos) -> CommandSpec {
        let root = self.rooted.as_ref().map(|rooted| rooted.dir.clone());
        CommandSpec {
            resolved: Resolved {
                command: vec!["/bin/sh".to_owned(), "-c".to_owned(), self.fill(command)],
                dir: self.folder(),
                root: root.unwrap_or_default(),
                capabilities: self.subject.needs.capabilities.clone(),
                ..Resolved::default()
            },
            rooted: self.rooted.clone(),
            log,
            timeout_ns: timeout.0,
        }
    }

    fn run(&self, command: &CommandSpec) -> Result<Finished, Failed> {
        let finished = self.launcher.run(command, self.context.cancel);
        let finished =
            finished.map_err(|error| Failed::new(format!("it cannot be started: {error}")))?;
        if finished == Finished::Interrupted {
            return Err(interrupted());
        }
        Ok(finished)
    }

    /// Its root file system, with the folders that its commands work in.
    fn rooted(&self, root: &Held) -> Rooted {
        Rooted {
            dir: root.dir.join(INSIDE),
            folders: vec![self.folder(), self.shelf.root.clone()],
        }
    }

    /// The repositories that it is built from, in the cache.
    fn sources(&self) -> Result<Vec<Fetched>, Failed> {
        match self.subject.repositories.as_slice() {
            [] => Ok(Vec::new()),
            all => Git::new(self.context, self.launcher)?.fetched(all),
        }
    }

    /// The key of the build, in hexadecimal.
    fn key(&self, plan: &Build, sources: &[Fetched]) -> Result<String, Failed> {
        let mut hash = self.hash(&plan.inputs)?;
        for source in sources {
            let name = format!("source {}", source.recorded.path);
            part(&mut hash, &name, source.recorded.commit.as_bytes());
        }
        if let Some(rooted) = &self.rooted {
            part(&mut hash, "root", rooted.dir.as_os_str().as_encoded_bytes());
        }
        for tool in &self.subject.needs.commands {
            part(&mut hash, tool, self.tool_version(tool)?.as_bytes());
        }
        for (name, value) in self.launcher.passed().in_key() {
            part(&mut hash, &format!("{name}="), value.as_encoded_bytes());
        }
        Ok(hex(&hash.finalize()))
    }

    /// The digest of the files in its folder, where it has one of its own, or of those that its commands name.
    fn files(&self) -> Option<String> {
        let dir = match &self.subject.source {
            Source::Folder { dir } => dir,
            Source::Command { .. } => {
                let path = std::env::var("PATH").unwrap_or_default();
                return command::digest(self.subject, &self.folder(), &path);
            }
            Source::Url { .. } | Source::Unknown => return None,
        };
        let names = fs::read_dir(dir).ok()?.map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some((!SKIPPED.contains(&name.as_str())).then_some(name))
        });
        let names: Option<Vec<Option<String>>> = names.collect();
        let names: Vec<String> = names?.into_iter().flatten().collect();
        let hash = self.hash(&names).ok()?;
        Some(hex(&hash.finalize()))
    }

    /// `subject.toml` and `inputs`, with all that is in those that are folders.
    fn hash(&self, inputs: &[String]) -> Result<Sha256, Failed> {
        let mut hash = Sha256::new();
        part(&mut hash, "subject.toml", self.subject.text.as_bytes());
        let inputs = inputs.iter().map(String::as_str);
        hash_all(&mut hash, &self.folder(), inputs, "input")?;
        Ok(hash)
    }

    /// The folder of its user's own builds, and the digest of the files and folders that it needs there; both empty where
    /// it needs none.
    fn resolve_originals(&self) -> Result<(String, String), Failed> {
        let mut needed = self.subject.needs.original_names().peekable();
        let (Some(_), Some(folder)) = (needed.peek(), self.context.originals) else {
            return Ok((String::new(), String::new()));
        };
        let mut hash = Sha256::new();
        hash_all(&mut hash, folder, needed, "original")?;
        let digest = hex(&hash.finalize());
        Ok((folder.display().to_string(), digest))
    }

    /// The version that a tool prints; tools differ in the flag for it.
    fn tool_version(&self, tool: &str) -> Result<String, Failed> {
        let tool = quote(tool);
        let command =
            format!("{tool} --version 2>/dev/null || {tool} version 2>/dev/null || {tool} -v 2>&1");
        self.output_of(&command).map(|(_, text)| text)
    }

    /// How a short command ended, and what it printed.
    fn output_of(&self, command: &str) -> Result<(Finished, String), Failed> {
        let log = temporary(&self.shelf.root);
        let finished = self.run(&self.shell(command, log.clone(), VERSION_TIMEOUT));
        let text = fs::read_to_string(&log).unwrap_or_default();
        // A file that stays does no harm.
        let _ = fs::remove_file(&log);
        Ok((finished?, text))
    }

    /// Makes sure that the build is there, and holds it.
    fn built(&self, plan: &Build, stem: &str, sources: &[Fetched]) -> Result<Held, Failed> {
        self.shelf.hold(stem, &|dir| {
            let cwd = match sources {
                [] => self.folder(),
                sources => {
                    Git::new(self.context, self.launcher)?.check_out(sources, dir)?;
                    dir.join(source::TREE)
                }
            };
            self.build_now(plan, stem, cwd)
        })
    }

    fn build_now(&self, plan: &Build, stem: &str, cwd: PathBuf) -> Result<(), Failed> {
        let log = self.shelf.root.join(format!("{stem}.log"));
        let mut command = self.shell(&plan.cmd, log.clone(), plan.timeout);
        command.resolved.dir = cwd;
        let reason = match self.run(&command)? {
            Finished::Code(0) => return Ok(()),
            Finished::Code(code) => format!("its build failed with status {code}"),
            Finished::Signal(signal) => format!("its build was ended by signal {signal}"),
            _ => format!("its build took longer than {}", plan.timeout),
        };
        let tail = tail(&log);
        let quoted = if tail.is_empty() {
            String::new()
        } else {
            format!(": {}", tail.join(" | "))
        };
        Err(Failed {
            log: Some(log),
            ..Failed::new(format!("{reason}{quoted}"))
        })
    }

    /// The version in `line`, with the root file system that it is of.
    fn with_root(&self, line: &str) -> String {
        let line: String = line.chars().take(200).collect();
        let root = self.subject.root.as_ref().filter(|_| self.rooted.is_some());
        match root {
            Some(root) => format!("{line}, in a root file system of {}", root.title()),
            None => line,
        }
    }

    /// The line that its version command prints.
    fn version(&self) -> Result<String, Failed> {
        if self.subject.version.is_empty() {
            return Ok(String::new());
        }
        let (finished, text) = self.output_of(&self.subject.version)?;
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        Ok(match finished {
            Finished::Code(0) => self.with_root(line.unwrap_or_default()),
            _ => String::new(),
        })
    }
}

/// What the names of all builds of `subject` begin with.
fn prefix(subject: &Subject) -> String {
    // The file's own name, not the id: two entries of one folder share a build.
    let name = format!("{}-{}", subject.language, folder_name(subject));
    format!("{}-", plain_name(&name))
}

/// The name of the subject in its own file, whatever the experiment calls it.
fn folder_name(subject: &Subject) -> String {
    let folder = subject.folder().and_then(Path::file_name);
    folder.map_or_else(
        || subject.name.clone(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// One digest of two; of one, that.
fn both(of_subject: String, of_originals: String) -> String {
    if of_subject.is_empty() || of_originals.is_empty() {
        return of_subject + &of_originals;
    }
    let both = Sha256::digest(format!("{of_subject} {of_originals}"));
    hex(&both)
}

/// Names, modes and content of `names` in `folder`, with all that is in those that are folders. `what` they are is for errors.
fn hash_all<'a>(
    hash: &mut Sha256,
    folder: &Path,
    names: impl Iterator<Item = &'a str>,
    what: &str,
) -> Result<(), Failed> {
    let wrong = |name: &Path, error: io::Error| {
        Failed::new(format!("{what} `{}`: {error}", name.display()))
    };
    let mut files = Vec::new();
    let mut budget = Budget::default();
    for name in names.map(Path::new) {
        collect(folder, name, &mut files, &mut budget).map_err(|error| wrong(name, error))?;
    }
    files.sort();
    files.dedup();
    for (name, mode) in files {
        let content = fs::read(folder.join(&name)).map_err(|error| wrong(&name, error))?;
        part(hash, &format!("{mode:o} {}", name.display()), &content);
    }
    Ok(())
}

#[derive(Default)]
struct Budget {
    files: usize,
    bytes: u64,
}

/// The files at `name` and below it, relative to `folder`, with their modes.
fn collect(
    folder: &Path,
    name: &Path,
    files: &mut Vec<(PathBuf, u32)>,
    budget: &mut Budget,
) -> io::Result<()> {
    let path = folder.join(name);
    let meta = fs::metadata(&path)?;
    budget.files += 1;
    budget.bytes += if meta.is_file() { meta.len() } else { 0 };
    if budget.files > INPUT_FILES_MAX || budget.bytes > INPUT_BYTES_MAX {
        return Err(io::Error::other(format!(
            "more than {INPUT_FILES_MAX} files or {INPUT_BYTES_MAX} bytes of inputs"
        )));
    }
    if !meta.is_dir() {
        files.push((name.to_path_buf(), meta.permissions().mode() & 0o7777));
        return Ok(());
    }
    for entry in fs::read_dir(&path)? {
        let entry = entry?.file_name();
        if !SKIPPED.iter().any(|skipped| entry == *skipped) {
            collect(folder, &name.join(entry), files, budget)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
