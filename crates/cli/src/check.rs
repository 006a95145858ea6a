//! `prony check`: subjects held to the contract, without measuring.
//!
//! ```text
//! subject ──> experiments of the contract ──> plan ──> build ──> trials without load ──> what each did
//! ```

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, bail};
use clap::Args;
use prony_base::{Nanos, clock, counted};
use prony_findings::{Records, Verdict, findings, verdict};
use prony_lab::contract::{self, ContractCheck};
use prony_lab::diagnosis::nearest;
use prony_lab::experiment::{Experiment, Origin};
use prony_lab::plan::{self, PlanError};
use prony_lab::run::{self, Event, Options};
use prony_lab::subject::{self, FILE, ORIGINALS, Subject};
use prony_lab::supervise::{self, Interrupt, Offer};
use prony_record::{
    CheckLevel, Environment, Exit, NotRun, Outcome, Phase, Plan, Role, SCHEMA as RECORDS, Trial,
};
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;

use crate::home::Home;
use crate::lines::wrapped;
use crate::run::builds::{self, Built};
use crate::signals::interruption;
use crate::{Ending, Streams};

/// Version of what `--json` prints.
const SCHEMA: u32 = 1;
/// The longest that a server may take to stop, by the contract.
const STOP_MAX: Nanos = Nanos::from_secs(5);
/// Lines of what a subject printed that are shown where it failed.
const LOG_LINES: usize = 5;

