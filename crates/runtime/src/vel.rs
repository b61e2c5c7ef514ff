//! Vellum's own C interface (`include/vellum.h`): operations that the C library's interface lacks.

use core::ffi::{c_int, c_void};
use core::ptr::{NonNull, null_mut};
use vellum_malloc as front;
use vellum_pages::{PAGE, Pages, Request, Severity};

/// # Safety
/// `base` is null and `count` 0, or `count` values lie at `base` during the call.
unsafe fn slice<'a, T>(base: *const T, count: usize) -> &'a [T] {
    if base.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: `count` values lie at `base`, by the `# Safety` section; null was excluded.
    unsafe { core::slice::from_raw_parts(base, count) }
}

/// # Safety
/// The conditions of [`slice()`] apply, and no other code uses the values during the call.
unsafe fn slice_mut<'a, T>(base: *mut T, count: usize) -> &'a mut [T] {
    if base.is_null() || count == 0 {
        return &mut [];
    }
    // SAFETY: `count` unshared values lie at `base`, by the `# Safety` section; null was excluded.
    unsafe { core::slice::from_raw_parts_mut(base, count) }
}

/// Allocates `count` blocks of `bytes` bytes.
///
/// # Safety
/// `blocks` has room for `count` addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_malloc_batch(bytes: usize, count: usize, blocks: *mut *mut c_void) -> usize {
    // SAFETY: `blocks` has room for `count` addresses, by the `# Safety` section.
    front::malloc_batch(bytes, unsafe { slice_mut(blocks.cast(), count) })
}

/// Allocates `count` blocks of the given sizes.
///
/// # Safety
/// `sizes` holds `count` sizes, `blocks` has room for `count` addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_malloc_sizes(
    sizes: *const usize,
    count: usize,
    blocks: *mut *mut c_void,
) -> usize {
    // SAFETY: `sizes` has `count` sizes and `blocks` room for `count` addresses, by the `# Safety` section.
    unsafe { front::malloc_sizes(slice(sizes, count), slice_mut(blocks.cast(), count)) }
}

/// Frees `count` blocks.
///
/// # Safety
/// Each is null or may be freed, and none occurs twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_free_batch(blocks: *const *mut c_void, count: usize) {
    // SAFETY: `blocks` holds `count` blocks that may be freed, by the `# Safety` section.
    unsafe { front::free_batch(slice(blocks.cast(), count)) }
}

/// Resizes `count` blocks to the given sizes.
///
/// # Safety
/// The conditions of `realloc` apply to each block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_realloc_batch(
    blocks: *mut *mut c_void,
    sizes: *const usize,
    count: usize,
) -> usize {
    // SAFETY: each of the `count` blocks may be reallocated, by the `# Safety` section.
    unsafe { front::realloc_batch(slice_mut(blocks.cast(), count), slice(sizes, count)) }
}

/// Moves a large block by moving its page tables.
///
/// # Safety
/// The conditions of `realloc` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_relocate(block: *mut c_void, align: usize) -> *mut c_void {
    // SAFETY: the block is not used at its old address any more, by the `# Safety` section.
    unsafe { front::relocate(block.cast(), align) }.cast()
}

/// Exchanges the contents of two large blocks by exchanging their page tables.
///
/// # Safety
/// Both blocks are in use by the caller alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_swap(a: *mut c_void, b: *mut c_void) -> c_int {
    // SAFETY: only the caller uses both blocks, by the `# Safety` section.
    if unsafe { front::swap(a.cast(), b.cast()) } { 0 } else { -1 }
}

/// Allocates a block of whole pages.
#[unsafe(no_mangle)]
pub extern "C" fn vel_pages_alloc(bytes: usize, align: usize, zero: c_int) -> *mut c_void {
    let request = Request { bytes, align: align.max(PAGE), zero: zero != 0 };
    match Pages::global().alloc(request) {
        Ok(extent) => extent.addr.as_ptr().cast(),
        Err(_) => {
            front::set_errno(libc::ENOMEM);
            null_mut()
        }
    }
}

/// Frees a block of whole pages.
///
/// # Safety
/// The block is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_pages_free(block: *mut c_void) -> c_int {
    let Some(block) = NonNull::new(block.cast()) else { return 0 };
    // SAFETY: the block is not used any more, by the `# Safety` section.
    if unsafe { Pages::global().free(block) }.is_ok() { 0 } else { -1 }
}

/// Resizes a block of whole pages, moving it if necessary and if `may_move`.
///
/// # Safety
/// The conditions of `realloc` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vel_pages_resize(block: *mut c_void, bytes: usize, may_move: c_int) -> *mut c_void {
    let pages = Pages::global();
    let resized = NonNull::new(block.cast()).and_then(|block| {
        // SAFETY: the block is not used at its old address any more, by the `# Safety` section.
        unsafe {
            if may_move != 0 { pages.resize(block, bytes).ok() } else { pages.resize_in_place(block, bytes) }
        }
    });
    match resized {
        Some(extent) => extent.addr.as_ptr().cast(),
        None => {
            front::set_errno(libc::ENOMEM);
            null_mut()
        }
    }
}

/// Returns unused memory to the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn vel_trim(severity: c_int) -> usize {
    match severity {
        0 => Pages::global().trim(Severity::Mark),
        1 => Pages::global().trim(Severity::Flush),
        _ => front::trim(),
    }
}
