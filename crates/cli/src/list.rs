//! `prony list`: experiments, subjects and runs that are here.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use prony_base::counted;
use prony_lab::diagnosis::Diagnoses;
use prony_lab::experiment::Experiment;
use prony_lab::plan::Facts;
use prony_lab::subject::Subject;
use serde::Serialize;
use serde_json::json;

use crate::home::{EXPERIMENTS, Home, experiment_names};
use crate::lines::bytes;
use crate::runs::{self, RunDirectory};
use crate::terminal;
use crate::{Ending, Streams};

/// Version of what `--json` prints.
const SCHEMA: u32 = 1;

/// `prony list`
#[derive(Debug, Args)]
#[command(
    after_help = "Experiments are the TOML files in experiments/ here, and those that come with Prony, by the name that `prony run` \
takes; subjects are the folders under Prony's subjects/, and under subjects/ here; runs are the run directories in runs/, here."
)]
pub struct ListWords {
    /// What to list [default: all]
    #[arg(value_name = "WHAT")]
    pub what: Option<What>,
    /// Folder of the run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What is listed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum What {
    /// Experiments: title, and how much they compare
    Experiments,
    /// Subjects: what each needs, whether it is here, the command that installs it
    Subjects,
    /// Runs: date, size, title
    Runs,
}

/// Runs `prony list`.
pub fn run(words: &ListWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let home = Home::find(streams.err)?;
    let wants = |what| words.what.is_none_or(|only| only == what);
    let mut value = json!({"schema": SCHEMA});
    let mut parts = Vec::new();
    if wants(What::Experiments) {
        let all = experiments(&home);
        parts.push(titled(
            "experiments",
            all.iter().map(ListedExperiment::text),
        ));
        value["experiments"] = json!(all);
    }
    if wants(What::Subjects) {
        let all = subjects(&home);
        parts.push(titled("subjects", all.iter().map(ListedSubject::text)));
        value["subjects"] = json!(all);
    }
    if wants(What::Runs) {
        let all = match words.runs.is_dir() {
            true => runs::directories(&words.runs)?,
            false if words.what == Some(What::Runs) && words.runs != Path::new("runs") => {
                anyhow::bail!("--runs {}: no such folder", words.runs.display())
            }
            false => Vec::new(),
        };
        parts.push(titled("runs", all.iter().map(run_text)));
        value["runs"] = json!(all);
    }
    if words.json {
        writeln!(streams.out, "{}", serde_json::to_string_pretty(&value)?)?;
    } else if words.what.is_some() {
        let bare: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.split_once('\n'))
            .map(|(_, rest)| rest)
            .collect();
        writeln!(streams.out, "{}", bare.join("\n"))?;
    } else {
        writeln!(streams.out, "{}", parts.join("\n\n"))?;
    }
    Ok(Ending::Done)
}

/// A line for each entry, cut to the width of the terminal where it is one.
fn titled(title: &str, entries: impl Iterator<Item = String>) -> String {
    let width = terminal::width();
    let entries: Vec<String> = entries
        .map(|entry| entry.replace('\n', " ").chars().take(width).collect())
        .collect();
    match entries.is_empty() {
        true => format!("{title}\nnone"),
        false => format!("{title}\n{}", entries.join("\n")),
    }
}

/// An experiment's file.
#[derive(Debug, Default, Serialize)]
struct ListedExperiment {
    path: PathBuf,
    /// The name that `prony run` takes for it.
    name: String,
    title: String,
    subjects: usize,
    workloads: usize,
    /// The first error in the file; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    wrong: String,
}

impl ListedExperiment {
    fn read((path, name): (PathBuf, String)) -> ListedExperiment {
        match Experiment::load(&path) {
            Ok(experiment) => ListedExperiment {
                title: experiment.title,
                subjects: experiment.subjects.len(),
                workloads: experiment.workloads.len(),
                path,
                name,
                ..ListedExperiment::default()
            },
            Err(wrong) => ListedExperiment {
                wrong: first_problem(&wrong),
                path,
                name,
                ..ListedExperiment::default()
            },
        }
    }

