//! Figures as `prony bench` prints them, of any work.

use prony_record::ProgramLine;
use serde::Serialize;

use prony_program::Streams;

/// Version of the line that `--json` prints.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    #[serde(flatten)]
    line: &'a ProgramLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_bytes: Option<u64>,
}

/// What `--json` prints of any work.
pub fn write_line(
    line: &ProgramLine,
    peak_bytes: Option<u64>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let line = Line {
        schema: SCHEMA,
        line,
        peak_bytes,
    };
    serde_json::to_writer(&mut *streams.out, &line)?;
    writeln!(streams.out)?;
    Ok(())
}

/// With a comma between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
