//! The thread-specific key (`pthread_key_create`) whose destructor reports that a thread ends.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

/// The key, plus 1; 0: not made yet.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Arranges that `ends` is called with `value`, which is not null, when the calling thread ends. Every call
/// passes the same function `ends`. A failure is not reported: the end of the thread goes unnoticed then.
pub(crate) fn set(ends: extern "C" fn(*mut c_void), value: *const c_void) {
    let mut key = KEY.load(Ordering::Acquire);
    if key == 0 {
        let mut made = 0;
        // SAFETY: `made` lives here, and the destructor may be called with any value of the key.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(ends)) } != 0 {
            return;
        }
        match KEY.compare_exchange(0, made + 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => key = made + 1,
            Err(theirs) => {
                // SAFETY: the key was made above and nobody knows it.
                unsafe { libc::pthread_key_delete(made) };
                key = theirs;
            }
        }
    }
    // SAFETY: the key exists, as it is not 0, and is never deleted.
    unsafe { libc::pthread_setspecific(key - 1, value) };
}
