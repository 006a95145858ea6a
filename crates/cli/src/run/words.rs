//! The words of `prony run`.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::{duration, share};
use prony_lab::experiment::{Aim, cores as lists};
use prony_load::named_file::FLAG;
use prony_record::Cores;

use crate::home::Home;
use crate::typed::{blocks, budget, cores, visits, visits_typed, warmup, window};

/// A subject, and the revision at which it is taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubjectRevision {
    /// Its id.
    pub subject: String,
    /// As git takes it.
    pub revision: String,
}

impl fmt::Display for SubjectRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.subject, self.revision)
    }
}

/// `rust/axum@v1.2.0`
fn revised(text: &str) -> Result<SubjectRevision, String> {
    match text.split_once('@') {
        Some((subject, revision)) if !subject.is_empty() && !revision.is_empty() => {
            Ok(SubjectRevision {
                subject: subject.to_owned(),
                revision: revision.to_owned(),
            })
        }
        _ => Err("a subject and a revision are needed: rust/axum@v1.2.0".to_owned()),
    }
}

/// The flag by which a user states that the target of the load is their own.
pub const OWNED: &str = "--yes-i-own-this-host";

/// `prony run`
#[derive(Clone, Debug, Default, Args)]
#[command(
    after_help = "Leaves a run directory with plan.json, environment.json, trials.jsonl, histograms/, logs/, \
document.md with appendix.md and pictures/, and index.html. Prints the answer, and the paths of document.md and index.html."
)]
pub struct RunWords {
    /// The experiment: a TOML file, or the name of one that comes with Prony, such as ping
    pub experiment: PathBuf,
    /// A quick look: fewer cells; two blocks, which rank large differences of servers, or six where programs or clients alone are compared
    #[arg(long)]
    pub quick: bool,
    /// Only subjects that have been built already: the others are named as not run, instead of being built first
    #[arg(long)]
    pub built: bool,
    /// Only cells whose subject or id contains this text or matches this pattern; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Take a subject as it was at this revision of the git repository around it, or of the one that it is built from; may be repeated
    #[arg(long, value_name = "SUBJECT@REVISION", value_parser = revised)]
    pub revision: Vec<SubjectRevision>,
    /// Interleaved rounds over all cells, instead of the experiment's
    #[arg(long, value_name = "N", value_parser = blocks())]
    pub blocks: Option<u32>,
    /// Measured window of each trial, instead of the experiment's: 500ms, 10s, 2m, 1h
    #[arg(long, value_name = "T", value_parser = window)]
    pub duration: Option<Nanos>,
    /// Load before each window that is in no figure, the same for all cells, instead of the experiment's: 500ms, 5s
    #[arg(long, value_name = "T", value_parser = warmup)]
    pub warmup: Option<Nanos>,
    /// Keep the servers of a workload alive together and measure them in turns of this length, the others stopped: 200ms; off
    /// [default: 200ms with --budget and --precision, else off]
    #[arg(long, value_name = "T", value_parser = visits, conflicts_with = "resume")]
    pub visits: Option<Nanos>,
    /// Time to spend, builds excluded, on the blocks and windows that give the narrowest intervals:
    /// 5m, 20m, 1h
    #[arg(long, value_name = "T", value_parser = budget, conflicts_with_all = ["quick", "blocks", "duration", "resume", "dry_run"])]
    pub budget: Option<Nanos>,
    /// Measure until differences of this size can be resolved: a pilot run chooses blocks and windows: 2%, 0.5%
    #[arg(long, value_name = "PART", value_parser = share::parse_positive, conflicts_with_all = ["budget", "quick", "blocks", "duration",
        "resume", "dry_run"])]
    pub precision: Option<f64>,
    /// Measure the reference with wrk, too, once and where it is on PATH: yes, no [default: no with --budget and --precision, else yes]
    #[arg(long, value_name = "yes|no")]
    pub cross_check: Option<ByWrk>,
    /// Profile each subject after all blocks: CPU samples as a flame graph, system calls, context switches; excluded
    /// from all figures
    #[arg(long)]
    pub profile: bool,
    /// Cores of the subject / of the generator, instead of the experiment's, listed as for taskset: 0-3,8/4-7; with a third part
    /// those of the lab's own sampler: 0-3/4-7/8
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub cores: Option<Cores>,
    /// Seed of everything random in the run, instead of the experiment's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run directory [default: runs/EXPERIMENT-NUMBER]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Continue the run in this directory; finished trials are kept
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Print what would be run, for how long, and what is missing here; build, start and write nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Print the figures as JSON instead of the paths of the documents; with --dry-run, the plan
    #[arg(long)]
    pub json: bool,
    /// Show the document in a browser while it grows: serves it on a port of 127.0.0.1 until the run ends, prints the address, and
    /// opens it where there is a display. It is rendered between trials, never during one
    #[arg(long, conflicts_with = "dry_run")]
    pub open: bool,
    /// Drive servers (subjects given by url) that are neither on loopback nor in a private network
    #[arg(long)]
    pub yes_i_own_this_host: bool,
    /// Requests, scenarios, data and bodies may be in any regular file, not only below the experiment's folder and of 256 MiB
    #[arg(long)]
    pub files_anywhere: bool,
    /// Where subjects and builds are; `None`: where Prony's own are.
    #[arg(skip)]
    pub home: Option<Home>,
}

