//! The board: a file in memory on which each worker writes one line about itself, and
//! which the supervisor reads. Nobody maps it.
//!
//! A line may be read while it is written, and then be half the old one. No harm comes
//! of it: each number only grows, and the next look is right.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{pread, pwrite};

/// Lines, of which each worker has one as long as it lives: for the workers that
/// settings allow, and as many that they replace, twice.
pub(crate) const LINES_MAX: usize = 4096;
/// Bytes of a line: that of a processor's cache.
const LINE_BYTES: usize = 64;
/// Numbers in a line.
const NUMBERS: usize = 5;

/// The state of a worker, as it reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// When it was written, in nanoseconds; that it changes says that the worker's loop
    /// turns.
    pub beat_ns: u64,
    /// Connections taken.
    pub accepted: u64,
    /// Of these, those that have ended.
    pub closed: u64,
    /// Requests read.
    pub requests: u64,
    /// Connections that it can have open at once.
    pub connections_max: u64,
}

impl Line {
    fn to_bytes(self) -> [u8; LINE_BYTES] {
        let mut bytes = [0; LINE_BYTES];
        let Line {
            beat_ns,
            accepted,
            closed,
            requests,
            connections_max,
        } = self;
        let numbers: [u64; NUMBERS] = [beat_ns, accepted, closed, requests, connections_max];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn of_bytes(bytes: &[u8]) -> Line {
        let mut numbers = [0; NUMBERS];
        for (number, place) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = place
                .try_into()
                .map_or(0, |bytes: [u8; 8]| u64::from_le_bytes(bytes));
        }
        let [beat_ns, accepted, closed, requests, connections_max] = numbers;
        Line {
            beat_ns,
            accepted,
            closed,
            requests,
            connections_max,
        }
    }
}

/// The board.
pub(crate) struct Board {
    memory: OwnedFd,
}

impl Board {
    /// An empty one.
    pub(crate) fn new() -> io::Result<Board> {
        let memory = memfd_create("prony-board", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, (LINES_MAX * LINE_BYTES) as u64)?;
        Ok(Board { memory })
    }

    /// One that another process made.
    pub(crate) fn from_memory(memory: OwnedFd) -> Board {
        Board { memory }
    }

    /// Writes a line. What fails is left out: who reads will take the writer for stuck.
    pub(crate) fn write(&self, place: u32, line: Line) {
        let _ = pwrite(&self.memory, &line.to_bytes(), offset(place));
    }

    /// Reads one line.
    pub(crate) fn read(&self, place: u32) -> Line {
        let mut bytes = [0; LINE_BYTES];
        let read = pread(&self.memory, &mut bytes[..], offset(place));
        read.map_or_else(|_| Line::default(), |count| Line::of_bytes(&bytes[..count]))
    }

    /// Reads the first lines with one call, in their order; fewer where that fails.
    pub(crate) fn read_first<'b>(
        &self,
        count: usize,
        buffer: &'b mut Vec<u8>,
    ) -> impl Iterator<Item = Line> + use<'b> {
        buffer.resize(count.min(LINES_MAX) * LINE_BYTES, 0);
        let read = pread(&self.memory, &mut buffer[..], 0).unwrap_or(0);
        buffer[..read].chunks_exact(LINE_BYTES).map(Line::of_bytes)
    }
}

impl AsFd for Board {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

fn offset(place: u32) -> u64 {
    u64::from(place) * LINE_BYTES as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_one_line_is_read_from_it_and_from_no_other() {
        let board = Board::new().unwrap();
        let line = |number| Line {
            beat_ns: u64::MAX - number,
            accepted: number,
            closed: number << 40,
            requests: number + 7,
            connections_max: number << 50,
        };
        board.write(0, line(1));
        board.write(2, line(3));
        board.write(LINES_MAX as u32 - 1, line(4));
        assert_eq!(board.read(0), line(1));
        assert_eq!(board.read(1), Line::default());
        assert_eq!(board.read(LINES_MAX as u32 - 1), line(4));
        let mut buffer = Vec::new();
        let first: Vec<Line> = board.read_first(3, &mut buffer).collect();
        assert_eq!(first, [line(1), Line::default(), line(3)]);
        assert_eq!(
            board.read_first(LINES_MAX + 9, &mut buffer).count(),
            LINES_MAX
        );
    }
}
