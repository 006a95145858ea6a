//! The events of one type at one priority: first in, first out, in chunks.
//!
//! A chunk is at most [`CHUNK_BYTES`] long, so that millions of waiting events are
//! never moved to make room; an emptied chunk is used again.
//! Not for: order between types (`levels`) or what happens to an event (`channel`).

use std::collections::VecDeque;

use super::stats::Counts;

/// Memory of one full chunk. Below glibc's threshold for mapping memory apart.
const CHUNK_BYTES: usize = 64 << 10;
/// Emptied chunks that one type keeps for later.
const SPARES_MAX: usize = 16;

/// One waiting event.
pub(super) struct Item<E> {
    pub id: u64,
    pub event: E,
}

type Chunk<E> = VecDeque<Item<E>>;

/// Chunks that were emptied.
pub(super) struct Spares<E>(Vec<Chunk<E>>);

impl<E> Spares<E> {
    pub fn new() -> Spares<E> {
        Spares(Vec::new())
    }

    fn take(&mut self) -> Chunk<E> {
        self.0
            .pop()
            .unwrap_or_else(|| Chunk::with_capacity(Lane::<E>::CHUNK))
    }

    fn keep(&mut self, chunk: Chunk<E>) {
        if self.0.len() < SPARES_MAX {
            self.0.push(chunk);
        }
    }
}

/// A queue of one type's events at one priority.
pub(super) struct Lane<E> {
    /// The oldest events; also the youngest while there is no other chunk. The
    /// first chunk grows from nothing, so that a lane with few events is small.
    head: Chunk<E>,
    /// Later chunks, each filled before the next is begun.
    rest: VecDeque<Chunk<E>>,
    pub counts: Counts,
}

impl<E> Lane<E> {
    /// Events in a full chunk.
    const CHUNK: usize = {
        let count = CHUNK_BYTES / size_of::<Item<E>>();
        if count < 8 { 8 } else { count }
    };

    pub fn new() -> Lane<E> {
        Lane {
            head: Chunk::new(),
            rest: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Adds the youngest.
    #[inline]
    pub fn push(&mut self, item: Item<E>, spares: &mut Spares<E>) {
        let tail = self.rest.back_mut().unwrap_or(&mut self.head);
        if tail.len() < Self::CHUNK {
            tail.push_back(item);
            return;
        }
        let mut chunk = spares.take();
        chunk.push_back(item);
        self.rest.push_back(chunk);
    }

    /// Takes the oldest.
    #[inline]
    pub fn pop(&mut self, spares: &mut Spares<E>) -> Option<Item<E>> {
        match self.head.pop_front() {
            Some(item) => Some(item),
            None => self.pop_next_chunk(spares),
        }
    }

    #[cold]
    fn pop_next_chunk(&mut self, spares: &mut Spares<E>) -> Option<Item<E>> {
        let next = self.rest.pop_front()?;
        spares.keep(std::mem::replace(&mut self.head, next));
        self.head.pop_front()
    }

    /// Takes the event that `skip` older ones stand before.
    pub fn remove(&mut self, skip: usize, spares: &mut Spares<E>) -> Option<Item<E>> {
        if skip == 0 {
            return self.pop(spares);
        }
        let mut before = self.head.len();
        if skip < before {
            return self.head.remove(skip);
        }
        for index in 0..self.rest.len() {
            let chunk = &mut self.rest[index];
            if skip < before + chunk.len() {
                let item = chunk.remove(skip - before);
                if chunk.is_empty() {
                    // Only the first chunk may be empty.
                    self.rest.remove(index);
                }
                return item;
            }
            before += chunk.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: u64) -> Item<[u64; 1024]> {
        Item {
            id,
            event: [id; 1024],
        }
    }

    #[test]
    fn events_leave_in_the_order_in_which_they_came_across_chunks() {
        let (mut lane, mut spares) = (Lane::new(), Spares::new());
        for id in 0..100 {
            lane.push(item(id), &mut spares);
        }
        for id in 0..100 {
            assert_eq!(lane.pop(&mut spares).map(|item| item.id), Some(id));
        }
        assert!(lane.pop(&mut spares).is_none());
        assert!(spares.0.len() > 10, "emptied chunks are kept");
    }

    #[test]
    fn one_in_the_middle_can_be_taken_and_an_emptied_chunk_is_no_gap() {
        let (mut lane, mut spares) = (Lane::new(), Spares::new());
        for id in 0..17 {
            lane.push(item(id), &mut spares);
        }
        // Chunks hold eight: this empties the third, then takes from the second.
        assert_eq!(lane.remove(16, &mut spares).map(|item| item.id), Some(16));
        assert_eq!(lane.remove(9, &mut spares).map(|item| item.id), Some(9));
        assert!(lane.remove(15, &mut spares).is_none());
        lane.push(item(17), &mut spares);
        let left: Vec<u64> = std::iter::from_fn(|| lane.pop(&mut spares))
            .map(|item| item.id)
            .collect();
        assert_eq!(
            left,
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 17]
        );
    }
}
