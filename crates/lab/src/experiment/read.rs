//! From the text of an experiment to [`Experiment`]: pure, and all problems at once.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use prony_base::Nanos;
use prony_base::typed::share;
use prony_record::Cores;
use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::DeTable;

use super::expect::{self, RightAnswer};
use super::fields::{Fields, Origin, Problems, document, read_file};
use super::keys::{
    CONNECTIONS, DURATION, THREADS, check_below_max, check_placeholders, command, connection_count,
    connections, read_name, read_title, texts,
};
use super::sources::{self, SentRequests};
use super::types::{
    Aim, CONNECTIONS_MAX_DEFAULT, Connections, Exclusion, Experiment, From, Quick, Run,
    SubjectEntry, Workload,
};
use super::words::{self, PROGRAM_PLACEHOLDERS, START_PLACEHOLDERS};
use super::{arrival, client, cores, find_max, published, require, rows, service, work};
use crate::diagnosis::{Diagnoses, Diagnosis};
use crate::subject::{program, server};
use crate::sums::HexOf;
use prony_load::target;

/// Keys that one might expect and that mean nothing yet.
const UNSUPPORTED: [(&str, &str); 1] = [("sweep", "write one [[setting]] with its values instead")];
const UNSUPPORTED_WORKLOAD: [(&str, &str); 7] = [
    (
        "step",
        "the steps of users stand in a file of their own: scenario = \"shop.toml\"",
    ),
    (
        "users",
        "`connections` says how many users of a `scenario` there are at once, and `arrival` how many come a second",
    ),
    (
        "replay",
        "a trial measures a window of a stated length: write the rate as `arrival`; prony load has --replay",
    ),
    ("rate", IN_ARRIVAL),
    ("stages", IN_ARRIVAL),
    ("think", IN_ARRIVAL),
    (
        "pipeline",
        "so far a connection has one request outstanding",
    ),
];
const IN_ARRIVAL: &str = "it stands in `arrival`: arrival = { rate = 1000 }, { stages = \"0:100,30s:1000\" }, { think = \"10ms\" }";

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

/// Visits that an experiment, or `--visits`, may ask for.
pub const VISITS: RangeInclusive<Nanos> = Nanos::from_millis(50)..=Nanos::from_secs(5);
/// Lengths of a warm-up.
pub const WARMUP: RangeInclusive<Nanos> = Nanos::ZERO..=Nanos::from_secs(3_600);
const TIMEOUT: RangeInclusive<Nanos> = Nanos::from_millis(1)..=Nanos::from_secs(600);
/// How long a server may be left alone before one request.
const REST: RangeInclusive<Nanos> = Nanos::from_millis(100)..=Nanos::from_secs(600);
/// Blocks that an experiment, or `--blocks`, may ask for.
pub const BLOCKS: RangeInclusive<u64> = 1..=1_000;
/// What a run may be given to spend.
pub const BUDGET: RangeInclusive<Nanos> = Nanos::from_secs(1)..=Nanos::from_secs(7 * 86_400);
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
        let mut problems = Problems::default();
        let experiment = experiment(text, origin, &mut problems);
        match experiment.filter(|_| problems.errors.is_empty()) {
            Some(experiment) => Ok(experiment),
            None => Err(Diagnoses::new(&origin.path, text, problems.errors)),
        }
    }
}

