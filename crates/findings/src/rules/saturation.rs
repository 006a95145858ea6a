//! P001 and P005: was it the subject that was measured, and by all connections?

use prony_base::Nanos;
use prony_record::LoadReport;
use prony_stats::{Time, in_flight};

use super::{Seen, clients, limits, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Severity, Unit};
use crate::measure;
use crate::records::Case;

const SATURATED: (&str, &str) = (
    "The generator was at its limit and the subject was not: the subject is at least this fast, \
     and its latency includes waiting for the generator.",
    "Give the generator more cores, or drive the subject with fewer connections; until then read \
     the rate as a lower bound and leave it out of comparisons.",
);

/// P001: a core or thread of the generator was busy for 95 % of the window and no core or
/// thread of the subject was. A core counts only where the generator's own threads used half
/// of the window: what else keeps it busy says nothing about the generator (that is P009's).
pub(super) fn generator_saturated(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P001, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let generator = measure::generator_busy(trial, load)?.0;
        let subject = measure::subject_busy(trial).map(|share| share.0);
        let free = subject.is_none_or(|share| share < limits::SATURATED_SHARE);
        if generator < limits::SATURATED_SHARE || !free {
            return None;
        }
        let mut evidence = vec![Evidence::number(
            "generator's busiest core or thread",
            generator,
            Unit::Share,
        )];
        evidence.push(match subject {
            Some(share) => Evidence::number("subject's busiest core or thread", share, Unit::Share),
            None => Evidence::text("subject's busiest core or thread", "not known"),
        });
        Some(Seen::suspect(generator, SATURATED, evidence))
    })
}

const GAP: (&str, &str) = (
    "Rate × mean latency is the number of connections that had a request in flight (Little's law). \
     It is well below the number asked for, and neither time-outs nor requests cut off by the end of \
     the window explain the gap: rate and latency are those of fewer connections than the table says.",
    "See whether the subject accepts and keeps all connections (findings P002, P003 and P004), and \
     whether it serves some of them only rarely.",
);
const EXCESS: (&str, &str) = (
    "Rate × mean latency gives more requests in flight than there were connections, which cannot be: \
     rate or latency is wrong.",
    "Do not use the figures of this cell, and report it together with its line of trials.jsonl.",
);

/// P005: Little's law gives under 80 % of the connections, after adding what time-outs and the
/// end of the window can explain; or more than all, beyond what the start of the window explains.
pub(super) fn not_in_flight(case: &Case<'_>) -> Vec<Finding> {
    if case.is_client() {
        return clients::not_in_flight(case);
    }
    worst(case, Code::P005, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let timeout = Nanos(case.workload.map_or(0, |workload| workload.timeout_ns));
        let flight = InFlight::of(load, timeout)?;
        let asked = f64::from(load.connections);
        let evidence = || {
            vec![
                Evidence::number("connections asked for", asked, Unit::Count),
                Evidence::number("in flight by Little's law", flight.little, Unit::Count),
                Evidence::number("explained by time-outs", flight.timed_out, Unit::Count),
                Evidence::number(
                    "explained by the edges of the window",
                    flight.edge,
                    Unit::Count,
                ),
                Evidence::count("in flight when the window ended", load.counts.in_flight),
            ]
        };
        if flight.little + flight.timed_out + flight.edge < limits::IN_FLIGHT_SHARE * asked {
            return Some(Seen::suspect(1.0 - flight.little / asked, GAP, evidence()));
        }
        let most = asked * (1.0 + limits::IN_FLIGHT_OVER) + flight.edge;
        let seen = Seen::suspect(flight.little / asked, EXCESS, evidence());
        (flight.little > most).then(|| seen.severity(Severity::Invalid))
    })
}

/// Connections that had a request in flight, and those that the mean latency cannot tell of.
struct InFlight {
    little: f64,
    /// Waiting for answers that came too late to count.
    timed_out: f64,
    /// At the end of the window a request may have waited as long as the slowest one did, and
    /// at its start one may be counted that began as long before.
    edge: f64,
}

impl InFlight {
    fn of(load: &LoadReport, timeout: Nanos) -> Option<InFlight> {
        let rate = measure::rate(load)?;
        if load.completed == 0 || load.connections == 0 || !load.latency_ns.mean.is_finite() {
            return None;
        }
        let window = load.window_ns as f64;
        let connections = f64::from(load.connections);
        let timeouts = load.counts.failed.timeout as f64;
        // Abandoned requests were in flight at the end of the window, for up to all of it.
        let abandoned = load.counts.abandoned as f64 * window.min(timeout.0 as f64);
        let edge = load.counts.drained as f64 * load.latency_ns.max as f64 / window;
        Some(InFlight {
            little: in_flight(rate, Time(load.latency_ns.mean)).0,
            timed_out: ((timeouts * timeout.0 as f64 + abandoned) / window).min(connections),
            edge: edge.min(connections),
        })
    }
}
