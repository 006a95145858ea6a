//! Numbers of cells whose subject is a client, computed once for each.
//!
//! What a client shares with the others (rate, ratio, latency, memory) is in `CellFigures`; here is what
//! only a client has: both sides' CPU time a request, counts and use of cores, and the figures that a
//! client takes of each connection.
//! Not for: laying out.

use std::collections::BTreeMap;

use prony_findings::{Case, client, measure};
use prony_record::{Cell, CoreUse, Plan, ProgramLine, ProgramReport, Role, Spread, Trial};
use serde::Serialize;

use crate::figure::{Figure, by_block, by_name};
use crate::ratio;
use crate::ratio::RatioFigure;
use crate::settings::{THREADS, is_usual, settings_agree};

/// What a client and its peer recorded, over the trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientFigures {
    /// `requests` or `downloads`.
    pub work: String,
    /// The peer's `id`.
    pub peer: String,
    /// Name of the network; empty: loopback.
    pub network: String,
    /// Threads that the client was told to use.
    pub threads: String,
    /// Threads that the peer was told to use.
    pub peer_threads: u32,
    /// Time for which it asked, by its own clock.
    pub elapsed_ns: Option<Figure>,
    /// From its start to its end.
    pub wall_ns: Option<Figure>,
    /// CPU time of the client in user mode, an answer.
    pub cpu_user_ns: Option<Figure>,
    /// CPU time of the client in the kernel, an answer.
    pub cpu_system_ns: Option<Figure>,
    /// CPU time of the client an answer over that of the reference.
    pub cpu_ratio: Option<RatioFigure>,
    /// CPU time of the peer, a request that it counted.
    pub cpu_peer_ns: Option<Figure>,
    /// Bytes of bodies a second, all connections together.
    pub bytes_per_s: Option<Figure>,
    /// Bytes of a download ÷ its mean length; `None` where one failed, whose bytes belong to no length.
    pub download_bytes_per_s: Option<Figure>,
    /// CPU time of the client in user mode, a GiB of bodies.
    pub cpu_user_ns_per_gib: Option<Figure>,
    /// CPU time of the client in the kernel, a GiB of bodies.
    pub cpu_system_ns_per_gib: Option<Figure>,
    /// CPU time of the kernel's `ksoftirqd` on the client's cores, a GiB of bodies: in no process's clock.
    pub ksoftirqd_ns_per_gib: Option<Figure>,
    /// Time for which the client's cores were not idle, whatever ran there, a GiB of bodies.
    pub busy_ns_per_gib: Option<Figure>,
    /// Requests in flight on average, by Little's law.
    pub in_flight: Option<Figure>,
    /// How busy the client's busiest core or thread was; 1 is all the time.
    pub busy_client: Option<Figure>,
    /// How busy the peer's busiest core or thread was.
    pub busy_peer: Option<Figure>,
    /// Who was the limit in most trials: `client`, `peer`, `both`, `round trips`; empty: not known.
    pub limit: &'static str,
    /// Blocks by who was the limit.
    pub limits: BTreeMap<&'static str, u32>,
    /// What both sides counted.
    pub counts: Counts,
    /// Figures that the client took many times, each connection's time to connect, say; by the name
    /// that it gives them.
    pub figures: BTreeMap<String, SpreadFigure>,
    /// Counts that the client gives, by its names.
    pub tallies: BTreeMap<String, Figure>,
    /// Whether it lets the kernel throw bodies away: counted, not seen.
    pub discards: bool,
}

/// What both sides counted, in all trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Answers read to their end, by the client.
    pub answered: u64,
    /// Requests that failed, by the client.
    pub failed: u64,
    /// Requests in flight when it stopped, by the client; `None`: it does not say.
    pub in_flight: Option<u64>,
    /// Requests, by the peer; `None`: it does not count them.
    pub by_peer: Option<u64>,
    /// Where the peer counts.
    pub source: String,
    /// Bytes of bodies, by the client.
    pub bytes: u64,
    /// Bytes of bodies, by the peer.
    pub bytes_by_peer: Option<u64>,
    /// Blocks in which both sides were compared.
    pub compared: u32,
    /// Blocks in which they agree.
    pub agree: u32,
}

/// A figure that a client took many times in each trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpreadFigure {
    /// Mean of each trial.
    pub mean: Figure,
    /// Smallest of all.
    pub min: f64,
    /// Largest of all.
    pub max: f64,
    /// Standard deviation within a trial.
    pub stdev: Figure,
    /// Values of all trials.
    pub count: u64,
}