/// Whether wrk measures, too.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum ByWrk {
    /// Where it is installed.
    Yes,
    /// Not at all.
    No,
}

impl RunWords {
    /// An experiment as it is.
    pub fn new(experiment: PathBuf) -> RunWords {
        RunWords {
            experiment,
            ..RunWords::default()
        }
    }

    /// The words that repeat the run, without those that only say where to write.
    pub fn command(&self) -> Vec<String> {
        let switch = |is_set: bool, flag: &str| is_set.then(|| flag.to_owned());
        let valued = |flag: &'static str, value: Option<String>| {
            let words = value.map(|value| [flag.to_owned(), value]);
            words.into_iter().flatten()
        };
        let cross_check = self.cross_check.and_then(|of| of.to_possible_value());
        let cross_check = cross_check.map(|of| of.get_name().to_owned());
        let mut words = vec!["run".to_owned(), self.experiment.display().to_string()];
        words.extend(switch(self.quick, "--quick"));
        words.extend(switch(self.built, "--built"));
        let only = self.only.iter();
        words.extend(only.flat_map(|only| valued("--only", Some(only.clone()))));
        let revisions = self.revision.iter();
        words.extend(revisions.flat_map(|one| valued("--revision", Some(one.to_string()))));
        words.extend(valued("--blocks", self.blocks.map(|n| n.to_string())));
        words.extend(valued("--duration", self.duration.map(duration::typed)));
        words.extend(valued("--warmup", self.warmup.map(duration::typed)));
        words.extend(valued("--visits", self.visits.map(visits_typed)));
        words.extend(valued("--cross-check", cross_check));
        words.extend(switch(self.profile, "--profile"));
        words.extend(valued("--cores", self.cores.as_ref().map(lists::typed)));
        words.extend(valued("--seed", self.seed.map(|n| n.to_string())));
        words.extend(switch(self.yes_i_own_this_host, OWNED));
        words.extend(switch(self.files_anywhere, FLAG));
        words
    }
}

/// `a budget of 5m`
pub fn describe(aim: Aim) -> String {
    match aim {
        Aim::Budget(time) => format!("a budget of {}", typed(time)),
        Aim::Precision(share) => format!("a precision of {}", percent(share)),
    }
}

/// A budget as one would type it: `20m`, `90s`.
pub fn typed(time: Nanos) -> String {
    const MINUTE: Nanos = Nanos::from_secs(60);
    match time.0 % MINUTE.0 {
        0 if time > Nanos::ZERO => format!("{}m", time.0 / MINUTE.0),
        _ => duration::typed(time),
    }
}

/// `2.0 %`
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
