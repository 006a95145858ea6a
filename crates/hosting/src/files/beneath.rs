//! Files beneath a directory, and nothing else: the kernel itself refuses to go out.
//! Not for: what a request's path means (`path`), what is sent (`resource`).

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat, openat2, statx,
};
use rustix::io::Errno;

/// A pipe without a writer must not hold up the loop, nor a terminal become ours.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// While others rename directories the kernel may be unable to tell, and says so.
const TRIES_MAX: u32 = 16;

/// A directory.
#[derive(Debug)]
pub(super) struct Beneath {
    dir: OwnedFd,
    way: Way,
}

/// How names are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the kernel, which refuses whatever leaves the directory. Symbolic links are
    /// followed while they stay within it; absolute ones never do.
    Openat2,
    /// Component by component, and no symbolic link is followed: where the kernel is
    /// before Linux 5.6, or a sandbox forbids `openat2`.
    Walk,
}

/// The properties that tell one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub device: (u32, u32),
    pub inode: u64,
    pub size: u64,
    pub mode: u16,
    /// Seconds and nanoseconds since the Unix epoch.
    pub modified: (i64, u32),
    /// Of content or anything else, which nobody can set back.
    pub changed: (i64, u32),
}

impl Beneath {
    pub(super) fn open(dir: &Path) -> io::Result<Beneath> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(dir, flags, Mode::empty())?;
        let way = match openat2(&dir, ".", flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(_) => Way::Openat2,
            Err(_) => Way::Walk,
        };
        Ok(Beneath { dir, way })
    }

    #[cfg(test)]
    pub(super) fn with(dir: &Path, way: Way) -> Beneath {
        let beneath = Beneath::open(dir).unwrap();
        Beneath { way, ..beneath }
    }

    /// Opens whatever has this name, to be read: look at its stamp before reading.
    pub(super) fn file(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        match self.way {
            Way::Openat2 => self.resolved(name),
            Way::Walk => self.walked(name),
        }
    }

    /// The stamp of what has this name, or of what a symbolic link leads to, be it
    /// outside: only for comparing with one that [`Beneath::file`] gave.
    pub(super) fn stamp(&self, name: &[u8]) -> Result<Stamp, Errno> {
        let flags = AtFlags::NO_AUTOMOUNT;
        let found = statx(&self.dir, name, flags, StatxFlags::BASIC_STATS)?;
        Ok(Stamp::new(&found))
    }

    fn resolved(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TRIES_MAX {
            match openat2(&self.dir, name, READ, Mode::empty(), within) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    fn walked(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = None;
        let mut components = name.split(|&byte| byte == b'/').peekable();
        while let Some(component) = components.next() {
            if matches!(component, b"" | b"." | b"..") {
                return Err(Errno::XDEV);
            }
            let dir = at.as_ref().unwrap_or(&self.dir);
            if components.peek().is_none() {
                return openat(dir, component, READ | OFlags::NOFOLLOW, Mode::empty());
            }
            at = Some(openat(dir, component, step, Mode::empty())?);
        }
        Err(Errno::NOENT)
    }
}

impl Stamp {
    pub(super) fn of_file(file: &OwnedFd) -> Result<Stamp, Errno> {
        let flags = AtFlags::EMPTY_PATH;
        Ok(Stamp::new(&statx(
            file,
            "",
            flags,
            StatxFlags::BASIC_STATS,
        )?))
    }

    fn new(found: &Statx) -> Stamp {
        Stamp {
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            size: found.stx_size,
            mode: found.stx_mode,
            modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec),
            changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec),
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.mode.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    /// A directory with links in and out, and beside it what must not be read.
    fn yard() -> (TempDir, std::path::PathBuf) {
        let yard = tempfile::tempdir().unwrap();
        let root = yard.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(yard.path().join("outside")).unwrap();
        fs::write(yard.path().join("outside/f"), "OUTSIDE").unwrap();
        fs::write(yard.path().join("f"), "OUTSIDE").unwrap();
        for name in ["f", "a/f", "a/b/f"] {
            fs::write(root.join(name), "INSIDE").unwrap();
        }
        for (link, target) in [
            ("in", "a"),
            ("a/up", "../a/b"),
            ("out", "../outside"),
            ("a/out", "../../outside"),
            ("a/b/root", "../.."),
            ("file-out", "../outside/f"),
            ("loop", "loop"),
            ("proc", "/proc/self/root"),
            ("self", "/proc/self/fd"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        symlink(yard.path().join("outside"), root.join("absolute")).unwrap();
        (yard, root)
    }

    fn read(beneath: &Beneath, name: &[u8]) -> Result<String, Errno> {
        let file = beneath.file(name)?;
        let mut text = String::new();
        match Stamp::of_file(&file)?.file_type() {
            FileType::RegularFile => File::from(file).read_to_string(&mut text).unwrap(),
            _ => return Err(Errno::ISDIR),
        };
        Ok(text)
    }

    #[test]
    fn links_are_followed_inside_and_not_out() {
        let (_yard, root) = yard();
        let beneath = Beneath::open(&root).unwrap();
        assert_eq!(beneath.way, Way::Openat2, "this kernel has openat2");
        for name in ["f", "a/f", "in/f", "in/b/f", "a/up/f", "a/b/root/f"] {
            assert_eq!(
                read(&beneath, name.as_bytes()),
                Ok("INSIDE".into()),
                "{name}"
            );
        }
        for name in [
            "out/f",
            "a/out/f",
            "file-out",
            "absolute/f",
            "../f",
            "a/../../f",
            "/etc/hostname",
            "loop",
            "proc/etc/hostname",
            "self/0",
        ] {
            assert!(read(&beneath, name.as_bytes()).is_err(), "{name}");
        }
    }

    #[test]
    fn without_openat2_no_link_is_followed() {
        let (_yard, root) = yard();
        let beneath = Beneath::with(&root, Way::Walk);
        assert_eq!(read(&beneath, b"a/b/f"), Ok("INSIDE".into()));
        for name in ["in/f", "a/up/f", "out/f", "file-out", "../f", "a//f", ""] {
            assert!(read(&beneath, name.as_bytes()).is_err(), "{name}");
        }
    }

    #[test]
    fn a_pipe_is_opened_without_waiting_for_a_writer() {
        let (_yard, root) = yard();
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        );
        made.unwrap();
        for way in [Way::Openat2, Way::Walk] {
            let file = Beneath::with(&root, way).file(b"pipe").unwrap();
            assert_eq!(Stamp::of_file(&file).unwrap().file_type(), FileType::Fifo);
        }
    }

    fn component() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "a", "b", "f", "in", "out", "up", "root", "..", ".", "", "file-out", "absolute",
            "loop", "proc", "self", "0", "etc", "outside", "hostname",
        ])
    }

    proptest! {
        #[test]
        fn no_name_leads_out(names in prop::collection::vec(prop::collection::vec(component(), 0..8), 64)) {
            let (_yard, root) = yard();
            for way in [Way::Openat2, Way::Walk] {
                let beneath = Beneath::with(&root, way);
                for name in &names {
                    let name = name.join("/");
                    if let Ok(text) = read(&beneath, name.as_bytes()) {
                        prop_assert_eq!(text, "INSIDE", "{} by {:?}", name, way);
                    }
                }
            }
        }
    }
}
