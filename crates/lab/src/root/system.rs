//! `/proc`, `/sys` and `/dev` of a root file system: what a process in it may see of the machine, and nothing of it may it
//! change. User 0 needs no capability to write most of `/proc/sys`, which is the machine's and not the namespace's.
//!
//! The lists are those of container runtimes, and what else user 0 may read of the kernel. `/dev` has the devices that
//! programs expect everywhere; what else it has is of this root file system alone.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use super::{bind, inside, named};

const PROC: &str = "/proc";
const SYS: &str = "/sys";
const DEV: &str = "/dev";
/// Folders that are mounted here, in this order.
pub const FOLDERS: [&str; 3] = [PROC, SYS, DEV];

/// Below `/proc`: what is of the machine, and may be read.
const READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
/// What is not seen at all: memory, keys, tables and traces of the kernel, power.
const MASKED: [&str; 15] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
];
const DEVICES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];
/// Links below `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "/proc/self/fd/2"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
];
const QUIET: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NOEXEC)
    .union(MountFlags::NODEV);

/// Mounts all three in `root`, which has their folders. The caller's own stay as they are.
pub fn mount(root: &Path) -> io::Result<()> {
    for folder in [PROC, SYS] {
        let there = inside(root, Path::new(folder));
        bind(Path::new(folder), &there).map_err(|error| named(&there, error))?;
    }
    let proc = inside(root, Path::new(PROC));
    for name in READ_ONLY {
        let path = proc.join(name);
        if path.exists() {
            let mounted = bind(&path, &path).and_then(|()| read_only(&path));
            mounted.map_err(|error| named(&path, error))?;
        }
    }
    for path in mounts_below(&inside(root, Path::new(SYS)))? {
        match read_only(&path) {
            // The machine has another mount over it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done.map_err(|error| named(&path, error))?,
        }
    }
    // After them: what is masked covers the mounts in it, such as those that machines with UEFI have in /sys/firmware.
    for path in MASKED {
        let path = inside(root, Path::new(path));
        mask(&path).map_err(|error| named(&path, error))?;
    }
    let dev = inside(root, Path::new(DEV));
    devices(&dev).map_err(|error| named(&dev, error))
}

/// Hides a file behind the empty device, a folder behind an empty one.
fn mask(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => {
            let flags = QUIET.union(MountFlags::RDONLY);
            Ok(rustix::mount::mount(
                "tmpfs", path, "tmpfs", flags, c"size=0k",
            )?)
        }
        Ok(_) => bind(Path::new("/dev/null"), path),
        // Each kernel has only some of them.
        Err(_) => Ok(()),
    }
}

fn read_only(path: &Path) -> io::Result<()> {
    let flags = QUIET.union(MountFlags::BIND).union(MountFlags::RDONLY);
    Ok(rustix::mount::mount_remount(path, flags, "")?)
}

/// The mounts at `folder` and below it.
fn mounts_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    let places = text.lines().filter_map(|line| line.split(' ').nth(4));
    let places = places.map(|place| PathBuf::from(unescaped(place)));
    Ok(places.filter(|place| place.starts_with(folder)).collect())
}

/// A path as the kernel lists it: four characters are octal.
fn unescaped(text: &str) -> String {
    const ESCAPED: [(&str, &str); 4] = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replaced = |text: String, (code, plain): (&str, &str)| text.replace(code, plain);
    ESCAPED.into_iter().fold(text.to_owned(), replaced)
}

/// A `/dev` with the devices that programs expect everywhere, terminals and shared memory of its own.
fn devices(dev: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", dev, "tmpfs", flags, c"mode=755,size=64k")?;
    for name in DEVICES {
        let device = Path::new(DEV).join(name);
        if device.exists() {
            File::create(dev.join(name))?;
            bind(&device, &dev.join(name))?;
        }
    }
    for name in ["pts", "shm"] {
        fs::create_dir(dev.join(name))?;
    }
    let terminals = c"newinstance,ptmxmode=0666,mode=0620";
    rustix::mount::mount("devpts", dev.join("pts"), "devpts", flags, terminals)?;
    let flags = flags | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", dev.join("shm"), "tmpfs", flags, c"mode=1777")?;
    for (name, to) in LINKS {
        symlink(to, dev.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_the_kernel_writes_it() {
        assert_eq!(unescaped("/a\\040b\\134c"), "/a b\\c");
        assert_eq!(unescaped("/plain"), "/plain");
    }
}
