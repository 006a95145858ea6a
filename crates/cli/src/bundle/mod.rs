//! `prony bundle`: a run as one file that can be handed on, and such a file as a folder again.
//!
//! ```text
//! run directory, experiment, sources ──> files ──> pack ──> bundle
//! bundle ──> pack ──> files, checked ──> a new folder
//! ```
//!
//! Not for: doing anything with what is in it (`verify`, `report`, [`reproduce`]).

mod counts;
pub mod pack;
pub mod reproduce;
mod sources;
pub mod words;

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use prony_base::counted;
use prony_lab::store;
use prony_lab::sums::{self, State};
use prony_record::{Environment, layout};
use tempfile::TempDir;

use crate::cause::CannotWrite;
use crate::{Ending, Streams};
use pack::{File, Limits, MAGIC, Manifest};
use words::BundleWords;

/// The folder of the records in a bundle.
pub const RUN: &str = "run";
/// The folder of experiment and sources in a bundle.
pub const SOURCE: &str = "source";
/// Name of a bundle that lies beside documents.
pub const BESIDE: &str = "run.prony";

/// Runs `prony bundle`.
pub fn run(words: &BundleWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let stored = store::read(&words.dir)?;
    unchanged(&words.dir)?;
    let mut files = records(&words.dir)?;
    let mut packed = sources::of(words, &stored.plan, &stored.environment)?;
    files.append(&mut packed.files);
    let manifest = Manifest {
        title: stored.plan.title.clone(),
        started_unix_ms: stored.environment.started_unix_ms,
        prony_version: stored.environment.prony_version.clone(),
        experiment: packed.experiment,
        sources: packed.state.clone(),
        ..Manifest::default()
    };
    let count = files.len();
    let bytes = pack::write(manifest, files)?;
    // What is written is read: a bundle that its own program refuses would only be found out by its recipient.
    pack::read(&bytes, &Limits::default()).context("the run is too large for a bundle")?;
    let out = match &words.out {
        Some(out) => out.clone(),
        None => default_name(&words.dir)?,
    };
    fs::write(&out, &bytes).with_context(CannotWrite::at(&out))?;
    for note in &packed.notes {
        writeln!(streams.err, "prony: {note}")?;
    }
    let digest = pack::digest(&bytes);
    writeln!(
        streams.out,
        "{}: {}, {} bytes\nsources: {}\nsha256: {digest}\ncite: {}",
        out.display(),
        counted(count, "file"),
        bytes.len(),
        packed.state,
        citation(&stored.plan.title, &stored.environment, &digest)
    )?;
    Ok(Ending::Done)
}

/// How a bundle is named in other people's texts: title, date, program, digest.
fn citation(title: &str, environment: &Environment, digest: &str) -> String {
    let commit = match environment.prony_commit.as_str() {
        "" => String::new(),
        commit => format!(" ({commit})"),
    };
    format!(
        "\"{title}\", a run of {}, measured with Prony {}{commit}, bundle sha256:{digest}",
        prony_report::reproduced::day(environment.started_unix_ms),
        environment.prony_version
    )
}

fn default_name(dir: &Path) -> anyhow::Result<PathBuf> {
    let whole = fs::canonicalize(dir).with_context(|| dir.display().to_string())?;
    let name = whole
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(PathBuf::from(format!("{name}.prony")))
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
    let mut names: Vec<String> = [layout::PLAN, layout::ENVIRONMENT, layout::TRIALS]
        .map(str::to_owned)
        .into();
    for name in [
        layout::PUBLISHED,
        layout::ANALYSIS,
        layout::RECORDS_SUMS,
        layout::DOCUMENTS_SUMS,
    ] {
        names.extend(dir.join(name).is_file().then(|| name.to_owned()));
    }
    names.extend(listed(dir, layout::HISTOGRAMS, ".json")?);
    if dir.join(layout::PROFILES).is_dir() {
        names.extend(listed(dir, layout::PROFILES, ".folded")?);
    }
    let read = |name: String| {
        let path = dir.join(&name);
        Ok(File {
            bytes: fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?,
            path: format!("{RUN}/{name}"),
            executable: false,
        })
    };
    names.into_iter().map(read).collect()
}

/// The files of a folder of a run directory that end so.
fn listed(dir: &Path, folder: &str, end: &str) -> anyhow::Result<Vec<String>> {
    let path = dir.join(folder);
    let listed = fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut names = Vec::new();
    for entry in listed {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(end) {
            names.push(format!("{folder}/{name}"));
        }
    }
    Ok(names)
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

/// The checked files of the bundle at `path`, and its digest.
pub fn read(path: &Path) -> anyhow::Result<(Manifest, Vec<File>, String)> {
    let at = || path.display().to_string();
    let limits = Limits::default();
    let length = fs::metadata(path).with_context(at)?.len();
    if length > limits.packed_bytes_max as u64 {
        bail!(
            "{}: {length} bytes, and a bundle has at most {}",
            at(),
            limits.packed_bytes_max
        );
    }
    let bytes = fs::read(path).with_context(at)?;
    let (manifest, files) = pack::read(&bytes, &limits).with_context(at)?;
    Ok((manifest, files, pack::digest(&bytes)))
}

/// Writes the files of a bundle that lie below `from` into `to`, a folder that is new or empty.
pub fn unpack(files: &[File], from: &str, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(CannotWrite::at(to))?;
    if fs::read_dir(to)
        .with_context(|| to.display().to_string())?
        .next()
        .is_some()
    {
        bail!(
            "{} is not empty; name a folder that is empty or does not exist",
            to.display()
        );
    }
    for file in files {
        let Some(name) = file
            .path
            .strip_prefix(from)
            .and_then(|rest| rest.strip_prefix('/'))
        else {
            continue;
        };
        let path = to.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(CannotWrite::at(folder))?;
        }
        let mode = if file.executable { 0o755 } else { 0o644 };
        // Only what is not there is written: nothing that lies there can lead it elsewhere.
        let mut to = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .with_context(CannotWrite::at(&path))?;
        to.write_all(&file.bytes)
            .with_context(CannotWrite::at(&path))?;
    }
    Ok(())
}

/// The records of a bundle in a folder that is removed with this.
pub struct Unpacked {
    /// Removes the folder.
    _folder: TempDir,
    /// The run directory.
    pub dir: PathBuf,
}

/// Unpacks the records of the bundle at `path` to a folder for a while.
pub fn for_a_while(path: &Path) -> anyhow::Result<Unpacked> {
    let (_, files, _) = read(path)?;
    let folder =
        TempDir::with_prefix("prony-bundle-").context("no temporary folder can be made")?;
    let dir = folder.path().join(RUN);
    unpack(&files, RUN, &dir)?;
    // A bundle of a run without histograms has no such folder, and a run directory has.
    fs::create_dir_all(dir.join(layout::HISTOGRAMS)).with_context(CannotWrite::at(&dir))?;
    Ok(Unpacked {
        _folder: folder,
        dir,
    })
}
