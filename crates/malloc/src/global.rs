//! Vellum as the global allocator of a Rust program.

use crate::class::GRANULE;
use crate::resize::move_to;
use crate::{aligned, calloc, free, malloc, realloc};
use core::alloc::{GlobalAlloc, Layout};

/// Vellum's malloc as a Rust global allocator.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: vellum_malloc::Vellum = vellum_malloc::Vellum;
///
/// # fn main() {
/// let words: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
/// assert_eq!(words[999], "999");
/// # }
/// ```
///
/// A program that forks without `exec` while it has threads must call [`fork_prepare`](crate::fork_prepare),
/// [`fork_parent`](crate::fork_parent) and [`fork_child`](crate::fork_child) around the fork. Before a
/// program gives up privileges (`setuid`), it must end the helper thread, which would keep them:
/// `vellum_pages::Pages::bar_helper`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vellum;

// SAFETY: blocks have the size and alignment, are distinct while in use, and keep their contents when
// resized.
unsafe impl GlobalAlloc for Vellum {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= GRANULE { malloc(layout.size()) } else { aligned(layout.align(), layout.size()) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= GRANULE {
            return calloc(1, layout.size());
        }
        let block = aligned(layout.align(), layout.size());
        if !block.is_null() {
            // SAFETY: the block has at least that many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the trait's caller gives up a block that this allocator returned.
        unsafe { free(block) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if layout.align() <= GRANULE {
            // SAFETY: this allocator returned the block, which is in use; the trait excludes a size of zero.
            return unsafe { realloc(block, bytes) };
        }
        // SAFETY: the caller gives the block up; a new one is at least as long as the copy.
        unsafe { move_to(aligned(layout.align(), bytes), block, layout.size().min(bytes)) }
    }
}
