//! A bundle as bytes and back: pure, and made for files of strangers.
//!
//! ```text
//! zstd( tar( manifest.json, blobs/SHA256, blobs/SHA256, … ) )
//! ```
//!
//! The names of files stand in the manifest, each with the digest of its content; the archive itself has no name that
//! anything is written to. [`read`] gives all of a bundle or nothing: sizes and counts are limited while it is unpacked in
//! memory, and every digest is checked. The same files give the same bytes.
//!
//! Not for: reading or writing files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Cursor, Read as _};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, EntryType, Header};
use thiserror::Error;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, InBuffer, OutBuffer};

use super::counts;

/// Version of the manifest.
pub const SCHEMA: u32 = 1;
/// What the first four bytes of a bundle are: those of zstd.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Name of the first entry.
const MANIFEST: &str = "manifest.json";
/// What the names of all others begin with.
const BLOBS: &str = "blobs/";
/// Level of compression: records are packed once and kept for years.
const LEVEL: i32 = 19;
/// Window of compression and decompression, as a power of two: what a reader must have in memory.
const WINDOW_LOG: u32 = 26;
/// Bytes that are unpacked at a time.
const STEP_BYTES: usize = 1 << 18;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1_000;

/// What a bundle may be, at the most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the file.
    pub packed_bytes_max: usize,
    /// Bytes of the archive in it, and of all its files together.
    pub bytes_max: u64,
    /// Files.
    pub files_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            packed_bytes_max: 64 << 20,
            bytes_max: 512 << 20,
            files_max: 100_000,
        }
    }
}

/// What is wrong with a bundle.
#[derive(Debug, Eq, Error, PartialEq)]
pub enum Fault {
    /// It does not begin as one does.
    #[error("not a bundle: it does not begin with the four bytes of zstd")]
    Magic,
    /// It ends in the middle.
    #[error("it is cut off")]
    CutOff,
    /// It is damaged, or no archive.
    #[error("it cannot be unpacked: {0}")]
    Damaged(String),
    /// It is larger than what is read.
    #[error("it is too large: {what}, and at most {max} are read")]
    TooLarge {
        /// What is too many.
        what: String,
        /// The limit.
        max: u64,
    },
    /// An entry of the archive is of a kind that has no place in it.
    #[error(
        "its entry `{0}` is not a plain file: links, devices, folders and extended headers are refused"
    )]
    Kind(String),
    /// An entry of the archive has a name that has no place in it.
    #[error("its entry `{0}` has no place in a bundle")]
    Name(String),
    /// There twice.
    #[error("`{0}` is in it twice")]
    Twice(String),
    /// A file's path leads out of the folder, or into another file.
    #[error(
        "its file `{0}` may not be written: a path must lie below run/ or source/, without `..`, and is no other file's folder"
    )]
    Path(String),
    /// A file's content is not there.
    #[error("`{0}` is not in it, although it is to be")]
    Missing(String),
    /// A content is not what its digest says.
    #[error("the content of `{0}` does not match its digest")]
    Digest(String),
    /// Another version.
    #[error("it has schema {0}, and this Prony reads schema {SCHEMA}")]
    Schema(u64),
}

/// What a bundle says of itself.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Title of the run.
    pub title: String,
    /// Start of the run, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Version of the Prony that measured.
    pub prony_version: String,
    /// Path of the packed experiment; empty: it is not in the bundle.
    pub experiment: String,
    /// Whether the sources are those that were measured, in a sentence.
    pub sources: String,
    /// All files, by path.
    pub files: Vec<Listed>,
}

/// A file of the manifest.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Listed {
    /// Its path: below `run/`, or below `source/`.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// Length of its content.
    pub bytes: u64,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// `counts`: its blob has the pairs of a histogram as differences; empty: its blob is its content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub coding: String,
}

/// A file and its content.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct File {
    /// Its path in the bundle.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub executable: bool,
}

