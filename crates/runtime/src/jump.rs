//! Functions of the C library with something in front that matters only while big blocks are guarded: a
//! comparison and a jump otherwise.
//!
//! The C library's own function is looked up by the first call (`loaded`: without a lock, as that call may be
//! made in a signal handler, or in the child of a `fork` that happened while somebody else was loading a
//! library).

use crate::{attach, loaded};
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use vellum_malloc::set_errno;

/// Where the C library has no such function.
extern "C" fn nothing() -> isize {
    set_errno(libc::ENOSYS);
    -1
}

/// The C library's `name`, kept in `found`.
pub(crate) fn find(name: &CStr, found: &AtomicPtr<c_void>) -> *const c_void {
    let known = found.load(Relaxed);
    if !known.is_null() {
        return known;
    }
    let function =
        loaded::next(name).or_else(|| attach::c_librarys(name)).unwrap_or(nothing as *const c_void);
    found.store(function.cast_mut(), Relaxed);
    function
}

/// Defines the exported function `$name`: a jump to the C library's, or, if big blocks are guarded,
/// to `$slow`. `$found` is where the C library's is kept, `$look_up` finds it.
macro_rules! jump {
    ($name:ident, $slow:path, $found:path, $look_up:path) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            crate::arch::jump!(vellum_malloc::paged::GUARDED, $slow, $found, $look_up)
        }
    };
}
pub(crate) use jump;

/// Defines each function as a jump to the C library's, or, if big blocks are guarded, to the one in
/// `guarded`; and in `plain` the C library's own as something to be called.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty = $text:literal;)*) => {
        /// The C library's functions, as far as they have been looked up.
        mod found {
            $(
                #[allow(non_upper_case_globals, reason = "named after its function")]
                pub(super) static $name: core::sync::atomic::AtomicPtr<core::ffi::c_void> =
                    core::sync::atomic::AtomicPtr::new(core::ptr::null_mut());
            )*
        }
        mod look_up {
            use super::found;
            $(
                pub(super) extern "C" fn $name() -> *const core::ffi::c_void {
                    crate::jump::find($text, &found::$name)
                }
            )*
        }
        mod plain {
            use super::*;
            $(
                /// # Safety
                /// As for the C library's.
                pub(super) unsafe fn $name($($argument: $kind),*) -> $result {
                    type Function = unsafe extern "C" fn($($kind),*) -> $result;
                    // SAFETY: the C library's function of this name has this signature.
                    let function = unsafe { core::mem::transmute::<*const core::ffi::c_void, Function>(look_up::$name()) };
                    // SAFETY: by this function's condition.
                    unsafe { function($($argument),*) }
                }
            )*
        }
        $(
            crate::jump::jump!($name, guarded::$name, found::$name, look_up::$name);
        )*
    };
}
pub(crate) use functions;
