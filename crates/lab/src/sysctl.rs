//! Kernel settings that have another value during a trial: read, written, and put back
//! whatever happens to the trial.
//!
//! The supervisor writes before its trial and puts back after it, also when it ends because
//! its parent is gone. The run notes the old values in its directory before it starts the
//! supervisor, and puts back what that did not; when the run itself is killed together
//! with the supervisor, `--resume` does it.
//!
//! Not for: which values are tried (a setting's `sysctl`), or whether they may be written
//! (that is a fact of the machine, [`crate::plan::Facts`]).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use prony_record::{Cell, PlannedSetting};

/// File of the old values in a run directory, there only while a trial has others.
const FILE: &str = "sysctl.json";

/// Values by the names of kernel settings.
pub type Values = BTreeMap<String, String>;

/// What this process has changed: the old values.
static CHANGED: Mutex<Values> = Mutex::new(Values::new());

/// Longest name of a kernel setting.
const NAME_BYTES_MAX: usize = 200;

/// Whether `name` is written as `sysctl` writes the names of kernel settings, and can name nothing else: names come
/// from experiments and, when a run is resumed, from files that anyone may have made.
pub fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        !part.is_empty() && part.chars().all(plain)
    };
    name.len() <= NAME_BYTES_MAX && name.contains('.') && name.split('.').all(part)
}

fn path(name: &str) -> io::Result<PathBuf> {
    if !is_name(name) {
        let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
        return Err(io::Error::other(format!(
            "{shown:?} is no name of a kernel setting"
        )));
    }
    Ok(Path::new("/proc/sys").join(name.replace('.', "/")))
}

fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(path(name)?, value)
}

/// The present value, its parts separated by single spaces.
pub fn read(name: &str) -> io::Result<String> {
    let text = fs::read_to_string(path(name)?)?;
    Ok(text.split_ascii_whitespace().collect::<Vec<_>>().join(" "))
}

/// Whether the caller may write it.
pub fn is_writable(name: &str) -> bool {
    use rustix::fs::{Access, access};
    path(name).is_ok_and(|path| access(path, Access::WRITE_OK).is_ok())
}

/// The values that the settings of `cell` give kernel settings.
pub fn wanted(cell: &Cell, settings: &[PlannedSetting]) -> Values {
    let pair = |setting: &PlannedSetting| {
        let value = cell.settings.get(&setting.name)?;
        Some((setting.sysctl.clone()?, value.clone()))
    };
    settings.iter().filter_map(pair).collect()
}

/// Writes the values; [`put_back`] undoes it. The error says what could not be done, and
/// then nothing is changed.
pub fn change(values: &Values) -> Result<(), String> {
    for (name, value) in values {
        let wrong = |error: io::Error| format!("{name} cannot be set to {value}: {error}");
        let outcome = read(name).and_then(|old| {
            if old != *value {
                write(name, value)?;
                lock().insert(name.clone(), old);
            }
            Ok(())
        });
        if let Err(error) = outcome {
            put_back();
            return Err(wrong(error));
        }
    }
    Ok(())
}

/// Gives every kernel setting that this process has changed its old value.
pub fn put_back() {
    for (name, old) in std::mem::take(&mut *lock()) {
        // What was allowed a moment ago is allowed still; if not, the run tries too.
        let _ = write(&name, &old);
    }
}

fn lock() -> std::sync::MutexGuard<'static, Values> {
    // Another thread's panic in the middle leaves a map that is still whole.
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The run's side of one trial.
#[derive(Debug)]
pub struct Note {
    file: PathBuf,
}

impl Note {
    /// Notes the present values of what a trial is going to change.
    pub fn write(run_dir: &Path, values: &Values) -> io::Result<Option<Note>> {
        if values.is_empty() {
            return Ok(None);
        }
        let mut old = Values::new();
        for name in values.keys() {
            old.insert(name.clone(), read(name)?);
        }
        let file = run_dir.join(FILE);
        fs::write(&file, serde_json::to_vec(&old)?)?;
        fs::File::open(&file)?.sync_all()?;
        Ok(Some(Note { file }))
    }

