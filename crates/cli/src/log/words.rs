//! The words of `prony log`.

use std::path::PathBuf;

use clap::Args;
use prony_base::Nanos;

use crate::typed::{blocks, window};

/// A subject, and the revisions at which it is taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SubjectRevisions {
    /// Its id.
    pub subject: String,
    /// As git takes them; at least one, each once.
    pub revisions: Vec<String>,
}

/// `rust/axum@v1.0,v1.1,main`
fn revisions(text: &str) -> Result<SubjectRevisions, String> {
    let example = "rust/axum@v1.0,v1.1,main";
    let Some((subject, listed)) = text
        .split_once('@')
        .filter(|(subject, _)| !subject.is_empty())
    else {
        return Err(format!("a subject and its revisions are needed: {example}"));
    };
    let mut revisions: Vec<String> = Vec::new();
    for revision in listed.split(',').map(str::trim) {
        if revision.is_empty() {
            return Err(format!("a revision is empty: {example}"));
        }
        if revisions.iter().any(|other| other == revision) {
            return Err(format!("`{revision}` stands there twice"));
        }
        revisions.push(revision.to_owned());
    }
    Ok(SubjectRevisions {
        subject: subject.to_owned(),
        revisions,
    })
}

/// `prony log`
#[derive(Clone, Debug, Default, Args)]
#[command(
    after_help = "Entries are the runs of the experiment, by their dates, newest last. In the document only what \
     stands between `<!-- prony:begin ID -->` and `<!-- prony:end ID -->` is generated; the rest is yours and stays \
     byte for byte. An entry that you take out stays out. See `prony docs log`.\n\nA difference between entries is \
     claimed only where earlier entries show how far runs of one state lie apart: six of one state, on this machine \
     and with the same settings, or as many of several.\n\nExit codes: 0 done; 1 with --fail-on-regression: the \
     newest entry is slower than the state before; 2 wrong usage or a bad file."
)]
pub struct LogWords {
    /// The experiment: a TOML file, or the name of one that comes with Prony, such as ping
    pub experiment: PathBuf,
    /// Write the log to this Markdown file, or bring it up to date
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// Folder with the run directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// Measure this subject of the experiment as it was at each of these revisions before the log is written, in so many rounds over all
    /// of them: rust/axum@v1.0,v1.1,main. Each run lies in its own directory, EXPERIMENT-REVISION-ROUND; one that is there is
    /// not made again
    #[arg(long, value_name = "SUBJECT@REVISION,…", value_parser = revisions)]
    pub revisions: Option<SubjectRevisions>,
    /// Rounds over the revisions: two runs of a state show how far apart runs lie, and six or more in all let the log claim differences
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100), requires = "revisions")]
    pub rounds: u32,
    /// Of each run with --revisions: only these cells, as in `prony run`; may be repeated
    #[arg(long, value_name = "PATTERN", requires = "revisions")]
    pub only: Vec<String>,
    /// Of each run with --revisions: interleaved rounds over its cells
    #[arg(long, value_name = "N", value_parser = blocks(), requires = "revisions")]
    pub blocks: Option<u32>,
    /// Of each run with --revisions: measured window of each trial
    #[arg(long, value_name = "T", value_parser = window, requires = "revisions")]
    pub duration: Option<Nanos>,
    /// A run directory that lies elsewhere; may be repeated
    #[arg(long, value_name = "DIR")]
    pub run: Vec<PathBuf>,
    /// The history, made from the run directories [default: history.jsonl in their folder]
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Read every run directory again; entries whose directory is gone are kept
    #[arg(long)]
    pub rebuild: bool,
    /// Exit with 1 if a rate of the newest entry is claimed to be lower than in the state before
    #[arg(long)]
    pub fail_on_regression: bool,
    /// Print the entries, their differences and change points as JSON
    #[arg(long)]
    pub json: bool,
}

impl LogWords {
    /// The log of an experiment with run directories in `runs`, as it is without further words.
    pub fn new(experiment: PathBuf, runs: PathBuf) -> LogWords {
        LogWords {
            experiment,
            runs,
            rounds: 1,
            ..LogWords::default()
        }
    }
}
