//! A bundle as a stream and back, made for files of strangers.
//!
//! ```text
//! zstd( tar( manifest.json, blobs/SHA256, blobs/SHA256, … ) )
//! ```
//!
//! The names of files stand in the manifest, each with the digest of its content; the archive itself has no name that
//! anything is written to. [`read`] gives all of a bundle or an error: sizes and counts are limited while it is unpacked, every
//! digest is checked, and of contents no more than a piece is in memory. The same files give the same bytes.
//!
//! Not for: where contents are written to.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use prony_base::Untrusted;
use prony_lab::sums::hex;
use prony_record::layout;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tar::{Archive, Builder, Entry, EntryType, Header};

use super::counts::{self, CountsDecoder};
use super::fault::{Fault, SCHEMA};
use super::stream::{Packer, Unpacker};

/// The folder of the records in a bundle.
pub const RUN: &str = "run";
/// The folder of experiment and sources in a bundle.
pub const SOURCE: &str = "source";
/// Name of the first entry.
const MANIFEST: &str = "manifest.json";
/// The prefix of the names of all others.
const BLOBS: &str = "blobs/";
/// Bytes of the manifest.
const MANIFEST_BYTES_MAX: u64 = 32 << 20;
/// Bytes of a file that is coded, which is done in memory.
const CODED_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a piece of a file.
const PIECE_BYTES: usize = 1 << 16;
/// Bytes of a block of an archive, and of what stands at its end.
const BLOCK_BYTES: u64 = 512;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1_000;
/// Folders of all files together: a path of [`PATH_BYTES_MAX`] may name hundreds.
const FOLDERS_MAX: usize = 100_000;

/// The files of a run directory that a bundle may have, but for those in folders.
pub const ALONE: [&str; 7] = [
    layout::PLAN,
    layout::ENVIRONMENT,
    layout::TRIALS,
    layout::PUBLISHED,
    layout::ANALYSIS,
    layout::RECORDS_SUMS,
    layout::DOCUMENTS_SUMS,
];

/// The limits of a bundle.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the file.
    pub packed_bytes_max: u64,
    /// Bytes of the archive in it, and of all its files together.
    pub bytes_max: u64,
    /// Files.
    pub files_max: usize,
}

/// The description of a bundle, its first entry.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Schema version ([`SCHEMA`]).
    pub schema: u32,
    /// Title of the run.
    pub title: Untrusted,
    /// Start of the run, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Version of the Prony that measured.
    pub prony_version: Untrusted,
    /// Path of the packed experiment; empty: it is not in the bundle.
    pub experiment: Untrusted,
    /// Whether the sources are those that were measured, in a sentence.
    pub sources: Untrusted,
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

/// A file that is to be packed.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path in the bundle.
    pub path: String,
    /// Its content.
    pub content: FileContent,
    /// Whether it may be executed.
    pub executable: bool,
}

/// Where the content of a file is.
#[derive(Clone, Debug)]
pub enum FileContent {
    /// Here.
    Bytes(Vec<u8>),
    /// In a file.
    At(PathBuf),
}

impl FileContent {
    fn open(&self) -> anyhow::Result<Box<dyn Read + '_>> {
        Ok(match self {
            FileContent::Bytes(bytes) => Box::new(&bytes[..]),
            FileContent::At(path) => Box::new(
                fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?,
            ),
        })
    }

    /// The coded form of what is a histogram's file.
    fn coded(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        self.open()?
            .take(CODED_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        let is_small = bytes.len() as u64 <= CODED_BYTES_MAX;
        Ok(is_small.then(|| counts::coded(&bytes)).flatten())
    }
}

/// Writes the bundle of `files` to `to`, which it gives back. The `manifest` needs no list of them yet.
///
/// # Errors
/// A file cannot be read, or has no place in a bundle; `to` cannot be written.
pub fn write<W: Write>(mut manifest: Manifest, mut files: Vec<File>, to: W) -> anyhow::Result<W> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    manifest.schema = SCHEMA;
    // Content, and length of what stands for it in the archive.
    let mut blobs: Vec<(String, &FileContent, u64)> = Vec::new();
    let mut seen = BTreeSet::new();
    for file in &files {
        let digest = copy(&mut file.content.open()?, &mut io::sink());
        let (sha256, bytes) = digest.with_context(|| file.path.clone())?;
        let coded = file.content.coded()?;
        if seen.insert(sha256.clone()) {
            let length = coded.as_ref().map_or(bytes, |coded| coded.len() as u64);
            blobs.push((sha256.clone(), &file.content, length));
        }
        manifest.files.push(Listed {
            path: file.path.clone(),
            sha256,
            bytes,
            executable: file.executable,
            coding: coded.map_or("", |_| counts::NAME).to_owned(),
        });
    }
    check_paths(&manifest.files)?;
    let text = serde_json::to_vec(&manifest)?;
    let entry = |bytes: u64| BLOCK_BYTES + bytes.next_multiple_of(BLOCK_BYTES);
    let all = blobs.iter().map(|blob| entry(blob.2)).sum::<u64>();
    let packer = Packer::new(to, entry(text.len() as u64) + all + 2 * BLOCK_BYTES)?;
    let mut archive = Builder::new(packer);
    append(&mut archive, MANIFEST, text.len() as u64, &text[..])?;
    for (sha256, content, length) in blobs {
        let name = format!("{BLOBS}{sha256}");
        match content.coded()? {
            Some(coded) => append(&mut archive, &name, length, &coded[..])?,
            None => append(&mut archive, &name, length, content.open()?)?,
        }
    }
    Ok(archive.into_inner()?.finish()?)
}

