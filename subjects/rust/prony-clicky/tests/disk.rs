//! A disk that is full, which is one in memory, in namespaces of its own.

mod counted;

use std::fs;
use std::io::Write as _;
use std::path::Path;

use counted::{at_desk, kept, quiet, until};
use prony_clicky::counting::{Ack, Backend, Health, Name, Refusal, Tally};

/// Where the disk is, for the test that runs on it.
const PLACE: &str = "FULL_DISK";

/// Runs a test of this file on a small disk; `None` where that is not possible.
fn on_a_small_disk(test: &str) -> Option<std::process::Output> {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = "mount -t tmpfs -o size=256k none \"$FULL_DISK\" && exec \"$0\" \"$@\"";
    let mut unshared = prony_testkit::unshared("--mount")?;
    let this = std::env::current_exe().expect("this program");
    unshared.args(["sh", "-c", inside]).arg(this);
    unshared.args(["--exact", test, "--nocapture"]);
    Some(
        unshared
            .env(PLACE, folder.path())
            .output()
            .expect("it runs"),
    )
}

/// Writes until the disk is full, but for `room` bytes.
fn fill(path: &Path, room: u64) {
    let mut file = fs::File::create(path).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    let length = file.metadata().expect("its length").len();
    file.set_len(length - room).expect("shorter");
}

async fn fill_up(
    handle: &prony_engine::Handle,
    tally: &Tally,
    desk: &prony_clicky::counting::Desk,
    filler: (&Path, u64),
) -> u64 {
    fill(filler.0, filler.1);
    let mut acknowledged = 0;
    let refusal = loop {
        match desk.add_synced(&Name::ROOT, 1).await {
            Ok(total) => assert_eq!(total, acknowledged + 1),
            Err(refusal) => break refusal,
        }
        acknowledged += 1;
    };
    assert_eq!(
        refusal,
        Refusal::NotKept,
        "the disk says so before anything is synced"
    );
    assert!(matches!(tally.health(), Health::Refusing { .. }));
    // It goes on being refused, and counts nothing.
    for _ in 0..3 {
        assert_eq!(desk.add_synced(&Name::ROOT, 1).await, Err(Refusal::NotKept));
    }
    assert_eq!(desk.total(&Name::ROOT), acknowledged);
    fs::remove_file(filler.0).expect("room is made");
    until(handle, "it is well again", || {
        tally.health() == Health::Ready
    })
    .await;
    acknowledged
}

#[test]
fn on_the_disk_durable_clicks() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let place = Path::new(&place);
    let log = Backend::file(place.join("log"));
    // One that is written anew again and again, for which there is no room at all.
    let short = Backend::File {
        path: place.join("short"),
        log_bytes_max: 1_000,
    };
    let database = Backend::Sqlite {
        path: place.join("db"),
    };
    for (number, (backend, room)) in [(log, 8_192), (short, 0), (database, 8_192)]
        .into_iter()
        .enumerate()
    {
        let (mut setting, lines) = quiet(backend.clone());
        setting.ack = Ack::Synced;
        let tally = Tally::open(&setting).expect("it opens");
        let filler = place.join("filler");
        let acknowledged = at_desk(&tally, async |handle, desk| {
            let acknowledged = fill_up(handle, &tally, &desk, (&filler, room)).await;
            assert_eq!(desk.add_synced(&Name::ROOT, 1).await, Ok(acknowledged + 1));
            acknowledged + 1
        });
        tally.close().expect("nothing is pending");
        assert_eq!(kept(&backend), acknowledged);
        let lines = lines.lock().expect("whole").join("; ");
        println!("case {number}: {acknowledged} acknowledged, all kept; {lines}");
        let times = |said: &str| lines.matches(said).count();
        assert_eq!(
            (times("the store fails: "), times("takes clicks again")),
            (1, 1),
            "it is not well before there is room"
        );
    }
}

#[test]
fn a_full_disk_refuses_durable_clicks_and_loses_none() {
    if let Some(output) = on_a_small_disk("on_the_disk_durable_clicks") {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}\n{errors}");
        assert!(said.contains("case 2: "), "{said}");
    }
}

#[test]
fn on_the_disk_clicks_in_memory() {
    let Some(place) = std::env::var_os(PLACE) else {
        return;
    };
    let place = Path::new(&place);
    let backend = Backend::file(place.join("log"));
    let (mut setting, _) = quiet(backend.clone());
    setting.pending_max = 1_000;
    let tally = Tally::open(&setting).expect("it opens");
    let filler = place.join("filler");
    fill(&filler, 0);
    let counted = at_desk(&tally, async |handle, desk| {
        let fails = || {
            // The last page of the log may have room for some batches more.
            let _ = desk.add(&Name::ROOT, 1);
            tally.health() != Health::Ready
        };
        until(handle, "the disk is full", fails).await;
        let health = tally.health();
        let is_bridged = matches!(health, Health::Bridging { pending: 1.., .. });
        assert!(is_bridged, "{health:?}");
        let total = desk.total(&Name::ROOT);
        let room = 1_000 - tally.numbers().pending;
        assert_eq!(desk.add(&Name::ROOT, room), Ok(total + room));
        assert_eq!(desk.add(&Name::ROOT, 1), Err(Refusal::PendingFull));
        assert!(matches!(tally.health(), Health::Refusing { .. }));
        fs::remove_file(&filler).expect("room is made");
        until(handle, "it is well again", || {
            tally.health() == Health::Ready
        })
        .await;
        desk.total(&Name::ROOT)
    });
    tally.close().expect("all is kept");
    assert_eq!(kept(&backend), counted);
    println!("{counted} counted, all kept");
}

#[test]
fn a_full_disk_is_bridged_in_memory_up_to_a_limit() {
    if let Some(output) = on_a_small_disk("on_the_disk_clicks_in_memory") {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}\n{errors}");
        assert!(said.contains(" counted, all kept"), "{said}");
    }
}
