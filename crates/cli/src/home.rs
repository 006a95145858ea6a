//! Where Prony's own files are: the subjects, the experiments, and the cache of what was built.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use prony_lab::build::{BuildContext, KEPT, source};
use prony_lab::diagnosis::nearest;
use prony_lab::plan::Facts;
use prony_lab::subject::{self, Subject};

use crate::embedded;

/// Prony's own folders.
#[derive(Clone, Debug)]
pub struct Home {
    /// The folder `subjects/`.
    pub subjects: PathBuf,
    /// Where builds are kept.
    pub cache: PathBuf,
    /// The running binary.
    pub prony: PathBuf,
    /// Builds of one subject that are kept.
    pub builds_kept: usize,
    /// Whether subjects that are not built yet are left out, and nothing is built.
    pub only_built: bool,
    /// The systems of others that the user has built, where there are any.
    originals: Option<PathBuf>,
    /// Keeps what was unpacked; `None`: the folders are a checkout's.
    copy: Option<Arc<File>>,
}

/// An experiment's file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FoundExperiment {
    /// Where it is.
    pub path: PathBuf,
    /// Its name in messages and records.
    pub shown: String,
}

/// The file by which a folder is known to be Prony's.
const MARK: &str = "subjects/CONTRACT.md";
/// Experiments that are read of one folder at the most.
const EXPERIMENTS_MAX: usize = 1_000;
/// The folder of experiments.
pub const EXPERIMENTS: &str = "experiments";

impl Home {
    /// Finds them: `PRONY_HOME` (which the launcher sets), else a folder above the binary, else one above the current
    /// folder, else the files that this program was built with, unpacked into the user's cache. `PRONY_CACHE` moves the
    /// cache. What is to be told about unpacking goes to `err`.
    pub fn find(err: &mut dyn io::Write) -> anyhow::Result<Home> {
        let prony = env::current_exe().context("cannot find the prony binary")?;
        let named = env::var_os("PRONY_HOME").map(PathBuf::from);
        let here = env::current_dir().context("there is no current folder")?;
        let root = match named {
            Some(root) if root.join(MARK).exists() => Some(root),
            Some(root) => bail!(
                "PRONY_HOME is {}, which has no {MARK}; without PRONY_HOME Prony uses what it was built with",
                root.display()
            ),
            None => above(&prony).or_else(|| above(&here)),
        };
        let cache = cache(root.as_deref(), variable)?;
        let (root, copy) = match root {
            Some(root) => (root, None),
            None => {
                let held = embedded::hold(&cache, err)?;
                (held.dir, Some(Arc::new(held.lock)))
            }
        };
        Ok(Home {
            copy,
            ..Home::at(root.join("subjects"), cache, prony)
        })
    }

    /// These folders.
    pub fn at(subjects: PathBuf, cache: PathBuf, prony: PathBuf) -> Home {
        Home {
            subjects,
            cache,
            prony,
            builds_kept: KEPT,
            only_built: false,
            originals: source::originals(),
            copy: None,
        }
    }

    /// The facts of this machine that `subjects` depend on. `has_networks`: trials run in networks of their own.
    pub fn facts(&self, subjects: &[Subject], has_networks: bool) -> Facts {
        let path = env::var("PATH").unwrap_or_default();
        Facts::gather(subjects, &path, self.originals.as_deref(), has_networks)
    }

    /// How subjects are built here, until `cancel` is set.
    pub fn build_context<'a>(&'a self, cancel: &'a AtomicBool) -> BuildContext<'a> {
        BuildContext {
            cache: &self.cache,
            originals: self.originals.as_deref(),
            prony: &self.prony,
            builds_max: self.builds_kept,
            cancel,
            only_kept: false,
        }
    }

    /// The folder of the experiments that come with Prony.
    pub fn experiments(&self) -> PathBuf {
        self.subjects.with_file_name(EXPERIMENTS)
    }

    /// The subjects under [`Home::subjects`], and those in `subjects/` of the current folder that have another name, sorted:
    /// name and folder.
    pub fn all_subjects(&self) -> BTreeMap<String, PathBuf> {
        let here = Path::new("subjects");
        // The first one is found first, and so stays.
        [here, &self.subjects]
            .into_iter()
            .flat_map(|root| {
                subject::folders(root)
                    .into_iter()
                    .map(|id| (id.clone(), root.join(id)))
            })
            .collect()
    }

    /// The names that `prony run` takes: the experiments in `experiments/` here and of Prony's own, sorted.
    pub fn experiment_names(&self) -> Vec<String> {
        let folders = [PathBuf::from(EXPERIMENTS), self.experiments()];
        let names = folders.iter().flat_map(|folder| experiment_names(folder));
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Whether `path` lies in what was unpacked.
    pub fn is_copy(&self, path: &Path) -> bool {
        self.copy.is_some() && path.starts_with(self.experiments())
    }

    /// The file of the experiment that was typed: a path, or the name of one in `experiments/`, here or of Prony's own:
    /// `ping`, `experiments/ping.toml`.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn experiment(&self, typed: &Path) -> anyhow::Result<FoundExperiment> {
        let as_typed = FoundExperiment {
            path: typed.to_owned(),
            shown: typed.display().to_string(),
        };
        let Some(file) = named(typed).filter(|_| !typed.is_file()) else {
            return Ok(as_typed);
        };
        let shown = Path::new(EXPERIMENTS).join(&file);
        let experiments = self.experiments();
        let places = [shown.clone(), experiments.join(&file)];
        if let Some(path) = places.into_iter().find(|path| path.is_file()) {
            let shown = shown.display().to_string();
            return Ok(FoundExperiment { path, shown });
        }
        if typed.exists() {
            return Ok(as_typed);
        }
        let names = experiment_names(&experiments);
        let name = file.trim_end_matches(".toml");
        let help = match nearest(name, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`prony list experiments` names those that are here".to_owned(),
        };
        bail!(
            "there is no experiment `{}`, neither as a file nor in {}: {help}",
            typed.display(),
            experiments.display()
        )
    }
}

