//! From the text of an experiment to [`Experiment`]: pure, and all problems at once.

use std::path::Path;

use prony_base::Nanos;
use prony_base::typed::share;
use prony_load::target;
use prony_record::Cores;
use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use super::fields::{Fields, Origin, Problems, document, read_file};
use super::keys::{self, check_placeholders, command, connections};
use super::sources::{self, SentRequests};
use super::types::{Aim, Exclusion, Experiment, From, Quick, Run, SubjectEntry, Workload};
use super::words::{self, PROGRAM_PLACEHOLDERS, START_PLACEHOLDERS};
use super::{arrival, client, cores, expect, find_max, published, require, rows, service, work};
use crate::diagnosis::Diagnoses;
use crate::reference::KeyFile;
use crate::subject::{needs, program, server};
use crate::sums::hex;

/// Why what is required of all workloads is required of no step, and what to do.
const NO_STEPS_IN_RUN: (&str, &str) = (
    "a step is one of a workload's scenario, and this is required of all workloads",
    "write it in the workload; a figure is one of rate, bytes, errors, mean, max, and percentiles such as p99",
);
/// The same of a workload without users.
const NO_STEPS_IN_REQUESTS: (&str, &str) = (
    "a step is one of a `scenario`, which this workload has not",
    "a figure is one of rate, bytes, errors, mean, max, and percentiles such as p99",
);
/// The longest time-out of a request.
const TIMEOUT_MAX: Nanos = Nanos::from_secs(600);

impl Experiment {
    /// Reads and checks the file at `path`.
    pub fn load(path: &Path) -> Result<Experiment, Diagnoses> {
        Experiment::load_as(path, &path.display().to_string())
    }

    /// The same with another `name` in messages and records than that of the path.
    pub fn load_as(path: &Path, name: &str) -> Result<Experiment, Diagnoses> {
        let (text, origin) = read_file(path)?;
        Experiment::parse(&text, &Origin::new(name, origin.folder))
    }

    /// Checks the text of an experiment. Pure; all problems are reported together.
    pub fn parse(text: &str, origin: &Origin) -> Result<Experiment, Diagnoses> {
        let problems = Problems::default();
        let experiment = experiment(text, origin, &problems);
        problems.checked(experiment, &origin.path, text)
    }
}

/// The whole file; `None` where it is no TOML. With problems it is not to be used.
pub(crate) fn experiment(text: &str, origin: &Origin, p: &Problems) -> Option<Experiment> {
    let root = document(text, p)?;
    let root = root.get_ref();
    let top = Fields::top(KeyFile::Experiment, root, p);
    let (run, quick) = read_run(&top.table_or_empty("run"));
    let backings = read_all(top.tables("backing"), service::read_backing);
    let names = service::names(&backings);
    published::check_last(root, p);
    check_there(&top);
    let experiment = Experiment {
        title: top.get("title").unwrap_or_else(|| file_stem(&origin.path)),
        question: top.value("question"),
        sha256: digest(published::without_claims(text, root)),
        origin: origin.clone(),
        text: text.to_owned(),
        run,
        quick,
        subjects: read_all(top.tables("subject"), |table| read_subject(table, &names)),
        peers: read_all(top.tables("peer"), client::read_peer),
        backings,
        fronts: read_all(top.tables("front"), service::read_front),
        networks: read_all(top.tables("network"), client::read_network),
        workloads: read_all(top.tables("workload"), read_workload),
        settings: read_all(top.tables("setting"), |table| {
            work::read_setting(table, &names)
        }),
        exclude: read_all(top.tables("exclude"), read_exclusion),
        published: read_all(top.tables(published::KEY), published::read),
        warnings: p.take_warnings(),
    };
    super::names::check_within(&experiment, p);
    Some(experiment)
}

/// The digest by which plans name the experiment of this text: of what is measured, its claims left out.
pub fn sha256(text: &str) -> String {
    let (table, _) = DeTable::parse_recoverable(text);
    digest(published::without_claims(text, table.get_ref()))
}

