//! What a folder's `subject.toml` says, as a [`Subject`].
//!
//! Not for: what an experiment says of it in place of that ([`super::load_all`]).

use std::collections::BTreeMap;
use std::path::Path;

use prony_base::Nanos;
use prony_record::{CountsSign, ReadySign, Source, StopRule};
use toml::Spanned;

use crate::diagnosis::{Diagnoses, nearest};
use crate::experiment::fields::{Fields, Origin, Problems, document, read_file};
use crate::experiment::keys::{self, suggest_placeholder};
use crate::experiment::spoken::PLAIN;
use crate::experiment::words::{
    self, BUILD_PLACEHOLDERS, START_PLACEHOLDERS, VERSION_PLACEHOLDERS, short,
};

use crate::reference::KeyFile;

use super::client::{self, Client};
use super::needs::{self, Needs};
use super::originals;
use super::program::{self, Program, Role, Variants};
use super::repository::{self, Repository};
use super::root::{self, RootFs};
use super::server::{self, ready_default, stop_default};

/// The file that makes a folder a subject.
pub const FILE: &str = "subject.toml";
/// The folder of subjects that run what their user has built of somebody else's system, whatever their language.
pub const ORIGINALS: &str = "original";
/// What brings git, where nothing else is said.
const GIT_PACKAGE: &str = "apt-get install -y git";
/// A subject, checked.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// The source it is built from.
    pub source: Source,
    /// Repositories that it is built from: that of the work tree, then those that lie in it; empty: none but its folder.
    pub repositories: Vec<Repository>,
    /// The state of the repository around its folder, where the experiment names a revision.
    pub revision: Option<prony_record::Repository>,
    /// Paths that it answers; empty: all. One that ends in `/*` stands for all below it.
    pub endpoints: Vec<String>,
    /// What the machine must have.
    pub needs: Needs,
    /// The root file system that it is built and started in where the machine lacks what it needs; `None`: the machine's.
    pub root: Option<RootFs>,
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
    /// What its command is given for each protocol that it speaks beside plain HTTP/1.1.
    pub protocols: BTreeMap<String, Vec<String>>,
    /// Text of its file, part of the key of its build; empty without one.
    pub text: String,
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
        let problems = Problems::default();
        let subject = read(text, origin, &problems);
        problems.checked(subject, &origin.path, text)
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

    /// Whether it speaks `protocol` as a server: `http`, and what its `[protocols]` has.
    pub fn speaks(&self, protocol: &str) -> bool {
        protocol == PLAIN || self.protocols.contains_key(protocol)
    }

    /// The absolute folder that it runs in; `None` for a `url`.
    pub fn folder(&self) -> Option<&Path> {
        match &self.source {
            Source::Folder { dir } | Source::Command { dir } => Some(Path::new(dir)),
            Source::Url { .. } | Source::Unknown => None,
        }
    }

    /// The environments that its processes are given: as a server, a program and a client.
    pub fn environments(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        std::iter::once(&self.env).chain(self.programs().map(|program| &program.env))
    }

    /// The texts of the command that starts it, and of its environment.
    pub fn texts(&self) -> impl Iterator<Item = &String> + Clone {
        self.start.iter().chain(self.env.values())
    }

    /// What is run to its end: the program, and the client.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let client = self.client.iter().map(|client| &client.program);
        self.program.iter().chain(client)
    }

    /// The root file system that it is in on a machine that `lacks` something of what it needs. One that needs nothing
    /// of the machine always has it.
    pub fn root_if(&self, lacks: bool) -> Option<&RootFs> {
        let needs_nothing = self.needs.commands.is_empty() && self.needs.files.is_empty();
        self.root.as_ref().filter(|_| lacks || needs_nothing)
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

pub(super) fn blank(name: &str, summary: &str) -> Subject {
    Subject {
        id: name.to_owned(),
        name: name.to_owned(),
        summary: summary.to_owned(),
        ready: ready_default(),
        stop: stop_default(),
        ..Subject::default()
    }
}

/// The whole file; with problems it is not to be used.
pub(crate) fn read(text: &str, origin: &Origin, p: &Problems) -> Option<Subject> {
    let root = document(text, p)?;
    let top = Fields::top(KeyFile::Subject, root.get_ref(), p);
    let (name, language) = (name_of(&top, "name"), language_of(&top));
    let summary: String = top.value("summary");
    // A misspelt role is not to be blamed for parts that the right one does not need.
    let role = program::read_role(&top).unwrap_or_else(|| Role::likely(&top));
    let build = top.table("build").and_then(|table| read_build(&table));
    let needs = needs::read(&top.table_or_empty("needs"));
    let (needs, build) = with_source(&top, needs, build);
    let source = top.table("source");
    let own_root = top.table("root");
    let mut subject = Subject {
        id: format!("{}/{name}", group(role, &language, &origin.folder)),
        role,
        language,
        homepage: top.value("homepage"),
        source: Source::Folder {
            dir: origin.folder.display().to_string(),
        },
        repositories: source.map_or_else(Vec::new, |table| repository::read(&table)),
        needs,
        root: own_root.and_then(|table| root::read(&table, &origin.folder)),
        build,
        variants: program::variants(&top),
        text: text.to_owned(),
        ..blank(&name, &summary)
    };
    match role {
        Role::Server => server::read_server(&top, &mut subject),
        Role::Backing | Role::Front => server::read_service(&top, &mut subject),
        Role::Program | Role::Client => program::refuse_server_parts(role, &top),
    }
    if !role.is_service() {
        subject.program = read_program(&top, &subject);
        subject.client = read_client(&top, &subject);
    }
    if let Some(table) = top.table_required("version", "cmd = \"make version\"") {
        subject.version = shell_command(&table, &VERSION_PLACEHOLDERS).unwrap_or_default();
    }
    let texts = || {
        let protocols = subject.protocols.values().flatten();
        let environments = subject.environments().flat_map(BTreeMap::values);
        let programs = subject.programs().flat_map(|program| &program.cmd);
        let translate = subject.client.iter().flat_map(|client| &client.translate);
        let commands = subject.start.iter().chain(protocols).chain(programs);
        commands.chain(translate).chain(environments)
    };
    check_build_dir(&top, texts());
    let span = top.span_of("needs");
    let all = texts().chain([&subject.version]);
    let needs = &subject.needs;
    originals::check(&needs.files, needs.original.as_ref(), all, &span, p);
    Some(subject)
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
fn with_source(top: &Fields<'_>, mut needs: Needs, build: Option<Build>) -> (Needs, Option<Build>) {
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

fn read_client(top: &Fields<'_>, subject: &Subject) -> Option<Client> {
    if subject.role == Role::Client && !top.has("client") {
        let example = "cmd = [\"wrk\", \"-t\", \"{threads}\", \"-c\", \"{connections}\", \"-d\", \"{seconds}s\", \"{url}\"]";
        top.table_required("client", example);
    }
    client::client(&top.table("client")?, &subject.variants)
}

fn read_program(top: &Fields<'_>, subject: &Subject) -> Option<Program> {
    if subject.role == Role::Program && !top.has("program") {
        let example = "cmd = [\"{build}/program\", \"--count\", \"{count}\"]";
        top.table_required("program", example);
    }
    program::program(&top.table("program")?, &subject.variants)
}

/// `language`, which a service need not say: it is in the folder of its role.
fn language_of(top: &Fields<'_>) -> String {
    let role = top.raw("role").and_then(|role| role.get_ref().as_str());
    let services = [Role::Backing.name(), Role::Front.name()];
    if role.is_some_and(|role| services.contains(&role)) && !top.has("language") {
        return String::new();
    }
    name_of(top, "language")
}

fn name_of(top: &Fields<'_>, key: &'static str) -> String {
    let Some(name) = top.get::<String>(key) else {
        return String::new();
    };
    let problem = match name.contains('/') {
        true => Some("it becomes part of file names, and holds a `/`".to_owned()),
        false => words::name_problem(&name),
    };
    if let Some(problem) = problem {
        top.note(key, problem, "");
    }
    name
}

fn read_build(table: &Fields<'_>) -> Option<Build> {
    let inputs: Vec<Spanned<String>> = table.value("inputs");
    for input in &inputs {
        if Path::new(input.get_ref()).is_absolute() || input.get_ref().is_empty() {
            let message = "an input is a path from the subject's folder";
            table.problems.note(input.span(), message);
        }
    }
    Some(Build {
        timeout: Nanos::from_secs(table.value("timeout_s")),
        cmd: shell_command(table, &BUILD_PLACEHOLDERS)?,
        inputs: keys::texts(inputs),
    })
}

/// `cmd`, a shell command whose placeholders are `right`.
fn shell_command(table: &Fields<'_>, right: &[&str]) -> Option<String> {
    let cmd: String = table.get("cmd")?;
    for name in words::placeholders(&cmd) {
        // A shell's own `${name}` and awk's `{print}` are left alone unless a
        // placeholder must have been meant.
        let mut others = START_PLACEHOLDERS.iter().chain(&VERSION_PLACEHOLDERS);
        let is_meant =
            others.any(|other| *other == name) || nearest(name, right.iter().copied()).is_some();
        if !right.contains(&name) && is_meant {
            let message = format!("`{{{}}}` cannot stand in this command", short(name));
            table.note("cmd", message, suggest_placeholder(name, right));
        }
    }
    Some(cmd)
}

/// `{build}` without a build is nowhere.
fn check_build_dir<'a>(top: &Fields<'_>, mut texts: impl Iterator<Item = &'a String>) {
    if !top.has("build") && !top.has("source") && texts.any(|text| text.contains("{build}")) {
        let message = "`{build}` is used and there is no [build]";
        top.problems.note(top.span.clone(), message);
    }
}
