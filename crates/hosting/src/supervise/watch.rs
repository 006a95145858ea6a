//! Looks out for changes of the application's files, for `--reload`.
//!
//! A change is that of a file whose name ends in one of [`ENDINGS`], in or below one of
//! the directories where modules are looked for; also of directories that come to be
//! later. Not for: which files an application has really read.

use std::ffi::{CStr, OsStr};
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use prony_base::Nanos;
use prony_engine::Handle;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use super::events::Events;
use super::pool::Event;

/// What an application is made of; its log and its database are not among it.
const ENDINGS: [&str; 28] = [
    "lua", "py", "pyi", "so", "html", "htm", "xml", "svg", "md", "txt", "rst", "css", "js", "mjs",
    "toml", "json", "yaml", "yml", "ini", "cfg", "conf", "env", "sql", "csv", "j2", "jinja", "tpl",
    "po",
];
/// Directories looked at; more are left out, and that is printed.
const DIRECTORIES_MAX: usize = 4096;
/// Bytes of changes read in one call.
const CHANGES_BYTES: usize = 16 << 10;
/// Changes come in groups: a group has ended after so long without one.
const QUIET: Nanos = Nanos::from_millis(100);
/// A group is taken for ended after so long at the latest.
const GROUP_MAX: Nanos = Nanos::from_secs(1);

/// Starts looking out; says on `err` what cannot be looked at.
pub(super) fn start(
    handle: &Handle,
    directories: &[PathBuf],
    events: &Rc<Events>,
    err: &mut dyn Write,
) {
    let mut watch = match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
        Ok(notify) => Watch {
            notify,
            directories: Vec::new(),
        },
        Err(error) => {
            let text = format!("--reload: changes of files are not seen: inotify: {error}");
            return super::say(err, &text);
        }
    };
    for directory in directories {
        watch.add(directory);
    }
    if watch.directories.is_empty() {
        let text = "--reload: changes of files are not seen: none of the directories can be \
                    looked at (fs.inotify.max_user_watches limits how many can)";
        super::say(err, text);
    } else if watch.directories.len() >= DIRECTORIES_MAX {
        let text = format!(
            "--reload: changes are seen in the first {DIRECTORIES_MAX} directories only: give \
             the application's own with --path"
        );
        super::say(err, &text);
    }
    let (loop_handle, events) = (handle.clone(), events.clone());
    handle
        .spawn(async move {
            while watch.group(&loop_handle).await {
                events.put(Event::Renew);
            }
        })
        .detach();
}

struct Watch {
    notify: OwnedFd,
    /// By the kernel's number.
    directories: Vec<(i32, PathBuf)>,
}

impl Watch {
    /// Looks at a directory and those below it; true if there is a file in them that
    /// counts.
    fn add(&mut self, directory: &Path) -> bool {
        let mut found = false;
        let mut left = vec![directory.to_owned()];
        while let Some(directory) = left.pop() {
            if self.directories.len() >= DIRECTORIES_MAX {
                break;
            }
            let wanted = WatchFlags::CREATE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::ONLYDIR
                | WatchFlags::EXCL_UNLINK;
            let Ok(number) = inotify::add_watch(&self.notify, &directory, wanted) else {
                continue;
            };
            self.directories.retain(|(known, _)| *known != number);
            self.directories.push((number, directory.clone()));
            let Ok(entries) = std::fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                // A link to a directory may lead anywhere: not followed.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => {
                        if is_entered(&entry.file_name()) {
                            left.push(entry.path());
                        }
                    }
                    _ => found |= counts(&entry.file_name()),
                }
            }
        }
        found
    }

    /// Waits for a group of changes and for its end; false when there will be none.
    async fn group(&mut self, handle: &Handle) -> bool {
        loop {
            if handle.readable(&self.notify).await.is_err() {
                return false;
            }
            if self.read() {
                break;
            }
        }
        let due = handle.now() + GROUP_MAX;
        while handle.now() < due {
            let more = handle.timeout(QUIET, handle.readable(&self.notify)).await;
            if more.is_err() {
                break;
            }
            self.read();
        }
        true
    }

    /// Reads what has changed; true if something counts.
    fn read(&mut self) -> bool {
        let mut counted = false;
        let mut new = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); CHANGES_BYTES];
        let mut reader = inotify::Reader::new(&self.notify, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                counted = true;
            }
            if event.events().contains(ReadFlags::IGNORED) {
                // It is gone, and its number may come again.
                self.directories.retain(|(number, _)| *number != event.wd());
                continue;
            }
            let Some(name) = event.file_name().map(CStr::to_bytes).map(OsStr::from_bytes) else {
                continue;
            };
            let known = self.directories.iter();
            let directory = known.clone().find(|(number, _)| *number == event.wd());
            let Some((_, directory)) = directory else {
                continue;
            };
            let path = directory.join(name);
            let came = ReadFlags::CREATE | ReadFlags::MOVED_TO;
            if event.events().contains(ReadFlags::ISDIR) {
                if event.events().intersects(came) && is_entered(name) {
                    new.push(path);
                }
            } else if counts(name) {
                // A file that is made is written next, and closed; a link is not.
                counted |= !event.events().contains(ReadFlags::CREATE) || path.is_symlink();
            }
        }
        for directory in new {
            counted |= self.add(&directory);
        }
        counted
    }
}

/// Whether a directory below is looked at.
fn is_entered(name: &OsStr) -> bool {
    let name = name.as_bytes();
    !name.starts_with(b".") && name != b"__pycache__" && name != b"node_modules"
}

/// Whether a file is one that an application is made of.
fn counts(name: &OsStr) -> bool {
    let ending = Path::new(name).extension().and_then(OsStr::to_str);
    !name.as_bytes().starts_with(b".")
        && ending.is_some_and(|ending| ENDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_were_gone_were_still_counted() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        let mut watch = Watch {
            notify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap(),
            directories: Vec::new(),
        };
        watch.add(dir.path());
        for _ in 0..3 {
            std::fs::create_dir(&below).unwrap();
            watch.read();
            assert_eq!(watch.directories.len(), 2);
            std::fs::remove_dir(&below).unwrap();
            watch.read();
            assert_eq!(watch.directories.len(), 1);
        }
        std::fs::create_dir(&below).unwrap();
        watch.read();
        std::fs::write(below.join("new.lua"), "").unwrap();
        assert!(watch.read());
    }

    #[test]
    fn files_that_editors_and_interpreters_leave_behind_do_not_count() {
        for name in ["app.lua", "app.PY", "page.html", "settings.toml", "a.b.md"] {
            assert!(counts(OsStr::new(name)), "{name}");
        }
        for name in [
            ".app.lua.swp",
            ".#app.lua",
            "app.lua~",
            "app.py.swp",
            "4913",
            "app.pyc",
            "access.log",
            "db.sqlite3",
            ".hidden.lua",
            "lua",
        ] {
            assert!(!counts(OsStr::new(name)), "{name}");
        }
    }
}
