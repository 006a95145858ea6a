//! What a `subject.toml` says of a program that is run to its end: `[program]` and
//! `[variants]`.
//!
//! Not for: servers ([`super`]), or what an experiment asks of a program
//! ([`crate::experiment`]).

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

use crate::diagnosis::{Diagnosis, suggest};
use crate::experiment::fields::{self, Fields, Problems};
use crate::experiment::keys::{self, check_placeholders};
use crate::experiment::words::{
    self, CLIENT_PLACEHOLDERS, FRONT_PLACEHOLDERS, ORIGINALS, PROGRAM_PLACEHOLDERS,
    START_PLACEHOLDERS, short,
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
        let knows = self.works.iter().any(|own| own == work);
        (!knows).then(|| format!("does not do this work: `{work}` is none of its works"))
    }

    /// Everything in which a placeholder may stand.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.cmd.iter().chain(self.env.values())
    }

    /// Whether it is told how many threads to use.
    pub fn is_told_threads(&self) -> bool {
        self.texts().any(|text| text.contains("{threads}"))
    }
}

/// `[variants]`: lists of names by setting.
pub(super) fn variants(table: &Fields<'_, '_>, p: &mut Problems) -> Variants {
    let mut read = Variants::new();
    for (name, value) in table.rest() {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        let typed = *name.get_ref();
        if typed.is_empty() || !typed.chars().all(plain) {
            let message =
                "a variant is named in lower-case letters and `_`: commands have it in braces";
            p.note(Diagnosis::new(name.span(), message));
        }
        let taken = START_PLACEHOLDERS
            .iter()
            .chain(&FRONT_PLACEHOLDERS)
            .chain(&PROGRAM_PLACEHOLDERS)
            .chain(&CLIENT_PLACEHOLDERS);
        if taken.chain(&["value", ORIGINALS]).any(|own| *own == typed) {
            let message =
                format!("a variant cannot be called `{typed}`: `{{{typed}}}` means something else");
            p.note(Diagnosis::new(name.span(), message));
        }
        read.insert(typed.to_owned(), variant_values(typed, value, p));
    }
    read
}

fn variant_values(name: &str, value: &fields::Value<'_>, p: &mut Problems) -> Vec<String> {
    let wanted = "a list of names, the usual build first";
    let items = fields::list(name, value, wanted, p).unwrap_or_default();
    let mut values: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let Some(text) = fields::text(name, item, p) else {
            continue;
        };
        if let Some(problem) = words::name_problem(text.get_ref()) {
            p.note(Diagnosis::new(text.span(), problem));
        }
        if values.contains(text.get_ref()) {
            let message = format!("the value `{}` stands here twice", short(text.get_ref()));
            p.note(Diagnosis::new(text.span(), message));
        }
        values.push(text.into_inner());
    }
    if let DeValue::Array(items) = value.get_ref()
        && items.is_empty()
    {
        p.note(Diagnosis::new(
            value.span(),
            format!("`{name}` is empty; it is {wanted}"),
        ));
    }
    values
}

/// `[program]`.
pub(super) fn program(
    mut table: Fields<'_, '_>,
    variants: &Variants,
    p: &mut Problems,
) -> Option<Program> {
    let example = "cmd = [\"{build}/program\", \"--work\", \"{work}\", \"--count\", \"{count}\"]";
    let cmd = command(&mut table, example, p);
    let env = table.map("env", p).unwrap_or_default();
    let right = with_variants(&PROGRAM_PLACEHOLDERS, variants);
    check_placeholders(cmd.iter().flatten(), &right, &table.span_of("cmd"), p);
    check_placeholders(env.values(), &right, &table.span_of("env"), p);
    if !table.has("works") {
        table.missing("works", "works = [\"coroutine\", \"event\"]", p);
    }
    let works = works(&mut table, p);
    let not_applicable = not_applicable(&mut table, &works, p);
    let sizes = sizes(&mut table, &works, p);
    let output = output(&mut table, p);
    check_told(
        cmd.iter().flatten().chain(env.values()),
        &works,
        &table.span_of("cmd"),
        p,
    );
    table.finish(&[], p);
    Some(Program {
        cmd: cmd?,
        env,
        works: plain(works),
        not_applicable,
        sizes,
        output,
    })
}

/// `cmd`, a list of words.
pub(super) fn command(
    table: &mut Fields<'_, '_>,
    example: &str,
    p: &mut Problems,
) -> Option<Vec<String>> {
    let Some(value) = table.value("cmd") else {
        table.missing("cmd", example, p);
        return None;
    };
    if let DeValue::String(_) = value.get_ref() {
        let message = format!(
            "`cmd` of {} must be a list of words: no shell reads it",
            table.place
        );
        p.note(Diagnosis::new(value.span(), message).help(example));
        return None;
    }
    keys::command(value, p)
}

/// Placeholders, with the names of the variants among them, and what a file alone may use.
pub(super) fn with_variants<'a>(right: &[&'a str], variants: &'a Variants) -> Vec<&'a str> {
    let mut all = right.to_vec();
    all.push(ORIGINALS);
    all.extend(variants.keys().map(String::as_str));
    all
}

pub(super) fn plain(texts: Vec<Spanned<String>>) -> Vec<String> {
    texts.into_iter().map(Spanned::into_inner).collect()
}

/// What does several works must be told which.
pub(super) fn check_told<'a>(
    mut texts: impl Iterator<Item = &'a String>,
    works: &[Spanned<String>],
    span: &Range<usize>,
    p: &mut Problems,
) {
    if works.len() > 1 && !texts.any(|text| text.contains("{work}")) {
        let message = "`{work}` stands neither in the command nor in the environment";
        let help = "with several works it must be told which: add \"--work\", \"{work}\"";
        p.note(Diagnosis::new(span.clone(), message).help(help));
    }
}

