//! Totals in an SQLite database, which several processes of one machine may share.
//! Not for: what is asked of the database by others; the tables are plain.
//!
//! A batch is one transaction, synced at its end (`synchronous=FULL`, write-ahead log). It
//! notes its number beside the totals, so that a batch whose outcome is unknown can be sent
//! again and counts once.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Error, ErrorCode, OptionalExtension as _, Transaction};
use rusqlite::{TransactionBehavior, params};

use super::super::name::Name;
use super::{Batch, CommitError, Committed, OpenError, Store, Totals};

/// How long to wait for another process's transaction.
const BUSY_MAX: Duration = Duration::from_secs(1);

/// Processes whose last batch is remembered. What is forgotten are those that began before
/// so many others, and were killed.
const INSTANCES_MAX: i64 = 1_000;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS counter (
  name TEXT PRIMARY KEY, total INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS instance (
  number INTEGER PRIMARY KEY AUTOINCREMENT, sequence INTEGER NOT NULL
);";

const ADD: &str = "
INSERT INTO counter (name, total) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET total = total + excluded.total
RETURNING total";

/// A database.
pub struct SqliteStore {
    connection: Connection,
    /// This process's row among the instances.
    instance: i64,
}

impl SqliteStore {
    /// The database at `path`, which is made where there is none.
    ///
    /// # Errors
    /// [`OpenError::Unreachable`] with what SQLite says.
    pub fn open(path: &Path) -> Result<SqliteStore, OpenError> {
        let said = |error| OpenError::Unreachable(format!("{}: {error}", path.display()));
        SqliteStore::set_up(path).map_err(said)
    }

    fn set_up(path: &Path) -> Result<SqliteStore, Error> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY_MAX)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(TABLES)?;
        change.execute("INSERT INTO instance (sequence) VALUES (0)", [])?;
        let instance = change.last_insert_rowid();
        let forgotten = instance.saturating_sub(INSTANCES_MAX);
        change.execute("DELETE FROM instance WHERE number <= ?1", [forgotten])?;
        change.commit()?;
        Ok(SqliteStore {
            connection,
            instance,
        })
    }

    fn totals(&self) -> Result<Totals, Error> {
        let mut all = self
            .connection
            .prepare_cached("SELECT name, total FROM counter")?;
        let mut rows = all.query([])?;
        let mut totals = Vec::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            // A row that somebody else put there, under a name that nobody can ask for.
            if let Ok(name) = Name::stored(name.as_bytes()) {
                totals.push((name, row.get(1)?));
            }
        }
        Ok(totals)
    }
}

fn apply(change: &Transaction<'_>, instance: i64, batch: &Batch) -> Result<Committed, Error> {
    let last = "SELECT sequence FROM instance WHERE number = ?1";
    let last: Option<u64> = change
        .query_row(last, [instance], |row| row.get(0))
        .optional()?;
    let before = last.is_some_and(|last| last >= batch.sequence);
    let mut add = change.prepare_cached(ADD)?;
    let mut totals = Vec::with_capacity(batch.clicks.len());
    for (name, clicks) in &batch.clicks {
        let clicks = if before { 0 } else { *clicks };
        totals.push(add.query_row(params![name.as_str(), clicks], |row| row.get(0))?);
    }
    if !before {
        let note = "INSERT INTO instance (number, sequence) VALUES (?1, ?2)
            ON CONFLICT (number) DO UPDATE SET sequence = excluded.sequence";
        change.execute(note, params![instance, batch.sequence])?;
    }
    Ok(Committed { totals, before })
}

impl Store for SqliteStore {
    fn load(&mut self) -> Result<Totals, OpenError> {
        let said = |error: Error| OpenError::Unreachable(format!("reading totals: {error}"));
        self.totals().map_err(said)
    }

    fn commit(&mut self, batch: &Batch) -> Result<Committed, CommitError> {
        let not_kept = |error: Error| CommitError::NotKept(error.to_string());
        let change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(not_kept)?;
        // Dropping the transaction takes it back.
        let committed = apply(&change, self.instance, batch).map_err(not_kept)?;
        change
            .commit()
            .map_err(|error| match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => not_kept(error),
                _ => CommitError::Unknown(error.to_string()),
            })?;
        Ok(committed)
    }

    fn refresh(&mut self) -> Result<Totals, CommitError> {
        let not_kept = |error: Error| CommitError::NotKept(error.to_string());
        self.totals().map_err(not_kept)
    }

    fn bytes(&self) -> u64 {
        let path = self.connection.path().unwrap_or_default();
        std::fs::metadata(path).map_or(0, |file| file.len())
    }

    fn close(&mut self) {
        // One row that stays is forgotten in time.
        let _ = self
            .connection
            .execute("DELETE FROM instance WHERE number = ?1", [self.instance]);
    }
}
