//! The events of one type at one priority: first in, first out, in chunks.
//!
//! A chunk is at most [`LARGE_BYTES`] long, so that millions of waiting events are
//! never moved to make room; an emptied chunk is used again. The numbers of the events lie
//! beside them (`numbers`).
//! Not for: order between types (`levels`) or what happens to an event (`channel`).

use std::collections::VecDeque;

use prony_engine::prefer_huge_pages;

use super::numbers::Numbers;
use super::stats::Counts;
use super::types::Outcome;

/// Memory of the chunk that a queue begins with, when it has grown.
const SMALL_BYTES: usize = 64 << 10;
/// Memory of the largest chunk. Only what is used of it becomes resident.
const LARGE_BYTES: usize = 16 << 20;
/// From here on a chunk consists of huge pages where that is allowed: the page
/// faults of small ones take longer than pushing what they hold.
const HUGE_BYTES: usize = 4 << 20;
/// Left out of a chunk for the allocator's own use, so that it maps a multiple of
/// 2 MiB, which the kernel then aligns.
const PAGE_BYTES: usize = 4096;
/// Records in a chunk from which on it is moved to be emptied; fewer are taken from
/// where they were put, which costs less than to move it to and fro.
const SWAP_FROM: usize = 32;
/// Emptied chunks that one type keeps for later: the largest.
const SPARES_MAX: usize = 1;

/// Records in a row of memory.
pub(super) type Chunk<T> = VecDeque<T>;

/// Chunks that were emptied.
pub(super) struct Spares<T>(Vec<Chunk<T>>);

impl<T> Default for Spares<T> {
    fn default() -> Spares<T> {
        Spares(Vec::new())
    }
}

impl<T> Spares<T> {
    /// An empty chunk, four times as large as the one before it.
    fn take(&mut self, before: usize) -> Chunk<T> {
        if let Some(chunk) = self.0.pop() {
            return chunk;
        }
        let bytes = before.saturating_mul(size_of::<T>() * 4);
        let bytes = bytes.clamp(SMALL_BYTES, LARGE_BYTES).next_power_of_two();
        let mut memory = Vec::with_capacity(chunk_len::<T>(bytes));
        if bytes >= HUGE_BYTES {
            prefer_huge_pages(memory.spare_capacity_mut());
        }
        Chunk::from(memory)
    }

    fn keep(&mut self, chunk: Chunk<T>) {
        let is_large = chunk.capacity() >= chunk_len::<T>(LARGE_BYTES);
        if self.0.len() < SPARES_MAX && is_large {
            self.0.push(chunk);
        }
    }
}

/// Records in a chunk of so many bytes; of large ones at least eight. Those without a size
/// need no second chunk.
const fn chunk_len<T>(bytes: usize) -> usize {
    match size_of::<T>() {
        0 => usize::MAX,
        size => {
            let len = (bytes - PAGE_BYTES) / size;
            if len < 8 { 8 } else { len }
        }
    }
}

/// A queue of records in chunks.
pub(super) struct Rows<T> {
    /// The oldest are taken from here, until it is empty.
    head: Chunk<T>,
    /// Full chunks between the two.
    middle: VecDeque<Chunk<T>>,
    /// The youngest are put here. It grows from nothing, so that a queue with few
    /// records is small.
    tail: Chunk<T>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows {
            head: Chunk::new(),
            middle: VecDeque::new(),
            tail: Chunk::new(),
        }
    }
}

impl<T> Rows<T> {
    /// Records in the chunk that a queue begins with, when it has grown.
    const SMALL: usize = chunk_len::<T>(SMALL_BYTES);

    /// Adds the youngest.
    #[inline]
    pub fn push(&mut self, record: T, spares: &mut Spares<T>) {
        if self.tail.len() == self.tail.capacity() {
            self.make_room(spares);
        }
        self.tail.push_back(record);
    }

    #[cold]
    fn make_room(&mut self, spares: &mut Spares<T>) {
        let len = self.tail.len();
        if len < Self::SMALL {
            self.tail.reserve_exact(len.clamp(4, Self::SMALL - len));
        } else {
            let next = spares.take(self.tail.capacity());
            let full = std::mem::replace(&mut self.tail, next);
            self.middle.push_back(full);
        }
    }

    /// Takes the oldest.
    #[inline(always)]
    pub fn pop(&mut self, spares: &mut Spares<T>) -> Option<T> {
        match self.head.pop_front() {
            Some(record) => Some(record),
            None if self.middle.is_empty() && self.tail.len() < SWAP_FROM => self.tail.pop_front(),
            None => self.pop_next_chunk(spares),
        }
    }

    #[inline(never)]
    fn pop_next_chunk(&mut self, spares: &mut Spares<T>) -> Option<T> {
        match self.middle.pop_front() {
            Some(next) => spares.keep(std::mem::replace(&mut self.head, next)),
            None => std::mem::swap(&mut self.head, &mut self.tail),
        }
        self.head.pop_front()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        let middle: usize = self.middle.iter().map(Chunk::len).sum();
        self.head.len() + middle + self.tail.len()
    }
}

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
        std::mem::take(&mut self.events.tail)
    }

    /// Takes the chunk back, with so many events more, whose numbers follow each other.
    pub fn close(&mut self, chunk: Chunk<E>, first_id: u64, added: u64) {
        self.events.tail = chunk;
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

    /// What became of a watched event.
    pub fn note_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Handled => {}
            Outcome::Unhandled => self.counts.unhandled += 1,
            Outcome::Withheld => {
                self.counts.dispatched -= 1;
                self.counts.withheld += 1;
            }
            Outcome::Dropped => self.counts.dropped += 1,
        }
    }

    /// Looks at the length, which has only grown since the last look or taking.
    #[inline]
    pub fn note_length(&mut self) {
        self.counts.waiting_peak = self.counts.waiting_peak.max(self.len);
    }

    /// What happened here.
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
        assert!(lane.events.middle.len() > 3);
        for id in 0..7_000 {
            let (number, event) = lane.pop(&mut spares).expect("as many as were pushed");
            assert_eq!((number, event[1023]), (id, id));
        }
        assert!(lane.pop(&mut spares).is_none());
        assert_eq!(spares.0.len(), SPARES_MAX, "an emptied chunk is kept");
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
