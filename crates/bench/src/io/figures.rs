//! From moments to figures. Not for: printing them.

use std::collections::BTreeMap;

use prony_base::Nanos;
use prony_load::Latencies;
use prony_record::{ClientFigures, ProgramLine};

use super::done::{Downloads, IoDone, Run};
use super::memory::Memory;
use super::order::IoOrder;
use super::transfer::{Marks, Transfer};
use crate::spread::spread;
use crate::usage::Usage;

/// Failures that are put in words.
const FAILURES_MAX: usize = 20;
const GIB: f64 = (1_u64 << 30) as f64;

/// Figures of all runs so far.
pub struct Figures {
    connections: u32,
    threads: u32,
    discards: bool,
    memory: bool,
    values: BTreeMap<&'static str, Vec<f64>>,
    tallies: BTreeMap<&'static str, u64>,
    latencies: Latencies,
    failed_by_kind: BTreeMap<String, u64>,
    failures: Vec<String>,
    runs: Vec<Run>,
    count: u64,
}

impl Figures {
    /// None so far.
    pub fn new(order: &IoOrder) -> Figures {
        Figures {
            connections: order.connections,
            threads: order.threads(),
            discards: order.discard,
            memory: order.memory,
            values: BTreeMap::new(),
            tallies: BTreeMap::new(),
            latencies: Latencies::default(),
            failed_by_kind: BTreeMap::new(),
            failures: Vec::new(),
            runs: Vec::new(),
            count: 0,
        }
    }

    /// Adds a run, and says what it was.
    pub fn add(&mut self, done: &Downloads, length: Nanos, memory: &Memory, used: Usage) -> Run {
        let mut run = Run {
            length,
            cpu: used.cpu(),
            ..Run::default()
        };
        let (mut complete, mut whole_bytes) = (0, 0);
        for (number, transfer) in done.transfers.iter().enumerate() {
            run.bytes += transfer.body_bytes();
            self.tally("discarded_bytes", transfer.discarded_bytes());
            match transfer.failure() {
                Some(failure) => {
                    run.failed += 1;
                    let kind = self.failed_by_kind.entry(failure.kind().to_owned());
                    let count = kind.or_default();
                    *count += 1;
                    if *count == 1 && self.failures.len() < FAILURES_MAX {
                        let number = number + 1;
                        self.failures
                            .push(format!("connection {number}: {failure}"));
                    }
                }
                None => {
                    complete += 1;
                    whole_bytes += transfer.body_bytes();
                    self.download(transfer, &mut run);
                }
            }
        }
        let mean = |sum: f64| {
            if complete == 0 {
                0.0
            } else {
                sum / complete as f64
            }
        };
        // Bytes by time: the mean of the rates is higher where some downloads end long before the others.
        run.bytes_per_s = whole_bytes as f64 / (run.download_ns / 1e9).max(1e-9);
        run.socket_ns = mean(run.socket_ns);
        run.setup_ns = mean(run.setup_ns);
        run.download_ns = mean(run.download_ns);
        self.count += complete;
        self.whole_run(&mut run, memory, used);
        for (name, count) in &done.calls.0 {
            self.tally(name, *count);
            if name.ends_with("_calls") {
                self.tally("syscalls", *count);
            }
        }
        self.runs.push(run);
        run
    }

    /// A download that came to its end; its figures are summed in `run`.
    fn download(&mut self, transfer: &Transfer, run: &mut Run) {
        let Marks {
            socket,
            setup,
            connecting,
            connected,
            request_sent,
            first,
            last,
            stall,
            ..
        } = transfer.marks;
        let download = last.since(request_sent);
        let rate = transfer.body_bytes() as f64 / download.as_secs_f64().max(1e-9);
        self.latencies.record(download);
        let values = [
            ("socket_ns", socket.0 as f64),
            ("setup_ns", setup.0 as f64),
            ("connect_ns", connected.since(connecting).0 as f64),
            ("first_byte_ns", first.since(request_sent).0 as f64),
            ("download_ns", download.0 as f64),
            ("rate_bytes_per_s", rate),
            ("stall_ns", stall.0 as f64),
        ];
        for (name, value) in values {
            self.value(name, value);
        }
        run.socket_ns += socket.0 as f64;
        run.setup_ns += setup.0 as f64;
        run.download_ns += download.0 as f64;
    }

