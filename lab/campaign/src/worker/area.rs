//! Arrays in separate mappings, outside every malloc.
//!
//! The tables of a workload (live blocks, the duration of each step) must not come from the allocator
//! under test. They must not fault in a timed loop. They are therefore mapped beforehand, and all their
//! pages made present.

use std::ops::{Deref, DerefMut};

/// Distance between touched bytes.
pub const PAGE: usize = 4096;

/// Writes one byte in every page of a block.
///
/// # Safety
/// The caller may write `bytes` bytes from `block`.
#[inline(always)]
pub unsafe fn touch(block: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: within the bytes that the caller may write, by this function's `# Safety`. The write is
        // volatile since the compiler would otherwise remove it.
        unsafe { block.add(at).write_volatile(1) };
    }
}

/// Types for which all-zero bytes are a valid value and that need no drop.
///
/// # Safety
/// The implementor must be valid when every byte of it is zero.
pub unsafe trait Zeroed: Copy {}

// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zeroed for u8 {}
// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zeroed for u32 {}
// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zeroed for u64 {}
// SAFETY: an integer is valid when all bytes are zero.
unsafe impl Zeroed for usize {}
// SAFETY: all-zero bytes are a null pointer.
unsafe impl<T> Zeroed for *mut T {}
// SAFETY: all-zero bytes are a block with a null pointer and a size of zero.
unsafe impl Zeroed for super::raw::Block {}

// SAFETY: both parts are valid when all bytes are zero.
unsafe impl<A: Zeroed, B: Zeroed> Zeroed for (A, B) {}

/// A zeroed slice in its own mapping.
#[derive(Debug)]
pub struct Area<T: Zeroed> {
    at: *mut T,
    len: usize,
}

// SAFETY: the area owns its mapping, and no other value refers to it.
unsafe impl<T: Zeroed + Send> Send for Area<T> {}
// SAFETY: a shared area is only read.
unsafe impl<T: Zeroed + Sync> Sync for Area<T> {}

impl<T: Zeroed> Area<T> {
    /// `len` zeroed items, their frames present.
    ///
    /// # Panics
    /// Without memory: that ends the worker.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self::mapped(len, libc::MAP_POPULATE)
    }

    /// `len` zeroed items, whose pages fault in at the first touch.
    #[must_use]
    pub fn untouched(len: usize) -> Self {
        Self::mapped(len, 0)
    }

    fn mapped(len: usize, flags: libc::c_int) -> Self {
        let bytes = (len * size_of::<T>()).max(1);
        // SAFETY: a fresh private anonymous mapping at an address that the kernel chooses.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | flags,
                -1,
                0,
            )
        };
        assert!(
            at != libc::MAP_FAILED,
            "mapping {bytes} bytes for a workload's table failed: not enough memory"
        );
        Self { at: at.cast(), len }
    }
}

impl<T: Zeroed> Deref for Area<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` items, zeroed at first, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl<T: Zeroed> DerefMut for Area<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the mapping holds `len` items as long as `self` lives, and the exclusive borrow allows no
        // other access.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }
}

impl<T: Zeroed> Drop for Area<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`; no reference into it outlives the area. A failure only leaks it.
        unsafe { libc::munmap(self.at.cast(), (self.len * size_of::<T>()).max(1)) };
    }
}
