//! The root file system of a subject that has one of its own: what is mounted in it before anything is started there.
//!
//! ```text
//! ROOT            read-only: no trial changes what the next one finds
//! ROOT/proc sys                   of the supervisor; nothing of the machine can be written, and some not be seen
//! ROOT/dev tmp run                its own; tmp and run are empty and in memory
//! ROOT/<folder, build, work>      the same paths as outside
//! ```
//!
//! All mounts are in the mount namespace of a supervisor and end with it. Processes enter by [`crate::launch::Resolved`].
//!
//! Not for: making one ([`crate::build`]), or which subject has one ([`crate::subject::RootFs`]).

mod system;

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};

use crate::launch;

/// Folders in memory.
const IN_MEMORY: [&str; 2] = ["/tmp", "/run"];
/// What names servers of names, where something in it downloads.
const RESOLVER: &str = "/etc/resolv.conf";
/// Folders that a root file system was made in, beside its marker.
pub const INSIDE: &str = "root";

/// A root file system, and the folders of the machine that are to be seen in it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Rooted {
    /// Its folder, absolute.
    pub dir: PathBuf,
    /// Absolute folders, seen under the same paths.
    pub folders: Vec<PathBuf>,
}

/// Whether this process may mount and enter one.
pub fn allowed() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_CHROOT | launch::OUTSIDE;
    let host = rustix::thread::capabilities(None);
    host.is_ok_and(|sets| sets.effective.contains(needed))
}

/// Mounts what is to be seen in `rooted`. For the first process of a mount namespace of its own (`alone`: it is one), before
/// it starts anything; errors name the folder that was refused.
pub fn furnish(rooted: &Rooted, alone: bool) -> io::Result<()> {
    if !alone {
        let reason =
            "a root file system is mounted in a process namespace of its own, and there is none";
        return Err(io::Error::other(reason));
    }
    let root = rooted.dir.as_path();
    let bound: Vec<&Path> = rooted.folders.iter().map(PathBuf::as_path).collect();
    let memory = IN_MEMORY.iter().map(Path::new);
    let of_system = system::FOLDERS.iter().map(Path::new);
    // A folder of the machine that lies in one that is in memory has its place made there, once that is mounted.
    let hidden = |path: &Path| IN_MEMORY.iter().any(|top| path.starts_with(top));
    for path in memory
        .clone()
        .chain(of_system)
        .chain(bound.iter().copied().filter(|path| !hidden(path)))
    {
        place(root, path).map_err(|error| named(path, error))?;
    }
    bind(root, root).map_err(|error| named(root, error))?;
    let read_only = MountFlags::BIND | MountFlags::RDONLY;
    rustix::mount::mount_remount(root, read_only, "").map_err(|error| named(root, error.into()))?;
    for path in memory {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        rustix::mount::mount("tmpfs", inside(root, path), "tmpfs", flags, None)
            .map_err(|error| named(path, error.into()))?;
    }
    system::mount(root)?;
    for path in bound {
        let there = match hidden(path) {
            true => place(root, path),
            false => Ok(inside(root, path)),
        };
        let mounted = there.and_then(|there| bind(path, &there));
        mounted.map_err(|error| named(path, error))?;
    }
    let (host, theirs) = (Path::new(RESOLVER), inside(root, Path::new(RESOLVER)));
    // A root file system without the file resolves no names, as one that is not to download does.
    if host.is_file() && fs::symlink_metadata(&theirs).is_ok_and(|meta| meta.is_file()) {
        bind(host, &theirs).map_err(|error| named(host, error))?;
    }
    Ok(())
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn bind(from: &Path, to: &Path) -> io::Result<()> {
    rustix::mount::mount_bind_recursive(from, to)?;
    Ok(rustix::mount::mount_change(
        to,
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?)
}

/// The absolute `path` below `root`, whatever links `root` holds.
fn inside(root: &Path, path: &Path) -> PathBuf {
    let plain = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    root.join(plain.collect::<PathBuf>())
}

/// Makes the folder `path` below `root`, through no link: one would lead out of it.
fn place(root: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut at = root.to_path_buf();
    for part in path.components() {
        let Component::Normal(name) = part else {
            continue;
        };
        at.push(name);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(io::Error::other("it is no folder in the root file system")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&at)?,
            Err(error) => return Err(error),
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_made_through_a_link_that_leads_out_of_the_root() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("srv")).unwrap();
        assert!(place(root.path(), Path::new("/srv/app")).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        let made = place(root.path(), Path::new("/var/../app/deep")).unwrap();
        assert_eq!(made, root.path().join("var/app/deep"));
        assert!(made.is_dir());
        assert_eq!(
            inside(Path::new("/r"), Path::new("/a/b")),
            Path::new("/r/a/b")
        );
    }
}