/// `prony check`
#[derive(Debug, Args)]
#[command(
    after_help = "Each subject is built if its files have changed, started, sent the requests that the contract \
     (`prony docs contract`) names, and stopped: this takes seconds each, once they are built. A program does each \
     of its works once, a client sends requests to Prony's server for a second, and both counts must agree; \
     databases and proxies are checked with Prony's server. --all leaves out those in subjects/original, which run what their user has built.\n\nExit codes: 0 all hold; 1 a subject does not, or one that was named \
     cannot run here; 2 wrong usage or a bad file; 130 interrupted."
)]
pub struct CheckWords {
    /// Subjects: LANGUAGE/NAME under subjects/, or folders with a subject.toml
    #[arg(value_name = "SUBJECT", required_unless_present = "all")]
    pub subjects: Vec<String>,
    /// All that come with Prony; their builds take minutes
    #[arg(long, conflicts_with = "subjects")]
    pub all: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The result of one subject.
#[derive(Debug, Serialize)]
struct Checked {
    subject: String,
    /// `held`, `failed` or `not-run`.
    state: State,
    /// Why it could not be checked; empty where it was.
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The command that would change that; empty where none is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
    /// Its starts, in order.
    asked: Vec<CheckedStart>,
    elapsed_ns: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Held,
    Failed,
    NotRun,
}

/// One start of a subject, and what it was asked.
#[derive(Debug, Serialize)]
struct CheckedStart {
    /// The cell: subject, workload, size.
    cell: String,
    /// The errors; empty: none.
    wrong: Vec<String>,
    /// Checks that it passed.
    passed: Vec<String>,
    /// Capabilities that it does not have and need not.
    lacks: Vec<String>,
    /// From the start of its process until it was ready, and how long it took to stop.
    ready_ns: u64,
    stop_ns: u64,
}

/// Runs `prony check`.
pub fn run(words: &CheckWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let home = Home::find(streams.err)?;
    let here = env::current_dir().context("there is no current folder")?;
    let named = chosen(words, &home, &here)?;
    let interrupted = interruption()?;
    let offer =
        supervise::offer(&home.prony).context("no subject can be started on this machine")?;
    let bench = Bench {
        home: &home,
        here: &here,
        offer: &offer,
        interrupted: &interrupted,
    };
    let mut all = Vec::new();
    for reference in &named {
        let checked = match bench.check(reference, streams)? {
            Some(checked) if !interrupted.load(Relaxed) => checked,
            _ => return Ok(Ending::Interrupted),
        };
        if !words.json {
            writeln!(streams.out, "{}", text(&checked))?;
        }
        all.push(checked);
    }
    if words.json {
        let value = json!({"schema": SCHEMA, "subjects": all});
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else {
        writeln!(streams.out, "{}", summary(&all))?;
    }
    let is_bad = |one: &Checked| match one.state {
        State::Held => false,
        State::Failed => true,
        State::NotRun => !words.subjects.is_empty(),
    };
    Ok(Ending::failed_if(all.iter().any(is_bad)))
}

/// The subjects to check, as a `ref` names them. Errors: there is no such subject.
fn chosen(words: &CheckWords, home: &Home, here: &Path) -> anyhow::Result<Vec<String>> {
    let there = subject::folders(&home.subjects);
    for name in &words.subjects {
        if folder_of(name, home, here).is_none() {
            let help = match nearest(name, there.iter().map(String::as_str)) {
                Some(word) => format!("did you mean `{word}`?"),
                None => "`prony list subjects` names those that are here".to_owned(),
            };
            bail!("there is no subject `{name}`: {help}");
        }
    }
    if !words.subjects.is_empty() {
        return Ok(words.subjects.clone());
    }
    let of_others = format!("{ORIGINALS}/");
    let ids: Vec<String> = there
        .into_iter()
        .filter(|id| !id.starts_with(&of_others))
        .collect();
    match ids.is_empty() {
        true => bail!("there is no subject under {}", home.subjects.display()),
        false => Ok(ids),
    }
}

/// The folder of the subject that is named: among Prony's own, as a path, or in `subjects/` here.
fn folder_of(name: &str, home: &Home, here: &Path) -> Option<PathBuf> {
    let places = [&home.subjects, here, &here.join("subjects")].map(|place| place.join(name));
    places.into_iter().find(|place| place.join(FILE).is_file())
}

/// The starts in one experiment of the contract; or why there were none, and what that makes of the subject.
type PartOutcome = Result<Vec<CheckedStart>, (State, NotRun)>;

/// The context that all checks share.
struct Bench<'a> {
    home: &'a Home,
    here: &'a Path,
    offer: &'a Offer,
    interrupted: &'a Arc<AtomicBool>,
}

impl Bench<'_> {
    /// Checks one subject. `None`: the user ended it.
    fn check(&self, reference: &str, streams: &mut Streams<'_>) -> anyhow::Result<Option<Checked>> {
        let start = clock::monotonic();
        let folder =
            folder_of(reference, self.home, self.here).unwrap_or_else(|| self.here.join(reference));
        let subject = Subject::load(&folder)?;
        let mut checked = Checked {
            subject: subject.id.clone(),
            state: State::Held,
            reason: String::new(),
            remedy: String::new(),
            asked: Vec::new(),
            elapsed_ns: 0,
        };
        let folder = fs::canonicalize(&folder).unwrap_or(folder);
        let reference = folder.display().to_string();
        for part in contract::checks(&subject, &reference) {
            match self.part(&part, streams)? {
                None => return Ok(None),
                Some(Err((state, missing))) => {
                    checked.state = state;
                    (checked.reason, checked.remedy) = (missing.reason, missing.remedy);
                }
                Some(Ok(starts)) => checked.asked.extend(starts),
            }
        }
        if checked.asked.iter().any(|start| !start.wrong.is_empty()) {
            checked.state = State::Failed;
        }
        checked.elapsed_ns = clock::monotonic().since(start).0;
        Ok(Some(checked))
    }

