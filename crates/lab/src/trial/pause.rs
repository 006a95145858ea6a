//! Stopping all processes of a trial but its generator, and letting them go on, so that a neighbour has the cores for
//! itself.
//!
//! Not for: ending processes ([`super::children`]).

use prony_base::{Nanos, clock};
use prony_engine::Handle;
use rustix::process::Signal;

use super::Halt;
use crate::{launch, sample};

/// How long all have to stand still; one in an uninterruptible wait of the kernel takes as long as that takes.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Pause between two looks whether they do.
const LOOK: Nanos = Nanos::from_micros(100);

/// Stops every descendant but `kept`, those too that are forked meanwhile, and waits until no thread of theirs moves.
pub async fn stop(handle: &Handle, kept: Option<u32>) -> Result<(), Halt> {
    let deadline = clock::monotonic() + STOP_TIMEOUT;
    loop {
        // One that was stopped forks nobody any more: a look that finds all of them still has found all of them.
        let moving: Vec<u32> = others(kept).into_iter().filter(|&pid| moves(pid)).collect();
        if moving.is_empty() {
            return Ok(());
        }
        if clock::monotonic() > deadline {
            let reason = format!("processes {moving:?} could not be stopped within {STOP_TIMEOUT}");
            return Err(Halt::Failed(reason));
        }
        for pid in moving {
            launch::signal(pid, Signal::STOP);
        }
        handle.sleep(LOOK).await;
    }
}

/// Lets every descendant but `kept` go on.
pub fn go_on(kept: Option<u32>) {
    for pid in others(kept) {
        launch::signal(pid, Signal::CONT);
    }
}

fn others(kept: Option<u32>) -> Vec<u32> {
    let mut all = launch::descendants(std::process::id());
    all.retain(|&pid| Some(pid) != kept);
    all
}

/// Whether a thread of the process is neither stopped nor at its end.
fn moves(pid: u32) -> bool {
    let threads = launch::numbered(&format!("/proc/{pid}/task"));
    threads.into_iter().any(|tid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat"));
        let stat = text.ok().and_then(|text| sample::parse::stat(&text));
        stat.is_some_and(|stat| !matches!(stat.state, 'T' | 't' | 'Z' | 'X'))
    })
}
