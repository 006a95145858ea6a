//! Counting and the stores on this machine, in one process, where nothing fails.

mod counted;

use std::fs;
use std::path::Path;

use counted::{at_desk, click, kept, quiet, until};
use prony_base::Nanos;
use prony_clicky::counting::{
    Ack, Backend, CHANGES_EVERY, CountingSetting, Health, Name, OpenError, Refusal, TOTAL_MAX,
    Tally,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn stores(folder: &Path) -> [Backend; 2] {
    let path = folder.join("clicks.sqlite");
    [
        Backend::file(folder.join("clicks.log")),
        Backend::Sqlite { path },
    ]
}

#[test]
fn what_is_counted_is_there_when_the_service_starts_again() {
    let folder = tempfile::tempdir().expect("a folder");
    for (backend, ack) in stores(folder.path())
        .into_iter()
        .flat_map(|backend| [(backend.clone(), Ack::Memory), (backend, Ack::Synced)])
    {
        let before = kept(&backend);
        let (setting, _) = quiet(backend.clone());
        let tally = Tally::open(&CountingSetting { ack, ..setting }).expect("it opens");
        let counts = at_desk(&tally, async |handle, desk| {
            desk.click(&name("a"), 7).await.expect("counted");
            click(handle, &desk, |counts| counts.acknowledged >= 1_000).await
        });
        tally.close().expect("all is kept");
        assert_eq!(
            tally.health(),
            Health::Refusing {
                why: "the service is about to end".into()
            }
        );
        let numbers = tally.numbers();
        assert_eq!(
            (numbers.pending, numbers.failures, numbers.counters),
            (0, 0, 2)
        );
        assert!(numbers.batches > 0 && numbers.sync_longest <= numbers.sync_total);
        assert_eq!(numbers.clicks, counts.acknowledged + 7);
        assert_eq!(
            kept(&backend),
            before + counts.acknowledged,
            "{backend:?} {ack:?}"
        );
    }
}

#[test]
fn clicks_that_wait_share_a_sync() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut setting, _) = quiet(Backend::file(folder.path().join("log")));
    setting.ack = Ack::Synced;
    let tally = Tally::open(&setting).expect("it opens");
    let counts = at_desk(&tally, async |handle, desk| {
        click(handle, &desk, |counts| counts.acknowledged >= 6_400).await
    });
    // 64 at a time: were each click synced for itself, there would be as many syncs.
    let batches = tally.numbers().batches;
    assert!(
        batches * 10 < counts.acknowledged,
        "{batches} batches for {counts:?}"
    );
}

#[test]
fn a_total_is_durable_before_anybody_sees_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let (setting, _) = quiet(Backend::file(&path));
    let tally = Tally::open(&setting).expect("it opens");
    at_desk(&tally, async |handle, desk| {
        for clicks in 1..=20 {
            let bytes = fs::metadata(&path).expect("a log").len();
            let waiting = handle.spawn({
                let desk = desk.clone();
                async move { desk.add_synced(&Name::ROOT, 1).await }
            });
            until(handle, "it is counted", || {
                desk.total(&Name::ROOT) == clicks
            })
            .await;
            assert!(fs::metadata(&path).expect("a log").len() > bytes);
            assert_eq!(waiting.await, Ok(clicks));
        }
    });
}

#[test]
fn without_a_store_counting_begins_at_nothing() {
    let (setting, _) = quiet(Backend::None);
    let tally = Tally::open(&setting).expect("nothing to open");
    at_desk(&tally, async |_, desk| {
        assert_eq!(desk.total(&name("a")), 0);
        assert_eq!(desk.add(&Name::ROOT, 500), Ok(500));
        assert_eq!(desk.add_synced(&Name::ROOT, 500).await, Ok(1_000));
        assert_eq!(desk.add(&name("a"), 0), Ok(0));
        assert_eq!(desk.add(&Name::ROOT, TOTAL_MAX), Err(Refusal::TotalFull));
        assert_eq!(desk.total(&Name::ROOT), 1_000);
    });
    assert_eq!(tally.health(), Health::Ready);
    assert_eq!(kept(&Backend::None), 0);
}

#[test]
fn clicks_and_counters_have_their_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut setting, _) = quiet(Backend::file(folder.path().join("log")));
    setting.counters_max = 2;
    setting.pending_max = 10;
    setting.sync = Nanos::from_secs(3_600);
    let tally = Tally::open(&setting).expect("it opens");
    at_desk(&tally, async |handle, desk| {
        assert_eq!(desk.add(&name("a"), 5), Ok(5));
        assert_eq!(desk.add(&name("b"), 1), Err(Refusal::TooManyCounters));
        assert_eq!(desk.add(&Name::ROOT, 11), Err(Refusal::PendingFull));
        assert_eq!(
            desk.add_synced(&Name::ROOT, 11).await,
            Err(Refusal::PendingFull)
        );
        // More than half: it is kept at once, an hour before its time.
        assert_eq!(desk.add(&Name::ROOT, 1), Ok(1));
        until(handle, "it is kept", || tally.numbers().pending == 0).await;
    });
}

