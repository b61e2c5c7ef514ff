//! Ending the process after an error that cannot be handled, by a procedure that the program may replace.

use crate::say::{bytes, line};
use crate::variables;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Release};

/// `GC_abort_func`.
pub type Abort = unsafe extern "C" fn(message: *const c_char);

/// `GC_abort_func`: called with a word why before the process ends.
#[unsafe(no_mangle)]
pub static GC_on_abort: AtomicPtr<c_void> = AtomicPtr::new(aborts as *mut c_void);

/// Sets [`GC_on_abort`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_abort_func(procedure: Option<Abort>) {
    GC_on_abort.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Release);
}

/// What [`GC_on_abort`] is.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_abort_func() -> Option<Abort> {
    // SAFETY: it holds what is of this type.
    unsafe { variables::function::<Abort>(&GC_on_abort) }
}

/// Ends the process: the program would go on with objects that are lost, or half scanned.
#[cold]
pub(crate) fn give_up(what: &'static CStr) -> ! {
    // SAFETY: the variable holds a function of this type.
    match unsafe { variables::function::<Abort>(&GC_on_abort) } {
        // SAFETY: the program's own function, or the one below.
        Some(function) => unsafe { function(what.as_ptr()) },
        None => line(&[what.to_bytes()]),
    }
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// [`GC_on_abort`] as it is at first.
extern "C" fn aborts(message: *const c_char) {
    if !message.is_null() {
        line(&[bytes(message)]);
    }
}
