//! The program `prony-systems`: what Prony measures that it brings itself, and servers do not show: the works of the runtime and
//! strategies of receiving (`bench`), hosts of applications in Lua (`host`, `lua`), the client (`fetch`). `prony` becomes it where one of
//! these is typed, and subjects start it as `{systems}`.
//!
//! # Central types
//! - [`words::SystemsLine`]: the command line, parsed; [`run`] is the whole program, so that tests call it.
#![forbid(unsafe_code)]

mod bench;
mod fetch;
mod host;
mod lua;
mod lua54;
pub mod words;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use prony_load::LoadError;
use prony_program::commands::CommandText;
use prony_program::terminal::EscapedStream;
use prony_program::{Ending, Streams, cause};
use words::{SystemsCommand, SystemsLine};

/// Runs the command that `args` (the program's name first) spell out.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitCode {
    let (mut out, mut err) = (EscapedStream(out), EscapedStream(err));
    let streams = &mut Streams {
        out: &mut out,
        err: &mut err,
    };
    let words = match SystemsLine::try_parse_from(args) {
        Ok(words) => words,
        Err(wrong) => return print_usage(&wrong, streams),
    };
    let done = match words.command {
        SystemsCommand::Bench(words) => bench::run(&words, streams),
        SystemsCommand::Fetch(words) => fetch::run(&words, streams),
        SystemsCommand::Host(words) => host::run(&words, streams),
        SystemsCommand::Lua(words) => lua::run(&words, streams),
        SystemsCommand::HostWorker => Ok(host::work()),
        SystemsCommand::Words => print_words(streams),
    };
    let of_load = |error: &LoadError| matches!(error, LoadError::Engine(_));
    let ending = |error: &anyhow::Error| match error.downcast_ref() {
        Some(LoadError::Unreachable { .. }) => Ending::Invalid,
        _ => cause::ending(error, |cause| cause.downcast_ref().is_some_and(of_load)),
    };
    prony_program::code(done, ending, streams.err)
}

/// What `prony completions` and its manual pages are to have of these words.
fn print_words(streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let text = CommandText::new(&SystemsLine::command());
    writeln!(streams.out, "{}", serde_json::to_string(&text)?)?;
    Ok(Ending::Done)
}

/// `--help` and `--version` go to standard output and are no error.
fn print_usage(wrong: &clap::Error, streams: &mut Streams<'_>) -> ExitCode {
    let (to, ending) = match wrong.use_stderr() {
        true => (&mut *streams.err, Ending::Usage),
        false => (&mut *streams.out, Ending::Done),
    };
    // A stream that fails leaves nowhere to say so.
    let _ = write!(to, "{}", wrong.render());
    ending.into()
}