#[test]
fn whoever_waits_for_a_change_sees_it_and_is_not_told_each_click() {
    let (setting, _) = quiet(Backend::None);
    let tally = Tally::open(&setting).expect("nothing to open");
    at_desk(&tally, async |handle, desk| {
        let seen: Vec<_> = (0..100)
            .map(|_| {
                let desk = desk.clone();
                handle.spawn(async move { desk.changed(&name("a"), 0).await })
            })
            .collect();
        handle.yield_now().await;
        let begun = handle.now();
        for _ in 0..5 {
            desk.add(&name("a"), 1).expect("counted");
        }
        for task in seen {
            assert_eq!(task.await, 5);
        }
        assert!(handle.now().since(begun) >= CHANGES_EVERY - Nanos::from_millis(5));
        assert_eq!(
            desk.changed(&name("a"), 4).await,
            5,
            "it is another already"
        );
    });
}

#[test]
fn a_second_service_is_refused_the_same_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let (setting, _) = quiet(Backend::file(&path));
    let first = Tally::open(&setting).expect("it opens");
    let second = Tally::open(&setting).map(drop).expect_err("it is held");
    let pid = std::process::id();
    assert!(
        matches!(&second, OpenError::Held { path: held, pid: Some(of) }
            if *of == pid && held.file_name() == path.file_name()),
        "{second:?}"
    );
    assert!(second.to_string().ends_with(&format!("(pid {pid})")));
    // By another way to the same file, too.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    let (by_link, _) = quiet(Backend::file(&link));
    assert!(matches!(
        Tally::open(&by_link).map(drop),
        Err(OpenError::Held { .. })
    ));
    drop(first);
    assert!(Tally::open(&setting).is_ok(), "it is let go");
}

#[test]
fn a_lock_that_was_deleted_let_a_second_service_in() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let (setting, _) = quiet(Backend::file(&path));
    let first = Tally::open(&setting).expect("it opens");
    let mut deleted = 0;
    for entry in fs::read_dir(folder.path()).expect("a folder").flatten() {
        if entry.path() != path {
            fs::remove_file(entry.path()).expect("a file");
            deleted += 1;
        }
    }
    let second = Tally::open(&setting).map(drop);
    assert!(
        matches!(second, Err(OpenError::Held { .. })),
        "{second:?}, after {deleted} files were deleted beside the log"
    );
    drop(first);
}

/// Nothing can keep a second service from a log that is gone, but no click is lost in silence.
#[test]
fn a_service_whose_log_was_deleted_and_made_anew_by_another_says_what_it_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let (mut setting, _) = quiet(Backend::file(&path));
    setting.close_max = Nanos::from_millis(20);
    let first = Tally::open(&setting).expect("it opens");
    fs::remove_file(&path).expect("it is there");
    let second = Tally::open(&setting).expect("there is nothing");
    at_desk(&second, async |_, desk| {
        assert_eq!(desk.add_synced(&Name::ROOT, 5).await, Ok(5));
    });
    at_desk(&first, async |_, desk| {
        let refused = desk.add_synced(&Name::ROOT, 3).await;
        assert!(refused.is_err(), "{refused:?}");
        assert_eq!(desk.add(&Name::ROOT, 2), Ok(2));
    });
    let error = first.close().expect_err("two clicks are kept nowhere");
    assert_eq!(error.clicks, 2);
    assert!(error.why.contains("another file"), "{error}");
    second.close().expect("all is kept");
    assert_eq!(kept(&Backend::file(&path)), 5);
}

#[test]
fn services_share_a_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clicks.sqlite");
    let backend = Backend::Sqlite { path };
    let click_some = || {
        let (setting, _) = quiet(backend.clone());
        let tally = Tally::open(&setting).expect("it opens");
        let counts = at_desk(&tally, async |handle, desk| {
            let counts = click(handle, &desk, |counts| counts.acknowledged >= 1_000).await;
            let seen = || desk.total(&Name::ROOT) >= 2 * counts.acknowledged;
            until(handle, "the other's clicks are seen", seen).await;
            counts
        });
        tally.close().expect("all is kept");
        counts.acknowledged
    };
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(click_some);
        click_some() + other.join().expect("it counted")
    });
    assert_eq!(kept(&backend), both);
}

