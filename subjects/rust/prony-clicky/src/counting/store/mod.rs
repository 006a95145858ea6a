//! Where totals are kept: one small trait (`contract`), and the stores that implement it.
//! Not for: when something is kept, and what becomes of who waits for it (`keeper`).

mod contract;
mod disk;
mod file;
mod log;
mod redis;
mod sqlite;

pub use self::contract::{Batch, CommitError, Committed, OpenError, Store, Totals};
pub use self::disk::{Disk, ReplaceError};
pub use self::file::FileStore;
pub use self::redis::RedisStore;
pub use self::sqlite::SqliteStore;
use super::setting::{Backend, CountingSetting};

/// Keeps nothing.
struct Nowhere;

impl Store for Nowhere {
    fn load(&mut self) -> Result<Totals, OpenError> {
        Ok(Vec::new())
    }

    fn commit(&mut self, _: &Batch) -> Result<Committed, CommitError> {
        Ok(Committed::default())
    }
}

/// The store that is set.
///
/// # Errors
/// [`OpenError`].
pub(super) fn open(setting: &CountingSetting) -> Result<Box<dyn Store>, OpenError> {
    match &setting.backend {
        Backend::None => Ok(Box::new(Nowhere)),
        Backend::File {
            path,
            log_bytes_max,
        } => {
            let store = FileStore::open(path, *log_bytes_max, &setting.tell)?;
            Ok(Box::new(store))
        }
        Backend::Redis {
            url,
            key,
            answer_max,
        } => Ok(Box::new(RedisStore::open(url, key, *answer_max)?)),
        Backend::Sqlite { path } => Ok(Box::new(SqliteStore::open(path)?)),
    }
}
