//! The log on disks that fail: what was acknowledged is there after every crash, what was
//! certainly not kept never is.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use prony_base::Random;

use super::*;

/// A file as a kernel has it: what is durable, and what is seen.
#[derive(Clone, Default)]
struct Platter {
    durable: Vec<u8>,
    seen: Vec<u8>,
    /// From here on what is seen was lost by a failed sync, and no later one brings it back.
    lost_from: Option<usize>,
    /// One of so many operations fails; 0: none.
    fails: u64,
    /// Whether it is syncs alone that fail.
    only_syncs: bool,
    random: Option<Random>,
}

impl Platter {
    fn fails(&mut self, is_sync: bool) -> bool {
        let wanted = self.fails > 0 && (is_sync || !self.only_syncs);
        let random = self.random.as_mut();
        wanted && random.is_some_and(|random| random.chance(1, self.fails))
    }

    fn below(&mut self, limit: usize) -> usize {
        let random = self.random.as_mut();
        random.map_or(0, |random| random.below(limit as u64) as usize)
    }

    /// What is there after a crash: what is durable, and perhaps some of what was to be.
    fn crash(&mut self) -> Vec<u8> {
        let same = self.durable.len().min(self.seen.len());
        if self.durable[..same] != self.seen[..same] {
            return self.durable.clone();
        }
        let longer = self.seen.len().max(self.durable.len());
        let length = same + self.below(longer - same + 1);
        let from = [&self.seen, &self.durable][usize::from(self.durable.len() > same)];
        from[..length].to_vec()
    }
}

#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Platter>>);

impl Fake {
    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().expect("nobody broke it")
    }
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "made up")
}

