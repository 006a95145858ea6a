//! What is to be fetched and where to, checked before anything is sent.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use prony_base::Nanos;
use prony_wire::url::{self, ShownUrl, Url, UrlError};

use super::checksum::Checksum;
use super::file::{is_device, mark_of, part_of};
use super::name;
use super::words::FetchWords;

/// URLs of one run.
const URLS_MAX: usize = 10_000;
/// Bytes of a file of URLs that are read at most.
const URLS_BYTES_MAX: u64 = 16 << 20;

/// Where a body goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Standard output.
    Stdout,
    /// Straight to a device.
    Device(PathBuf),
    /// A file.
    File(PathBuf),
    /// A file whose name the server may say.
    Named {
        /// Its folder.
        dir: PathBuf,
        /// Its name if the server says none.
        otherwise: Result<String, name::BadName>,
    },
}

/// One URL.
#[derive(Clone, Debug)]
pub struct Job {
    /// With user and password, if they were given there.
    pub url: Url,
    /// Without them, to be shown.
    pub shown: String,
    /// Scheme, host and port.
    pub origin: String,
    /// Where its body goes.
    pub to: To,
}

impl Job {
    /// The file, where its name is known.
    pub fn file(&self) -> Option<PathBuf> {
        match &self.to {
            To::File(path) | To::Device(path) => Some(path.clone()),
            To::Stdout | To::Named { .. } => None,
        }
    }

    /// What it is called while it is under way.
    pub fn name(&self) -> String {
        let file = self.file();
        let name = file.as_deref().and_then(Path::file_name);
        name.map_or(self.shown.clone(), |name| {
            name.to_string_lossy().into_owned()
        })
    }
}

/// What holds for every URL.
#[derive(Debug)]
pub struct Options {
    /// Header lines.
    pub headers: Vec<(String, String)>,
    /// User and password.
    pub user: Option<(String, String)>,
    /// What files must hash to.
    pub checksum: Option<Checksum>,
    /// Whether files are replaced.
    pub overwrite: bool,
    /// Whether to go on where an earlier run broke off.
    pub resume: bool,
    /// Whether codings are asked for.
    pub compressed: bool,
    /// Tries after the first.
    pub retries: u32,
    /// Bytes of a file.
    pub bytes_max: Option<u64>,
    /// Bytes a second of a file.
    pub rate_max: Option<u64>,
    /// How long a URL may take, over all tries.
    pub timeout: Option<Nanos>,
}

/// The jobs that the words ask for.
///
/// # Errors
/// No URL, or none that can be fetched; no name; one name twice.
pub fn jobs(words: &FetchWords) -> anyhow::Result<Vec<Job>> {
    let mut urls = words.urls.clone();
    if let Some(file) = &words.input_file {
        urls.extend(listed(file)?);
    }
    match urls.len() {
        0 => bail!("there is no URL to fetch"),
        1..=URLS_MAX => {}
        many => bail!("{many} URLs are more than the {URLS_MAX} of one run"),
    }
    if words.output.is_some() && urls.len() > 1 {
        bail!(
            "-o names one file, but there are {} URLs: use --dir",
            urls.len()
        );
    }
    let jobs = urls.iter().map(|url| job(url, words));
    let jobs = jobs.collect::<anyhow::Result<Vec<_>>>()?;
    if words.json && jobs.iter().any(|job| job.to == To::Stdout) {
        bail!("standard output can have the body (-o -) or the JSON, not both");
    }
    check_names(&jobs)?;
    Ok(jobs)
}

/// A line for each URL; empty ones and those that begin with # are passed over.
fn listed(path: &Path) -> anyhow::Result<Vec<String>> {
    let shown = path.display();
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin()
            .take(URLS_BYTES_MAX + 1)
            .read_to_string(&mut text)
    } else {
        let file = File::open(path).with_context(|| format!("cannot read URLs from {shown}"))?;
        file.take(URLS_BYTES_MAX + 1).read_to_string(&mut text)
    };
    read.with_context(|| format!("cannot read URLs from {shown}"))?;
    if text.len() as u64 > URLS_BYTES_MAX {
        bail!("{shown}: a file of URLs may have {URLS_BYTES_MAX} bytes");
    }
    let lines = text.lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(urls.map(str::to_owned).collect())
}

