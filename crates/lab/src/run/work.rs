//! The folders that trials work in: one fresh one a trial, under one for the run in
//! the system's temporary folder. (Not in the run directory: a server that gives up
//! its rights could often not reach it there.)

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The folder of a run. What a killed run left in it is removed when it is opened,
/// and all of it when it is dropped.
#[derive(Debug)]
pub struct WorkFolder(PathBuf);

impl WorkFolder {
    /// The folder of the run in `run_dir` (absolute): always the same one, so that a
    /// resumed run finds what it has to remove.
    pub fn open(run_dir: &Path) -> io::Result<WorkFolder> {
        let digest = Sha256::digest(run_dir.as_os_str().as_encoded_bytes());
        let name: String = digest
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let path = std::env::temp_dir().join(format!("prony-{name}"));
        if let Ok(metadata) = std::fs::symlink_metadata(&path) {
            let own = metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw();
            if !own {
                // Its name can be guessed: never follow what another user put there.
                return Err(io::Error::other(format!(
                    "{} belongs to another user",
                    path.display()
                )));
            }
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir(&path)?;
        Ok(WorkFolder(path))
    }

    /// The folder of one trial, not made yet.
    pub fn of(&self, stem: &str) -> PathBuf {
        self.0.join(stem)
    }

    /// Removes the folder of one trial.
    pub fn remove(&self, stem: &str) {
        // What cannot be removed now is removed with the run's folder, or stays in /tmp.
        let _ = std::fs::remove_dir_all(self.of(stem));
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
