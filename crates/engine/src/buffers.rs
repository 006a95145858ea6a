//! The memory of the loop: a pool of receive buffers that all drivers share,
//! and send buffers, which belong to the loop until the kernel is done with them.
//! Not for: deciding which stream receives when (that is `net`).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::rc::Rc;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::driver::FilePart;
use crate::stamps::Arrival;

/// Buffers by which the pool first starts and then at least grows.
const GROWTH_MIN: u32 = 64;
/// Bytes from which on a buffer is too large to be held for a few bytes.
const LARGE_BYTES: u32 = 16 << 10;
/// A large buffer with at most one in so many of its bytes used holds few.
const FEW_IN: u32 = 8;

/// Equal receive buffers, lent out by number.
///
/// INVARIANT: each of `chunks` is a mapping of so many bytes that only this pool
/// unmaps, when it is dropped; `starts` point into them, `buffer_bytes` apart. A number is
/// either in `free`, or out with exactly one holder: the kernel, or one
/// [`Received`] that will give it back. Only its holder touches its bytes.
pub(crate) struct Pool {
    pub buffer_bytes: u32,
    pub limit: u32,
    chunks: RefCell<Vec<(NonNull<u8>, usize)>>,
    /// Start of each buffer by number.
    starts: RefCell<Vec<NonNull<u8>>>,
    free: RefCell<Vec<u16>>,
    exhausted: Cell<u64>,
}

impl Pool {
    pub fn new(buffer_bytes: u32, limit: u32) -> Rc<Pool> {
        Rc::new(Pool {
            buffer_bytes,
            limit,
            chunks: RefCell::default(),
            starts: RefCell::default(),
            free: RefCell::default(),
            exhausted: Cell::new(0),
        })
    }

    /// Doubles the pool, up to its limit. False at the limit, and where the system has
    /// no more memory.
    pub fn grow(&self) -> bool {
        let mut starts = self.starts.borrow_mut();
        let now = starts.len() as u32;
        let more = now.max(GROWTH_MIN).min(self.limit - now);
        if more == 0 {
            return false;
        }
        let size = self.buffer_bytes as usize;
        let Some(base) = map(more as usize * size) else {
            return false;
        };
        let mut free = self.free.borrow_mut();
        for number in (0..more).rev() {
            free.push((now + number) as u16);
        }
        for number in 0..more as usize {
            // SAFETY: within the chunk that was just mapped with this size.
            starts.push(unsafe { base.add(number * size) });
        }
        self.chunks.borrow_mut().push((base, more as usize * size));
        true
    }

    /// True when a buffer is here, to be lent.
    pub fn has_free(&self) -> bool {
        !self.free.borrow().is_empty()
    }

    /// Buffers that exist.
    pub fn len(&self) -> usize {
        self.starts.borrow().len()
    }

    /// Takes a free buffer's number and start for the kernel to fill; None when
    /// all are out.
    pub fn lend(&self) -> Option<(u16, NonNull<u8>)> {
        let number = self.free.borrow_mut().pop()?;
        Some((number, self.starts.borrow()[usize::from(number)]))
    }

    /// Takes back a number that was lent.
    fn give_back(&self, number: u16) {
        debug_assert!(usize::from(number) < self.starts.borrow().len());
        self.free.borrow_mut().push(number);
    }

    /// Counts a moment at which a buffer was wanted and none was free.
    pub fn count_exhausted(&self) {
        self.exhausted.set(self.exhausted.get() + 1);
    }

    pub fn exhausted(&self) -> u64 {
        self.exhausted.get()
    }

    /// Buffers that exist, and how many of them are free.
    #[cfg(test)]
    pub fn counts(&self) -> (usize, usize) {
        (self.starts.borrow().len(), self.free.borrow().len())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (start, bytes) in self.chunks.get_mut().drain(..) {
            // SAFETY: mapped by `grow` with this size, unmapped once, here; every holder
            // of a buffer keeps the pool alive, so none is left.
            // Fails only for what is no mapping.
            let _ = unsafe { munmap(start.as_ptr().cast(), bytes) };
        }
    }
}

