//! Every vector and each of its beginnings, placed so that the next byte is on
//! a page that must not be read: looking one byte too far crashes the test.

use super::vectors;

#[test]
fn nothing_is_read_behind_the_input() {
    let mut page = guarded::Page::new();
    for (name, input, lines, read) in vectors::all() {
        for end in 0..=input.len() {
            let seen = read(page.hold(&input[..end]), &[]);
            assert!(!seen.is_empty(), "{name}");
        }
        for cut in 0..input.len() {
            let seen = read(page.hold(&input), &[cut]);
            assert_eq!(seen, lines, "{name}, cut at {cut}");
        }
    }
}

/// Set in the process that is meant to crash.
const CHILD: &str = "PRONY_WIRE_READS_TOO_FAR";

#[test]
fn reading_one_byte_too_far_crashes() {
    if std::env::var_os(CHILD).is_some() {
        let mut page = guarded::Page::new();
        page.hold(b"abc");
        page.read_too_far();
    }
    let program = std::env::current_exe().expect("a test is a program");
    let mut child = std::process::Command::new(program);
    child.args(["--exact", "guard_page::reading_one_byte_too_far_crashes"]);
    let output = child.env(CHILD, "1").output().expect("it starts");
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    assert_eq!(signal, Some(libc::SIGSEGV), "{output:?}");
}

/// The one place of this crate with `unsafe`, for tests only: no safe interface
/// offers memory that must not be read.
mod guarded {
    /// A writable page before one that cannot be accessed.
    pub struct Page {
        /// INVARIANT: the start of two mapped pages, ours alone, of which the
        /// first may be read and written.
        start: *mut u8,
        bytes: usize,
    }

    impl Page {
        pub fn new() -> Page {
            // SAFETY: sysconf reads a constant.
            let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            let bytes = usize::try_from(bytes).expect("a page has a size");
            // SAFETY: a new anonymous mapping at an address the kernel chooses
            // touches no memory that exists; its protection is narrowed on the
            // second page, which lies within it.
            let start = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let access = libc::PROT_READ | libc::PROT_WRITE;
                let start = libc::mmap(std::ptr::null_mut(), 2 * bytes, access, flags, -1, 0);
                assert_ne!(start, libc::MAP_FAILED);
                assert_eq!(libc::mprotect(start.add(bytes), bytes, libc::PROT_NONE), 0);
                start.cast::<u8>()
            };
            Page { start, bytes }
        }

        /// `input`, copied to the very end of the page.
        pub fn hold(&mut self, input: &[u8]) -> &[u8] {
            // SAFETY: by the invariant the first page is ours, initialised (the
            // kernel gives zeros) and lives as long as `self`, which is borrowed.
            let page = unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) };
            let start = page.len() - input.len();
            page[start..].copy_from_slice(input);
            &page[start..]
        }
    }

    impl Page {
        /// Proves that the page behind is guarded: never returns.
        pub fn read_too_far(&self) -> ! {
            // SAFETY: the address is within our mapping, on the page without
            // access; the read is volatile, so that it happens, and the kernel
            // ends the process before there is a value.
            let byte = unsafe { self.start.add(self.bytes).read_volatile() };
            panic!("read {byte} from the page behind");
        }
    }

    impl Drop for Page {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours, and no borrow of it outlives `self`.
            unsafe { libc::munmap(self.start.cast(), 2 * self.bytes) };
        }
    }
}