fn job(text: &str, words: &FetchWords) -> anyhow::Result<Job> {
    let written = ShownUrl::new(text);
    let wrong = |why: &dyn std::fmt::Display| anyhow!("`{written}` cannot be fetched: {why}");
    let url = url::read(text).map_err(|error| match error {
        UrlError::Control { .. } => {
            let shown = written.to_string();
            let shown = shown.escape_debug();
            anyhow!("`{shown}` cannot be fetched: {error}")
        }
        other => wrong(&other),
    })?;
    let to = match &words.output {
        Some(path) if path == Path::new("-") => To::Stdout,
        Some(path) if is_device(path) => To::Device(path.clone()),
        Some(path) if path.file_name().is_none() => {
            bail!("{} is not a valid file name", path.display())
        }
        Some(path) => To::File(path.clone()),
        None => {
            let dir = words.dir.clone().unwrap_or_default();
            match (name::of_url(&url), words.remote_name_header) {
                (otherwise, true) => To::Named { dir, otherwise },
                (Ok(name), false) => To::File(dir.join(name)),
                (Err(bad), false) => return Err(wrong(&bad)),
            }
        }
    };
    let mut shown = url.clone();
    // Only URLs without a host refuse, and these have one.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    Ok(Job {
        origin: url.origin().ascii_serialization(),
        shown: shown.into(),
        url,
        to,
    })
}

/// Two URLs must not end up in one file, nor one in what another leaves unfinished.
fn check_names(jobs: &[Job]) -> anyhow::Result<()> {
    let mut taken: HashMap<PathBuf, &Job> = HashMap::new();
    for job in jobs {
        let To::File(path) = &job.to else { continue };
        for path in [path.clone(), part_of(path), mark_of(path)] {
            if let Some(other) = taken.insert(path.clone(), job) {
                bail!(
                    "{} and {} would both be written to {}: fetch them into folders of their own (--dir)",
                    other.shown,
                    job.shown,
                    path.display()
                );
            }
        }
    }
    Ok(())
}

/// What holds for all of them.
///
/// # Errors
/// A header or checksum that is none; a checksum that is not for these files.
pub fn options(words: &FetchWords, jobs: &[Job]) -> anyhow::Result<Options> {
    let headers = words.headers.iter().map(|text| header(text));
    let headers = headers.collect::<anyhow::Result<Vec<_>>>()?;
    let checksum = words.checksum.as_deref().map(Checksum::parse).transpose()?;
    if let Some(checksum) = &checksum {
        check_sums(checksum, jobs)?;
    }
    let user = words.user.as_deref().map(|text| {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        (user.to_owned(), password.to_owned())
    });
    Ok(Options {
        headers,
        user,
        checksum,
        overwrite: words.overwrite,
        resume: words.resume,
        compressed: words.compressed,
        retries: words.retries,
        bytes_max: words.max_bytes,
        rate_max: words.limit_rate,
        timeout: words.timeout,
    })
}

fn header(text: &str) -> anyhow::Result<(String, String)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("`{text}` is not a header: write it as 'Name: value'");
    };
    let (name, value) = (name.trim(), value.trim());
    let is_ours = |header: &str| name.eq_ignore_ascii_case(header);
    if ["range", "if-range"].iter().any(|header| is_ours(header)) {
        bail!("{name} cannot be given with --resume");
    }
    Ok((name.to_owned(), value.to_owned()))
}

fn check_sums(checksum: &Checksum, jobs: &[Job]) -> anyhow::Result<()> {
    if checksum.is_single() && jobs.len() > 1 {
        bail!(
            "--checksum names one sum, but there are {} URLs: give a file of sums, {}:FILE",
            jobs.len(),
            checksum.algorithm.name()
        );
    }
    for job in jobs {
        if let To::File(path) = &job.to {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if checksum.expected(&name).is_err() {
                bail!("{}: {name} is not in the list of checksums", job.shown);
            }
        }
    }
    Ok(())
}
