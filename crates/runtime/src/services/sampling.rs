//! Which starts and stops are timed, by the type of the service.
//! Not for: reading the clock (`pump`).

/// Which transitions of the services of one type are timed.
#[derive(Clone, Copy, Default)]
pub(super) struct Sampling(u8);

/// Transitions of one type that were quick in a row before only some are timed.
const QUICK_BEFORE_SAMPLING: u8 = 8;
/// Then one in this many is.
const SAMPLED_ONE_IN: u8 = 128;

impl Sampling {
    /// Whether the next transition should be timed. The clock costs as much as
    /// the transitions of a small service, so that of types whose last ones were
    /// quick only one in [`SAMPLED_ONE_IN`] is.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        if self.0 < QUICK_BEFORE_SAMPLING {
            return true;
        }
        self.0 += 1;
        let is_due = self.0 == QUICK_BEFORE_SAMPLING + SAMPLED_ONE_IN;
        if is_due {
            self.0 = QUICK_BEFORE_SAMPLING;
        }
        is_due
    }

    /// Takes note of a timed transition.
    pub fn was_quick(&mut self, quick: bool) {
        let before = self.0;
        self.0 = match quick {
            true => before
                .max(1)
                .saturating_add(u8::from(before < QUICK_BEFORE_SAMPLING)),
            false => 0,
        };
    }
}