impl Disk for Fake {
    fn write(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        assert_eq!(at as usize, platter.seen.len(), "a log grows at its end");
        let fails = platter.fails(false);
        let part = if fails {
            platter.below(bytes.len())
        } else {
            bytes.len()
        };
        platter.seen.extend_from_slice(&bytes[..part]);
        if fails { Err(full()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.fails(true) {
            let from = platter.durable.len().min(platter.seen.len());
            platter.lost_from.get_or_insert(from);
            return Err(full());
        }
        let until = platter.lost_from.unwrap_or(platter.seen.len());
        platter.durable = platter.seen[..until.min(platter.seen.len())].to_vec();
        Ok(())
    }

    fn is_there(&mut self) -> io::Result<bool> {
        Ok(true)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.fails(false) {
            return Err(full());
        }
        assert!(length as usize <= platter.seen.len(), "cutting never adds");
        platter.seen.truncate(length as usize);
        Ok(())
    }

    fn replace(&mut self, bytes: &[u8]) -> Result<(), ReplaceError> {
        let mut platter = self.platter();
        if platter.fails(true) {
            return Err(ReplaceError::Before(full()));
        }
        platter.seen = bytes.to_vec();
        platter.lost_from = None;
        if platter.fails(true) {
            // After a crash it is the old file or the new one.
            if platter.below(2) == 0 {
                platter.durable = bytes.to_vec();
            }
            return Err(ReplaceError::After(full()));
        }
        platter.durable = bytes.to_vec();
        Ok(())
    }
}

fn quiet() -> Tell {
    Tell::new(|_| {})
}

fn open(fake: &Fake, bytes: Option<&[u8]>) -> Result<FileStore<Fake>, OpenError> {
    FileStore::on(fake.clone(), bytes, Path::new("made up"), 200, &quiet())
}

fn batch(sequence: u64, clicks: u64) -> Batch {
    Batch {
        sequence,
        clicks: vec![(Name::ROOT, clicks)],
    }
}

fn total(store: &mut FileStore<Fake>) -> u64 {
    let totals = store.load().expect("it is in memory");
    totals.first().map_or(0, |&(_, total)| total)
}

/// What a service does with a store, until it crashes: clicks that were kept, and clicks of
/// which nobody knows.
fn live(fake: &Fake, store: &mut FileStore<Fake>, seed: u64) -> (u64, u64) {
    let (mut kept, mut unsure) = (total(store), 0);
    for sequence in 1..=30 {
        let clicks = 1 + seed % 7;
        match store.commit(&batch(sequence, clicks)) {
            Ok(committed) => {
                kept += clicks;
                assert_eq!(committed.totals, [kept]);
                // A log that was acknowledged has nothing that is not known to be counted.
                unsure = 0;
            }
            Err(CommitError::NotKept(_)) => {}
            Err(CommitError::Unknown(_)) => unsure = clicks,
        }
        if fake.platter().below(10) == 0 {
            break;
        }
    }
    (kept, unsure)
}

fn crashes(only_syncs: bool, fails: u64) {
    for seed in 0..prony_testkit::seeds(1_000, 30_000) {
        let fake = Fake::default();
        let mut bytes = None;
        fake.platter().random = Some(Random::new(seed));
        for life in 0..5 {
            fake.platter().fails = 0;
            let opened = open(&fake, bytes.as_deref());
            let mut store = opened.unwrap_or_else(|error| panic!("{seed}, {life}: {error}"));
            fake.platter().fails = fails;
            fake.platter().only_syncs = only_syncs;
            let (kept, unsure) = live(&fake, &mut store, seed + life);
            let mut platter = fake.platter();
            let found = platter.crash();
            let after = log::read(&found).unwrap_or_else(|damage| {
                panic!("{seed}, {life}: {damage:?}");
            });
            let after = after.totals.get(&Name::ROOT).copied().unwrap_or(0);
            assert!(
                after >= kept && after <= kept + unsure,
                "seed {seed}, life {life}: {after}, and kept {kept}, unsure {unsure}"
            );
            (platter.durable, platter.seen) = (found.clone(), found.clone());
            platter.lost_from = None;
            bytes = Some(found);
        }
    }
}

#[test]
fn a_disk_that_fails_now_and_then_loses_nothing_that_was_acknowledged() {
    crashes(false, 4);
}

#[test]
fn a_disk_whose_syncs_fail_loses_nothing_that_was_acknowledged() {
    crashes(true, 3);
}

#[test]
fn a_disk_that_does_not_fail_keeps_every_batch() {
    crashes(false, 0);
}

#[test]
fn a_failed_sync_is_answered_by_a_new_file_and_never_by_another_sync() {
    let fake = Fake::default();
    let mut store = open(&fake, None).expect("a new log");
    store.commit(&batch(1, 5)).expect("kept");
    // A sync that fails, and a replacement that does.
    fake.platter().random = Some(Random::new(0));
    fake.platter().fails = 1;
    fake.platter().only_syncs = true;
    let unsure = store.commit(&batch(2, 7));
    assert!(matches!(unsure, Err(CommitError::Unknown(_))), "{unsure:?}");
    let again = store.commit(&batch(2, 7));
    assert!(matches!(again, Err(CommitError::NotKept(_))), "{again:?}");
    fake.platter().fails = 0;
    // Had the file been synced once more, what the kernel dropped would be missing.
    store.commit(&batch(3, 11)).expect("kept");
    let durable = fake.platter().durable.clone();
    let contents = log::read(&durable).expect("a log");
    assert_eq!(
        (contents.number, contents.totals.get(&Name::ROOT)),
        (1, Some(&16))
    );
}

#[test]
fn a_log_is_written_anew_when_it_is_long() {
    let fake = Fake::default();
    let mut store = open(&fake, None).expect("a new log");
    for sequence in 1..=100 {
        store.commit(&batch(sequence, 1)).expect("kept");
        assert!(
            fake.platter().seen.len() < 300,
            "it is short again and again"
        );
    }
    let seen = fake.platter().seen.clone();
    assert_eq!(
        log::read(&seen).expect("a log").totals.get(&Name::ROOT),
        Some(&100)
    );
}

#[test]
fn a_number_in_decimal_is_taken_over_and_anything_else_left_alone() {
    let fake = Fake::default();
    let mut store = open(&fake, Some(b"1234\n")).expect("the original's file");
    assert_eq!(total(&mut store), 1_234);
    let durable = fake.platter().durable.clone();
    assert!(log::is_log(&durable), "it is a log from now on");
    assert_eq!(
        total(&mut open(&Fake::default(), Some(b"")).expect("empty")),
        0
    );
    for strange in [&b"12a"[..], b"-3", b"CLICKLO", b"\0\0"] {
        let refused = open(&Fake::default(), Some(strange)).map(drop);
        assert!(
            matches!(refused, Err(OpenError::Damaged { offset: 0, .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn a_log_that_was_found_is_not_trusted_to_be_durable() {
    let totals = |total| BTreeMap::from([(Name::ROOT, total)]);
    let fake = Fake::default();
    // Killed between a rename and the folder's sync, or after a sync that failed.
    fake.platter().durable = log::image(&totals(3)).0;
    fake.platter().seen = log::image(&totals(16)).0;
    fake.platter().lost_from = Some(20);
    let seen = fake.platter().seen.clone();
    let mut store = open(&fake, Some(&seen)).expect("it is whole");
    store.commit(&batch(1, 5)).expect("kept");
    store.commit(&batch(2, 7)).expect("kept");
    let durable = log::read(&fake.platter().durable).expect("a log");
    assert_eq!(durable.totals, totals(28));
    assert_eq!(durable.number, 2, "only the first is written anew");
}

#[test]
fn a_log_that_is_longer_than_can_be_read_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let bytes = log::image(&BTreeMap::from([(Name::ROOT, 16)])).0;
    std::fs::write(&path, &bytes).expect("a file");
    let length = bytes.len() as u64;
    assert!(Folder::open(&path, length).is_ok());
    let refused = Folder::open(&path, length - 1).map(drop);
    assert!(
        matches!(&refused, Err(OpenError::Damaged { offset, .. }) if *offset == length - 1),
        "{refused:?}"
    );
}

#[test]
fn a_log_does_not_grow_longer_than_can_be_read() {
    let fake = Fake::default();
    let mut store = open(&fake, None).expect("a new log");
    store.commit(&batch(1, 5)).expect("kept");
    let length = store.bytes();
    store.log_bytes_limit = length;
    let refused = store.commit(&batch(2, 5));
    assert!(
        matches!(refused, Err(CommitError::NotKept(_))),
        "{refused:?}"
    );
    assert_eq!(fake.platter().seen.len() as u64, length);
}

#[test]
fn a_log_that_is_written_anew_may_be_read_by_whom_the_old_one_was() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    std::fs::write(&path, "7").expect("a file");
    let secret = std::fs::Permissions::from_mode(0o606);
    std::fs::set_permissions(&path, secret).expect("it is ours");
    drop(FileStore::open(&path, 200, &quiet()).expect("it is taken over"));
    let now = std::fs::metadata(&path).expect("a log").permissions();
    assert_eq!(now.mode() & 0o777, 0o606);
}

#[test]
fn a_number_that_is_too_high_was_called_no_number() {
    let open = |text: &str| open(&Fake::default(), Some(text.as_bytes()));
    for (text, total) in [
        ("4611686018427387904", TOTAL_MAX),
        ("0000000000000000000012", 12),
    ] {
        let mut store = open(text).expect("as high as a counter may be");
        assert_eq!(self::total(&mut store), total);
    }
    for (text, named) in [
        ("4611686018427387905", "4611686018427387905"),
        ("18446744073709551616\n", "18446744073709551616"),
        (&"9".repeat(1_000), "a number of 1000 digits"),
    ] {
        let error = open(text).map(drop).expect_err("too high");
        let expected = format!(
            "made up: {named} is more than the 4611686018427387904 that a counter can have; \
             nothing was changed"
        );
        assert_eq!(error.to_string(), expected);
    }
}

/// A log in a folder, written anew with every second batch or so.
fn small(path: &Path) -> Result<FileStore<Folder>, OpenError> {
    FileStore::open(path, 50, &quiet())
}

fn clicks_in(path: &Path) -> u64 {
    let contents = log::read(&std::fs::read(path).expect("a file")).expect("a log");
    contents.totals.get(&Name::ROOT).copied().unwrap_or(0)
}

#[test]
fn a_log_that_is_written_anew_is_never_without_its_lock() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut store = small(&path).expect("a new log");
    let tries = std::sync::Barrier::new(2);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            tries.wait();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let opened = small(&path).map(drop);
                assert!(matches!(opened, Err(OpenError::Held { .. })), "{opened:?}");
            }
        });
        tries.wait();
        for sequence in 1..=300 {
            store.commit(&batch(sequence, 1)).expect("kept");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        other.join().expect("nobody was let in");
    });
    assert_eq!(clicks_in(&path), 300);
}

#[test]
fn a_log_that_is_deleted_is_written_anew_and_nothing_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let mut store = FileStore::open(&path, 1_000, &quiet()).expect("a new log");
    for sequence in 1..=4 {
        store.commit(&batch(sequence, 1)).expect("kept");
        assert_eq!(clicks_in(&path), sequence);
        std::fs::remove_file(&path).expect("it is there");
    }
    store.commit(&batch(5, 1)).expect("kept");
    let second = small(&path).map(drop);
    assert!(matches!(second, Err(OpenError::Held { .. })), "{second:?}");
    drop(store);
    assert_eq!(clicks_in(&path), 5);
}