    fn text(&self) -> String {
        let text = match self.wrong.as_str() {
            "" => {
                let (subjects, workloads) = (
                    counted(self.subjects, "subject"),
                    counted(self.workloads, "workload"),
                );
                format!("{} ({subjects}, {workloads})", self.title)
            }
            wrong => format!("cannot be used: {wrong}"),
        };
        format!("{:<28} {text}", self.name)
    }
}

fn first_problem(wrong: &Diagnoses) -> String {
    let first = wrong.problems.first();
    first.map_or_else(String::new, |problem| problem.message.clone())
}

/// The experiments here, then those of Prony's own folder that have another name, each with what `prony run` takes for it.
fn experiments(home: &Home) -> Vec<ListedExperiment> {
    let here = Path::new(EXPERIMENTS);
    let prony_folder = home.experiments();
    let names_here = experiment_names(here);
    let prony_names = experiment_names(&prony_folder);
    let listed = |folder: &Path, name: &String| {
        let path = folder.join(name).with_added_extension("toml");
        let shown = match folder == here {
            true => path.display().to_string(),
            false => name.clone(),
        };
        (path, shown)
    };
    let others = prony_names.iter().filter(|name| !names_here.contains(name));
    names_here
        .iter()
        .map(|name| listed(here, name))
        .chain(others.map(|name| listed(&prony_folder, name)))
        .map(ListedExperiment::read)
        .collect()
}

/// A subject's folder.
#[derive(Debug, Default, Serialize)]
struct ListedSubject {
    id: String,
    role: &'static str,
    summary: String,
    /// Commands and files that it needs.
    needs: Vec<String>,
    /// Whether the machine has all of them.
    here: bool,
    /// Why it cannot run here; empty where it can.
    #[serde(skip_serializing_if = "String::is_empty")]
    missing: String,
    /// The command that would bring what is missing; empty where none is known, or nothing is.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

impl ListedSubject {
    fn new(subject: &Subject, facts: &Facts) -> ListedSubject {
        let (missing, remedy) = facts.lacks(subject).unwrap_or_default();
        ListedSubject {
            id: subject.id.clone(),
            role: subject.role.name(),
            summary: subject.summary.clone(),
            needs: [subject.needs.commands.clone(), subject.needs.files.clone()].concat(),
            here: missing.is_empty(),
            missing,
            remedy,
        }
    }

    fn broken(id: String, why: String) -> ListedSubject {
        ListedSubject {
            id,
            role: "unknown",
            missing: format!("its file is wrong: {why}"),
            ..ListedSubject::default()
        }
    }

    fn text(&self) -> String {
        let state = if self.here { "here" } else { "missing" };
        let why = match (self.missing.as_str(), self.remedy.as_str()) {
            ("", _) => self.summary.clone(),
            (missing, "") => missing.to_owned(),
            (missing, remedy) => format!("{missing} -> {remedy}"),
        };
        format!("{:<24} {:<8} {state:<8} {why}", self.id, self.role)
    }
}

/// The subjects under Prony's `subjects/`, and those here, by id.
fn subjects(home: &Home) -> Vec<ListedSubject> {
    let loaded: Vec<(String, Result<Subject, String>)> = home
        .all_subjects()
        .into_iter()
        .map(|(id, folder)| {
            let subject = Subject::load(&folder);
            (id, subject.map_err(|wrong| first_problem(&wrong)))
        })
        .collect();
    let known: Vec<Subject> = loaded
        .iter()
        .filter_map(|(_, subject)| subject.as_ref().ok().cloned())
        .collect();
    let facts = home.facts(&known, false);
    let listed = |(id, subject): (String, Result<Subject, String>)| match subject {
        Ok(subject) => ListedSubject::new(&subject, &facts),
        Err(why) => ListedSubject::broken(id, why),
    };
    loaded.into_iter().map(listed).collect()
}

fn run_text(run: &RunDirectory) -> String {
    let (date, size) = (run.date(), bytes(run.bytes));
    let trials = counted(run.trials, "trial");
    let text = format!("{date}, {size}, {trials}: {}", run.title);
    format!("{:<28} {text}", run.path.display())
}
