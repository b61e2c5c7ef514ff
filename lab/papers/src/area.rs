//! Memory mapped directly from the kernel, for blocks and tables of the experiments.
//!
//! The published experiments measure the system's page allocator, so some blocks must come directly from
//! it. The tables of a worker must not come from the allocator it measures, nor cause page faults in a
//! timed part.

use crate::params::WorkError;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

pub(crate) const PAGE: usize = vellum_pages::PAGE;
/// Bytes of a huge page.
pub(crate) const HUGE: usize = vellum_pages::HUGE;

/// How a mapping gets its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frames {
    /// By a fault on each page's first touch.
    Faults,
    /// All at once, before the call returns.
    Populated,
    /// By faults on huge pages; the block starts at a multiple of one.
    Huge,
}

/// A private anonymous mapping.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// The start and length of the whole mapping: aligned blocks have slack around them.
    whole: (*mut u8, usize),
}

impl Mapping {
    pub(crate) fn new(bytes: usize, frames: Frames) -> Result<Self, WorkError> {
        let slack = if frames == Frames::Huge { HUGE } else { 0 };
        let populate = if frames == Frames::Populated { libc::MAP_POPULATE } else { 0 };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | populate;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let length = bytes + slack;
        // SAFETY: a new mapping at an address that the kernel chooses replaces no existing one.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        let failed = WorkError::Memory { call: "mmap", bytes: length };
        if at == libc::MAP_FAILED {
            return Err(failed);
        }
        let whole = (at.cast::<u8>(), length);
        let start = if slack > 0 { whole.0.wrapping_add(whole.0.align_offset(HUGE)) } else { whole.0 };
        if frames == Frames::Huge {
            // SAFETY: advice on a part of the new mapping. If the kernel refuses it, base pages are used.
            unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        }
        Ok(Self { start: NonNull::new(start).ok_or(failed)?, bytes, whole })
    }

    /// The same without huge pages, even if the system gives them to all processes.
    pub(crate) fn of_base_pages(bytes: usize) -> Result<Self, WorkError> {
        let mapping = Self::new(bytes, Frames::Faults)?;
        // SAFETY: advice on the whole new mapping, which no other code uses yet.
        unsafe { libc::madvise(mapping.whole.0.cast(), mapping.whole.1, libc::MADV_NOHUGEPAGE) };
        Ok(mapping)
    }

    /// The address of the block.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Makes the block longer or shorter, moving it if need be.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), WorkError> {
        // SAFETY: `self` owns the mapping, and the new mapping replaces it in `self` below.
        let at = unsafe { libc::mremap(self.whole.0.cast(), self.whole.1, bytes, libc::MREMAP_MAYMOVE) };
        let failed = WorkError::Memory { call: "mremap", bytes };
        if at == libc::MAP_FAILED {
            return Err(failed);
        }
        self.start = NonNull::new(at.cast()).ok_or(failed)?;
        (self.bytes, self.whole) = (bytes, (at.cast(), bytes));
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and is dropped once. A failure would only leak the mapping.
        unsafe { libc::munmap(self.whole.0.cast(), self.whole.1) };
    }
}

/// Writes one byte of every page, as the papers' experiments do.
///
/// # Safety
/// The caller may write `bytes` bytes from `start`.
#[inline(always)]
pub(crate) unsafe fn touch(start: *mut u8, bytes: usize) {
    let mut at = 0;
    while at < bytes {
        // SAFETY: within the bytes that the caller may write, by this function's `# Safety`. The write is
        // volatile since the compiler would otherwise remove it.
        unsafe { start.add(at).write_volatile(1) };
        at += PAGE;
    }
}

/// A zeroed table of numbers or addresses outside every malloc, its frames present.
pub(crate) struct Slots<T> {
    mapping: Mapping,
    len: usize,
    kind: std::marker::PhantomData<T>,
}

/// Types for which all-zero bytes are a valid value.
///
/// # Safety
/// Zero bytes must be a valid value, which needs no drop.
pub(crate) unsafe trait Zero: Copy {}
// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zero for u64 {}
// SAFETY: all-zero bytes are a null pointer.
unsafe impl Zero for *mut u8 {}
// SAFETY: both parts are valid when all bytes are zero.
unsafe impl<A: Zero, B: Zero> Zero for (A, B) {}
// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zero for usize {}

impl<T: Zero> Slots<T> {
    pub(crate) fn new(len: usize) -> Result<Self, WorkError> {
        let bytes = (len * size_of::<T>()).max(1);
        Ok(Self { mapping: Mapping::new(bytes, Frames::Populated)?, len, kind: std::marker::PhantomData })
    }
}

impl<T: Zero> Deref for Slots<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping contains `len` values, zero at first, page-aligned, and lives as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.mapping.start().cast(), self.len) }
    }
}

impl<T: Zero> DerefMut for Slots<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping contains `len` valid values and lives as long as `self`, which is borrowed
        // exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start().cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_aligned_and_keep_contents_when_resized() {
        for frames in [Frames::Faults, Frames::Populated, Frames::Huge] {
            let mapping = Mapping::new(3 * HUGE, frames).unwrap();
            assert!(frames != Frames::Huge || mapping.start().addr().is_multiple_of(HUGE));
            // SAFETY: the mapping has `3 * HUGE` bytes, which no other code uses.
            unsafe { touch(mapping.start(), 3 * HUGE) };
        }
        let mut small = Mapping::of_base_pages(PAGE).unwrap();
        // SAFETY: the first byte of a mapping that this test owns.
        unsafe { small.start().write(7) };
        small.resize(64 * PAGE).unwrap();
        // SAFETY: the first byte of a mapping that this test owns; the move has kept its contents.
        assert_eq!(unsafe { small.start().read() }, 7);
        assert!(matches!(Mapping::new(usize::MAX / 2, Frames::Faults), Err(WorkError::Memory { .. })));
    }
}