/// The bytes of a bundle of `files`, whose `manifest` needs no list of them yet.
pub fn write(mut manifest: Manifest, mut files: Vec<File>) -> Result<Vec<u8>, Fault> {
    files.sort();
    manifest.schema = SCHEMA;
    let mut blobs: Vec<(String, Vec<u8>)> = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files {
        let sha256 = digest(&file.bytes);
        let listed = Listed {
            bytes: file.bytes.len() as u64,
            executable: file.executable,
            sha256: sha256.clone(),
            path: file.path,
            coding: String::new(),
        };
        let coded = counts::coded(&file.bytes);
        let coding = if coded.is_some() { counts::NAME } else { "" };
        if seen.insert(sha256.clone()) {
            blobs.push((sha256, coded.unwrap_or(file.bytes)));
        }
        manifest.files.push(Listed {
            coding: coding.to_owned(),
            ..listed
        });
    }
    check_paths(&manifest.files)?;
    let text = serde_json::to_vec(&manifest).map_err(|e| Fault::Damaged(e.to_string()))?;
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, MANIFEST, &text)?;
    for (name, bytes) in &blobs {
        append(&mut archive, &format!("{BLOBS}{name}"), bytes)?;
    }
    let archive = archive.into_inner().map_err(damaged)?;
    compressed(&archive)
}

/// The files of a bundle, which may be anybody's.
pub fn read(packed: &[u8], limits: &Limits) -> Result<(Manifest, Vec<File>), Fault> {
    if packed.len() > limits.packed_bytes_max {
        return Err(Fault::TooLarge {
            what: format!("{} bytes", packed.len()),
            max: limits.packed_bytes_max as u64,
        });
    }
    let archive = decompressed(packed, limits.bytes_max)?;
    let (manifest, mut blobs) = entries(&archive, limits)?;
    check_paths(&manifest.files)?;
    let all: u64 = manifest
        .files
        .iter()
        .fold(0, |sum, file| sum.saturating_add(file.bytes));
    if all > limits.bytes_max {
        return Err(Fault::TooLarge {
            what: format!("{all} bytes in its files"),
            max: limits.bytes_max,
        });
    }
    let mut contents: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let mut files = Vec::with_capacity(manifest.files.len());
    for listed in &manifest.files {
        if !contents.contains_key(&*listed.sha256) {
            let blob = blobs.remove(&*listed.sha256);
            let blob = blob.ok_or_else(|| Fault::Missing(listed.path.clone()))?;
            contents.insert(&listed.sha256, content(listed, blob)?);
        }
        let bytes = contents.get(&*listed.sha256).cloned().unwrap_or_default();
        if bytes.len() as u64 != listed.bytes {
            return Err(Fault::Digest(listed.path.clone()));
        }
        files.push(File {
            path: listed.path.clone(),
            bytes,
            executable: listed.executable,
        });
    }
    match blobs.into_keys().next() {
        Some(unused) => Err(Fault::Name(format!("{BLOBS}{unused}"))),
        None => Ok((manifest, files)),
    }
}

/// The content that a blob stands for, which is what its digest says.
fn content(listed: &Listed, blob: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let bytes = match listed.coding.as_str() {
        "" => Some(blob),
        counts::NAME => counts::decoded(&blob, listed.bytes),
        _ => None,
    };
    bytes
        .filter(|bytes| digest(bytes) == listed.sha256)
        .ok_or_else(|| Fault::Digest(listed.path.clone()))
}

/// SHA-256 in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn damaged(error: std::io::Error) -> Fault {
    Fault::Damaged(error.to_string())
}

fn append(archive: &mut Builder<Vec<u8>>, name: &str, bytes: &[u8]) -> Result<(), Fault> {
    // Whose it is and when it was made are no part of it, so that the same files give the same bytes.
    let mut header = Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_entry_type(EntryType::Regular);
    archive
        .append_data(&mut header, name, bytes)
        .map_err(damaged)
}

