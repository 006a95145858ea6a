//! The words of `prony bundle` and `prony reproduce`.

use std::path::PathBuf;

use clap::Args;
use prony_base::Nanos;
use prony_record::Cores;

use crate::typed::{blocks, cores, window};

/// `prony bundle`
#[derive(Debug, Args)]
#[command(
    after_help = "Packs plan, environment, trials, histograms and digests of a run, the experiment's file, and the \
     sources of its subjects. Documents are not packed, as `prony report BUNDLE --out DIR` renders them again, and \
     neither is the output of processes. The same files give the same bytes. Prints the bundle's path and size, its \
     digest, and a line to cite it by. See `prony docs bundles`."
)]
pub struct BundleWords {
    /// The run directory
    pub dir: PathBuf,
    /// The file to write [default: the directory's name with .prony, here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// The experiment's file, if it has moved since the run
    #[arg(long, value_name = "FILE")]
    pub experiment: Option<PathBuf>,
    /// Leave out the subjects' sources: the bundle can be verified and rendered, but not reproduced
    #[arg(long)]
    pub records: bool,
}

/// `prony reproduce`
#[derive(Debug, Args)]
#[command(
    after_help = "Unpacks the bundle to DIR/original and DIR/source, builds its subjects with a cache of their own, \
     DIR/cache, runs its experiment into DIR/run, and reports how this machine differs and what became of each \
     claim: held, held but smaller, not told, contradicted. Commands of a bundle can do whatever you can: without \
     --run-foreign-commands they are listed, and nothing is run.\n\nExit codes: 0 no claim is contradicted; 1 at \
     least one is, or the machine could not do it; 2 wrong usage, a bad bundle, or commands that were not allowed; \
     3 the measurement is invalid; 130 interrupted."
)]
pub struct ReproduceWords {
    /// The bundle
    pub bundle: PathBuf,
    /// Run the commands that the bundle contains, which may be anybody's
    #[arg(long)]
    pub run_foreign_commands: bool,
    /// A quick look: fewer cells and blocks, too few to decide most claims
    #[arg(long)]
    pub quick: bool,
    /// Interleaved rounds over all cells, instead of the bundle's
    #[arg(long, value_name = "N", value_parser = blocks())]
    pub blocks: Option<u32>,
    /// Measured window of each trial, instead of the bundle's: 500ms, 10s, 2m, 1h
    #[arg(long, value_name = "T", value_parser = window)]
    pub duration: Option<Nanos>,
    /// Cores of the subject / of the generator on this machine, instead of the bundle's: 0-3/4-7
    #[arg(long, value_name = "CORES", value_parser = cores)]
    pub cores: Option<Cores>,
    /// Folder for everything [default: runs/reproduced-NAME-NUMBER]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print what became of the claims as JSON
    #[arg(long)]
    pub json: bool,
}