/// The whole file; `None` where it is no TOML. With problems it is not to be used.
pub(crate) fn experiment(text: &str, origin: &Origin, p: &mut Problems) -> Option<Experiment> {
    let root = document(text, p);
    if !p.errors.is_empty() {
        // The values with which the parser recovered would be reported as the writer's.
        return None;
    }
    let mut top = Fields::new("the experiment", 0..0, root.get_ref());
    let title = top.text("title", p).map(Spanned::into_inner);
    let question = top.text("question", p).map(Spanned::into_inner);
    let (run, quick) = match top.table("run", "[run]", p) {
        Some(table) => read_run(table, p),
        None => (Run::default(), Quick::default()),
    };
    let backings = top.tables("backing", "[[backing]]", p);
    let backings = read_all(backings, service::read_backing, p);
    let fronts = read_all(top.tables("front", "[[front]]", p), service::read_front, p);
    let names = service::names(&backings);
    let subjects = top.tables("subject", "[[subject]]", p);
    let subjects = read_all(subjects, |table, p| read_subject(table, &names, p), p);
    let peers = read_all(top.tables("peer", "[[peer]]", p), client::read_peer, p);
    let networks = top.tables("network", "[[network]]", p);
    let networks = read_all(networks, client::read_network, p);
    let workloads = read_all(top.tables("workload", "[[workload]]", p), read_workload, p);
    let settings = top.tables("setting", "[[setting]]", p);
    let settings = read_all(settings, |table, p| work::read_setting(table, &names, p), p);
    let exclude = top.tables("exclude", "exclude = [{…}]", p);
    let exclude = read_all(exclude, read_exclusion, p);
    let claims = top.tables(published::KEY, "[[published]]", p);
    let claims = read_all(claims, published::read, p);
    published::check_last(root.get_ref(), p);
    check_there(&top, p);
    top.finish(&UNSUPPORTED, p);
    let experiment = Experiment {
        title: title.unwrap_or_else(|| file_stem(&origin.path)),
        question: question.unwrap_or_default(),
        sha256: digest(published::measured(text, root.get_ref())),
        origin: origin.clone(),
        text: text.to_owned(),
        run,
        quick,
        subjects,
        peers,
        backings,
        fronts,
        networks,
        workloads,
        settings,
        exclude,
        published: claims,
        warnings: std::mem::take(&mut p.warnings),
    };
    super::names::check_within(&experiment, p);
    Some(experiment)
}

/// The digest by which plans name the experiment of this text: of what is measured, its claims left out.
pub fn sha256(text: &str) -> String {
    let (table, _) = DeTable::parse_recoverable(text);
    digest(published::measured(text, table.get_ref()))
}

/// SHA-256 in hexadecimal.
fn digest(text: &str) -> String {
    format!("{:x}", HexOf(&Sha256::digest(text)))
}

/// What no experiment can be without.
fn check_there(top: &Fields<'_, '_>, p: &mut Problems) {
    if !top.has("subject") {
        let example = "[[subject]]\ncmd = \"./server --port {port}\"";
        top.missing("[[subject]]", example, p);
    }
    if !top.has("workload") {
        let example = "[[workload]]\nrequest = { path = \"/\" }";
        top.missing("[[workload]]", example, p);
    }
}

