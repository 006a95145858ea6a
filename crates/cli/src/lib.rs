//! The `prony` command: typed words ([`words`]), then checked configuration,
//! then one call into the crate that does the work. Nothing here measures or
//! computes; each command is one module.
//!
//! # Central types
//! - [`Words`]: the command line, parsed.
//! - [`Streams`]: where a command writes; [`run`] is the whole program, so that tests call it.
//! - [`Ending`]: how a command ended, and so its exit code.
#![forbid(unsafe_code)]

mod bench;
mod bundle;
mod cause;
mod check;
mod clean;
mod compare;
mod completions;
mod docs;
mod doctor;
mod driver;
mod embedded;
mod explain;
mod fetch;
mod generate;
mod home;
mod host;
mod lines;
mod list;
mod load;
mod local_server;
mod log;
mod lua;
mod lua54;
mod new;
mod report;
mod run;
mod runs;
mod serve;
mod signals;
mod stats;
mod terminal;
mod tls;
mod typed;
mod verify;
pub mod words;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use crate::terminal::EscapedStream;
use crate::words::{Command, Words};

/// How a command ended; the numbers are an interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// Done, and valid.
    Done,
    /// A threshold, a regression or a check failed, or the machine could not do what was asked (`cause`).
    Failed,
    /// Wrong usage, or a bad file.
    Usage,
    /// A measurement that the answer rests on is invalid.
    Invalid,
    /// The user interrupted it.
    Interrupted,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> ExitCode {
        ExitCode::from(match ending {
            Ending::Done => 0,
            Ending::Failed => 1,
            Ending::Usage => 2,
            Ending::Invalid => 3,
            Ending::Interrupted => 130,
        })
    }
}

/// Where a command writes: what was asked for to `out`, everything else to `err`.
pub struct Streams<'a> {
    /// Standard output.
    pub out: &'a mut dyn Write,
    /// Standard error.
    pub err: &'a mut dyn Write,
}

/// The command that `args` (the program's name first) spell out, as [`run`] reads them: with what `prony load --from` stands for, and
/// a flag for each of several requirements.
pub fn parsed(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Words, clap::Error> {
    let wrong = |why| clap::Error::raw(clap::error::ErrorKind::ValueValidation, why);
    let args = args.into_iter().map(Into::into).collect();
    let (args, _) = load::from::expanded(args).map_err(wrong)?;
    Words::try_parse_from(args)
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
    match dispatch(words.command, streams) {
        Ok(ending) => ending.into(),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A failing standard error leaves nowhere to say so.
            let _ = writeln!(streams.err, "prony: {error:#}");
            cause::ending(&error).into()
        }
    }
}

fn dispatch(command: Command, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    match command {
        Command::Load(words) => load::run(&words, streams),
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
        Command::Bench(words) => bench::run(&words, streams),
        Command::Fetch(words) => fetch::run(&words, streams),
        Command::Serve(options) => serve::run(&options, streams),
        Command::Host(words) => host::run(&words, streams),
        Command::Lua(words) => lua::run(&words, streams),
        Command::Completions(words) => completions::run(&words, streams),
        Command::Man(words) => completions::man(&words, streams),
        Command::Names(words) => completions::names(&words, streams),
        Command::HostWorker => Ok(host::work()),
        Command::Generate => generate::run(streams),
        Command::Supervise => unreachable!("it has an exit code of its own"),
    }
}

/// `--help` and `--version` go to standard output and are no error.
fn usage(wrong: &clap::Error, args: &[OsString], streams: &mut Streams<'_>) -> ExitCode {
    // A word of ours with a wrong value is told by name.
    let is_unknown = wrong.kind() == clap::error::ErrorKind::UnknownArgument;
    if let Some(said) = load::from::looks_like(args).filter(|_| is_unknown) {
        let _ = writeln!(streams.err, "prony: {said}");
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

/// A reader that went away (`prony … | head`) has what it wanted.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error
        .chain()
        .find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}
