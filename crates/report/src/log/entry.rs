//! What a log keeps of one run.
//!
//! Not for: comparing entries (`history`), writing about them (`page`).

use std::collections::BTreeMap;

use prony_findings::{Case, Code, Records};
use prony_record::{
    CodeState, Environment, LatencyNs, Plan, PlannedSource, PlannedSubject, Source, Trial,
};
use prony_stats::quantile;
use serde::{Deserialize, Serialize};

use super::bars::{Bars, bars};
use super::sections;
use crate::Run;
use crate::figure::merged;
use crate::figures::CellFigures;
use crate::notes::Notes;
use crate::numbers;
use crate::part::median;
use crate::plots::Plot;
use crate::render;
use crate::sections::cores;
use crate::table::{absence, verdict_word};
use crate::view::{self, ComputedRun, View};

/// Version of what is kept; entries of another are made again from their run directories.
pub const ENTRY_SCHEMA: u32 = 1;
/// Percentiles of the distribution that is kept, as hey prints them, and p99.9.
const PERCENTS: [f64; 8] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];
/// Digits of a commit and of a digest that are shown.
const DIGITS: usize = 12;
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

/// A name and its value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// What it is.
    pub name: String,
    /// What it is like.
    pub value: String,
}

/// A picture of a run, as a log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// What its file is called, without its ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// SVG that needs nothing else.
    pub svg: String,
}

/// One run, as a log keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// [`ENTRY_SCHEMA`]
    pub schema: u32,
    /// What its regions in a document are named after: date and folder.
    pub id: String,
    /// Name of the run directory.
    pub run: String,
    /// Digest of the records that a run begins with, by which it is known wherever its directory is; empty
    /// where it was not kept.
    #[serde(default)]
    pub digest: String,
    /// Start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The experiment's title.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The short answer of its document, a line each; empty in entries of before it was kept.
    #[serde(default)]
    pub answer: Vec<String>,
    /// Pictures of its figures; none in entries of before they were kept.
    #[serde(default)]
    pub pictures: Vec<Drawn>,
    /// `valid`, `bound` or `invalid` (`suspect` in runs of before).
    pub verdict: String,
    /// Whether its run directory is gone.
    #[serde(default)]
    pub gone: bool,
    /// Whether trials that were planned are not there.
    pub unfinished: bool,
    /// State of the code around the experiment.
    pub code: Option<CodeState>,
    /// The subject that was measured as it was at another revision of this code, where there is one; of several the newest.
    #[serde(default)]
    pub revised: Option<Revised>,
    /// Version of Prony and its commit.
    pub prony: String,
    /// The subjects and the line that each printed of its version.
    pub subjects: Vec<Pair>,
    /// How it was measured.
    pub settings: Vec<Pair>,
    /// The machine, for a reader.
    pub machine: Vec<Pair>,
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

/// A subject at another revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    #[serde(default)]
    pub connect_max_ns: u64,
    /// CPU time of the subject a request, nanoseconds.
    pub cpu_ns: Option<f64>,
    /// Peak of the resident memory of its largest process.
    pub memory_bytes: Option<f64>,
    /// Requests completed, all blocks.
    pub completed: u64,
    /// What went wrong, by kind, all blocks.
    pub errors: BTreeMap<String, u64>,
    /// What the kernel counted, by the names of a log, all blocks.
    pub counters: BTreeMap<String, u64>,
    /// Whether only this trial's traffic is in these.
    pub own_counters: bool,
    /// Of a client: requests in flight by Little's law.
    pub in_flight: Option<f64>,
    /// Of a client: how busy its core and that of its peer were; 1 is all the time.
    pub busy: Option<(f64, f64)>,
    /// Of a client: who was the limit.
    pub limit: String,
}

/// Latency of a cell, all blocks; nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Arithmetic mean over all requests.
    pub mean: f64,
    /// Median of the blocks' medians.
    pub p50: Option<f64>,
    /// Likewise.
    pub p90: Option<f64>,
    /// Likewise.
    pub p99: Option<f64>,
    /// Largest.
    pub max: u64,
    /// Percentiles over all requests of all blocks, with their per cent.
    pub percentiles: Vec<(f64, u64)>,
    /// The distribution over all requests of all blocks.
    pub bars: Option<Bars>,
}