/// Zeroed memory straight from the kernel, which supplies a page when it is first
/// touched: a buffer that was never used costs nothing.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no other.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE) };
    NonNull::new(start.ok()?.cast())
}

/// A receive buffer that is to be filled: pooled, or an own one where the pool
/// is exhausted.
///
/// INVARIANT: `start` points to `capacity` bytes that nothing else touches until
/// this is filled or dropped.
pub(crate) struct Empty {
    home: Home,
    start: NonNull<u8>,
    capacity: u32,
}

enum Home {
    Nowhere,
    Pool(Rc<Pool>, u16),
    Own,
}

impl Empty {
    /// A pooled buffer, growing the pool where it must and may.
    pub fn pooled(pool: &Rc<Pool>) -> Option<Empty> {
        let lent = pool.lend().or_else(|| {
            pool.count_exhausted();
            pool.grow().then(|| pool.lend())?
        });
        let (number, start) = lent?;
        Some(Empty {
            home: Home::Pool(pool.clone(), number),
            start,
            capacity: pool.buffer_bytes,
        })
    }

    /// A buffer outside the pool, freed after use.
    pub fn own(pool: &Pool) -> Empty {
        Empty::boxed(vec![0_u8; pool.buffer_bytes as usize].into_boxed_slice())
    }

    fn boxed(bytes: Box<[u8]>) -> Empty {
        let capacity = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Empty {
            home: Home::Own,
            start: NonNull::from(Box::leak(bytes)).cast(),
            capacity,
        }
    }

    /// The memory that a system call may write, for as long as this is kept.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The bytes, to be written by safe code or a system call.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: initialised (zeroed at first), and ours alone by the INVARIANT.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity as usize) }
    }

    /// The buffer with its first `len` bytes received.
    pub fn filled(self, len: usize) -> Received {
        let len = u32::try_from(len).unwrap_or(u32::MAX).min(self.capacity);
        Received {
            buffer: self,
            from: 0,
            len,
            arrival: Arrival::default(),
        }
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        match &self.home {
            Home::Nowhere => {}
            Home::Pool(pool, number) => pool.give_back(*number),
            Home::Own => {
                let bytes =
                    std::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.capacity());
                // SAFETY: `boxed` leaked a box of exactly these bytes (one of less than
                // 4 GiB), and this is its only owner.
                drop(unsafe { Box::from_raw(bytes) });
            }
        }
    }
}

/// Received bytes in a pooled buffer, which goes back when this is dropped.
/// Empty means that the peer has ended its side of the stream.
///
/// Keep it only while you look at it: held buffers are missing elsewhere.
///
/// INVARIANT: `from + len` is within the buffer's capacity.
pub struct Received {
    buffer: Empty,
    /// Bytes at the beginning that are not wanted any more.
    from: u32,
    len: u32,
    arrival: Arrival,
}

impl Received {
    /// The arrival of these bytes; of an empty one, that of the end of the stream.
    pub fn arrival(&self) -> Arrival {
        self.arrival
    }

    /// The same bytes, which came then.
    pub(crate) fn at(mut self, arrival: Arrival) -> Received {
        self.arrival = arrival;
        self
    }

    /// The end of the stream.
    pub(crate) fn end() -> Received {
        Received {
            buffer: Empty {
                home: Home::Nowhere,
                start: NonNull::dangling(),
                capacity: 0,
            },
            from: 0,
            len: 0,
            arrival: Arrival::default(),
        }
    }

    /// Buffer `number`, which the kernel has filled with `len` bytes.
    ///
    /// # Safety
    /// The pool [lent](Pool::lend) this number, and the kernel is done with it; it is used for
    /// one buffer alone.
    pub(crate) unsafe fn from_kernel(pool: &Rc<Pool>, number: u16, len: usize) -> Received {
        let start = pool.starts.borrow()[usize::from(number)];
        let buffer = Empty {
            home: Home::Pool(pool.clone(), number),
            start,
            capacity: pool.buffer_bytes,
        };
        buffer.filled(len)
    }

