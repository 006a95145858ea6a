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

use crate::buffers::Pool;
use crate::config::{Config, DriverChoice, Error};
use crate::remote::Remote;
use epoll::Epoll;
use ring::Ring;

pub(crate) use operations::{
    Blocking, Closing, Coalescing, Completion, Completions, DISCARD_BYTES_MAX, Driver, DriverStats,
    FILE_BYTES_MAX, FilePart, InFlight, Op, OpOutcome, Role, Sending, Socket, Token, Wait,
};

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
        match Ring::new(config, pool.clone(), remote.clone()) {
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
