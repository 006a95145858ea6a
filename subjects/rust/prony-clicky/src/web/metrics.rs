//! What can be told in numbers, as OpenMetrics text (version 1.0.0). Text out of values;
//! what must be asked of the kernel is in [`Process::now`].

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use prony_base::{Nanos, clock};
use prony_http::{Count, Counters, Totals};

use crate::counting::{Numbers, Refusal};

/// The media type of the text.
pub const TYPE: &[u8] = b"application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What one loop counts beside its server's [`Counters`].
#[derive(Debug, Default)]
pub struct Counts {
    /// Requests that counting refused, in the order of [`REASONS`].
    refusals: [Count; REASONS.len()],
    /// Requests over the limit of their address.
    pub limited: Count,
    /// Listeners beyond those that there may be.
    pub listeners_full: Count,
    /// Listeners beyond those that their address may have.
    pub listeners_of_address: Count,
    /// Events sent to listeners.
    pub events: Count,
    /// Lines of the log that could not be written.
    log_lost: Arc<Count>,
}

/// Why counting refuses, for labels.
const REASONS: [&str; 7] = [
    "closing",
    "pending_full",
    "waiting_full",
    "too_many_counters",
    "total_full",
    "not_kept",
    "unsure",
];

impl Counts {
    /// None yet; `log_lost` is counted by the loop's log.
    pub fn new(log_lost: Arc<Count>) -> Counts {
        Counts {
            log_lost,
            ..Counts::default()
        }
    }

    /// Counts a refusal.
    pub fn refused(&self, refusal: Refusal) {
        let reason = match refusal {
            Refusal::Closing => 0,
            Refusal::PendingFull => 1,
            Refusal::WaitingFull => 2,
            Refusal::TooManyCounters => 3,
            Refusal::TotalFull => 4,
            Refusal::NotKept => 5,
            Refusal::Unsure => 6,
        };
        self.refusals[reason].add(1);
    }
}

/// Where the loops' numbers hang, to be read by any of them.
#[derive(Debug, Default)]
pub struct Board(Mutex<Vec<(Arc<Counters>, Arc<Counts>)>>);

impl Board {
    /// Hangs up one loop's.
    pub fn add(&self, counters: Arc<Counters>, counts: Arc<Counts>) {
        let mut loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loops.push((counters, counts));
    }

    /// All loops' numbers, added up.
    pub fn totals(&self) -> Web {
        let loops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut web = Web::default();
        for (counters, counts) in loops.iter() {
            web.server.add(&counters.totals());
            for (reason, count) in REASONS.into_iter().zip(&counts.refusals) {
                *web.refusals.entry(reason).or_default() += count.get();
            }
            for (reason, count) in [
                ("rate_limit", &counts.limited),
                ("listeners", &counts.listeners_full),
                ("listeners_per_address", &counts.listeners_of_address),
            ] {
                *web.refusals.entry(reason).or_default() += count.get();
            }
            web.events += counts.events.get();
            web.log_lost += counts.log_lost.get();
        }
        web
    }
}

/// Numbers of the HTTP side.
#[derive(Debug, Default)]
pub struct Web {
    server: Totals,
    refusals: BTreeMap<&'static str, u64>,
    events: u64,
    log_lost: u64,
}

/// Numbers of this process.
#[derive(Debug, Default)]
pub struct Process {
    cpu: Nanos,
    resident_bytes: u64,
}

impl Process {
    /// Asks the kernel.
    pub fn now() -> Process {
        let pages = fs::read_to_string("/proc/self/statm")
            .ok()
            .and_then(|text| {
                let mut fields = text.split_ascii_whitespace();
                fields.nth(1)?.parse::<u64>().ok()
            });
        Process {
            cpu: clock::process_cpu(),
            resident_bytes: pages.unwrap_or(0) * rustix::param::page_size() as u64,
        }
    }
}

/// All that is told.
pub struct Told {
    /// Of the HTTP side.
    pub web: Web,
    /// Of counting.
    pub numbers: Numbers,
    /// The root counter.
    pub root_total: u64,
    /// Who listens for events.
    pub listeners: u64,
    /// Of the process.
    pub process: Process,
}

