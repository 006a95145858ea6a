//! What a log keeps of one run.
//!
//! Not for: comparing entries (`history`), writing about them (`page`).

use std::collections::BTreeMap;

use prony_base::counted;
use prony_findings::{Case, Code, Records};
use prony_record::{
    CodeState, Environment, Fact, Plan, PlannedSource, PlannedSubject, PlannedWorkload, Source,
};
use prony_stats::quantile;
use serde::{Deserialize, Serialize};

use super::document::is_plain;
use crate::figure::{merged, values};
use crate::figures::CellFigures;
use crate::lists::distinct;
use crate::metrics::Metric;
use crate::notes::{Note, SeenCell};
use crate::sections::fact;
use crate::sent::sent;
use crate::table::{absence, verdict_word};
use crate::view::{self, ComputedRun, View};
use crate::words::digits;
use crate::{Run, numbers};

/// Version of what is kept; entries of another are made again from their run directories.
pub const ENTRY_SCHEMA: u32 = 2;
/// What a table calls the ends of rates.
pub const ENDS: &str = "blocks from–to";
/// Percentiles of the distribution that is kept, as hey prints them, and p99.9.
const PERCENTS: [f64; 8] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
/// Facts of the machine that an entry keeps, beside the cores. What a queue of connections may hold belongs to those of one that
/// overflows.
const MACHINE: &str = "processor/processors/memory/kernel/distribution/virtualisation/trials are held apart by/\
                       net.core.somaxconn/net.ipv4.tcp_max_syn_backlog";
/// What the kernel counted of connections that were not let in, and its name in a log.
const COUNTERS: [(&str, &str); 7] = [
    ("TcpExtListenOverflows", "listen overflows"),
    ("TcpExtListenDrops", "listen drops"),
    ("TcpExtTCPReqQFullDrop", "SYNs dropped"),
    ("TcpExtSyncookiesSent", "SYN cookies"),
    ("TcpOutRsts", "resets sent"),
    ("TcpEstabResets", "connections reset"),
    ("TcpRetransSegs", "segments sent again"),
];

/// One run, as a log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// [`ENTRY_SCHEMA`]
    pub schema: u32,
    /// What its regions in a document are named after: date and folder.
    pub id: String,
    /// Name of the run directory.
    pub run: String,
    /// Digest of the records that a run begins with, by which it is known wherever its directory is; empty
    /// where it was not kept.
    pub digest: String,
    /// Start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The experiment's title.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The short answer of its document, a line each; empty in entries of before it was kept.
    pub answer: Vec<String>,
    /// `valid`, `bound` or `invalid` (`suspect` in runs of before).
    pub verdict: String,
    /// Whether its run directory is gone.
    pub gone: bool,
    /// Whether trials that were planned are not there.
    pub unfinished: bool,
    /// State of the code around the experiment.
    pub code: Option<CodeState>,
    /// The commits up to that of [`Entry::measured_commit`], newest first, as far as they were kept.
    pub commits: Vec<Commit>,
    /// The subject that was measured as it was at another revision of this code, where there is one; of several the newest.
    pub revised: Option<Revised>,
    /// Version of Prony and its commit.
    pub prony: String,
    /// The subjects and the line that each printed of its version.
    pub subjects: Vec<Fact>,
    /// How it was measured.
    pub settings: Vec<Fact>,
    /// The machine, for a reader.
    pub machine: Vec<Fact>,
    /// Machine and kernel: entries with another are never compared.
    pub environment: String,
    /// The words that repeat it.
    pub command: String,
    /// Its workloads.
    pub sections: Vec<Section>,
    /// What was found.
    pub findings: Vec<Found>,
    /// What was not run: what, why, and what would change it.
    pub not_run: Vec<(String, String, String)>,
}

/// A commit by the first line of its message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Commit {
    /// Its hash, in full.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
}

/// A subject at another revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Revised {
    /// Its id.
    pub subject: String,
    /// The revision, as it was asked for.
    pub revision: String,
    /// Its commit.
    pub commit: String,
    /// When that was made, milliseconds since the Unix epoch.
    pub committed_unix_ms: u64,
}

/// One workload of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Section {
    /// Name of the workload.
    pub workload: String,
    /// Its heading.
    pub title: String,
    /// What was asked.
    pub request: String,
    /// `server`, `client` or `program`.
    pub kind: String,
    /// Its cells.
    pub cells: Vec<CellEntry>,
}

