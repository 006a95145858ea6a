//! The times of a request, what its latency counts from, and what of them the generator added.

use prony_base::{Instant, Nanos};
use prony_engine::{Arrival, Bracket};
use prony_record::LatencyOrigin;

/// The five times of a request that was answered, and what goes with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// When the schedule wanted it to start. In a closed loop, when its slot was ready for it.
    pub intended: Instant,
    /// When the generator took it up, which is later than intended where it was busy with something else.
    pub taken_up: Instant,
    /// When its slot was ready for it: the request before it had been dealt with.
    pub ready: Instant,
    /// When it was handed to the kernel.
    pub submitted: Bracket,
    /// When the first byte of its answer was taken from the kernel, or arrived, where the kernel says so.
    pub first_byte: Instant,
    /// When the last byte came.
    pub last_byte: Arrival,
    /// When the generator had dealt with it.
    pub processed: Instant,
}

impl Times {
    /// What its latency counts from.
    pub fn origin(&self, from: LatencyOrigin) -> Instant {
        match from {
            LatencyOrigin::Intended => self.intended,
            LatencyOrigin::Submitted => self.submitted.from,
        }
    }

    /// When its last byte was there: by the kernel's stamp, or when it was taken from the kernel.
    pub fn done(&self) -> Instant {
        arrived(&self.last_byte)
    }

    /// Last byte − origin.
    pub fn latency(&self, from: LatencyOrigin) -> Nanos {
        self.done().since(self.origin(from))
    }

    /// How long it waited for a slot: the server's doing. Zero where one was idle.
    pub fn slot_wait(&self) -> Nanos {
        self.ready.since(self.taken_up)
    }

    /// How much later than due it was taken up, and how much later than that, or than its slot was ready, it was
    /// handed to the kernel.
    pub fn lateness(&self) -> Nanos {
        let handed_over = self.submitted.from.since(self.ready.max(self.taken_up));
        self.taken_up.since(self.intended) + handed_over
    }

    /// How long its last byte lay in the kernel: exactly, or at most; `None` where the thread slept meanwhile.
    pub fn pick_up(&self) -> Option<Nanos> {
        let Arrival {
            reaped,
            since,
            slept,
            kernel,
        } = self.last_byte;
        match kernel {
            Some(stamp) => Some(reaped.since(stamp)),
            None if slept => None,
            None => Some(reaped.since(since)),
        }
    }

    /// How long the generator took to deal with the answer.
    pub fn handling(&self) -> Nanos {
        self.processed.since(self.last_byte.reaped)
    }
}

/// When bytes arrived, as well as it is known.
pub fn arrived(arrival: &Arrival) -> Instant {
    arrival.kernel.unwrap_or(arrival.reaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Due at 100, taken up at once, its slot ready at 150, handed over at 170, answered at 400 and taken at 430, dealt with at 440.
    fn times() -> Times {
        Times {
            intended: Instant(100),
            taken_up: Instant(100),
            ready: Instant(150),
            submitted: Bracket {
                from: Instant(170),
                to: Instant(180),
            },
            first_byte: Instant(390),
            last_byte: Arrival {
                reaped: Instant(430),
                since: Instant(360),
                slept: false,
                kernel: None,
            },
            processed: Instant(440),
        }
    }

    #[test]
    fn latency_counts_from_what_is_asked_for() {
        let times = times();
        assert_eq!(times.latency(LatencyOrigin::Intended), Nanos(330));
        assert_eq!(times.latency(LatencyOrigin::Submitted), Nanos(260));
    }

    #[test]
    fn what_the_generator_adds_is_apart_from_what_the_server_does() {
        let times = times();
        assert_eq!(
            (times.slot_wait(), times.lateness()),
            (Nanos(50), Nanos(20))
        );
        assert_eq!(
            (times.pick_up(), times.handling()),
            (Some(Nanos(70)), Nanos(10))
        );
        let at_once = Times {
            ready: Instant(20),
            ..times
        };
        assert_eq!(
            (at_once.slot_wait(), at_once.lateness()),
            (Nanos(0), Nanos(70))
        );
    }

    #[test]
    fn what_the_generator_took_up_late_is_late_although_a_slot_was_waited_for_then() {
        let late = Times {
            taken_up: Instant(130),
            ..times()
        };
        assert_eq!((late.slot_wait(), late.lateness()), (Nanos(20), Nanos(50)));
    }

    #[test]
    fn the_kernels_stamp_takes_the_pick_up_out_of_the_latency() {
        let mut times = times();
        times.last_byte.kernel = Some(Instant(400));
        times.last_byte.slept = true;
        assert_eq!(times.pick_up(), Some(Nanos(30)));
        assert_eq!(times.latency(LatencyOrigin::Submitted), Nanos(230));
        times.last_byte.kernel = None;
        assert_eq!(times.pick_up(), None);
    }

    proptest! {
        #[test]
        fn the_parts_add_up_to_the_whole(steps in prop::array::uniform7(0_u64..1_000_000)) {
            let mut at = 0;
            let [intended, taken_up, ready, submitted, stamp, reaped, processed] = steps.map(|step| {
                at += step;
                Instant(at)
            });
            let times = Times {
                intended,
                taken_up,
                ready,
                submitted: Bracket { from: submitted, to: submitted },
                first_byte: stamp,
                last_byte: Arrival { reaped, since: submitted, slept: true, kernel: Some(stamp) },
                processed,
            };
            let server = times.latency(LatencyOrigin::Submitted);
            let whole = times.slot_wait() + times.lateness() + server + times.pick_up().unwrap() + times.handling();
            prop_assert_eq!(whole, processed.since(intended));
            prop_assert_eq!(times.slot_wait() + times.lateness() + server, times.latency(LatencyOrigin::Intended));
        }
    }
}
