//! The drivers, and which of them a loop runs on. What each must do is the trait [`Driver`] (in `operations`); their
//! names are in `config`.
//!
//! Not for: the simulated network, which [`sim`](crate::sim) makes itself.

#[cfg(test)]
mod capture_tests;
mod epoll;
mod kernel_stamps;
mod operations;
mod ring;
pub(crate) mod socket;

use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::buffers::Pool;
use crate::config::{Config, DriverChoice, Error};
use crate::remote::Remote;
use epoll::Epoll;
use ring::Ring;

pub(crate) use operations::{
    Blocking, Closing, Coalescing, Completion, Completions, DISCARD_BYTES_MAX, Driver, DriverStats,
    FILE_BYTES_MAX, FilePart, InFlight, Op, OpOutcome, Role, Sending, Socket, Token, Wait,
};

/// How often a ring that was asked for by name is tried where locked memory is short, and how long it rests in between.
const MEMORY_TRIES: u32 = 100;
const MEMORY_PAUSE: Duration = Duration::from_millis(20);

/// A driver, and why it is not the preferred one.
pub(crate) type Chosen = (Box<dyn Driver>, Option<String>);

/// Makes the driver that the settings choose.
pub(crate) fn choose(
    config: &Config,
    pool: &Rc<Pool>,
    remote: &Arc<Remote>,
) -> Result<Chosen, Error> {
    let mut fallback = None;
    if config.driver != DriverChoice::Epoll {
        let tries = match config.driver {
            DriverChoice::Ring => MEMORY_TRIES,
            _ => 1,
        };
        let made = again_while(is_short_of_memory, tries, MEMORY_PAUSE, || {
            Ring::new(config, pool.clone(), remote.clone())
        });
        match made {
            Ok(ring) => return Ok((Box::new(ring), None)),
            Err(error) if config.driver == DriverChoice::Ring => return Err(error),
            Err(error) => fallback = Some(error.to_string()),
        }
    }
    let epoll = Epoll::new(pool.clone(), remote, config);
    let epoll = epoll.map_err(|cause| Error::System {
        call: "epoll_create1",
        cause,
    })?;
    Ok((Box::new(epoll), fallback))
}

/// Whether locked memory is short: the kernel gives back that of a process's rings some time after its end, and counts it for all
/// processes of a user.
fn is_short_of_memory(error: &Error) -> bool {
    matches!(error, Error::RingUnavailable { cause, .. } if cause.raw_os_error() == Some(libc::ENOMEM))
}

/// Tries up to so many times, while what fails it passes.
fn again_while<T, E>(
    passes: impl Fn(&E) -> bool,
    tries: u32,
    pause: Duration,
    mut make: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let mut left = tries;
    loop {
        left -= 1;
        match make() {
            Err(error) if left > 0 && passes(&error) => thread::sleep(pause),
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_was_refused_for_memory_that_was_about_to_be_given_back() {
        let made_after = |short: u32, number: i32| {
            let mut tried = 0;
            let passes = |error: &i32| *error == libc::ENOMEM;
            let made = again_while(passes, 3, Duration::ZERO, || {
                tried += 1;
                match tried > short {
                    true => Ok(()),
                    false => Err(number),
                }
            });
            (made.is_ok(), tried)
        };
        assert_eq!(made_after(0, libc::ENOMEM), (true, 1));
        assert_eq!(made_after(2, libc::ENOMEM), (true, 3));
        assert_eq!(made_after(3, libc::ENOMEM), (false, 3));
        assert_eq!(made_after(1, libc::EPERM), (false, 1));
    }
}