/// SHA-256 in hexadecimal.
fn digest(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// What no experiment can be without.
fn check_there(top: &Fields<'_>) {
    if !top.has("subject") {
        let example = "[[subject]]\ncmd = \"./server --port {port}\"";
        top.missing("[[subject]]", example);
    }
    if !top.has("workload") {
        let example = "[[workload]]\nrequest = { path = \"/\" }";
        top.missing("[[workload]]", example);
    }
}

fn file_stem(path: &str) -> String {
    let stem = std::path::Path::new(path).file_stem();
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn read_all<'a, T>(tables: Vec<Fields<'a>>, read: impl Fn(&Fields<'a>) -> Option<T>) -> Vec<T> {
    tables.iter().filter_map(read).collect()
}

fn read_run(table: &Fields<'_>) -> (Run, Quick) {
    let quick = table.table_or_empty("quick");
    let place = |key: &str| table.place_of(key).or(quick.place_of(key));
    let run = Run {
        blocks: table.value("blocks"),
        duration: table.value("duration"),
        warmup: table.value("warmup"),
        visits: table.get("visits"),
        seed: table.value("seed"),
        reference: table.get("reference"),
        copy: table.value("copy"),
        aim: read_aim(table),
        require: require::read(table, Some(NO_STEPS_IN_RUN)),
        profile: table.value("profile"),
        threads: table.get("threads"),
        cores: read_cores(table),
        duration_at: place("duration"),
        warmup_at: place("warmup"),
        is_warmup_said: table.has("warmup"),
    };
    let quick = Quick {
        blocks: quick.get("blocks"),
        duration: quick.get("duration"),
        warmup: quick.get("warmup"),
        connections: quick.get("connections"),
        rates: quick.get("rate"),
        count: quick.get("count"),
        count_max: quick.get("count_max"),
        connections_max: quick.get("connections_max"),
        payload_max: client::payload(&quick, "payload_max"),
    };
    (run, quick)
}

/// What decides on blocks and windows in place of the file.
fn read_aim(table: &Fields<'_>) -> Option<Aim> {
    let budget = table.get("budget").map(Aim::Budget);
    let precision = table.parsed("precision", share::parse_positive);
    if budget.is_some() && precision.is_some() {
        let help =
            "a budget is spent as well as it can be; a precision takes the time that it takes";
        table.note("precision", "either `budget` or `precision`", help);
    }
    budget.or(precision.map(Aim::Precision))
}

/// `cores`: whose which are.
fn read_cores(table: &Fields<'_>) -> Option<Spanned<Cores>> {
    let text: Spanned<String> = table.get("cores")?;
    let cores = cores::parse(text.get_ref()).map_err(|(message, help)| {
        table.note("cores", message, help);
    });
    Some(Spanned::new(text.span(), cores.ok()?))
}

/// `[[subject]]`. `backings`: names that stand in braces for addresses.
fn read_subject(table: &Fields<'_>, backings: &[String]) -> Option<SubjectEntry> {
    let from = read_from(table);
    let entry = SubjectEntry {
        place: table.span.clone(),
        from: from.clone().unwrap_or_default(),
        revision: read_revision(table),
        name: table.get("name"),
        threads: table.get("threads"),
        args: table.value("args"),
        env: table.value("env"),
        commands: table.value("commands"),
        capabilities: needs::capabilities(table),
        endpoints: table.get("endpoints"),
        ready: table.table("ready").and_then(|ready| server::ready(&ready)),
        stop: table.table("stop").map(|stop| server::stop(&stop)),
        works: program::works(table),
        output: program::output(table),
    };
    let mut right = match table.has("works") {
        true => PROGRAM_PLACEHOLDERS.to_vec(),
        false => START_PLACEHOLDERS.to_vec(),
    };
    if table.has("ref") {
        // Whether it is a client, only its file says.
        right = words::with_clients(&right);
    }
    let right: Vec<&str> = words::with_names(&right, backings);
    check_placeholders(table, "args", &entry.args, &right);
    check_placeholders(table, "env", entry.env.values(), &right);
    if let Some(From::Command(command)) = &from {
        check_placeholders(table, "cmd", command, &right);
        let words = command.iter().chain(&entry.args).chain(entry.env.values());
        check_command(table, words, !table.has("works"));
    }
    work::refuse_for(&from, table);
    from.map(|_| entry)
}

/// `revision`, which belongs to a folder.
fn read_revision(table: &Fields<'_>) -> Option<Spanned<String>> {
    let revision: Spanned<String> = table.get("revision")?;
    let problem = match (table.has("ref"), revision.get_ref().trim()) {
        (false, _) => "`revision` is for a `ref`: a `cmd` or `url` has none",
        (true, "") => "`revision` is empty",
        (true, _) => return Some(revision),
    };
    table.note("revision", problem, "");
    None
}

/// What the words of a `cmd` must have, and what they cannot.
fn check_command<'a>(
    table: &Fields<'_>,
    mut words: impl Iterator<Item = &'a String> + Clone,
    is_server: bool,
) {
    if is_server {
        server::check_port(table, words.clone());
    }
    if words.any(|word| word.contains("{build}")) {
        let message = "`{build}` is for a folder with a subject.toml: a `cmd` is not built";
        table.note("cmd", message, "");
    }
}

fn read_from(table: &Fields<'_>) -> Option<From> {
    let (reference, command) = (table.get("ref"), command(table, true));
    let url = table.parsed("url", read_url);
    let none = "a subject needs one of `ref`, `cmd` and `url`";
    let several = "a subject has one of `ref`, `cmd` and `url`, not {}";
    let help = "ref = \"rust/axum\", or cmd = \"./server --port {port}\", or url = \"http://127.0.0.1:8080\"";
    table.one_of(&["ref", "cmd", "url"], (none, several), help)?;
    let reference = reference.map(From::Ref).or(command.map(From::Command));
    reference.or(url.map(From::Url))
}

fn read_url(url: &str) -> Result<String, String> {
    match target::read(url) {
        Ok(url) if url.path == "/" => Ok(url.origin()),
        Ok(_) => Err("`url` names host and port; the path stands in the workload".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn read_workload(table: &Fields<'_>) -> Option<Workload> {
    if table.has("work") {
        return work::read_workload(table);
    }
    if table.has("client") {
        return client::read_workload(table);
    }
    let sent = sources::read(table);
    let (connections, connections_max) = connections(table, 100);
    let no_steps = (!table.has("scenario")).then_some(NO_STEPS_IN_REQUESTS);
    let expect = table.table_or_empty("expect");
    let expected_body: Option<Spanned<String>> = expect.get("body");
    let usual_name = sent.as_ref().map_or("", |sent| &sent.name);
    let mut workload = Workload {
        require: require::read(table, no_steps),
        expect_status: expect.value::<u32>("status") as u16,
        expect_content_type: expect.get("content_type"),
        expect_body: expected_body.clone().map(Spanned::into_inner),
        expect_checks: expect::read_checks(&expect),
        arrival: arrival::read(table),
        connections,
        connections_max,
        timeout: timeout(table),
        rows: rows::read(table),
        counter: service::read_counter(table),
        find_max: find_max::read(table),
        rest: table.get("rest"),
        requests_max: table.get("requests_max"),
        ..keys::workload(table, usual_name)
    };
    if workload.find_max.is_some() && !workload.require.is_empty() {
        let message = "`require` cannot go with `find_max`, whose objective is what is required";
        table.note("require", message, "");
    }
    if workload.find_max.is_some() {
        let message = "`requests_max` cannot go with `find_max`, which ends when it has found";
        table.refuse(&["requests_max"], message, "");
    }
    if table.has("scenario") {
        // Its file says what is right of the answers to its steps.
        workload.expect_status = 0;
        let message = "`rest` cannot go with `scenario`: it is one request that is timed after it";
        let help = "ask for it in a workload with a `request`";
        table.refuse(&["rest"], message, help);
        let message = "`expect` cannot go with `scenario`: what is right differs from step to step";
        let help = "it stands in the steps of the scenario's file: expect = { status = 201 }";
        table.refuse(&["expect"], message, help);
    }
    work::refuse_without_work(table);
    client::refuse_without_client(table);
    let sent = sent?;
    check_random(table, &sent, expected_body.as_ref());
    Some(Workload {
        request: sent.request,
        source: sent.source,
        ..workload
    })
}

/// The time-out of a request; those of programs and clients may be longer.
fn timeout(table: &Fields<'_>) -> Nanos {
    let timeout = table.get("timeout").unwrap_or(Nanos::from_secs(5));
    if timeout > TIMEOUT_MAX {
        let message = format!(
            "`timeout` is not a length of time that can be used: it must be from {} to {TIMEOUT_MAX}",
            Nanos::from_millis(1)
        );
        table.note("timeout", message, "");
    }
    timeout
}

/// An expected random number must have been sent.
fn check_random(table: &Fields<'_>, sent: &SentRequests, body: Option<&Spanned<String>>) {
    let Some(body) = body.filter(|body| body.get_ref().contains("{random}")) else {
        return;
    };
    if sent.source.is_some() {
        let message = "the body that is expected has no `{random}` where there are several requests, or other fields";
        let help = "leave it out, or say what else is right of the answer: contains, regex, json";
        table.problems.advise(body.span(), message, help);
        return;
    }
    if !sent.request.path.contains("{random}") && !sent.request.body.contains("{random}") {
        let message = "the answer is to hold `{random}`, and the request does not send it";
        table.problems.note(body.span(), message);
    }
}

fn read_exclusion(table: &Fields<'_>) -> Option<Exclusion> {
    let exclusion = Exclusion {
        subject: table.get("subject"),
        workload: table.get("workload"),
        connections: table.get("connections"),
        rate: table.get("rate"),
        count: table.get("count"),
        settings: rows::values_by_setting(table),
    };
    if exclusion == Exclusion::default() {
        let span = table.span.clone();
        table.problems.note(span, "this excludes everything");
    }
    Some(exclusion)
}
