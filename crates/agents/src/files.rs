//! Files that a load names: the controller sends what is in them, and the agent keeps it in memory, under a name that the load's own
//! code can open. An agent opens no path that a controller names.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prony_record::{LoadSpec, LoadTls};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::message::{ToAgent, WorkFile};

/// Bytes of a file in one message.
pub const PART_BYTES: usize = 192 << 10;
/// Bytes of all files of a load.
const BYTES_MAX: usize = 1 << 30;

/// Why a file cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum WorkFileError {
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// They are too large.
    #[error("the files of the load have more than {} MiB, which is not sent to agents", BYTES_MAX >> 20)]
    TooLarge,
}

/// The places of files in a load.
fn places(spec: &mut LoadSpec) -> Vec<(WorkFile, &mut PathBuf)> {
    let mut places = Vec::new();
    if let Some(data) = &mut spec.data {
        places.push((WorkFile::Data, &mut data.path));
    }
    if let Some(LoadTls {
        authorities,
        identity,
        ..
    }) = &mut spec.tls
    {
        let authorities = (0..).zip(authorities);
        places.extend(authorities.map(|(place, path)| (WorkFile::Authority(place), path)));
        if let Some((certificate, key)) = identity {
            places.push((WorkFile::Certificate, certificate));
            places.push((WorkFile::Key, key));
        }
    }
    places
}

/// The messages that bring an agent the files of a load.
///
/// # Errors
/// One cannot be read, or all together are too large.
pub fn parts(spec: &LoadSpec) -> Result<Vec<ToAgent>, WorkFileError> {
    let mut messages = Vec::new();
    let mut left = BYTES_MAX;
    for (file, path) in places(&mut spec.clone()) {
        let read = |error| WorkFileError::Read {
            path: path.clone(),
            error,
        };
        let bytes = std::fs::read(&*path).map_err(read)?;
        left = left
            .checked_sub(bytes.len())
            .ok_or(WorkFileError::TooLarge)?;
        // One that is empty is one, too.
        let parts = bytes
            .chunks(PART_BYTES)
            .chain(bytes.is_empty().then_some(&[][..]));
        messages.extend(parts.map(|part| ToAgent::File {
            file,
            part: STANDARD.encode(part),
        }));
    }
    Ok(messages)
}

/// Takes the names of the files out of a load: what they are called here is nothing to an agent.
pub fn without_names(spec: &mut LoadSpec) {
    for (_, path) in places(spec) {
        *path = PathBuf::new();
    }
}

/// The files that an agent was sent.
#[derive(Debug, Default)]
pub struct SentFiles {
    files: BTreeMap<WorkFile, File>,
    bytes: usize,
}

impl SentFiles {
    /// Appends a part of one.
    ///
    /// # Errors
    /// It is not base64, too much, or there is no memory for it.
    pub fn append(&mut self, file: WorkFile, part: &str) -> Result<(), String> {
        let part = STANDARD.decode(part);
        let part = part.map_err(|error| format!("a file that was sent is broken: {error}"))?;
        self.bytes += part.len();
        if self.bytes > BYTES_MAX {
            return Err(WorkFileError::TooLarge.to_string());
        }
        let kept = match self.files.entry(file) {
            std::collections::btree_map::Entry::Occupied(kept) => kept.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let memory = memfd_create("prony", MemfdFlags::CLOEXEC);
                place.insert(File::from(memory.map_err(|error| error.to_string())?))
            }
        };
        kept.write_all(&part)
            .map_err(|error| format!("a file that was sent cannot be kept: {error}"))
    }

    /// Has `spec` name these files in place of its own.
    ///
    /// # Errors
    /// It names one that was not sent.
    pub fn name_in(&self, spec: &mut LoadSpec) -> Result<(), String> {
        for (file, path) in places(spec) {
            let sent = self.files.get(&file);
            let sent = sent.ok_or_else(|| format!("a file was not sent: {file:?}"))?;
            *path = Path::new("/proc/self/fd").join(sent.as_raw_fd().to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prony_record::LoadData;

    use super::*;

    #[test]
    fn a_file_arrives_as_it_is_and_no_other_path_is_opened() {
        let file = std::env::temp_dir().join(format!("prony-agents-{}.csv", std::process::id()));
        let text: String = (0..60_000).map(|n| format!("{n},ä\n")).collect();
        std::fs::write(&file, &text).unwrap();
        let mut spec = LoadSpec {
            data: Some(LoadData {
                path: file.clone(),
                ..LoadData::default()
            }),
            ..LoadSpec::default()
        };
        let messages = parts(&spec).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(messages.len() > 2);
        let mut sent = SentFiles::default();
        assert!(
            sent.name_in(&mut spec.clone())
                .unwrap_err()
                .contains("was not sent")
        );
        for message in messages {
            let ToAgent::File { file, part } = message else {
                panic!("{message:?}")
            };
            sent.append(file, &part).unwrap();
        }
        sent.name_in(&mut spec).unwrap();
        let path = &spec.data.as_ref().unwrap().path;
        assert!(path.starts_with("/proc/self/fd"));
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
        assert!(
            sent.append(WorkFile::Key, "no base64!")
                .unwrap_err()
                .contains("broken")
        );
    }
}
