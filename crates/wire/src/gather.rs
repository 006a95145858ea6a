//! Finds where a head or a trailer section ends, over any number of chunks.
//!
//! Nothing is parsed before its end is there. So the outcome cannot depend on
//! how the bytes were split, and a head that comes byte by byte costs as much
//! as a whole one: the search goes on where it stopped, the parser runs once.

use memchr::memchr;

use crate::Error;

/// A carry buffer larger than this is given back after use, so that a
/// connection at rest does not hold the memory of its largest head.
const CARRY_KEPT_BYTES_MAX: usize = 1024;

/// What gathering found.
pub(crate) enum Gathered<'a> {
    /// Everything up to and including the empty line.
    Whole(&'a [u8]),
    /// All input is used and kept; more is needed.
    Part,
    /// The limit is reached; whether that was within the first line.
    TooLong { first_line: bool },
}

/// As [`Gathered`], of what [`Gather::whole`] gives.
pub(crate) enum Found {
    /// Everything up to and including the empty line.
    Whole,
    /// All input is used and kept; more is needed.
    Part,
    /// The limit is reached; whether that was within the first line.
    TooLong { first_line: bool },
}

/// Where the first empty line of `bytes` ends; `None` if there is none, or a
/// bare LF before it.
#[inline]
pub(crate) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut line_start = 0;
    loop {
        let feed = line_start + memchr(b'\n', &bytes[line_start..])?;
        if feed == 0 || bytes[feed - 1] != b'\r' {
            return None;
        }
        if feed - 1 == line_start {
            return (feed > 1).then_some(feed + 1);
        }
        line_start = feed + 1;
    }
}

#[inline]
fn starts_with_space(line: &[u8]) -> bool {
    matches!(line, [b' ' | b'\t', ..])
}

/// The search for an empty line, and the bytes of earlier chunks.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    /// INVARIANT: `carry.len() < bytes_max` between calls, unless `delivered`.
    carry: Vec<u8>,
    /// Bytes searched so far. INVARIANT: `line_start <= searched`.
    searched: usize,
    /// Where the line under search starts.
    line_start: usize,
    /// The last answer was `Whole`: start afresh.
    delivered: bool,
    /// A line begins with white space: it goes on with the one before.
    folded: bool,
    /// Bytes that were searched or copied, in all.
    examined: u64,
}

impl Gather {
    /// Whether no part of anything is held.
    pub(crate) fn is_empty(&self) -> bool {
        self.delivered || self.carry.is_empty()
    }

    /// What is held of the part under way, or of the one that was whole last.
    pub(crate) fn held(&self) -> &[u8] {
        &self.carry
    }

    /// Bytes that were searched or copied since the beginning.
    pub(crate) fn examined(&self) -> u64 {
        self.examined
    }

    /// Takes `input` up to an empty line, but no more than `bytes_max` bytes
    /// in all. Returns how much of `input` was used.
    #[inline]
    pub(crate) fn take<'a>(
        &'a mut self,
        input: &'a [u8],
        bytes_max: usize,
    ) -> Result<(usize, Gathered<'a>), Error> {
        let (used, found) = self.find(input, bytes_max)?;
        let gathered = match found {
            Found::Whole => Gathered::Whole(self.whole(input, used)),
            Found::Part => Gathered::Part,
            Found::TooLong { first_line } => Gathered::TooLong { first_line },
        };
        Ok((used, gathered))
    }

    /// As [`take`](Gather::take), with nothing borrowed.
    #[inline]
    pub(crate) fn find(&mut self, input: &[u8], bytes_max: usize) -> Result<(usize, Found), Error> {
        self.start_afresh_if_delivered();
        if !self.carry.is_empty() {
            return self.find_more(input, bytes_max);
        }
        let window = &input[..input.len().min(bytes_max)];
        match self.search(window)? {
            Some(end) => {
                self.delivered = true;
                Ok((end, Found::Whole))
            }
            None if window.len() == bytes_max => Ok((0, self.too_long())),
            None => {
                self.keep(input);
                Ok((input.len(), Found::Part))
            }
        }
    }

    /// What [`Found::Whole`] was, of the same `input`, of which `used` bytes were used.
    #[inline]
    pub(crate) fn whole<'a>(&'a self, input: &'a [u8], used: usize) -> &'a [u8] {
        match self.carry.is_empty() {
            true => &input[..used],
            false => &self.carry[..self.searched],
        }
    }

    /// Whether a line of it begins with white space.
    #[inline]
    pub(crate) fn is_folded(&self) -> bool {
        self.folded
    }

    /// Joins header lines that are folded over several to one each, as RFC 9112
    /// (section 5.2) allows a client to: what folds is one space. Of what
    /// [`Found::Whole`] was. White space before the first header line belongs to none, and
    /// stays.
    #[cold]
    pub(crate) fn unfold(&mut self, input: &[u8], used: usize) {
        let whole = self.whole(input, used);
        let mut joined = Vec::with_capacity(whole.len());
        for (place, line) in whole.split_inclusive(|&byte| byte == b'\n').enumerate() {
            let mut line = line;
            if place > 1 && starts_with_space(line) {
                while joined
                    .pop_if(|last| matches!(last, b' ' | b'\t' | b'\r' | b'\n'))
                    .is_some()
                {}
                joined.push(b' ');
                while starts_with_space(line) {
                    line = &line[1..];
                }
            }
            joined.extend_from_slice(line);
        }
        self.examined += whole.len() as u64;
        self.searched = joined.len();
        self.carry = joined;
    }

    /// As `find`, with a part in `carry`.
    #[cold]
    fn find_more(&mut self, input: &[u8], bytes_max: usize) -> Result<(usize, Found), Error> {
        let before = self.carry.len();
        self.keep(&input[..input.len().min(bytes_max - before)]);
        let carry = std::mem::take(&mut self.carry);
        let found = self.search(&carry);
        self.carry = carry;
        match found? {
            Some(end) => {
                self.delivered = true;
                Ok((end - before, Found::Whole))
            }
            None if self.carry.len() == bytes_max => Ok((0, self.too_long())),
            None => Ok((input.len(), Found::Part)),
        }
    }

    fn too_long(&self) -> Found {
        Found::TooLong {
            first_line: self.line_start == 0,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.examined += bytes.len() as u64;
        self.carry.extend_from_slice(bytes);
    }

    /// Forgets what was delivered, and gives back what it took where that is much.
    #[inline]
    pub(crate) fn start_afresh_if_delivered(&mut self) {
        if !self.delivered {
            return;
        }
        if self.carry.capacity() > CARRY_KEPT_BYTES_MAX {
            self.carry = Vec::new();
        }
        self.carry.clear();
        self.searched = 0;
        self.line_start = 0;
        self.delivered = false;
        self.folded = false;
    }

    /// Goes on searching `bytes`, of which `self.searched` were searched
    /// before, for the end of an empty line.
    #[inline]
    fn search(&mut self, bytes: &[u8]) -> Result<Option<usize>, Error> {
        let before = self.searched;
        while let Some(distance) = memchr(b'\n', &bytes[self.searched..]) {
            let feed = self.searched + distance;
            if feed == 0 || bytes[feed - 1] != b'\r' {
                return Err(Error::BareLineFeed);
            }
            self.searched = feed + 1;
            if feed - 1 == self.line_start {
                self.examined += (self.searched - before) as u64;
                return Ok(Some(feed + 1));
            }
            self.folded |= starts_with_space(&bytes[self.line_start..]);
            self.line_start = feed + 1;
        }
        self.searched = bytes.len();
        self.examined += (self.searched - before) as u64;
        Ok(None)
    }
}
