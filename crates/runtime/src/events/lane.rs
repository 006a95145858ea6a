//! The events of one type at one priority: first in, first out. The events lie in chunks
//! (`rows`), and their numbers beside them (`numbers`).
//! Not for: order between types (`levels`) or what happens to an event (`channel`).

use super::numbers::Numbers;
use super::rows::{Chunk, Rows, Spares};
use super::stats::Counts;
use super::types::Disposition;

/// A queue of one type's events at one priority.
pub(super) struct Lane<E> {
    events: Rows<E>,
    /// As many as there are events.
    numbers: Numbers,
    len: u64,
    /// All but `pushed` and `waiting`, which follow from the others and the length.
    counts: Counts,
}

impl<E> Lane<E> {
    pub fn new() -> Lane<E> {
        Lane {
            events: Rows::default(),
            numbers: Numbers::default(),
            len: 0,
            counts: Counts::default(),
        }
    }

    /// Adds the youngest, with its number.
    #[inline]
    pub fn push(&mut self, id: u64, event: E, spares: &mut Spares<E>) {
        self.events.push(event, spares);
        self.numbers.push(id);
        self.len += 1;
    }

    /// Lends the chunk to which events are added; [`close`](Lane::close) must follow
    /// before anything else.
    pub fn open(&mut self) -> Chunk<E> {
        self.events.take_tail()
    }

    /// Takes the chunk back, with so many events more, whose numbers follow each other.
    pub fn close(&mut self, chunk: Chunk<E>, first_id: u64, added: u64) {
        self.events.put_tail(chunk);
        self.numbers.extend(first_id, added);
        self.len += added;
    }

    /// Takes the oldest, with its number.
    #[inline(always)]
    pub fn pop(&mut self, spares: &mut Spares<E>) -> Option<(u64, E)> {
        let event = self.events.pop(spares)?;
        self.len -= 1;
        Some((self.numbers.pop(), event))
    }

    /// An event was taken to be dispatched.
    #[inline]
    pub fn note_dispatched(&mut self, is_watched: bool) {
        self.counts.dispatched += 1;
        self.counts.unhandled += u64::from(!is_watched);
    }

    /// The only event was taken to be dispatched, which never was in here.
    #[inline(always)]
    pub fn note_alone(&mut self, is_watched: bool) {
        self.counts.waiting_peak = self.counts.waiting_peak.max(1);
        self.note_dispatched(is_watched);
    }

    /// Counts the disposition of a watched event.
    pub fn note_outcome(&mut self, outcome: Disposition) {
        match outcome {
            Disposition::Handled => {}
            Disposition::Unhandled => self.counts.unhandled += 1,
            Disposition::Withheld => {
                self.counts.dispatched -= 1;
                self.counts.withheld += 1;
            }
            Disposition::Dropped => self.counts.dropped += 1,
        }
    }

    /// Looks at the length, which has only grown since the last look or taking.
    #[inline]
    pub fn note_length(&mut self) {
        self.counts.waiting_peak = self.counts.waiting_peak.max(self.len);
    }

    /// The counters of the lane.
    pub fn counts(&self) -> Counts {
        let gone = self.counts.dispatched + self.counts.withheld + self.counts.dropped;
        Counts {
            pushed: gone + self.len,
            waiting: self.len,
            waiting_peak: self.counts.waiting_peak.max(self.len),
            ..self.counts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::SPARES_MAX;
    use super::*;

    /// Of this size only eight fill the first chunk.
    type Large = [u64; 1024];

    fn ids<E>(lane: &mut Lane<E>, spares: &mut Spares<E>) -> Vec<u64> {
        std::iter::from_fn(|| lane.pop(spares))
            .map(|(id, _)| id)
            .collect()
    }

    #[test]
    fn events_leave_in_the_order_in_which_they_came_across_chunks() {
        let (mut lane, mut spares) = (Lane::<Large>::new(), Spares::default());
        for id in 0..7_000 {
            lane.push(id, [id; 1024], &mut spares);
        }
        assert!(lane.events.full_chunks() > 3);
        for id in 0..7_000 {
            let (number, event) = lane.pop(&mut spares).expect("as many as were pushed");
            assert_eq!((number, event[1023]), (id, id));
        }
        assert!(lane.pop(&mut spares).is_none());
        assert_eq!(spares.len(), SPARES_MAX, "an emptied chunk is kept");
    }

    #[test]
    fn events_added_to_a_lent_chunk_are_counted_when_it_is_back() {
        let (mut lane, mut spares) = (Lane::<Large>::new(), Spares::default());
        lane.push(1, [1; 1024], &mut spares);
        let mut chunk = lane.open();
        chunk.push_back([2; 1024]);
        lane.close(chunk, 2, 1);
        assert_eq!(lane.counts().waiting, 2);
        assert_eq!(ids(&mut lane, &mut spares), [1, 2]);
        assert_eq!(lane.counts().waiting, 0);
    }

    #[test]
    fn events_without_a_size_keep_their_numbers() {
        let (mut lane, mut spares) = (Lane::new(), Spares::default());
        for id in [1, 2, 3, 7, 20] {
            lane.push(id, (), &mut spares);
        }
        let mut chunk = lane.open();
        chunk.extend([(); 100]);
        lane.close(chunk, 30, 100);
        let expected: Vec<u64> = [1, 2, 3, 7, 20].into_iter().chain(30..130).collect();
        assert_eq!(ids(&mut lane, &mut spares), expected);
        assert!(lane.pop(&mut spares).is_none());
    }
}
