//! The words of `prony report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prony_report::{Export, Plot};

/// `prony report`
#[derive(Debug, Args)]
pub struct ReportWords {
    /// The run directory, a bundle, or a folder of documents with their run.prony, which are rendered again. Several runs of one
    /// experiment are joined: their blocks are added, and the intervals of ratios are by what differs from run to run
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,
    /// Use the claims ([[published]]) of this experiment instead of the run's; they are kept in DIR/published.json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["plot", "export"])]
    pub experiment: Option<PathBuf>,
    /// Unpack a bundle to this run directory, or render the documents of several runs into it; it must be new or empty
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plot", "export"])]
    pub out: Option<PathBuf>,
    /// Print the figures as JSON instead of the paths of the documents
    #[arg(long)]
    pub json: bool,
    /// Print one of the pictures as SVG instead
    #[arg(long, value_name = "PICTURE", conflicts_with = "json")]
    pub plot: Option<Picture>,
    /// Export the figures in another program's format instead
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["json", "plot"])]
    pub export: Option<ExportWord>,
}

/// Formats of other programs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ExportWord {
    /// Comma-separated values, a row for each figure of each trial
    Long,
    /// benchstat's input, a line for each trial
    Benchstat,
    /// JUnit's XML: a test case for each cell, which fails where it is invalid
    Junit,
}

impl ExportWord {
    /// The format.
    pub fn export(self) -> Export {
        match self {
            ExportWord::Long => Export::Long,
            ExportWord::Benchstat => Export::Benchstat,
            ExportWord::Junit => Export::Junit,
        }
    }
}

/// The pictures of a document.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Picture {
    /// Requests a second, with ranges
    Rate,
    /// Percentiles of latency, on a logarithmic scale
    Latency,
    /// CPU time per request of subject and generator
    Cpu,
}

impl Picture {
    /// The picture.
    pub fn plot(self) -> Plot {
        match self {
            Picture::Rate => Plot::Rate,
            Picture::Latency => Plot::Latency,
            Picture::Cpu => Plot::Cpu,
        }
    }
}
