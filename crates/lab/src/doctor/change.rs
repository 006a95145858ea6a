//! Mends what can be undone: files of the kernel get another value, and the old one is noted in a file before.
//!
//! Not for: what a person must decide (SMT off takes processors away, services have users).

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use prony_record::{MachineCheck, MachineState};
use serde::{Deserialize, Serialize};

use super::read::{self, TURBO};
use super::tree::Tree;
use crate::folder;

/// Version of the note.
const SCHEMA: u32 = 1;

/// A file of the kernel that gets another value.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The file as the kernel calls it.
    pub path: String,
    /// What it said.
    pub old: String,
    /// What it is to say.
    pub new: String,
}

/// What became of a change.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Done {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// Why it was not made, or not undone; `None`: it was.
    pub refused: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    schema: u32,
    changes: Vec<Change>,
}

/// Settings that are one file each, with the check that tells of them and the value that mends it.
const FILES: [(&str, &str, &str); 3] = [
    ("io_uring switch", "/proc/sys/kernel/io_uring_disabled", "0"),
    (
        "ports",
        "/proc/sys/net/ipv4/ip_local_port_range",
        "1024\t65535",
    ),
    ("somaxconn", "/proc/sys/net/core/somaxconn", "4096"),
];
/// The file of each processor that says its governor, and the governor that mends it.
const GOVERNOR: (&str, &str) = ("cpufreq/scaling_governor", "performance");

/// What would mend the ailments that are read in `tree` and can be undone.
pub fn wanted(tree: &Tree) -> Vec<Change> {
    let ailing = |name: &str, checks: &[MachineCheck]| {
        let of = |check: &&MachineCheck| check.name == name;
        let check = checks.iter().find(of);
        check.is_some_and(|check| check.state == MachineState::Spoils)
    };
    let checks = read::all(tree);
    let mut files: Vec<(String, &str)> = Vec::new();
    if ailing("governor", &checks) {
        let (name, value) = GOVERNOR;
        files.extend(
            tree.processors_with(name)
                .into_iter()
                .map(|file| (file, value)),
        );
    }
    if ailing("turbo", &checks)
        && let Some((file, off)) = TURBO.iter().find(|(file, _)| tree.has(file))
    {
        files.push(((*file).to_owned(), off));
    }
    let single = FILES.iter().filter(|(name, ..)| ailing(name, &checks));
    files.extend(single.map(|(_, file, value)| ((*file).to_owned(), *value)));
    let change = |(path, new): (String, &str)| {
        let old = tree.text(&path).ok()?;
        (old != new).then(|| Change {
            path,
            old,
            new: new.to_owned(),
        })
    };
    files.into_iter().filter_map(change).collect()
}

/// Makes `changes`, each noted in the file `note` before. What a file said first is what the note keeps, however often
/// this is called. Errors: the note cannot be read or written; then nothing was changed beyond what it says.
pub fn make(tree: &Tree, changes: &[Change], note: &Path) -> io::Result<Vec<Done>> {
    let mut noted = noted(note)?;
    let mut done = Vec::new();
    for change in changes {
        let before = noted.clone();
        match noted.iter_mut().find(|known| known.path == change.path) {
            Some(known) => known.new.clone_from(&change.new),
            None => noted.push(change.clone()),
        }
        keep(note, &noted)?;
        let refused = put(tree, &change.path, &change.new).err();
        if refused.is_some() {
            noted = before;
            keep(note, &noted)?;
        }
        done.push(Done {
            change: change.clone(),
            refused,
        });
    }
    Ok(done)
}

/// Puts back what the file `note` says, the last first, and forgets what was put back. A file that says by now what
/// neither of both was is left alone. Errors: the note cannot be read or written, or names what is never changed.
pub fn undo(tree: &Tree, note: &Path) -> io::Result<Vec<Done>> {
    let noted = noted(note)?;
    let mut left = Vec::new();
    let mut done = Vec::new();
    for change in noted.into_iter().rev() {
        let refused = match tree.text(&change.path) {
            Err(why) => Some(why),
            Ok(now) if same(&now, &change.old) => None,
            Ok(now) if same(&now, &change.new) => put(tree, &change.path, &change.old).err(),
            Ok(now) => Some(format!("it says `{now}` by now, which Prony did not write")),
        };
        if refused.is_some() {
            left.push(change.clone());
        }
        done.push(Done { change, refused });
    }
    left.reverse();
    keep(note, &left)?;
    Ok(done)
}

/// Whether two texts of one file mean the same: the kernel writes a tab where a person writes a space.
fn same(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace()
        .eq(other.split_ascii_whitespace())
}

/// Writes a value and sees that it holds.
fn put(tree: &Tree, path: &str, value: &str) -> Result<(), String> {
    let place = tree.place(path);
    // Opened as it is: a file of the kernel is never made.
    let written = File::options().write(true).truncate(true).open(&place);
    let written = written.and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => "it may not be written: run this with sudo".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "it may not be written from here (read-only)".to_owned()
        }
        _ => error.to_string(),
    })?;
    let now = tree.text(path)?;
    match same(&now, value) {
        true => Ok(()),
        false => Err(format!("the kernel took `{value}` and says `{now}`")),
    }
}

/// What was changed and not put back. Errors: it cannot be read, or names a file that is never changed: the note lies
/// where others may be able to write, and is read with great rights.
pub fn noted(note: &Path) -> io::Result<Vec<Change>> {
    let bytes = match fs::read(note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        bytes => bytes?,
    };
    let wrong = |why: String| io::Error::other(format!("{}: {why}", note.display()));
    let read: Note = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    if read.schema != SCHEMA {
        let found = read.schema;
        return Err(wrong(format!(
            "it has schema {found}, and this Prony reads schema {SCHEMA}"
        )));
    }
    match read
        .changes
        .iter()
        .find(|change| !is_changed_here(&change.path))
    {
        Some(other) => Err(wrong(format!(
            "it names {:?}, which Prony never changes",
            other.path
        ))),
        None => Ok(read.changes),
    }
}

fn is_changed_here(path: &str) -> bool {
    let of_processor = || {
        let rest = path.strip_prefix("/sys/devices/system/cpu/cpu")?;
        let (number, file) = rest.split_once('/')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && file == GOVERNOR.0).then_some(())
    };
    FILES.iter().any(|(_, file, _)| *file == path)
        || TURBO.iter().any(|(file, _)| *file == path)
        || of_processor().is_some()
}

/// Writes the note, durably and at once; removes it where it says nothing.
fn keep(note: &Path, changes: &[Change]) -> io::Result<()> {
    if changes.is_empty() {
        return match fs::remove_file(note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let dir = note.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let text = serde_json::to_vec_pretty(&Note {
        schema: SCHEMA,
        changes: changes.to_vec(),
    })?;
    let name = note.file_name().unwrap_or_default().to_string_lossy();
    folder::write(dir, &name, &text, true).map_err(io::Error::other)
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
