//! Lines about what happens: by level, as text or as the journal's fields, to standard
//! output or into a file. Not for: deciding what is worth a line.
//!
//! Each loop has a [`Log`] of its own, so that nothing is locked for a line. To standard
//! output a line is one write, at once, as `env_logger` does it: what a terminal or a pipe
//! costs is then seen. Into a file lines go together, once a second, when there is a buffer
//! of them, and at the stop.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use prony_base::Nanos;
use prony_http::Count;

/// How often a file gets what was logged.
pub(super) const FLUSH_EVERY: Nanos = Nanos::from_secs(1);
/// Bytes of lines that wait for it at most: then the file gets them at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of one line at most; the rest of a longer one is left out, so that a target of
/// kilobytes stays one write that a pipe takes whole.
const LINE_BYTES_MAX: usize = 3 << 10;
const NAME: &str = "prony-clicky";

/// How important a line is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// What goes wrong.
    Error,
    /// What may.
    Warn,
    /// Every request, the start and the stop.
    Info,
    /// More about requests that are refused.
    Debug,
}

/// Where lines go.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum LogPlace {
    /// Standard output, one write for each line.
    #[default]
    Stdout,
    /// The end of a file, many lines together.
    File(PathBuf),
}

/// What lines look like.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LogFormat {
    /// `[2026-11-21T23:00:04Z INFO  prony-clicky] …`
    #[default]
    Text,
    /// The journal's export format: a field a line, and an empty line after each entry.
    Journal,
}

/// What is logged, and where.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LogSetting {
    /// This and what is more important; None: nothing.
    pub level: Option<Level>,
    /// Where to.
    pub place: LogPlace,
    /// How.
    pub format: LogFormat,
}

/// One loop's way into the log.
#[derive(Debug)]
pub struct Log {
    level: Option<Level>,
    format: LogFormat,
    /// Nanoseconds since the Unix epoch.
    unix_nanos: fn() -> u64,
    out: Option<File>,
    is_buffered: bool,
    lines: RefCell<Vec<u8>>,
    lost: Arc<Count>,
}

impl Log {
    /// Opens it.
    ///
    /// # Errors
    /// What the kernel says about the file, or about one more descriptor.
    pub fn open(setting: &LogSetting, unix_nanos: fn() -> u64) -> io::Result<Log> {
        let out = match (&setting.level, &setting.place) {
            (None, _) => None,
            (_, LogPlace::Stdout) => Some(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            (_, LogPlace::File(path)) => {
                Some(OpenOptions::new().append(true).create(true).open(path)?)
            }
        };
        Ok(Log {
            level: setting.level,
            format: setting.format,
            unix_nanos,
            out,
            is_buffered: setting.place != LogPlace::Stdout,
            lines: RefCell::default(),
            lost: Arc::default(),
        })
    }

    /// Whether a line of this level is written: ask before making one.
    #[inline]
    pub fn logs(&self, level: Level) -> bool {
        Some(level) <= self.level
    }

    /// Writes a line, if its level is written. Characters that would end it, or steer a
    /// terminal, are escaped.
    pub fn line(&self, level: Level, text: fmt::Arguments<'_>) {
        if !self.logs(level) {
            return;
        }
        let mut lines = self.lines.borrow_mut();
        put_entry(&mut lines, self.format, level, (self.unix_nanos)(), text);
        if !self.is_buffered || lines.len() >= BUFFER_BYTES {
            drop(lines);
            self.flush();
        }
    }

    /// Writes what waits.
    pub fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if let Some(mut out) = self.out.as_ref()
            && !lines.is_empty()
            && out.write_all(&lines).is_err()
        {
            // A full disk or a reader that went away must not hold up those who click.
            let entries = match self.format {
                LogFormat::Text => lines.iter().filter(|&&byte| byte == b'\n').count(),
                LogFormat::Journal => lines.windows(2).filter(|pair| pair == b"\n\n").count(),
            };
            self.lost.add(entries as u64);
        }
        lines.clear();
    }

    /// Whether lines wait to be [flushed](Log::flush).
    pub fn is_buffered(&self) -> bool {
        self.is_buffered
    }

    /// Lines that could not be written.
    pub fn lost(&self) -> &Arc<Count> {
        &self.lost
    }
}

/// A text without control characters and not too long.
struct Plain<'l> {
    out: &'l mut Vec<u8>,
    left: usize,
}

impl fmt::Write for Plain<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let text = &text[..text.floor_char_boundary(self.left.min(text.len()))];
        self.left -= text.len();
        if !text.bytes().any(|byte| byte.is_ascii_control()) {
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        for byte in text.bytes() {
            match byte.is_ascii_control() {
                true => self.out.extend(byte.escape_ascii()),
                false => self.out.push(byte),
            }
        }
        Ok(())
    }
}

