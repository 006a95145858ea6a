//! Brings the count to its store, on a thread of its own, so that no request waits for it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::count::Count;
use crate::settings::Settings;
use crate::store::{self, Store};

/// For how long the last value is tried. With the server's own shutdown it stays below the 5 s
/// after which a supervisor may kill.
const LAST_CHANCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(100);

/// The thread, if there is a store at all.
pub struct Keeper {
    thread: Option<(Sender<u64>, JoinHandle<anyhow::Result<()>>)>,
}

impl Keeper {
    /// Loads the count and starts to keep it.
    pub fn start(settings: &Settings, count: Arc<Count>) -> anyhow::Result<Keeper> {
        let Some((store, stored)) = store::open(&settings.backend)? else {
            return Ok(Keeper { thread: None });
        };
        count.merge(stored as i64);
        let (last, asked) = channel();
        let every = settings.sync_every;
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || keep(store, &count, every, &asked))?;
        Ok(Keeper {
            thread: Some((last, thread)),
        })
    }

    /// Stores the last value and ends. An error: it could not be stored.
    pub fn finish(self, last: u64) -> anyhow::Result<()> {
        let Some((sender, thread)) = self.thread else {
            return Ok(());
        };
        // Cannot fail while the thread lives, and if it died, that is what `join` tells.
        let _ = sender.send(last);
        thread
            .join()
            .map_err(|_| anyhow::anyhow!("the keeper died"))?
    }
}

fn keep(
    mut store: Box<dyn Store>,
    count: &Count,
    every: Duration,
    asked: &Receiver<u64>,
) -> anyhow::Result<()> {
    loop {
        match asked.recv_timeout(every) {
            Err(RecvTimeoutError::Timeout) => match store.save(count.get()) {
                Ok(others) => count.merge(others),
                // The next turn saves all that this one did not.
                Err(error) => log::error!("the count was not saved: {error:#}"),
            },
            Ok(last) => return save_last(&mut *store, last),
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn save_last(store: &mut dyn Store, last: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        match store.save(last) {
            Ok(_) => return Ok(()),
            Err(error) if started.elapsed() > LAST_CHANCE => {
                log::error!("the last count, {last}, was not saved: {error:#}");
                return Err(error)
                    .with_context(|| format!("the last count, {last}, was not saved"));
            }
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}
