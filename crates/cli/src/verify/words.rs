//! The words of `prony verify`.

use std::path::PathBuf;

use clap::Args;

/// `prony verify`
#[derive(Debug, Args)]
#[command(
    after_help = "Of a run directory: its records are as they were when the run ended and can be read, their counts \
     balance, histograms agree with them, and rendering them again gives the documents that lie there. Of a folder \
     that holds only documents and summary.json: they are as they were rendered. Of a bundle (`prony bundle`): the \
     same, and that every content is what its digest says; beside documents, as run.prony, that it renders to them. \
     Of a Markdown file: each figure between `<!-- {{NAME …}} -->` and `<!-- {{/}} -->` is what its run says. Other \
     Markdown files of a folder are checked, too. See `prony docs verify`.\n\nExit codes: 0 all of it holds; 1 something \
     does not; 2 wrong usage, or a comment that cannot be understood."
)]
pub struct VerifyWords {
    /// Run directories, bundles, folders of documents, Markdown files. Files that name no run are checked against the
    /// last folder before them
    #[arg(value_name = "DIR|FILE", required = true)]
    pub paths: Vec<PathBuf>,
    /// Replace wrong figures with the right ones; all else stays byte for byte
    #[arg(long)]
    pub fix: bool,
}