    /// What a run that was killed noted in its directory, if it did. `settings`: those of its plan. Errors: the note
    /// cannot be read, or names a kernel setting that none of them changes; then nothing is put back.
    pub fn left_in(run_dir: &Path, settings: &[PlannedSetting]) -> io::Result<Option<Note>> {
        let file = run_dir.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        let old: Values = serde_json::from_slice(&fs::read(&file)?)?;
        let changed = |name: &String| settings.iter().any(|s| s.sysctl.as_ref() == Some(name));
        if let Some(name) = old.keys().find(|name| !is_name(name) || !changed(name)) {
            let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
            return Err(io::Error::other(format!(
                "{} names {shown:?}, which no setting of the run changes: look at it, and remove it",
                file.display()
            )));
        }
        Ok(Some(Note { file }))
    }

    /// Puts back what still has another value, and removes the note.
    pub fn settle(self) -> io::Result<()> {
        let old: Values = serde_json::from_slice(&fs::read(&self.file)?)?;
        for (name, value) in &old {
            if read(name)? != *value {
                write(name, value)?;
            }
        }
        fs::remove_file(&self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "kernel.sched_rt_runtime_us";

    #[test]
    fn only_settings_of_the_cell_with_a_kernel_setting_are_wanted() {
        let setting = |name: &str, sysctl: Option<&str>| PlannedSetting {
            name: name.to_owned(),
            sysctl: sysctl.map(str::to_owned),
            ..PlannedSetting::default()
        };
        let settings = [
            setting("throttle", Some(NAME)),
            setting("other", Some("kernel.other")),
            setting("threads", None),
        ];
        let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let cell = Cell {
            settings: [("throttle", "-1"), ("threads", "2")].map(pair).into(),
            ..Cell::default()
        };
        let expected = BTreeMap::from([(NAME.to_owned(), "-1".to_owned())]);
        assert_eq!(wanted(&cell, &settings), expected);
    }

    #[test]
    fn a_setting_that_is_not_there_is_named_and_nothing_is_changed() {
        let values = BTreeMap::from([("kernel.no_such_thing".to_owned(), "1".to_owned())]);
        let error = change(&values).unwrap_err();
        assert!(
            error.starts_with("kernel.no_such_thing cannot be set to 1: "),
            "{error}"
        );
        assert!(!is_writable("kernel.no_such_thing"));
    }

    #[test]
    fn a_note_is_there_until_it_is_settled() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            Note::write(folder.path(), &Values::new())
                .unwrap()
                .is_none()
        );
        let now = read("kernel.ostype").expect("every Linux says so");
        let values = BTreeMap::from([("kernel.ostype".to_owned(), "other".to_owned())]);
        assert!(Note::write(folder.path(), &values).unwrap().is_some());
        let settings = [PlannedSetting {
            sysctl: Some("kernel.ostype".to_owned()),
            ..PlannedSetting::default()
        }];
        let left = |settings: &[PlannedSetting]| Note::left_in(folder.path(), settings);
        let error = left(&[]).unwrap_err().to_string();
        assert!(
            error.contains("which no setting of the run changes"),
            "{error}"
        );
        left(&settings)
            .unwrap()
            .expect("what was noted")
            .settle()
            .unwrap();
        assert!(left(&settings).unwrap().is_none());
        assert_eq!(read("kernel.ostype").unwrap(), now);
    }

    #[test]
    fn a_name_in_a_run_directory_wrote_to_any_file() {
        let folder = tempfile::Builder::new().prefix("prony").tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "whole").unwrap();
        // Dots become slashes, so that all of these named the file.
        let plain = victim.display().to_string();
        for name in [
            &plain,
            &plain.replace('/', "."),
            "../../etc/passwd",
            "kernel",
            "a..b",
            "",
        ] {
            let values = Values::from([(name.to_owned(), "changed".to_owned())]);
            let settings = [PlannedSetting {
                sysctl: Some(name.to_owned()),
                ..PlannedSetting::default()
            }];
            fs::write(
                folder.path().join(FILE),
                serde_json::to_vec(&values).unwrap(),
            )
            .unwrap();
            assert!(Note::left_in(folder.path(), &settings).is_err(), "{name}");
            let note = Note {
                file: folder.path().join(FILE),
            };
            assert!(
                note.settle().is_err() && change(&values).is_err() && !is_writable(name),
                "{name}"
            );
            assert!(Note::write(folder.path(), &values).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
    }
}