/// A finding, over all cells of which it says the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its code.
    pub code: String,
    /// What it says, in a few words.
    pub title: String,
    /// `note`, `bound` or `invalid`.
    pub severity: String,
    /// What follows.
    pub meaning: String,
    /// Cells in which it was seen.
    pub count: usize,
    /// The same in words, by workload: `11 bytes (granian 1, 5; gunicorn 50)`.
    pub places: Vec<String>,
    /// What was seen in the first of them.
    pub evidence: Vec<String>,
}

impl Entry {
    /// The entry of `run`, whose directory is called `name`.
    pub fn of(run: &Run, name: &str) -> Entry {
        let computed = view::compute(run);
        let environment = &run.environment;
        let records = Records::new(&run.plan, &run.trials);
        let commit = match environment.prony_commit.as_str() {
            "" => String::new(),
            commit => format!(" ({commit})"),
        };
        let planned: usize = run.plan.order.iter().map(Vec::len).sum();
        let done: usize = run
            .plan
            .cells
            .iter()
            .map(|cell| records.trials(&cell.id).len())
            .sum();
        let failed = |cell: &CellFigures| !cell.trials.failed.is_empty();
        Entry {
            schema: ENTRY_SCHEMA,
            id: id(environment.started_unix_ms, name),
            run: name.to_owned(),
            digest: String::new(),
            started_unix_ms: environment.started_unix_ms,
            title: run.plan.title.0.clone(),
            question: run.plan.question.0.clone(),
            answer: render::answer_lines(&computed.view),
            pictures: drawn(run, &computed.view),
            verdict: verdict_word(computed.view.verdict).to_owned(),
            gone: false,
            unfinished: done < planned && !computed.cells.iter().any(failed),
            code: environment.code.clone(),
            revised: revised(&run.plan),
            prony: format!("{}{commit}", environment.prony_version),
            subjects: subjects(&run.plan),
            settings: settings(&run.plan),
            machine: machine(environment),
            environment: place(environment),
            command: crate::sections::repeat(run).command,
            sections: sections(run, &records, &computed),
            findings: found(&computed, &records),
            not_run: computed
                .view
                .not_run
                .iter()
                .map(|not| (not.what.clone(), not.reason.clone(), not.remedy.clone()))
                .collect(),
        }
    }

    /// Where it stands in the log, milliseconds since the Unix epoch: when what it is of was committed, where it is of a revision, else
    /// when it was measured.
    pub fn moment_unix_ms(&self) -> u64 {
        let revised = self.revised.as_ref();
        revised.map_or(self.started_unix_ms, |revised| revised.committed_unix_ms)
    }

    /// Every cell of every workload.
    pub fn cells(&self) -> impl Iterator<Item = &CellEntry> {
        self.sections.iter().flat_map(|section| &section.cells)
    }
}

/// Pictures of an entry.
const PICTURES_MAX: usize = 3;

/// The pictures of the group with the most figures; where it has fewer than two, the first ones of the document.
fn drawn(run: &Run, view: &View) -> Vec<Drawn> {
    let alone = Plot::ALL.iter().filter_map(|plot| {
        let (title, svg) = render::alone(run, *plot)?;
        let name = plot.name().to_owned();
        Some(Drawn { name, title, svg })
    });
    let alone: Vec<Drawn> = alone.collect();
    if alone.len() >= 2 {
        return alone;
    }
    let all = render::drawn(view).take(PICTURES_MAX).zip(1..);
    all.map(|((_, title, svg), number): (_, u32)| Drawn {
        name: format!("picture-{number}"),
        title,
        svg,
    })
    .collect()
}

/// `2026-11-22-0301-nibiru-001`, of what a marker may hold.
fn id(started_unix_ms: u64, name: &str) -> String {
    let moment = numbers::moment(started_unix_ms);
    let date: String = moment
        .trim_end_matches(" UTC")
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            ':' => None,
            c => Some(c),
        })
        .collect();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(plain).collect();
    format!("{date}-{name}")
}