    /// The figures of a run as a whole.
    fn whole_run(&mut self, run: &mut Run, memory: &Memory, used: Usage) {
        self.value("run_ns", run.length.0 as f64);
        let seconds = run.length.as_secs_f64().max(1e-9);
        self.value("overall_bytes_per_s", run.bytes as f64 / seconds);
        if run.bytes > 0 {
            let gib = run.bytes as f64 / GIB;
            self.value("cpu_ns_per_gib", used.cpu().0 as f64 / gib);
        }
        if !memory.samples.is_empty() {
            let sum: u64 = memory.samples.iter().sum();
            let mean = sum as f64 / memory.samples.len() as f64;
            run.pss_bytes = Some(mean);
            self.value("pss_bytes", mean);
            for &sample in &memory.samples {
                self.value("pss_sample_bytes", sample as f64);
            }
        }
        self.tally("user_ns", used.user.0);
        self.tally("system_ns", used.system.0);
        self.tally("voluntary_switches", used.voluntary);
        self.tally("involuntary_switches", used.involuntary);
        self.tally("sampler_cpu_ns", memory.thread_usage.cpu().0);
        let peak = self.tallies.entry("peak_rss_bytes").or_default();
        *peak = used.peak_bytes.max(*peak);
    }

    fn value(&mut self, name: &'static str, value: f64) {
        self.values.entry(name).or_default().push(value);
    }

    fn tally(&mut self, name: &'static str, count: u64) {
        *self.tallies.entry(name).or_default() += count;
    }

    /// The measurement over all runs.
    pub fn finish(self) -> IoDone {
        let bytes = self.runs.iter().map(|run| run.bytes).sum::<u64>();
        let failed = self.runs.iter().map(|run| run.failed).sum();
        let (latency, histogram) = (self.latencies.summary(), self.latencies.histogram());
        let mut notes = Vec::new();
        if self.discards {
            notes.push(format!(
                "{} of {bytes} bytes were thrown away in the kernel: counted, not seen",
                self.tallies.get("discarded_bytes").unwrap_or(&0)
            ));
        }
        if self.memory && self.runs.iter().any(|run| run.pss_bytes.is_none()) {
            notes.push("a run was over before its memory was looked at (every 100 ms)".to_owned());
        }
        let named = |(name, values): (&str, Vec<f64>)| (name.to_owned(), spread(values));
        let line = ProgramLine {
            measure: "downloads".to_owned(),
            threads: self.threads,
            count: self.count,
            elapsed_ns: self.runs.iter().map(|run| run.length.0).sum(),
            bytes,
            checksum: bytes.to_string(),
            client: Some(ClientFigures {
                connections: self.connections,
                failed,
                failed_by_kind: self.failed_by_kind,
                in_flight: Some(0),
                latency: Some(latency),
                histogram: Some(histogram),
            }),
            figures: self.values.into_iter().map(named).collect(),
            tallies: self
                .tallies
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count))
                .collect(),
            ..ProgramLine::default()
        };
        IoDone {
            line,
            runs: self.runs,
            failures: self.failures,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use prony_base::Instant;

    use super::*;

    /// A download of ten bytes that took so long.
    fn downloaded(seconds: u64) -> Transfer {
        let mut transfer = Transfer::new(Some(10));
        transfer.connected();
        transfer.request_sent();
        transfer.received(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
        transfer.marks.request_sent = Instant(1);
        transfer.marks.last = Instant(1) + Nanos::from_secs(seconds);
        transfer
    }

    #[test]
    fn the_rate_beside_a_downloads_length_was_the_mean_of_rates() {
        let done = Downloads {
            transfers: vec![downloaded(1), downloaded(9)],
            ..Downloads::default()
        };
        let order = IoOrder::new("127.0.0.1:1".parse().expect("an address"));
        let mut figures = Figures::new(&order);
        let length = Nanos::from_secs(9);
        let run = figures.add(&done, length, &Memory::default(), Usage::default());
        assert_eq!(run.download_ns, 5e9);
        assert_eq!(
            run.bytes_per_s, 2.0,
            "ten bytes in five seconds, not the mean of 10 and 1.1"
        );
        let nothing = figures.add(
            &Downloads::default(),
            length,
            &Memory::default(),
            Usage::default(),
        );
        assert_eq!((nothing.download_ns, nothing.bytes_per_s), (0.0, 0.0));
    }
}