#[test]
fn a_file_that_was_put_in_the_place_of_a_log_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, away) = (folder.path().join("log"), folder.path().join("away"));
    let mut store = FileStore::open(&path, 1_000, &quiet()).expect("a new log");
    for sequence in 1..=2 {
        store.commit(&batch(sequence, 1)).expect("kept");
    }
    std::fs::rename(&path, &away).expect("moved");
    // Whoever comes now finds nothing, and counts from there.
    let mut other = small(&path).expect("nobody has this one");
    other.commit(&batch(1, 100)).expect("kept");
    let lost = store.commit(&batch(3, 1));
    assert!(matches!(lost, Err(CommitError::Unknown(_))), "{lost:?}");
    for refused in [store.commit(&batch(3, 1)).map(drop), store.probe()] {
        let Err(CommitError::NotKept(why)) = refused else {
            panic!("{refused:?}");
        };
        assert!(why.contains("another file was put in its place"), "{why}");
    }
    for sequence in 2..=9 {
        other.commit(&batch(sequence, 100)).expect("kept");
    }
    assert_eq!((clicks_in(&path), clicks_in(&away)), (900, 2));
    // It is well again when it has its place again.
    drop(other);
    std::fs::rename(&away, &path).expect("moved back");
    store.commit(&batch(4, 1)).expect("kept");
    assert_eq!(clicks_in(&path), 3);
}

