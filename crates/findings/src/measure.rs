//! Figures of one trial that both rules and documents need, each defined once.
//! `None` where the record does not have what a figure needs.

use prony_base::Nanos;
use prony_record::{
    Arrivals, Cores, LatencyNs, LatencyOrigin, LoadReport, Pace, ProcessRecord, ProgramLine,
    ProgramReport, Role, Timestamps, Trial,
};
use prony_stats::{Bytes, Rate, Share, Time};

use crate::limits;

/// Time over which the samplers looked: the window, where they did not say, or a program's
/// whole run.
pub fn sampled(trial: &Trial) -> Option<Nanos> {
    let run = trial.program.as_ref().map_or(0, |program| program.wall_ns);
    let lengths = [trial.sampled_ns, trial.window_ns, run];
    let length = lengths.into_iter().find(|&ns| ns > 0).unwrap_or(0);
    (length > 0).then_some(Nanos(length))
}

/// The processes of a role.
pub fn processes(trial: &Trial, role: Role) -> impl Iterator<Item = &ProcessRecord> {
    trial.processes.iter().filter(move |p| p.role == role)
}

/// CPU time of all processes of a role in the window.
pub fn cpu(trial: &Trial, role: Role) -> Option<Nanos> {
    let times = processes(trial, role).map(|p| Nanos(p.cpu_ns));
    times.reduce(|sum, time| sum + time)
}

/// `time` as a part of the time over which the samplers looked; 1 is one core's worth.
pub fn share_of_window(trial: &Trial, time: Nanos) -> Option<Share> {
    Some(Share(time.0 as f64 / sampled(trial)?.0 as f64))
}

/// Busy time of the busiest core of a role, all that ran on it included. `None` of a window of a few ticks, in which the kernel
/// counts it.
pub fn busiest_core(trial: &Trial, role: Role) -> Option<Share> {
    if sampled(trial)? < limits::CORE_TIMES_FROM {
        return None;
    }
    let cores = trial.cores.iter().filter(|core| core.role == Some(role));
    let busiest = cores.map(|core| core.busy_ns).max()?;
    share_of_window(trial, Nanos(busiest))
}

/// How busy the busiest core of the subject was, or the busiest thread of it and of the services
/// around it: one full thread limits a server with more. What else runs on its cores is in it.
pub fn subject_busy(trial: &Trial) -> Option<Share> {
    let around = [Role::Subject, Role::Front, Role::Backing];
    let own = trial.processes.iter().filter(|p| around.contains(&p.role));
    let threads = own.flat_map(|p| &p.threads);
    let busiest = threads.map(|thread| Nanos(thread.cpu_ns)).max();
    let thread = busiest.and_then(|time| share_of_window(trial, time));
    larger(busiest_core(trial, Role::Subject), thread)
}

/// How busy the generator's busiest thread was, or its busiest core where its own threads used
/// half of the window: what else keeps that core busy says nothing about the generator. Looking for answers before
/// sleeping is no work.
pub fn generator_busy(trial: &Trial, load: &LoadReport) -> Option<Share> {
    let of_window =
        |ns: u64| (load.window_ns > 0).then(|| Share(ns as f64 / load.window_ns as f64));
    let threads = || load.threads_cpu.iter();
    let busiest = threads().map(|t| t.cpu_ns.saturating_sub(t.spun_ns)).max();
    let own = of_window(worked_ns(load));
    let own = own.is_some_and(|share| share.0 >= limits::SATURATED_OWN_SHARE);
    let looked = match &load.threads_cpu[..] {
        [only] => of_window(only.spun_ns),
        // Which of several ran on the core is not known: then their own clocks have to do.
        several => several.iter().all(|t| t.spun_ns == 0).then_some(Share(0.0)),
    };
    let core = busiest_core(trial, Role::Generator).zip(looked);
    let core = core.map(|(core, looked)| Share((core.0 - looked.0).max(0.0)));
    larger(core.filter(|_| own), busiest.and_then(of_window))
}

