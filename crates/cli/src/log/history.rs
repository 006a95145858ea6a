//! The entries of logs, kept in SQLite: an index that is made from run directories, and made again at will. Only of a run
//! whose directory is gone is it the last that is left.
//!
//! Not for: what an entry holds (`prony_report::log`).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use prony_lab::folder::inside;
use prony_record::layout;
use prony_report::log::{ENTRY_SCHEMA, Entry};
use rusqlite::{Connection, OptionalExtension as _, params};
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
        gone INTEGER NOT NULL,         -- 1: the run directory is not there any more
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
        let mut database = Connection::open(path).with_context(wrong)?;
        database
            .busy_timeout(std::time::Duration::from_secs(10))
            .with_context(wrong)?;
        let change = database
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .with_context(wrong)?;
        let version: i64 = change
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .with_context(wrong)?;
        let tables: i64 = change
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .with_context(wrong)?;
        match (version, tables) {
            (SCHEMA, _) => {}
            (0, 0) => {
                change.execute_batch(TABLES).with_context(wrong)?;
                change
                    .pragma_update(None, "user_version", SCHEMA)
                    .with_context(wrong)?;
            }
            (0, _) => bail!("{}: a database of something else", path.display()),
            (other, _) => bail!(
                "{}: schema {other}, this Prony reads schema {SCHEMA}",
                path.display()
            ),
        }
        change.commit().with_context(wrong)?;
        Ok(Kept {
            database,
            path: path.to_owned(),
        })
    }

    fn wrong(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether the run directory was read as it is now, and by this Prony.
    pub fn has(&self, experiment: &str, path: &str, stamp: &str) -> anyhow::Result<bool> {
        let query = "SELECT 1 FROM entries WHERE experiment = ? AND path = ? AND stamp = ?";
        let found = self
            .database
            .query_row(query, params![experiment, path, stamp], |_| Ok(()))
            .optional()
            .with_context(|| self.wrong())?;
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
        let known: Option<String> = self
            .database
            .query_row(query, params![experiment, started, entry.digest], |row| {
                row.get(0)
            })
            .optional()
            .with_context(|| self.wrong())?;
        let id = match known {
            Some(known) => known,
            None => self.free_id(experiment, &entry.id)?,
        };
        let entry = &Entry {
            id,
            ..entry.clone()
        };
        let change = "INSERT OR REPLACE INTO entries (experiment, id, path, stamp, started_unix_ms, gone, entry)
                      VALUES (?, ?, ?, ?, ?, 0, ?)";
        let values = params![
            experiment,
            entry.id,
            path,
            stamp,
            started,
            serde_json::to_string(entry)?
        ];
        self.database
            .execute(change, values)
            .with_context(|| self.wrong())?;
        Ok(())
    }

    /// `id`, or with a number after it where another run has it: two began in one minute in directories of one name.
    fn free_id(&self, experiment: &str, id: &str) -> anyhow::Result<String> {
        let query = "SELECT 1 FROM entries WHERE experiment = ? AND id = ?";
        let mut free = id.to_owned();
        for number in 2_u32.. {
            let taken = self
                .database
                .query_row(query, params![experiment, free], |_| Ok(()))
                .optional()
                .with_context(|| self.wrong())?;
            if taken.is_none() {
                break;
            }
            free = format!("{id}-{number}");
        }
        Ok(free)
    }

    /// Marks the entries of which there is no run directory any more, neither among `there` nor where it was.
    pub fn mark_gone(&mut self, experiment: &str, there: &[String]) -> anyhow::Result<()> {
        let wrong = self.wrong();
        let change = self.database.transaction().with_context(|| wrong.clone())?;
        let known: Vec<(String, String)> = {
            let mut query = change
                .prepare("SELECT id, path FROM entries WHERE experiment = ?")
                .with_context(|| wrong.clone())?;
            let rows = query.query_map([experiment], |row| Ok((row.get(0)?, row.get(1)?)));
            rows.and_then(Iterator::collect)
                .with_context(|| wrong.clone())?
        };
        for (id, path) in known {
            let gone = !there.contains(&path) && !Path::new(&path).join(layout::PLAN).is_file();
            change
                .execute(
                    "UPDATE entries SET gone = ? WHERE experiment = ? AND id = ?",
                    params![gone, experiment, id],
                )
                .with_context(|| wrong.clone())?;
        }
        change.commit().with_context(|| wrong)
    }

    /// The entries of an experiment, by date, and of those that cannot be read a line.
    pub fn entries(&self, experiment: &str) -> anyhow::Result<(Vec<Entry>, Vec<String>)> {
        let query =
            "SELECT id, gone, entry FROM entries WHERE experiment = ? ORDER BY started_unix_ms, id";
        let mut query = self.database.prepare(query).with_context(|| self.wrong())?;
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let rows: Vec<(String, bool, String)> = query
            .query_map([experiment], row)
            .and_then(Iterator::collect)
            .with_context(|| self.wrong())?;
        let (mut entries, mut unreadable) = (Vec::new(), Vec::new());
        for (id, gone, text) in rows {
            // An old one of a run that is gone must not keep the others from being logged.
            match serde_json::from_str::<Entry>(&text) {
                Ok(entry) => entries.push(Entry { gone, ..entry }),
                Err(error) => unreadable.push(format!(
                    "{}: the entry {id} cannot be read ({error}); --rebuild makes it again where its run directory is there",
                    self.wrong()
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
    let digest = digest.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What the files of a run directory are like: another stamp, another entry. The version of this program is part of
/// it, as another one may find something else in the same records.
pub fn stamp(dir: &Path) -> anyhow::Result<String> {
    let mut stamp = format!("{ENTRY_SCHEMA} {}", env!("PRONY_COMMIT"));
    for name in [layout::PLAN, layout::ENVIRONMENT, layout::TRIALS] {
        let path = inside(dir, name)?;
        let about =
            fs::metadata(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let changed = about
            .modified()
            .ok()
            .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        stamp.push_str(&format!(
            " {} {}",
            about.len(),
            changed.unwrap_or_default().as_nanos()
        ));
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
        let (entries, _) = kept.entries("x.toml").expect("entries");
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
        let (entries, unreadable) = kept.entries("x.toml").expect("entries");
        assert_eq!(entries, [entry("b")]);
        assert!(
            unreadable[0].contains("the entry a cannot be read"),
            "{unreadable:?}"
        );
    }
}
