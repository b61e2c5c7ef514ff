//! Long arrays of zeros, resident only where they were written: the pager's records of pages and steps.
//!
//! They are separate mappings, never paged and never from `malloc`, so the evicting thread waits for no page.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, AtomicU64};
use rustix::io::Errno;
use vellum_sys::{PAGE, Span, map, round_up};

/// Types for which zero bytes are a value.
///
/// # Safety
/// They are.
pub(crate) unsafe trait Zero {}
// SAFETY: an integer.
unsafe impl Zero for u64 {}
// SAFETY: an integer.
unsafe impl Zero for AtomicU64 {}
// SAFETY: an integer.
unsafe impl Zero for AtomicU32 {}

#[derive(Debug)]
pub(crate) struct Table<T: Zero> {
    start: *mut T,
    len: usize,
}

// SAFETY: the table owns its memory as a vector does.
unsafe impl<T: Zero + Send> Send for Table<T> {}

impl<T: Zero> Table<T> {
    pub(crate) const fn empty() -> Table<T> {
        Table { start: core::ptr::NonNull::dangling().as_ptr(), len: 0 }
    }

    pub(crate) fn new(len: usize) -> Result<Table<T>, Errno> {
        if len == 0 {
            return Ok(Table::empty());
        }
        let memory = map::reserve_writable(round_up(len * size_of::<T>(), PAGE))?;
        Ok(Table { start: memory.start.ptr(), len })
    }
}

impl<T: Zero> Drop for Table<T> {
    fn drop(&mut self) {
        if self.len > 0 {
            let memory = Span::at(self.start, round_up(self.len * size_of::<T>(), PAGE));
            // SAFETY: the mapping is the table's own.
            let _ = unsafe { map::release(memory) };
        }
    }
}

impl<T: Zero> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `len` values lie there, as zero bytes are one; or the slice is empty.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T: Zero> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.len) }
    }
}
