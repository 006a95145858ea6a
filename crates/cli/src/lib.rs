//! The `prony` command: typed words ([`words`]), then checked configuration,
//! then one call into the crate that does the work. Nothing here measures or
//! computes; each command is one module.
//!
//! # Central types
//! - [`Words`]: the command line, parsed.
//! - [`Streams`]: where a command writes; [`run`] is the whole program, so that tests call it.
//! - [`Ending`]: how a command ended, and so its exit code.
#![forbid(unsafe_code)]

mod agent;
mod bundle;
mod cause;
mod check;
mod clean;
mod compare;
mod completions;
mod diagnoses;
mod docs;
mod doctor;
mod embedded;
mod explain;
mod files;
mod generate;
mod home;
mod lines;
mod list;
mod load;
mod local_server;
mod log;
mod new;
mod paths;
mod report;
mod run;
mod runs;
mod serve;
mod spin;
mod stats;
mod systems;
mod tls;
mod typed;
mod verify;
pub mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser as _};
use prony_program::terminal::EscapedStream;
pub use prony_program::{Ending, Streams};
pub(crate) use prony_program::{driver, signals, terminal};

use crate::words::{Command, Words};

/// The command that `args` (the program's name first) spell out, as [`run`] reads them: with what `prony load --from` stands for, and
/// a flag for each of several requirements.
pub fn parsed(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Words, clap::Error> {
    let wrong = |why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why);
    let args = args.into_iter().map(Into::into).collect();
    let (args, _) = load::from::expanded(args).map_err(wrong)?;
    Words::try_parse_from(args)
}

/// All words of the command line, those of `prony-systems` among them where that lies beside `prony`.
pub fn command(prony: &Path) -> clap::Command {
    systems::with_words(Words::command(), prony)
}

/// Runs the command that `args` (the program's name first) spell out.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitCode {
    let (mut shown_out, mut shown_err) = (EscapedStream(out), EscapedStream(err));
    let streams = &mut Streams {
        out: &mut shown_out,
        err: &mut shown_err,
    };
    let (args, translated) = match load::from::expanded(args.into_iter().collect()) {
        Ok(expanded) => expanded,
        Err(wrong) => {
            let _ = writeln!(streams.err, "prony: {wrong}");
            return Ending::Usage.into();
        }
    };
    if let Some((name, words)) = systems::helped(&args) {
        return prony_program::code(Err(systems::run(name, words)), cause::ending, streams.err);
    }
    let words = match Words::try_parse_from(&args) {
        Ok(words) => words,
        Err(wrong) => return usage(&wrong, &args, streams),
    };
    if let Some(command) = translated {
        let _ = writeln!(streams.err, "prony: the same here: {command}");
    }
    if let Command::Supervise = words.command {
        return prony_lab::supervise::main(io::stdin().as_fd(), &mut *streams.out);
    }
    let done = dispatch(words.command, streams);
    prony_program::code(done, cause::ending, streams.err)
}

fn dispatch(command: Command, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    match command {
        Command::Load(words) => load::run(&words, streams),
        Command::Agent(words) => agent::run(&words, streams),
        Command::Run(words) => run::run(&words, streams),
        Command::Report(words) => report::run(&words, streams),
        Command::Compare(words) => compare::run(&words, streams),
        Command::Log(words) => log::run(&words, streams),
        Command::Verify(words) => verify::run(&words, streams),
        Command::Bundle(words) => bundle::run(&words, streams),
        Command::Reproduce(words) => bundle::reproduce::run(&words, streams),
        Command::Stats(words) => stats::run(&words, streams),
        Command::Explain(words) => explain::run(&words, streams),
        Command::Docs(words) => docs::run(&words, streams),
        Command::Doctor(words) => doctor::run(&words, streams),
        Command::New(words) => new::run(&words, streams),
        Command::Check(words) => check::run(&words, streams),
        Command::List(words) => list::run(&words, streams),
        Command::Clean(words) => clean::run(&words, streams),
        Command::Bench(words) => Err(systems::run("bench", words)),
        Command::Fetch(words) => Err(systems::run("fetch", words)),
        Command::Serve(options) => serve::run(&options, streams),
        Command::Host(words) => Err(systems::run("host", words)),
        Command::Lua(words) => Err(systems::run("lua", words)),
        Command::Completions(words) => completions::run(&words, streams),
        Command::Man(words) => completions::man(&words, streams),
        Command::Names(words) => completions::names(&words, streams),
        Command::Generate => generate::run(streams),
        Command::Supervise => unreachable!("it has an exit code of its own"),
    }
}

/// `--help` and `--version` go to standard output and are no error.
fn usage(wrong: &clap::Error, args: &[OsString], streams: &mut Streams<'_>) -> ExitCode {
    // A word of ours with a wrong value is told by name.
    let is_unknown = wrong.kind() == clap::error::ErrorKind::UnknownArgument;
    if let Some(hint) = load::from::looks_like(args).filter(|_| is_unknown) {
        let _ = writeln!(streams.err, "prony: {hint}");
        return Ending::Usage.into();
    }
    let to: &mut dyn Write = if wrong.use_stderr() {
        streams.err
    } else {
        streams.out
    };
    let _ = write!(to, "{}", wrong.render());
    if wrong.use_stderr() {
        let value = match wrong.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(value)) if !value.is_empty() => Some(&**value),
            _ => None,
        };
        if let Some(hint) = load::from::hint(args, value) {
            let _ = writeln!(streams.err, "{hint}");
        }
        Ending::Usage.into()
    } else {
        Ending::Done.into()
    }
}
