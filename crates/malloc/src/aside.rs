//! Standing aside: leaving the program's memory to the allocator it would have had without Vellum.
//!
//! Decided once, early, by the runtime: when the user asks, when the program brings its own allocator, or when a memory
//! checker watches it. From then on threads get no heap, so that every request takes the slow path, which
//! forwards it. Blocks handed out before stay Vellum's, and are told apart by their address.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{c_int, c_void, size_t};

/// The functions of the next allocator.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the C function of its name")]
pub struct Next {
    pub malloc: unsafe extern "C" fn(size_t) -> *mut c_void,
    pub calloc: unsafe extern "C" fn(size_t, size_t) -> *mut c_void,
    pub realloc: unsafe extern "C" fn(*mut c_void, size_t) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub posix_memalign: unsafe extern "C" fn(*mut *mut c_void, size_t, size_t) -> c_int,
    pub malloc_usable_size: unsafe extern "C" fn(*mut c_void) -> size_t,
}

static NEXT: AtomicPtr<Next> = AtomicPtr::new(null_mut());

/// Forwards every further request to `next`.
pub fn stand_aside(next: &'static Next) {
    NEXT.store(core::ptr::from_ref(next).cast_mut(), Ordering::Release);
    crate::registry::detach();
}

/// Whether Vellum stands aside.
pub fn is_aside() -> bool {
    !NEXT.load(Ordering::Relaxed).is_null()
}

/// The next allocator, if Vellum stands aside.
pub(crate) fn next() -> Option<&'static Next> {
    // SAFETY: set once, to a static.
    unsafe { NEXT.load(Ordering::Acquire).as_ref() }
}
