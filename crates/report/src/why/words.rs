//! One sentence about where a subject's time went.

use prony_record::{ProfileReport, ProfiledThread, REQUESTS, Trial};

use super::shares;
use super::shares::Seen;
use crate::numbers;
use crate::threads::SHARE_MIN;

/// Functions that are named at the most.
const NAMED_MAX: usize = 3;
/// Share below which a function is not named, but for the first.
const NAMED_MIN: f64 = 0.08;
/// Samples below which no shares are told: a share of 30 % would be uncertain by more than 10 points.
const SAMPLES_MIN: u64 = 100;

/// `62 % in tcp_sendmsg; 1.9 system calls a request; thread HttpCon busy 99.9 %`.
pub(super) fn sentence(seen: &Seen<'_>, folded: &str) -> String {
    let mut parts = Vec::new();
    if let Some((_, profile)) = seen.main {
        parts.extend(places(profile, folded));
    }
    parts.extend(system_calls(seen));
    if let Some((trial, profile)) = seen.main.or(seen.strace) {
        parts.extend(switches(trial, profile));
        parts.extend(busiest(profile));
    }
    match parts.is_empty() {
        true => "Nothing could be seen of it.".to_owned(),
        false => format!("{}.", parts.join("; ")),
    }
}

/// Where its samples fell.
fn places(profile: &ProfileReport, folded: &str) -> Option<String> {
    if profile.rate_per_s == 0 {
        return None;
    }
    let shares = shares::shares(folded);
    if shares.total < SAMPLES_MIN {
        return Some(format!(
            "too few samples ({}) to say where",
            numbers::count(shares.total)
        ));
    }
    let of = |count: u64| count as f64 / shares.total as f64;
    let named = shares.by_function.iter().enumerate();
    let named = named.take_while(|(at, (_, count))| *at == 0 || of(*count) >= NAMED_MIN);
    let named: Vec<String> = named
        .take(NAMED_MAX)
        .map(|(_, (name, count))| format!("{} in {name}", percent(of(*count))))
        .collect();
    Some(match profile.kernel {
        true => format!(
            "{} ({} in the kernel)",
            named.join(", "),
            percent(of(shares.kernel))
        ),
        false => format!("of the time in user mode {}", named.join(", ")),
    })
}

/// A share of samples: more digits than two would be chance.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// How often it called the kernel for each piece of its work.
fn system_calls(seen: &Seen<'_>) -> Option<String> {
    let by_perf = seen.main.and_then(|(trial, profile)| {
        let calls = total_calls(profile)?;
        Some(each(calls, "system calls", &Work::of(trial, profile)?))
    });
    by_perf.or_else(|| {
        let (trial, profile) = seen.strace?;
        let calls = profile
            .syscalls
            .values()
            .copied()
            .fold(0, u64::saturating_add);
        // It counted from before the load until after it.
        let sent = trial.load.as_ref()?.counts.sent;
        let work = Work {
            count: sent as f64,
            measure: REQUESTS.to_owned(),
        };
        (calls > 0 && sent > 0)
            .then(|| format!("{} (by strace)", each(calls, "system calls", &work)))
    })
}

/// `1.90 system calls a request`, `0.31 system calls for each of 20,000 coroutines`.
fn each(number: u64, of_what: &str, work: &Work) -> String {
    let each = per_request(number as f64 / work.count);
    match work.measure.as_str() {
        REQUESTS => format!("{each} {of_what} a request"),
        measure => format!(
            "{each} {of_what} for each of {} {measure}",
            numbers::count(work.count as u64)
        ),
    }
}

/// System calls of all threads, where each was counted.
fn total_calls(profile: &ProfileReport) -> Option<u64> {
    let counted = profile.threads.iter().filter_map(|thread| thread.syscalls);
    (profile.syscalls_by.as_deref() == Some("perf")).then(|| counted.fold(0, u64::saturating_add))
}

/// What was done while it was looked at.
pub(super) struct Work {
    /// How much of it.
    pub(super) count: f64,
    /// What was counted, in the plural.
    measure: String,
}

impl Work {
    /// Of a server the requests of the window, less where the clocks were read late; of a client and a program what they
    /// counted themselves.
    pub(super) fn of(trial: &Trial, profile: &ProfileReport) -> Option<Work> {
        let line = trial.program.as_ref().and_then(|p| p.lines.first());
        let (count, measure) = match (&trial.load, line) {
            (Some(load), _) => {
                let share = profile.length_ns as f64 / load.window_ns as f64;
                (load.completed as f64 * share, REQUESTS.to_owned())
            }
            (None, Some(line)) => (line.count as f64, line.measure.clone()),
            (None, None) => return None,
        };
        let is_any = count.is_finite() && count > 0.0;
        is_any.then_some(Work { count, measure })
    }
}

fn switches(trial: &Trial, profile: &ProfileReport) -> Option<String> {
    let work = Work::of(trial, profile)?;
    let of = |thread: &ProfiledThread| [thread.switches_voluntary, thread.switches_involuntary];
    let switches = profile
        .threads
        .iter()
        .flat_map(of)
        .fold(0, u64::saturating_add);
    Some(each(switches, "context switches", &work))
}

/// Whether a thread did anything worth a word: servers have many that only wait for the day that they are needed.
fn is_busy(thread: &ProfiledThread, profile: &ProfileReport) -> bool {
    thread.cpu_ns as f64 >= SHARE_MIN * profile.length_ns as f64
}

/// A number of something a request: two digits after the point are what such a short look is good for.
pub(super) fn per_request(number: f64) -> String {
    match number {
        0.0 => "0".to_owned(),
        small if small < 0.01 => "< 0.01".to_owned(),
        small if small < 10.0 => format!("{small:.2}"),
        large => format!("{large:.0}"),
    }
}

/// The thread that had the most CPU time.
fn busiest(profile: &ProfileReport) -> Option<String> {
    let most = profile.threads.iter().max_by_key(|thread| thread.cpu_ns)?;
    if profile.length_ns == 0 {
        return None;
    }
    let alike = profile.threads.iter();
    let alike = alike.filter(|one| one.name == most.name && is_busy(one, profile));
    let which = match alike.count() {
        0 | 1 => format!("thread {}", most.name),
        several => format!("the busiest of {several} threads {}", most.name),
    };
    let busy = (most.cpu_ns as f64 / profile.length_ns as f64).min(1.0);
    Some(format!("{which} busy {}", numbers::percent(busy)))
}