    /// True when every byte of the buffer was used: more is probably waiting.
    pub(crate) fn is_full(&self) -> bool {
        self.len == self.buffer.capacity
    }

    /// Drops up to `count` bytes at the beginning; yields how many.
    pub(crate) fn skip(&mut self, count: u64) -> u64 {
        let skipped = count.min(u64::from(self.len));
        // Not more than `len`, so that it fits.
        self.from += skipped as u32;
        self.len -= skipped as u32;
        skipped
    }

    /// The same bytes, in a buffer of their own size if they are few and this one is
    /// large: for bytes that may wait for a while.
    pub(crate) fn into_kept(self) -> Received {
        let capacity = self.buffer.capacity;
        let is_pooled = matches!(self.buffer.home, Home::Pool(..));
        if !is_pooled || capacity < LARGE_BYTES || self.is_empty() || self.len > capacity / FEW_IN {
            return self;
        }
        let kept = Empty::boxed(Box::from(&self[..])).filled(self.len());
        kept.at(self.arrival)
    }
}

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        debug_assert!(self.from + self.len <= self.buffer.capacity);
        // SAFETY: within the capacity by the INVARIANT, the bytes are initialised, and by the
        // INVARIANT of Empty nothing writes them while this is held.
        unsafe {
            let start = self.buffer.start.as_ptr().add(self.from as usize);
            std::slice::from_raw_parts(start, self.len as usize)
        }
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Received({} bytes)", self.len)
    }
}

/// Bytes to send, owned by the loop until the kernel is done with them.
#[derive(Clone, Debug)]
pub enum SendBuf {
    /// Bytes of this send alone. The vector goes back to
    /// [`take_buffer`](crate::Handle::take_buffer)'s pool.
    Owned(Vec<u8>),
    /// Bytes that many sends share.
    Shared(Rc<[u8]>),
    /// Bytes of the program.
    Static(&'static [u8]),
}

impl SendBuf {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            SendBuf::Owned(bytes) => bytes,
            SendBuf::Shared(bytes) => bytes,
            SendBuf::Static(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for SendBuf {
    fn from(bytes: Vec<u8>) -> SendBuf {
        SendBuf::Owned(bytes)
    }
}

impl From<Rc<[u8]>> for SendBuf {
    fn from(bytes: Rc<[u8]>) -> SendBuf {
        SendBuf::Shared(bytes)
    }
}

impl From<&'static [u8]> for SendBuf {
    fn from(bytes: &'static [u8]) -> SendBuf {
        SendBuf::Static(bytes)
    }
}

impl<const N: usize> From<&'static [u8; N]> for SendBuf {
    fn from(bytes: &'static [u8; N]) -> SendBuf {
        SendBuf::Static(bytes)
    }
}

impl From<&'static str> for SendBuf {
    fn from(text: &'static str) -> SendBuf {
        SendBuf::Static(text.as_bytes())
    }
}

/// A part of a file that is to be sent.
///
/// The file stays open until the kernel is done with it.
pub(crate) struct FileRange {
    pub file: Rc<OwnedFd>,
    /// The beginning of the part, in bytes.
    pub offset: u64,
    pub len: u64,
}

impl FileRange {
    /// The part after `taken` bytes, for a driver.
    ///
    /// # Safety
    /// This range lives until the driver has completed the send, or is gone.
    pub unsafe fn rest(&self, taken: u64) -> FilePart {
        let (offset, len) = (self.offset + taken, self.len - taken);
        // SAFETY: the file is open as long as this range, and the caller says how long that is.
        unsafe { FilePart::new(self.file.as_fd(), offset, len) }
    }
}

/// A post: bytes or a part of a file.
pub(crate) enum Posted {
    Bytes(SendBuf),
    File(FileRange),
}

impl Posted {
    /// Bytes that are to go out in all.
    pub fn len(&self) -> u64 {
        match self {
            Posted::Bytes(bytes) => bytes.as_slice().len() as u64,
            Posted::File(range) => range.len,
        }
    }
}

/// Vectors that were sent and wait to be filled again.
pub(crate) struct Spares {
    vectors: Vec<Vec<u8>>,
    count_max: usize,
    bytes_max: usize,
}