/// The figures of a cell; `None` where its subject is no client.
pub fn of_cell(case: &Case<'_>) -> Option<ClientFigures> {
    let planned = case.client()?;
    let runs: Vec<(&Trial, &ProgramReport)> = case.runs().collect();
    let over = |of: &dyn Fn(&Trial, &ProgramReport) -> Option<f64>| {
        let values = runs.iter().filter_map(|(trial, run)| of(trial, run));
        Figure::range(values)
    };
    let interval = |of: fn(&ProgramReport) -> Option<f64>| {
        Figure::interval(runs.iter().filter_map(|(_, run)| of(run)))
    };
    let busy = |trial: &Trial| client::Busy::new(trial, &case.records.plan.cores);
    let (limits, limit) = by_name(runs.iter().filter_map(|(trial, _)| limit(&busy(trial))));
    Some(ClientFigures {
        work: planned.work.clone(),
        peer: planned.peer.clone(),
        network: planned.network.clone(),
        threads: threads(case.cell, planned.threads),
        peer_threads: planned.peer_threads,
        elapsed_ns: interval(|run| Some(measure::elapsed(run)?.0)),
        wall_ns: over(&|_, run| Some(run.wall_ns as f64)),
        cpu_user_ns: over(&|_, run| Some(client::cpu_per_request(run)?.0.0)),
        cpu_system_ns: over(&|_, run| Some(client::cpu_per_request(run)?.1.0)),
        cpu_ratio: cpu_ratio(case),
        cpu_peer_ns: over(&|trial, _| Some(client::peer_cpu_per_request(trial)?.0)),
        bytes_per_s: interval(|run| Some(client::bytes_per_s(run)?.0)),
        download_bytes_per_s: over(&download_bytes_per_s),
        cpu_user_ns_per_gib: over(&|_, run| per_gib(run, own_cpu(run, "user_ns", run.user_ns))),
        cpu_system_ns_per_gib: over(&|_, run| {
            per_gib(run, own_cpu(run, "system_ns", run.system_ns))
        }),
        ksoftirqd_ns_per_gib: over(&|trial, run| {
            per_gib(run, on_cores(trial, |core| core.ksoftirqd_ns)?)
        }),
        busy_ns_per_gib: over(&|trial, run| {
            per_gib(run, on_cores(trial, |core| Some(core.busy_ns))?)
        }),
        in_flight: over(&|trial, _| client::little(trial)),
        busy_client: over(&|trial, _| Some(busy(trial).client?.0)),
        busy_peer: over(&|trial, _| Some(busy(trial).peer?.0)),
        limit,
        limits,
        counts: counts(case, &runs),
        figures: spreads(&runs),
        tallies: tallies(&runs),
        discards: discards(case) || discarded(&runs),
    })
}

/// The threads that a client is told: by the setting of that name, else by the workload.
fn threads(cell: &Cell, planned: u32) -> String {
    let by_setting = cell.settings.get(THREADS).cloned();
    by_setting.unwrap_or_else(|| planned.to_string())
}

/// Not the mean of the downloads' rates, which is higher where some end long before the others.
pub fn download_bytes_per_s(trial: &Trial, run: &ProgramReport) -> Option<f64> {
    let line = measure::line(run)?;
    let mean_ns = line.figures.get("download_ns")?.mean;
    let whole = client::figures(trial).is_none_or(|said| said.failed == 0);
    let is_known = whole && line.count > 0 && mean_ns > 0.0;
    is_known.then(|| line.bytes as f64 / line.count as f64 / (mean_ns / 1e9))
}

fn per_gib(run: &ProgramReport, ns: u64) -> Option<f64> {
    let bytes = measure::line(run)?.bytes as f64;
    (bytes > 0.0).then(|| ns as f64 / (bytes / GIB))
}

/// A time of the client's cores together; `None` where it has none of its own, or one's is not known.
fn on_cores(trial: &Trial, of: fn(&CoreUse) -> Option<u64>) -> Option<u64> {
    let cores = trial.cores.iter();
    let own = cores.filter(|core| core.role == Some(Role::Subject));
    own.map(of)
        .reduce(|sum, more| Some(sum?.saturating_add(more?)))
        .flatten()
}

/// What the client says of its CPU time without that of its own measuring, where it says it and it is not
/// more than what the kernel says of all of it.
fn own_cpu(run: &ProgramReport, name: &str, of_kernel: u64) -> u64 {
    let said = measure::line(run).and_then(|line| line.tallies.get(name));
    said.copied()
        .filter(|ns| *ns <= of_kernel)
        .unwrap_or(of_kernel)
}

/// Bytes of a GiB.
pub const GIB: f64 = 1_073_741_824.0;

/// Who was the limit in a trial.
fn limit(busy: &client::Busy) -> Option<&'static str> {
    Some(match busy.limit()? {
        client::Limit::Client => "client",
        client::Limit::Peer => "peer",
        client::Limit::Both => "both",
        client::Limit::RoundTrips => "round trips",
    })
}

