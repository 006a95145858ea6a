//! Totals in an SQLite database, which several processes of one machine may share.
//! Not for: what is asked of the database by others; the tables are plain.
//!
//! A batch is one transaction, synced at its end (`synchronous=FULL`, write-ahead log). It
//! notes its number beside the totals, so that a batch whose outcome is unknown can be sent
//! again and counts once.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Error, ErrorCode, OptionalExtension as _, Transaction};
use rusqlite::{TransactionBehavior, params};

use super::super::name::Name;
use super::contract::{Batch, CommitError, Committed, OpenError, Store, Totals};

/// How long to wait for another process's transaction.
const BUSY_MAX: Duration = Duration::from_secs(1);
/// The same while it is opened, when nobody waits for an answer yet.
const OPENING_MAX: Duration = Duration::from_secs(10);
/// How long to wait between two trials, where SQLite does not wait itself.
const BUSY_STEP: Duration = Duration::from_millis(5);

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
        connection.busy_timeout(OPENING_MAX)?;
        let mode = write_ahead(&connection)?;
        // Not every file system can have such a log. Without it there is a file whose going
        // away is what keeps a transaction, so that the folder must be synced as well.
        let synchronous = if mode == "wal" { "full" } else { "extra" };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute_batch(TABLES)?;
        change.execute("INSERT INTO instance (sequence) VALUES (0)", [])?;
        let instance = change.last_insert_rowid();
        let forgotten = instance.saturating_sub(INSTANCES_MAX);
        change.execute("DELETE FROM instance WHERE number <= ?1", [forgotten])?;
        change.commit()?;
        connection.busy_timeout(BUSY_MAX)?;
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

/// Asks for a write-ahead log, and says what the database has now. SQLite does not wait for
/// others when it changes this (two that did would wait for each other), so this does.
fn write_ahead(connection: &Connection) -> Result<String, Error> {
    let until = Instant::now() + OPENING_MAX;
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "wal", |row| row.get::<_, String>(0));
        match mode {
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(BUSY_STEP),
            mode => return mode,
        }
    }
}

fn is_busy(error: &Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
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

/// Writes what a batch would, and takes it back: pages that were changed are written, even
/// where they are as they were.
fn write_as_before(change: &Transaction<'_>, instance: i64) -> Result<(), Error> {
    let mut add = change.prepare_cached(ADD)?;
    let note = "UPDATE instance SET sequence = -1 - sequence WHERE number = ?1";
    for clicks in [1_i64, -1] {
        let _: i64 = add.query_row(params![Name::ROOT.as_str(), clicks], |row| row.get(0))?;
        change.execute(note, [instance])?;
    }
    Ok(())
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

    fn probe(&mut self) -> Result<(), CommitError> {
        let not_kept = |error: Error| CommitError::NotKept(error.to_string());
        let change = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(not_kept)?;
        write_as_before(&change, self.instance).map_err(not_kept)?;
        change.commit().map_err(not_kept)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_write_ahead_log_the_folder_is_synced_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("db");
        for (path, level) in [(&*file, 2), (Path::new(":memory:"), 3)] {
            let store = SqliteStore::open(path).expect("it opens");
            let said = store
                .connection
                .pragma_query_value(None, "synchronous", |row| row.get(0));
            assert_eq!(said, Ok(level), "{}", path.display());
        }
    }

    #[test]
    fn a_probe_changes_nothing_and_needs_a_database_that_can_be_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut store = SqliteStore::open(&folder.path().join("db")).expect("it opens");
        let batch = Batch {
            sequence: 1,
            clicks: vec![(Name::ROOT, 5)],
        };
        store.commit(&batch).expect("kept");
        store.probe().expect("written");
        let again = store.commit(&batch).expect("known");
        assert_eq!((again.before, again.totals), (true, vec![5]));
        let only = store.connection.pragma_update(None, "query_only", true);
        only.expect("set");
        assert!(store.refresh().is_ok() && store.probe().is_err());
    }
}
