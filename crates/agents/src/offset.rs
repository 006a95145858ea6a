//! How far the clock of an agent is from the controller's, and how well that is known.
//!
//! The controller asks for the time again and again. Of an answer it knows that it was given between the question and its arrival:
//! the offset is known to half of that round trip, and the shortest is the best (as NTP's clock filter has it: D. Mills, RFC 5905,
//! section 10). Clocks drift apart, so that what is known grows worse as it grows old.

use prony_base::{Instant, Nanos};

/// By how much two clocks drift apart at the most: 1 part of so many. Crystals are within 100 parts per million, of either machine.
const DRIFT_ONE_IN: u64 = 5_000;

/// One answer.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Middle of the round trip, here.
    here: Instant,
    /// The time there.
    there: Instant,
    round_trip: Nanos,
}

/// What is known of the clock of one agent.
#[derive(Clone, Debug, Default)]
pub struct Offset {
    best: Option<Sample>,
}

impl Offset {
    /// A question was sent at `asked` and its answer came at `answered`, both here; it was heard at `there`.
    pub fn add(&mut self, asked: Instant, there: Instant, answered: Instant) {
        let round_trip = answered.since(asked);
        let here = asked + Nanos(round_trip.0 / 2);
        let new = Sample {
            here,
            there,
            round_trip,
        };
        if self
            .best
            .is_none_or(|best| within(&new, answered) <= within(&best, answered))
        {
            self.best = Some(new);
        }
    }

    /// The moment `here` on the agent's clock; `None` where nothing is known.
    pub fn there(&self, here: Instant) -> Option<Instant> {
        self.best.map(|best| here.rebased(best.here, best.there))
    }

    /// The moment `there`, of the agent's clock, on this one.
    pub fn here(&self, there: Instant) -> Option<Instant> {
        self.best.map(|best| there.rebased(best.there, best.here))
    }

    /// By how much either may be wrong at `now`.
    pub fn within(&self, now: Instant) -> Nanos {
        self.best.map_or(Nanos::MAX, |best| within(&best, now))
    }

    /// The shortest round trip.
    pub fn round_trip(&self) -> Nanos {
        self.best.map_or(Nanos::MAX, |best| best.round_trip)
    }
}

fn within(sample: &Sample, now: Instant) -> Nanos {
    let age = now.since(sample.here).0.max(sample.here.since(now).0);
    Nanos(sample.round_trip.0.div_ceil(2)) + Nanos(age / DRIFT_ONE_IN)
}

#[cfg(test)]
mod tests {
    use prony_base::Random;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Clocks up to an hour apart that drift by 100 parts per million, round trips of any length and shape.
        #[test]
        fn the_offset_is_within_what_is_stated(seed: u64, apart in 0_u64..7_200, ppm in 0_u64..200) {
            let mut random = Random::of(seed, "network");
            // The agent's clock, at a moment here.
            let there = |here: Instant| {
                let drift = here.0 / 1_000_000 * ppm;
                Instant(here.0 + apart * 1_000_000_000 + drift)
                    .rebased(Instant(3_600_000_000_000 + 100 * (here.0 / 1_000_000)), Instant(0))
            };
            let mut offset = Offset::default();
            let mut now = Instant(4_000_000_000_000);
            for _ in 0..random.below(60) + 1 {
                let (go, back) = (random.below(3_000_000), random.below(3_000_000));
                let heard = now + Nanos(go);
                offset.add(now, there(heard), heard + Nanos(back));
                now = heard + Nanos(back) + Nanos(random.below(1_000_000_000));
            }
            let told = offset.there(now).unwrap();
            let wrong = told.since(there(now)).0.max(there(now).since(told).0);
            prop_assert!(wrong <= offset.within(now).0 + 2, "{} > {}", wrong, offset.within(now));
            let back = offset.here(told).unwrap();
            prop_assert_eq!(back, now);
        }
    }

    #[test]
    fn the_shortest_round_trip_is_kept_until_it_is_old() {
        let mut offset = Offset::default();
        assert_eq!(
            (offset.there(Instant(5)), offset.within(Instant(5))),
            (None, Nanos::MAX)
        );
        offset.add(Instant(1_000), Instant(51_100), Instant(1_200));
        offset.add(Instant(2_000), Instant(60_000), Instant(9_000));
        assert_eq!(offset.there(Instant(1_100)), Some(Instant(51_100)));
        assert_eq!(offset.round_trip(), Nanos(200));
        let later = Instant(3_600_000_000_000);
        offset.add(later, Instant(later.0 + 50_000), Instant(later.0 + 4_000));
        assert_eq!(offset.round_trip(), Nanos(4_000));
    }
}
