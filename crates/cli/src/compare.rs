//! `prony compare`: two runs, or two commands in turns, beside each other.
//!
//! ```text
//! two commands or revisions ──> experiment ──> run ──┐
//! two run directories, their folder ─────────────────┤
//! run directory, log ────────────────────────────────┴──> figures and what may be claimed ──> sentence, table, gate
//! ```

pub mod words;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::typed::duration;
use prony_base::typed::requirement::{LoadRequirement, Requirement};
use prony_base::{Nanos, counted};
use prony_lab::store;
use prony_lab::subject::FILE;
use prony_record::layout;
use prony_report::compare::{Comparison, Gate, apart, baseline_in, interleaved};
use prony_report::log::Entry;
use prony_report::required::{self, CellRequirement, required};
use serde_json::json;

use crate::cause::CannotWrite;
use crate::home::Home;
use crate::lines::quoted;
use crate::log::history;
use crate::log::words::LogWords;
use crate::paths::file_name;
use crate::run as experiment_run;
use crate::run::words::RunWords;
use crate::typed::visits_typed;
use crate::{Ending, Streams, report};
use words::{CompareWords, Inconclusive};

/// The names of the two commands.
const NAMES: [&str; 2] = ["A", "B"];
/// Warm-up where blocks and windows are given, too.
const WARMUP: Nanos = Nanos::from_millis(500);

/// Runs `prony compare`.
pub fn run(words: &CompareWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let (compared, required) = match &words.interleave[..] {
        [a, b] => match in_turns(words, [a, b], streams)? {
            Ok(compared) => compared,
            Err(ending) => return Ok(ending),
        },
        _ => match &words.log {
            Some(experiment) => (with_log(words, experiment, streams)?, Vec::new()),
            None => (of_dirs(words, streams)?, required_of_last(words)?),
        },
    };
    tell(words, &compared, &required, streams)?;
    Ok(ending(words, &compared, &required))
}

fn ending(words: &CompareWords, compared: &Comparison, required: &[CellRequirement]) -> Ending {
    if compared.figures.is_empty() {
        return Ending::Invalid;
    }
    if required.iter().any(|of| !of.outcome.held) {
        return Ending::Failed;
    }
    match words.fail_on.map(|limit| compared.gate(limit)) {
        Some(Gate::Failed) => Ending::Failed,
        Some(Gate::Inconclusive) if words.inconclusive == Inconclusive::Fail => Ending::Failed,
        _ => Ending::Done,
    }
}

/// The outcomes of `--require` in the run that is compared.
fn required_of_last(words: &CompareWords) -> anyhow::Result<Vec<CellRequirement>> {
    match words.dirs.last().filter(|_| !words.require.is_empty()) {
        Some(dir) => {
            let (run, _) = report::read(dir)?;
            Ok(required(&run, &|_, _| of_all(&words.require)))
        }
        None => Ok(Vec::new()),
    }
}