/// How often the processes of a role slept for each completed request: their voluntary context switches.
pub fn sleeps_a_request(trial: &Trial, load: &LoadReport, role: Role) -> Option<f64> {
    let processes = trial
        .processes
        .iter()
        .filter(|process| process.role == role);
    let sleeps: f64 = processes
        .map(|process| process.switches_voluntary as f64)
        .sum();
    (load.completed > 0).then(|| sleeps / load.completed as f64)
}

fn larger(one: Option<Share>, other: Option<Share>) -> Option<Share> {
    let shares = [one, other].into_iter().flatten().map(|share| share.0);
    shares.reduce(f64::max).map(Share)
}

/// Mean times of a request in a run of the generator, by what took them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Added {
    /// Latency as it is shown.
    pub latency: Time,
    /// Latency from being handed to the kernel: without lateness and the wait for a slot.
    pub from_submitted: Time,
    /// Longest time from the arrival of an answer to its being taken.
    pub pick_up: Time,
    /// Whether the latency ends when the answer arrived, so that pick-up is no part of it.
    is_by_kernel: bool,
    /// Part of the shown latency that is lateness.
    late_in_latency: Time,
    /// Part of the median latency that is the generator's, at most, by medians.
    usual: Share,
    /// Due, or a slot idle, to handed to the kernel.
    pub lateness: Time,
    /// Taken to recorded.
    pub handling: Time,
}

impl Added {
    /// Part of the shown latency that is lateness.
    pub fn late_share(&self) -> Share {
        fraction(self.late_in_latency.0, self.latency.0)
    }

    /// Part of the shown latency that is the generator's, at most: by the means and by the medians, whichever is less,
    /// so that neither some stalls nor a usual moment alone make it large.
    pub fn of_latency(&self) -> Share {
        let pick_up = if self.is_by_kernel {
            0.0
        } else {
            self.pick_up.0
        };
        let by_means = fraction(pick_up + self.late_in_latency.0, self.latency.0);
        Share(by_means.0.min(self.usual.0))
    }

    /// From the end of a latency to the next request's being handed over.
    fn between(&self) -> f64 {
        let pick_up = if self.is_by_kernel {
            self.pick_up.0
        } else {
            0.0
        };
        pick_up + self.handling.0 + self.lateness.0
    }

    /// Part of a connection's time, from request to request of a closed loop, for which it stood still in the
    /// generator; `None` in an open loop, and with think time, which users may have between their steps.
    pub fn of_time(&self, load: &LoadReport) -> Option<Share> {
        let all = self.between() + self.from_submitted.0;
        let closed = load.pace == Pace::Closed { think_ns: 0 } && load.scenario.is_none();
        (closed && all > 0.0).then(|| Share(self.between() / all))
    }

    /// Time of a slot from an answer to the next request: in an open loop none, as it waits for the schedule.
    pub fn held(&self, load: &LoadReport) -> Time {
        match load.pace {
            Pace::Closed { think_ns } => Time(self.between() + think_ns as f64),
            _ => Time(0.0),
        }
    }
}

/// Requests that could be outstanding at the same time: on each connection one, its pipeline, or the streams that it was
/// allowed.
pub fn places(load: &LoadReport) -> f64 {
    let streams = load.http2.and_then(|http2| http2.streams_max);
    let each = u64::from(load.depth.max(1)).min(streams.unwrap_or(u64::MAX));
    f64::from(load.connections) * each as f64
}

/// Part of the connections' time in which they were being opened, where each carried a limited number of requests: as
/// many in the window as its part of all requests. `None` where connections were kept.
pub fn opening(load: &LoadReport) -> Option<f64> {
    let connections = u64::from(load.connections);
    let all = (load.counts.warmup_completed).saturating_add(load.counts.completed);
    if load.connections_opened <= 2 * connections || all == 0 {
        return None;
    }
    let shaking = load.tls.as_ref().map_or(0.0, |tls| tls.handshake_ns.mean);
    let opened = load.connections_opened as f64 * load.counts.completed as f64 / all as f64;
    let time = opened * (load.connect_ns.mean + shaking);
    Some(time / (load.window_ns as f64 * connections as f64))
}

fn fraction(part: f64, whole: f64) -> Share {
    Share(if whole > 0.0 { part / whole } else { 0.0 })
}

