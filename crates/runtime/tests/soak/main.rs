//! Everything that the runtime does, at random and at once, for long: events of several
//! types and priorities, more than fit, with handlers that come, go, push, panic and are
//! futures that are cancelled, and senders in other threads (`events`); meanwhile
//! services are added, started, stopped, restarted and removed, fail, panic and hang,
//! and coroutines are spawned, cancelled and panic (`life`). At the end the counts add
//! up, every event, task and service is gone, and the heap is where it was.
//!
//! `PRONY_SOAK_EVENTS` says how many events (200,000; ten million in the long tier); `PRONY_SOAK_SEED` which.
//! One test, because the heap is everybody's.

mod events;
mod life;

use events::soak;
use life::have_seen_everything;
use prony_runtime::events::WhenFull;
use prony_testkit::repeats;

#[global_allocator]
static HEAP: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

fn heap_bytes() -> i64 {
    let stats = HEAP.stats();
    stats.bytes_allocated as i64 - stats.bytes_deallocated as i64
}

#[test]
fn a_long_random_life_loses_doubles_and_leaks_nothing() {
    let (count, seed) = (
        repeats("PRONY_SOAK_EVENTS", 200_000, 10_000_000),
        repeats("PRONY_SOAK_SEED", 7, 7),
    );
    // Once each, so that what is set up once is there before the heap is looked at.
    soak(20_000, seed, WhenFull::Refuse);
    soak(20_000, seed, WhenFull::DropOldest);
    let before = heap_bytes();
    let (refusing, first) = soak(count / 2, seed, WhenFull::Refuse);
    let (dropping, second) = soak(count / 2, seed, WhenFull::DropOldest);
    assert!(refusing.panics > 0 && refusing.refused > 0 && refusing.counts.withheld > 0);
    assert!(dropping.counts.dropped > 0);
    let counts = (refusing.counts, dropping.counts);
    drop((refusing, dropping));
    // Before anything is printed, because tests keep what they print.
    let after = heap_bytes();
    println!("refusing: {:?}\n  {first:?}", counts.0);
    println!("dropping: {:?}\n  {second:?}", counts.1);
    println!("heap: {before} bytes before, {after} after");
    if count >= 200_000 {
        have_seen_everything(&[first, second]);
    }
    assert!(
        (after - before).abs() < 1_024,
        "heap: {before} before, {after} after"
    );
}