fn tell(
    words: &CompareWords,
    compared: &Comparison,
    required: &[CellRequirement],
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let gate = words.fail_on.map(|limit| (limit, compared.gate(limit)));
    if words.json {
        let mut value = serde_json::to_value(compared)?;
        value["sentence"] = json!(compared.sentence());
        if let Some((limit, gate)) = gate {
            value["gate"] = json!({"limit": limit, "came_to": gate});
        }
        if !required.is_empty() {
            value["required"] = json!(required);
        }
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else if words.markdown {
        write!(streams.out, "{}", compared.markdown())?;
        for line in required::lines(required) {
            writeln!(streams.out, "\n{line}")?;
        }
    } else {
        let (table, footing) = (compared.table(), compared.footing());
        let sentences = compared.sentences().join("\n");
        writeln!(streams.out, "{sentences}\n\n{table}\n")?;
        if !footing.is_empty() {
            writeln!(streams.out, "{footing}")?;
        }
        for out in &compared.left_out {
            writeln!(streams.out, "left out: {out}")?;
        }
        for line in required::lines(required) {
            writeln!(streams.out, "{line}")?;
        }
    }
    for missed in required.iter().filter(|of| !of.outcome.held) {
        writeln!(streams.err, "prony: {}", missed.sentence())?;
    }
    match gate {
        Some((limit, gate)) => tell_gate(limit, gate, compared, streams),
        None => Ok(()),
    }
}

fn tell_gate(
    limit: f64,
    gate: Gate,
    compared: &Comparison,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let sentences = match gate {
        Gate::Passed => vec!["no figure is worse by more than".to_owned()],
        Gate::Inconclusive => vec![
            "undecided: more or longer blocks would show whether some figure is worse by more than"
                .to_owned(),
        ],
        Gate::Failed => {
            let beyond = compared.beyond(limit).into_iter();
            beyond
                .map(|figure| format!("{figure}: worse by more than"))
                .collect()
        }
    };
    for sentence in sentences {
        writeln!(streams.err, "prony: {sentence} {} %", limit * 100.0)?;
    }
    Ok(())
}

/// Requirements of all requests.
fn of_all(requirements: &[Requirement]) -> Vec<LoadRequirement> {
    let of = |what: &Requirement| LoadRequirement {
        step: None,
        what: *what,
    };
    requirements.iter().map(of).collect()
}

/// A comparison, and what came of what is required of its second side.
type ComparedRun = (Comparison, Vec<CellRequirement>);

/// Measures both commands in turns; how the run ended where there is nothing to compare.
fn in_turns(
    words: &CompareWords,
    commands: [&String; 2],
    streams: &mut Streams<'_>,
) -> anyhow::Result<Result<ComparedRun, Ending>> {
    let dir = match &words.out {
        Some(dir) => dir.clone(),
        None => experiment_run::next_free(Path::new("runs"), "compare")?,
    };
    // Here, as an experiment's commands run in its folder, and these were typed here.
    let name = dir.file_name().unwrap_or(OsStr::new("compare"));
    let experiment = Path::new(name).with_extension("toml");
    let subjects = Home::find(streams.err)?.subjects;
    let is_subject = |name: &str| {
        let local = Path::new("subjects").join(name);
        let mut places = [subjects.join(name), PathBuf::from(name), local].into_iter();
        places.any(|place| place.join(FILE).is_file())
    };
    let sides = commands.map(|command| Side::parse(command, is_subject));
    fs::write(&experiment, experiment_text(words, &sides))
        .with_context(CannotWrite::at(&experiment))?;
    let run_words = RunWords {
        out: Some(dir.clone()),
        ..RunWords::new(experiment)
    };
    // The documents lie in the run directory; what is asked for here is the comparison.
    let ending = experiment_run::run_quietly(&run_words, streams)?;
    if !matches!(ending, Ending::Done | Ending::Invalid) || !dir.join(layout::PLAN).exists() {
        return Ok(Err(ending));
    }
    let (run, _) = report::read(&dir)?;
    writeln!(streams.err, "  {}", dir.join(layout::DOCUMENT).display())?;
    let of_b = required(&run, &|subject, _| match subject == NAMES[1] {
        true => of_all(&words.require),
        false => Vec::new(),
    });
    Ok(Ok((interleaved(&run, NAMES[0], NAMES[1]), of_b)))
}

/// One side of a comparison: a command, or a subject, at a revision or as it is now.
#[derive(Debug, Eq, PartialEq)]
enum Side<'a> {
    Command(&'a str),
    Subject(&'a str, Option<&'a str>),
}

impl Side<'_> {
    /// A word with an `@` and no space is a subject at a revision: a server's command has at least `{port}` beside the
    /// program, and no program that does works is told by one word. One that is the folder of a subject is that subject.
    fn parse<'a>(typed: &'a str, is_subject: impl Fn(&str) -> bool) -> Side<'a> {
        let is_word = !typed.contains(char::is_whitespace);
        match typed.split_once('@') {
            Some((name, revision)) if is_word && !name.is_empty() && !revision.is_empty() => {
                Side::Subject(name, Some(revision))
            }
            _ if is_word && is_subject(typed) => Side::Subject(typed, None),
            _ => Side::Command(typed),
        }
    }

    /// The lines of its `[[subject]]`.
    fn lines(&self) -> String {
        match self {
            Side::Command(command) => format!("cmd = {}\n", quoted(command)),
            Side::Subject(name, None) => format!("ref = {}\n", quoted(name)),
            Side::Subject(name, Some(revision)) => {
                format!("ref = {}\nrevision = {}\n", quoted(name), quoted(revision))
            }
        }
    }
}

