//! How a user ends a long command.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;

/// A flag that SIGINT and SIGTERM set. A second signal ends the process at once
/// with exit status 130.
pub fn interruption() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot listen for signals")?;
    }
    Ok(flag)
}
