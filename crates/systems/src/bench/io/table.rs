//! Downloads as a table for people: the columns of the original, then all that is known.
//! Not for: computing any of it.

use std::fmt::Write as _;

use prony_bench::io::{Buffers, IoDone, IoOrder, Run, Strategy};
use prony_record::{ProgramLine, Spread};

use super::super::figures::grouped;

const MIB: f64 = (1 << 20) as f64;
const GIB: f64 = (1 << 30) as f64;

/// What is measured, and the head of the table.
pub fn heading(order: &IoOrder) -> String {
    let IoOrder {
        address,
        path,
        connections,
        ..
    } = order;
    format!(
        "prony bench io http://{address}{path}, {connections} connections, {}\n\n\
         {:>4} | {:>15} | {:>11} | {:>25} | {:>9} | {:>14} | {:>10}\n\
         {:->4}-|-{:->15}-|-{:->11}-|-{:->25}-|-{:->9}-|-{:->14}-|-{:->10}\n",
        strategy(order),
        "run",
        "socket creation",
        "job setup",
        "download",
        "run time",
        "memory, mean",
        "client CPU",
        "",
        "",
        "",
        "",
        "",
        "",
        ""
    )
}

fn strategy(order: &IoOrder) -> String {
    let size = bytes(order.buffer_bytes as f64);
    let mut text = match order.strategy {
        Strategy::Threads => format!("a thread and a buffer of {size} each"),
        Strategy::Poll | Strategy::Epoll => {
            let whose = match order.buffers {
                Buffers::Shared => "one buffer",
                Buffers::Own => "each its buffer",
            };
            format!("{}, {whose} of {size}", order.strategy.name())
        }
        Strategy::Ring => {
            let receive = format!("{:?}", order.receive).to_lowercase();
            format!("ring, {receive}, {} buffers of {size}", order.ring_buffers)
        }
    };
    if order.drains {
        text.push_str(", each socket until it has nothing");
    }
    if order.vectored > 1 {
        let _ = write!(text, " ({} of them a read)", order.vectored);
    }
    if order.discard {
        text.push_str(", bodies thrown away in the kernel: counted, not seen");
    }
    if order.spin {
        text.push_str(", never asleep");
    }
    text
}

/// One line of the table.
pub fn row(name: &str, run: &Run) -> String {
    let memory = run.pss_bytes.map_or_else(|| "-".to_owned(), bytes);
    let nothing = || "-".to_owned();
    let (socket, setup, download) = match has_downloads(run) {
        true => (
            time(run.socket_ns),
            time(run.setup_ns),
            format!(
                "{} @ {:.2} MiB/s",
                time(run.download_ns),
                run.bytes_per_s / MIB
            ),
        ),
        false => (nothing(), nothing(), nothing()),
    };
    let failed = match run.failed {
        0 => String::new(),
        failed => format!("   {failed} failed"),
    };
    format!(
        "{name:>4} | {socket:>15} | {setup:>11} | {download:>25} | {:>9} | {memory:>14} | {:>10}{failed}\n",
        time(run.length.0 as f64),
        time(run.cpu.0 as f64),
    )
}

/// What stands under the table: the spread of each figure, and the sums.
pub fn rest(done: &IoDone) -> String {
    let line = &done.line;
    let mut text = String::new();
    if done.runs.len() > 1 {
        text.push_str(&row("mean", &mean(&done.runs)));
    }
    let _ = writeln!(
        text,
        "\n{:<24} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}",
        "", "mean", "least", "median", "most", "deviation", "values"
    );
    for (name, title, unit) in SPREADS {
        if let Some(spread) = line.figures.get(name) {
            text.push_str(&spread_line(title, spread, unit));
        }
    }
    text.push_str(&sums(line));
    text
}

type Unit = fn(f64) -> String;

const SPREADS: [(&str, &str, Unit); 11] = [
    ("socket_ns", "socket creation", time),
    ("setup_ns", "job setup", time),
    ("connect_ns", "connecting", time),
    ("first_byte_ns", "first byte", time),
    ("download_ns", "download", time),
    ("rate_bytes_per_s", "rate of each download", rate),
    ("stall_ns", "longest gap in it", time),
    ("run_ns", "run", time),
    ("overall_bytes_per_s", "rate of a run", rate),
    ("cpu_ns_per_gib", "client CPU per GiB", time),
    ("pss_sample_bytes", "memory (Pss, no files)", bytes),
];

