//! What the scheduler did with each thread of this process, seen every 10 ms: a table of
//! `time_ns thread name cpu_ns delay_ns slices`, separated by tabs. For machines on which
//! `perf sched` is not allowed. A thread that lives shorter than that may not be seen.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use prony_base::{Instant, clock};

use super::order::IoError;
use crate::BenchError;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(10);
/// Lines that are written at most: about 100 MiB.
const LINES_MAX: u64 = 2_000_000;

/// A thread that looks and writes, until it is stopped.
pub struct Recorder {
    path: PathBuf,
    stop: Sender<()>,
    thread: JoinHandle<io::Result<u64>>,
}

impl Recorder {
    /// Begins to look.
    pub fn start(path: &Path) -> Result<Recorder, IoError> {
        let failed = |cause| IoError::File {
            path: path.to_owned(),
            cause,
        };
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        writeln!(file, "time_ns\tthread\tname\tcpu_ns\tdelay_ns\tslices").map_err(failed)?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("schedule".to_owned());
        let thread = thread.spawn(move || {
            let begin = clock::monotonic();
            let mut lines = 0;
            let mut goes_on = true;
            while goes_on {
                goes_on = stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout);
                lines = look(&mut file, begin, lines)?;
            }
            file.flush()?;
            Ok(lines)
        });
        Ok(Recorder {
            path: path.to_owned(),
            stop,
            thread: thread.map_err(BenchError::Thread)?,
        })
    }

    /// Ends it; says what was written.
    pub fn finish(self) -> Result<String, IoError> {
        drop(self.stop);
        let lines = self.thread.join().map_err(|_| BenchError::Panicked)?;
        let path = self.path;
        match lines {
            Ok(lines) => {
                let cut = match lines >= LINES_MAX {
                    true => ", where it was cut short",
                    false => "",
                };
                let path = path.display();
                Ok(format!(
                    "{path}: {lines} lines from /proc, a look every 10 ms{cut}; the CPU time of looking is in the figures"
                ))
            }
            Err(cause) => Err(IoError::File { path, cause }),
        }
    }
}

/// Writes a line for each thread; `lines` were written before.
fn look(file: &mut impl io::Write, begin: Instant, mut lines: u64) -> io::Result<u64> {
    let now = clock::monotonic().since(begin).0;
    for entry in fs::read_dir("/proc/self/task")?.flatten() {
        if lines >= LINES_MAX {
            break;
        }
        // A thread may have ended since.
        let read = |name| fs::read_to_string(entry.path().join(name));
        let (Ok(name), Ok(counts)) = (read("comm"), read("schedstat")) else {
            continue;
        };
        let thread = entry.file_name();
        let (thread, name) = (thread.to_string_lossy(), name.trim_end());
        let counts = counts.trim_end().replace(' ', "\t");
        writeln!(file, "{now}\t{thread}\t{name}\t{counts}")?;
        lines += 1;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_line_of_six_columns() {
        let mut text = Vec::new();
        let lines = look(&mut text, clock::monotonic(), 0).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.lines().count() as u64, lines);
        assert!(lines >= 1);
        assert!(text.lines().all(|line| line.split('\t').count() == 6));
    }

    #[test]
    fn no_more_lines_than_allowed_are_written() {
        let mut text = Vec::new();
        let lines = look(&mut text, clock::monotonic(), LINES_MAX).unwrap();
        assert!(text.is_empty() && lines == LINES_MAX);
    }
}