/// One cell of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CellEntry {
    /// Its `id`.
    pub id: String,
    /// Subject with its settings, or the row's title.
    pub label: String,
    /// Connections; 0 of a program.
    pub connections: u32,
    /// All that must be equal for two figures to be of the same thing: what was asked, for how long, how often,
    /// on which cores.
    pub series: String,
    /// All that a change of the figure may come from: the subject's code, the instrument.
    pub state: String,
    /// `valid`, `bound`, `invalid`, or empty where nothing was recorded.
    pub verdict: String,
    /// Codes of its findings.
    pub codes: Vec<String>,
    /// Why there is no figure, where there is none.
    pub absent: String,
    /// Blocks that were measured.
    pub blocks: usize,
    /// Requests a second (counts a second of a program): median over the blocks.
    pub rate_per_s: Option<f64>,
    /// Its lowest and highest block, or the ends of its interval.
    pub ends: Option<(f64, f64)>,
    /// The figure of this session: geometric mean of the blocks' rates. `None` where it is not the subject's
    /// (invalid, or limited by the generator), or lacks a block.
    pub session: Option<f64>,
    /// Latency; `None` where none is known.
    pub latency: Option<Latency>,
    /// Longest that a connection took to be let in, nanoseconds; 0 where it is not known. No latency holds it.
    pub connect_max_ns: u64,
    /// CPU time of the subject a request, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// Requests completed, all blocks.
    pub completed: u64,
    /// What went wrong, by kind, all blocks.
    pub errors: BTreeMap<String, u64>,
    /// What the kernel counted, by the names of a log, all blocks.
    pub counters: BTreeMap<String, u64>,
    /// Whether only this trial's traffic is in these.
    pub own_counters: bool,
}

/// Latency of a cell, all blocks; nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Latency {
    /// Median of the blocks' medians.
    pub p50: Option<f64>,
    /// Likewise.
    pub p99: Option<f64>,
    /// Largest.
    pub max: u64,
    /// Percentiles over all requests of all blocks, with their per cent.
    pub percentiles: Vec<(f64, u64)>,
}

/// A finding, over all cells of which it says the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Its code.
    pub code: String,
    /// What it says, in a few words.
    pub title: String,
    /// `note`, `bound` or `invalid`.
    pub severity: String,
    /// Cells in which it was seen.
    pub count: usize,
}

impl Entry {
    /// The entry of `run`, whose directory is called `name`.
    pub fn of(run: &Run, name: &str) -> Entry {
        let computed = view::compute(run);
        let environment = &run.environment;
        let records = Records::new(&run.plan, &run.trials);
        let mut facts = computed.view.environment.iter();
        let prony = facts.find(|fact| fact.name == "prony");
        let not_run = computed.not_run.iter();
        let not_run = not_run.map(|not| (not.what.clone(), not.reason.clone(), not.remedy.clone()));
        let planned: usize = run.plan.order.iter().map(Vec::len).sum();
        let done = run.plan.cells.iter();
        let done: usize = done.map(|cell| records.trials(&cell.id).len()).sum();
        let has_failed = |cell: &CellFigures| !cell.trials.failed.is_empty();
        Entry {
            schema: ENTRY_SCHEMA,
            id: id(environment.started_unix_ms, name),
            run: name.to_owned(),
            started_unix_ms: environment.started_unix_ms,
            title: run.plan.title.0.clone(),
            question: run.plan.question.0.clone(),
            answer: computed.view.answer.sentences().cloned().collect(),
            verdict: verdict_word(computed.view.verdict).to_owned(),
            unfinished: done < planned && !computed.cells.iter().any(has_failed),
            code: environment.code.clone(),
            revised: revised(&run.plan),
            prony: prony.map_or_else(String::new, |fact| fact.value.clone()),
            subjects: subjects(&run.plan),
            settings: settings(&run.plan),
            machine: machine(&computed.view),
            environment: place(environment),
            command: crate::sections::command(&run.plan),
            sections: sections(run, &records, &computed),
            findings: found(&computed),
            not_run: not_run.collect(),
            ..Entry::default()
        }
    }

    /// Where it stands in the log, milliseconds since the Unix epoch: when what it is of was committed, where it is of a revision, else
    /// when it was measured.
    pub fn moment_unix_ms(&self) -> u64 {
        let revised = self.revised.as_ref();
        revised.map_or(self.started_unix_ms, |revised| revised.committed_unix_ms)
    }

    /// The commit that its figures are of: of the revision that was measured, or else of the code around the experiment; what tells of it
    /// in words, and the digest of what was not committed. Each is empty where it is not known.
    pub fn measured_commit(&self) -> [&str; 3] {
        match (&self.revised, &self.code) {
            (Some(revised), _) => [&revised.commit, &revised.revision, ""],
            (None, Some(code)) => [&code.commit, &code.subject, &code.changes_sha256],
            (None, None) => [""; 3],
        }
    }

