//! Reads the kernel's entry for each page of this process, in `/proc/self/pagemap` (Linux,
//! Documentation/admin-guide/mm/pagemap.rst).
//!
//! `mincore` is faster and needs no descriptor, but counts the shared zero page that a first read maps, which
//! is not memory of the process. [`Entry::is_own`] does not count that page.

use crate::{Addr, PAGE, Span};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};

/// Entries read by one call: what fits on a small stack.
const ENTRIES: usize = 128;

/// The record of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// True if the page has contents, in memory or paged out.
    #[must_use]
    pub fn is_there(self) -> bool {
        self.0 & (0b11 << 62) != 0
    }

    /// True if the page is a file's, or shared memory.
    #[must_use]
    pub fn is_files(self) -> bool {
        self.0 & (1 << 61) != 0
    }

    /// True if the page is in memory, in a frame of this mapping alone.
    #[must_use]
    pub fn is_own(self) -> bool {
        self.0 & (1 << 63) != 0 && self.0 & (1 << 56) != 0
    }
}

/// The file, open.
#[derive(Debug)]
pub struct PageMap {
    file: OwnedFd,
}

impl PageMap {
    /// Opens it, under a number of the process's for as long as this lives.
    ///
    /// # Errors
    /// The kernel's: no `/proc`, no number left.
    pub fn open() -> Result<PageMap, Errno> {
        let file = rustix::fs::open(c"/proc/self/pagemap", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(PageMap { file })
    }

    /// Calls `visit` with the address and entry of each page of `span`, in order, until it returns false.
    ///
    /// # Errors
    /// The kernel's. `IO` where it has no entries for the span.
    pub fn for_each(&self, span: Span, mut visit: impl FnMut(Addr, Entry) -> bool) -> Result<(), Errno> {
        let mut bytes = [0u8; ENTRIES * 8];
        for piece in span.pieces(ENTRIES * PAGE) {
            let wanted = piece.page_count().get() * 8;
            let read = io::pread(&self.file, &mut bytes[..wanted], (piece.start.get() / PAGE * 8) as u64)?;
            if read != wanted {
                return Err(Errno::IO);
            }
            for (page, entry) in piece.pages().zip(bytes[..read].as_chunks().0) {
                if !visit(page, Entry(u64::from_ne_bytes(*entry))) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map;

    #[test]
    fn only_what_was_written_is_the_process_own() {
        const PAGES: usize = 3 * ENTRIES;
        let Ok(pages) = PageMap::open() else { return vellum_skip::skip("no /proc/self/pagemap") };
        let span = map::reserve_writable(PAGES * PAGE).unwrap();
        for page in span.pages().step_by(3) {
            // SAFETY: reserved by the line before the loop, and this test's alone.
            unsafe {
                page.ptr::<u8>().write_volatile(1);
                (page + PAGE).ptr::<u8>().read_volatile();
            }
        }
        let mut seen = 0;
        let looked = pages.for_each(span, |at, entry| {
            let page = (at - span.start) / PAGE;
            assert_eq!((page, entry.is_own()), (seen, page.is_multiple_of(3)));
            assert!(!entry.is_files() && entry.is_there() == (page % 3 != 2), "page {page}");
            seen += 1;
            true
        });
        assert_eq!((looked, seen), (Ok(()), PAGES));
        // SAFETY: the pages are this test's alone, and it is done with them.
        unsafe { map::release(span).unwrap() };
    }
}
