//! Records of one type, first in, first out, in chunks.
//!
//! A chunk is at most [`LARGE_BYTES`] long, so that millions of waiting records are
//! never moved to make room; an emptied chunk is used again.
//! Not for: what the records are (`lane`, `numbers`).

use std::collections::VecDeque;

use prony_engine::prefer_huge_pages;

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
pub(super) const SPARES_MAX: usize = 1;

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

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
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

    /// Moves the chunk with the youngest out, to be added to elsewhere.
    #[inline(always)]
    pub fn take_tail(&mut self) -> Chunk<T> {
        std::mem::take(&mut self.tail)
    }

    /// Puts the chunk back that was moved out.
    #[inline(always)]
    pub fn put_tail(&mut self, chunk: Chunk<T>) {
        debug_assert!(self.tail.is_empty());
        self.tail = chunk;
    }

    #[cfg(test)]
    pub fn full_chunks(&self) -> usize {
        self.middle.len()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        let middle: usize = self.middle.iter().map(Chunk::len).sum();
        self.head.len() + middle + self.tail.len()
    }
}
