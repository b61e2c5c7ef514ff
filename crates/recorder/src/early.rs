//! A few kilobytes for requests while the allocator's functions are looked up (`next`). These requests come
//! from the loader, which writes a message when a look-up fails. Blocks from here are never reused.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const BYTES: usize = 16 << 10;
const ALIGN: usize = 16;

#[repr(align(16))]
struct Space(UnsafeCell<[u8; BYTES]>);

// SAFETY: `USED` grows atomically, so each part is returned to one caller only.
unsafe impl Sync for Space {}

static SPACE: Space = Space(UnsafeCell::new([0; BYTES]));
static USED: AtomicUsize = AtomicUsize::new(0);

/// Zeroed memory, or null when the space is used up.
pub(crate) fn alloc(bytes: usize) -> *mut c_void {
    let whole = bytes.max(1).saturating_add(ALIGN - 1) & !(ALIGN - 1);
    if whole > BYTES {
        return null_mut();
    }
    let at = USED.fetch_add(whole, Relaxed);
    if at + whole > BYTES {
        USED.fetch_sub(whole, Relaxed);
        return null_mut();
    }
    // SAFETY: `at + whole` was checked above to be within the space.
    unsafe { SPACE.0.get().cast::<u8>().add(at) }.cast()
}

/// Returns whether `block` is from this space.
#[inline(always)]
pub(crate) fn owns(block: *const c_void) -> bool {
    (block as usize).wrapping_sub(SPACE.0.get() as usize) < BYTES
}

/// Bytes from `block` to the end of the space: an upper bound of the block's size.
pub(crate) fn bytes_from(block: *const c_void) -> usize {
    BYTES - (block as usize - SPACE.0.get() as usize)
}