fn spread_line(title: &str, spread: &Spread, unit: Unit) -> String {
    let [mean, min, p50, max, stdev] = [
        spread.mean,
        spread.min,
        spread.p50,
        spread.max,
        spread.stdev,
    ]
    .map(unit);
    let count = spread.count;
    format!("{title:<24} {mean:>12} {min:>12} {p50:>12} {max:>12} {stdev:>12} {count:>8}\n")
}

fn sums(line: &ProgramLine) -> String {
    let tally = |name: &str| line.tallies.get(name).copied().unwrap_or(0);
    let seconds = line.elapsed_ns as f64 / 1e9;
    let mut text = format!(
        "\n{} downloads, {} bytes in {}: {:.0} MiB/s over all connections\n",
        grouped(line.count),
        grouped(line.bytes),
        time(line.elapsed_ns as f64),
        line.bytes as f64 / MIB / seconds.max(1e-9),
    );
    let (user, system) = (tally("user_ns") as f64, tally("system_ns") as f64);
    let _ = write!(
        text,
        "client CPU: {} user, {} kernel",
        time(user),
        time(system)
    );
    if line.bytes > 0 {
        let per_gib = (user + system) / 1e9 / (line.bytes as f64 / GIB);
        let _ = write!(text, ", {per_gib:.3} s/GiB");
    }
    let sampler_cpu = tally("sampler_cpu_ns") as f64;
    if sampler_cpu > 0.0 {
        let _ = write!(
            text,
            " (without {} of looking at memory)",
            time(sampler_cpu)
        );
    }
    text.push_str("\nsystem calls to receive and to wait:");
    let calls = line.tallies.iter();
    let calls = calls.filter(|(name, _)| name.ends_with("_calls"));
    for (index, (name, count)) in calls.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma} {} {}",
            grouped(*count),
            name.trim_end_matches("_calls")
        );
    }
    let _ = writeln!(
        text,
        "\ncontext switches: {} voluntary, {} not; peak memory {}",
        grouped(tally("voluntary_switches")),
        grouped(tally("involuntary_switches")),
        bytes(tally("peak_rss_bytes") as f64),
    );
    text
}

/// Whether any download of it came to its end; failed ones have no figures.
fn has_downloads(run: &Run) -> bool {
    run.download_ns > 0.0
}

/// The mean of several runs, each counted once, as in the original; of the downloads' own
/// figures over those runs that have any.
fn mean(runs: &[Run]) -> Run {
    let count = runs.len() as f64;
    let of = |part: fn(&Run) -> f64| runs.iter().map(part).sum::<f64>() / count;
    let complete: Vec<_> = runs.iter().filter(|run| has_downloads(run)).collect();
    let of_whole = |part: fn(&Run) -> f64| {
        let sum: f64 = complete.iter().map(|run| part(run)).sum();
        sum / complete.len().max(1) as f64
    };
    let memory: Vec<f64> = runs.iter().filter_map(|run| run.pss_bytes).collect();
    let pss = memory.iter().sum::<f64>() / memory.len() as f64;
    Run {
        failed: runs.iter().map(|run| run.failed).sum(),
        socket_ns: of_whole(|run| run.socket_ns),
        setup_ns: of_whole(|run| run.setup_ns),
        download_ns: of_whole(|run| run.download_ns),
        // By time, as within a run.
        bytes_per_s: of_whole(|run| run.bytes_per_s * run.download_ns)
            / of_whole(|run| run.download_ns).max(1e-9),
        length: prony_base::Nanos(of(|run| run.length.0 as f64) as u64),
        bytes: (of(|run| run.bytes as f64)) as u64,
        pss_bytes: (!memory.is_empty()).then_some(pss),
        cpu: prony_base::Nanos(of(|run| run.cpu.0 as f64) as u64),
    }
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1024.0 => format!("{bytes:.0} B"),
        bytes if bytes < MIB => trimmed(bytes / 1024.0, "KiB"),
        bytes if bytes < GIB => trimmed(bytes / MIB, "MiB"),
        bytes => trimmed(bytes / GIB, "GiB"),
    }
}

/// Whole numbers without a fraction.
fn trimmed(number: f64, unit: &str) -> String {
    match number.fract() {
        0.0 => format!("{number:.0} {unit}"),
        _ => format!("{number:.2} {unit}"),
    }
}

