//! Blocks mapped directly from the kernel (mmap): the baseline of the published experiments.

use std::ptr::NonNull;
use vellum_campaign::worker::WorkError;

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

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_campaign::worker::area::{PAGE, touch};

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
