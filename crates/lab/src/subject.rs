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
pub(crate) mod program;
pub(crate) mod repository;
mod revision;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use prony_record::{CountsSign, ReadySign, Source, StopRule};
use toml::Spanned;

use crate::diagnosis::{Diagnoses, Diagnosis, nearest, quoted};
use crate::experiment::fields::{Fields, Problems};
use crate::experiment::words::{self, BUILD_PLACEHOLDERS, START_PLACEHOLDERS, short};
use crate::experiment::{
    Experiment, From, Origin, SubjectEntry, check_names, check_peers, check_services,
    check_settings, read_file,
};
use crate::launch;

pub use client::Client;
pub use program::{Program, Role, Variants};
pub use repository::Repository;
pub use revision::AtRevision;
use revision::{Nowhere, at_revision};
use server::{Served, ready_default, seconds, stop_default};
pub(crate) use server::{check_port, endpoints, ready, stop};

/// The file that makes a folder a subject.
pub const FILE: &str = "subject.toml";
/// The folder of subjects that are built from somebody's repository as it is, whatever their language.
pub const ORIGINALS: &str = "original";
/// What brings git, where nothing else is said.
const GIT_PACKAGE: &str = "apt-get install -y git";
/// Signals that a server can be asked to stop with.
pub const SIGNALS: [&str; 7] = ["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "KILL"];
/// Characters of a command in its summary.
const SUMMARY_CHARS_MAX: usize = 200;
/// Folders looked at for the name of a subject that is not there.
const FOLDERS_MAX: usize = 2_000;

/// A subject, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// `language/name`, or the name that the experiment gives it.
    pub id: String,
    /// Name as a table shows it.
    pub name: String,
    /// What it is first of all.
    pub role: Role,
    /// Language; empty where it is not known.
    pub language: String,
    /// One sentence.
    pub summary: String,
    /// Its page; empty where there is none.
    pub homepage: String,
    /// Where it comes from.
    pub source: Source,
    /// Repositories that it is built from: that of the work tree, then those that lie in it; empty: none but its folder.
    pub repositories: Vec<Repository>,
    /// The state of the repository around its folder, where the experiment names a revision.
    pub revision: Option<prony_record::Repository>,
    /// Paths that it answers; empty: all. One that ends in `/*` stands for all below it.
    pub endpoints: Vec<String>,
    /// What the machine must have.
    pub needs: Needs,
    /// How it is built; `None`: not at all.
    pub build: Option<Build>,
    /// Argument vector that starts it as a server, with placeholders; empty for a `url`
    /// and for what is only a program.
    pub start: Vec<String>,
    /// Environment of the server, with placeholders.
    pub env: BTreeMap<String, String>,
    /// How one sees that it is ready.
    pub ready: ReadySign,
    /// How it is stopped.
    pub stop: StopRule,
    /// Shell command that prints its version; empty where there is none.
    pub version: String,
    /// What `{threads}` says; `None`: the subject's cores.
    pub threads: Option<u32>,
    /// The program that it is, alone or beside the server.
    pub program: Option<Program>,
    /// The client that it is, alone or beside the others.
    pub client: Option<Client>,
    /// How it tells what it has counted, by which it can be a peer.
    pub counts: Option<CountsSign>,
    /// Builds that it offers.
    pub variants: Variants,
    /// Text of its file, part of the key of its build; empty without one.
    pub text: String,
}

/// `[needs]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Commands that must be on PATH, or absolute paths of programs.
    pub commands: Vec<String>,
    /// Files that must be there (absolute paths).
    pub files: Vec<String>,
    /// Commands that would change it, by distribution: `debian`, `any`.
    pub packages: BTreeMap<String, String>,
    /// Where or for which version they work; free text, may be empty.
    pub when: String,
    /// Capabilities of the kernel that it is not to lose where Prony has them, in small letters: `sys_nice`.
    pub capabilities: Vec<String>,
}

/// `[build]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Shell command, run in the subject's folder.
    pub cmd: String,
    /// Files and folders whose content is part of the build's key, relative to the folder;
    /// they may lie outside of it.
    pub inputs: Vec<String>,
    /// After this it is ended.
    pub timeout: Nanos,
}