fn counts(case: &Case<'_>, runs: &[(&Trial, &ProgramReport)]) -> Counts {
    let mut counts = Counts::default();
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    // What one trial does not say, the sum of all cannot.
    let add_known = |sum: &mut Option<u64>, first: bool, more: Option<u64>| {
        let before = if first { Some(0) } else { *sum };
        *sum = before.zip(more).map(|(sum, more)| sum.saturating_add(more));
    };
    for (at, (trial, run)) in runs.iter().enumerate() {
        if let Some(line) = measure::line(run) {
            add(&mut counts.answered, line.count);
            add(&mut counts.bytes, line.bytes);
        }
        let said = client::figures(trial);
        add(&mut counts.failed, said.map_or(0, |said| said.failed));
        let in_flight = said.and_then(|said| said.in_flight);
        add_known(&mut counts.in_flight, at == 0, in_flight);
        let peer = trial.client.as_ref().map(|client| &client.peer);
        add_known(&mut counts.by_peer, at == 0, peer.and_then(|p| p.requests));
        let bytes = peer.and_then(|p| p.bytes);
        add_known(&mut counts.bytes_by_peer, at == 0, bytes);
        if counts.source.is_empty() {
            counts.source = peer.map_or_else(String::new, |peer| peer.source.clone());
        }
        let found = client::agrees(trial, case.cell.connections).filter(|found| found.compared);
        counts.compared += u32::from(found.is_some());
        counts.agree += u32::from(found.is_some_and(|found| found.holds()));
    }
    counts
}

/// What all runs say by names of the client's own.
fn said_by_name<'a, T>(
    runs: &[(&'a Trial, &'a ProgramReport)],
    of: fn(&'a ProgramLine) -> &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (String, Vec<&'a T>)> {
    let mut by_name: BTreeMap<String, Vec<&T>> = BTreeMap::new();
    let lines = runs.iter().filter_map(|(_, run)| measure::line(run));
    for (name, said) in lines.flat_map(of) {
        by_name.entry(name.clone()).or_default().push(said);
    }
    by_name.into_iter()
}

fn spreads(runs: &[(&Trial, &ProgramReport)]) -> BTreeMap<String, SpreadFigure> {
    let figure = |(name, spreads): (String, Vec<&Spread>)| {
        let all = || spreads.iter();
        let least = all().map(|s| s.min).fold(f64::INFINITY, f64::min);
        let most = all().map(|s| s.max).fold(f64::NEG_INFINITY, f64::max);
        let spread = SpreadFigure {
            mean: Figure::range(all().map(|s| s.mean))?,
            min: Some(least).filter(|v| v.is_finite())?,
            max: Some(most).filter(|v| v.is_finite())?,
            stdev: Figure::range(all().map(|s| s.stdev))?,
            count: all().map(|s| s.count).fold(0, u64::saturating_add),
        };
        Some((name, spread))
    };
    said_by_name(runs, |line| &line.figures)
        .filter_map(figure)
        .collect()
}

fn tallies(runs: &[(&Trial, &ProgramReport)]) -> BTreeMap<String, Figure> {
    let figure = |(name, counts): (String, Vec<&u64>)| {
        let counts = counts.into_iter().map(|count| *count as f64);
        Some((name, Figure::range(counts)?))
    };
    said_by_name(runs, |line| &line.tallies)
        .filter_map(figure)
        .collect()
}

/// Whether the client says that bytes were thrown away.
fn discarded(runs: &[(&Trial, &ProgramReport)]) -> bool {
    let mut lines = runs.iter().filter_map(|(_, run)| measure::line(run));
    lines.any(|line| line.tallies.get("discarded_bytes").is_some_and(|n| *n > 0))
}

/// Values of a setting by which something is left out.
pub const OFF: [&str; 5] = ["", "0", "no", "off", "false"];

/// Whether a setting of the cell, or an argument of its workload, tells the client to discard.
fn discards(case: &Case<'_>) -> bool {
    let by_setting = |(name, value): (&String, &String)| {
        let value = value.as_str();
        value.contains("discard") || name.contains("discard") && !OFF.contains(&value)
    };
    let by_word = |word: &String| word.contains("discard");
    case.cell.settings.iter().any(by_setting)
        || case
            .client()
            .is_some_and(|client| client.args.iter().any(by_word))
}

/// The cell that `cell` is compared with: the reference's in the same workload, with the same
/// connections and settings; of the reference itself, its cell with the first value of each setting but
/// for the threads, which are what they are in both.
pub fn reference_cell<'a>(plan: &'a Plan, cell: &Cell) -> Option<&'a Cell> {
    let reference = plan.reference.as_ref()?;
    let own = |other: &&Cell| {
        &other.subject == reference
            && other.workload == cell.workload
            && other.connections == cell.connections
    };
    let usual = |other: &&Cell| {
        let same_threads = other.settings.get(THREADS) == cell.settings.get(THREADS);
        is_usual(plan, &other.settings) && same_threads
    };
    let mut cells = plan.cells.iter().filter(own);
    let found = match &cell.subject == reference {
        true => cells.find(usual),
        false => cells.find(|other| settings_agree(plan, cell, other)),
    };
    found.filter(|other| other.id != cell.id)
}

/// CPU time of the client an answer, in user mode and in the kernel.
pub fn cpu(run: &ProgramReport) -> Option<f64> {
    let (user, system) = client::cpu_per_request(run)?;
    Some(user.0 + system.0)
}

fn cpu_ratio(case: &Case<'_>) -> Option<RatioFigure> {
    let other = reference_cell(case.records.plan, case.cell)?;
    let of = |case: &Case<'_>| by_block(case.complete(), |trial| cpu(trial.program.as_ref()?));
    let other = case.records.case(other);
    ratio::paired(&other, case, of(case), of(&other))
}
