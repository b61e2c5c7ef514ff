//! Checksums of pages, by which heaps that check themselves find writes that write tracking has missed.
//!
//! ```text
//! note    a page counts as unwritten from now on       its checksum is recorded
//! forget  it came to the heap, and counts as written   its checksum is dropped
//! agrees  by the record of writes, it was not written  so its checksum must be the same
//! ```
//!
//! A trace in slices is right if the record of writes is right, and if every scanned pointer is followed. The
//! second condition is checked for objects whose words are all pointers. A word of an untyped object may be a
//! leftover that seems to lead to a newer object: it was scanned when it led nowhere. For such objects only
//! the first condition can be checked, by this file.
//!
//! # Invariants
//! * The sum of a page of zeros is 0, and so is the sum of an unknown page: the kernel reports nothing of
//!   pages without frames.
//! * The code here takes no lock: other threads may have been stopped anywhere.

use crate::space::address_table::AddressTable;
use vellum_sys::{Addr, PAGE, Span, map};

/// The factor that mixes words: odd, with bits all over (2⁶⁴ divided by the golden ratio).
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// Sums of the pages of a space: the sum of the page at address 0, were it in the span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums(*mut u64);

impl Sums {
    /// Sums of no page yet; `None` if there is no address space for them. One account has sums at a time, and
    /// takes over `known`, the table of the account before.
    pub(crate) fn new(space: &AddressTable, known: Option<Sums>) -> Option<Sums> {
        let page = space.span.start.get() / PAGE;
        let table_bytes = space.span.page_count().get() * size_of::<u64>();
        if let Some(Sums(first)) = known {
            // SAFETY: the table has `table_bytes` bytes, and the sums of the previous account are not needed.
            return unsafe { map::flush(Span::at(first.wrapping_add(page), table_bytes)) }
                .is_ok()
                .then_some(Sums(first));
        }
        let table = map::reserve_writable(table_bytes).ok()?;
        Some(Sums(table.start.ptr::<u64>().wrapping_sub(page)))
    }

    fn entry(&self, page: Addr) -> *mut u64 {
        self.0.wrapping_add(page.get() / PAGE)
    }

    /// Records the contents of the pages of `span`.
    pub(crate) fn note(&self, span: Span) {
        for page in span.pages() {
            // SAFETY: the table has an entry for each page of the span; blocks lie in it, and their pages may
            // be read.
            unsafe { self.entry(page).write(sum(page)) };
        }
    }

    /// Drops the sums of the pages of `span`: their contents are unknown.
    pub(crate) fn forget(&self, span: Span) {
        // SAFETY: the table has an entry for each page of the span, and blocks lie in it.
        span.pages().for_each(|page| unsafe { self.entry(page).write(0) });
    }

    /// Returns whether the contents of the pages of `span` are those recorded.
    pub(crate) fn agrees(&self, span: Span) -> bool {
        // SAFETY: the table has an entry for each page of the span; blocks lie in it, and may be read.
        span.pages().all(|page| unsafe { self.entry(page).read() == sum(page) })
    }
}

/// # Safety
/// The page may be read.
unsafe fn sum(page: Addr) -> u64 {
    let words = page.ptr::<u64>();
    // SAFETY: the caller may read the page. Volatile: a thread may have been stopped in the middle of a
    // write.
    let word = |index: usize| unsafe { words.add(index).read_volatile() };
    (0..PAGE / size_of::<u64>()).fold(0, |sum, index| (sum ^ word(index)).wrapping_mul(MIX).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null;

    #[test]
    fn a_page_agrees_until_it_is_written() {
        const PAGES: usize = 8;
        let memory = map::reserve_writable(PAGES * PAGE).expect("memory");
        // SAFETY: within the range.
        let write = |page: usize, to: u8| unsafe {
            (memory.start + page * PAGE + 77).ptr::<u8>().write_volatile(to);
        };
        let sums = Sums::new(&AddressTable::over(&[null(); 2], memory.start), None).expect("address space");
        assert!(sums.agrees(memory), "of pages without frames nothing is known");
        write(3, 1);
        assert!(!sums.agrees(memory) && sums.agrees(memory.split_at(3 * PAGE)[0]));
        sums.note(memory);
        assert!(sums.agrees(memory));
        write(3, 2);
        assert!(!sums.agrees(memory) && sums.agrees(memory.split_at(4 * PAGE)[1]));
        write(3, 0);
        assert!(!sums.agrees(memory), "it held something else");
        sums.forget(memory);
        assert!(sums.agrees(memory), "the page holds zeros");
        // SAFETY: nobody uses the range any more.
        unsafe { map::release(memory) }.expect("a mapped range");
    }
}