impl Subject {
    /// Checks the text of a `subject.toml`. Pure; all problems are reported together.
    pub fn parse(text: &str, origin: &Origin) -> Result<Subject, Diagnoses> {
        let mut problems = Problems::default();
        let subject = read(text, origin, &mut problems);
        match subject.filter(|_| problems.errors.is_empty()) {
            Some(subject) => Ok(subject),
            None => Err(Diagnoses::new(&origin.path, text, problems.errors)),
        }
    }

    /// Reads and checks the subject in `folder`.
    pub fn load(folder: &Path) -> Result<Subject, Diagnoses> {
        let (text, origin) = read_file(&folder.join(FILE))?;
        Subject::parse(&text, &origin)
    }

    /// Whether it answers `path` (a query does not count).
    pub fn answers(&self, path: &str) -> bool {
        let path = path.split('?').next().unwrap_or_default();
        let matches = |endpoint: &String| match endpoint.strip_suffix("/*") {
            Some(folder) => path
                .strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/')),
            None => path == endpoint,
        };
        self.endpoints.is_empty() || self.endpoints.iter().any(matches)
    }

    /// The absolute folder that it runs in; `None` for a `url`.
    pub fn folder(&self) -> Option<&Path> {
        match &self.source {
            Source::Folder { dir } | Source::Command { dir } => Some(Path::new(dir)),
            Source::Url { .. } | Source::Unknown => None,
        }
    }

    /// Whether it is a server that can be measured, of its own or one that already runs.
    pub fn is_server(&self) -> bool {
        !self.role.is_service() && (!self.start.is_empty() || !self.is_started())
    }

    /// Whether Prony starts it.
    pub fn is_started(&self) -> bool {
        !matches!(self.source, Source::Url { .. })
    }
}

/// The same as [`load_all_at`] for experiments that name no revision.
pub fn load_all(experiment: &Experiment, root: &Path) -> Result<Vec<Subject>, Vec<Diagnoses>> {
    load_all_at(experiment, root, &Nowhere)
}

/// Reads what the entries of an experiment name, in their order ([`Experiment::entries`]),
/// and checks the names that refer to it. `root` is the folder `subjects/`, `revisions` has other states of it.
///
/// Every file with problems is in the error.
pub fn load_all_at(
    experiment: &Experiment,
    root: &Path,
    revisions: &dyn AtRevision,
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
            .and_then(|()| crate::plan::check_published(experiment, &subjects));
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
    revisions: &dyn AtRevision,
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
        From::Command(command) => of_command(command, origin),
        From::Url(url) => of_url(url),
    };
    Ok(with_entry(subject, entry))
}

/// The folder that `ref` names: under `root`, or relative to the experiment.
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

