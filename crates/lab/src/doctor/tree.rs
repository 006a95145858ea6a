//! The files of a machine that are read, and the results of a check of it.
//!
//! Not for: which files are read ([`super::read`]), or what is measured ([`super::measure`]).

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use prony_record::{MachineCheck, MachineState};

/// Bytes of one file that are read at the most.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The folder in which `/proc` and `/sys` lie: `/`, or one that was made up for a test or copied from a machine.
#[derive(Clone, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// This machine.
    pub fn here() -> Tree {
        Tree::at("/")
    }

    /// `root` in place of `/`.
    pub fn at(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into() }
    }

    /// The place of the file that the kernel calls `path`, such as `/proc/stat`.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Whether `path` is there.
    pub fn has(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Its text without white space at both ends, at most 1 MiB. The error names file and reason.
    pub fn text(&self, path: &str) -> Result<String, String> {
        let read = |place: &Path| -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let file = File::open(place)?;
            file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let place = self.place(path);
        let bytes = read(&place).map_err(|error| because(&place, &error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The whole number that is its text. The error names file and reason.
    pub fn number(&self, path: &str) -> Result<u64, String> {
        let text = self.text(path)?;
        let wrong = |_| format!("{}: `{text}` is no number", self.place(path).display());
        text.parse().map_err(wrong)
    }

    /// The names in a folder, sorted. The error names folder and reason.
    pub fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let place = self.place(path);
        let entries = fs::read_dir(&place).map_err(|error| because(&place, &error))?;
        let names = entries.flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The folders of the processors, `/sys/devices/system/cpu/cpu0` and so on, that have the file `name` in them.
    pub(crate) fn processors_with(&self, name: &str) -> Vec<String> {
        const FOLDER: &str = "/sys/devices/system/cpu";
        let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        let names = self.names(FOLDER).unwrap_or_default().into_iter();
        let processors = names.filter(|name| name.strip_prefix("cpu").is_some_and(is_number));
        let files = processors.map(|processor| format!("{FOLDER}/{processor}/{name}"));
        files.filter(|file| self.has(file)).collect()
    }
}

fn because(place: &Path, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => "it is not there".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
    };
    format!("{}: {reason}", place.display())
}

/// A thing that spoils nothing.
pub(super) fn healthy(name: &str, found: impl Into<String>) -> MachineCheck {
    MachineCheck {
        name: name.to_owned(),
        state: MachineState::Healthy,
        found: found.into(),
        ..MachineCheck::default()
    }
}

/// A thing of which nothing is known.
pub(super) fn unknown(name: &str, why: impl Into<String>) -> MachineCheck {
    MachineCheck {
        state: MachineState::Unknown,
        ..healthy(name, why)
    }
}

/// A kind of ailment: what is said of it whenever it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ailment<'a> {
    pub name: &'a str,
    pub brief: &'a str,
    pub effect: &'a str,
    pub remedy: &'a str,
}

impl Ailment<'_> {
    /// What was found, which spoils where it `is_ailing`.
    pub fn judged(&self, is_ailing: bool, found: impl Into<String>) -> MachineCheck {
        match is_ailing {
            true => self.found(found),
            false => healthy(self.name, found),
        }
    }

    pub fn found(&self, found: impl Into<String>) -> MachineCheck {
        MachineCheck {
            name: self.name.to_owned(),
            state: MachineState::Spoils,
            found: found.into(),
            brief: self.brief.to_owned(),
            effect: self.effect.to_owned(),
            remedy: self.remedy.to_owned(),
        }
    }
}
