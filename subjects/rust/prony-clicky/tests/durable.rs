//! A click that is acknowledged as durable is on the disk. A killed process cannot show it, as the kernel writes
//! what it has left behind; so the system calls are traced and played on a disk that forgets what was not synced.

mod counted;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use counted::{at_desk, quiet};
use prony_clicky::counting::{Ack, Backend, Name, Tally};

/// Where the stores are, for the test that is traced.
const PLACE: &str = "TRACED_STORES";
/// Clicks of each life of a store.
const CLICKS: usize = 30;
/// A store is opened so often: when it is made, and when it is found.
const LIVES: usize = 2;
/// What the traced test writes to standard error, for the trace.
const LOG_BEGINS: &str = "the log begins";
const ACKNOWLEDGED: &str = "acknowledged";

/// Written in one call, so that it is one line of the trace.
fn mark(what: &str) {
    let line = format!("{what}\n");
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error");
}

#[test]
fn clicks_that_are_traced() {
    if let Some(place) = env::var_os(PLACE) {
        click(Path::new(&place));
    }
}

fn click(place: &Path) {
    // Written anew after every few clicks.
    let log = Backend::File {
        path: place.join("log"),
        log_bytes_max: 200,
    };
    let database = Backend::Sqlite {
        path: place.join("database"),
    };
    for (begins, backend) in [(LOG_BEGINS, log), ("the database begins", database)] {
        for _ in 0..LIVES {
            mark(begins);
            let (mut setting, _) = quiet(backend.clone());
            setting.ack = Ack::Synced;
            let tally = Tally::open(&setting).expect("it opens");
            // What is found is shown to clients.
            mark(ACKNOWLEDGED);
            at_desk(&tally, async |_, desk| {
                for _ in 0..CLICKS {
                    desk.add_synced(&Name::ROOT, 1).await.expect("kept");
                    mark(ACKNOWLEDGED);
                }
            });
            tally.close().expect("nothing is pending");
        }
    }
}

/// What a disk would forget.
#[derive(Debug)]
struct Forgetful {
    folder: PathBuf,
    names: BTreeSet<PathBuf>,
    /// Files, and the folder with their names, that were changed and not synced since.
    unsynced: BTreeSet<PathBuf>,
    acknowledged: usize,
    renamed: usize,
}

impl Forgetful {
    /// Plays a call that succeeded: its name, its words, what it returned.
    fn call(&mut self, name: &str, words: &str, returned: &str) {
        match name {
            "openat" if words.contains("O_CREAT") => {
                if let Some(file) = self.descriptor(returned)
                    && self.names.insert(file)
                {
                    self.unsynced.insert(self.folder.clone());
                }
            }
            "write" if words.contains(LOG_BEGINS) => self.begin(),
            "write" if words.contains(ACKNOWLEDGED) => {
                self.acknowledged += 1;
                assert!(self.unsynced.is_empty(), "acknowledged: {self:?}");
            }
            "write" | "pwrite64" | "ftruncate" => self.unsynced.extend(self.descriptor(words)),
            "fsync" | "fdatasync" => {
                if let Some(file) = self.descriptor(words) {
                    self.unsynced.remove(&file);
                }
            }
            "rename" | "renameat" | "renameat2" => {
                let mut names = words.split('"').skip(1).step_by(2).map(PathBuf::from);
                let (from, to) = (
                    names.next().expect("a name"),
                    names.next().expect("another"),
                );
                assert!(!self.unsynced.contains(&from), "renamed: {self:?}");
                self.unsynced.remove(&to);
                self.unsynced.insert(self.folder.clone());
                self.names.insert(to);
                self.renamed += 1;
            }
            _ => {}
        }
    }

    /// Who had a log before may have been killed before it was durable, or its name. (SQLite does not doubt what it finds.)
    fn begin(&mut self) {
        let log = self.folder.join("log");
        if self.names.contains(&log) {
            self.unsynced.extend([log, self.folder.clone()]);
        }
    }

    /// The file below the folder, or the folder, whose descriptor is the first in the text: `7</tmp/x/log>`.
    fn descriptor(&self, text: &str) -> Option<PathBuf> {
        let path = text.split_once('<')?.1.split_once('>')?.0;
        let path = PathBuf::from(path);
        // The list of who reads SQLite's log is in memory that is shared; it is made anew from the log.
        let is_shared = path.to_str()?.ends_with("-shm");
        (path.starts_with(&self.folder) && !is_shared).then_some(path)
    }
}

/// Plays what strace wrote: a thread and a call a line, or the beginning of a call and later its end.
fn play(trace: &str, disk: &mut Forgetful) {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    for line in trace.lines() {
        let (thread, call) = line.split_once(' ').expect("a thread");
        let call = call.trim_start();
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, begin);
            continue;
        }
        let call = match call.split_once(" resumed>") {
            Some((_, end)) => format!("{}{end}", begun.remove(thread).expect("its beginning")),
            None => call.to_owned(),
        };
        let parts = call.split_once('(').zip(call.rsplit_once(" = "));
        if let Some(((name, words), (_, returned))) = parts
            && !returned.starts_with('-')
        {
            disk.call(name, words, returned);
        }
    }
}

#[test]
fn clicks_were_acknowledged_that_a_power_failure_would_have_taken() {
    let Some(strace) = prony_testkit::need("strace") else {
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let folder = fs::canonicalize(place.path()).expect("its path");
    let trace = folder.join("trace");
    let calls = "trace=openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2";
    let this = env::current_exe().expect("this program");
    let output = Command::new(strace)
        .args(["-f", "-y", "-e", calls, "-o"])
        .arg(&trace)
        .arg(this)
        .args(["--exact", "clicks_that_are_traced", "--nocapture"])
        .env(PLACE, &folder)
        .output()
        .expect("strace runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("Operation not permitted") {
        return prony_testkit::skip("no process may be traced here");
    }
    assert!(output.status.success(), "{said}");
    let text = fs::read_to_string(&trace).expect("a trace");
    let mut disk = Forgetful {
        folder,
        names: BTreeSet::new(),
        unsynced: BTreeSet::new(),
        acknowledged: 0,
        renamed: 0,
    };
    play(&text, &mut disk);
    assert_eq!(disk.acknowledged, 2 * LIVES * (CLICKS + 1), "all is seen");
    assert!(
        disk.renamed >= 4,
        "and logs that are written anew: {disk:?}"
    );
}
