//! The file that a process of a trial prints to: no reader is needed, so that
//! printing costs the subject what it costs when it prints to a file, and the
//! sampler's core nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::folder::end_of;

/// Size at which the file is emptied, looked at every 100 ms.
pub const LOG_BYTES_MAX: u64 = 16 << 20;
/// Lines that a record keeps.
const TAIL_LINES_MAX: usize = 20;
/// Bytes at the end of the file that are read for them, and kept in the end.
const TAIL_BYTES_MAX: u64 = 64 << 10;
/// Characters of a line that are kept.
const LINE_CHARS_MAX: usize = 500;

/// What a process prints, both streams in one file.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    cut: bool,
}

impl Log {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> io::Result<Log> {
        // Appending is what makes emptying a file under its writer right.
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(path)?;
        file.set_len(0)?;
        Ok(Log {
            path: path.to_owned(),
            file,
            cut: false,
        })
    }

    /// A descriptor for a process to print to.
    pub fn writer(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Empties the file when it is over its limit.
    pub fn bound(&mut self) {
        let size = self.file.metadata().map_or(0, |metadata| metadata.len());
        if size > LOG_BYTES_MAX {
            self.cut = self.file.set_len(0).is_ok();
        }
    }

    /// Whether something was thrown away.
    pub fn was_cut(&self) -> bool {
        self.cut
    }

    /// Whether a whole line that holds `text` has been printed (of the last 64 KiB).
    pub fn has_line(&self, text: &str) -> bool {
        let printed = end_of(&self.path, TAIL_BYTES_MAX);
        let complete = printed.rfind('\n').map_or("", |end| &printed[..end]);
        complete.lines().any(|line| line.contains(text))
    }

    /// The last lines, at most 20.
    pub fn tail(&self) -> Vec<String> {
        tail_of(&self.path)
    }

    /// Removes the file when nothing was printed.
    pub fn close(self) {
        if self
            .file
            .metadata()
            .is_ok_and(|metadata| metadata.len() == 0)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The last lines of a file, at most 20.
pub fn tail_of(path: &Path) -> Vec<String> {
    tail(&end_of(path, TAIL_BYTES_MAX))
}

/// `reason` with the last of these lines that is not empty.
pub fn with_last_line(tail: &[String], reason: String) -> String {
    match tail.iter().rfind(|line| !line.trim().is_empty()) {
        Some(line) => format!("{reason}; its last line: {}", line.trim()),
        None => format!("{reason}; it printed nothing"),
    }
}

fn tail(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES_MAX);
    let short = |line: &&str| line.chars().take(LINE_CHARS_MAX).collect();
    lines[from..].iter().map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn log(name: &str) -> Log {
        let path = std::env::temp_dir().join(format!("prony-log-{}-{name}", std::process::id()));
        Log::create(&path).expect("a log in the temporary folder")
    }

    #[test]
    fn a_line_counts_only_when_it_is_whole() {
        let mut log = log("whole");
        log.file.write_all(b"starting\nlistening on").unwrap();
        assert!(!log.has_line("listening"));
        log.file.write_all(b" 8080\n").unwrap();
        assert!(log.has_line("listening"));
        log.file.set_len(0).unwrap();
        log.close();
    }

    #[test]
    fn an_emptied_log_goes_on_from_its_start_and_says_that_it_was_cut() {
        let mut log = log("cut");
        log.file.set_len(LOG_BYTES_MAX + 1).unwrap();
        log.bound();
        log.file.write_all(b"after\n").unwrap();
        assert_eq!(log.tail(), ["after"]);
        assert!(log.was_cut());
        log.file.set_len(0).unwrap();
        let path = log.path.clone();
        log.close();
        assert!(!path.exists());
    }

    #[test]
    fn the_tail_has_twenty_lines_of_bounded_length() {
        let text: String = (0..30)
            .map(|n| format!("{n} {}\n", "x".repeat(1_000)))
            .collect();
        let lines = tail(&text);
        assert_eq!(lines.len(), 20);
        assert!(lines[0].starts_with("10 ") && lines[0].chars().count() == LINE_CHARS_MAX);
    }
}
