//! The ring by which the kernel gets receive buffers to fill.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// The one buffer group of a loop.
pub(crate) const GROUP: u16 = 1;

/// A ring of entries that name free buffers, shared with the kernel.
///
/// INVARIANT: `entries` points to `mask + 1` zeroed or written entries, aligned to
/// a page and registered with the kernel, which reads entries before the tail that
/// we published. Buffers named in it belong to the kernel until a completion names
/// them. The memory is freed only after the ring's descriptor or the registration
/// is gone.
pub(crate) struct BufferRing {
    entries: NonNull<BufRingEntry>,
    mask: u16,
    tail: u16,
    layout: Layout,
}

impl BufferRing {
    /// Registers an empty ring with room for `buffers` (at most 32768) buffers.
    pub fn new(ring: &IoUring, buffers: u32) -> io::Result<BufferRing> {
        let count = buffers.next_power_of_two().clamp(1, 1 << 15) as u16;
        let bytes = usize::from(count) * size_of::<BufRingEntry>();
        let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
        // SAFETY: the layout is not of size zero.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(entries) = NonNull::new(start.cast::<BufRingEntry>()) else {
            handle_alloc_error(layout);
        };
        let buffer_ring = BufferRing {
            entries,
            mask: count - 1,
            tail: 0,
            layout,
        };
        let submitter = ring.submitter();
        // SAFETY: page-aligned memory of the size that `count` entries need, which
        // lives as long as the registration by the INVARIANT.
        unsafe { submitter.register_buf_ring_with_flags(start as u64, count, GROUP, 0) }?;
        Ok(buffer_ring)
    }

    /// Adds a buffer, which the kernel sees after the next [`commit`](Self::commit).
    ///
    /// # Safety
    /// `start` points to `bytes` bytes that are the kernel's alone until a completion names
    /// the buffer, or the ring or its registration is gone.
    pub unsafe fn put(&mut self, number: u16, start: NonNull<u8>, bytes: u32) {
        let index = usize::from(self.tail & self.mask);
        // SAFETY: within the entries; the kernel does not look at this one before the
        // tail passes it. The three fields are set one by one because the tail itself
        // lies in the fourth field of the first entry.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(index);
            entry.set_addr(start.as_ptr() as u64);
            entry.set_len(bytes);
            entry.set_bid(number);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Shows the kernel what was added.
    pub fn commit(&mut self) {
        // SAFETY: points into the first entry, which is initialised; the kernel reads
        // it, and only we write it.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr()).cast_mut();
            AtomicU16::from_ptr(tail)
        };
        tail.store(self.tail, Ordering::Release);
    }

    /// Takes the ring back from the kernel. False if the kernel refused.
    pub fn unregister(&mut self, ring: &IoUring) -> bool {
        ring.submitter().unregister_buf_ring(GROUP).is_ok()
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; by the INVARIANT the kernel is done.
        unsafe { dealloc(self.entries.as_ptr().cast(), self.layout) }
    }
}
