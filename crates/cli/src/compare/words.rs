//! The words of `prony compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_base::Nanos;
use prony_base::typed::requirement::Requirement;
use prony_base::typed::{duration, share};

use crate::load::require::requirement;
use crate::typed::{blocks, budget, visits, window};

/// `prony compare`
#[derive(Debug, Args)]
#[command(
    after_help = "Two run directories of one experiment were measured at different times. How much that alone changes \
     is taken from the other runs of their folder: six of one state of the code, or as many of several. Without \
     them the figures are shown and nothing is claimed. With --log a run is compared with the newest entry of the \
     experiment's log that measured another state (`prony log`), and the whole log shows how far sessions lie \
     apart, including runs whose directories are gone.\n\n--interleave starts both commands in each block and \
     measures them in turns. A command is like an experiment's `cmd`, without a shell: {port} stands for the port \
     to listen on; a server that reads it from its environment is 'env PORT={port} ./server'. Instead of a \
     command, SUBJECT@REVISION names a folder with a subject.toml, under subjects/ or as a path, built and run as \
     it was at a revision of the git repository around it, or, where it is built from a [source], of that one; \
     SUBJECT alone is the folder as it is now. It leaves a run directory like any other, and in this folder the \
     experiment that it ran, which `prony run` takes.\n\nExit codes: 0 done; 1 with --fail-on: a figure is worse by \
     more than that with 95 % confidence, or undecided with --inconclusive fail, or with --require: a figure of B is not as required; 2 wrong usage or a bad file; 3 \
     nothing could be compared; 130 interrupted.",
    override_usage = "prony compare [OPTIONS] BASELINE_DIR DIR\n       prony compare [OPTIONS] DIR\n       prony compare [OPTIONS] DIR --log EXPERIMENT\n       prony compare [OPTIONS] --interleave 'CMD_A' 'CMD_B'\n       prony compare [OPTIONS] --interleave SUBJECT@REV_A SUBJECT@REV_B"
)]
pub struct CompareWords {
    /// Run directories: the baseline, then the one to compare with it. Without a baseline, the newest earlier run of
    /// the same experiment in its folder is taken
    #[arg(value_name = "DIR", num_args = 1..=2, required_unless_present = "interleave", conflicts_with = "interleave")]
    pub dirs: Vec<PathBuf>,
    /// Compare one run with the log of its experiment, a TOML file such as experiments/ping.toml
    #[arg(long, value_name = "EXPERIMENT", conflicts_with = "interleave")]
    pub log: Option<PathBuf>,
    /// The log's history [default: history.jsonl in the folder of --runs]
    #[arg(long, value_name = "FILE", requires = "log")]
    pub history: Option<PathBuf>,
    /// Measure two commands, or two revisions of a subject, in turns: A, the baseline, and B
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    pub interleave: Vec<String>,
    /// Folder with more runs of the same experiment [default: that of the last DIR]
    #[arg(long, value_name = "DIR", conflicts_with = "interleave")]
    pub runs: Option<PathBuf>,
    /// Path to request; may be repeated
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/",
        requires = "interleave"
    )]
    pub path: Vec<String>,
    /// For programs that run to completion: the work and its count; may be repeated
    #[arg(
        long,
        value_name = "WORK:COUNT",
        requires = "interleave",
        conflicts_with_all = ["path", "connections", "duration", "warmup"],
        value_parser = work
    )]
    pub workload: Vec<Work>,
    /// Connections; may be repeated
    #[arg(short, long, value_name = "N", default_value = "50", requires = "interleave", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections: Vec<u32>,
    /// Interleaved rounds; under 6 nothing is claimed
    #[arg(long, value_name = "N", default_value_t = 10, requires = "interleave", value_parser = blocks())]
    pub blocks: u32,
    /// Measured window of each command in each block
    #[arg(short, long, value_name = "T", default_value = "2s", requires = "interleave", value_parser = window)]
    pub duration: Nanos,
    /// Warm-up before each window [default: 500ms; with --budget as long as the slower side needs]
    #[arg(long, value_name = "T", requires = "interleave", value_parser = duration::parse)]
    pub warmup: Option<Nanos>,
    /// Time to spend, builds excluded: a pilot run chooses the blocks and windows that give the narrowest intervals:
    /// 5m, 20m
    #[arg(long, value_name = "T", requires = "interleave", conflicts_with_all = ["blocks", "duration"], value_parser = budget)]
    pub budget: Option<Nanos>,
    /// Keep both servers alive and measure them in turns of this length, the other stopped; off: one after the other
    #[arg(long, value_name = "T", default_value = "200ms", requires = "interleave", conflicts_with = "workload", value_parser = visits)]
    pub visits: Nanos,
    /// Run directory [default: runs/compare-NUMBER]
    #[arg(long, value_name = "DIR", requires = "interleave")]
    pub out: Option<PathBuf>,
    /// Exit with 1 if a figure is worse by more than this with 95 % confidence: 5%, 0.05
    #[arg(long, value_name = "PERCENT", value_parser = share::parse)]
    pub fail_on: Option<f64>,
    /// How to exit if --fail-on can be neither confirmed nor ruled out
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "pass",
        requires = "fail_on"
    )]
    pub inconclusive: Inconclusive,
    /// Exit with 1 unless each cell of B, the second, holds this: 'p99 < 20ms', 'errors < 0.1%', 'rate > 5k'; as `prony load
    /// --require` has it. May be repeated
    #[arg(long, value_name = "REQUIREMENT", value_parser = requirement, conflicts_with = "log")]
    pub require: Vec<Requirement>,
    /// Print Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

/// A work of programs, of one size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Work {
    /// Its name.
    pub name: String,
    /// How often it is done.
    pub count: u64,
}

/// Reads `start:10000`.
fn work(text: &str) -> Result<Work, String> {
    let wrong = || format!("`{text}` is not written like start:10000");
    let (name, count) = text.rsplit_once(':').ok_or_else(wrong)?;
    let count = count.parse().ok().filter(|count| *count > 0);
    match (name.is_empty(), count) {
        (false, Some(count)) => Ok(Work {
            name: name.to_owned(),
            count,
        }),
        _ => Err(wrong()),
    }
}

/// How to exit if the comparison is undecided.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Inconclusive {
    /// With 0
    Pass,
    /// With 1
    Fail,
}