/// `works`, each a name and once.
pub(crate) fn works(table: &mut Fields<'_, '_>, p: &mut Problems) -> Vec<Spanned<String>> {
    let Some(listed) = table.texts("works", p) else {
        return Vec::new();
    };
    if listed.is_empty() {
        let message = "`works` is empty; it is a list such as [\"coroutine\", \"event\"]";
        p.note(Diagnosis::new(table.span_of("works"), message));
    }
    for (index, work) in listed.iter().enumerate() {
        if let Some(problem) = words::name_problem(work.get_ref()) {
            p.note(Diagnosis::new(work.span(), problem));
        }
        if listed[..index].contains(work) {
            let message = format!("the work `{}` stands here twice", short(work.get_ref()));
            p.note(Diagnosis::new(work.span(), message));
        }
    }
    listed
}

/// `output`, a pattern that compiles.
pub(crate) fn output(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<String> {
    let text = table.text("output", p)?;
    if let Err(why) = Pattern::new(text.get_ref()) {
        let message = format!("`output` is no pattern that can be used: {why}");
        let help =
            r"output = 'ran for (?<elapsed_us>[\d,]+) µs .* (?<rate>[\d,]+) (?<measure>\w+)/s'";
        p.note(Diagnosis::new(text.span(), message).help(help));
    }
    Some(text.into_inner())
}

/// `[program.not_applicable]`: reasons by work, none of which it does.
pub(super) fn not_applicable(
    table: &mut Fields<'_, '_>,
    works: &[Spanned<String>],
    p: &mut Problems,
) -> BTreeMap<String, String> {
    let pairs = table.pairs("not_applicable", p).unwrap_or_default();
    for (work, reason) in &pairs {
        if works.iter().any(|own| own.get_ref() == work.get_ref()) {
            let message = format!("`{}` stands in `works` too", short(work.get_ref()));
            p.note(Diagnosis::new(work.span(), message));
        }
        if reason.get_ref().trim().is_empty() {
            p.note(Diagnosis::new(reason.span(), "the reason is empty"));
        }
    }
    let plain = |(work, reason): (Spanned<String>, Spanned<String>)| {
        (work.into_inner(), reason.into_inner())
    };
    pairs.into_iter().map(plain).collect()
}

/// `[program.sizes]`: for works of one size only, which.
fn sizes(
    table: &mut Fields<'_, '_>,
    works: &[Spanned<String>],
    p: &mut Problems,
) -> BTreeMap<String, u64> {
    let mut read = BTreeMap::new();
    let Some(listed) = table.table("sizes", "[program.sizes]", p) else {
        return read;
    };
    for (work, value) in listed.rest() {
        let name = *work.get_ref();
        if !works.iter().any(|own| own.get_ref() == name) {
            let message = format!("`{}` is none of its `works`", short(name));
            p.note(Diagnosis::new(work.span(), message));
        }
        if let Some(size) = fields::whole(name, value, 1..=u64::from(u32::MAX), p) {
            read.insert(name.to_owned(), size);
        }
    }
    read
}

/// What a subject is first of all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// A server that is measured. It may be a program and a client too.
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
    const NAMES: [&'static str; 5] = ["server", "program", "client", "backing", "front"];

    /// As a file says it.
    pub fn name(self) -> &'static str {
        Role::NAMES[self as usize]
    }

    /// Whether it stands around servers, and is not measured itself.
    pub fn is_service(self) -> bool {
        matches!(self, Role::Backing | Role::Front)
    }

    /// What it must be by the parts that it has.
    pub(super) fn likely(top: &Fields<'_, '_>) -> Role {
        match (top.has("start"), top.has("program"), top.has("client")) {
            (false, true, _) => Role::Program,
            (false, false, true) => Role::Client,
            _ => Role::Server,
        }
    }
}

/// Notes the parts of a server in what is none.
pub(super) fn refuse_server_parts(kind: Role, top: &mut Fields<'_, '_>, p: &mut Problems) {
    let name = kind.name();
    for key in ["endpoints", "start", "ready", "stop", "counts"] {
        if let Some(value) = top.value(key) {
            let message = format!("a {name} has no `{key}`: it is run to its end by [{name}]");
            let help = format!("role = \"server\" may have both, [start] and [{name}]");
            p.note(Diagnosis::new(value.span(), message).help(help));
        }
    }
}

/// Notes the parts of a subject in a service, which is not measured itself.
pub(super) fn refuse_subject_parts(kind: Role, top: &mut Fields<'_, '_>, p: &mut Problems) {
    let name = kind.name();
    for key in ["endpoints", "program", "client", "counts"] {
        if let Some(value) = top.value(key) {
            let message = format!("a {name} has no `{key}`: it is not measured itself");
            p.note(Diagnosis::new(value.span(), message));
        }
    }
}

/// `role`; `None` where it is not said.
pub(super) fn read_role(top: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Role> {
    let role = top.text_needed("role", "role = \"server\"", p)?;
    match role.get_ref().as_str() {
        "server" => Some(Role::Server),
        "program" => Some(Role::Program),
        "client" => Some(Role::Client),
        "backing" => Some(Role::Backing),
        "front" => Some(Role::Front),
        other => {
            let message = format!("role `{}` is not supported", short(other));
            let help = match suggest(other, "role", &Role::NAMES) {
                help if help.starts_with("did") => help,
                _ => {
                    "a subject is a \"server\", a \"program\" or a \"client\"; around it there are \
                      \"backing\" and \"front\""
                        .to_owned()
                }
            };
            p.note(Diagnosis::new(role.span(), message).help(help));
            None
        }
    }
}
