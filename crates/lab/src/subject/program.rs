//! What a `subject.toml` says of a program that is run to its end: `[program]` and
//! `[variants]`.
//!
//! Not for: servers ([`super`]), or what an experiment asks of a program
//! ([`crate::experiment`]).

use std::collections::BTreeMap;

use toml::Spanned;

use crate::experiment::fields::{Fields, Pairs, plain_pairs};
use crate::experiment::keys::{self, check_placeholders};
use crate::experiment::words::{
    CLIENT_PLACEHOLDERS, FRONT_PLACEHOLDERS, ORIGINALS, PROGRAM_PLACEHOLDERS, START_PLACEHOLDERS,
    short,
};
use crate::printed::Pattern;

/// Builds that a subject offers: values by the name of the setting that chooses among
/// them, the first being the usual one.
pub type Variants = BTreeMap<String, Vec<String>>;

/// A program that does named works, each to its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Argument vector with placeholders.
    pub cmd: Vec<String>,
    /// Environment with placeholders.
    pub env: BTreeMap<String, String>,
    /// The works that it does.
    pub works: Vec<String>,
    /// Works that it does not do, and why.
    pub not_applicable: BTreeMap<String, String>,
    /// Sizes of works that cannot be asked for in another one.
    pub sizes: BTreeMap<String, u64>,
    /// Pattern of its output where that is not JSON ([`Pattern`]).
    pub output: Option<String>,
}

impl Program {
    /// Why it does not do `work`; `None`: it does.
    pub fn why_not(&self, work: &str) -> Option<String> {
        if let Some(reason) = self.not_applicable.get(work) {
            return Some(format!("does not do this work: {reason}"));
        }
        let knows = self.works.iter().any(|known| known == work);
        (!knows).then(|| format!("does not do this work: `{work}` is none of its works"))
    }

    /// The texts of its command and of its environment.
    pub fn texts(&self) -> impl Iterator<Item = &String> + Clone {
        self.cmd.iter().chain(self.env.values())
    }
}

/// `[variants]`: lists of names by setting.
pub(super) fn variants(top: &Fields<'_>) -> Variants {
    let p = top.problems;
    for (name, _) in top.entries("variants") {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let typed = *name.get_ref();
        if typed.is_empty() || !typed.chars().all(plain) {
            let message =
                "a variant is named in lower-case letters and `_`: commands have it in braces";
            p.note(name.span(), message);
        }
        let taken = START_PLACEHOLDERS
            .iter()
            .chain(&FRONT_PLACEHOLDERS)
            .chain(&PROGRAM_PLACEHOLDERS)
            .chain(&CLIENT_PLACEHOLDERS);
        if taken.chain(&["value", ORIGINALS]).any(|one| *one == typed) {
            let message =
                format!("a variant cannot be called `{typed}`: `{{{typed}}}` means something else");
            p.note(name.span(), message);
        }
    }
    let listed: BTreeMap<String, Spanned<Vec<Spanned<String>>>> = top.value("variants");
    let checked = |(name, values): (String, Spanned<Vec<Spanned<String>>>)| {
        if values.get_ref().is_empty() {
            let message =
                format!("`{name}` is empty; it is a list of names, the usual build first");
            p.note(values.span(), message);
        }
        keys::check_differ(values.get_ref(), "value", p);
        (name, keys::texts(values.into_inner()))
    };
    listed.into_iter().map(checked).collect()
}

/// `[program]`.
pub(super) fn program(table: &Fields<'_>, variants: &Variants) -> Option<Program> {
    let program = command(table, &with_variants(&PROGRAM_PLACEHOLDERS, variants));
    let program = Program {
        sizes: sizes(table, &program.works),
        output: output(table),
        ..program
    };
    Some(program).filter(|program| !program.cmd.is_empty())
}

/// The command of a program or a client, and the works that it does; without words where there is none. `right`: its placeholders.
pub(super) fn command(table: &Fields<'_>, right: &[&str]) -> Program {
    let works = works(table);
    let program = Program {
        cmd: keys::command(table, false).unwrap_or_default(),
        env: table.value("env"),
        not_applicable: not_applicable(table, &works),
        works,
        ..Program::default()
    };
    check_placeholders(table, "cmd", &program.cmd, right);
    check_placeholders(table, "env", program.env.values(), right);
    if program.works.len() > 1 && !program.texts().any(|text| text.contains("{work}")) {
        let message = "`{work}` stands neither in the command nor in the environment";
        let help = "with several works it must be told which: add \"--work\", \"{work}\"";
        table.note("cmd", message, help);
    }
    program
}

