//! What a program prints on its standard output, as measurements: lines of JSON, or
//! lines of another kind that a pattern reads. Pure.
//!
//! A line is a measurement when it is a JSON object with a `measure`, or when the
//! pattern matches it; all others are talk. A measurement that is not whole, or not of
//! the work that was asked for, is an error that names the line: a program that counts
//! something else is not compared with those that do not.
//!
//! Not for: running the program ([`crate::trial`]).
//!
//! ```
//! use prony_lab::printed::{Assignment, Pattern, read};
//! let assignment = Assignment { count: 5_000_000, threads: 1, told_threads: false };
//! let line = "bench single threaded ran for 467,242 µs with 6,553,600 peak memory usage \
//!             10,701,092 coroutines/s\n";
//! let pattern = Pattern::new(r"ran for (?<elapsed_us>[\d,]+) µs .* (?<rate>[\d,]+) (?<measure>\w+)/s")?;
//! let lines = read(line, Some(&pattern), &assignment)?;
//! assert_eq!((lines[0].measure.as_str(), lines[0].count), ("coroutines", 5_000_000));
//! # Ok::<(), String>(())
//! ```

mod client;

use prony_record::ProgramLine;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::Value;

use crate::diagnosis::{nearest, quoted};
use crate::experiment::words::{NAME_BYTES_MAX, short};
pub use client::{ClientAssignment, read_client};

/// What is wrong with an output without any.
const NO_MEASUREMENT: &str = "it printed no measurement: a line of JSON with `measure`";
/// Measurements of one program at the most.
pub const LINES_MAX: usize = 1_000;
/// Bytes of a measurement's line at the most; a histogram is the largest thing in one.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a pattern at the most.
const PATTERN_BYTES_MAX: usize = 1_000;
/// Bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// How far a count that is computed from a printed rate may be from a whole multiple of
/// what was asked: such programs round what they print.
const RATE_TOLERANCE: f64 = 0.01;
/// Threads that a line may speak of.
const THREADS_MAX: u32 = 4_096;

/// The names of groups by which a pattern says how long the work took, with the
/// nanoseconds of their units.
const ELAPSED: [(&str, f64); 4] = [
    ("elapsed_ns", 1.0),
    ("elapsed_us", 1e3),
    ("elapsed_ms", 1e6),
    ("elapsed_s", 1e9),
];
/// The other names that a pattern may have.
const OTHERS: [&str; 6] = ["rate", "measure", "count", "threads", "bytes", "checksum"];

/// What the program was asked to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Assignment {
    /// Size of the work of one thread.
    pub count: u64,
    /// Threads.
    pub threads: u32,
    /// Whether its command tells it the number of threads.
    pub told_threads: bool,
}

/// A pattern for the lines of a program that prints no JSON.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a regular expression in which named groups say what is what. The error
    /// says what is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let regex = compiled(text)?;
        let known: Vec<&str> = ELAPSED
            .iter()
            .map(|&(name, _)| name)
            .chain(OTHERS)
            .collect();
        for name in regex.capture_names().flatten() {
            if !known.contains(&name) {
                return Err(match nearest(name, known.iter().copied()) {
                    Some(word) => format!("group `{name}` means nothing; did you mean `{word}`?"),
                    None => format!(
                        "group `{name}` means nothing; groups are {}",
                        quoted(&known)
                    ),
                });
            }
        }
        let named = |name: &str| regex.capture_names().flatten().any(|one| one == name);
        if !ELAPSED.iter().any(|&(name, _)| named(name)) {
            return Err("no group says how long the work took, such as `(?<elapsed_us>…)`".into());
        }
        Ok(Pattern(regex))
    }

    /// The measurement in a line; `None` when it does not match.
    fn read(&self, line: &str, assignment: &Assignment) -> Option<Result<ProgramLine, String>> {
        let found = self.0.captures(line)?;
        Some(from_groups(&found, assignment))
    }
}

/// Compiles a pattern. The error says what is wrong with it.
pub(crate) fn compiled(text: &str) -> Result<Regex, String> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(format!("it has more than {PATTERN_BYTES_MAX} bytes"));
    }
    let compiled = RegexBuilder::new(text)
        .size_limit(COMPILED_BYTES_MAX)
        .build();
    compiled.map_err(|error| {
        // It ends with the sentence that says it.
        let error = error.to_string();
        let line = error.lines().last().unwrap_or_default();
        let messages = line.trim_start_matches("error: ");
        messages.trim_end_matches('.').to_owned()
    })
}

