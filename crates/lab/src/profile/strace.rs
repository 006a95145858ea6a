//! strace, which counts system calls where perf may not: its arguments, and its table as counts. Pure.

use std::collections::BTreeMap;
use std::path::Path;

/// The arguments that have it count the system calls of processes that run, with all their threads and what they start, into
/// the file `output`, until it is interrupted.
pub fn arguments(pids: &[u32], output: &Path) -> Vec<String> {
    let mut words = vec![
        "-c".to_owned(),
        "-f".to_owned(),
        "-o".to_owned(),
        output.display().to_string(),
    ];
    for pid in pids {
        words.extend(["-p".to_owned(), pid.to_string()]);
    }
    words
}

/// Reads the table that it writes at its end: calls by name. Empty where there is none, or not the whole of it.
pub fn counts(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        // `% time, seconds, usecs/call, calls, errors, syscall`; the errors are left empty where there are none.
        let (&[share, _, _, calls, name] | &[share, _, _, calls, _, name]) = fields.as_slice()
        else {
            return None;
        };
        share.parse::<f64>().ok()?;
        Some((name.to_owned(), calls.parse().ok()?))
    };
    let mut counts: BTreeMap<String, u64> = text.lines().filter_map(line).collect();
    match counts.remove("total") {
        Some(_) => counts,
        None => BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.02    0.120000          12     10000           writev
 30.00    0.050000           2     20001     10001 recvfrom
  8.98    0.010000           1        17           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.180000           6     30018     10001 total
";

    #[test]
    fn its_table_is_counts_by_name() {
        let counts = counts(TABLE);
        assert_eq!(counts.values().sum::<u64>(), 30_018);
        assert_eq!((counts["writev"], counts["recvfrom"]), (10_000, 20_001));
        assert_eq!(counts.len(), 3);
    }

    #[test]
    fn what_is_no_table_counts_nothing() {
        let text = "strace: attach: ptrace(PTRACE_SEIZE, 7): Operation not permitted\n";
        assert!(counts(text).is_empty());
        for length in 0..TABLE.len() - 1 {
            assert!(counts(&TABLE[..length]).is_empty(), "{length}");
        }
    }

    #[test]
    fn it_is_told_every_process() {
        let words = arguments(&[3, 7], Path::new("/w/strace"));
        assert_eq!(words.join(" "), "-c -f -o /w/strace -p 3 -p 7");
    }
}