/// How often this process has a file open.
fn times_open(path: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("descriptors");
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target == path)
        .count()
}

/// The change to a write-ahead log is the one thing for which SQLite itself does not wait.
/// Ten times, because the writer may be done before the other asks for it.
#[test]
fn a_service_that_opens_a_new_database_waits_for_who_writes_in_it() {
    for _ in 0..10 {
        open_while_somebody_writes();
    }
}

fn open_while_somebody_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clicks.sqlite");
    let writer = rusqlite::Connection::open(&path).expect("it opens");
    writer
        .execute_batch("BEGIN IMMEDIATE; CREATE TABLE other (number INTEGER);")
        .expect("nobody else writes");
    let before = times_open(&path);
    let backend = Backend::Sqlite { path: path.clone() };
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| Tally::open(&quiet(backend.clone()).0).map(drop));
        while times_open(&path) <= before && !opener.is_finished() {
            std::thread::yield_now();
        }
        writer.execute_batch("COMMIT").expect("it is kept");
        let opened = opener.join().expect("it ends");
        assert!(opened.is_ok(), "{opened:?}");
    });
}

#[test]
fn the_original_services_file_is_taken_over_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clicky.txt");
    fs::write(&path, "123456").expect("a file");
    let backend = Backend::file(&path);
    let (setting, lines) = quiet(backend.clone());
    drop(Tally::open(&setting).expect("it is taken over"));
    let said = lines.lock().expect("whole").join("\n");
    assert!(
        said.contains("clicky.txt: 123456, a number in decimal, is taken over"),
        "{said}"
    );
    drop(Tally::open(&setting).expect("it is a log now"));
    assert_eq!(lines.lock().expect("whole").len(), 1);
    assert_eq!(kept(&backend), 123_456);
}

/// A log of two records.
fn small_log(folder: &Path) -> (std::path::PathBuf, Vec<u8>) {
    let path = folder.join("log");
    let (mut setting, _) = quiet(Backend::file(&path));
    setting.ack = Ack::Synced;
    let tally = Tally::open(&setting).expect("it opens");
    at_desk(&tally, async |_, desk| {
        for _ in 0..2 {
            desk.click(&Name::ROOT, 500).await.expect("kept");
        }
    });
    drop(tally);
    let bytes = fs::read(&path).expect("a log");
    (path, bytes)
}

#[test]
fn a_tail_that_is_torn_is_cut_off_at_every_byte() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, bytes) = small_log(folder.path());
    let record = (bytes.len() - 16) / 2;
    for length in 16..bytes.len() {
        fs::write(&path, &bytes[..length]).expect("a file");
        let (setting, lines) = quiet(Backend::file(&path));
        drop(Tally::open(&setting).expect("it opens"));
        let whole = (length - 16) / record;
        let lines = lines.lock().expect("whole").join("\n");
        assert_eq!(
            lines.contains("are cut off"),
            !(length - 16).is_multiple_of(record),
            "{lines}"
        );
        assert_eq!(kept(&Backend::file(&path)), 500 * whole as u64);
    }
}

#[test]
fn damage_before_whole_records_is_named_and_nothing_is_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, bytes) = small_log(folder.path());
    let first = 16 + (bytes.len() - 16) / 2;
    for at in 0..first {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, &damaged).expect("a file");
        let (setting, _) = quiet(Backend::file(&path));
        let error = Tally::open(&setting).map(drop).expect_err("it is damaged");
        let offset = if at < 16 { 0 } else { 16 };
        let expected = format!("log: damaged at byte {offset}");
        assert!(error.to_string().contains(&expected), "{at}: {error}");
        assert_eq!(fs::read(&path).expect("a file"), damaged);
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let missing = Backend::file("/nowhere/at/all/log");
    for (backend, named) in [
        (missing, "/nowhere/at/all/log"),
        (Backend::file("/proc"), "/proc"),
        (Backend::redis("no URL"), "no URL"),
        (Backend::redis("redis://127.0.0.1:1"), "refused"),
        (
            Backend::Sqlite {
                path: "/nowhere/db".into(),
            },
            "/nowhere/db",
        ),
    ] {
        let (setting, _) = quiet(backend);
        let error = Tally::open(&setting).map(drop).expect_err("it cannot be");
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn nothing_here_asks_what_time_of_day_it_is() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/counting")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("text");
            for clock in ["SystemTime", "unix_nanos", "Realtime", "'TIME'"] {
                assert!(!text.contains(clock), "{}: {clock}", path.display());
            }
            files += 1;
        }
    }
    assert!(files > 10, "the sources were found");
}
