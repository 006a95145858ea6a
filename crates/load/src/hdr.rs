//! Latencies in the two formats of HdrHistogram that other programs read: a text of percentiles (`.hgrm`, as wrk2 prints it and the
//! plotters of hdrhistogram.org read it), and a log of intervals (version 2, compressed; HistogramLogAnalyzer and others read it).
//!
//! Neither has a place for a request that never ended: these are counted in a comment.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use prony_base::Nanos;

use crate::interval::LoadInterval;
use crate::latencies::Latencies;

/// Lines until the distance to 100 % is halved, as HdrHistogram's own programs have them.
const TICKS: u32 = 5;
/// Milliseconds, in which the text is, and in which a log has its largest values.
const MS: f64 = 1e6;

/// The percentiles of those that ended, in milliseconds.
pub fn percentiles_text(latencies: &Latencies) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let empty = Hdr::<u64>::new(3).expect("three digits are allowed");
    let all = latencies.finite().unwrap_or(&empty);
    let mut so_far = 0;
    for value in all.iter_quantiles(TICKS) {
        let (at, quantile) = (
            value.value_iterated_to().min(all.max()),
            value.quantile_iterated_to(),
        );
        so_far += value.count_since_last_iteration();
        // Writing to a string cannot fail.
        let _ = write!(text, "{:12.3} {quantile:2.12} {so_far:10}", at as f64 / MS);
        let _ = match quantile < 1.0 {
            true => writeln!(text, " {:14.2}", 1.0 / (1.0 - quantile)),
            false => writeln!(text, "            inf"),
        };
    }
    let _ = writeln!(
        text,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n#[Max     = {:12.3}, Total count    = {:12}]",
        all.mean() / MS,
        all.stdev() / MS,
        all.max() as f64 / MS,
        all.len()
    );
    let never = latencies.count() - all.len();
    if never > 0 {
        let _ = writeln!(text, "#[Never ended, in no line above: {never}]");
    }
    text
}

/// A log of intervals, in nanoseconds, as it is written: the head, then a line for each interval.
#[expect(
    missing_debug_implementations,
    reason = "the library's serializer has none"
)]
pub struct IntervalLog {
    serializer: V2DeflateSerializer,
}

impl IntervalLog {
    /// A log, and its head: `about` is a comment.
    pub fn new(start: SystemTime, about: &str) -> (IntervalLog, String) {
        let since = start
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let since = since.as_secs_f64();
        let about: String = about
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let head = format!(
            "#[{about}]\n#[Histogram log format version 1.3]\n#[StartTime: {since:.3} (seconds since epoch)]\n\
             #[Latencies are nanoseconds; Interval_Max is milliseconds]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        );
        let serializer = V2DeflateSerializer::new();
        (IntervalLog { serializer }, head)
    }

    /// The line of `interval`, and of requests in it that never ended a comment. Times count from the start in the head.
    pub fn line(&mut self, interval: &LoadInterval) -> io::Result<String> {
        let empty = Hdr::<u64>::new(3).expect("three digits are allowed");
        let all = interval.latency.finite().unwrap_or(&empty);
        let mut written = Vec::new();
        let mut builder = IntervalLogWriterBuilder::new();
        builder.with_max_value_divisor(MS);
        let mut writer = builder.begin_log_with(&mut written, &mut self.serializer)?;
        let length = interval.end - interval.start;
        writer
            .write_histogram(all, duration(interval.start), duration(length), None)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let written = String::from_utf8_lossy(&written);
        // Each writer begins with its comments, which the head has.
        let lines = written.lines().filter(|line| !line.starts_with('#'));
        let mut line: String = lines.map(|line| format!("{line}\n")).collect();
        let never = interval.latency.count() - all.len();
        if never > 0 {
            let _ = writeln!(line, "#[Never ended, in no histogram: {never}]");
        }
        Ok(line)
    }
}

fn duration(length: Nanos) -> Duration {
    length.into()
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn latencies() -> Latencies {
        let mut all = Latencies::default();
        for micros in 1..=1_000 {
            all.record(Nanos::from_micros(micros));
        }
        all.record_never();
        all
    }

    #[test]
    fn the_text_has_every_request_in_the_columns_of_the_plotters() {
        let text = percentiles_text(&latencies());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "       Value     Percentile TotalCount 1/(1-Percentile)"
        );
        let rows = lines.iter().filter(|line| !line.starts_with('#'));
        let rows: Vec<Vec<&str>> = rows
            .skip(2)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert!(rows.len() > 20 && rows.iter().all(|row| row.len() == 4));
        let median = rows.iter().find(|row| row[1] == "0.500000000000");
        assert_eq!(median.expect("a row")[0], "0.500");
        assert_eq!(
            rows.last().expect("rows")[1..],
            ["1.000000000000", "1000", "inf"]
        );
        assert!(text.contains("Total count    =         1000]"), "{text}");
        assert!(
            text.ends_with("#[Never ended, in no line above: 1]\n"),
            "{text}"
        );
        assert!(percentiles_text(&Latencies::default()).contains("Total count    =            0]"));
    }

    #[test]
    fn the_log_is_read_back_by_the_librarys_own_reader() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        let (mut log, mut text) = IntervalLog::new(start, "a\nb");
        assert!(text.starts_with("#[a b]\n"), "{text}");
        for number in 0..2 {
            let interval = LoadInterval {
                start: Nanos::from_secs(number),
                end: Nanos::from_secs(number + 1),
                latency: latencies(),
                ..LoadInterval::default()
            };
            text += &log.line(&interval).expect("memory");
        }
        let mut read = Vec::new();
        let mut comments = 0;
        // The head's legend is no entry of the Rust library's reader; those of Java skip it.
        let text: String = text
            .lines()
            .filter(|line| !line.starts_with('"'))
            .map(|line| format!("{line}\n"))
            .collect();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.expect("an entry") {
                LogEntry::Interval(interval) => read.push((
                    interval.start_timestamp(),
                    interval.duration(),
                    interval.encoded_histogram().to_owned(),
                )),
                _ => comments += 1,
            }
        }
        assert!(comments >= 1);
        let seconds: Vec<_> = read
            .iter()
            .map(|(at, length, _)| (at.as_secs(), length.as_secs()))
            .collect();
        assert_eq!(seconds, [(0, 1), (1, 1)]);
        for (.., encoded) in read {
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
            let bytes = bytes.expect("base64");
            let histogram: Hdr<u64> = Deserializer::new()
                .deserialize(&mut &bytes[..])
                .expect("a histogram");
            assert_eq!((histogram.len(), histogram.min() / 1_000), (1_000, 1));
        }
    }
}