/// The name of a file in `experiments/` that may be meant by what was typed.
fn named(typed: &Path) -> Option<String> {
    let parts: Vec<&str> = typed
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let name = match parts[..] {
        [EXPERIMENTS, name] | [name] => name,
        _ => return None,
    };
    Some(match name.ends_with(".toml") {
        true => name.to_owned(),
        false => format!("{name}.toml"),
    })
}

/// The experiments in `folder` by name, without `.toml`, sorted.
pub fn experiment_names(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let stems = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()));
    let mut stems: Vec<String> = stems.take(EXPERIMENTS_MAX).collect();
    stems.sort();
    stems
}

/// A variable; a user without `HOME` has that of the system's list of users.
fn variable(name: &str) -> Option<OsString> {
    let of_system = || env::home_dir().filter(|_| name == "HOME");
    env::var_os(name).or_else(|| of_system().map(PathBuf::into_os_string))
}

/// Where builds are kept: in Prony's own folder, or without one in the user's cache (XDG Base Directory Specification), so
/// that no folder in which `prony` is called gets one. Errors: the user has none.
fn cache(root: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    if let Some(named) = var("PRONY_CACHE") {
        return Ok(PathBuf::from(named));
    }
    if let Some(root) = root {
        return Ok(root.join(".prony"));
    }
    // A relative path is to be ignored, by that specification.
    let absolute = |name: &str| {
        var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let user = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    match user {
        Some(user) => Ok(user.join("prony")),
        None => bail!(
            "neither HOME nor XDG_CACHE_HOME is an absolute path: PRONY_CACHE=DIR says where Prony may keep files"
        ),
    }
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
        let at = |root: Option<&str>, set: &[(&str, &str)]| {
            let var = |name: &str| {
                let found = set.iter().find(|(own, _)| *own == name);
                found.map(|(_, value)| OsString::from(value))
            };
            cache(root.map(Path::new), var).map_err(|error| error.to_string())
        };
        let user = [("HOME", "/home/u")];
        assert_eq!(
            at(Some("/prony"), &user),
            Ok(PathBuf::from("/prony/.prony"))
        );
        assert_eq!(at(None, &user), Ok(PathBuf::from("/home/u/.cache/prony")));
        let both = [("HOME", "/home/u"), ("XDG_CACHE_HOME", "/var/c")];
        assert_eq!(at(None, &both), Ok(PathBuf::from("/var/c/prony")));
        let relative = [("HOME", "/home/u"), ("XDG_CACHE_HOME", "c")];
        assert_eq!(
            at(None, &relative),
            Ok(PathBuf::from("/home/u/.cache/prony"))
        );
        assert!(at(None, &[]).unwrap_err().contains("PRONY_CACHE=DIR"));
        let named = [("PRONY_CACHE", "/named"), ("HOME", "/home/u")];
        assert_eq!(at(Some("/prony"), &named), Ok(PathBuf::from("/named")));
    }

    #[test]
    fn an_experiment_is_named_by_its_file_or_by_the_name_that_it_has_among_the_own() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(EXPERIMENTS);
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("pong.toml"), "").unwrap();
        let subjects = folder.path().join("subjects");
        let home = Home::at(subjects, PathBuf::new(), PathBuf::new());
        let found = |typed: &str| home.experiment(Path::new(typed)).map_err(|e| e.to_string());
        let pong = FoundExperiment {
            path: own.join("pong.toml"),
            shown: "experiments/pong.toml".to_owned(),
        };
        for typed in [
            "pong",
            "pong.toml",
            "experiments/pong.toml",
            "experiments/pong",
        ] {
            assert_eq!(found(typed), Ok(pong.clone()), "{typed}");
        }
        // Another path is what it says, whether it is there or not.
        for typed in [
            "./pong",
            "../pong.toml",
            "a/pong.toml",
            "/pong.toml",
            "experiments/a/pong",
        ] {
            assert_eq!(found(typed).unwrap().path, Path::new(typed), "{typed}");
        }
        // A folder of that name (tests run in one that has `src`) does not stand before it, and is what is typed else.
        std::fs::write(own.join("src.toml"), "").unwrap();
        assert_eq!(found("src").unwrap().path, own.join("src.toml"));
        assert_eq!(found("tests").unwrap().path, Path::new("tests"));
        let wrong = found("pnog").unwrap_err();
        assert!(
            wrong.starts_with("there is no experiment `pnog`"),
            "{wrong}"
        );
        assert!(wrong.ends_with("did you mean `pong`?"), "{wrong}");
        assert!(
            found("zzzzzzzzz")
                .unwrap_err()
                .contains("`prony list experiments`")
        );
    }
}