/// What the generator added to the requests of a run; `None` where it did not say, or nothing was answered.
pub fn added(load: &LoadReport) -> Option<Added> {
    let delay = load.delay?;
    let finite = |of: &LatencyNs| of.count.saturating_sub(of.infinite) as f64;
    let answered = finite(&load.latency_ns);
    if answered == 0.0 || !load.latency_ns.mean.is_finite() {
        return None;
    }
    // Over all answered requests, of which not each has a value of each kind.
    let each = |of: &LatencyNs| Time((of.mean * finite(of) / answered).max(0.0));
    let own = |of: &LatencyNs| match finite(of) {
        0.0 => Time(0.0),
        _ => Time(of.mean),
    };
    let intended =
        load.latency_from == LatencyOrigin::Intended && load.pace != Pace::Closed { think_ns: 0 };
    let (lateness, latency) = (own(&delay.lateness_ns), load.latency_ns.mean);
    let before = match intended {
        true => lateness.0 + each(&delay.slot_wait_ns).0,
        false => 0.0,
    };
    let median = |of: &LatencyNs| match finite(of) * 2.0 >= answered {
        true => of.p50 as f64,
        // The usual request has none of it.
        false => 0.0,
    };
    let is_by_kernel = load.timestamps == Timestamps::Kernel;
    let late = if intended {
        median(&delay.lateness_ns)
    } else {
        0.0
    };
    let usual = match is_by_kernel {
        true => late,
        false => late + median(&delay.pick_up_ns),
    };
    Some(Added {
        usual: fraction(usual, load.latency_ns.p50 as f64),
        latency: Time(latency),
        from_submitted: Time((latency - before).max(0.0)),
        pick_up: each(&delay.pick_up_ns),
        is_by_kernel,
        late_in_latency: if intended { lateness } else { Time(0.0) },
        lateness,
        handling: own(&delay.handling_ns),
    })
}

/// Completed requests a second of the measured window.
pub fn rate(load: &LoadReport) -> Option<Rate> {
    let seconds = Nanos(load.window_ns).as_secs_f64();
    (load.window_ns > 0).then(|| Rate(load.completed as f64 / seconds))
}

/// Requests a second that a schedule wanted to start in the window.
pub fn drawn(load: &LoadReport, arrivals: &Arrivals) -> Option<Rate> {
    let seconds = Nanos(load.window_ns).as_secs_f64();
    (load.window_ns > 0).then(|| Rate(arrivals.in_window as f64 / seconds))
}

/// The part of a schedule that was kept up with, a second: requests that were completed; of users, whose time is their own, those that
/// could begin.
pub fn kept_up(load: &LoadReport, arrivals: &Arrivals) -> Option<Rate> {
    if load.scenario.is_none() {
        return rate(load);
    }
    let late = [
        arrivals.waiting,
        arrivals.dropped_in_window,
        load.counts.sent_in_drain,
    ];
    let late = late.into_iter().fold(0, u64::saturating_add);
    let begun = arrivals.in_window.saturating_sub(late);
    let seconds = Nanos(load.window_ns).as_secs_f64();
    (load.window_ns > 0).then(|| Rate(begun as f64 / seconds))
}

/// What a schedule draws and what it is kept up with by, in words: of users, or of requests.
pub fn kept_up_words(load: &LoadReport) -> [&'static str; 2] {
    match load.scenario {
        Some(_) => ["users drawn", "users that could begin"],
        None => ["drawn", "completed"],
    }
}

/// CPU time of all processes of a role a completed request.
pub fn cpu_per_request(trial: &Trial, role: Role) -> Option<Time> {
    each_request(trial, cpu(trial, role)?)
}

/// CPU time of the window a completed request.
pub fn each_request(trial: &Trial, time: Nanos) -> Option<Time> {
    let load = trial.load.as_ref()?;
    if load.requests_max.is_some() {
        // All of it was for them: after the last nothing was asked.
        return (load.completed > 0).then(|| Time(time.0 as f64 / load.completed as f64));
    }
    let cores = share_of_window(trial, time)?;
    // The samplers' window may be a little longer than the generator's: cores' worth ÷ rate.
    per_request(cores.0, load)
}

