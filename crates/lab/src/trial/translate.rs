//! What turns the output of a client's own tool into a line of JSON, run after the client
//! has ended and outside of what is measured.
//!
//! Not for: what the line says ([`crate::printed`]).

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use prony_base::Nanos;
use prony_record::{Exit, Role};
use rustix::process::Signal;

use super::children::{Children, Farewell};
use super::log::Log;
use super::stage::Stage;
use super::start::Resolved;
use super::{Halt, in_words};
use crate::launch;

/// How long it may take.
const TIMEOUT: Nanos = Nanos::from_secs(30);
/// How it is asked to end where it takes longer.
const FAREWELL: Farewell = Farewell {
    signal: Signal::TERM,
    timeout: Nanos::from_secs(1),
};

/// Runs `resolved` with the file `input` on its standard input; what it prints goes to the
/// file `output`. Errors: it cannot be started, takes too long, or does not end with 0.
pub async fn translate(
    stage: &Rc<Stage>,
    children: &Rc<Children>,
    resolved: &Resolved,
    input: &Path,
    output: &Path,
) -> Result<(), Halt> {
    let Some((program, arguments)) = resolved.command.split_first() else {
        return Ok(());
    };
    let log = stage.log(".translate")?;
    let io = Halt::io("the client's output cannot be translated");
    let open = || Ok((File::open(input)?, File::create(output)?, log.writer()?));
    let (input, output, errors) = open().map_err(io)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(&resolved.env)
        .stdin(input)
        .stdout(output)
        .stderr(errors);
    if !resolved.dir.is_empty() {
        command.current_dir(&resolved.dir);
    }
    let kept = launch::capabilities_named(&resolved.capabilities);
    launch::without_capabilities(&mut command, kept);
    let started = launch::start(&mut command);
    let process =
        started.map_err(|error| Halt::Failed(format!("`{program}` cannot be started: {error}")))?;
    let child = children.follow(process.id(), Role::Generator, FAREWELL);
    let ended = async {
        child.ended().await;
        Ok(())
    };
    let late = || format!("the translation of its output had not ended after {TIMEOUT}");
    let waited = stage.unless_interrupted(stage.within(TIMEOUT, ended, late));
    waited.await??;
    let result = match child.exit() {
        Some(Exit::Code { code: 0 }) | None => Ok(()),
        Some(exit) => {
            let how = in_words(&exit);
            let reason = format!("the translation of its output {how}");
            Err(Halt::Failed(with_last_line(&log, reason)))
        }
    };
    log.close();
    result
}

fn with_last_line(log: &Log, reason: String) -> String {
    match log.tail().iter().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{reason}; its last line: {}", line.trim()),
        None => format!("{reason}; it printed nothing"),
    }
}
