//! Where Prony's own files are: the subjects, and the cache of what was built.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Prony's own folders.
#[derive(Clone, Debug)]
pub struct Home {
    /// The folder `subjects/`.
    pub subjects: PathBuf,
    /// Where builds are kept.
    pub cache: PathBuf,
    /// The running binary.
    pub prony: PathBuf,
}

/// By what a folder is known to be Prony's.
const MARK: &str = "subjects/CONTRACT.md";

impl Home {
    /// Finds them: `PRONY_HOME` (which the launcher sets), else a folder above the binary, else one above the current
    /// folder, else the current folder with the user's cache. `PRONY_CACHE` moves the cache.
    pub fn find() -> anyhow::Result<Home> {
        let prony = env::current_exe().context("cannot find the prony binary")?;
        let named = env::var_os("PRONY_HOME").map(PathBuf::from);
        let here = env::current_dir().context("there is no current folder")?;
        let root = match named {
            Some(root) if root.join(MARK).exists() => Some(root),
            Some(root) => bail!("PRONY_HOME is {}, which has no {MARK}", root.display()),
            None => above(&prony).or_else(|| above(&here)),
        };
        let cache = cache(root.as_deref(), &here, |name| env::var_os(name));
        Ok(Home {
            subjects: root.unwrap_or(here).join("subjects"),
            cache,
            prony,
        })
    }
}

impl Home {
    /// The folder of the experiments that come with Prony.
    pub fn experiments(&self) -> PathBuf {
        self.subjects.with_file_name("experiments")
    }
}

/// Where builds are kept: in Prony's own folder, or without one in the user's cache (XDG Base Directory Specification), so
/// that no folder in which `prony` is called gets one.
fn cache(root: Option<&Path>, here: &Path, var: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    if let Some(named) = var("PRONY_CACHE") {
        return PathBuf::from(named);
    }
    if let Some(root) = root {
        return root.join(".prony");
    }
    // A relative path is to be ignored, by that specification.
    let absolute = |name: &str| {
        var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let user = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    user.map_or_else(|| here.join(".prony"), |user| user.join("prony"))
}

fn above(place: &Path) -> Option<PathBuf> {
    place
        .ancestors()
        .find(|folder| folder.join(MARK).exists())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_kept_beside_prony_or_in_the_users_cache() {
        let here = Path::new("/here");
        let at = |root: Option<&str>, set: &[(&str, &str)]| {
            let var = |name: &str| {
                let found = set.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| OsString::from(value))
            };
            cache(root.map(Path::new), here, var)
        };
        let user = [("HOME", "/home/u")];
        assert_eq!(at(Some("/prony"), &user), Path::new("/prony/.prony"));
        assert_eq!(at(None, &user), Path::new("/home/u/.cache/prony"));
        let both = [("HOME", "/home/u"), ("XDG_CACHE_HOME", "/var/c")];
        assert_eq!(at(None, &both), Path::new("/var/c/prony"));
        let relative = [("HOME", "/home/u"), ("XDG_CACHE_HOME", "c")];
        assert_eq!(at(None, &relative), Path::new("/home/u/.cache/prony"));
        assert_eq!(at(None, &[]), Path::new("/here/.prony"));
        let named = [("PRONY_CACHE", "/named"), ("HOME", "/home/u")];
        assert_eq!(at(Some("/prony"), &named), Path::new("/named"));
    }
}
