//! Services that are ended in the midst of clicks, at seeded moments, over and over on the
//! same store: clicks are counted on both sides.

mod counted;

use std::path::Path;

use counted::{Clicker, kept};
use prony_base::Random;
use prony_clicky::counting::{Ack, Backend};

/// Lives of a service, on each of which a moment is drawn.
const MOMENTS: u64 = 100;

#[test]
fn clicker() {
    counted::click_if_asked();
}

fn backend(kind: &str, path: &Path) -> Backend {
    match kind {
        "file" => Backend::file(path),
        _ => Backend::Sqlite { path: path.into() },
    }
}

/// The most clicks that one life lost. Those that it was sent and did not acknowledge may
/// be counted, and no others.
fn kill_again_and_again(kind: &str, ack: Ack, pending_max: u64, moments: u64) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store");
    let mut random = Random::of(1, kind);
    let (mut least, mut most, mut lost_most) = (0, 0, 0);
    for moment in 0..moments {
        let mut clicker = Clicker::start(kind, &path, ack, pending_max);
        let (found, lost) = (clicker.found, least.max(clicker.found) - clicker.found);
        assert!(
            found <= most,
            "moment {moment}: {found} clicks of {most} that were sent"
        );
        lost_most = lost_most.max(lost);
        clicker.read_until(random.below(400));
        clicker.kill();
        // What is there now is what the next life starts from.
        least = found + clicker.acknowledged;
        most = found + clicker.sent;
    }
    let last = kept(&backend(kind, &path));
    assert!(last <= most, "{last} clicks of {most} that were sent");
    lost_most.max(least.max(last) - last)
}

#[test]
fn killed_at_any_moment_a_log_has_every_click_that_was_acknowledged_when_durable() {
    let lost = kill_again_and_again("file", Ack::Synced, 1_000_000, MOMENTS);
    println!("file, synced, {MOMENTS} x SIGKILL: {lost} acknowledged clicks lost");
    assert_eq!(lost, 0);
}

#[test]
fn killed_at_any_moment_a_database_has_every_click_that_was_acknowledged_when_durable() {
    let lost = kill_again_and_again("sqlite", Ack::Synced, 1_000_000, MOMENTS / 4);
    println!(
        "SQLite, synced, {} x SIGKILL: {lost} acknowledged clicks lost",
        MOMENTS / 4
    );
    assert_eq!(lost, 0);
}

#[test]
fn killed_at_any_moment_clicks_acknowledged_from_memory_are_lost_up_to_a_limit() {
    let lost = kill_again_and_again("file", Ack::Memory, 20_000, MOMENTS);
    println!(
        "file, memory, {MOMENTS} x SIGKILL: at most {lost} acknowledged clicks lost at a time; \
         10 ms are an interval, 20000 clicks may be in memory alone"
    );
    assert!(lost <= 20_000);
}

#[test]
fn stopped_at_any_moment_every_acknowledged_click_is_kept() {
    for (kind, ack) in [
        ("file", Ack::Memory),
        ("file", Ack::Synced),
        ("sqlite", Ack::Memory),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store");
        let mut random = Random::of(2, kind);
        let mut acknowledged = 0;
        for moment in 0..MOMENTS / 4 {
            let mut clicker = Clicker::start(kind, &path, ack, 1_000_000);
            assert_eq!(
                clicker.found, acknowledged,
                "{kind}, {ack:?}, moment {moment}"
            );
            clicker.read_until(random.below(400));
            clicker.stop();
            acknowledged += clicker.acknowledged;
        }
        assert_eq!(kept(&backend(kind, &path)), acknowledged);
    }
}
