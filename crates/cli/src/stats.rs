//! `prony stats`: logs with a line a second, summed up as a table.
//!
//! Mean and deviation are those of the seconds after the warm-up, as documents give them that were made from
//! such logs; what follows from them and what does not is in `prony_stats`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use prony_base::counted;
use prony_stats::{MeanInterval, Reading, Seconds, combined, readings, seconds};
use serde::Serialize;

use crate::{Ending, Streams};

/// A larger file is not a log with a line a second: 64 MiB are two weeks of them and more.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// Version of what `--json` prints.
const SCHEMA: u32 = 1;
/// A value that there is not.
const NOTHING: &str = "–";

/// `prony stats`
#[derive(Debug, Args)]
#[command(
    after_help = "A log has a header, which is skipped, and then a line for each second: `… MILLISECONDSms: COUNT …`, \
such as `second 1 1000ms: 270262 requests, 0 failed`; `prony load --seconds FILE` writes one."
)]
pub struct StatsWords {
    /// Logs; each is a row
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// Seconds to leave out at the start of each log
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub warmup: usize,
    /// Add the logs line by line: instances that ran at the same time are one row
    #[arg(long)]
    pub combine: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// Runs `prony stats`.
pub fn run(words: &StatsWords, streams: &mut Streams<'_>) -> anyhow::Result<Ending> {
    let logs: Vec<Log> = words
        .files
        .iter()
        .map(|file| Log::read(file, words.warmup))
        .collect::<anyhow::Result<_>>()?;
    let rows = if words.combine {
        vec![Row::new(&logs)?]
    } else {
        let each = logs.iter().map(|log| Row::new(std::slice::from_ref(log)));
        each.collect::<anyhow::Result<_>>()?
    };
    let text = match words.json {
        true => json(&rows, words.warmup)?,
        false => table(&rows, words.warmup),
    };
    write!(streams.out, "{text}")?;
    Ok(Ending::Done)
}

/// A log after its warm-up.
struct Log {
    name: String,
    readings: Vec<Reading>,
}

impl Log {
    fn read(file: &Path, warmup: usize) -> anyhow::Result<Log> {
        let name = file.display().to_string();
        let cannot = || format!("cannot read {name}");
        let length = fs::metadata(file).with_context(cannot)?.len();
        if length > LOG_BYTES_MAX {
            bail!("{name} has {length} bytes; a log may have {LOG_BYTES_MAX}");
        }
        let bytes = fs::read(file).with_context(cannot)?;
        let Ok(text) = String::from_utf8(bytes) else {
            bail!("{name} is not text in UTF-8");
        };
        let mut readings = match readings(&text) {
            Ok(readings) => readings,
            Err(bad) => bail!("{name}:{}: {}", bad.line, bad.reason),
        };
        if readings.len() <= warmup {
            bail!(
                "{name} has {} after its header, and a warm-up of {warmup} leaves none: give a smaller \
                 --warmup or a longer log",
                counted(readings.len(), "line")
            );
        }
        readings.drain(..warmup);
        Ok(Log { name, readings })
    }
}

/// The figures of a log, or of several added.
#[derive(Debug, Serialize)]
struct Row {
    files: Vec<String>,
    /// Lines that not all of the logs added have.
    left_out_lines: usize,
    seconds: usize,
    mean_per_s: f64,
    deviation_per_s: Option<f64>,
    min_per_s: f64,
    max_per_s: f64,
    variation: Option<f64>,
    serial_correlation: Option<f64>,
    interval_per_s: Option<[f64; 2]>,
    /// Why there is no interval.
    no_interval: Option<&'static str>,
}

impl Row {
    fn new(logs: &[Log]) -> anyhow::Result<Row> {
        let readings: Vec<Vec<Reading>> = logs.iter().map(|log| log.readings.clone()).collect();
        let rates = combined(&readings);
        let files: Vec<String> = logs.iter().map(|log| log.name.clone()).collect();
        let seen: Seconds = seconds(&rates)
            .with_context(|| format!("{} has no second to sum up", files.join(" + ")))?;
        let beyond = readings.iter().map(|log| log.len() - rates.len()).sum();
        let (interval, why) = match seen.interval {
            MeanInterval::Interval { low, high } => (Some([low.0, high.0]), None),
            MeanInterval::FewSeconds => (None, Some("few-seconds")),
            MeanInterval::Correlated => (None, Some("correlated")),
        };
        Ok(Row {
            files,
            left_out_lines: beyond,
            seconds: seen.count,
            mean_per_s: seen.mean.0,
            deviation_per_s: seen.deviation.map(|d| d.0),
            min_per_s: seen.min.0,
            max_per_s: seen.max.0,
            variation: seen.variation.map(|v| v.0),
            serial_correlation: seen.serial.map(|s| s.0),
            interval_per_s: interval,
            no_interval: why,
        })
    }

