//! Sets the calling thread's `errno` to `ENOMEM` when a request for memory fails.

use core::ptr::null_mut;

/// Sets `errno` to `ENOMEM`; null.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory() -> *mut u8 {
    set_errno(libc::ENOMEM);
    null_mut()
}

/// The thread's `errno`.
pub fn errno() -> i32 {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's `errno`.
pub fn set_errno(value: i32) {
    // SAFETY: the C library's errno of this thread.
    unsafe { *libc::__errno_location() = value };
}
