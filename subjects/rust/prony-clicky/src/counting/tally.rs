//! The counters and the keeper as one thing, from the start to the end of a service.
//! Not for: adding clicks, which is done at a loop's [`Desk`].

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use prony_engine::Handle;

use super::desk::Desk;
use super::keeper::{CloseError, Keeper};
use super::setting::CountingSetting;
use super::shared::{Health, Numbers, Shared};
use super::store::{self, OpenError, Store};

/// Why nothing is counted any more after a keeper's panic.
const BROKE_DOWN: &str = "the keeper broke down";

/// The counters and their keeper. Clones are the same; when the last goes, or when it is
/// [closed](Tally::close), what was counted is kept.
#[derive(Clone)]
pub struct Tally(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    keeper: Mutex<Keeping>,
}

enum Keeping {
    Running(JoinHandle<Result<(), CloseError>>),
    Ended(Result<(), CloseError>),
}

impl Tally {
    /// Reads what is kept and starts the keeper.
    ///
    /// # Errors
    /// [`OpenError`]; then nothing is counted anywhere.
    pub fn open(setting: &CountingSetting) -> Result<Tally, OpenError> {
        Tally::open_on(store::open(setting)?, setting)
    }

    /// The same with a store of one's own, instead of the one that the setting names.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_on(store: Box<dyn Store>, setting: &CountingSetting) -> Result<Tally, OpenError> {
        let shared = Arc::new(Shared::new(setting));
        let keeper = Keeper::open(shared.clone(), store, setting)?;
        let watch = Watch(shared.clone());
        let running = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || {
                let _watch = watch;
                keeper.run()
            })
            .map_err(OpenError::io("starting the keeper's thread"))?;
        let keeper = Mutex::new(Keeping::Running(running));
        Ok(Tally(Arc::new(Inner { shared, keeper })))
    }

    /// A desk for a loop, from which its tasks count.
    pub fn desk(&self, handle: &Handle) -> Desk {
        Desk::new(self.0.shared.clone(), handle)
    }

    /// Refuses clicks from now on, keeps all that were counted and ends the keeper; waits
    /// for that. Again, it says the same.
    ///
    /// # Errors
    /// [`CloseError`]: the store did not take everything in time.
    pub fn close(&self) -> Result<(), CloseError> {
        self.0.close()
    }

    /// Whether clicks are counted and kept.
    pub fn health(&self) -> Health {
        self.0.shared.health()
    }

    /// What can be told in numbers.
    pub fn numbers(&self) -> Numbers {
        self.0.shared.numbers()
    }
}

/// Sees to it that nobody counts on a keeper that panicked.
struct Watch(Arc<Shared>);

impl Drop for Watch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_off(BROKE_DOWN);
        }
    }
}

impl Inner {
    fn close(&self) -> Result<(), CloseError> {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.gate.close();
        self.shared.intake.close();
        let lost = || CloseError {
            clicks: self.shared.gate.pending(),
            why: BROKE_DOWN.to_owned(),
        };
        let ended = Keeping::Ended(Ok(()));
        let outcome = match std::mem::replace(&mut *keeper, ended) {
            Keeping::Running(running) => running.join().unwrap_or_else(|_| Err(lost())),
            Keeping::Ended(outcome) => outcome,
        };
        *keeper = Keeping::Ended(outcome.clone());
        outcome
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}