    /// How and where it was measured, and what.
    pub fn conditions(&self) -> Vec<Fact> {
        let prony = fact("Prony", &*self.prony);
        let not_run = self.not_run.iter();
        let not_run = not_run.map(|(what, why, _)| format!("{what} ({why})"));
        let not_run: Vec<String> = not_run.collect();
        let not_run = fact("subjects not run", not_run.join(", "));
        let (first, last) = (&[prony][..], &[not_run][..]);
        [first, &self.subjects, &self.settings, &self.machine, last].concat()
    }

    /// Every cell of every workload.
    pub fn cells(&self) -> impl Iterator<Item = &CellEntry> {
        self.sections.iter().flat_map(|section| &section.cells)
    }
}

impl CellEntry {
    /// The ends of its rate, where they tell more than the rate does.
    pub fn shown_ends(&self) -> Option<(f64, f64)> {
        self.ends.filter(|_| self.blocks > 1)
    }

    /// `nginx, 10 connections`
    pub fn place(&self) -> String {
        match self.connections {
            0 => self.label.clone(),
            connections => format!("{}, {}", self.label, counted(connections, "connection")),
        }
    }
}

/// `2026-11-22-0301-nibiru-001`, of what a marker may hold.
fn id(started_unix_ms: u64, name: &str) -> String {
    let moment = numbers::moment(started_unix_ms);
    let date = moment.trim_end_matches(" UTC").replace(' ', "-");
    let plain = |c: char| if is_plain(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    format!("{}-{name}", date.replace(':', ""))
}

fn revised(plan: &Plan) -> Option<Revised> {
    let of = |subject: &PlannedSubject| {
        let of_it = subject.repositories.iter();
        let newest = of_it.max_by_key(|state| state.committed_unix_s)?;
        (newest.committed_unix_s > 0).then(|| Revised {
            subject: subject.id.clone(),
            revision: newest.revision.clone(),
            commit: newest.commit.clone(),
            committed_unix_ms: newest.committed_unix_s.saturating_mul(1000),
        })
    };
    let all = plan.subjects.iter().filter_map(of);
    all.max_by_key(|revised| revised.committed_unix_ms)
}

/// Each subject's version, and what else tells its states apart.
fn subjects(plan: &Plan) -> Vec<Fact> {
    let facts = |s: &PlannedSubject| {
        let build = [digits(&s.build_key), digits(&s.files_sha256)].join(" ");
        let build = build.trim();
        let version = match &*s.version {
            "" if build.is_empty() => "version not told",
            version => version,
        };
        let named = format!("{}, build", s.id);
        [fact(&s.id, version), fact(&named, build)]
    };
    let all = plan.subjects.iter().chain(&plan.peers).flat_map(facts);
    all.filter(|fact| !fact.value.is_empty()).collect()
}

fn settings(plan: &Plan) -> Vec<Fact> {
    let quick = plan.quick.then(|| fact("--quick", "(a short look)"));
    let others = [
        fact("blocks", plan.blocks.to_string()),
        fact("measured window", numbers::duration(plan.duration_ns)),
        fact("warm-up", numbers::duration(plan.warmup_ns)),
        fact("seed", plan.seed.to_string()),
    ];
    quick.into_iter().chain(others).collect()
}

/// What of the document's table of the machine figures may come from.
fn machine(view: &View) -> Vec<Fact> {
    let is_named =
        |name: &str| name.starts_with("cores of") || MACHINE.split('/').any(|own| own == name);
    let facts = view.environment.iter().filter(|fact| is_named(&fact.name));
    facts.cloned().collect()
}

/// What must be equal of two machines for their figures to be compared.
pub(crate) fn place(e: &Environment) -> String {
    const GIB: u64 = 1 << 30;
    let mut facts = e.facts.iter();
    let held = facts.find(|fact| fact.name == "trials are held apart by");
    // Another method measures something else; the first one is that of entries without a number.
    let method = match e.method {
        0 => String::new(),
        method => format!("; method {method}"),
    };
    [
        e.machine.as_str(),
        &e.cpu_model,
        &e.cpus.to_string(),
        &e.threads_per_core.to_string(),
        // The kernel takes a little more or less for itself from boot to boot.
        &format!("{} GiB", (e.memory_bytes + GIB / 2) / GIB),
        &e.kernel,
        &e.distribution,
        &e.virtualisation,
        &e.driver,
        held.map_or("", |fact| &fact.value),
    ]
    .join("; ")
        + &method
}

fn sections(run: &Run, records: &Records<'_>, computed: &ComputedRun) -> Vec<Section> {
    let section = |workload: &String| {
        let own = computed.cells.iter().filter(|of| of.workload == *workload);
        let planned = run.plan.workloads.iter().find(|w| w.name == *workload);
        let kind = match own.clone().next() {
            Some(first) if first.client.is_some() => "client",
            Some(first) if first.program.is_some() => "program",
            _ => "server",
        };
        // Programs and clients have titles that tell their work.
        let asked = planned.filter(|_| kind == "server");
        Section {
            workload: workload.clone(),
            title: planned.map_or(&**workload, |w| w.heading()).to_owned(),
            request: asked.map_or_else(String::new, |w| sent(w, true)),
            kind: kind.to_owned(),
            cells: own.map(|of| cell_entry(run, records, of)).collect(),
        }
    };
    let workloads = distinct(computed.cells.iter().map(|cell| &cell.workload));
    workloads.into_iter().map(section).collect()
}

fn cell_entry(run: &Run, records: &Records<'_>, figures: &CellFigures) -> CellEntry {
    let case = figures.case(records);
    let cell = case.cell;
    let client = figures.client.as_ref();
    let what = ["requests", "users"][usize::from(figures.users.is_some())];
    let limited = [Code::P001, Code::P020];
    let limited = figures.findings.iter().any(|code| limited.contains(code));
    let rates: Vec<f64> = values(case.rates()).collect();
    let (counters, own_counters) = counters(&case);
    let loads = case.measured().filter_map(|trial| trial.load.as_ref());
    CellEntry {
        id: cell.id.clone(),
        label: match cell.rate_per_s.map(numbers::rate) {
            Some(rate) => format!("{}, {rate} {what}/s asked for", figures.label),
            None => figures.label.clone(),
        },
        connections: cell.connections,
        series: series(&run.plan, &case),
        state: state(run, &case),
        verdict: figures.verdict.map_or("", verdict_word).to_owned(),
        codes: figures.findings.iter().map(ToString::to_string).collect(),
        absent: match figures.rate_per_s {
            Some(_) => String::new(),
            None => absence(figures).to_owned(),
        },
        blocks: figures.trials.measured.len(),
        rate_per_s: Metric::RATE.value(figures),
        ends: figures.rate_per_s.map(|f| (f.low, f.high)),
        session: session(&rates, run.plan.blocks).filter(|_| !limited && !figures.is_invalid()),
        latency: Some(latency(run, &case, figures)),
        connect_max_ns: loads.map(|load| load.connect_ns.max).max().unwrap_or(0),
        cpu_ns: Metric::CPU.value(figures),
        completed: client.map_or(figures.completed, |client| client.counts.answered),
        errors: figures.errors_by_kind.clone(),
        counters,
        own_counters,
    }
}

/// Geometric mean of the rates of all `blocks`. A session that lacks one, or in which nothing was answered, is not
/// like the others.
fn session(rates: &[f64], blocks: u32) -> Option<f64> {
    let whole = !rates.is_empty() && rates.len() as u64 == u64::from(blocks);
    let usable = whole && rates.iter().all(|r| r.is_finite() && *r > 0.0);
    let logs: f64 = rates.iter().map(|rate| libm::log(*rate)).sum();
    usable.then(|| libm::exp(logs / rates.len() as f64))
}

/// What the kernel counted, and whether only of these trials.
fn counters(case: &Case<'_>) -> (BTreeMap<String, u64>, bool) {
    let risen = |(name, word): (&str, &str)| {
        let rises = case.complete().map(|trial| trial.kernel.rise(name));
        let rise = rises.fold(0, u64::saturating_add);
        (rise > 0).then(|| (word.to_owned(), rise))
    };
    let is_own = case.complete().all(|trial| trial.kernel.own_namespace);
    (COUNTERS.into_iter().filter_map(risen).collect(), is_own)
}

fn latency(run: &Run, case: &Case<'_>, figures: &CellFigures) -> Latency {
    let all = case.measured();
    let merged = merged(all.filter_map(|trial| run.histograms.get(trial.histogram.as_ref()?)));
    let is_known = |percent: &f64| *percent <= 99.0 || figures.latency_max_ns.is_some();
    let percentiles = PERCENTS.into_iter().filter(is_known);
    let percentiles =
        percentiles.filter_map(|percent| Some((percent, quantile(&merged, percent / 100.0)?.0)));
    Latency {
        p50: Metric::P50.value(figures),
        p99: Metric::P99.value(figures),
        max: figures.latency_max_ns.unwrap_or(0),
        percentiles: percentiles.collect(),
    }
}

/// Everything in which the figures of two entries must be alike to be of the same thing.
fn series(plan: &Plan, case: &Case<'_>) -> String {
    let mut sides = vec![&plan.cores.subject, &plan.cores.generator];
    // Without cores of its own the lab is on the generator's, as in all entries of before.
    sides.extend(Some(&plan.cores.lab).filter(|lab| !lab.is_empty()));
    let series = json(&(
        &case.cell.id,
        case.workload.map(asked),
        (plan.blocks, plan.duration_ns, plan.warmup_ns),
        sides,
        case.subject.map(|s| (s.threads, s.program_threads)),
    ));
    // A generator that looks for answers is another one than those of before.
    match case.cell.look_before_sleep_ns {
        0 => series,
        look => json(&(series, look)),
    }
}

/// What a workload asks for.
fn asked(w: &PlannedWorkload) -> impl Serialize + use<> {
    let (status, body) = (&w.expect_status, &w.expect_body);
    let same = (&w.request, status, body, &w.arrival, w.timeout_ns);
    // Where a source's files lie says nothing of what is sent, and secrets belong in no log.
    let source = w.source.as_ref().map(|of| PlannedSource {
        dir: String::new(),
        user: String::new(),
        bearer: String::new(),
        ..of.clone()
    });
    let counter = match (&w.find_max, w.requests_max) {
        (Some(of), _) => json(&(&w.counter, of)),
        (None, Some(requests)) => json(&(&w.counter, requests)),
        (None, None) => json(&w.counter),
    };
    let same = match &source {
        None => json(&same),
        Some(source) => json(&(same, source)),
    };
    (same, json(&w.program), json(&w.client), counter)
}

/// What tells a process from another that is called the same.
fn made_of<'a>(subject: &'a PlannedSubject, e: &'a Environment) -> impl Serialize + 'a {
    // What has neither a build nor a folder of its own is told by the code around it, too.
    let has_files = !subject.build_key.is_empty() || !subject.files_sha256.is_empty();
    let is_command = matches!(subject.source, Source::Command { .. });
    let around = e.code.as_ref().filter(|_| is_command || !has_files);
    let commit = |code: &'a CodeState| match code.source_commit.as_str() {
        "" => &code.commit,
        _ => &code.source_commit,
    };
    (
        (&subject.id, &subject.version),
        (&subject.start, &subject.env),
        (&subject.program, &subject.program_env),
        (
            &subject.client,
            &subject.client_env,
            &subject.client_translate,
        ),
        (&subject.build_key, &subject.files_sha256),
        around.map(|code| (commit(code), &code.changes_sha256)),
    )
}

