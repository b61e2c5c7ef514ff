//! The functions that the compiler calls for copying, clearing and comparing memory: the C library's, but not
//! by name.
//!
//! glibc chooses these for the processor when a library that names them is loaded (`STT_GNU_IFUNC`), by code
//! that must have been relocated before. A library that names no C library, as this one is one for all of
//! them, may come first in that order, and the program would end as it is loaded. So the names are this
//! library's own, and known to nobody else: a jump through a word that leads to loops as the processor has
//! them, until [`find`] has looked up the C library's.
//!
//! In assembly: the compiler makes calls of these functions of such loops.

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

/// Where each name jumps to.
static MEMCPY: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_copy as *mut c_void);
static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_move as *mut c_void);
static MEMSET: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_set as *mut c_void);
static BCMP: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_differs as *mut c_void);
static STRLEN: AtomicPtr<c_void> = AtomicPtr::new(vellum_plain_length as *mut c_void);

/// Looks up the C library's functions. What it does not have stays as it is.
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
