//! Libraries that an environment preloads, and whether the loader would find them: it leaves out what it does not find,
//! and the program runs on without.
//!
//! No program is started for it: a plan is also made of what a stranger wrote, and a library runs code where it is
//! loaded. What only the loader can tell (`$ORIGIN`, `LD_LIBRARY_PATH`, a placeholder, another root file system) is
//! taken to be there; a trial then says what was left out.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::passed::{Passed, To};

/// The variable that names the libraries.
const PRELOAD: &str = "LD_PRELOAD";
/// The variable that names further folders of the loader.
const FOLDERS: &str = "LD_LIBRARY_PATH";
/// Where the loader looks beside what its cache names: glibc's folders, as Debian has them, too, and musl's.
const USUAL: [&str; 5] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];
const OF_DEBIAN: [&str; 2] = ["/lib", "/usr/lib"];
/// glibc's list of what is in all other folders.
const CACHE: &str = "/etc/ld.so.cache";

/// Packages of Debian 12 with what experiments preload: their names do not follow from the libraries' alone.
const DEBIAN: [(&str, &str); 4] = [
    ("libmimalloc.so.2", "libmimalloc2.0"),
    ("libmimalloc.so.2.0", "libmimalloc2.0"),
    ("libjemalloc.so.2", "libjemalloc2"),
    ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
];

/// Debian's package with a library, where it is known.
pub fn debian_package(name: &str) -> Option<&'static str> {
    let known = DEBIAN.iter().find(|(library, _)| *library == name);
    known.map(|(_, package)| *package)
}

/// Why a library would be left out.
pub fn why_absent(name: &str) -> String {
    match name.contains('/') {
        true => format!("`{name}`, which LD_PRELOAD names, is not there"),
        false => format!("`{name}`, which LD_PRELOAD names, is in no folder of the loader"),
    }
}

/// The libraries that `env` preloads, as it names them, of which it can be told whether they are there.
pub fn named(env: &BTreeMap<String, String>) -> Vec<String> {
    let text = env.get(PRELOAD).map_or("", String::as_str);
    let is_known = |name: &&str| !name.is_empty() && !name.contains(['{', '$']);
    let names = text.split([' ', ':']).filter(is_known);
    let names = names.filter(|name| name.starts_with('/') || !names_folders(env));
    names.map(str::to_owned).collect()
}

/// Whether `env` has the loader look in further folders.
pub fn names_folders(env: &BTreeMap<String, String>) -> bool {
    env.contains_key(FOLDERS)
}

/// The names among `names` that the loader would not find.
pub fn absent(names: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let mut names = names.into_iter().peekable();
    if names.peek().is_none() {
        return BTreeSet::new();
    }
    let passed = Passed::here(To::Trials);
    let more_folders = passed.variables().any(|(name, _)| name == FOLDERS);
    let cache = fs::read(CACHE).unwrap_or_default();
    let is_absent = |name: &String| match name.starts_with('/') {
        true => !Path::new(name).exists(),
        // A path from the folder that it runs in is for the loader to find.
        false => !name.contains('/') && !more_folders && !is_found(name, &cache),
    };
    names.filter(is_absent).collect()
}

/// Whether a folder of the loader has `name`. Its cache holds paths that end in a zero byte.
fn is_found(name: &str, cache: &[u8]) -> bool {
    let triple = format!("{}-linux-gnu", std::env::consts::ARCH);
    let of_debian = OF_DEBIAN.map(|folder| Path::new(folder).join(&triple));
    let usual = USUAL.iter().map(Path::new);
    let usual = usual.chain(of_debian.iter().map(PathBuf::as_path));
    let mut usual = usual.map(|folder| folder.join(name));
    let paths = cache.split(|byte| *byte == 0);
    let mut paths = paths.filter(|path| path.first() == Some(&b'/'));
    let is_it = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path));
        path.file_name() == Some(OsStr::new(name)) && path.exists()
    };
    usual.any(|path| path.exists()) || paths.any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pair = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        variables.iter().map(pair).collect()
    }

    #[test]
    fn what_only_the_loader_can_tell_is_not_judged() {
        let of = |text| named(&env(&[(PRELOAD, text)]));
        assert_eq!(of("a.so.2 /b/c.so:d.so"), ["a.so.2", "/b/c.so", "d.so"]);
        assert_eq!(of("{dir}/a.so $ORIGIN/b.so "), Vec::<String>::new());
        let elsewhere = env(&[(PRELOAD, "a.so /b.so"), (FOLDERS, "/opt")]);
        assert_eq!(named(&elsewhere), ["/b.so"]);
        assert!(named(&env(&[])).is_empty());
    }

    #[test]
    fn a_library_is_there_if_a_folder_of_the_loader_has_it() {
        let folder = tempfile::Builder::new().prefix("prony").tempdir().unwrap();
        let there = folder.path().join("libthere.so.1");
        fs::write(&there, "").unwrap();
        let missing = folder.path().join("libgone.so.1");
        let cache = format!(
            "glibc-ld.so.cache1.1\0libthere.so.1\0{}\0{}\0",
            there.display(),
            missing.display()
        );
        assert!(is_found("libthere.so.1", cache.as_bytes()));
        assert!(
            !is_found("libgone.so.1", cache.as_bytes()),
            "the cache is older"
        );
        assert!(!is_found("there.so.1", cache.as_bytes()));
        let [there, missing] = [there, missing].map(|path| path.display().to_string());
        let names = [there, missing.clone(), "libnowhere-at-all.so".to_owned()];
        assert_eq!(
            absent(names),
            [missing, "libnowhere-at-all.so".to_owned()].into()
        );
    }
}