    /// One of its experiments: what each start showed, or why there was none. `None`: the user ended it.
    fn part(
        &self,
        part: &ContractCheck,
        streams: &mut Streams<'_>,
    ) -> anyhow::Result<Option<PartOutcome>> {
        let origin = Origin::new("check", self.here);
        let experiment = Experiment::parse(&part.text, &origin)?;
        let subjects = subject::load_all(&experiment, &self.home.subjects)
            .map_err(|wrong| anyhow::anyhow!("{}", wrong[0]))?;
        let has_networks = self.offer.isolation.network_namespace;
        let facts = self.home.facts(&subjects, has_networks);
        let plan = match plan::plan(&experiment, &subjects, &facts, &plan::Options::default()) {
            Ok(plan) => plan,
            Err(PlanError::NothingRuns { not_run }) => {
                let missing = not_run.into_iter().next().unwrap_or_default();
                return Ok(Some(Err((State::NotRun, missing))));
            }
            Err(wrong) => bail!("{wrong}"),
        };
        let before = plan.not_run.len();
        let built = builds::build(
            plan,
            &subjects,
            self.home,
            self.offer,
            self.interrupted,
            streams,
        )?;
        let Some(Built { plan, .. }) = &built else {
            return Ok(None);
        };
        if plan.cells.is_empty() {
            let missing = plan.not_run.get(before).cloned().unwrap_or_default();
            return Ok(Some(Err((State::Failed, missing))));
        }
        let trials = self.trials(plan)?;
        let start = |trial: &Trial| checked_start(plan, trial);
        Ok(trials.map(|trials| Ok(trials.iter().map(start).collect())))
    }

    /// The trials of a plan, in a folder that is gone afterwards. `None`: the user ended it.
    fn trials(&self, plan: &Plan) -> anyhow::Result<Option<Vec<Trial>>> {
        let dir =
            TempDir::with_prefix("prony-check-").context("no temporary folder can be made")?;
        let options = Options {
            dir: dir.path().to_owned(),
            resume: false,
            prony: self.home.prony.clone(),
            wanted: self.offer.wanted,
            driver: crate::driver::chosen()?,
            wrk: None,
            profile: None,
            again: false,
            check_only: true,
            interrupt: Interrupt::by_flag(Arc::clone(self.interrupted)),
        };
        let environment = Environment {
            schema: RECORDS,
            ..Environment::default()
        };
        let mut trials = Vec::new();
        let mut keep = |event: Event<'_>| {
            if let Event::Ended { trial, .. } = event {
                trials.push(trial.clone());
            }
        };
        let outcome = run::run(plan, environment, &options, &mut keep)?;
        Ok((!outcome.interrupted).then_some(trials))
    }
}

fn checked_start(plan: &Plan, trial: &Trial) -> CheckedStart {
    let mut wrong = Vec::new();
    if let Outcome::Failed { phase, reason } = &trial.outcome {
        wrong.push(format!("{}: {reason}", phase_word(*phase)));
        let from = trial.log_tail.len().saturating_sub(LOG_LINES);
        let printed = trial.log_tail[from..].iter();
        wrong.extend(printed.map(|line| format!("it printed: {line}")));
    }
    if !trial.left_behind.is_empty() {
        wrong.push(format!(
            "it left processes behind: {}",
            trial.left_behind.join(", ")
        ));
    }
    if trial.program.is_none() && trial.outcome == Outcome::Measured {
        wrong.extend(wrong_end(trial));
    }
    let of_client = plan.workloads.iter().any(|work| work.client.is_some());
    if of_client && wrong.is_empty() {
        let found = findings(&Records::new(plan, std::slice::from_ref(trial)));
        if verdict(&found) == Verdict::Invalid {
            let codes = found
                .iter()
                .map(|one| format!("{}, {}", one.code.as_str(), one.code.title()));
            wrong.extend(codes);
        }
    }
    let of = |level: CheckLevel, passed: bool| {
        let checks = trial.verification.iter();
        checks.filter(move |check| check.level == level && check.passed == passed)
    };
    let passed = trial.verification.iter().filter(|check| check.passed);
    CheckedStart {
        cell: trial.cell.clone(),
        wrong,
        passed: passed.map(|check| check.name.clone()).collect(),
        lacks: of(CheckLevel::Capability, false)
            .map(|check| format!("{} ({})", check.name, check.detail))
            .collect(),
        ready_ns: length_of(trial, &[Phase::Start, Phase::Ready]),
        stop_ns: length_of(trial, &[Phase::Stop]),
    }
}

fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Prepare | Phase::Start => "it does not start",
        Phase::Ready => "it does not become ready",
        Phase::Verify => "it answers wrongly",
        Phase::Stop => "it does not stop",
        _ => "it failed",
    }
}

fn length_of(trial: &Trial, phases: &[Phase]) -> u64 {
    let spans = trial.phases.iter();
    let spans = spans.filter(|span| phases.contains(&span.phase));
    spans.map(|span| span.length_ns).sum()
}

/// The error in how a server ended that was asked to.
fn wrong_end(trial: &Trial) -> Option<String> {
    let processes = trial.processes.iter();
    let processes = processes.filter(|process| process.role == Role::Subject);
    let first = processes.min_by_key(|process| process.pid)?;
    match &first.exit {
        Some(Exit::Code { code: 0 }) => {}
        Some(Exit::Code { code }) => {
            return Some(format!(
                "it ended with status {code} when it was told to stop"
            ));
        }
        Some(Exit::Signal { signal: 9, .. }) => {
            return Some("it did not stop in time, and was killed".to_owned());
        }
        Some(Exit::Signal { asked: true, .. }) => {}
        Some(Exit::Signal { signal, .. }) => {
            return Some(format!("it was ended by signal {signal}"));
        }
        None => return None,
    }
    let took = Nanos(length_of(trial, &[Phase::Stop]));
    (took > STOP_MAX).then(|| format!("it took {took} to stop, more than {STOP_MAX}"))
}

/// The result of a subject, for people.
fn text(checked: &Checked) -> String {
    let took = Nanos(checked.elapsed_ns);
    let word = match checked.state {
        State::Held => "holds",
        State::Failed => "FAILED",
        State::NotRun => "not run",
    };
    let mut lines = vec![format!("{}: {word} ({took})", checked.subject)];
    if !checked.reason.is_empty() {
        lines.push(wrapped("  ", 2, &checked.reason));
    }
    if !checked.remedy.is_empty() {
        lines.push(format!("  -> {}", checked.remedy));
    }
    for start in &checked.asked {
        let name = start
            .cell
            .strip_prefix(&checked.subject)
            .unwrap_or(&start.cell)
            .trim();
        let (ready, stop) = (Nanos(start.ready_ns), Nanos(start.stop_ns));
        let result = match &start.passed[..] {
            _ if !start.wrong.is_empty() => "failed".to_owned(),
            [] => "done".to_owned(),
            passed => format!("ready in {ready}, {}, stopped in {stop}", passed.join(", ")),
        };
        lines.push(wrapped("  ", 4, &format!("{name}: {result}")));
        let lacks = start.lacks.iter().map(|lack| format!("cannot: {lack}"));
        let further = start.wrong.iter().cloned().chain(lacks);
        lines.extend(further.map(|line| wrapped("    ", 6, &line)));
    }
    lines.join("\n")
}

/// The last line: how many, and which do not hold.
fn summary(all: &[Checked]) -> String {
    let of = |state: State| -> Vec<&str> {
        let subjects = all.iter().filter(|one| one.state == state);
        subjects.map(|one| one.subject.as_str()).collect()
    };
    let (held, failed, not_run) = (of(State::Held), of(State::Failed), of(State::NotRun));
    let verb = if held.len() == 1 { "holds" } else { "hold" };
    let mut text = format!("{} {verb}", counted(held.len(), "subject"));
    for (word, names) in [("failed", failed), ("not run", not_run)] {
        if !names.is_empty() {
            text.push_str(&format!("; {word}: {}", names.join(", ")));
        }
    }
    wrapped("", 2, &text)
}