fn rate(bytes_per_s: f64) -> String {
    format!("{:.1} MiB/s", bytes_per_s / MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prony_base::Nanos;
    use std::collections::BTreeMap;

    fn done() -> IoDone {
        let run = |length_ns| Run {
            socket_ns: 2_730.0,
            setup_ns: 17_157.0,
            download_ns: 2.37e9,
            bytes_per_s: 92_774_400.0,
            length: Nanos(length_ns),
            bytes: 419_430_400,
            pss_bytes: Some(6_815_744.0),
            cpu: Nanos::from_millis(350),
            ..Run::default()
        };
        let spread = Spread {
            count: 4,
            min: 1e6,
            mean: 2e6,
            p50: 2.5e6,
            stdev: 3e5,
            max: 4e6,
        };
        let tallies = [
            ("poll_calls", 1_234_u64),
            ("recv_calls", 98_765),
            ("syscalls", 99_999),
            ("user_ns", 50_000_000),
            ("system_ns", 650_000_000),
            ("sampler_cpu_ns", 2_000_000),
            ("voluntary_switches", 17),
            ("involuntary_switches", 4_000),
            ("peak_rss_bytes", 8 << 20),
        ];
        IoDone {
            line: ProgramLine {
                count: 4,
                bytes: 838_860_800,
                elapsed_ns: 5_000_000_000,
                figures: BTreeMap::from([("connect_ns".to_owned(), spread)]),
                tallies: tallies.map(|(name, count)| (name.to_owned(), count)).into(),
                ..ProgramLine::default()
            },
            runs: vec![run(2_400_000_000), run(2_600_000_000)],
            ..IoDone::default()
        }
    }

    #[test]
    fn the_table_has_the_originals_columns_and_more() {
        let mut order = IoOrder::new("127.0.0.1:8000".parse().unwrap());
        order.connections = 2;
        let done = done();
        let mut text = heading(&order);
        for (index, run) in done.runs.iter().enumerate() {
            text.push_str(&row(&(index + 1).to_string(), run));
        }
        text.push_str(&rest(&done));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_run_without_any_download_counted_as_one_of_no_length() {
        let good = done().runs[0];
        let failed = Run {
            failed: 2,
            length: Nanos::from_secs(1),
            ..Run::default()
        };
        let all = mean(&[failed, good]);
        assert_eq!(
            (all.socket_ns, all.download_ns, all.bytes_per_s),
            (good.socket_ns, good.download_ns, good.bytes_per_s)
        );
        assert_eq!((all.failed, all.length), (2, Nanos(1_700_000_000)));
        let row = row("1", &failed);
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1..4], ["-", "-", "-"], "{row}");
    }

    #[test]
    fn the_mean_of_several_runs_had_the_mean_of_their_rates() {
        let run = |seconds: f64| Run {
            download_ns: seconds * 1e9,
            bytes_per_s: 10.0 / seconds,
            ..Run::default()
        };
        let all = mean(&[run(1.0), run(9.0)]);
        assert_eq!((all.download_ns, all.bytes_per_s), (5e9, 2.0));
    }

    #[test]
    fn what_is_thrown_away_or_spins_is_said() {
        let mut order = IoOrder::new("127.0.0.1:8000".parse().unwrap());
        order.strategy = Strategy::Ring;
        (order.discard, order.spin) = (true, true);
        assert_eq!(
            strategy(&order),
            "ring, multishot, 16 buffers of 64 KiB, bodies thrown away in the kernel: counted, \
             not seen, never asleep"
        );
        order.strategy = Strategy::Epoll;
        (order.discard, order.spin) = (false, false);
        (order.buffers, order.vectored, order.drains) = (Buffers::Own, 4, true);
        assert_eq!(
            strategy(&order),
            "epoll, each its buffer of 64 KiB, each socket until it has nothing (4 of them a read)"
        );
        order.strategy = Strategy::Threads;
        (order.vectored, order.drains) = (1, false);
        assert_eq!(strategy(&order), "a thread and a buffer of 64 KiB each");
    }

    #[test]
    fn sizes_and_times_have_the_unit_that_suits_them() {
        assert_eq!(
            [12.0, 1_500.0, 2.5e6, 3e9].map(time),
            ["12 ns", "1.50 µs", "2.50 ms", "3.000 s"]
        );
        assert_eq!(bytes(100.0), "100 B");
        assert_eq!(bytes(65_536.0), "64 KiB");
        assert_eq!(bytes(1.5 * GIB), "1.50 GiB");
    }
}