fn file_stem(path: &str) -> String {
    let stem = std::path::Path::new(path).file_stem();
    stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn read_all<'a, 'i, T>(
    tables: Vec<Fields<'a, 'i>>,
    read: impl Fn(Fields<'a, 'i>, &mut Problems) -> Option<T>,
    problems: &mut Problems,
) -> Vec<T> {
    let each = tables.into_iter().map(|table| read(table, problems));
    each.collect::<Vec<_>>().into_iter().flatten().collect()
}

fn read_run(mut table: Fields<'_, '_>, p: &mut Problems) -> (Run, Quick) {
    let usual = Run::default();
    let mut run = Run {
        blocks: table
            .whole("blocks", BLOCKS, p)
            .map_or(usual.blocks, |n| n as u32),
        duration: table
            .duration("duration", DURATION, p)
            .unwrap_or(usual.duration),
        warmup: table.duration("warmup", WARMUP, p).unwrap_or(usual.warmup),
        visits: table.duration_or_off("visits", VISITS, p),
        seed: table
            .whole("seed", 0..=i64::MAX as u64, p)
            .unwrap_or(usual.seed),
        reference: table.text("reference", p),
        copy: table.truth("copy", p).unwrap_or(usual.copy),
        aim: read_aim(&mut table, p),
        require: require::read(&mut table, Some(NO_STEPS_IN_RUN), p),
        profile: table.truth("profile", p).unwrap_or(usual.profile),
        threads: table.whole("threads", THREADS, p).map(|n| n as u32),
        cores: read_cores(&mut table, p),
        duration_at: said(&table, "duration"),
        warmup_at: said(&table, "warmup"),
        is_warmup_said: said(&table, "warmup").is_some(),
    };
    let quick = match table.table("quick", "[run.quick]", p) {
        Some(table) => {
            run.duration_at = run.duration_at.or(said(&table, "duration"));
            run.warmup_at = run.warmup_at.or(said(&table, "warmup"));
            read_quick(table, p)
        }
        None => Quick::default(),
    };
    table.finish(&[], p);
    (run, quick)
}

/// What decides on blocks and windows in place of the file.
fn read_aim(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Aim> {
    let budget = table.duration("budget", BUDGET, p).map(Aim::Budget);
    let precision = table.text("precision", p).and_then(|text| {
        let share = share::parse_positive(text.get_ref());
        let share = share.map_err(|why| p.note(Diagnosis::new(text.span(), why)));
        share.ok().map(Aim::Precision)
    });
    if budget.is_some() && precision.is_some() {
        p.note(
            Diagnosis::new(table.span_of("precision"), "either `budget` or `precision`").help(
                "a budget is spent as well as it can be; a precision takes the time that it takes",
            ),
        );
    }
    budget.or(precision)
}

/// `cores`: whose which are.
fn read_cores(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Spanned<Cores>> {
    let text = table.text("cores", p)?;
    match cores::parse(text.get_ref()) {
        Ok(cores) => Some(Spanned::new(text.span(), cores)),
        Err((message, help)) => {
            p.note(Diagnosis::new(text.span(), message).help(help));
            None
        }
    }
}

/// Where `key` is said.
fn said(table: &Fields<'_, '_>, key: &str) -> Option<Range<usize>> {
    table.has(key).then(|| table.span_of(key))
}

fn read_quick(mut table: Fields<'_, '_>, p: &mut Problems) -> Quick {
    let quick = Quick {
        blocks: table.whole("blocks", BLOCKS, p).map(|n| n as u32),
        duration: table.duration("duration", DURATION, p),
        warmup: table.duration("warmup", WARMUP, p),
        connections: table
            .value("connections")
            .and_then(|value| Some(Spanned::new(value.span(), connections(value, p)?))),
        rates: table
            .value("rate")
            .and_then(|value| Some(Spanned::new(value.span(), arrival::rates(value, p)?))),
        count: table
            .value("count")
            .and_then(|value| Some(Spanned::new(value.span(), work::counts(value, p)?))),
        count_max: table.whole("count_max", work::COUNT, p),
        connections_max: table
            .whole("connections_max", CONNECTIONS, p)
            .map(|most| most as u32),
        payload_max: client::payload(&mut table, "payload_max", p),
    };
    table.finish(&[], p);
    quick
}

/// `[[subject]]`. `backings`: names that stand in braces for addresses.
fn read_subject(
    mut table: Fields<'_, '_>,
    backings: &[String],
    p: &mut Problems,
) -> Option<SubjectEntry> {
    let from = read_from(&mut table, p);
    let args = table.texts("args", p).unwrap_or_default();
    let env = table.map("env", p).unwrap_or_default();
    let entry = SubjectEntry {
        place: table.span.clone(),
        from: from.clone().unwrap_or(From::Url(String::new())),
        revision: read_revision(&mut table, p),
        name: read_name(&mut table, p),
        threads: table.whole("threads", THREADS, p).map(|n| n as u32),
        args: args.iter().map(|arg| arg.get_ref().clone()).collect(),
        env,
        commands: texts(table.texts("commands", p).unwrap_or_default()),
        capabilities: server::capabilities(&mut table, p),
        endpoints: server::endpoints(&mut table, p),
        ready: table
            .table("ready", "ready = {…}", p)
            .and_then(|ready| server::ready(ready, p)),
        stop: table
            .table("stop", "stop = {…}", p)
            .map(|stop| server::stop(stop, p)),
        works: texts(program::works(&mut table, p)),
        output: program::output(&mut table, p),
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
    check_placeholders(&entry.args, &right, &table.span_of("args"), p);
    check_placeholders(entry.env.values(), &right, &table.span_of("env"), p);
    if let Some(From::Command(command)) = &from {
        check_placeholders(command, &right, &table.span_of("cmd"), p);
        let words = command.iter().chain(&entry.args).chain(entry.env.values());
        check_command(words, !table.has("works"), &table.span_of("cmd"), p);
    }
    work::refuse_for(&from, &table, p);
    let unsupported = [(
        "settings",
        "settings stand in [[setting]], with `subjects = […]`",
    )];
    table.finish(&unsupported, p);
    from.map(|_| entry)
}

/// `revision`, which belongs to a folder.
fn read_revision(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Spanned<String>> {
    let revision = table.text("revision", p)?;
    let problem = match (table.has("ref"), revision.get_ref().trim()) {
        (false, _) => "`revision` is for a `ref`: a `cmd` or `url` has none",
        (true, "") => "`revision` is empty",
        (true, _) => return Some(revision),
    };
    p.note(Diagnosis::new(revision.span(), problem));
    None
}

/// What the words of a `cmd` must have, and what they cannot.
fn check_command<'a>(
    mut words: impl Iterator<Item = &'a String> + Clone,
    is_server: bool,
    span: &Range<usize>,
    p: &mut Problems,
) {
    if is_server {
        server::check_port(words.clone(), span, p);
    }
    if words.any(|word| word.contains("{build}")) {
        let message = "`{build}` is for a folder with a subject.toml: a `cmd` is not built";
        p.note(Diagnosis::new(span.clone(), message));
    }
}

fn read_from(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<From> {
    let given: Vec<&str> = ["ref", "cmd", "url"]
        .into_iter()
        .filter(|key| table.has(key))
        .collect();
    let reference = table.text("ref", p);
    let command = table.value("cmd").and_then(|value| command(value, p));
    let url = table.text("url", p);
    if given.len() != 1 {
        let message = match given.as_slice() {
            [] => "a subject needs one of `ref`, `cmd` and `url`".to_owned(),
            several => format!(
                "a subject has one of `ref`, `cmd` and `url`, not {}",
                several.join(" and ")
            ),
        };
        let help = "ref = \"rust/axum\", or cmd = \"./server --port {port}\", or url = \"http://127.0.0.1:8080\"";
        p.note(Diagnosis::new(table.span.clone(), message).help(help));
        return None;
    }
    if let Some(url) = url {
        return check_url(url, p).map(From::Url);
    }
    reference.map(From::Ref).or(command.map(From::Command))
}

fn check_url(url: Spanned<String>, p: &mut Problems) -> Option<String> {
    let problem = match target::read(url.get_ref()) {
        Ok(url) if url.path == "/" => return Some(url.origin()),
        Ok(_) => "`url` names host and port; the path stands in the workload".to_owned(),
        Err(error) => error.to_string(),
    };
    p.note(Diagnosis::new(url.span(), problem));
    None
}

fn read_workload(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Workload> {
    let name = read_name(&mut table, p);
    if table.has("work") {
        return work::read_workload(name, table, p);
    }
    if table.has("client") {
        return client::read_workload(name, table, p);
    }
    let sent = sources::read(&mut table, p);
    let arrival = arrival::read(&mut table, p);
    let max = table
        .whole("max", CONNECTIONS, p)
        .map_or(CONNECTIONS_MAX_DEFAULT, |n| n as u32);
    let place = table.value("connections");
    let list = place.and_then(|value| connections(value, p));
    if let (Some(value), Some(list)) = (place, &list) {
        check_below_max(value.span(), list, max, p);
    }
    let timeout = table
        .duration("timeout", TIMEOUT, p)
        .unwrap_or(Nanos::from_secs(5));
    let subjects = table.texts("subjects", p);
    let (rows, counter) = (
        rows::read(&mut table, p),
        service::read_counter(&mut table, p),
    );
    let find_max = find_max::read(&mut table, p);
    let no_steps = (!table.has("scenario")).then_some(NO_STEPS_IN_REQUESTS);
    let require = require::read(&mut table, no_steps, p);
    let rest = read_rest(&mut table, p);
    if find_max.is_some() && !require.is_empty() {
        let message = "`require` cannot go with `find_max`, whose objective is what is required";
        p.note(Diagnosis::new(table.span_of("require"), message));
    }
    let expect = read_expect(&mut table, p);
    let span = table.span.clone();
    let title = read_title(&mut table, p);
    work::refuse_without_work(&mut table, p);
    client::refuse_without_client(&mut table, p);
    table.finish(&UNSUPPORTED_WORKLOAD, p);
    let SentRequests {
        request,
        source,
        name: usual_name,
    } = sent?;
    expect::check_random(&request, source.is_some(), expect.body.as_ref(), p);
    Some(Workload {
        name: name.unwrap_or_else(|| Spanned::new(span, usual_name)),
        title,
        work: None,
        client: None,
        request,
        source,
        require,
        expect_status: expect.status,
        expect_content_type: expect.content_type,
        expect_body: expect.body.map(Spanned::into_inner),
        expect_checks: expect.checks,
        arrival,
        connections: list.unwrap_or_else(|| vec![Connections::Exactly(100)]),
        connections_max: max,
        timeout,
        subjects,
        rows,
        counter,
        find_max,
        rest,
    })
}

/// After a rest one request is timed, and the steps of a scenario are several.
fn read_rest(table: &mut Fields<'_, '_>, p: &mut Problems) -> Option<Nanos> {
    let rest = table.duration("rest", REST, p);
    if rest.is_some() && table.has("scenario") {
        let message = "`rest` cannot go with `scenario`: it is one request that is timed after it";
        let help = "ask for it in a workload with a `request`";
        p.note(Diagnosis::new(table.span_of("rest"), message).help(help));
    }
    rest
}

/// What is right of an answer; of those to a scenario's steps its file says it, and 0 stands for the status.
fn read_expect(table: &mut Fields<'_, '_>, p: &mut Problems) -> RightAnswer {
    let given = table.table("expect", "expect = {…}", p);
    let right = given.map(|table| expect::read(table, p));
    if !table.has("scenario") {
        return right.unwrap_or_default();
    }
    if right.is_some() {
        let message = "`expect` cannot go with `scenario`: what is right differs from step to step";
        let help = "it stands in the steps of the scenario's file: expect = { status = 201 }";
        p.note(Diagnosis::new(table.span_of("expect"), message).help(help));
    }
    RightAnswer {
        status: 0,
        ..RightAnswer::default()
    }
}

fn read_exclusion(mut table: Fields<'_, '_>, p: &mut Problems) -> Option<Exclusion> {
    let subject = table.text("subject", p);
    let workload = table.text("workload", p);
    let connections = table
        .value("connections")
        .and_then(|value| connection_count(value, p));
    let rate = table
        .value("rate")
        .and_then(|value| arrival::rate(value, p));
    let count = table.whole("count", work::COUNT, p);
    let settings = rows::values_by_setting(&table, p);
    let size = connections.is_some() || count.is_some() || rate.is_some();
    if subject.is_none() && workload.is_none() && !size && settings.is_empty() {
        p.note(Diagnosis::new(table.span, "this excludes everything"));
    }
    Some(Exclusion {
        subject,
        workload,
        connections,
        rate,
        count,
        settings,
    })
}