impl Told {
    /// As text.
    pub fn text(&self) -> String {
        let mut text = Text(String::with_capacity(4096));
        self.put_web(&mut text);
        self.put_counting(&mut text);
        text.gauge("clicky_listeners", "Listeners for events.", self.listeners);
        let Process {
            cpu,
            resident_bytes,
        } = self.process;
        let help = "CPU time of the process, in user and kernel mode.";
        text.family("process_cpu_seconds", "counter", Some("seconds"), help);
        text.sample("process_cpu_seconds_total", "", cpu.as_secs_f64());
        let help = "Memory of the process that is in RAM.";
        text.family(
            "process_resident_memory_bytes",
            "gauge",
            Some("bytes"),
            help,
        );
        text.sample("process_resident_memory_bytes", "", resident_bytes);
        text.0.push_str("# EOF\n");
        text.0
    }

    fn put_web(&self, text: &mut Text) {
        let Web {
            server,
            refusals,
            events,
            log_lost,
        } = &self.web;
        let statuses = server.statuses.iter();
        let statuses = statuses.map(|(status, count)| (status.to_string(), *count));
        text.labelled("clicky_requests", "Answers, by status.", "status", statuses);
        let refusals = refusals.iter();
        let refusals = refusals.map(|(reason, count)| ((*reason).to_owned(), *count));
        let help = "Requests that were refused, by reason.";
        text.labelled("clicky_refusals", help, "reason", refusals);
        text.gauge("clicky_connections", "Open connections.", server.open());
        let help = "Connections that were accepted.";
        text.counter("clicky_connections_accepted", help, server.accepted);
        text.counter("clicky_events", "Events sent to listeners.", *events);
        let help = "Lines of the log that could not be written.";
        text.counter("clicky_log_lines_lost", help, *log_lost);
    }

    fn put_counting(&self, text: &mut Text) {
        let Numbers {
            clicks,
            pending,
            counters,
            batches,
            syncs,
            sync_total,
            sync_longest,
            failures,
            store_bytes,
        } = self.numbers;
        text.gauge("clicky_root_clicks", "The counter at /.", self.root_total);
        text.counter("clicky_clicks", "Clicks counted by this process.", clicks);
        text.gauge("clicky_counters", "Counters that there are.", counters);
        let help = "Clicks that are in memory alone.";
        text.gauge("clicky_pending_clicks", help, pending);
        text.counter("clicky_batches", "Batches that the store took.", batches);
        let help = "Times that the store was asked to take a batch.";
        text.counter("clicky_syncs", help, syncs);
        let help = "Time that the store took for batches.";
        text.family("clicky_sync_seconds", "counter", Some("seconds"), help);
        text.sample("clicky_sync_seconds_total", "", sync_total.as_secs_f64());
        let help = "The longest that the store took for a batch.";
        text.family(
            "clicky_sync_longest_seconds",
            "gauge",
            Some("seconds"),
            help,
        );
        text.sample(
            "clicky_sync_longest_seconds",
            "",
            sync_longest.as_secs_f64(),
        );
        let help = "Batches that the store failed to take.";
        text.counter("clicky_sync_failures", help, failures);
        let help = "Size of the store, where it is a file.";
        text.family("clicky_store_bytes", "gauge", Some("bytes"), help);
        text.sample("clicky_store_bytes", "", store_bytes);
    }
}

/// The text in the making. Names and labels are this module's own and need no escape.
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, unit: Option<&str>, help: &str) {
        // Writing to a string does not fail; so below.
        let _ = writeln!(self.0, "# TYPE {name} {kind}");
        if let Some(unit) = unit {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "gauge", None, help);
        self.sample(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", None, help);
        self.sample(&format!("{name}_total"), "", value);
    }

    fn labelled(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (String, u64)>,
    ) {
        self.family(name, "counter", None, help);
        for (value, count) in values {
            let labels = format!("{{{label}=\"{value}\"}}");
            self.sample(&format!("{name}_total"), &labels, count);
        }
    }
}
