//! The words of `prony log`.

use std::path::PathBuf;

use clap::Args;

/// `prony log`
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Entries are the runs of the experiment, by their dates, newest last. In the document only what \
     stands between `<!-- prony:begin ID -->` and `<!-- prony:end ID -->` is generated; the rest is yours and stays \
     byte for byte. An entry that you take out stays out. See docs/log.md.\n\nA difference between entries is \
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
    /// A run directory that lies elsewhere; may be repeated
    #[arg(long, value_name = "DIR")]
    pub run: Vec<PathBuf>,
    /// The history, made from the run directories [default: history.sqlite in their folder]
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
    pub fn of(experiment: PathBuf, runs: PathBuf) -> LogWords {
        LogWords {
            experiment,
            document: None,
            runs,
            run: Vec::new(),
            history: None,
            rebuild: false,
            fail_on_regression: false,
            json: false,
        }
    }
}
