//! Advice to the kernel about pages of memory.
//! Not for: allocating; this is about memory that is allocated already.

use std::mem::MaybeUninit;

/// The page size that addresses are rounded to; where pages are larger, the kernel
/// refuses the advice, which does no harm.
const PAGE_BYTES: usize = 4096;

/// Asks for huge pages where this memory has not been touched yet.
///
/// One fault then brings 2 MiB instead of 4 KiB, for at most 2 MiB that are not
/// needed. Only advice: where the kernel has none, or the memory does not span an
/// aligned 2 MiB of which nothing was touched, nothing happens. An allocator touches
/// the beginning, so that memory of 4 MiB is the least for which it pays.
pub fn prefer_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    let start = memory.as_ptr().addr();
    let first = start & !(PAGE_BYTES - 1);
    let last = (start + size_of_val(memory)).next_multiple_of(PAGE_BYTES);
    let address = memory.as_mut_ptr().with_addr(first).cast();
    // SAFETY: the advice changes which pages the kernel takes for memory that it has
    // yet to supply. It changes no content and no mapping, of this memory or of what
    // shares its first or last page.
    unsafe { libc::madvise(address, last - first, libc::MADV_HUGEPAGE) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_about_any_memory_leaves_it_as_it_is() {
        for len in [0, 1, 5_000, (2 << 20) - 4_096, 9 << 20] {
            let mut bytes: Vec<u8> = Vec::with_capacity(len);
            bytes.resize(len / 2, 7);
            prefer_huge_pages(bytes.spare_capacity_mut());
            bytes.resize(len, 8);
            assert!(bytes[..len / 2].iter().all(|byte| *byte == 7));
            assert!(bytes[len / 2..].iter().all(|byte| *byte == 8));
        }
    }
}
