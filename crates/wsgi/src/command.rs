//! The command `prony-wsgi`: its words, and what becomes of them.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;
use prony_hosting::{Ended, Error, Settings, Words, alone, supervise};
use pyo3::prelude::*;

use crate::application;
use crate::python_settings::PythonSettings;

/// Serves a WSGI application
#[derive(Debug, Parser)]
#[command(name = "prony-wsgi", version)]
struct Command {
    #[command(flatten)]
    hosting: Words,
    /// Threads of each worker that run the application; 1: the thread that serves the connections runs it
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: u32,
}

/// Exit code for words that cannot be understood, as clap has it.
const MISUSED: i32 = 2;

/// Runs the command; yields its exit code. `worker` is the command that starts a worker.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<String>, worker: Vec<String>) -> i32 {
    py.detach(move || {
        let command = match Command::try_parse_from(arguments) {
            Ok(command) => command,
            Err(error) => {
                let _ = error.print();
                return error.exit_code();
            }
        };
        match resolve(&command) {
            Ok(settings) => print_end(serve(settings, &worker)),
            Err(wrong) => {
                complain(&wrong);
                MISUSED
            }
        }
    })
}

/// A worker's whole life; yields its exit code.
#[pyfunction]
pub(crate) fn work(py: Python<'_>) -> u8 {
    py.detach(|| prony_hosting::work(application::load))
}

fn resolve(command: &Command) -> Result<Settings, String> {
    let python = PythonSettings {
        threads: command.threads,
    };
    let python = serde_json::to_value(python).map_err(|error| error.to_string())?;
    command.hosting.resolve(python)
}

fn serve(settings: Settings, worker: &[String]) -> Result<Ended, Error> {
    let (out, err) = (&mut io::stdout(), &mut io::stderr());
    if settings.workers == 0 {
        return alone(settings, application::load, out);
    }
    let worker: Vec<OsString> = worker.iter().map(OsString::from).collect();
    supervise(settings, &worker, out, err)
}

fn print_end(ended: Result<Ended, Error>) -> i32 {
    match ended {
        Ok(Ended::Gracefully) => 0,
        Ok(Ended::AtOnce) => 1,
        Err(error) => {
            complain(&error.to_string());
            1
        }
    }
}

fn complain(wrong: &str) {
    // Nobody is left to be told of a closed stderr.
    let _ = writeln!(io::stderr(), "prony-wsgi: {wrong}");
}
