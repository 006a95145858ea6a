//! `prony bundle`: a run as one file that can be handed on, and such a file as a folder again.
//!
//! ```text
//! run directory, experiment, sources ──> files ──> pack ──> bundle
//! bundle ──> pack ──> files, checked ──> a new folder
//! ```
//!
//! Not for: doing anything with what is in it (`verify`, `report`, [`reproduce`]).

mod counts;
mod fault;
pub mod pack;
pub mod reproduce;
mod sources;
mod stream;
pub mod words;

use std::fs::{self, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::{Untrusted, counted};
use prony_lab::sums::{self, State};
use prony_lab::{folder, store};
use prony_record::{Environment, layout};
use tempfile::TempDir;

use crate::cause::CannotWrite;
use crate::files::create;
use crate::paths::file_name;
use crate::report::version_and_commit;
use crate::{Ending, Streams};
use pack::{File, FileContent, Limits, Listed, Manifest, RUN};
use stream::MAGIC;

pub use fault::Fault;
use words::BundleWords;

/// The limits of a bundle that is read.
const LIMITS: Limits = Limits {
    packed_bytes_max: 64 << 20,
    bytes_max: 512 << 20,
    files_max: 100_000,
};
/// Name of a bundle that lies beside documents.
pub const BESIDE: &str = "run.prony";

/// Runs `prony bundle`.
pub fn run(words: &BundleWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let stored = store::read(&words.dir)?;
    unchanged(&words.dir)?;
    let mut files = records(&words.dir)?;
    let mut packed = sources::collect(words, &stored.plan, &stored.environment)?;
    files.append(&mut packed.files);
    let manifest = Manifest {
        title: stored.plan.title.clone(),
        started_unix_ms: stored.environment.started_unix_ms,
        prony_version: Untrusted(stored.environment.prony_version.clone()),
        experiment: Untrusted(packed.experiment),
        sources: Untrusted(packed.state.clone()),
        ..Manifest::default()
    };
    let count = files.len();
    let out = match &words.out {
        Some(out) => out.clone(),
        None => default_name(&words.dir)?,
    };
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut new = tempfile::Builder::new();
    let new = new.permissions(Permissions::from_mode(0o666));
    let new = new.tempfile_in(folder.unwrap_or(Path::new(".")));
    let new = new.with_context(CannotWrite::at(&out))?;
    let written = pack::write(manifest, files, new.as_file());
    let written = written.with_context(|| format!("cannot pack {}", words.dir.display()))?;
    let bytes = written.metadata()?.len();
    // What is written is read: a bundle that its own program refuses would only be found out by its recipient.
    let (_, digest) = opened(new.path())
        .and_then(|file| pack::read(file, &LIMITS, |_| Ok(Box::new(io::sink()))))
        .context("the run is too large for a bundle, or was changed while it was packed")?;
    if fs::symlink_metadata(&out).is_ok_and(|there| !there.is_file()) {
        bail!("{} is there and is no plain file", out.display());
    }
    // Or else a machine that fails could leave an empty file in place of one that was whole.
    let synced = new.as_file().sync_all();
    synced.with_context(CannotWrite::at(&out))?;
    new.persist(&out).with_context(CannotWrite::at(&out))?;
    for note in &packed.notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    writeln!(
        streams.out,
        "{}: {}, {bytes} bytes\nsources: {}\nsha256: {digest}\ncite: {}",
        out.display(),
        counted(count, "file"),
        packed.state,
        Untrusted(citation(&stored.plan.title, &stored.environment, &digest))
    )?;
    Ok(Ending::Done)
}

/// How a bundle is named in other people's texts: title, date, program, digest.
fn citation(title: &str, environment: &Environment, digest: &str) -> String {
    let day = prony_report::reproduced::day(environment.started_unix_ms);
    let version = version_and_commit(&environment.prony_version, &environment.prony_commit);
    format!("\"{title}\", a run of {day}, measured with Prony {version}, bundle sha256:{digest}")
}

fn default_name(dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    Ok(PathBuf::from(format!("{}.prony", file_name(&dir))))
}

/// Records that were changed after the run are not handed on.
fn unchanged(dir: &Path) -> anyhow::Result<()> {
    let Some(sums) = sums::read(dir, layout::RECORDS_SUMS)? else {
        return Ok(());
    };
    for (name, state) in sums.states(dir)? {
        if state != State::Same {
            bail!(
                "{}: is not what it was when the run ended; `prony verify {}` says more",
                dir.join(name).display(),
                dir.display()
            );
        }
    }
    Ok(())
}

/// The records of a run, and the digests of what was rendered of them.
fn records(dir: &Path) -> anyhow::Result<Vec<File>> {
    let needed = [layout::PLAN, layout::ENVIRONMENT, layout::TRIALS];
    let is_there = |name: &&str| needed.contains(name) || dir.join(name).is_file();
    let alone = pack::ALONE.into_iter().filter(is_there);
    let mut names: Vec<String> = alone.map(str::to_owned).collect();
    names.extend(folder::listed(dir, layout::HISTOGRAMS, ".json")?);
    names.extend(folder::listed(dir, layout::PROFILES, ".folded")?);
    let read = |name: String| {
        let path = folder::inside(dir, &name)?;
        Ok(File {
            content: FileContent::At(path),
            path: format!("{RUN}/{name}"),
            executable: false,
        })
    };
    names.into_iter().map(read).collect()
}

/// Whether a path is a file that begins as a bundle does.
pub fn is_bundle(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    path.is_file()
        && fs::File::open(path)
            .and_then(|mut file| file.read_exact(&mut begin))
            .is_ok()
        && begin == MAGIC
}

/// Whether a path's name is that of a bundle.
pub fn is_named_so(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ending.eq_ignore_ascii_case("prony")
}

/// The bundle at `path`, to be read.
fn opened(path: &Path) -> anyhow::Result<fs::File> {
    let at = || path.display().to_string();
    let file = fs::File::open(path).with_context(at)?;
    let (length, max) = (
        file.metadata().with_context(at)?.len(),
        LIMITS.packed_bytes_max,
    );
    if length > max {
        bail!("{}: {length} bytes, and a bundle has at most {max}", at());
    }
    Ok(file)
}

/// Makes the folder `to`, or finds it empty.
pub fn empty_folder(to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(CannotWrite::at(to))?;
    let mut entries = fs::read_dir(to).with_context(|| to.display().to_string())?;
    if entries.next().is_some() {
        bail!(
            "{} is not empty; name a folder that is empty or does not exist",
            to.display()
        );
    }
    Ok(())
}

/// Unpacks the files of a bundle that lie below `part` into `to`, a folder that is new or empty. It stays so until all of the bundle has
/// been accepted.
pub fn unpack(path: &Path, part: &str, to: &Path) -> anyhow::Result<()> {
    let is_new = !to.exists();
    empty_folder(to)?;
    let folder = TempDir::with_prefix_in(".prony-", to).with_context(CannotWrite::at(to))?;
    let unpacked = unpacked(path, part, folder);
    if unpacked.is_err() && is_new {
        let _ = fs::remove_dir(to);
    }
    let unpacked = unpacked?;
    for entry in fs::read_dir(&unpacked.dir)? {
        let (from, to) = (entry?, to);
        let to = to.join(from.file_name());
        fs::rename(from.path(), &to).with_context(CannotWrite::at(&to))?;
    }
    Ok(())
}

/// A bundle of which a part is in a folder that is removed with this.
pub struct Unpacked {
    /// Removes the folder.
    _folder: TempDir,
    /// The part: a run directory, or the sources.
    pub dir: PathBuf,
    /// The manifest of the bundle.
    pub manifest: Manifest,
    /// The digest of its file.
    pub digest: String,
}

/// Unpacks the files of the bundle at `path` that lie below `part` to a folder for a while.
pub fn for_a_while(path: &Path, part: &str) -> anyhow::Result<Unpacked> {
    let folder = TempDir::with_prefix("prony-bundle-");
    unpacked(
        path,
        part,
        folder.context("no temporary folder can be made")?,
    )
}

fn unpacked(path: &Path, part: &str, folder: TempDir) -> anyhow::Result<Unpacked> {
    let dir = folder.path().join(part);
    // A bundle of a run without histograms has no such folder, and a run directory has.
    let always = if part == RUN { layout::HISTOGRAMS } else { "" };
    fs::create_dir_all(dir.join(always)).with_context(CannotWrite::at(&dir))?;
    let place_of = |file: &Listed| folder.path().join(&file.path);
    let mut copies = Vec::new();
    let read = pack::read(opened(path)?, &LIMITS, |files| {
        let mut wanted = files
            .iter()
            .filter(|file| Path::new(&file.path).starts_with(part));
        let Some(first) = wanted.next() else {
            return Ok(Box::new(io::sink()));
        };
        copies.extend(wanted.map(|&other| (place_of(first), other.clone())));
        Ok(Box::new(create(&place_of(first), first.executable)?))
    });
    let (manifest, digest) = read.with_context(|| path.display().to_string())?;
    for (from, to) in copies {
        let mut file = create(&place_of(&to), to.executable)?;
        let from = fs::File::open(&from);
        let copied = from.and_then(|mut from| io::copy(&mut from, &mut file));
        copied.with_context(CannotWrite::at(&place_of(&to)))?;
    }
    Ok(Unpacked {
        _folder: folder,
        dir,
        manifest,
        digest,
    })
}