#[test]
fn hard_links_to_one_log_were_two_counters() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (folder.path().join("log"), folder.path().join("link"));
    let mut store = FileStore::open(&path, 1_000, &quiet()).expect("a new log");
    store.commit(&batch(1, 1)).expect("kept");
    std::fs::hard_link(&path, &link).expect("a link");
    let second = small(&link).map(drop);
    assert!(matches!(second, Err(OpenError::Held { .. })), "{second:?}");
    drop(store);
    // Either would be replaced, and leave the other behind.
    for name in [&path, &link] {
        let error = small(name).map(drop).expect_err("it has two names");
        assert!(
            error.to_string().contains("2 names (hard links)"),
            "{error}"
        );
    }
    std::fs::remove_file(&path).expect("it is there");
    let mut store = small(&link).expect("it has one name");
    store.commit(&batch(1, 1)).expect("kept");
    assert_eq!(clicks_in(&link), 2);
}

#[test]
fn a_link_to_a_log_that_is_not_there_yet_was_replaced_by_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, link) = (folder.path().join("log"), folder.path().join("link"));
    std::os::unix::fs::symlink("log", &link).expect("a link");
    let mut store = small(&link).expect("a new log");
    for sequence in 1..=5 {
        store.commit(&batch(sequence, 1)).expect("kept");
    }
    assert_eq!(
        std::fs::read_link(&link).expect("a link still"),
        Path::new("log")
    );
    assert_eq!(clicks_in(&path), 5);
    // Where the system makes no file, it says why.
    let nowhere = folder.path().join("nowhere");
    std::os::unix::fs::symlink("no/folder", &nowhere).expect("a link");
    let error = small(&nowhere).map(drop).expect_err("no folder");
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[test]
fn what_is_no_file_is_not_replaced_by_one() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let error = small(&path).map(drop).expect_err("a pipe");
    assert!(
        error.to_string().ends_with("pipe: this is no file"),
        "{error}"
    );
}
