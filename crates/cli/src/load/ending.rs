//! How `prony load` ends: whether its figures answer what was asked.

use prony_findings::measure;
use prony_load::{LoadReport, LoadResult};

use super::agents;
use crate::Ending;

/// How a run ends. Invalid: an agent did not do its part, nothing was answered, not all requests that were asked for were sent, or the
/// server or the generator did not keep up with the rate. Failed: answers came, and some requests have no right one, unless
/// that is allowed.
pub fn ending(outcome: &LoadResult, allow_failures: bool) -> Ending {
    let report = &outcome.report;
    let short = report
        .arrivals
        .is_some_and(|arrivals| arrivals.generator_short || arrivals.overloaded);
    if outcome.interrupted {
        Ending::Interrupted
    } else if agents::has_failed(&report.agents)
        || answered(report) + wrong(report) == 0
        || report.unsent > 0
        || short
    {
        Ending::Invalid
    } else if failed(report) > 0 && !allow_failures {
        Ending::Failed
    } else {
        Ending::Done
    }
}

/// Answers of the whole run, in the window and after it.
fn answered(report: &LoadReport) -> u64 {
    report.counts.completed + report.counts.drained
}

/// Answers of the window that came and were not the expected ones.
fn wrong(report: &LoadReport) -> u64 {
    report.counts.failed.wrong_answer + report.counts.failed.check
}

/// Requests of the whole run that have no right answer, among them those that were to start and never did.
fn failed(report: &LoadReport) -> u64 {
    let counts = &report.counts;
    let answered = counts.warmup_completed + answered(report);
    // Statuses of the window are among both.
    let elsewhere = answered.saturating_sub(counts.acknowledged + counts.unexpected_status);
    let never = report
        .arrivals
        .map_or(0, |arrivals| arrivals.waiting + arrivals.dropped);
    measure::errors(report) + counts.warmup_failed + elsewhere + never
}

#[cfg(test)]
mod tests {
    use prony_record::{Arrivals, Counts, Failures, Histogram};

    use super::*;

    fn ended(change: impl FnOnce(&mut LoadResult)) -> Ending {
        let counts = Counts {
            sent: 1_000,
            completed: 990,
            acknowledged: 1_000,
            in_flight: 10,
            drained: 10,
            ..Counts::default()
        };
        let report = LoadReport {
            completed: 990,
            counts,
            ..LoadReport::default()
        };
        let mut outcome = LoadResult {
            report,
            histogram: Histogram::default(),
            trace: Vec::new(),
            failed_answers: Vec::new(),
            observed: Vec::new(),
            fallback: None,
            interrupted: false,
        };
        change(&mut outcome);
        assert!(matches!(
            (ending(&outcome, false), ending(&outcome, true)),
            (Ending::Failed, Ending::Done)
                | (Ending::Done, Ending::Done)
                | (Ending::Invalid, Ending::Invalid)
                | (Ending::Interrupted, Ending::Interrupted)
        ));
        ending(&outcome, false)
    }

    #[test]
    fn all_answered_is_done() {
        assert_eq!(ended(|_| ()), Ending::Done);
        assert_eq!(ended(|o| o.interrupted = true), Ending::Interrupted);
    }

    #[test]
    fn a_run_of_nothing_but_500s_was_done() {
        let only = |o: &mut LoadResult| {
            o.report.counts.unexpected_status = 990;
            o.report.counts.acknowledged = 0;
        };
        assert_eq!(ended(only), Ending::Failed);
    }

    #[test]
    fn a_run_of_nothing_but_failed_checks_was_done() {
        let only = |o: &mut LoadResult| {
            o.report.counts = Counts {
                sent: 10,
                ..Counts::default()
            };
            o.report.counts.failed.check = 10;
        };
        assert_eq!(ended(only), Ending::Failed);
    }

    #[test]
    fn whatever_failed_is_not_done() {
        let counts: [fn(&mut Counts); 7] = [
            |c| c.failed.timeout = 1,
            |c| c.connect_failed.refused = 1,
            |c| c.unexpected_status = 1,
            |c| c.abandoned = 1,
            |c| c.drain_failed = 1,
            |c| c.warmup_failed = 1,
            // A wrong status in the drain.
            |c| c.acknowledged = 999,
        ];
        for (at, change) in counts.into_iter().enumerate() {
            assert_eq!(
                ended(|o| change(&mut o.report.counts)),
                Ending::Failed,
                "{at}"
            );
        }
        let dropped = Arrivals {
            dropped: 1,
            ..Arrivals::default()
        };
        assert_eq!(ended(|o| o.report.arrivals = Some(dropped)), Ending::Failed);
        let waiting = Arrivals {
            waiting: 1,
            ..Arrivals::default()
        };
        assert_eq!(ended(|o| o.report.arrivals = Some(waiting)), Ending::Failed);
    }

    #[test]
    fn a_server_that_is_overloaded_is_no_result_though_it_answers_all() {
        let overloaded = Arrivals {
            overloaded: true,
            waiting_max: 9,
            ..Arrivals::default()
        };
        assert_eq!(
            ended(|o| o.report.arrivals = Some(overloaded)),
            Ending::Invalid
        );
    }

    #[test]
    fn what_was_not_measured_is_invalid() {
        let nothing = |o: &mut LoadResult| {
            o.report.counts = Counts {
                failed: Failures {
                    timeout: 9,
                    ..Failures::default()
                },
                ..Counts::default()
            };
        };
        assert_eq!(ended(nothing), Ending::Invalid);
        assert_eq!(ended(|o| o.report.unsent = 1), Ending::Invalid);
        let short = Arrivals {
            generator_short: true,
            ..Arrivals::default()
        };
        assert_eq!(ended(|o| o.report.arrivals = Some(short)), Ending::Invalid);
    }
}
