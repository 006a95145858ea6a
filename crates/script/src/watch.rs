//! Ends calls into scripts that do not return.

use std::process;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::machine::Pulse;

/// How long after its time a call has to have ended, beside as long again as it may take.
const GRACE: Duration = Duration::from_millis(500);

/// Watches calls on a thread of its own: one that takes longer than it may is ended. Where that cannot be, since it waits in a
/// function of C, the process is: that is better than one that never ends.
pub struct CallWatch {
    pulses: Option<mpsc::Sender<Arc<Pulse>>>,
    thread: Option<JoinHandle<()>>,
}

impl CallWatch {
    /// Watches calls into the script of this name.
    pub fn new(longest: Duration, name: String) -> CallWatch {
        let (send, receive) = mpsc::channel();
        let body = move || watch(longest, &name, &receive);
        CallWatch {
            pulses: Some(send),
            thread: Some(thread::spawn(body)),
        }
    }

    /// Watches the calls into one state more.
    pub fn over(&self, pulse: Arc<Pulse>) {
        if let Some(pulses) = &self.pulses {
            let _ = pulses.send(pulse);
        }
    }
}

impl Drop for CallWatch {
    fn drop(&mut self) {
        self.pulses = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Until there is no more to watch.
fn watch(longest: Duration, name: &str, pulses: &mpsc::Receiver<Arc<Pulse>>) {
    let often = (longest / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
    // With the number of the call that ran when it was looked at last, and since when.
    let mut all: Vec<(Arc<Pulse>, Option<u64>, Instant)> = Vec::new();
    loop {
        match pulses.recv_timeout(often) {
            Ok(pulse) => all.push((pulse, None, Instant::now())),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        for (pulse, seen, since) in &mut all {
            let running = pulse.running();
            if running != *seen {
                (*seen, *since) = (running, Instant::now());
                continue;
            }
            let Some(count) = running else { continue };
            if since.elapsed() > longest * 2 + GRACE {
                eprintln!(
                    "prony: a call into the script {name} waits in a function that cannot be ended: the run ends here, and what was \
                     measured is lost"
                );
                process::exit(1);
            }
            if since.elapsed() > longest {
                pulse.end(count);
            }
        }
    }
}
