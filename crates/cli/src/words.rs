//! The words of the command line, as they are typed: nothing here looks at the
//! machine, a file or the environment.

use std::fmt::Write as _;

use clap::{Parser, Subcommand};

use crate::agent::AgentCommandWords;
use crate::bundle::words::{BundleWords, ReproduceWords};
use crate::check::CheckWords;
use crate::clean::CleanWords;
use crate::compare::words::CompareWords;
use crate::completions::{CompletionsWords, ManWords, NamesWords};
use crate::docs::DocsWords;
use crate::doctor::DoctorWords;
use crate::explain::ExplainWords;
use crate::list::ListWords;
use crate::load::words::LoadWords;
use crate::log::words::LogWords;
use crate::new::NewWords;
use crate::report::words::ReportWords;
use crate::run::words::RunWords;
use crate::serve::ServeOptions;
use crate::stats::StatsWords;
use crate::systems::SystemsWords;
use crate::verify::words::VerifyWords;

/// A laboratory for the performance of HTTP servers, clients and network I/O.
#[derive(Debug, Parser)]
#[command(name = "prony", version, max_term_width = 100, help_template = template())]
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

/// The commands by what somebody wants to do, as `--help` lists them: each that is shown is in one group.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Load one URL", &["load", "agent"]),
    ("Compare", &["compare", "stats"]),
    (
        "Experiments and their documents",
        &["new", "run", "report", "log", "list", "clean", "explain"],
    ),
    ("Check", &["doctor", "check", "verify"]),
    ("Hand a run on", &["bundle", "reproduce"]),
    ("Measure one part by itself", &["bench"]),
    ("Servers and a client", &["serve", "host", "lua", "fetch"]),
    ("This program", &["docs", "completions"]),
];

/// The help of the whole program. clap has no groups of subcommands; what each one does is what clap knows of it.
fn template() -> String {
    let commands = Command::augment_subcommands(clap::Command::new("prony"));
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "\n{title}:");
        for name in names {
            let about = commands
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<13}{about}");
        }
    }
    text + "\nOptions:\n{options}\n\n`prony help COMMAND` explains a command.{after-help}"
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Drive one URL and report what was measured (takes wrk's flags)
    Load(Box<LoadWords>),
    /// Be one of the machines from which `prony load --ssh` drives a server
    Agent(AgentCommandWords),
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
    /// Print a page of the documentation, or write all of it as a folder of pages
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
    Bench(SystemsWords),
    /// Fetch URLs to files, with the client library
    Fetch(SystemsWords),
    /// Serve known answers: the reference server
    Serve(ServeOptions),
    /// Host a web application in Lua
    Host(SystemsWords),
    /// Run a Lua file with the host's framework, such as the tests of an application
    Lua(SystemsWords),
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
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let all = Words::command();
        let shown = all
            .get_subcommands()
            .filter(|command| !command.is_hide_set());
        let mut shown: Vec<&str> = shown.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
        let help = Words::command().render_help().to_string();
        for command in all
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let line = format!(
                "{:<13}{}",
                command.get_name(),
                command.get_about().unwrap_or_default()
            );
            assert_eq!(help.matches(&line).count(), 1, "{line}");
        }
    }
}