/// CPU time of the generator's threads a completed request, by their own clocks, without that of looking for answers before sleeping.
pub fn generator_cpu_per_request(load: &LoadReport) -> Option<Time> {
    (load.completed > 0).then(|| Time(worked_ns(load) as f64 / load.completed as f64))
}

fn worked_ns(load: &LoadReport) -> u64 {
    load.cpu_ns.saturating_sub(load.spun_ns)
}

fn per_request(cores: f64, load: &LoadReport) -> Option<Time> {
    let rate = rate(load)?.0;
    (rate > 0.0).then(|| Time(cores * 1e9 / rate))
}

/// Peak resident memory in the window of the largest process of a role. Never a sum: processes
/// share pages.
pub fn memory_peak(trial: &Trial, role: Role) -> Option<Bytes> {
    let peaks = processes(trial, role).filter_map(|p| p.memory.peak_bytes);
    peaks.max().map(|bytes| Bytes(bytes as f64))
}

/// Peak virtual memory of the largest process of a role, from its start to the end of the window. Never a sum, either; older
/// records have none.
pub fn virtual_peak(trial: &Trial, role: Role) -> Option<Bytes> {
    let peaks = processes(trial, role).filter_map(|p| p.memory.virtual_peak_bytes);
    peaks.max().map(|bytes| Bytes(bytes as f64))
}

/// Time from the start of the subject's process until its ready sign.
pub fn time_to_ready(trial: &Trial) -> Option<Time> {
    trial.ready_ns.map(|ns| Time(ns as f64))
}

/// Time of the first of the workload's requests after the subject was ready.
pub fn first_answer(trial: &Trial) -> Option<Time> {
    trial.first_answer_ns.map(|ns| Time(ns as f64))
}

/// Time of a request after nothing had been asked for a while.
pub fn after_rest(trial: &Trial) -> Option<Time> {
    trial.after_rest_ns.map(|ns| Time(ns as f64))
}

/// Bytes received a completed request, heads included.
pub fn bytes_per_answer(load: &LoadReport) -> Option<Bytes> {
    (load.completed > 0).then(|| Bytes(load.received_bytes as f64 / load.completed as f64))
}

/// Everything that went wrong on connections that were there, and in connecting: failed in the
/// window, failed or never answered after it, unexpected statuses, failed attempts to connect.
pub fn errors(load: &LoadReport) -> u64 {
    let counts = &load.counts;
    [
        counts.failed.total(),
        counts.unexpected_status,
        counts.drain_failed,
        counts.abandoned,
        counts.connect_failed.total(),
    ]
    .into_iter()
    .fold(0, u64::saturating_add)
}

/// The line of a program that its figures are from: the first that it printed.
pub fn line(program: &ProgramReport) -> Option<&ProgramLine> {
    program.lines.first()
}

/// Time that a program's work took, by its own clock.
pub fn elapsed(program: &ProgramReport) -> Option<Time> {
    let elapsed_ns = line(program)?.elapsed_ns;
    (elapsed_ns > 0).then_some(Time(elapsed_ns as f64))
}

/// The part of its count that a program says it handled, where that is not all of it.
pub fn handled_of(line: &ProgramLine) -> Option<u64> {
    let handled = *line.tallies.get("handled")?;
    (handled < line.count).then_some(handled)
}

/// What a program counted, a second of its own clock, over all threads.
pub fn program_rate(program: &ProgramReport) -> Option<Rate> {
    let count = line(program)?.count as f64;
    let seconds = elapsed(program)?.0 / 1e9;
    (count > 0.0).then_some(Rate(count / seconds))
}

/// CPU time of a program and of the children that it waited for.
pub fn program_cpu(program: &ProgramReport) -> Nanos {
    Nanos(program.user_ns.saturating_add(program.system_ns))
}

/// Cores that a program's threads are pinned to, one each as far as there are: those of both
/// sides, since no generator runs beside it. 0: not pinned.
pub fn program_cores(cores: &Cores) -> usize {
    let mut all: Vec<u32> = [&cores.subject[..], &cores.generator[..]].concat();
    all.sort_unstable();
    all.dedup();
    all.len()
}
