//! Runs a loop on the calling thread, from its first task to its last byte.
//! Not for: what one turn of it does (`turn`).

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;

use prony_base::Instant;

use crate::config::{Config, Error};
use crate::driver::Wait;
use crate::handle::Handle;
use crate::tasks::Main;
use crate::thread::PreciseTimers;
use crate::turn::{Core, Running};

/// Runs `main`, and every task that it spawns, on this thread until `main`
/// finishes. Then all other tasks are dropped, their operations cancelled, and
/// posted bytes get at most [`Config::linger`] to go out.
///
/// # Errors
/// [`Error`] when the settings are wrong, when no driver is to be had, or when
/// waiting for events fails.
pub fn run<T, F>(config: &Config, main: impl FnOnce(Handle) -> F) -> Result<T, Error>
where
    F: Future<Output = T>,
{
    let _on_time = config.precise_timers.then(PreciseTimers::new);
    let running = Running(Core::new(config)?);
    let core = &running.0;
    let value = Cell::new(None);
    let work = main(Handle::new(core.clone()));
    let work = pin!(async { value.set(Some(work.await)) });
    let mut main = Main::new(work);
    loop {
        core.turn(&mut main, Wait::Until(Instant::NEVER))?;
        if let Some(value) = value.take() {
            core.finish()?;
            return Ok(value);
        }
    }
}
