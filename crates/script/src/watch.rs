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
    // By looks and not by time: a machine that stood still has given a call no time to end.
    let tries_max = (longest + GRACE).as_nanos() / often.as_nanos();
    // With the number of the call that ran when it was looked at last, since when, and how often it was to end.
    let mut all: Vec<(Arc<Pulse>, Option<u64>, Instant, u128)> = Vec::new();
    loop {
        match pulses.recv_timeout(often) {
            Ok(pulse) => all.push((pulse, None, Instant::now(), 0)),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        for (pulse, seen, since, tries) in &mut all {
            let running = pulse.running();
            if running != *seen {
                (*seen, *since, *tries) = (running, Instant::now(), 0);
                continue;
            }
            let Some(count) = running else { continue };
            if since.elapsed() <= longest {
                continue;
            }
            if *tries > tries_max {
                eprintln!(
                    "prony: a call into the script {name} waits in a function that cannot be ended: the run ends here, and what was \
                     measured is lost"
                );
                process::exit(1);
            }
            pulse.end(count);
            *tries += 1;
        }
    }
}
