//! Ends the process after a fatal error, which a procedure of the program may report (`GC_abort_func`).

use crate::say::{bytes, line};
use crate::variables;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::AtomicPtr;

/// `GC_abort_func`.
pub type Abort = unsafe extern "C" fn(message: *const c_char);

/// `GC_abort_func`: called with the reason before the process ends.
#[unsafe(no_mangle)]
pub static GC_on_abort: AtomicPtr<c_void> = AtomicPtr::new(aborts as *mut c_void);

variables::procedures! { Abort, GC_on_abort: GC_set_abort_func, GC_get_abort_func; }

/// Ends the process, which would otherwise continue with lost or half-scanned objects.
#[cold]
pub(crate) fn give_up(what: &'static CStr) -> ! {
    // SAFETY: gc.h gives the variable this type.
    match unsafe { variables::function::<Abort>(&GC_on_abort) } {
        // SAFETY: an `Abort` accepts a C string.
        Some(function) => unsafe { function(what.as_ptr()) },
        None => line(&[what.to_bytes()]),
    }
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// The default of [`GC_on_abort`].
extern "C" fn aborts(message: *const c_char) {
    if !message.is_null() {
        line(&[bytes(message)]);
    }
}
