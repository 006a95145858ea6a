//! Signals as something that a task of the loop waits for.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use prony_engine::Handle;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals of one meaning, however they are called.
pub(crate) struct Signals {
    /// Each signal writes a byte to its other end.
    pipe: UnixStream,
    registered: Vec<SigId>,
}

impl Signals {
    /// SIGTERM and SIGINT: stop.
    pub(crate) fn to_stop() -> io::Result<Signals> {
        Signals::new(&[SIGTERM, SIGINT])
    }

    /// SIGHUP: replace the workers.
    pub(crate) fn to_renew() -> io::Result<Signals> {
        Signals::new(&[SIGHUP])
    }

    /// SIGTERM alone, for a worker: a terminal's SIGINT and SIGHUP go to all processes at
    /// once, and the supervisor is the one that says what follows from them.
    pub(crate) fn to_leave() -> io::Result<Signals> {
        for signal in [SIGINT, SIGHUP] {
            // Heard, and of no effect.
            let unused = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, unused)?;
        }
        Signals::new(&[SIGTERM])
    }

    fn new(signals: &[i32]) -> io::Result<Signals> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let mut registered = Vec::new();
        for &signal in signals {
            let id = signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
            registered.push(id);
        }
        Ok(Signals { pipe, registered })
    }

    /// Waits for some; yields how many came since.
    pub(crate) async fn arrived(&self, handle: &Handle) -> usize {
        loop {
            // One that cannot be waited for never comes.
            if handle.readable(&self.pipe).await.is_err() {
                return std::future::pending().await;
            }
            let mut bytes = [0; 64];
            match (&self.pipe).read(&mut bytes) {
                Ok(count) if count > 0 => return count,
                _ => {}
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for &id in &self.registered {
            signal_hook::low_level::unregister(id);
        }
    }
}