/// The measurements in what a program printed, in order; at least one.
pub fn read(
    text: &str,
    pattern: Option<&Pattern>,
    assignment: &Assignment,
) -> Result<Vec<ProgramLine>, String> {
    let found = |line: &str| match pattern {
        Some(pattern) => pattern.read(line, assignment),
        None => from_json(line),
    };
    let lines = checked_lines(text, found, |line| checked(line, assignment))?;
    match (lines.is_empty(), pattern) {
        (false, _) => Ok(lines),
        (true, Some(_)) => Err("no line of its output matches `output`".to_owned()),
        (true, None) => Err(NO_MEASUREMENT.to_owned()),
    }
}

/// The lines in which a measurement is `found`, each `checked`.
fn checked_lines(
    text: &str,
    found: impl Fn(&str) -> Option<Result<ProgramLine, String>>,
    checked: impl Fn(ProgramLine) -> Result<ProgramLine, String>,
) -> Result<Vec<ProgramLine>, String> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(found) = found(line) else { continue };
        let wrong = |why| format!("line {number} of its output, `{}`: {why}", short(line));
        lines.push(found.and_then(&checked).map_err(wrong)?);
        if lines.len() > LINES_MAX {
            return Err(format!("it printed more than {LINES_MAX} measurements"));
        }
    }
    Ok(lines)
}

/// A JSON object with a `measure`; `None` for anything else.
fn from_json(line: &str) -> Option<Result<ProgramLine, String>> {
    let line = line.trim();
    if !line.starts_with('{') || !line.contains("\"measure\"") {
        return None;
    }
    if line.len() > LINE_BYTES_MAX {
        return Some(Err(format!("it has more than {LINE_BYTES_MAX} bytes")));
    }
    match serde_json::from_str::<Value>(line) {
        Ok(value) if value.get("measure").is_none() => None,
        Ok(value) => Some(serde_json::from_value(value).map_err(|error| error.to_string())),
        // The text is one line, so that serde's line says nothing.
        Err(error) => Some(Err(error.to_string().replace(" at line 1", ", at"))),
    }
}

/// A measurement from the groups of a pattern. What no group says is computed from the
/// rate, or taken to be what was asked for.
fn from_groups(found: &Captures<'_>, assignment: &Assignment) -> Result<ProgramLine, String> {
    let text = |name: &str| found.name(name).map(|group| group.as_str());
    let integer = |name: &str| text(name).map(|text| whole_number(name, text)).transpose();
    let elapsed = ELAPSED
        .iter()
        .find_map(|&(name, unit_ns)| Some((name, unit_ns, text(name)?)));
    let (name, unit_ns, elapsed) = elapsed.ok_or("no group says how long the work took")?;
    let elapsed_ns = (number(name, elapsed)? * unit_ns).round() as u64;
    let rate = text("rate").map(|text| number("rate", text)).transpose()?;
    let threads = match (integer("threads")?, rate) {
        (Some(threads), _) => u32::try_from(threads).unwrap_or(u32::MAX),
        (None, Some(rate)) => threads_of_rate(rate * elapsed_ns as f64 / 1e9, assignment)?,
        (None, None) => assignment.threads,
    };
    let count =
        integer("count")?.unwrap_or_else(|| assignment.count.saturating_mul(threads.into()));
    Ok(ProgramLine {
        measure: text("measure").unwrap_or("runs").to_owned(),
        threads,
        count,
        elapsed_ns,
        bytes: integer("bytes")?.unwrap_or(0),
        checksum: text("checksum").unwrap_or_default().to_owned(),
        ..ProgramLine::default()
    })
}

/// How many threads must have done the work, each the whole of it, for `count` in all.
fn threads_of_rate(count: f64, assignment: &Assignment) -> Result<u32, String> {
    let times = count / assignment.count as f64;
    let integer = times.round();
    let off = (times - integer).abs() > RATE_TOLERANCE * integer;
    if off || integer < 1.0 || integer > f64::from(THREADS_MAX) {
        return Err(format!(
            "rate and time make {count:.0}, which is no multiple of the {} that were asked for",
            assignment.count
        ));
    }
    Ok(integer as u32)
}

