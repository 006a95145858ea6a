//! The times of single requests as comma-separated values.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use prony_load::RequestTimes;

/// Requests of which a trace has the times, at the most.
pub const ROWS_MAX: u64 = 1_000_000;
/// The columns. Times are nanoseconds on `CLOCK_MONOTONIC`, those with `within` lengths.
const HEAD: &str = "connection,local_port,intended_ns,submitted_ns,submitted_within_ns,first_byte_ns,last_byte_ns,\
picked_up_within_ns,slept,processed_ns,status";

/// Writes a row for each request to `file`.
pub fn write(file: &Path, trace: &[RequestTimes]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    rows(&mut out, trace)?;
    out.flush()
}

fn rows(out: &mut impl Write, trace: &[RequestTimes]) -> io::Result<()> {
    writeln!(out, "{HEAD}")?;
    for times in trace {
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{}",
            times.connection,
            times.local_port,
            times.intended.0,
            times.submitted.0,
            times.submitted_within.0,
            times.first_byte.0,
            times.last_byte.0,
            times.picked_up_within.0,
            u8::from(times.slept),
            times.processed.0,
            times.status
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prony_base::{Instant, Nanos};

    use super::*;

    #[test]
    fn each_request_is_a_row_with_as_many_fields_as_there_are_columns() {
        let times = RequestTimes {
            connection: 7,
            local_port: 40_000,
            intended: Instant(1),
            submitted: Instant(2),
            submitted_within: Nanos(3),
            first_byte: Instant(4),
            last_byte: Instant(5),
            picked_up_within: Nanos(6),
            slept: true,
            processed: Instant(8),
            status: 200,
        };
        let mut text = Vec::new();
        rows(&mut text, &[times]).expect("memory");
        let text = String::from_utf8(text).expect("text");
        let row = text.strip_prefix(HEAD).expect("the head");
        assert_eq!(row, "\n7,40000,1,2,3,4,5,6,1,8,200\n");
    }
}
