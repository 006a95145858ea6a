//! Builds that nothing needs any more: all but the newest of each subject that is there, and no build that is in use.
//!
//! Not for: repositories that were fetched (`source/` in the cache), or what builds leave elsewhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use super::shelf::Shelf;
use super::{Failed, prefix};
use crate::subject::Subject;

/// Characters of a key in a build's name, with the `-` before them.
const KEY_CHARS: usize = 13;

/// The builds in `cache` that `subjects` do not need and nobody holds, sorted. Errors: the cache cannot be read.
pub fn unused(cache: &Path, subjects: &[Subject]) -> Result<Vec<PathBuf>, Failed> {
    let never = AtomicBool::new(false);
    let shelf = Shelf::open(cache, "build", &never)?;
    let stems = stems(&shelf, subjects).into_iter();
    let free = stems.filter(|stem| shelf.free(stem).is_some());
    Ok(free.map(|stem| shelf.root.join(stem)).collect())
}

/// Removes one of [`unused`], and tells whether it did: somebody may have begun to use it. Errors: the cache cannot be
/// read.
pub fn remove(cache: &Path, build: &Path) -> Result<bool, Failed> {
    let never = AtomicBool::new(false);
    let shelf = Shelf::open(cache, "build", &never)?;
    let name = build.file_name().and_then(|name| name.to_str());
    Ok(name.is_some_and(|name| shelf.root.join(name) == build && shelf.remove(name)))
}

fn stems(shelf: &Shelf<'_>, subjects: &[Subject]) -> Vec<String> {
    let known: Vec<String> = subjects.iter().map(prefix).collect();
    let mut newest: BTreeMap<String, (SystemTime, String)> = BTreeMap::new();
    let mut all = Vec::new();
    for (stem, made) in shelf.made() {
        let Some((prefix, key)) = stem
            .len()
            .checked_sub(KEY_CHARS)
            .and_then(|at| stem.split_at_checked(at + 1))
        else {
            continue;
        };
        // What is not named as a build is, is not one of ours.
        if !prefix.ends_with('-') || !key.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        all.push(stem.clone());
        if known.iter().any(|known| known == prefix) {
            let best = newest
                .entry(prefix.to_owned())
                .or_insert((made, stem.clone()));
            if made > best.0 {
                *best = (made, stem.clone());
            }
        }
    }
    all.retain(|stem| newest.values().all(|(_, newest_stem)| newest_stem != stem));
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use super::*;
    use crate::experiment::Origin;

    fn subject(folder: &Path) -> Subject {
        let text = "name = \"mine\"\nlanguage = \"c\"\nrole = \"server\"\nsummary = \"s\"\nendpoints = [\"/\"]\n[start]\ncmd = [\"x\", \"{port}\"]\n\
                    [ready]\nport = true\n[version]\ncmd = \"x\"\n";
        Subject::parse(text, &Origin::new("subject.toml", folder.join("mine"))).unwrap()
    }

    #[test]
    fn the_newest_build_of_a_subject_stays_and_so_does_what_is_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("build");
        let build = |stem: &str, age_s: u64| {
            fs::create_dir_all(root.join(stem)).unwrap();
            File::create(root.join(format!("{stem}.lock"))).unwrap();
            let marker = File::create(root.join(stem).join(".done")).unwrap();
            marker
                .set_modified(SystemTime::now() - Duration::from_secs(age_s))
                .unwrap();
        };
        build("c-mine-0123456789ab", 10);
        build("c-mine-1123456789ab", 20);
        build("c-mine-2123456789ab", 30);
        build("c-gone-0123456789ab", 10);
        build("c-held-0123456789ab", 10);
        build("notes", 10);
        let held = File::open(root.join("c-held-0123456789ab.lock")).unwrap();
        held.lock_shared().unwrap();
        let subjects = [subject(folder.path())];
        let names = |all: Vec<PathBuf>| -> Vec<String> {
            let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
            all.iter().map(name).collect()
        };
        let found = unused(folder.path(), &subjects).unwrap();
        assert_eq!(
            names(found.clone()),
            [
                "c-gone-0123456789ab",
                "c-mine-1123456789ab",
                "c-mine-2123456789ab"
            ]
        );
        assert!(
            found
                .iter()
                .all(|build| remove(folder.path(), build).unwrap())
        );
        assert!(!remove(folder.path(), &root.join("c-held-0123456789ab")).unwrap());
        assert!(!remove(folder.path(), Path::new("/elsewhere/c-mine-0123456789ab")).unwrap());
        assert!(root.join("c-mine-0123456789ab/.done").exists());
        assert!(!root.join("c-mine-1123456789ab.lock").exists());
        assert!(unused(folder.path(), &subjects).unwrap().is_empty());
        // Not only closed: a test beside this one may just be starting a process, which has the file until it is its program.
        held.unlock().unwrap();
        assert_eq!(
            names(unused(folder.path(), &subjects).unwrap()),
            ["c-held-0123456789ab"]
        );
    }
}