/// What is in the folder `id`, by where it is: services lie in folders of their role.
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
fn of_command(command: &[String], origin: &Origin) -> Subject {
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

fn of_url(url: &str) -> Subject {
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

fn blank(name: &str, summary: &str) -> Subject {
    Subject {
        id: name.to_owned(),
        name: name.to_owned(),
        role: Role::Server,
        language: String::new(),
        summary: summary.to_owned(),
        homepage: String::new(),
        source: Source::Unknown,
        repositories: Vec::new(),
        revision: None,
        endpoints: Vec::new(),
        needs: Needs::default(),
        build: None,
        start: Vec::new(),
        env: BTreeMap::new(),
        ready: ready_default(),
        stop: stop_default(),
        version: String::new(),
        threads: None,
        program: None,
        client: None,
        counts: None,
        variants: Variants::new(),
        text: String::new(),
    }
}

/// The subjects of an experiment without looking at any file; for fuzzing.
pub(crate) fn stand_ins(experiment: &Experiment) -> Vec<Subject> {
    let stand_in = |entry: &SubjectEntry| {
        let subject = match &entry.from {
            From::Ref(reference) => blank(reference.get_ref(), "a stand-in"),
            From::Command(command) => Subject {
                needs: Needs::default(),
                ..of_command(command, &experiment.origin)
            },
            From::Url(url) => of_url(url),
        };
        with_entry(subject, entry)
    };
    experiment.entries().map(stand_in).collect()
}

/// What the experiment says of a subject goes before what its file says.
fn with_entry(mut subject: Subject, entry: &SubjectEntry) -> Subject {
    if let Some(name) = &entry.name {
        subject.id = name.get_ref().clone();
        subject.name = name.get_ref().clone();
    }
    subject.threads = entry.threads.or(subject.threads);
    let more = entry.capabilities.iter().cloned();
    subject.needs.capabilities.extend(more);
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
    if let Some(program) = &mut subject.program {
        program.cmd.extend(entry.args.iter().cloned());
        program.env.extend(entry.env.clone());
    }
    if let Some(client) = &mut subject.client {
        client.cmd.extend(entry.args.iter().cloned());
        client.env.extend(entry.env.clone());
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

fn read(text: &str, origin: &Origin, p: &mut Problems) -> Option<Subject> {
    let root = crate::experiment::document(text, p);
    if !p.errors.is_empty() {
        return None;
    }
    let mut top = Fields::new("the subject", 0..0, root.get_ref());
    let name = name_of(&mut top, "name", "name = \"axum\"", p);
    let language = language_of(&mut top, p);
    let summary = top.text_needed("summary", "summary = \"what it is\"", p);
    let homepage = top.text("homepage", p);
    // A misspelt role is not to be blamed for parts that the right one does not need.
    let kind = program::read_role(&mut top, p).unwrap_or_else(|| Role::likely(&top));
    let needs = top
        .table("needs", "[needs]", p)
        .map(|table| read_needs(table, p));
    let repositories = top
        .table("source", "[source]", p)
        .map(|table| repository::read(table, p))
        .unwrap_or_default();
    let build = top
        .table("build", "[build]", p)
        .and_then(|table| read_build(table, p));
    let (needs, build) = with_source(&top, needs.unwrap_or_default(), build);
    let variants = top
        .table("variants", "[variants]", p)
        .map(|table| program::variants(&table, p))
        .unwrap_or_default();
    let served = read_served(&mut top, kind, &variants, p);
    let program = read_program(&mut top, kind, &variants, p);
    let client = read_client(&mut top, kind, &variants, p);
    let example = "cmd = \"make version\"";
    let version = needed(&mut top, "version", "[version]", example, p)
        .and_then(|table| read_version(table, p));
    let texts = served.iter().flat_map(Served::texts);
    let texts = texts.chain(program.iter().flat_map(Program::texts));
    check_build_dir(&top, texts.chain(client.iter().flat_map(Client::texts)), p);
    top.finish(&[], p);
    let (name, language, served) = (name?, language?, served?);
    Some(Subject {
        id: format!("{}/{name}", group(kind, &language, &origin.folder)),
        name,
        role: kind,
        language,
        summary: summary?.into_inner(),
        homepage: homepage.map(Spanned::into_inner).unwrap_or_default(),
        source: Source::Folder {
            dir: origin.folder.display().to_string(),
        },
        repositories,
        revision: None,
        endpoints: served.endpoints,
        needs,
        build,
        start: served.command,
        env: served.env,
        ready: served.ready.unwrap_or_else(ready_default),
        stop: served.stop.unwrap_or_else(stop_default),
        version: version?,
        threads: None,
        program,
        client,
        counts: served.counts,
        variants,
        text: text.to_owned(),
    })
}

/// The first part of an id: what the folder is in, by what it must be.
fn group<'a>(role: Role, language: &'a str, folder: &Path) -> &'a str {
    let parent = folder.parent().and_then(Path::file_name);
    match role.is_service() {
        true => role.name(),
        false if parent.is_some_and(|parent| parent == ORIGINALS) => ORIGINALS,
        false => language,
    }
}

/// What comes with a `[source]`: git is needed, and without a `[build]` the work tree is all that is made.
fn with_source(
    top: &Fields<'_, '_>,
    mut needs: Needs,
    build: Option<Build>,
) -> (Needs, Option<Build>) {
    if !top.has("source") {
        return (needs, build);
    }
    if !needs.commands.iter().any(|command| command == "git") {
        needs.commands.push("git".to_owned());
    }
    if needs.packages.is_empty() {
        let package = ("debian".to_owned(), GIT_PACKAGE.to_owned());
        needs.packages.extend([package]);
    }
    let nothing = Build {
        cmd: "true".to_owned(),
        inputs: Vec::new(),
        timeout: Nanos::from_secs(60),
    };
    (needs, build.or(Some(nothing)))
}

fn read_served(
    top: &mut Fields<'_, '_>,
    kind: Role,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Served> {
    match kind {
        Role::Server => server::read_served(top, variants, p),
        Role::Backing | Role::Front => server::read_service(kind, top, variants, p),
        Role::Program | Role::Client => {
            program::refuse_server_parts(kind, top, p);
            Some(Served::default())
        }
    }
}

fn read_client(
    top: &mut Fields<'_, '_>,
    kind: Role,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Client> {
    if kind.is_service() {
        return None;
    }
    if kind == Role::Client && !top.has("client") {
        let example = format!("[client]\n{}", client::EXAMPLE);
        top.missing("[client]", &example, p);
    }
    let table = top.table("client", "[client]", p)?;
    client::client(table, variants, p)
}

fn read_program(
    top: &mut Fields<'_, '_>,
    kind: Role,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Program> {
    if kind.is_service() {
        return None;
    }
    if kind == Role::Program && !top.has("program") {
        let example = "[program]\ncmd = [\"{build}/program\", \"--count\", \"{count}\"]";
        top.missing("[program]", example, p);
    }
    let table = top.table("program", "[program]", p)?;
    program::program(table, variants, p)
}

/// `language`, which a service need not say: it is in the folder of its role.
fn language_of(top: &mut Fields<'_, '_>, p: &mut Problems) -> Option<String> {
    let is_service = |role: &toml::de::DeValue<'_>| {
        let role = role.as_str();
        role.is_some_and(|role| [Role::Backing.name(), Role::Front.name()].contains(&role))
    };
    let is_service = top
        .value("role")
        .is_some_and(|role| is_service(role.get_ref()));
    if is_service && !top.has("language") {
        return Some(String::new());
    }
    name_of(top, "language", "language = \"rust\"", p)
}

fn name_of(
    top: &mut Fields<'_, '_>,
    key: &'static str,
    example: &str,
    p: &mut Problems,
) -> Option<String> {
    let name = top.text_needed(key, example, p)?;
    let mut problem = words::name_problem(name.get_ref());
    if name.get_ref().contains('/') {
        problem = Some("it becomes part of file names, and holds a `/`".to_owned());
    }
    if let Some(problem) = problem {
        p.note(Diagnosis::new(name.span(), problem));
    }
    Some(name.into_inner())
}

/// A table that must be there.
pub(crate) fn needed<'a, 'i>(
    top: &mut Fields<'a, 'i>,
    key: &'static str,
    place: &'static str,
    example: &str,
    p: &mut Problems,
) -> Option<Fields<'a, 'i>> {
    if !top.has(key) {
        top.missing(place, &format!("{place}\n{example}"), p);
    }
    top.table(key, place, p)
}

fn read_needs(mut table: Fields<'_, '_>, p: &mut Problems) -> Needs {
    let commands = table.texts("commands", p).unwrap_or_default();
    let files = table.texts("files", p).unwrap_or_default();
    for file in &files {
        if !file.get_ref().starts_with('/') {
            let message = "a file that must be there is given by its absolute path";
            p.note(Diagnosis::new(file.span(), message));
        }
    }
    let capabilities = capabilities(&mut table, p);
    let mut when = table.text("when", p);
    let mut packages = BTreeMap::new();
    if let Some(mut listed) = table.table("packages", "packages = {…}", p) {
        for key in ["debian", "any"] {
            let command = listed.text(key, p);
            packages.extend(command.map(|command| (key.to_owned(), command.into_inner())));
        }
        when = listed.text("when", p).or(when);
        listed.finish(&[], p);
    }
    table.finish(&[], p);
    Needs {
        commands: commands.into_iter().map(Spanned::into_inner).collect(),
        files: files.into_iter().map(Spanned::into_inner).collect(),
        packages,
        when: when.map(Spanned::into_inner).unwrap_or_default(),
        capabilities,
    }
}

/// `capabilities`, each one that the kernel has.
pub(crate) fn capabilities(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<String> {
    let names = table.texts("capabilities", p).unwrap_or_default();
    for name in &names {
        if launch::capability_named(name.get_ref()).is_none() {
            let message = format!("`{}` is no capability", short(name.get_ref()));
            let help = "capabilities = [\"sys_nice\"], as capabilities(7) lists them, in small letters without CAP_";
            p.note(Diagnosis::new(name.span(), message).help(help));
        }
    }
    names.into_iter().map(Spanned::into_inner).collect()
}

fn read_build(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Build> {
    let cmd = table.text_needed("cmd", "cmd = \"make OUT={build}\"", p);
    if !table.has("inputs") {
        table.missing("inputs", "inputs = [\"src\"]", p);
    }
    let inputs = table.texts("inputs", p).unwrap_or_default();
    for input in &inputs {
        if Path::new(input.get_ref()).is_absolute() || input.get_ref().is_empty() {
            let message = "an input is a path from the subject's folder";
            p.note(Diagnosis::new(input.span(), message));
        }
    }
    let timeout = seconds(&mut table, 900, p);
    let cmd = shell_command(cmd, p);
    table.finish(&[], p);
    Some(Build {
        cmd: cmd?,
        inputs: inputs.into_iter().map(Spanned::into_inner).collect(),
        timeout,
    })
}

fn read_version(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<String> {
    let cmd = table.text_needed("cmd", "cmd = \"make version\"", p);
    table.finish(&[], p);
    shell_command(cmd, p)
}

/// A shell command whose placeholders are those of building.
fn shell_command(cmd: Option<Spanned<String>>, p: &mut Problems) -> Option<String> {
    let cmd = cmd?;
    for name in words::placeholders(cmd.get_ref()) {
        // A shell's own `${name}` and awk's `{print}` are left alone unless a
        // placeholder must have been meant.
        let is_start =
            START_PLACEHOLDERS.contains(&name) || nearest(name, BUILD_PLACEHOLDERS).is_some();
        if !BUILD_PLACEHOLDERS.contains(&name) && is_start {
            let message = format!("`{{{}}}` cannot stand in this command", short(name));
            let help = suggest_placeholder(name, &BUILD_PLACEHOLDERS);
            p.note(Diagnosis::new(cmd.span(), message).help(help));
        }
    }
    Some(cmd.into_inner())
}

/// Notes placeholders that are none of the `right` ones.
pub(crate) fn check_placeholders<'a>(
    texts: impl IntoIterator<Item = &'a String>,
    right: &[&str],
    span: &Range<usize>,
    p: &mut Problems,
) {
    let names = texts.into_iter().flat_map(|text| words::placeholders(text));
    for name in names.filter(|name| !right.contains(name)) {
        let message = format!("unknown placeholder `{{{}}}`", short(name));
        p.note(Diagnosis::new(span.clone(), message).help(suggest_placeholder(name, right)));
    }
}

fn suggest_placeholder(name: &str, right: &[&str]) -> String {
    let braced: Vec<String> = right.iter().map(|name| format!("{{{name}}}")).collect();
    match nearest(name, right.iter().copied()) {
        Some(word) => format!("did you mean `{{{word}}}`?"),
        None => format!("placeholders here: {}", quoted(&braced)),
    }
}

/// `{build}` without a build is nowhere.
fn check_build_dir<'a>(
    top: &Fields<'_, '_>,
    mut texts: impl Iterator<Item = &'a String>,
    p: &mut Problems,
) {
    if !top.has("build") && !top.has("source") && texts.any(|text| text.contains("{build}")) {
        let message = "`{build}` is used and there is no [build]";
        p.note(Diagnosis::new(top.span.clone(), message));
    }
}

#[cfg(test)]
mod tests;