/// A number as people write it: `467,242`, `1_000`, `0.5`.
fn number(name: &str, text: &str) -> Result<f64, String> {
    let plain: String = text
        .chars()
        .filter(|c| !matches!(c, ',' | '_' | '\''))
        .collect();
    let number = plain.parse().ok();
    number
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| format!("`{name}` is `{}`, which is no number", short(text)))
}

fn whole_number(name: &str, text: &str) -> Result<u64, String> {
    let number = number(name, text)?;
    if number.fract() != 0.0 || number > 9e15 {
        return Err(format!(
            "`{name}` is `{}`, which is no whole number",
            short(text)
        ));
    }
    Ok(number as u64)
}

/// A measurement that says all that it must, of whatever work.
fn checked_shape(line: ProgramLine) -> Result<ProgramLine, String> {
    let measure = &line.measure;
    let plain = |c: char| !c.is_control() && c != '|';
    if measure.is_empty() || measure.len() > NAME_BYTES_MAX || !measure.chars().all(plain) {
        return Err("its `measure` is no name".to_owned());
    }
    if line.threads == 0 || line.threads > THREADS_MAX {
        return Err(format!("it lacks `threads`, from 1 to {THREADS_MAX}"));
    }
    if line.elapsed_ns == 0 {
        return Err("it lacks `elapsed_ns`, or took no time".to_owned());
    }
    Ok(line)
}