/// Everything that a change of the figure may come from: the subject, what stands around it in this cell, Prony.
fn state(run: &Run, case: &Case<'_>) -> String {
    let (e, plan) = (&run.environment, &run.plan);
    let set = plan.settings.iter();
    let set = set.filter(|s| case.cell.settings.contains_key(&s.name));
    let set = set.map(|s| (&s.name, &s.env, &s.args, &s.env_of, &s.sysctl));
    let service = &case.cell.around;
    let peer = case.client().map(|client| &client.peer);
    let is_peer = |s: &&PlannedSubject| peer == Some(&s.id);
    let is_backing = |s: &&PlannedSubject| service.backings.contains(&s.id);
    let is_front = |s: &&PlannedSubject| service.front.as_ref() == Some(&s.id);
    let backings = plan.backings.iter().filter(is_backing);
    let fronts = plan.fronts.iter().filter(is_front);
    let others = plan.peers.iter().filter(is_peer);
    let others = others.chain(backings).chain(fronts);
    json(&(
        &e.prony_version,
        &e.prony_commit,
        // One text, so that entries which were kept before there were two have the same state.
        e.prony_sha256.clone() + &e.systems_sha256,
        case.subject.map(|s| made_of(s, e)),
        set.collect::<Vec<_>>(),
        others.map(|s| made_of(s, e)).collect::<Vec<_>>(),
    ))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn found(computed: &ComputedRun) -> Vec<Found> {
    let is_cell = |of: &&SeenCell| computed.cells.iter().any(|cell| cell.cell == of.cell);
    let count = |note: &Note| {
        let cells = note.seen.iter().flat_map(|seen| &seen.cells);
        cells.filter(is_cell).count()
    };
    let found = |note: &Note| Found {
        code: note.code.to_string(),
        title: note.title.to_owned(),
        severity: view::severity_word(note.severity).to_owned(),
        count: count(note),
    };
    computed.view.notes.iter().map(found).collect()
}