/// The first digits of a commit or a digest.
pub fn digits(text: &str) -> &str {
    text.get(..DIGITS).unwrap_or(text)
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

fn subjects(plan: &Plan) -> Vec<Pair> {
    let all = plan.subjects.iter().chain(&plan.peers);
    let pair = |s: &PlannedSubject| Pair {
        name: s.id.clone(),
        value: match (s.version.as_str(), digits(&s.build_key)) {
            ("", "") => "version not told".to_owned(),
            ("", build) => format!("build {build}"),
            (version, _) => version.to_owned(),
        },
    };
    all.map(pair).collect()
}

fn settings(plan: &Plan) -> Vec<Pair> {
    let mut pairs = vec![
        ("blocks", plan.blocks.to_string()),
        ("measured window", numbers::duration(plan.duration_ns)),
        ("warm-up", numbers::duration(plan.warmup_ns)),
        ("cores of the subject", cores(&plan.cores.subject)),
        ("cores of the generator", cores(&plan.cores.generator)),
        ("seed", plan.seed.to_string()),
    ];
    if !plan.cores.lab.is_empty() {
        let place = pairs.len() - 1;
        pairs.insert(place, ("cores of the sampler", cores(&plan.cores.lab)));
    }
    if plan.quick {
        pairs.insert(0, ("--quick", "(a short look)".to_owned()));
    }
    let pair = |(name, value): (&str, String)| Pair {
        name: name.to_owned(),
        value,
    };
    pairs.into_iter().map(pair).collect()
}

fn machine(e: &Environment) -> Vec<Pair> {
    let known = |number: u32| {
        if number > 0 {
            number.to_string()
        } else {
            String::new()
        }
    };
    let memory = match e.memory_bytes {
        0 => String::new(),
        bytes => numbers::bytes(bytes as f64),
    };
    let told = [
        ("processor", e.cpu_model.clone()),
        ("processors", known(e.cpus)),
        ("memory", memory),
        ("kernel", e.kernel.clone()),
        ("distribution", e.distribution.clone()),
        ("virtualisation", e.virtualisation.clone()),
    ];
    let mut pairs: Vec<Pair> = told
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| Pair {
            name: name.to_owned(),
            value,
        })
        .collect();
    // What a queue of connections may hold belongs to the figures of one that overflows.
    let of_queue = |name: &str| {
        [
            "net.core.somaxconn in trials",
            "net.ipv4.tcp_max_syn_backlog in trials",
            "trials are held apart by",
        ]
        .contains(&name)
    };
    pairs.extend(
        e.facts
            .iter()
            .filter(|fact| of_queue(&fact.name))
            .map(|fact| Pair {
                name: fact.name.clone(),
                value: fact.value.clone(),
            }),
    );
    pairs
}

/// What must be equal of two machines for their figures to be compared.
pub(crate) fn place(e: &Environment) -> String {
    const GIB: u64 = 1 << 30;
    let held = e
        .facts
        .iter()
        .find(|fact| fact.name == "trials are held apart by");
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
    let mut sections: Vec<Section> = Vec::new();
    for cell in &computed.cells {
        let planned = run.plan.workloads.iter().find(|w| w.name == cell.workload);
        let same = |section: &&mut Section| section.workload == cell.workload;
        let kept = cell_entry(run, records, cell);
        if let Some(section) = sections.iter_mut().find(same) {
            section.cells.extend(kept);
            continue;
        }
        sections.push(Section {
            workload: cell.workload.clone(),
            title: planned.map_or_else(|| cell.workload.clone(), |w| w.heading().to_owned()),
            request: planned.map_or_else(String::new, sections::request),
            kind: match (&cell.client, &cell.program) {
                (Some(_), _) => "client",
                (None, Some(_)) => "program",
                (None, None) => "server",
            }
            .to_owned(),
            cells: kept.into_iter().collect(),
        });
    }
    sections
}