/// Reads a bundle, which may be anybody's, and writes each content once, to what `place` gives for the files that have it. Gives its
/// manifest and its own digest. Only when it has returned is all of it checked.
///
/// # Errors
/// A [`Fault`], or that it cannot be read, or a content cannot be written.
pub fn read<'a>(
    packed: impl Read,
    limits: &Limits,
    mut place: impl FnMut(&[&Listed]) -> anyhow::Result<Box<dyn Write + 'a>>,
) -> anyhow::Result<(Manifest, String)> {
    let packed = packed.take(limits.packed_bytes_max);
    let mut unpacker = Unpacker::new(packed, limits.bytes_max).map_err(Fault::from_error)?;
    let mut archive = Archive::new(&mut unpacker);
    // Raw: a long name or a link that an extended header brings is an entry of its own, and refused.
    let mut entries = archive.entries().map_err(Fault::from_error)?.raw(true);
    let mut next = || -> anyhow::Result<_> {
        let Some(entry) = entries.next() else {
            return Ok(None);
        };
        let entry = entry.map_err(Fault::from_error)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Regular => Ok(Some((name, entry))),
            _ => Err(Fault::Kind(Untrusted(name)).into()),
        }
    };
    let manifest = match next()? {
        Some((name, entry)) if name == MANIFEST => parsed(entry, limits)?,
        Some((name, _)) => return Err(Fault::Name(Untrusted(name)).into()),
        None => return Err(Fault::Missing(MANIFEST.into()).into()),
    };
    let mut wanted = contents(&manifest, limits)?;
    let mut seen = BTreeSet::new();
    while let Some((name, mut entry)) = next()? {
        let digest = name.strip_prefix(BLOBS).unwrap_or_default();
        let Some(files) = wanted.remove(digest) else {
            let is_twice = name == MANIFEST || seen.contains(digest);
            let fault = if is_twice { Fault::Twice } else { Fault::Name };
            return Err(fault(Untrusted(name)).into());
        };
        seen.insert(&*files[0].sha256);
        unpack(files[0], &mut entry, &mut place(&files)?)?;
    }
    if let Some(missing) = wanted.into_values().flatten().next() {
        return Err(Fault::Missing(missing.path.as_str().into()).into());
    }
    let digest = unpacker.finish().map_err(Fault::from_error)?;
    Ok((manifest, hexadecimal(digest)))
}

/// The files of each content, by its digest.
fn contents<'a>(
    manifest: &'a Manifest,
    limits: &Limits,
) -> Result<BTreeMap<&'a str, Vec<&'a Listed>>, Fault> {
    check_paths(&manifest.files)?;
    let lengths = manifest.files.iter().map(|file| file.bytes);
    let all = lengths.fold(0, u64::saturating_add);
    if all > limits.bytes_max {
        return Err(Fault::TooLarge {
            what: format!("{all} bytes in its files"),
            max: limits.bytes_max,
        });
    }
    let mut contents = BTreeMap::<&str, Vec<&Listed>>::new();
    for listed in &manifest.files {
        let files = contents.entry(&listed.sha256).or_default();
        files.push(listed);
        if files[0].bytes != listed.bytes {
            return Err(Fault::Digest(listed.path.as_str().into()));
        }
    }
    Ok(contents)
}

/// Writes the content that a blob stands for, which is what its digest says.
fn unpack(
    listed: &Listed,
    blob: &mut Entry<'_, impl Read>,
    to: &mut dyn Write,
) -> anyhow::Result<()> {
    let size = blob.size();
    let found = match listed.coding.as_str() {
        "" if size == listed.bytes => copy(blob, to)?,
        counts::NAME => copy(&mut CountsDecoder::new(blob).take(listed.bytes + 1), to)?,
        _ => <(String, u64)>::default(),
    };
    match found == (listed.sha256.clone(), listed.bytes) {
        true => Ok(()),
        false => Err(Fault::Digest(listed.path.as_str().into()).into()),
    }
}

/// All of a small entry.
fn read_entry(entry: &mut Entry<'_, impl Read>) -> anyhow::Result<Vec<u8>> {
    let size = entry.size();
    let mut bytes = Vec::new();
    // A length that is only declared allocates nothing.
    entry.read_to_end(&mut bytes).map_err(Fault::from_error)?;
    match bytes.len() as u64 == size {
        true => Ok(bytes),
        false => Err(Fault::CutOff.into()),
    }
}

