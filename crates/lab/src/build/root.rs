//! Root file systems of subjects ([`RootFs`]), each made once:
//!
//! ```text
//! <cache>/root/debian-trixie-0123456789ab/root/   its files
//! <cache>/root/debian-trixie-0123456789ab.log     what making it printed
//! ```
//!
//! The key is of its release and packages; of a folder, of the names, modes, sizes and times of all that is in it.
//!
//! Not for: entering it ([`crate::root`]).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use prony_base::Nanos;
use sha2::{Digest as _, Sha256};

use super::job::{
    BuildContext, CommandSpec, Failed, Finished, Launcher, interrupted, part, quote, tail,
};
use super::shelf::{Held, KEPT, Shelf};
use crate::launch::Resolved;
use crate::root::INSIDE;
use crate::subject::RootFs;
use crate::sums::hex;

/// How long making one may take: it downloads.
const TIMEOUT: Nanos = Nanos::from_secs(30 * 60);
/// Files of a folder that is copied.
const FILES_MAX: usize = 1_000_000;
/// What unpacking a system's files takes.
const CAPABILITIES: [&str; 11] = [
    "chown",
    "dac_override",
    "fowner",
    "fsetid",
    "kill",
    "mknod",
    "setfcap",
    "setgid",
    "setuid",
    "sys_admin",
    "sys_chroot",
];

/// The root file system `root`, made if the cache lacks it.
pub(super) fn made(
    root: &RootFs,
    context: &BuildContext<'_>,
    launcher: &dyn Launcher,
) -> Result<Held, Failed> {
    let shelf = Shelf::for_build(context, "root")?;
    let (prefix, key) = named(root)?;
    let stem = format!("{prefix}{}", &key[..12]);
    let log = shelf.root.join(format!("{stem}.log"));
    let held = shelf.hold(&stem, &|dir| {
        let inside = dir.join(INSIDE);
        let command = CommandSpec {
            resolved: Resolved {
                command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script(root, &inside)],
                dir: dir.to_path_buf(),
                capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
                ..Resolved::default()
            },
            rooted: None,
            log: log.clone(),
            timeout_ns: TIMEOUT.0,
        };
        let finished = launcher.run(&command, context.cancel);
        let failed = |how: String| Failed {
            log: Some(log.clone()),
            ..Failed::new(format!("its root file system cannot be made: {how}"))
        };
        match finished.map_err(|error| failed(error.to_string()))? {
            Finished::Code(0) => Ok(()),
            Finished::Interrupted => Err(interrupted()),
            Finished::TimedOut => Err(failed(format!("it took longer than {TIMEOUT}"))),
            _ => Err(failed(tail(&log).join(" | "))),
        }
    })?;
    shelf.remove_old(&prefix, &stem, KEPT);
    Ok(held)
}

/// What the names of its like begin with, and its key.
fn named(root: &RootFs) -> Result<(String, String), Failed> {
    let mut hash = Sha256::new();
    let prefix = match root {
        RootFs::Debian { suite, packages } => {
            part(&mut hash, "debian", suite.as_bytes());
            for package in packages {
                part(&mut hash, "package", package.as_bytes());
            }
            format!("debian-{suite}-")
        }
        RootFs::Folder { dir } => {
            let wrong = |error: io::Error| {
                Failed::new(format!("its root file system {}: {error}", dir.display()))
            };
            let mut files = 0;
            listed(dir, Path::new(""), &mut hash, &mut files).map_err(wrong)?;
            "folder-".to_owned()
        }
    };
    Ok((prefix, hex(&hash.finalize())))
}

/// Adds all that is in `top` and below `name` in it, in order.
fn listed(top: &Path, name: &Path, hash: &mut Sha256, files: &mut usize) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(top.join(name))?
        .map(|entry| Ok(name.join(entry?.file_name())))
        .collect::<io::Result<_>>()?;
    entries.sort();
    *files += entries.len();
    if *files > FILES_MAX {
        return Err(io::Error::other(format!("more than {FILES_MAX} files")));
    }
    for entry in entries {
        let path = top.join(&entry);
        let meta = fs::symlink_metadata(&path)?;
        let state = format!(
            "{:o} {} {}.{}",
            meta.mode(),
            meta.len(),
            meta.mtime(),
            meta.mtime_nsec()
        );
        part(hash, &entry.display().to_string(), state.as_bytes());
        if meta.is_symlink() {
            let to = fs::read_link(&path)?;
            part(hash, "to", to.as_os_str().as_encoded_bytes());
        }
        if meta.is_dir() {
            listed(top, &entry, hash, files)?;
        }
    }
    Ok(())
}

/// The shell script that makes it in the folder `inside`.
fn script(root: &RootFs, inside: &Path) -> String {
    let inside = quote(&inside.display().to_string());
    match root {
        RootFs::Debian { suite, packages } => {
            let include = match packages.is_empty() {
                true => String::new(),
                false => format!(" --include={}", packages.join(",")),
            };
            // The mirror of this machine: it is the one that can be reached from it.
            format!(
                "mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | head -n 1); \
                 test -n \"$mirror\" || {{ echo 'apt of this machine names no mirror of Debian; run apt-get update'; exit 1; }}; \
                 exec mmdebstrap --mode=root --variant=apt{include} {suite} {inside} \"$mirror\""
            )
        }
        RootFs::Folder { dir } => {
            let from = quote(&dir.display().to_string());
            format!("mkdir {inside} && exec cp -a --reflink=auto {from}/. {inside}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_changed_has_another_key() {
        let folder = tempfile::tempdir().unwrap();
        let root = RootFs::Folder {
            dir: folder.path().to_owned(),
        };
        fs::write(folder.path().join("a"), "1").unwrap();
        let (prefix, first) = named(&root).unwrap();
        assert_eq!(
            (prefix.as_str(), named(&root).unwrap().1),
            ("folder-", first.clone())
        );
        std::os::unix::fs::symlink("a", folder.path().join("b")).unwrap();
        assert_ne!(named(&root).unwrap().1, first);
    }

    #[test]
    fn packages_are_part_of_the_key_and_of_the_command() {
        let of = |packages: &[&str]| RootFs::Debian {
            suite: "trixie".to_owned(),
            packages: packages.iter().map(|&name| name.to_owned()).collect(),
        };
        assert_ne!(
            named(&of(&["g++"])).unwrap(),
            named(&of(&["g++", "make"])).unwrap()
        );
        let script = script(&of(&["g++", "make"]), Path::new("/c a/root"));
        assert!(
            script.ends_with("--include=g++,make trixie '/c a/root' \"$mirror\""),
            "{script}"
        );
    }
}
