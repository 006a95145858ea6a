//! The Date header's value, formatted once a second.

use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

/// The end of the year 9999, the last that the format can write.
const SECONDS_MAX: u64 = 253_402_300_799;

/// The last date that was asked for, as text.
///
/// ```
/// let mut dates = prony_wire::DateCache::default();
/// assert_eq!(dates.at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
/// ```
#[derive(Clone, Debug)]
pub struct DateCache {
    seconds: u64,
    text: [u8; 29],
}

impl DateCache {
    /// The date `unix_seconds` after the start of 1970, in HTTP's format. Dates
    /// after the year 9999 are held at its end.
    pub fn at(&mut self, unix_seconds: u64) -> &str {
        let seconds = unix_seconds.min(SECONDS_MAX);
        if seconds != self.seconds {
            self.seconds = seconds;
            self.text = format(seconds);
        }
        // The text is ASCII, so the fallback is never taken.
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

impl Default for DateCache {
    fn default() -> DateCache {
        DateCache {
            seconds: 0,
            text: format(0),
        }
    }
}

fn format(seconds: u64) -> [u8; 29] {
    let mut text = [b' '; 29];
    let date = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(seconds));
    // Cannot fail: every date up to SECONDS_MAX has 29 bytes.
    let _ = write!(&mut text[..], "{date}");
    text
}
