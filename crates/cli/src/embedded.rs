//! Subjects, experiments and pages of the documentation as they were when this program was built: what it uses where there is
//! no checkout.
//!
//! ```text
//! <cache>/embedded/0123456789ab/subjects, experiments    unpacked; the name is the archive's digest
//! <cache>/embedded/0123456789ab.lock                     exclusive while it is unpacked or removed, shared while used
//! ```
//!
//! Each use compares the files with the archive and restores what differs, so that what is measured is what this program
//! came with. Not for: where Prony's files are looked for first ([`crate::home`]), packing (`build.rs`).

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow};
use prony_base::counted;
use prony_lab::build::Failed;
use prony_lab::build::shelf::{Held, Shelf};
use prony_lab::sums::hex;
use sha2::{Digest as _, Sha256};
use tar::Archive;

use crate::cause::CannotWrite;

/// A tar archive, compressed by zstd.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/files"));
/// The same, of the pages.
const PAGES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages"));
/// Bytes of an archive before it is compressed, at the most.
const UNPACKED_BYTES_MAX: usize = 16 << 20;
/// Folder of the cache.
const SHELF: &str = "embedded";
/// Characters of a digest that name a folder.
const NAME_CHARS: usize = 12;

static NEVER: AtomicBool = AtomicBool::new(false);

/// A file of the archive.
#[derive(Debug)]
pub struct EmbeddedFile {
    /// Its path: `subjects/…`, `experiments/…` or `docs/…`.
    pub path: PathBuf,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Whether it may be executed.
    pub is_program: bool,
}

impl EmbeddedFile {
    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }

    /// Whether the file at `path` is this one.
    fn is_at(&self, path: &Path) -> bool {
        let same =
            |mut file: File| -> io::Result<bool> {
                let meta = file.metadata()?;
                let mut bytes = Vec::new();
                let is_alike = meta.len() == self.bytes.len() as u64
                    && (meta.permissions().mode() & 0o100 != 0) == self.is_program;
                Ok(is_alike
                    && file.read_to_end(&mut bytes)? == self.bytes.len()
                    && bytes == self.bytes)
            };
        File::open(path).and_then(same).unwrap_or(false)
    }

    /// Puts it below `dir` at once: whoever reads there has the old file or this one. What is cut off stays in `dir`, in no
    /// subject's folder.
    fn put(&self, dir: &Path) -> io::Result<()> {
        let path = dir.join(&self.path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(&self.bytes)?;
        let mode = fs::Permissions::from_mode(self.mode());
        file.as_file().set_permissions(mode)?;
        file.persist(path)?;
        Ok(())
    }
}

/// The subjects and experiments, by path.
///
/// # Errors
/// The archive is damaged, and so is this program.
pub fn files() -> anyhow::Result<Vec<EmbeddedFile>> {
    unpacked(ARCHIVE)
}

/// The pages of the documentation, by path: `docs/….md`, and the contract of subjects.
///
/// # Errors
/// The archive is damaged, and so is this program.
pub fn pages() -> anyhow::Result<Vec<EmbeddedFile>> {
    unpacked(PAGES)
}

fn unpacked(packed: &[u8]) -> anyhow::Result<Vec<EmbeddedFile>> {
    let mut archive = vec![0; UNPACKED_BYTES_MAX];
    let size = zstd_safe::decompress(&mut archive[..], packed).map_err(|code| {
        let why = zstd_safe::get_error_name(code);
        anyhow!("this program is damaged: its files cannot be unpacked: {why}")
    })?;
    archive.truncate(size);
    let mut files = Vec::new();
    for entry in Archive::new(&archive[..]).entries()? {
        let mut entry = entry?;
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        files.push(EmbeddedFile {
            path: entry.path()?.into_owned(),
            bytes,
            is_program: entry.header().mode()? & 0o100 != 0,
        });
    }
    Ok(files)
}

/// Unpacks the files into the cache, unless they are there, and restores those that differ: a line on `err` says so. The
/// folder stays as long as what is returned lives.
///
/// # Errors
/// The cache cannot be written.
pub fn hold(cache: &Path, err: &mut dyn io::Write) -> anyhow::Result<Held> {
    let files = files()?;
    let make = |dir: &Path| {
        put(&files, dir)
            .map(drop)
            .map_err(|error| Failed::new(format!("{}: {error}", dir.display())))
    };
    let elsewhere =
        || anyhow!("Prony unpacks its subjects there; PRONY_CACHE=DIR names another folder");
    let held = Shelf::open(cache, SHELF, &NEVER)
        .and_then(|shelf| shelf.hold(&name(), &make))
        .map_err(|failed| elsewhere().context(failed.reason))
        .with_context(CannotWrite::at(cache))?;
    let restored = put(&files, &held.dir).with_context(CannotWrite::at(&held.dir))?;
    if restored > 0 {
        // A failing standard error leaves nowhere to say so.
        let _ = writeln!(
            err,
            "prony: restored {} in {}, which differed from what this program came with; for a copy to change: prony new subjects DIR",
            counted(restored, "file"),
            held.dir.display()
        );
    }
    Ok(held)
}

/// Copies in the cache that are not in use, as paths: all but this program's own, which it holds where it needs it.
///
/// # Errors
/// The cache cannot be read.
pub fn unused(cache: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !cache.join(SHELF).is_dir() {
        return Ok(Vec::new());
    }
    let shelf = shelf(cache)?;
    let mut stems: Vec<String> = shelf.made().into_iter().map(|(stem, _)| stem).collect();
    stems.retain(|stem| is_name(stem) && shelf.free(stem).is_some());
    stems.sort();
    Ok(stems.iter().map(|stem| shelf.root.join(stem)).collect())
}

/// Removes one of [`unused`], and tells whether it did: somebody may have begun to use it.
///
/// # Errors
/// The cache cannot be read.
pub fn remove(cache: &Path, copy: &Path) -> anyhow::Result<bool> {
    let shelf = shelf(cache)?;
    let stem = copy.file_name().and_then(|name| name.to_str());
    Ok(stem.is_some_and(|stem| shelf.root.join(stem) == copy && shelf.remove(stem)))
}

fn shelf(cache: &Path) -> anyhow::Result<Shelf<'static>> {
    Shelf::open(cache, SHELF, &NEVER).map_err(|failed| anyhow!(failed.reason))
}

/// The name of this program's copy.
fn name() -> String {
    hex(&Sha256::digest(ARCHIVE))[..NAME_CHARS].to_owned()
}

fn is_name(stem: &str) -> bool {
    stem.len() == NAME_CHARS && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Puts those files below `dir` that are not there as they should be; returns how many.
fn put(files: &[EmbeddedFile], dir: &Path) -> io::Result<usize> {
    let mut put = 0;
    for file in files {
        if !file.is_at(&dir.join(&file.path)) {
            file.put(dir)?;
            put += 1;
        }
    }
    Ok(put)
}
