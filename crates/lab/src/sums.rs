//! Digests of the files of a folder, in the form of `sha256sum`, which reads them, too (`sha256sum -c records.sha256`).
//!
//! [`seal`] keeps those of the records when a run ends, so that a byte that is changed later is seen. Not for: keeping
//! anybody from changing both.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use prony_record::layout;
use sha2::{Digest as _, Sha256};

use crate::folder;
use crate::store::{StoreError, at};

/// Most files of which a list is read.
const FILES_MAX: usize = 1 << 20;
/// Bytes that are read of a file at a time.
const PIECE_BYTES: usize = 1 << 16;

/// What a file of digests says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sums {
    /// Its first comment, without `# `; empty where there is none.
    pub head: String,
    /// Digest in hexadecimal digits, and name, relative to the folder.
    pub files: Vec<(String, String)>,
}

/// What a file is against its digest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// It is as it was.
    Same,
    /// Other bytes.
    Changed,
    /// It is not there.
    Missing,
}

/// Writes the digests of the records in `dir` to [`layout::RECORDS_SUMS`].
pub fn seal(dir: &Path) -> Result<(), StoreError> {
    let mut names = vec![
        layout::PLAN.to_owned(),
        layout::ENVIRONMENT.to_owned(),
        layout::TRIALS.to_owned(),
    ];
    names.extend(folder::listed(dir, layout::HISTOGRAMS, ".json")?);
    names.extend(folder::listed(dir, layout::PROFILES, ".folded")?);
    write(
        dir,
        layout::RECORDS_SUMS,
        "the records when the run ended",
        &names,
    )
}

/// Removes the digests of the records when a run is resumed.
pub fn unseal(dir: &Path) -> Result<(), StoreError> {
    let path = dir.join(layout::RECORDS_SUMS);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Unwritten {
            path,
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Writes the digests of the files called `names` in `dir` to `file`, below the comment `head`.
pub fn write(dir: &Path, file: &str, head: &str, names: &[String]) -> Result<(), StoreError> {
    let mut text = format!("# {}\n", head.replace('\n', " "));
    for name in names {
        let path = folder::inside(dir, name)?;
        text.push_str(&format!("{}  {name}\n", digest(&path).map_err(at(&path))?));
    }
    // Without its lines a run would seem to have no records to be held to.
    folder::write(dir, file, text.as_bytes(), file == layout::RECORDS_SUMS)
}

/// Reads a file of digests; `None` where there is none.
pub fn read(dir: &Path, file: &str) -> Result<Option<Sums>, StoreError> {
    let path = folder::inside(dir, file)?;
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(&path)(error)),
    };
    let mut sums = Sums::default();
    for (index, line) in text.lines().take(FILES_MAX).enumerate() {
        if let Some(comment) = line.strip_prefix('#') {
            if sums.head.is_empty() {
                comment.trim().clone_into(&mut sums.head);
            }
            continue;
        }
        let (digest, name) = line.split_once("  ").unwrap_or((line, ""));
        let is_digest = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        let inside = Path::new(name)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_digest || name.is_empty() || !inside {
            return Err(StoreError::Damaged {
                path,
                line: Some(index + 1),
                reason:
                    "it is to be a SHA-256 in 64 digits, two spaces, and the name of a file here"
                        .to_owned(),
            });
        }
        sums.files.push((digest.to_owned(), name.to_owned()));
    }
    Ok(Some(sums))
}

impl Sums {
    /// What the files in `dir` are against their digests, in the order of the list.
    pub fn states(&self, dir: &Path) -> Result<Vec<(&str, State)>, StoreError> {
        let state = |(wanted, name): &'_ (String, String)| {
            let path = folder::inside(dir, name)?;
            match digest(&path) {
                Ok(found) if found == wanted.to_lowercase() => Ok(State::Same),
                Ok(_) => Ok(State::Changed),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Missing),
                Err(error) => Err(at(&path)(error)),
            }
        };
        let all = self.files.iter();
        all.map(|file| Ok((file.1.as_str(), state(file)?)))
            .collect()
    }
}

fn digest(path: &Path) -> io::Result<String> {
    digest_of(File::open(path)?)
}

/// SHA-256 of all that `file` has, in hexadecimal, read piece by piece.
pub fn digest_of(mut file: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(&piece[..read]),
        }
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_and_a_missing_file_are_told_from_one_that_is_as_it_was() {
        let dir = std::env::temp_dir().join(format!("prony-sums-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder");
        assert_eq!(read(&dir, "sums").expect("none"), None);
        let names = ["a", "b", "c"].map(str::to_owned);
        for name in &names {
            fs::write(dir.join(name), "abc").expect("a file");
        }
        write(&dir, "sums", "by hand", &names).expect("written");
        let text = fs::read_to_string(dir.join("sums")).expect("text");
        // The published test vector of SHA-256 (FIPS 180-2, appendix B.1).
        let vector = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a";
        assert_eq!(text.lines().nth(1), Some(vector));
        fs::write(dir.join("b"), "abd").expect("changed");
        fs::remove_file(dir.join("c")).expect("gone");
        let sums = read(&dir, "sums").expect("read").expect("there");
        assert_eq!(sums.head, "by hand");
        let states = sums.states(&dir).expect("states");
        assert_eq!(
            states,
            [
                ("a", State::Same),
                ("b", State::Changed),
                ("c", State::Missing)
            ]
        );
        for wrong in [
            "abc  a",
            &vector.replace("  a", "  ../a"),
            &vector.replace("  a", ""),
        ] {
            fs::write(dir.join("sums"), format!("# x\n{wrong}\n")).expect("written");
            let error = read(&dir, "sums").expect_err("refused").to_string();
            assert!(error.contains("sums:2: "), "{error}");
        }
        fs::remove_dir_all(&dir).expect("removed");
    }
}