fn cell_entry(run: &Run, records: &Records<'_>, figures: &CellFigures) -> Option<CellEntry> {
    let cell = run.plan.cells.iter().find(|cell| cell.id == figures.cell)?;
    let case = records.case(cell);
    let client = figures.client.as_ref();
    let unusable = figures.is_invalid()
        || figures
            .findings
            .iter()
            .any(|code| [Code::P001, Code::P020].contains(code));
    let rates: Vec<f64> = case.rates().into_iter().map(|(_, rate)| rate).collect();
    let (counters, own_counters) = counters(&case);
    let busy = client.and_then(|c| Some((c.busy_client?.median, c.busy_peer?.median)));
    Some(CellEntry {
        id: cell.id.clone(),
        label: match cell.rate_per_s {
            Some(rate) => {
                let what = match figures.users {
                    Some(_) => "users",
                    None => "requests",
                };
                let rate = numbers::rate(rate);
                format!("{}, {rate} {what}/s asked for", figures.label)
            }
            None => figures.label.clone(),
        },
        connections: cell.connections,
        series: series(run, &case),
        state: state(run, &case),
        verdict: figures.verdict.map_or("", verdict_word).to_owned(),
        codes: figures
            .findings
            .iter()
            .map(|code| code.as_str().to_owned())
            .collect(),
        absent: match figures.rate_per_s {
            Some(_) => String::new(),
            None => absence(figures).to_owned(),
        },
        blocks: figures.trials.measured.len(),
        rate_per_s: median(figures.rate_per_s),
        ends: figures.rate_per_s.map(|f| (f.low, f.high)),
        session: (!unusable)
            .then(|| session(&rates, run.plan.blocks))
            .flatten(),
        latency: latency(run, &case, figures),
        connect_max_ns: case
            .measured()
            .filter_map(|trial| Some(trial.load.as_ref()?.connect_ns.max))
            .max()
            .unwrap_or(0),
        cpu_ns: median(figures.cpu_subject_ns()),
        memory_bytes: median(figures.memory_peak_bytes()),
        completed: match client {
            Some(client) => client.counts.answered,
            None => figures.completed,
        },
        errors: figures.errors_by_kind.clone(),
        counters,
        own_counters,
        in_flight: client.and_then(|c| median(c.in_flight)),
        busy,
        limit: client.map_or("", |c| c.limit).to_owned(),
    })
}

/// Geometric mean of the rates of all `blocks`. A session that lacks one, or in which nothing was answered, is not
/// like the others.
fn session(rates: &[f64], blocks: u32) -> Option<f64> {
    let whole = !rates.is_empty() && rates.len() as u64 == u64::from(blocks);
    let usable = whole && rates.iter().all(|r| r.is_finite() && *r > 0.0);
    let logs: f64 = rates.iter().map(|rate| libm::log(*rate)).sum();
    usable.then(|| libm::exp(logs / rates.len() as f64))
}

fn counters(case: &Case<'_>) -> (BTreeMap<String, u64>, bool) {
    let trials: Vec<&Trial> = case.complete().collect();
    let risen = |&(name, word): &(&str, &str)| {
        let rise = trials
            .iter()
            .map(|trial| trial.kernel.rise(name))
            .fold(0, u64::saturating_add);
        (rise > 0).then(|| (word.to_owned(), rise))
    };
    let own = trials.iter().all(|trial| trial.kernel.own_namespace);
    (COUNTERS.iter().filter_map(risen).collect(), own)
}

fn latency(run: &Run, case: &Case<'_>, figures: &CellFigures) -> Option<Latency> {
    let loads: Vec<_> = case
        .measured()
        .filter_map(|trial| trial.load.as_ref())
        .collect();
    let merged = merged(
        case.measured()
            .filter_map(|trial| run.histograms.get(trial.histogram.as_ref()?)),
    );
    let total: u64 = loads
        .iter()
        .map(|load| finite(&load.latency_ns))
        .fold(0, u64::saturating_add);
    let sum: f64 = loads
        .iter()
        .map(|load| load.latency_ns.mean * finite(&load.latency_ns) as f64)
        .sum();
    let of = |name: &str| figures.latency_ns.get(name).map(|figure| figure.median);
    let farthest = if figures.latency_max_ns.is_some() {
        100.0
    } else {
        99.0
    };
    let told = PERCENTS.iter().filter(|percent| **percent <= farthest);
    let percentile = |percent: &f64| Some((*percent, quantile(&merged, percent / 100.0)?.0));
    let mean = match total {
        0 => sections::mean_of_client(case)?,
        total => sum / total as f64,
    };
    Some(Latency {
        mean,
        p50: of("p50"),
        p90: of("p90"),
        p99: of("p99"),
        max: figures.latency_max_ns.unwrap_or(0),
        percentiles: told.filter_map(percentile).collect(),
        bars: bars(&merged),
    })
}