fn put_entry(
    out: &mut Vec<u8>,
    format: LogFormat,
    level: Level,
    unix_nanos: u64,
    text: fmt::Arguments<'_>,
) {
    let begun = match format {
        LogFormat::Text => put_time(out, level, unix_nanos),
        LogFormat::Journal => put_fields(out, level, unix_nanos),
    };
    let mut plain = Plain {
        out,
        left: LINE_BYTES_MAX,
    };
    // Writing to memory does not fail; a Display that does leaves a shorter line.
    let _ = begun.and_then(|()| plain.write_fmt(text));
    out.extend_from_slice(match format {
        LogFormat::Text => b"\n",
        LogFormat::Journal => b"\n\n",
    });
}

/// As `env_logger` begins a line.
fn put_time(out: &mut Vec<u8>, level: Level, unix_nanos: u64) -> fmt::Result {
    let seconds = unix_nanos / 1_000_000_000;
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let name = match level {
        Level::Error => "ERROR",
        Level::Warn => "WARN ",
        Level::Info => "INFO ",
        Level::Debug => "DEBUG",
    };
    let left = usize::MAX;
    write!(
        Plain { out, left },
        "[{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z {name} {NAME}] "
    )
}

/// The fields of <https://systemd.io/JOURNAL_EXPORT_FORMATS/> but the message's text.
fn put_fields(out: &mut Vec<u8>, level: Level, unix_nanos: u64) -> fmt::Result {
    let priority = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    };
    let process = std::process::id();
    let fields = [
        ("__REALTIME_TIMESTAMP", unix_nanos / 1_000),
        ("PRIORITY", priority),
        ("SYSLOG_PID", u64::from(process)),
    ];
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.push(b'=');
        out.extend_from_slice(super::clicks::Digits::of(value).as_bytes());
        out.push(b'\n');
    }
    out.extend_from_slice(b"SYSLOG_IDENTIFIER=");
    out.extend_from_slice(NAME.as_bytes());
    out.extend_from_slice(b"\nMESSAGE=");
    Ok(())
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar: by eras of 400
/// years that begin in March, so that the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let leaps = day_of_era / 1_460 + day_of_era / 146_096 - day_of_era / 36_524;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21T23:00:04.5Z
    const THEN: u64 = 1_795_302_004_500_000_000;

    fn entry(format: LogFormat, level: Level, text: &str) -> String {
        let mut out = Vec::new();
        put_entry(&mut out, format, level, THEN, format_args!("{text}"));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_of_text_has_its_second_its_level_and_its_message() {
        assert_eq!(
            entry(LogFormat::Text, Level::Warn, "a \"b\" é"),
            "[2026-11-21T23:00:04Z WARN  prony-clicky] a \"b\" é\n"
        );
    }

    #[test]
    fn an_entry_of_the_journal_has_a_field_a_line_and_an_empty_one() {
        let entry = entry(LogFormat::Journal, Level::Error, "no");
        let process = std::process::id();
        let fields = format!(
            "__REALTIME_TIMESTAMP=1795302004500000\nPRIORITY=3\nSYSLOG_PID={process}\n\
             SYSLOG_IDENTIFIER=prony-clicky\nMESSAGE=no\n\n"
        );
        assert_eq!(entry, fields);
    }

    #[test]
    fn nothing_that_is_logged_makes_a_line_of_its_own_or_a_long_one() {
        let line = entry(LogFormat::Text, Level::Info, "a\nb\r\x1b[2J");
        assert!(line.ends_with("a\\nb\\r\\x1b[2J\n"), "{line}");
        let line = entry(LogFormat::Text, Level::Info, &"é".repeat(LINE_BYTES_MAX));
        assert!(line.len() < LINE_BYTES_MAX + 100 && line.ends_with("é\n"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (10_956, (1999, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(days), date, "day {days}");
        }
    }

    #[test]
    fn a_file_gets_whole_lines_when_flushed_and_only_of_the_levels_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let setting = LogSetting {
            level: Some(Level::Warn),
            place: LogPlace::File(path.clone()),
            format: LogFormat::Text,
        };
        let log = Log::open(&setting, || THEN).unwrap();
        log.line(Level::Info, format_args!("unimportant"));
        log.line(Level::Error, format_args!("important"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        log.flush();
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.ends_with("] important\n"), "{written}");
        assert_eq!(written.lines().count(), 1);
        for _ in 0..BUFFER_BYTES / 10 {
            log.line(Level::Error, format_args!("many"));
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.lines().count() > 100, "a full buffer is written");
    }

    #[test]
    fn lines_for_a_full_disk_are_lost_and_counted() {
        let setting = LogSetting {
            level: Some(Level::Info),
            place: LogPlace::File("/dev/full".into()),
            format: LogFormat::Journal,
        };
        let log = Log::open(&setting, || THEN).unwrap();
        log.line(Level::Info, format_args!("one"));
        log.line(Level::Info, format_args!("two"));
        log.flush();
        assert_eq!(log.lost().get(), 2);
    }

    #[test]
    fn what_is_off_opens_nothing() {
        let setting = LogSetting {
            level: None,
            place: LogPlace::File("/nowhere/at/all".into()),
            format: LogFormat::Text,
        };
        let log = Log::open(&setting, || THEN).unwrap();
        assert!(!log.logs(Level::Error));
        log.line(Level::Error, format_args!("unheard"));
        log.flush();
        assert_eq!(log.lost().get(), 0);
    }
}
