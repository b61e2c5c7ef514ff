//! `realloc`.
//!
//! A small block stays where it is while its class fits and it is not mostly waste; otherwise it is copied. A
//! large block is the page layer's to grow, shrink, move by page tables or copy. Between the two there is one
//! copy.

use crate::alloc::{check_live, free, malloc};
use crate::class::SMALL_MAX;
use crate::errno::out_of_memory;
use crate::mode;
use crate::space::Space;
use crate::{foreign, harden, large};
use core::sync::atomic::Ordering::Relaxed;

/// A small block is left in place while at least this fraction of it stays in use.
const KEEP_DIVISOR: usize = 2;

/// Whether a small block of `old` bytes stays where it is when it is to have `bytes`.
#[inline]
pub(crate) fn stays(old: usize, bytes: usize) -> bool {
    bytes <= old && bytes >= old / KEEP_DIVISOR
}

/// Resizes the block at `address` to `bytes` bytes. Null leaves it as it was, except that `bytes == 0` frees
/// it.
///
/// # Safety
/// `address` is null or a block in use; unless the result is null, only the result may be used afterwards.
#[inline]
pub unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    if address.is_null() {
        return malloc(bytes);
    }
    if mode::is_special() && mode::is_hardened() {
        // SAFETY: the block is in use, by this function's condition, and not null.
        return unsafe { harden::realloc(address, bytes) };
    }
    let Some(slab) = Space::get().slab_of(address) else {
        // SAFETY: passed on.
        return unsafe { foreign::realloc(address, bytes) };
    };
    if bytes == 0 {
        // SAFETY: the block is given up, as the C library does it.
        unsafe { free(address) };
        return core::ptr::null_mut();
    }
    let old = if slab.owner.load(Relaxed).is_null() {
        let old = large::usable_size("realloc", address);
        if bytes > SMALL_MAX {
            // SAFETY: the block is large and in use.
            return unsafe { large::resize(address, old, bytes) };
        }
        old
    } else {
        // SAFETY: the slab is the block's.
        unsafe { check_live("realloc", slab, address) };
        let old = slab.bytes.get() as usize;
        if stays(old, bytes) {
            if let Some(hooks) = mode::profiled() {
                (hooks.resized_small)(slab.owner.load(Relaxed).addr(), address, [old, bytes]);
            }
            return address;
        }
        old
    };
    let new = malloc(bytes);
    if !new.is_null() {
        // SAFETY: two different blocks, of at least the shorter length; the old one is given up then.
        unsafe {
            new.copy_from_nonoverlapping(address, old.min(bytes));
            free(address);
        }
    }
    new
}

/// Resizes to `count` times `bytes` bytes, or fails if that overflows.
///
/// # Safety
/// As for [`realloc`].
pub unsafe fn reallocarray(address: *mut u8, count: usize, bytes: usize) -> *mut u8 {
    match count.checked_mul(bytes) {
        // SAFETY: passed on.
        Some(total) => unsafe { realloc(address, total) },
        None => out_of_memory(),
    }
}