/// Values that a mean is of.
fn finite(latency: &LatencyNs) -> u64 {
    latency.count.saturating_sub(latency.infinite)
}

/// Everything in which the figures of two entries must be alike to be of the same thing.
fn series(run: &Run, case: &Case<'_>) -> String {
    let plan = &run.plan;
    let mut sides = vec![&plan.cores.subject, &plan.cores.generator];
    // Without cores of its own the lab is on the generator's, as in all entries of before.
    sides.extend(Some(&plan.cores.lab).filter(|lab| !lab.is_empty()));
    let asked = case.workload.map(|w| {
        let same = (
            &w.request,
            &w.expect_status,
            &w.expect_body,
            &w.arrival,
            w.timeout_ns,
        );
        // Where a source's files lie says nothing of what is sent, and secrets belong in no log.
        let source = w.source.as_ref().map(|of| PlannedSource {
            dir: String::new(),
            user: String::new(),
            bearer: String::new(),
            ..of.clone()
        });
        let same = match &source {
            None => json(&same),
            Some(source) => json(&(same, source)),
        };
        (
            same,
            json(&w.program),
            json(&w.client),
            match &w.find_max {
                Some(of) => json(&(&w.counter, of)),
                None => json(&w.counter),
            },
        )
    });
    json(&(
        &case.cell.id,
        asked,
        (plan.blocks, plan.duration_ns, plan.warmup_ns),
        sides,
        case.subject.map(|s| (s.threads, s.program_threads)),
    ))
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
    let e = &run.environment;
    let plan = &run.plan;
    let set = run
        .plan
        .settings
        .iter()
        .filter(|s| case.cell.settings.contains_key(&s.name));
    let set: Vec<_> = set
        .map(|s| (&s.name, &s.env, &s.args, &s.env_of, &s.sysctl))
        .collect();
    let around = &case.cell.around;
    let is_peer = |s: &&PlannedSubject| case.client().is_some_and(|client| client.peer == s.id);
    let peers = plan.peers.iter().filter(is_peer);
    let backings = plan
        .backings
        .iter()
        .filter(|s| around.backings.contains(&s.id));
    let fronts = plan
        .fronts
        .iter()
        .filter(|s| around.front.as_ref() == Some(&s.id));
    let others: Vec<_> = peers
        .chain(backings)
        .chain(fronts)
        .map(|s| made_of(s, e))
        .collect();
    let subject = case.subject.map(|s| made_of(s, e));
    json(&(
        &e.prony_version,
        &e.prony_commit,
        &e.prony_sha256,
        subject,
        set,
        others,
    ))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn found(computed: &ComputedRun, records: &Records<'_>) -> Vec<Found> {
    let notes = Notes::new(&computed.findings, |cell| records.trials(cell).len());
    let found = notes.notes.iter().map(|note| {
        let of_cell = |cell: &str| computed.cells.iter().find(|c| c.cell == cell);
        let seen = note.seen.iter().flat_map(|seen| &seen.cells);
        let cells: Vec<&CellFigures> = seen.filter_map(|cell| of_cell(&cell.cell)).collect();
        Found {
            code: note.code.as_str().to_owned(),
            title: note.title.to_owned(),
            severity: view::severity_word(note.severity).to_owned(),
            meaning: note.meaning.to_owned(),
            count: cells.len(),
            places: sections::places(records.plan, &cells),
            evidence: note
                .seen
                .first()
                .map_or_else(Vec::new, |seen| seen.evidence.clone()),
        }
    });
    found.collect()
}