/// A measurement that says all that it must, of the work that was asked for.
fn checked(line: ProgramLine, assignment: &Assignment) -> Result<ProgramLine, String> {
    let line = checked_shape(line)?;
    let measure = &line.measure;
    if assignment.told_threads && line.threads != assignment.threads {
        return Err(format!(
            "it speaks of {} threads, and {} were asked for",
            line.threads, assignment.threads
        ));
    }
    let expected = assignment.count.saturating_mul(u64::from(line.threads));
    if line.count != expected {
        return Err(format!(
            "it counts {} {measure}, and {} on each of {} threads were asked for",
            line.count, assignment.count, line.threads
        ));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ASKED: Assignment = Assignment {
        count: 100,
        threads: 2,
        told_threads: true,
    };
    const ORIGINAL: &str = r"ran for (?<elapsed_us>[\d,]+) µs .* (?<rate>[\d,]+) (?<measure>\w+)/s";

    fn json(more: &str) -> String {
        format!("{{\"measure\":\"events\",\"threads\":2,\"count\":200,\"elapsed_ns\":5{more}}}")
    }

    fn error(text: &str) -> String {
        read(text, None, &ASKED).expect_err(text)
    }

    #[test]
    fn measurements_stand_among_talk() {
        let text = format!(
            "hello\n{{\"level\":\"info\"}}\n{}\n[1]\n  {}\r\n{{ not json\n",
            json(""),
            json(r#","checksum":"7","bytes":9,"realtime":false"#)
        );
        let lines = read(&text, None, &ASKED).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[1].checksum.as_str(), lines[1].bytes), ("7", 9));
    }

    #[test]
    fn durations_come_whole() {
        let text = json(
            r#","durations":{"count":200,"min_ns":1,"mean_ns":2.5,"max_ns":9,"deadline_ns":8,
            "missed":[{"run":3,"ns":9}],"missed_count":1,"histogram":{"schema":1,"unit":"ns","digits":3,"counts":[[1,199],[9,1]]}}"#,
        );
        let lines = read(&text.replace('\n', ""), None, &ASKED).unwrap();
        let durations = lines[0].durations.as_ref().unwrap();
        assert_eq!(
            (durations.missed[0].run, durations.histogram.total()),
            (3, 200)
        );
    }

    #[test]
    fn what_is_no_measurement_of_this_work_is_named() {
        let messages = [
            "",
            "talk only",
            "{\"measure\":\"events\",\"threads\":2,\"count\":200,\"elapsed_ns\":",
            "{\"measure\":\"events\",\"threads\":2,\"count\":-1,\"elapsed_ns\":5}",
            "{\"measure\":\"events\",\"count\":200,\"elapsed_ns\":5}",
            "{\"measure\":\"events\",\"threads\":2,\"count\":200}",
            "{\"measure\":\"\",\"threads\":2,\"count\":200,\"elapsed_ns\":5}",
            "x\n{\"measure\":\"events\",\"threads\":1,\"count\":100,\"elapsed_ns\":5}",
            "{\"measure\":\"events\",\"threads\":2,\"count\":100,\"elapsed_ns\":5}",
            &json(r#","checksum":7"#),
        ]
        .map(error);
        insta::assert_snapshot!(messages.join("\n"), @r#"
        it printed no measurement: a line of JSON with `measure`
        it printed no measurement: a line of JSON with `measure`
        line 1 of its output, `{"measure":"events","threads":2,"count":…`: EOF while parsing a value, at column 57
        line 1 of its output, `{"measure":"events","threads":2,"count":…`: invalid value: integer `-1`, expected u64
        line 1 of its output, `{"measure":"events","count":200,"elapsed…`: it lacks `threads`, from 1 to 4096
        line 1 of its output, `{"measure":"events","threads":2,"count":…`: it lacks `elapsed_ns`, or took no time
        line 1 of its output, `{"measure":"","threads":2,"count":200,"e…`: its `measure` is no name
        line 2 of its output, `{"measure":"events","threads":1,"count":…`: it speaks of 1 threads, and 2 were asked for
        line 1 of its output, `{"measure":"events","threads":2,"count":…`: it counts 100 events, and 100 on each of 2 threads were asked for
        line 1 of its output, `{"measure":"events","threads":2,"count":…`: invalid type: integer `7`, expected a string
        "#);
    }

    #[test]
    fn more_measurements_than_are_read_are_refused() {
        let text = format!("{}\n", json("")).repeat(LINES_MAX + 1);
        assert!(error(&text).contains("more than 1000 measurements"));
    }

    fn by_pattern(text: &str, count: u64) -> Result<Vec<ProgramLine>, String> {
        let assignment = Assignment {
            count,
            threads: 1,
            told_threads: false,
        };
        read(text, Some(&Pattern::new(ORIGINAL).unwrap()), &assignment)
    }

    #[test]
    fn the_lines_of_another_kind_of_benchmark_are_read() {
        let text = "/bin/b single threaded ran for 467,242 µs with 6,553,600 peak memory usage 10,701,092 coroutines/s\n\
                    /bin/b multi threaded ran for 2,300,113 µs with 9,953,280 peak memory usage 17,390,832 coroutines/s\n";
        let lines = by_pattern(text, 5_000_000).unwrap();
        let seen: Vec<_> = lines
            .iter()
            .map(|l| (l.threads, l.count, l.elapsed_ns))
            .collect();
        assert_eq!(
            seen,
            [(1, 5_000_000, 467_242_000), (8, 40_000_000, 2_300_113_000)]
        );
        let wrong = by_pattern(text, 3_000_000).unwrap_err();
        assert!(wrong.contains("no multiple of the 3000000"), "{wrong}");
        assert!(by_pattern("nothing", 1).unwrap_err().contains("matches"));
    }

    #[test]
    fn a_pattern_says_what_is_wrong_with_it() {
        let messages = [
            "(",
            "a",
            "(?<elapsed_u>.)",
            "(?<zzzzzz>.)",
            "(?<elapsed_s>a{1000}{1000})",
        ]
        .map(|text| Pattern::new(text).expect_err(text));
        insta::assert_snapshot!(messages.join("\n"), @"
        unclosed group
        no group says how long the work took, such as `(?<elapsed_us>…)`
        group `elapsed_u` means nothing; did you mean `elapsed_us`?
        group `zzzzzz` means nothing; groups are `elapsed_ns`, `elapsed_us`, `elapsed_ms`, `elapsed_s`, `rate`, `measure`, `count`, `threads`, `bytes`, `checksum`
        Compiled regex exceeds size limit of 1048576 bytes
        ");
        assert!(Pattern::new(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn no_output_makes_reading_panic(text in "(.|\n){0,200}", tail in ".{0,80}") {
            let _ = read(&text, None, &ASKED);
            let _ = read(&format!("{{\"measure\":{tail}"), None, &ASKED);
            let _ = by_pattern(&format!("ran for {tail} µs a {tail} b/s"), 7);
        }

        #[test]
        fn a_line_as_asked_is_read_as_printed(count in 1_u64..1 << 40, threads in 1_u32..64, elapsed_ns in 1_u64..1 << 50) {
            let line = ProgramLine {
                measure: "runs".to_owned(),
                threads,
                count: count * u64::from(threads),
                elapsed_ns,
                ..ProgramLine::default()
            };
            let text = serde_json::to_string(&line).unwrap();
            let assignment = Assignment { count, threads, told_threads: true };
            prop_assert_eq!(read(&text, None, &assignment), Ok(vec![line]));
        }
    }
}
