//! A click counter that loses nothing: a small service on Prony's engine, runtime and server.
//!
//! [`settings`] reads the environment; [`counting`] has the counters, the batches and the
//! places where totals are kept; [`web`] has what is said over HTTP. [`run`] is the program.
#![forbid(unsafe_code)]

pub mod counting;
pub mod settings;
pub mod web;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use self::settings::Settings;

/// Reads the settings that `lookup` has and serves until SIGTERM or SIGINT. The first line
/// of `out` says where it listens.
///
/// The exit code is 0 when everything that was counted is kept, 1 when something went
/// wrong, 2 for settings that are; `err` has a sentence for each.
pub fn run(
    lookup: impl Fn(&str) -> Option<OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> ExitCode {
    // A standard error that is closed leaves nowhere to say so.
    let mut say = |line: &dyn std::fmt::Display| {
        let _ = writeln!(err, "prony-clicky: {line}");
    };
    let settings = match Settings::read(lookup) {
        Ok(settings) => settings,
        Err(problems) => {
            problems.iter().for_each(|problem| say(problem));
            return ExitCode::from(2);
        }
    };
    match web::serve(&settings, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format_args!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
