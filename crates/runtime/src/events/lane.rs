//! The events of one type at one priority: first in, first out, in chunks.
//!
//! A chunk is at most [`CHUNK_BYTES`] long, so that millions of waiting events are
//! never moved to make room; an emptied chunk is used again.
//! Not for: order between types (`levels`) or what happens to an event (`channel`).

use std::collections::VecDeque;

use prony_engine::prefer_huge_pages;

use super::stats::Counts;
use super::types::Outcome;

/// Memory of the chunk that a lane begins with, when it has grown.
const SMALL_BYTES: usize = 64 << 10;
/// Memory of the largest chunk. Only what is used of it becomes resident.
const LARGE_BYTES: usize = 16 << 20;
/// From here on a chunk consists of huge pages where that is allowed: the page
/// faults of small ones take longer than pushing what they hold.
const HUGE_BYTES: usize = 4 << 20;
/// Left out of a chunk for the allocator's own use, so that it maps a multiple of
/// 2 MiB, which the kernel then aligns.
const PAGE_BYTES: usize = 4096;
/// Events in a chunk from which on it is moved to be emptied; fewer are taken from
/// where they were put, which costs less than to move it to and fro.
const SWAP_FROM: usize = 32;
/// Emptied chunks that one type keeps for later: the largest.
const SPARES_MAX: usize = 1;

/// One waiting event.
pub(super) struct Item<E> {
    pub id: u64,
    pub event: E,
}

/// Events in a row of memory.
pub(super) type Chunk<E> = VecDeque<Item<E>>;

/// Chunks that were emptied.
pub(super) struct Spares<E>(Vec<Chunk<E>>);

impl<E> Spares<E> {
    pub fn new() -> Spares<E> {
        Spares(Vec::new())
    }

    /// An empty chunk, four times as large as the one before it.
    fn take(&mut self, before: usize) -> Chunk<E> {
        if let Some(chunk) = self.0.pop() {
            return chunk;
        }
        let bytes = before.saturating_mul(size_of::<Item<E>>() * 4);
        let bytes = bytes.clamp(SMALL_BYTES, LARGE_BYTES).next_power_of_two();
        let mut memory = Vec::with_capacity(chunk_len::<E>(bytes));
        if bytes >= HUGE_BYTES {
            prefer_huge_pages(memory.spare_capacity_mut());
        }
        Chunk::from(memory)
    }

    fn keep(&mut self, chunk: Chunk<E>) {
        let is_large = chunk.capacity() >= chunk_len::<E>(LARGE_BYTES);
        if self.0.len() < SPARES_MAX && is_large {
            self.0.push(chunk);
        }
    }
}

/// Events in a chunk of so many bytes; of large events at least eight.
const fn chunk_len<E>(bytes: usize) -> usize {
    let len = (bytes - PAGE_BYTES) / size_of::<Item<E>>();
    if len < 8 { 8 } else { len }
}

/// A queue of one type's events at one priority.
pub(super) struct Lane<E> {
    /// The oldest events are taken from here, until it is empty.
    head: Chunk<E>,
    /// Full chunks between the two.
    middle: VecDeque<Chunk<E>>,
    /// The youngest events are put here. It grows from nothing, so that a lane with
    /// few events is small.
    tail: Chunk<E>,
    len: u64,
    /// All but `pushed` and `waiting`, which follow from the others and the length.
    counts: Counts,
}

impl<E> Lane<E> {
    /// Events in the chunk that a lane begins with, when it has grown.
    const SMALL: usize = chunk_len::<E>(SMALL_BYTES);

    pub fn new() -> Lane<E> {
        Lane {
            head: Chunk::new(),
            middle: VecDeque::new(),
            tail: Chunk::new(),
            len: 0,
            counts: Counts::default(),
        }
    }

    /// Adds the youngest.
    #[inline]
    pub fn push(&mut self, item: Item<E>, spares: &mut Spares<E>) {
        if self.tail.len() == self.tail.capacity() {
            self.make_room(spares);
        }
        self.tail.push_back(item);
        self.len += 1;
    }

    #[cold]
    fn make_room(&mut self, spares: &mut Spares<E>) {
        let len = self.tail.len();
        if len < Self::SMALL {
            self.tail.reserve_exact(len.clamp(4, Self::SMALL - len));
        } else {
            let next = spares.take(self.tail.capacity());
            let full = std::mem::replace(&mut self.tail, next);
            self.middle.push_back(full);
        }
    }

    /// Lends the chunk to which events are added; [`close`](Lane::close) must follow
    /// before anything else.
    pub fn open(&mut self) -> Chunk<E> {
        std::mem::take(&mut self.tail)
    }

    /// Takes the chunk back, with so many events more.
    pub fn close(&mut self, chunk: Chunk<E>, added: u64) {
        self.tail = chunk;
        self.len += added;
    }

    /// Takes the oldest.
    #[inline]
    pub fn pop(&mut self, spares: &mut Spares<E>) -> Option<Item<E>> {
        let item = match self.head.pop_front() {
            Some(item) => item,
            None if self.middle.is_empty() && self.tail.len() < SWAP_FROM => {
                self.tail.pop_front()?
            }
            None => self.pop_next_chunk(spares)?,
        };
        self.len -= 1;
        Some(item)
    }

    #[inline(never)]
    fn pop_next_chunk(&mut self, spares: &mut Spares<E>) -> Option<Item<E>> {
        match self.middle.pop_front() {
            Some(next) => spares.keep(std::mem::replace(&mut self.head, next)),
            None => std::mem::swap(&mut self.head, &mut self.tail),
        }
        self.head.pop_front()
    }

    /// An event was taken to be dispatched.
    #[inline]
    pub fn note_dispatched(&mut self, is_watched: bool) {
        self.counts.dispatched += 1;
        self.counts.unhandled += u64::from(!is_watched);
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
    fn item(id: u64) -> Item<[u64; 1024]> {
        Item {
            id,
            event: [id; 1024],
        }
    }

    fn ids(lane: &mut Lane<[u64; 1024]>, spares: &mut Spares<[u64; 1024]>) -> Vec<u64> {
        std::iter::from_fn(|| lane.pop(spares))
            .map(|item| item.id)
            .collect()
    }

    #[test]
    fn events_leave_in_the_order_in_which_they_came_across_chunks() {
        let (mut lane, mut spares) = (Lane::new(), Spares::new());
        for id in 0..7_000 {
            lane.push(item(id), &mut spares);
        }
        assert!(lane.middle.len() > 3);
        assert_eq!(ids(&mut lane, &mut spares), Vec::from_iter(0..7_000));
        assert_eq!(spares.0.len(), SPARES_MAX, "an emptied chunk is kept");
    }

    #[test]
    fn events_added_to_a_lent_chunk_are_counted_when_it_is_back() {
        let (mut lane, mut spares) = (Lane::new(), Spares::new());
        lane.push(item(1), &mut spares);
        let mut chunk = lane.open();
        chunk.push_back(item(2));
        lane.close(chunk, 1);
        assert_eq!(lane.counts().waiting, 2);
        assert_eq!(ids(&mut lane, &mut spares), [1, 2]);
        assert_eq!(lane.counts().waiting, 0);
    }
}
