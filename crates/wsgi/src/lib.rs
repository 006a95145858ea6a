//! WSGI applications in Python (PEP 3333) on Prony's server: the extension module
//! `prony_wsgi._prony_wsgi` of the package in `python/`.
//!
//! Not for: worker processes, static files, the access log (`prony-hosting`); finding
//! an application in its module (`python/prony_wsgi/loading.py`).
//!
//! # How it goes
//! `command` reads the words of `prony-wsgi`. `application` is the handler: with one
//! thread it calls the application on the loop's own thread, attached to the interpreter
//! for as long as that takes; with several, `pool`'s threads do, and the loop never
//! waits for the interpreter. Either way a request is an environ (`environ`), a
//! `start_response` (`start`), and then what is left to be done with what the
//! application returned (`run`).
//!
//! # Central types
//! - `Application`: one application, loaded: the handler of a worker's server.
//! - `Environs`: makes the environ of each request, with strings that are kept.
//! - `StartResponse`: what an application calls to begin its answer.
//!
//! # Invariants
//! - An application's error ends its request, never the worker.
//! - An answer that was cut short cannot be mistaken for a whole one.
#![deny(unsafe_op_in_unsafe_fn)]

mod answer;
mod application;
mod body;
mod command;
mod environ;
mod failure;
mod file;
mod head;
mod outlet;
mod places;
mod pool;
mod python_settings;
mod run;
mod site;
mod start;

#[pyo3::pymodule]
mod _prony_wsgi {
    #[pymodule_export]
    use crate::command::{main, work};
    #[pymodule_export]
    use crate::file::FileWrapper;
}