/// The manifest, and what else lies in the archive by digest.
fn entries(
    archive: &[u8],
    limits: &Limits,
) -> Result<(Manifest, BTreeMap<String, Vec<u8>>), Fault> {
    let mut archive = Archive::new(Cursor::new(archive));
    let mut manifest = None;
    let mut blobs = BTreeMap::new();
    // Raw: a long name or a link that an extended header brings is an entry of its own, and refused.
    for entry in archive.entries().map_err(damaged)?.raw(true) {
        let mut entry = entry.map_err(damaged)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular {
            return Err(Fault::Kind(name));
        }
        if blobs.len() >= limits.files_max {
            return Err(Fault::TooLarge {
                what: format!("more than {} entries", blobs.len()),
                max: limits.files_max as u64,
            });
        }
        let size = entry.size();
        let mut bytes = Vec::new();
        // What is read is in memory already: a length that is only declared allocates nothing.
        entry.read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() as u64 != size {
            return Err(Fault::CutOff);
        }
        let Some(_) = &manifest else {
            if name != MANIFEST {
                return Err(Fault::Name(name));
            }
            manifest = Some(parsed(&bytes, limits)?);
            continue;
        };
        let digest = name.strip_prefix(BLOBS).filter(|digest| is_digest(digest));
        let Some(digest) = digest else {
            return Err(if name == MANIFEST {
                Fault::Twice(name)
            } else {
                Fault::Name(name)
            });
        };
        if blobs.insert(digest.to_owned(), bytes).is_some() {
            return Err(Fault::Twice(name));
        }
    }
    Ok((manifest.ok_or(Fault::Missing(MANIFEST.to_owned()))?, blobs))
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn parsed(bytes: &[u8], limits: &Limits) -> Result<Manifest, Fault> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let wrong = |error: serde_json::Error| Fault::Damaged(format!("{MANIFEST}: {error}"));
    let version: Version = serde_json::from_slice(bytes).map_err(wrong)?;
    if version.schema != u64::from(SCHEMA) {
        return Err(Fault::Schema(version.schema));
    }
    let manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
    if manifest.files.len() > limits.files_max {
        return Err(Fault::TooLarge {
            what: format!("{} files", manifest.files.len()),
            max: limits.files_max as u64,
        });
    }
    Ok(manifest)
}

/// Every path lies below one of the two folders, once, and none is the folder of another.
fn check_paths(files: &[Listed]) -> Result<(), Fault> {
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for file in files {
        let path = file.path.as_str();
        let plain = Path::new(path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        // Components pass over `a//b` and `a/./b`; the same file would have two names.
        let same = !path.split('/').any(|part| part.is_empty() || part == ".");
        let inside = path.starts_with("run/") || path.starts_with("source/");
        let readable =
            path.len() <= PATH_BYTES_MAX && !path.chars().any(|c| c.is_control() || c == '\\');
        if !(plain && same && inside && readable) {
            return Err(Fault::Path(path.to_owned()));
        }
        if !all.insert(path) {
            return Err(Fault::Twice(path.to_owned()));
        }
    }
    for path in &all {
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(folder) = folders.find(|folder| all.contains(folder)) {
            return Err(Fault::Path(folder.to_owned()));
        }
    }
    Ok(())
}

fn zstd_said(code: usize) -> Fault {
    Fault::Damaged(zstd_safe::get_error_name(code).to_owned())
}

fn compressed(archive: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut context = CCtx::create();
    let parameters = [
        CParameter::CompressionLevel(LEVEL),
        CParameter::WindowLog(WINDOW_LOG),
        CParameter::ChecksumFlag(true),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).map_err(zstd_said)?;
    }
    let mut packed = vec![0; zstd_safe::compress_bound(archive.len())];
    let made = context
        .compress2(&mut packed[..], archive)
        .map_err(zstd_said)?;
    packed.truncate(made);
    Ok(packed)
}

/// The archive in `packed`, of at most `bytes_max` bytes.
fn decompressed(packed: &[u8], bytes_max: u64) -> Result<Vec<u8>, Fault> {
    if packed.get(..MAGIC.len()) != Some(&MAGIC[..]) {
        return Err(Fault::Magic);
    }
    let mut context = DCtx::create();
    context
        .set_parameter(DParameter::WindowLogMax(WINDOW_LOG))
        .map_err(zstd_said)?;
    let mut input = InBuffer::around(packed);
    let mut archive = Vec::new();
    let mut step = vec![0; STEP_BYTES];
    loop {
        let mut output = OutBuffer::around(&mut step[..]);
        let left = context
            .decompress_stream(&mut output, &mut input)
            .map_err(zstd_said)?;
        let made = output.pos();
        if (archive.len() + made) as u64 > bytes_max {
            return Err(Fault::TooLarge {
                what: format!("more than {bytes_max} bytes unpacked"),
                max: bytes_max,
            });
        }
        archive.extend_from_slice(&step[..made]);
        let is_read = input.pos == packed.len();
        match (left, is_read) {
            (0, true) => return Ok(archive),
            (0, false) => return Err(Fault::Damaged("bytes follow its end".to_owned())),
            // Nothing came out although all went in: it waits for more.
            (_, true) if made < STEP_BYTES => return Err(Fault::CutOff),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