/// The experiment that measures both in turns.
fn experiment_text(words: &CompareWords, sides: &[Side<'_>; 2]) -> String {
    let mut text = format!(
        "title = \"A and B\"\nquestion = \"How does B differ from A?\"\n\n[run]\nreference = \"{}\"\n",
        NAMES[0],
    );
    text.push_str(&match words.budget {
        Some(budget) => format!("budget = \"{}\"\n", duration::typed(budget)),
        None => format!("blocks = {}\n", words.blocks),
    });
    let unasked = words.budget.is_none().then_some(WARMUP);
    if words.workload.is_empty() {
        text.push_str(&format!(
            "duration = \"{}\"\nvisits = \"{}\"\n",
            duration::typed(words.duration),
            visits_typed(words.visits)
        ));
        if let Some(warmup) = words.warmup.or(unasked) {
            text.push_str(&format!("warmup = \"{}\"\n", duration::typed(warmup)));
        }
    }
    for (name, side) in NAMES.iter().zip(sides) {
        text.push_str(&format!(
            "\n[[subject]]\nname = \"{name}\"\n{}",
            side.lines()
        ));
    }
    for work in &words.workload {
        text.push_str(&format!(
            "\n[[workload]]\nwork = {}\ncount = {}\n",
            quoted(&work.name),
            work.count
        ));
    }
    if !words.workload.is_empty() {
        return text;
    }
    for path in &words.path {
        text.push_str(&format!(
            "\n[[workload]]\nname = {}\nrequest = {{ path = {} }}\nconnections = {:?}\n",
            quoted(&workload_name(path)),
            quoted(path),
            words.connections
        ));
    }
    text
}

/// A path as a name: `/a/b?c` to `a-b-c`.
fn workload_name(path: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = path.chars().map(plain).collect();
    match name.trim_matches('-') {
        "" => "root".to_owned(),
        name => name.to_owned(),
    }
}

/// Compares a run with the log of its experiment, which is brought up to date.
fn with_log(
    words: &CompareWords,
    experiment: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Comparison> {
    let [dir] = &words.dirs[..] else {
        bail!("--log takes one run directory: the log is what it is compared with");
    };
    if !experiment.is_file() {
        bail!("{}: no such experiment", experiment.display());
    }
    let (of, name) = (
        crate::log::experiment_of(dir)?,
        experiment.file_name().unwrap_or_default(),
    );
    if name != OsStr::new(&of) {
        bail!(
            "{} is a run of {of}, not of {}",
            dir.display(),
            experiment.display()
        );
    }
    let other = Entry {
        digest: history::digest(dir)?,
        ..entry(dir)?
    };
    let folder = match &words.runs {
        Some(folder) => folder.clone(),
        None => folder_of(dir)?,
    };
    let log = LogWords {
        history: words.history.clone(),
        ..LogWords::new(experiment.to_owned(), folder.clone())
    };
    let mut entries = crate::log::entries(&log, streams)?;
    entries.retain(|entry| entry.digest != other.digest);
    let Some(baseline) = baseline_in(&entries, &other) else {
        bail!(
            "the log of {of} in {} has no entry before {}",
            folder.display(),
            other.run
        );
    };
    writeln!(
        streams.err,
        "prony: {} beside {}, by {} of {of}",
        other.run,
        baseline.id,
        counted(entries.len() - 1, "further entry"),
    )?;
    Ok(apart(baseline, &other, &entries))
}

/// Compares run directories by the history of their folder.
fn of_dirs(words: &CompareWords, streams: &mut Streams<'_>) -> anyhow::Result<Comparison> {
    let Some(last) = words.dirs.last() else {
        bail!("name one or two run directories");
    };
    let (other, method) = (entry(last)?, method_of(last)?);
    let folder = match &words.runs {
        Some(folder) => folder.clone(),
        None => folder_of(last)?,
    };
    let named = |dir: &Path| words.dirs.iter().any(|other| same(other, dir));
    let mut history = Vec::new();
    let experiment = crate::log::experiment_of(last)?;
    for dir in crate::log::dirs_in(&folder)? {
        let is_other = || method_of(&dir).is_ok_and(|of| of != method);
        if named(&dir)
            || crate::log::experiment_of(&dir).ok().as_ref() != Some(&experiment)
            || is_other()
        {
            continue;
        }
        match entry(&dir) {
            Ok(entry) => history.push(entry),
            Err(error) => writeln!(streams.err, "prony: left out: {error:#}")?,
        }
    }
    let mut before_it = method;
    let baseline = match &words.dirs[..] {
        [baseline, _] => {
            before_it = method_of(baseline)?;
            entry(baseline)?
        }
        _ => {
            let before = history.iter().enumerate();
            let before = before.filter(|(_, e)| e.started_unix_ms < other.started_unix_ms);
            let newest = before
                .max_by_key(|(_, e)| e.started_unix_ms)
                .map(|(at, _)| at);
            let Some(newest) = newest else {
                bail!(
                    "{} holds no run of {experiment} before {}: name the baseline, too",
                    folder.display(),
                    last.display()
                );
            };
            history.swap_remove(newest)
        }
    };
    writeln!(
        streams.err,
        "prony: {} beside {}, by {} of {experiment} in {}",
        other.run,
        baseline.run,
        counted(history.len(), "further run"),
        folder.display()
    )?;
    Ok(apart(&baseline, &other, &history).of_methods(before_it, method))
}

/// The method by which the run in `dir` was measured.
fn method_of(dir: &Path) -> anyhow::Result<u32> {
    Ok(store::read(dir)?.plan.method)
}

fn same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn folder_of(dir: &Path) -> anyhow::Result<PathBuf> {
    let canonical = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    Ok(canonical
        .parent()
        .map_or(canonical.clone(), Path::to_path_buf))
}

fn entry(dir: &Path) -> anyhow::Result<Entry> {
    let (run, _) = report::read(dir)?;
    if run.trials.is_empty() {
        bail!("{}: no trial of this run has ended", dir.display());
    }
    let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    Ok(Entry::of(&run, &file_name(&dir)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_told_from_a_command() {
        let is_subject = |name: &str| name == "rust/axum";
        for (typed, meant) in [
            ("rust/axum@v1", Side::Subject("rust/axum", Some("v1"))),
            ("./mine@HEAD@{1}", Side::Subject("./mine", Some("HEAD@{1}"))),
            ("rust/axum", Side::Subject("rust/axum", None)),
            (
                "./server --port {port}",
                Side::Command("./server --port {port}"),
            ),
            ("./server a@b {port}", Side::Command("./server a@b {port}")),
            ("rust/axum@", Side::Command("rust/axum@")),
            ("@v1", Side::Command("@v1")),
        ] {
            assert_eq!(Side::parse(typed, is_subject), meant, "{typed}");
        }
        let lines = Side::Subject("a\"b", Some("v1")).lines();
        assert_eq!(lines, "ref = \"a\\\"b\"\nrevision = \"v1\"\n");
    }

    #[test]
    fn a_path_gives_a_name() {
        assert_eq!(workload_name("/"), "root");
        assert_eq!(workload_name("/a/b?c=1"), "a-b-c-1");
    }
}
