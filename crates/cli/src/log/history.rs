//! The entries of logs, kept in SQLite: an index that is made from run directories, and made again at will. Only of a run
//! whose directory is gone is it the last that is left.
//!
//! Not for: what an entry holds (`prony_report::log`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use prony_lab::folder::inside;
use prony_lab::sums::HexOf;
use prony_record::layout;
use prony_report::log::{ENTRY_SCHEMA, Entry};
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension as _, Params, TransactionBehavior, params};
use sha2::{Digest as _, Sha256};

use crate::cause::CannotWrite;

/// Version of the tables; kept in the file as its `user_version`.
const SCHEMA: i64 = 1;
const TABLES: &str = "
    CREATE TABLE entries (
        experiment TEXT NOT NULL,      -- name of the experiment's file
        id TEXT NOT NULL,              -- of the entry: date and folder
        path TEXT NOT NULL,            -- of the run directory
        stamp TEXT NOT NULL,           -- what its files were like when it was read
        started_unix_ms INTEGER NOT NULL,
        gone INTEGER NOT NULL,         -- always 0: older versions kept here whether the run directory is gone
        entry TEXT NOT NULL,           -- JSON
        PRIMARY KEY (experiment, id)
    ) STRICT;
";

/// An open history.
pub struct Kept {
    database: Connection,
    path: PathBuf,
}

impl Kept {
    /// Opens the history, or makes it. One that cannot be used is an error, or with `rebuild` put aside.
    pub fn open(path: &Path, rebuild: bool) -> anyhow::Result<Kept> {
        match Kept::open_as_it_is(path) {
            Ok(kept) => Ok(kept),
            Err(_) if rebuild && path.is_file() => {
                let aside = path.with_extension("sqlite.old");
                fs::rename(path, &aside)
                    .with_context(|| format!("cannot put {} aside", path.display()))?;
                Kept::open_as_it_is(path)
            }
            Err(error) => Err(error.context(
                "the history cannot be used; --rebuild makes it again from the run directories and puts this one aside",
            )),
        }
    }

    fn open_as_it_is(path: &Path) -> anyhow::Result<Kept> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(CannotWrite::at(folder))?;
        }
        let wrong = || path.display().to_string();
        let database = Connection::open(path).with_context(wrong)?;
        let mut kept = Kept {
            database,
            path: path.to_owned(),
        };
        match kept.begin().with_context(wrong)? {
            (SCHEMA, _) => Ok(kept),
            (0, _) => bail!("{}: a database of something else", path.display()),
            (other, _) => bail!(
                "{}: schema {other}, this Prony reads schema {SCHEMA}",
                path.display()
            ),
        }
    }

    /// Makes the tables where there is nothing yet. Yields the version of what is there, and how many tables it has.
    fn begin(&mut self) -> rusqlite::Result<(i64, i64)> {
        self.database.busy_timeout(Duration::from_secs(10))?;
        let change = self
            .database
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let number = |query: &str| change.query_row(query, [], |row| row.get(0));
        let mut found = (
            number("PRAGMA user_version")?,
            number("SELECT count(*) FROM sqlite_schema")?,
        );
        if found == (0, 0) {
            change.execute_batch(TABLES)?;
            change.pragma_update(None, "user_version", SCHEMA)?;
            found = (SCHEMA, 1);
        }
        change.commit()?;
        Ok(found)
    }

    /// An outcome of the database, with its path where it is an error.
    fn named<T>(&self, outcome: rusqlite::Result<T>) -> anyhow::Result<T> {
        outcome.with_context(|| self.path.display().to_string())
    }

    /// The first column of the first row of a query; `None` where it has no row.
    fn first<T: FromSql>(&self, query: &str, with: impl Params) -> anyhow::Result<Option<T>> {
        let found = self.database.query_row(query, with, |row| row.get(0));
        self.named(found.optional())
    }

    /// Whether the run directory was read as it is now, and by this Prony.
    pub fn has(&self, experiment: &str, path: &str, stamp: &str) -> anyhow::Result<bool> {
        let query = "SELECT 1 FROM entries WHERE experiment = ? AND path = ? AND stamp = ?";
        let found: Option<i64> = self.first(query, params![experiment, path, stamp])?;
        Ok(found.is_some())
    }

    /// Keeps an entry in place of the one that its run had, wherever its directory was then, under the id that it
    /// had.
    pub fn put(
        &mut self,
        experiment: &str,
        path: &str,
        stamp: &str,
        entry: &Entry,
    ) -> anyhow::Result<()> {
        let started = i64::try_from(entry.started_unix_ms).unwrap_or(i64::MAX);
        let query = "SELECT id FROM entries WHERE experiment = ? AND started_unix_ms = ?
                     AND json_extract(entry, '$.digest') = ? ORDER BY id";
        let known = self.first(query, params![experiment, started, entry.digest])?;
        let id = match known {
            Some(known) => known,
            None => self.free_id(experiment, &entry.id)?,
        };
        let mut entry = entry.clone();
        entry.id.clone_from(&id);
        let change = "INSERT OR REPLACE INTO entries (experiment, id, path, stamp, started_unix_ms, gone, entry)
                      VALUES (?, ?, ?, ?, ?, 0, ?)";
        let text = serde_json::to_string(&entry)?;
        let values = params![experiment, id, path, stamp, started, text];
        self.named(self.database.execute(change, values))?;
        Ok(())
    }

    /// `id`, or with a number after it where another run has it: two began in one minute in directories of one name.
    fn free_id(&self, experiment: &str, id: &str) -> anyhow::Result<String> {
        let query = "SELECT 1 FROM entries WHERE experiment = ? AND id = ?";
        let mut free = id.to_owned();
        for number in 2_u32.. {
            let taken: Option<i64> = self.first(query, params![experiment, free])?;
            if taken.is_none() {
                break;
            }
            free = format!("{id}-{number}");
        }
        Ok(free)
    }

    /// The entries of an experiment, by date, and of those that cannot be read a line. Gone is a run directory that is neither among
    /// `there` nor where it was.
    pub fn entries(
        &self,
        experiment: &str,
        there: &[String],
    ) -> anyhow::Result<(Vec<Entry>, Vec<String>)> {
        let query =
            "SELECT id, path, entry FROM entries WHERE experiment = ? ORDER BY started_unix_ms, id";
        let mut query = self.named(self.database.prepare(query))?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows = query.query_map([experiment], row);
        let rows: Vec<(String, String, String)> = self.named(rows.and_then(Iterator::collect))?;
        let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
        for (id, path, text) in rows {
            let gone = !there.contains(&path) && !Path::new(&path).join(layout::PLAN).is_file();
            // An old one of a run that is gone must not keep the others from being logged.
            match serde_json::from_str::<Entry>(&text) {
                Ok(entry) => entries.push(Entry { gone, ..entry }),
                Err(error) => unreadable.push(format!(
                    "{}: the entry {id} cannot be read ({error}); --rebuild makes it again where its run directory is there",
                    self.path.display()
                )),
            }
        }
        Ok((entries, unreadable))
    }
}

