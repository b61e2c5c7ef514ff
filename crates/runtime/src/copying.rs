//! The functions by which compiled code copies, clears and compares memory (`memcpy` and others).
//!
//! An import of glibc's `memcpy` would crash the program at start. glibc's is an indirect function
//! (`STT_GNU_IFUNC`): when this library is relocated, code of glibc runs and selects a version for the
//! processor. That code must be relocated first. But this library depends on no C library, because it serves
//! every one. The loader may therefore relocate this library before glibc.
//!
//! So the functions here jump through a word, which leads to a plain loop until [`find`] has stored the C
//! library's function. The loops are assembly, because compilers turn loops into calls of these functions.

use crate::{arch, attach};
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

unsafe extern "C" {
    safe fn vellum_plain_copy();
    safe fn vellum_plain_move();
    safe fn vellum_plain_set();
    safe fn vellum_plain_differs();
    safe fn vellum_plain_length();
}

/// The target of each name's jump.
static MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_copy as *mut c_void);
static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_move as *mut c_void);
static MEMSET: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_set as *mut c_void);
static BCMP: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_differs as *mut c_void);
static STRLEN: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_length as *mut c_void);

/// Looks up the C library's functions. Functions that it lacks remain plain loops.
pub(crate) fn find() {
    let all: [(&CStr, &AtomicPtr<c_void>); 5] = [
        (c"memcpy", &MEMCPY),
        (c"memmove", &MEMMOVE),
        (c"memset", &MEMSET),
        (c"bcmp", &BCMP),
        (c"strlen", &STRLEN),
    ];
    for (name, place) in all {
        if let Some(found) = attach::c_librarys(name) {
            place.store(found.cast_mut(), Relaxed);
        }
    }
}

arch::copying!(MEMCPY, MEMMOVE, MEMSET, BCMP, STRLEN);
