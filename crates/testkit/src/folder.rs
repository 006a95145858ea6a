//! Folders for tests, which leave none behind.

use std::cell::RefCell;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "prony-tmp-";

thread_local! {
    static FOLDERS: RefCell<Vec<TestFolder>> = const { RefCell::new(Vec::new()) };
}

/// A fresh folder, removed when the calling thread ends: a test's, when it has passed or failed. What a process leaves that
/// was killed is removed by the next one that asks for a folder.
///
/// # Panics
/// Where the folder of temporary files cannot be written.
pub fn folder(name: &str) -> PathBuf {
    static SWEPT: Once = Once::new();
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    SWEPT.call_once(|| sweep(&env::temp_dir()));
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = process::id();
        let path = env::temp_dir().join(format!("{PREFIX}{name}-{id}-{number}"));
        fs::create_dir(&path).expect("a temporary folder");
        // Another process may have swept it away before it was locked.
        if let Some(folder) = TestFolder::take(&path) {
            FOLDERS.with_borrow_mut(|folders| folders.push(folder));
            return path;
        }
    }
}

/// A folder that is removed when dropped.
///
/// INVARIANT: it is locked for as long as this process has it, so that a folder without a lock is nobody's.
struct TestFolder {
    path: PathBuf,
    _lock: File,
}

impl TestFolder {
    /// Takes hold of a folder that nobody has.
    fn take(path: &Path) -> Option<TestFolder> {
        let lock = File::open(path).ok()?;
        lock.try_lock().ok()?;
        path.exists().then(|| TestFolder {
            path: path.to_owned(),
            _lock: lock,
        })
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        // What cannot be removed, such as another user's, is left for whoever can.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders in `place` whose process is gone.
fn sweep(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let of_tests = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    of_tests.for_each(|entry| drop(TestFolder::take(&entry.path())));
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn tests_left_their_folders_behind() {
        let passes = thread::spawn(|| folder("passes"));
        let passed = passes.join().expect("it passes");
        assert!(!passed.exists());
        let fails = thread::spawn(|| panic!("{}", folder("fails").display()));
        let failed = fails.join().expect_err("it fails");
        let failed = failed.downcast::<String>().expect("its path");
        assert!(failed.contains("prony-tmp-fails-") && !Path::new(&*failed).exists());
    }

    #[test]
    fn folders_of_killed_processes_were_never_removed() {
        let place = folder("sweep");
        let names = ["prony-tmp-gone-1-0", "prony-tmp-held-2-0", "another"];
        let [gone, held, another] = names.map(|name| place.join(name));
        for path in [&gone, &held, &another] {
            fs::create_dir(path).expect("a folder");
            fs::write(path.join("file"), "").expect("a file");
        }
        let holder = TestFolder::take(&held).expect("nobody has it");
        sweep(&place);
        assert_eq!(
            [&gone, &held, &another].map(|path| path.exists()),
            [false, true, true]
        );
        drop(holder);
        assert!(!held.exists());
    }
}