/// By what a run is known wherever its directory is, and whatever it is called: how it began.
pub fn digest(dir: &Path) -> anyhow::Result<String> {
    let mut digest = Sha256::new();
    for name in [layout::PLAN, layout::ENVIRONMENT] {
        let path = inside(dir, name)?;
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    Ok(format!("{:x}", HexOf(&digest.finalize())))
}

/// What the files of a run directory are like: another stamp, another entry. The version of this program is part of
/// it, as another one may find something else in the same records.
pub fn stamp(dir: &Path) -> anyhow::Result<String> {
    let mut stamp = format!("{ENTRY_SCHEMA} {}", env!("PRONY_COMMIT"));
    for name in [layout::PLAN, layout::ENVIRONMENT, layout::TRIALS] {
        let path = inside(dir, name)?;
        let about =
            fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let changed = about.modified().ok();
        let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let (bytes, ns) = (about.len(), changed.unwrap_or_default().as_nanos());
        stamp.push_str(&format!(" {bytes} {ns}"));
    }
    Ok(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_took_the_place_of_another_of_its_name_and_minute() {
        let mut kept = Kept::open(Path::new(":memory:"), false).expect("a history");
        let entry = |digest: &str| Entry {
            id: "2026-11-22-0301-tiny-001".to_owned(),
            run: "tiny-001".to_owned(),
            digest: digest.to_owned(),
            ..Entry::default()
        };
        for (path, digest) in [
            ("/a/tiny-001", "a"),
            ("/b/tiny-001", "b"),
            ("/a/tiny-001", "a"),
        ] {
            kept.put("x.toml", path, "", &entry(digest)).expect("kept");
        }
        let (entries, _) = kept.entries("x.toml", &[]).expect("entries");
        let ids: Vec<(&str, &str)> = entries
            .iter()
            .map(|entry| (entry.id.as_str(), entry.digest.as_str()))
            .collect();
        assert_eq!(
            ids,
            [
                ("2026-11-22-0301-tiny-001", "a"),
                ("2026-11-22-0301-tiny-001-2", "b")
            ]
        );
    }

    #[test]
    fn an_entry_in_another_form_is_left_out() {
        let mut kept = Kept::open(Path::new(":memory:"), false).expect("a history");
        let entry = |id: &str| Entry {
            id: id.to_owned(),
            digest: id.to_owned(),
            ..Entry::default()
        };
        kept.put("x.toml", "/a", "", &entry("a")).expect("kept");
        kept.put("x.toml", "/b", "", &entry("b")).expect("kept");
        let change = "UPDATE entries SET entry = '{\"id\":7}' WHERE id = 'a'";
        kept.database.execute(change, []).expect("changed");
        let (entries, unreadable) = kept.entries("x.toml", &[]).expect("entries");
        assert_eq!(
            entries,
            [Entry {
                gone: true,
                ..entry("b")
            }]
        );
        assert!(
            unreadable[0].contains("the entry a cannot be read"),
            "{unreadable:?}"
        );
    }
}
