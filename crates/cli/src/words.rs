//! The words of the command line, as they are typed: nothing here looks at the
//! machine, a file or the environment.

use clap::{Parser, Subcommand};

use crate::bench::words::BenchWords;
use crate::bundle::words::{BundleWords, ReproduceWords};
use crate::check::CheckWords;
use crate::clean::CleanWords;
use crate::compare::words::CompareWords;
use crate::completions::{CompletionsWords, ManWords, NamesWords};
use crate::docs::DocsWords;
use crate::doctor::DoctorWords;
use crate::explain::ExplainWords;
use crate::fetch::words::FetchWords;
use crate::host::HostWords;
use crate::list::ListWords;
use crate::load::words::LoadWords;
use crate::log::words::LogWords;
use crate::lua::LuaWords;
use crate::new::NewWords;
use crate::report::words::ReportWords;
use crate::run::words::RunWords;
use crate::serve::ServeOptions;
use crate::stats::StatsWords;
use crate::verify::words::VerifyWords;

/// A laboratory for the performance of HTTP servers, clients and network I/O.
#[derive(Debug, Parser)]
#[command(name = "prony", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done and valid; 1 a check or a request failed, or the machine could not do it (a full disk); \
2 wrong usage or a bad file; 3 a measurement that the answer rests on is invalid; 130 interrupted.\n\n\
Environment: PRONY_HOME=DIR, a folder with subjects/ and experiments/ in place of those that come with Prony, as a checkout is one; \
PRONY_CACHE=DIR, where builds and unpacked subjects are kept [default: .prony in a checkout, else prony in $XDG_CACHE_HOME]."
)]
pub struct Words {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Drive one URL and report what was measured (takes wrk's flags)
    Load(Box<LoadWords>),
    /// Run an experiment and write its document
    Run(RunWords),
    /// Render the document of a run directory again
    Report(ReportWords),
    /// Compare two runs, or two commands in turns: what differs, by how much, how sure
    Compare(CompareWords),
    /// Keep a dated log of an experiment's runs
    Log(LogWords),
    /// Check that a run is whole, and that figures in prose are what it says
    Verify(VerifyWords),
    /// Pack a run into one file that can be handed on: records, experiment, sources
    Bundle(BundleWords),
    /// Run the experiment of a bundle here, and report which of its claims held
    Reproduce(ReproduceWords),
    /// Summarize logs of per-second counts: mean and deviation over seconds
    Stats(StatsWords),
    /// Explain a finding, such as P003, or a key of an experiment, such as run.blocks
    Explain(ExplainWords),
    /// Write the documentation as a folder of pages, every link checked
    Docs(DocsWords),
    /// Find out what on this machine spoils measurements, and how to fix it
    Doctor(DoctorWords),
    /// Write files to start from: an experiment, a subject, a CI job
    New(NewWords),
    /// Check that subjects fulfil their contract, without measuring
    Check(CheckWords),
    /// List experiments, subjects and runs
    List(ListWords),
    /// Remove runs and builds that are no longer needed
    Clean(CleanWords),
    /// Measure one thing by itself: a work of the runtime, I/O strategies, the client
    Bench(BenchWords),
    /// Fetch URLs to files, with the client library
    Fetch(FetchWords),
    /// Serve known answers: the reference server
    Serve(ServeOptions),
    /// Host a web application in Lua
    Host(HostWords),
    /// Run a Lua file with the host's framework, such as the tests of an application
    Lua(LuaWords),
    /// Print completions for a shell
    Completions(CompletionsWords),
    /// Manual pages, a file for each command
    #[command(name = "__man", hide = true)]
    Man(ManWords),
    /// The names of the subjects, experiments or cells that are here, for completions
    #[command(name = "__names", hide = true)]
    Names(NamesWords),
    /// The generator process of a trial: a LoadSpec on standard input, events on standard output
    #[command(name = "__generate", hide = true)]
    Generate,
    /// The first process of a trial: an order on standard input, what happened on standard output
    #[command(name = "__supervise", hide = true)]
    Supervise,
    /// A worker of a host: its supervisor at the other end of standard input
    #[command(name = "__host-worker", hide = true)]
    HostWorker,
}