/// Placeholders, with the names of the variants among them, and what a file alone may use.
pub(super) fn with_variants<'a>(right: &[&'a str], variants: &'a Variants) -> Vec<&'a str> {
    let mut all = right.to_vec();
    all.push(ORIGINALS);
    all.extend(variants.keys().map(String::as_str));
    all
}

/// `works`, each a name and once.
pub(crate) fn works(table: &Fields<'_>) -> Vec<String> {
    let listed: Vec<Spanned<String>> = table.value("works");
    if table.is_empty_list("works") {
        let message = "`works` is empty; it is a list such as [\"coroutine\", \"event\"]";
        table.note("works", message, "");
    }
    keys::check_differ(&listed, "work", table.problems);
    keys::texts(listed)
}

/// `output`, a pattern that compiles.
pub(crate) fn output(table: &Fields<'_>) -> Option<String> {
    let text: String = table.get("output")?;
    if let Err(why) = Pattern::new(&text) {
        let message = format!("`output` is no pattern that can be used: {why}");
        let help =
            r"output = 'ran for (?<elapsed_us>[\d,]+) µs .* (?<rate>[\d,]+) (?<measure>\w+)/s'";
        table.note("output", message, help);
    }
    Some(text)
}

/// `[program.not_applicable]`: reasons by work, none of which it does.
fn not_applicable(table: &Fields<'_>, works: &[String]) -> BTreeMap<String, String> {
    let pairs: Pairs = table.value("not_applicable");
    for (work, reason) in &pairs {
        if works.contains(work.get_ref()) {
            let message = format!("`{}` stands in `works` too", short(work.get_ref()));
            table.problems.note(work.span(), message);
        }
        if reason.get_ref().trim().is_empty() {
            table.problems.note(reason.span(), "the reason is empty");
        }
    }
    plain_pairs(pairs).into_iter().collect()
}

/// `[program.sizes]`: for works of one size only, which.
fn sizes(table: &Fields<'_>, works: &[String]) -> BTreeMap<String, u64> {
    for (work, _) in table.entries("sizes") {
        let name = *work.get_ref();
        if !works.iter().any(|one| one == name) {
            let message = format!("`{}` is none of its `works`", short(name));
            table.problems.note(work.span(), message);
        }
    }
    table.value("sizes")
}

/// What a subject is first of all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Role {
    /// A server that is measured. It may be a program and a client too.
    #[default]
    Server,
    /// A program that is run to its end.
    Program,
    /// A client, likewise.
    Client,
    /// A service that servers need: a database.
    Backing,
    /// A proxy in front of a server.
    Front,
}

impl Role {
    const ALL: [Role; 5] = [
        Role::Server,
        Role::Program,
        Role::Client,
        Role::Backing,
        Role::Front,
    ];
    const NAMES: [&'static str; 5] = ["server", "program", "client", "backing", "front"];

    /// The name that a file gives it.
    pub fn name(self) -> &'static str {
        Role::NAMES[self as usize]
    }

    /// Whether it stands around servers, and is not measured itself.
    pub fn is_service(self) -> bool {
        matches!(self, Role::Backing | Role::Front)
    }

    /// What it must be by the parts that it has.
    pub(super) fn likely(top: &Fields<'_>) -> Role {
        match (top.has("start"), top.has("program"), top.has("client")) {
            (false, true, _) => Role::Program,
            (false, false, true) => Role::Client,
            _ => Role::Server,
        }
    }
}

/// Notes the parts of a server in what is none.
pub(super) fn refuse_server_parts(kind: Role, top: &Fields<'_>) {
    let name = kind.name();
    let message = format!("a {name} has no `{{key}}`: it is run to its end by [{name}]");
    let help = format!("role = \"server\" may have both, [start] and [{name}]");
    let parts = ["endpoints", "start", "ready", "stop", "counts", "protocols"];
    top.refuse(&parts, &message, &help);
}

/// Notes the parts of a subject in a service, which is not measured itself.
pub(super) fn refuse_subject_parts(kind: Role, top: &Fields<'_>) {
    let message = format!(
        "a {} has no `{{key}}`: it is not measured itself",
        kind.name()
    );
    let parts = ["endpoints", "program", "client", "counts", "protocols"];
    top.refuse(&parts, &message, "");
}

/// `role`; `None` where it is not said.
pub(super) fn read_role(top: &Fields<'_>) -> Option<Role> {
    let role: String = top.get("role")?;
    let place = Role::NAMES.iter().position(|name| *name == role)?;
    Some(Role::ALL[place])
}
