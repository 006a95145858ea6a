//! P029: did the subject keep up with a schedule?

use super::seen::{Seen, worst};
use crate::code::Code;
use crate::finding::{Evidence, Finding, Unit};
use crate::measure;
use crate::records::Case;

const OVERLOADED: (&str, &str) = (
    "Fewer requests were completed than scheduled, while all connections were busy: the subject does not keep up with \
     this rate over this many connections. Latency grows for as long as that lasts, so it only reflects the length \
     of the run; none is given.",
    "Read what it completed as its capacity; measure its latency at a rate below that. Where connections, not the \
     subject, are the limit (rate × latency exceeds their number), use more of them.",
);

const CROWDED: (&str, &str) = (
    "Fewer users could begin than arrived, while a user was on each connection: they take too long, or there are too few connections. The \
     latency of their first steps grows for as long as that lasts, so it only reflects the length of the run; none is given.",
    "Use more connections than users are there at once (users a second × the time of an iteration), or let fewer arrive.",
);

/// P029: completed in the window less than was drawn in it, by more than 1 %, with arrivals waiting for slots; of users: fewer began.
/// A note: it is a fact about the subject.
pub(super) fn overloaded(case: &Case<'_>) -> Vec<Finding> {
    worst(case, Code::P029, case.measured(), |trial| {
        let load = trial.load.as_ref()?;
        let arrivals = load.arrivals.filter(|arrivals| arrivals.overloaded)?;
        let achieved = measure::kept_up(load, &arrivals)?.0;
        let (drawn, words) = (
            measure::drawn(load, &arrivals)?.0,
            measure::kept_up_words(load),
        );
        let evidence = vec![
            Evidence::number(words[0], drawn, Unit::PerSecond),
            Evidence::number(words[1], achieved, Unit::PerSecond),
            Evidence::count("most that waited at once", arrivals.waiting_max),
            Evidence::count(
                "never sent",
                arrivals.waiting.saturating_add(arrivals.dropped),
            ),
        ];
        let missing = 1.0 - achieved / drawn;
        let text = match load.scenario {
            Some(_) => CROWDED,
            None => OVERLOADED,
        };
        Some(Seen::note(missing, text, evidence))
    })
}
