//! What the kernel has of a page, by `/proc/self/pagemap` (Linux, Documentation/admin-guide/mm/pagemap.rst).
//!
//! `mincore` answers faster and without a descriptor, but counts the shared page of zeros that a first read
//! maps, which is no memory of the process. Here a page is the process's own only if it is a frame that
//! nothing else maps.

use crate::PAGE;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};

/// Entries read by one call: what fits on a small stack.
const ENTRIES: usize = 128;

/// What is known of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Whether the page has contents, in memory or paged out.
    #[must_use]
    pub fn is_there(self) -> bool {
        self.0 & (0b11 << 62) != 0
    }

    /// Whether the page is a file's, or shared memory.
    #[must_use]
    pub fn is_files(self) -> bool {
        self.0 & (1 << 61) != 0
    }

    /// Whether the page is in memory, in a frame that this mapping alone has.
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

    /// Calls `look` with each page's address and entry, in order, until it answers false.
    ///
    /// # Errors
    /// The kernel's. `IO` where it knows nothing of the range.
    pub fn look(
        &self,
        from: usize,
        end: usize,
        mut look: impl FnMut(usize, Entry) -> bool,
    ) -> Result<(), Errno> {
        let mut bytes = [0u8; ENTRIES * 8];
        let mut at = from;
        while at < end {
            let wanted = ((end - at) / PAGE).min(ENTRIES) * 8;
            let read = io::pread(&self.file, &mut bytes[..wanted], (at / PAGE * 8) as u64)?;
            if read != wanted {
                return Err(Errno::IO);
            }
            for entry in bytes[..read].as_chunks().0 {
                if !look(at, Entry(u64::from_ne_bytes(*entry))) {
                    return Ok(());
                }
                at += PAGE;
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
        let start = map::reserve_readable(PAGES * PAGE).unwrap();
        // SAFETY: reserved a moment ago, and this test's alone.
        unsafe {
            map::make_writable(start, PAGES * PAGE).unwrap();
            for page in (0..PAGES).step_by(3) {
                ((start + page * PAGE) as *mut u8).write_volatile(1);
                ((start + (page + 1) * PAGE) as *const u8).read_volatile();
            }
        }
        let mut seen = 0;
        let looked = pages.look(start, start + PAGES * PAGE, |at, entry| {
            let page = (at - start) / PAGE;
            assert_eq!((page, entry.is_own()), (seen, page.is_multiple_of(3)));
            assert!(!entry.is_files() && entry.is_there() == (page % 3 != 2), "page {page}");
            seen += 1;
            true
        });
        assert_eq!((looked, seen), (Ok(()), PAGES));
        // SAFETY: the pages are this test's alone, and it has looked at them.
        unsafe { map::release(start, PAGES * PAGE).unwrap() };
    }
}