impl Spares {
    pub fn new(count_max: usize, bytes_max: usize) -> Spares {
        Spares {
            vectors: Vec::new(),
            count_max,
            bytes_max,
        }
    }

    pub fn take(&mut self) -> Vec<u8> {
        self.vectors.pop().unwrap_or_default()
    }

    pub fn give_back(&mut self, sent: SendBuf) {
        if let SendBuf::Owned(mut vector) = sent
            && self.vectors.len() < self.count_max
            && (1..=self.bytes_max).contains(&vector.capacity())
        {
            vector.clear();
            self.vectors.push(vector);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grows_to_its_limit_and_no_further() {
        let pool = Pool::new(64, 100);
        let held: Vec<Empty> = (0..100).map_while(|_| Empty::pooled(&pool)).collect();
        assert_eq!(held.len(), 100);
        assert!(Empty::pooled(&pool).is_none());
        assert_eq!(pool.counts(), (100, 0));
        drop(held);
        assert_eq!(pool.counts(), (100, 100));
    }

    #[test]
    fn buffers_do_not_overlap() {
        let pool = Pool::new(64, 70);
        let mut held: Vec<Empty> = (0..70).map_while(|_| Empty::pooled(&pool)).collect();
        held.push(Empty::own(&pool));
        for (mark, buffer) in held.iter_mut().enumerate() {
            buffer.as_mut_slice().fill(mark as u8);
        }
        for (mark, buffer) in held.into_iter().enumerate() {
            let received = buffer.filled(64);
            assert!(received.iter().all(|&byte| byte == mark as u8));
            assert!(received.is_full());
        }
    }

    #[test]
    fn a_received_buffer_outlives_its_loop() {
        let pool = Pool::new(64, 1);
        let mut empty = Empty::pooled(&pool).expect("one buffer is free");
        empty.as_mut_slice()[..2].copy_from_slice(b"ok");
        let received = empty.filled(2);
        drop(pool);
        assert_eq!(&received[..], b"ok");
    }

    #[test]
    fn few_bytes_do_not_keep_a_large_buffer() {
        let pool = Pool::new(LARGE_BYTES, 64);
        let fill = |bytes: &[u8]| {
            let mut empty = Empty::pooled(&pool).expect("one buffer is free");
            empty.as_mut_slice()[..bytes.len()].copy_from_slice(bytes);
            empty.filled(bytes.len())
        };
        let mut few = fill(b"a few bytes");
        assert_eq!(few.skip(2), 2);
        let few = few.into_kept();
        assert_eq!(pool.counts(), (64, 64));
        assert_eq!(&few[..], b"few bytes");
        let many = fill(&[7; LARGE_BYTES as usize / 2]).into_kept();
        assert_eq!(pool.counts(), (64, 63));
        assert_eq!(many.len(), LARGE_BYTES as usize / 2);
    }

    #[test]
    fn what_is_skipped_is_gone_and_no_more_than_there_is() {
        let pool = Pool::new(64, 1);
        let mut empty = Empty::pooled(&pool).expect("one buffer is free");
        empty.as_mut_slice()[..5].copy_from_slice(b"12345");
        let mut received = empty.filled(5);
        assert_eq!(received.skip(2), 2);
        assert_eq!(&received[..], b"345");
        assert_eq!(received.skip(u64::MAX), 3);
        assert!(received.is_empty());
    }

    #[test]
    fn large_and_shared_send_buffers_are_not_kept() {
        let mut spares = Spares::new(1, 100);
        spares.give_back(SendBuf::Owned(Vec::with_capacity(101)));
        spares.give_back(SendBuf::Shared(Rc::from(&b"x"[..])));
        assert_eq!(spares.take().capacity(), 0);
        spares.give_back(SendBuf::Owned(b"first".to_vec()));
        spares.give_back(SendBuf::Owned(b"second".to_vec()));
        let kept = spares.take();
        assert!(kept.is_empty() && kept.capacity() >= 5);
        assert_eq!(spares.take().capacity(), 0);
    }
}