    fn name(&self) -> String {
        self.files.join(" + ")
    }
}

fn json(rows: &[Row], warmup: usize) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        warmup_seconds: usize,
        rows: &'a [Row],
    }
    let document = Document {
        schema: SCHEMA,
        warmup_seconds: warmup,
        rows,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// A table in Markdown, with what its columns rest on below it.
fn table(rows: &[Row], warmup: usize) -> String {
    let head = [
        "Configuration",
        "RPS",
        "Standard Deviation",
        "Seconds",
        "Min",
        "Max",
        "Variation",
        "95 % of the mean",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(entries));
    let mut text = aligned(&lines);
    text.push_str(&format!(
        "\nRPS is the mean of the seconds' rates after {warmup} of warm-up, its fraction cut off; the deviation is \
         the seconds'\n(n − 1), and the variation is deviation ÷ mean. The interval is Student's of this run's \
         mean, taking its seconds as\nindependent. It tells nothing of how far off another run may be: for \
         that, run it again.\n"
    ));
    for note in rows.iter().flat_map(notes) {
        text.push_str(&format!("{note}\n"));
    }
    text
}

fn entries(row: &Row) -> [String; 8] {
    let code = |text: String| format!("`{text}`");
    let or = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| NOTHING.to_owned(), show)
    };
    let interval = row.interval_per_s;
    [
        row.name().replace('|', "\\|"),
        code(grouped(row.mean_per_s.trunc(), 0)),
        or(row.deviation_per_s, &|d| code(grouped(d, 2))),
        row.seconds.to_string(),
        code(grouped(row.min_per_s.trunc(), 0)),
        code(grouped(row.max_per_s.trunc(), 0)),
        or(row.variation, &|v| format!("{:.2} %", v * 100.0)),
        interval.map_or_else(
            || NOTHING.to_owned(),
            |[low, high]| format!("{}–{}", grouped(low.trunc(), 0), grouped(high.trunc(), 0)),
        ),
    ]
}

/// Why a row lacks something.
fn notes(row: &Row) -> Vec<String> {
    let mut notes = Vec::new();
    match row.no_interval {
        Some("correlated") => notes.push(format!(
            "{}: no interval, since one second goes with the next (serial correlation {:.2}): each tells less \
             than an independent one.",
            row.name(),
            row.serial_correlation.unwrap_or(0.0)
        )),
        Some(_) => notes.push(format!(
            "{}: no interval, since {} {} too few to see whether they go together (10 are needed).",
            row.name(),
            counted(row.seconds, "second"),
            if row.seconds == 1 { "is" } else { "are" }
        )),
        None => {}
    }
    if row.left_out_lines > 0 {
        notes.push(format!(
            "{}: {} that not all of the logs have left out.",
            row.name(),
            counted(row.left_out_lines, "line")
        ));
    }
    notes
}

/// Columns of the same width: the first stands on the left, the others on the right.
fn aligned(lines: &[[String; 8]]) -> String {
    let width = |at: usize| {
        let widths = lines.iter().map(|line| line[at].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: [usize; 8] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (at, (entry, width)) in line.iter().zip(widths).enumerate() {
            let gap = " ".repeat(width - entry.chars().count());
            text.push_str(&match at {
                0 => format!("| {entry}{gap} |"),
                _ => format!(" {gap}{entry} |"),
            });
        }
        text.push('\n');
        if number == 0 {
            for (at, width) in widths.into_iter().enumerate() {
                let dashes = "-".repeat(width);
                text.push_str(&match at {
                    0 => format!("| {dashes} |"),
                    _ => format!(" {dashes}:|"),
                });
            }
            text.push('\n');
        }
    }
    text
}

/// A number by thousands: `270,262`, `2,089.54`.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (integer, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let (sign, digits) = match integer.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", integer),
    };
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_as_the_table_has_them() {
        assert_eq!(grouped(270_262.0, 0), "270,262");
        assert_eq!(grouped(2_089.543, 2), "2,089.54");
        assert_eq!(grouped(201.45, 2), "201.45");
        assert_eq!(grouped(-1_234.5, 1), "-1,234.5");
        assert_eq!(grouped(0.0, 0), "0");
    }

    fn log(name: &str, counts: impl Iterator<Item = u64>) -> Log {
        let reading = |count| Reading { ms: 1_000, count };
        Log {
            name: name.to_owned(),
            readings: counts.map(reading).collect(),
        }
    }

    #[test]
    fn rows_and_what_they_lack() {
        let wobbling = || (0..12_u64).map(|n| 270_262 + n * 7_919 % 4_001);
        let logs = [
            log("logs/one|two.log", wobbling()),
            log("short.log", [1_000, 1_003].into_iter()),
            log("slope.log", (0..12).map(|n| 200_000 + n * 500)),
        ];
        let mut rows: Vec<Row> = logs
            .iter()
            .map(|l| Row::new(std::slice::from_ref(l)).unwrap())
            .collect();
        rows.push(Row::new(&logs).unwrap());
        insta::assert_snapshot!(table(&rows, 3));
        insta::assert_snapshot!(json(&rows[1..2], 3).unwrap());
    }
}