/// Copies all of `from`; gives its digest and its length.
fn copy(from: &mut impl Read, to: &mut dyn Write) -> anyhow::Result<(String, u64)> {
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match from.read(&mut piece) {
            Ok(0) => return Ok((hexadecimal(digest), bytes)),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Fault::from_error(error)),
        };
        digest.update(&piece[..count]);
        to.write_all(&piece[..count])?;
        bytes += count as u64;
    }
}

fn hexadecimal(digest: Sha256) -> String {
    hex(&digest.finalize())
}

fn append(
    archive: &mut Builder<impl Write>,
    name: &str,
    length: u64,
    bytes: impl Read,
) -> io::Result<()> {
    // Whose it is and when it was made are no part of it, so that the same files give the same bytes.
    let mut header = Header::new_ustar();
    header.set_size(length);
    header.set_mode(0o644);
    header.set_entry_type(EntryType::Regular);
    archive.append_data(&mut header, name, bytes.take(length))
}

fn parsed(mut entry: Entry<'_, impl Read>, limits: &Limits) -> anyhow::Result<Manifest> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let wrong =
        |error: serde_json::Error| Fault::Damaged(Untrusted(format!("{MANIFEST}: {error}")));
    let too_large = |what: String, max: u64| Err(Fault::TooLarge { what, max }.into());
    if entry.size() > MANIFEST_BYTES_MAX {
        let what = format!("{} bytes in its manifest", entry.size());
        return too_large(what, MANIFEST_BYTES_MAX);
    }
    let bytes = read_entry(&mut entry)?;
    let version: Version = serde_json::from_slice(&bytes).map_err(wrong)?;
    if version.schema != u64::from(SCHEMA) {
        return Err(Fault::Schema(version.schema).into());
    }
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(wrong)?;
    if manifest.files.len() > limits.files_max {
        let what = format!("{} files", manifest.files.len());
        return too_large(what, limits.files_max as u64);
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
        let readable =
            path.len() <= PATH_BYTES_MAX && !path.chars().any(|c| c.is_control() || c == '\\');
        if path.split('/').any(is_git) {
            return Err(Fault::Git(path.into()));
        }
        let inside = match path.split_once('/') {
            Some((RUN, name)) => is_of_run(name),
            Some((SOURCE, _)) => true,
            _ => false,
        };
        if !(plain && same && inside && readable) {
            return Err(Fault::Path(path.into()));
        }
        if !all.insert(path) {
            return Err(Fault::Twice(path.into()));
        }
    }
    let mut folders: BTreeSet<&str> = BTreeSet::new();
    for path in &all {
        for folder in path.match_indices('/').map(|(at, _)| &path[..at]) {
            if all.contains(folder) {
                return Err(Fault::Path(folder.into()));
            }
            folders.insert(folder);
            if folders.len() > FOLDERS_MAX {
                let what = format!("more than {FOLDERS_MAX} folders");
                let max = FOLDERS_MAX as u64;
                return Err(Fault::TooLarge { what, max });
            }
        }
    }
    match repository(&all) {
        Some(folder) => Err(Fault::Git(Untrusted(folder))),
        None => Ok(()),
    }
}

/// Whether a bundle has the file of a run directory that is called so.
fn is_of_run(name: &str) -> bool {
    match name.split_once('/') {
        Some((layout::HISTOGRAMS, name)) => !name.contains('/') && name.ends_with(".json"),
        Some((layout::PROFILES, name)) => !name.contains('/') && name.ends_with(".folded"),
        Some(_) => false,
        None => ALONE.contains(&name),
    }
}

/// Whether a part of a path is the folder of git's own files, also on a file system that has one name for `.GIT`, `.git.` or `GIT~1`.
fn is_git(part: &str) -> bool {
    let seen = |c: &char| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = part.chars().filter(seen).collect();
    // A stream of a file has a name of its own behind a colon.
    let name = name.split(':').next().unwrap_or_default();
    let name = name.trim_end_matches(['.', ' ']).to_lowercase();
    matches!(&*name, ".git" | "git~1")
}

/// A folder that git takes for a repository of its own although it is not called so, and whose settings it would follow, also on a file
/// system that does not tell cases apart. For git a file that may be executed is as good as a folder in it.
fn repository(paths: &BTreeSet<&str>) -> Option<String> {
    let paths: BTreeSet<String> = paths.iter().map(|path| path.to_lowercase()).collect();
    let heads = paths.iter().filter_map(|path| path.strip_suffix("/head"));
    let mut heads = heads.filter(|folder| {
        let has = |name: &str| paths.contains(&format!("{folder}/{name}"));
        let has_any = |name: &str| {
            let begin = format!("{folder}/{name}/");
            let next = paths.range(begin.clone()..).next();
            has(name) || next.is_some_and(|path| path.starts_with(&begin))
        };
        has("commondir") || has_any("objects") && has_any("refs")
    });
    heads.next().map(str::to_owned)
}

#[cfg(test)]
#[path = "pack_tests.rs"]
mod tests;
