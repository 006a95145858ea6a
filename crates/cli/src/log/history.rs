//! The entries of logs, a line of JSON each: an index that is made from run directories, and made again at will. Only of a
//! run whose directory is gone is its line the last that is left.
//!
//! The file is replaced whole, so that no line of it is ever half written; one that is damaged all the same is left out,
//! and stays where it is. It is locked by whoever reads it to write it.
//!
//! Not for: what an entry holds (`prony_report::log`).

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, bail};
use prony_lab::folder::inside;
use prony_lab::sums::hex;
use prony_record::layout;
use prony_report::log::{ENTRY_SCHEMA, Entry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::file;
use crate::cause::CannotWrite;

/// How a history begins that an older Prony wrote, and what makes lines of it.
const SQLITE: &[u8] = b"SQLite format 3\0";
const LINES_OF_OLDER: &str = "SELECT json_object('experiment', experiment, 'path', path, 'stamp', stamp, 'entry', json(entry)) FROM entries";

/// An entry in the file.
#[derive(Serialize, Deserialize)]
struct HistoryRecord {
    /// Name of the experiment's file.
    experiment: String,
    /// Of the run directory.
    path: String,
    /// The stamp of its files when it was read.
    stamp: String,
    /// An [`Entry`], also of another version.
    entry: Value,
}

impl HistoryRecord {
    fn id(&self) -> &str {
        self.entry["id"].as_str().unwrap_or_default()
    }

    fn started_unix_ms(&self) -> u64 {
        self.entry["started_unix_ms"].as_u64().unwrap_or_default()
    }
}

/// A history that was read.
pub struct HistoryFile {
    path: PathBuf,
    /// The file as it was; `None`: there was none.
    before: Option<String>,
    entries: Vec<HistoryRecord>,
    /// Lines that are no entries, and why.
    damaged: Vec<(String, String)>,
    /// Held as long as this lives.
    _lock: Option<File>,
}

impl HistoryFile {
    /// Reads the history; waits while another Prony has it. One that cannot be used is an error, or with `rebuild` put
    /// aside. Damaged lines are kept, or with `rebuild` given up.
    pub fn open(path: &Path, rebuild: bool) -> anyhow::Result<HistoryFile> {
        let folder = file::folder_of(path);
        fs::create_dir_all(&folder).with_context(CannotWrite::at(&folder))?;
        let lock = locked(path);
        let before = match text(path) {
            Err(_) if rebuild && path.is_file() => {
                fs::rename(path, path.with_added_extension("old"))
                    .with_context(|| format!("cannot put {} aside", path.display()))?;
                None
            }
            read => read.context(
                "the history cannot be used; --rebuild makes it again from the run directories and puts this one aside",
            )?,
        };
        let mut history = HistoryFile {
            path: path.to_owned(),
            before: None,
            entries: Vec::new(),
            damaged: Vec::new(),
            _lock: lock,
        };
        for (number, line) in (1..).zip(before.as_deref().unwrap_or_default().lines()) {
            match serde_json::from_str(line) {
                Ok(entry) => history.insert(entry),
                Err(_) if rebuild => {}
                Err(error) => {
                    let why = format!("{}:{number}: it is no entry ({error})", path.display());
                    history.damaged.push((line.to_owned(), why));
                }
            }
        }
        Ok(HistoryFile { before, ..history })
    }

    /// In place of the one of its name, if there is one.
    fn insert(&mut self, entry: HistoryRecord) {
        let is_it = |other: &HistoryRecord| {
            other.experiment == entry.experiment && other.id() == entry.id()
        };
        match self.entries.iter().position(is_it) {
            Some(at) => self.entries[at] = entry,
            None => self.entries.push(entry),
        }
    }

    /// The entries of an experiment.
    fn entries_of<'a>(&'a self, experiment: &'a str) -> impl Iterator<Item = &'a HistoryRecord> {
        let all = self.entries.iter();
        all.filter(move |record| record.experiment == experiment)
    }

    /// Whether the run directory was read as it is now, and by this Prony.
    pub fn has(&self, experiment: &str, path: &str, stamp: &str) -> bool {
        let mut records = self.entries_of(experiment);
        records.any(|record| record.path == path && record.stamp == stamp)
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
        let is_known = |record: &&HistoryRecord| {
            record.started_unix_ms() == entry.started_unix_ms
                && record.entry["digest"] == entry.digest
        };
        let known = self.entries_of(experiment).find(is_known);
        let id = match known {
            Some(known) => known.id().to_owned(),
            None => self.free_id(experiment, &entry.id),
        };
        let entry = serde_json::to_value(Entry {
            id,
            ..entry.clone()
        })?;
        self.insert(HistoryRecord {
            experiment: experiment.to_owned(),
            path: path.to_owned(),
            stamp: stamp.to_owned(),
            entry,
        });
        Ok(())
    }

    /// `id`, or with a number after it where another run has it: two began in one minute in directories of one name.
    fn free_id(&self, experiment: &str, id: &str) -> String {
        let numbered = (2_u32..).map(|number| format!("{id}-{number}"));
        let mut ids = std::iter::once(id.to_owned()).chain(numbered);
        let is_free = |id: &String| self.entries_of(experiment).all(|record| record.id() != id);
        ids.find(is_free).unwrap_or_default()
    }

    /// Writes the file, where that changes it.
    ///
    /// # Errors
    /// It cannot be written, or somebody else has written it meanwhile.
    pub fn save(&mut self) -> anyhow::Result<()> {
        let lines = self.entries.iter().map(serde_json::to_string);
        let damaged = self.damaged.iter().map(|(line, _)| Ok(line.clone()));
        let lines: Vec<String> = lines.chain(damaged).collect::<Result<_, _>>()?;
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if self.before.as_ref() != Some(&text) {
            file::replace(&self.path, self.before.as_deref(), &text)?;
            self.before = Some(text);
        }
        Ok(())
    }

    /// The entries of an experiment, by date, and of those that cannot be read a line. Gone is a run directory that is neither among
    /// `there` nor where it was.
    pub fn entries(&self, experiment: &str, there: &[String]) -> (Vec<Entry>, Vec<String>) {
        let mut records: Vec<&HistoryRecord> = self.entries_of(experiment).collect();
        records.sort_by_key(|record| (record.started_unix_ms(), record.id().to_owned()));
        let mut unreadable: Vec<String> = self.damaged.iter().map(|(_, why)| why.clone()).collect();
        let mut entries = Vec::new();
        for record in records {
            let is_there = there.contains(&record.path)
                || Path::new(&record.path).join(layout::PLAN).is_file();
            // An old one of a run that is gone must not keep the others from being logged.
            match serde_json::from_value::<Entry>(record.entry.clone()) {
                Ok(entry) => entries.push(Entry {
                    gone: !is_there,
                    ..entry
                }),
                Err(error) => {
                    let (path, id) = (self.path.display(), record.id());
                    unreadable.push(format!("{path}: the entry {id} cannot be read ({error})"));
                }
            }
        }
        for why in &mut unreadable {
            why.push_str("; --rebuild makes it again where its run directory is there");
        }
        (entries, unreadable)
    }
}

/// The history, locked, and made empty where there is none; `None`: it cannot be, and is only seen to have changed when it
/// is written.
fn locked(path: &Path) -> Option<File> {
    loop {
        // Nothing waits for the other end of a pipe.
        if path.exists() && !path.is_file() {
            return None;
        }
        let file = File::options().create(true).append(true).open(path).ok()?;
        file.lock().ok()?;
        // One that was replaced meanwhile locks nothing any more.
        let (open, there) = (file.metadata().ok()?, fs::metadata(path).ok());
        let place = |about: &fs::Metadata| (about.dev(), about.ino());
        if there.is_some_and(|there| place(&open) == place(&there)) {
            return Some(file);
        }
    }
}

fn text(path: &Path) -> anyhow::Result<Option<String>> {
    if fs::read(path).is_ok_and(|bytes| bytes.starts_with(SQLITE)) {
        bail!("{}", of_older(path, &path.with_extension("jsonl")));
    }
    file::read(path)
}

/// How the entries of `older`, the history of an older Prony in SQLite, get into `path`.
pub fn of_older(older: &Path, path: &Path) -> String {
    let (older, path) = (older.display(), path.display());
    format!(
        "{older} is of an older Prony. Only entries whose run directories are gone need it; this takes them over:\n  \
         sqlite3 {older} \"{LINES_OF_OLDER}\" >> {path} && rm {older}"
    )
}

/// The digest by which a run is known wherever its directory is: that of how it began.
pub fn digest(dir: &Path) -> anyhow::Result<String> {
    let mut digest = Sha256::new();
    for name in [layout::PLAN, layout::ENVIRONMENT] {
        let path = inside(dir, name)?;
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    Ok(hex(&digest.finalize()))
}

/// The stamp of the files of a run directory: where it changes, its entry is made again. The version of this program is part of
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

    fn entry(id: &str, digest: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            digest: digest.to_owned(),
            ..Entry::default()
        }
    }

    fn history() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        (folder, path)
    }

    fn open(path: &Path) -> HistoryFile {
        HistoryFile::open(path, false).expect("a history")
    }

    fn ids(entries: &[Entry]) -> Vec<(&str, &str)> {
        let ids = entries.iter();
        ids.map(|entry| (&*entry.id, &*entry.digest)).collect()
    }

    #[test]
    fn a_run_took_the_place_of_another_of_its_name_and_minute() {
        let (_folder, path) = history();
        let mut history = open(&path);
        let id = "2026-11-22-0301-tiny-001";
        for (path, digest) in [
            ("/a/tiny-001", "a"),
            ("/b/tiny-001", "b"),
            ("/a/tiny-001", "a"),
        ] {
            history
                .put("x.toml", path, "", &entry(id, digest))
                .expect("kept");
        }
        let (entries, _) = history.entries("x.toml", &[]);
        let second = format!("{id}-2");
        assert_eq!(ids(&entries), [(id, "a"), (second.as_str(), "b")]);
    }

    #[test]
    fn an_entry_in_another_form_is_left_out_and_stays() {
        let (_folder, path) = history();
        let mut history = open(&path);
        history
            .put("x.toml", "/a", "", &entry("a", "a"))
            .expect("kept");
        history
            .put("x.toml", "/b", "", &entry("b", "b"))
            .expect("kept");
        history.entries[0].entry["digest"] = 7.into();
        history.save().expect("written");
        let history = open_after(history, &path);
        let (entries, unreadable) = history.entries("x.toml", &[]);
        assert_eq!(ids(&entries), [("b", "b")]);
        assert!(entries[0].gone);
        assert!(
            unreadable[0].contains("the entry a cannot be read"),
            "{unreadable:?}"
        );
        assert!(history.entries("y.toml", &[]).0.is_empty());
    }

    fn open_after(before: HistoryFile, path: &Path) -> HistoryFile {
        drop(before);
        open(path)
    }

    #[test]
    fn a_half_line_loses_nothing_but_itself() {
        let (_folder, path) = history();
        let mut history = open(&path);
        history
            .put("x.toml", "/a", "", &entry("a", "a"))
            .expect("kept");
        history
            .put("x.toml", "/b", "", &entry("b", "b"))
            .expect("kept");
        history.save().expect("written");
        drop(history);
        let whole = fs::read_to_string(&path).expect("a history");
        let first = whole.find('\n').expect("two lines") + 1;
        for cut in first + 1..whole.len() - 1 {
            fs::write(&path, &whole[..cut]).expect("cut");
            let mut history = open(&path);
            let (entries, unreadable) = history.entries("x.toml", &[]);
            assert_eq!(ids(&entries), [("a", "a")]);
            assert!(unreadable[0].contains("history.jsonl:2: it is no entry"));
            history
                .put("x.toml", "/b", "", &entry("b", "b"))
                .expect("kept");
            history.save().expect("written");
            let history = open_after(history, &path);
            assert_eq!(
                ids(&history.entries("x.toml", &[]).0),
                [("a", "a"), ("b", "b")]
            );
            assert_eq!(history.damaged.len(), 1, "it stays");
            drop(history);
            let history = HistoryFile::open(&path, true).expect("given up");
            assert_eq!((history.entries.len(), history.damaged.len()), (2, 0));
        }
    }

    #[test]
    fn two_that_write_at_once_lose_nothing() {
        let (_folder, path) = history();
        let write = |name: &'static str| {
            let path = path.clone();
            std::thread::spawn(move || {
                for number in 0..20 {
                    let id = format!("{name}{number}");
                    let mut history = open(&path);
                    history
                        .put("x.toml", "/a", "", &entry(&id, &id))
                        .expect("kept");
                    history.save().expect("written");
                }
            })
        };
        for thread in ["a", "b"].map(write) {
            thread.join().expect("it wrote");
        }
        assert_eq!(open(&path).entries.len(), 40);
    }

    #[test]
    fn a_history_of_an_older_version_is_named_with_what_reads_it() {
        let (_folder, path) = history();
        let older = path.with_extension("sqlite");
        fs::write(&older, [SQLITE, &[0; 99]].concat()).expect("a file");
        let error = HistoryFile::open(&older, false).err().expect("refused");
        let said = format!("{error:#}");
        assert!(
            said.contains("of an older Prony") && said.contains(LINES_OF_OLDER),
            "{said}"
        );
    }
}
