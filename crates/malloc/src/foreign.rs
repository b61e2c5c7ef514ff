//! Addresses outside Vellum's span: paged blocks, another allocator's, or nobody's.
//!
//! Those of others reach us in two ways. Vellum passes requests through and everything but its own early
//! blocks is the next allocator's. Or a library loaded with `RTLD_DEEPBIND` took its block from the C
//! library's `malloc` directly and hands it to code that frees it with ours; such blocks lie in the C
//! library's own heap, between the program's break at start and now, and go back there. Anything else is
//! refused.

use crate::{misuse, paged, passthrough};
use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use libc::c_void;
use vellum_pages::Misuse;

static BREAK_START: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Notes where the C library's heap begins.
pub(crate) fn note_break() {
    BREAK_START.store(program_break(), Relaxed);
}

fn program_break() -> usize {
    // SAFETY: asks for the break without moving it.
    unsafe { libc::sbrk(0) as usize }
}

/// The C library's own function `name`, if `address` lies in its heap.
fn c_library(name: &CStr, address: *mut u8) -> Option<*mut c_void> {
    if !(BREAK_START.load(Relaxed)..program_break()).contains(&(address as usize)) {
        return None;
    }
    // SAFETY: plain call with a C string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// Frees a block that is not Vellum's.
///
/// # Safety
/// Nobody uses the block any more.
pub(crate) unsafe fn free(address: *mut u8) {
    if paged::owns(address) {
        // SAFETY: passed on.
        return unsafe { paged::free(address) };
    }
    let free = match (passthrough::next(), c_library(c"__libc_free", address)) {
        (Some(next), _) => next.free,
        // SAFETY: the signature of the function so called.
        (None, Some(free)) => unsafe { transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(free) },
        (None, None) => misuse::refuse("free", address, Misuse::NotOurs),
    };
    // SAFETY: the block is that allocator's, as far as its addresses show.
    unsafe { free(address.cast()) };
}

/// The usable size of a block that is not Vellum's.
///
/// # Safety
/// The block is in use.
pub(crate) unsafe fn usable_size(address: *mut u8) -> usize {
    if paged::owns(address) {
        return paged::usable_size("malloc_usable_size", address);
    }
    let usable_size = match (passthrough::next(), c_library(c"malloc_usable_size", address)) {
        (Some(next), _) => next.malloc_usable_size,
        // SAFETY: the signature of the function so called.
        (None, Some(size)) => unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> usize>(size)
        },
        (None, None) => misuse::refuse("malloc_usable_size", address, Misuse::NotOurs),
    };
    // SAFETY: as for `free`.
    unsafe { usable_size(address.cast()) }
}

/// Resizes a block that is not Vellum's, with its own allocator.
///
/// # Safety
/// The block is in use, and given up if the result is not null.
pub(crate) unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    if paged::owns(address) {
        // SAFETY: passed on.
        return unsafe { paged::realloc(address, bytes) };
    }
    let realloc = match (passthrough::next(), c_library(c"__libc_realloc", address)) {
        (Some(next), _) => next.realloc,
        // SAFETY: the signature of the function so called.
        (None, Some(realloc)) => unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(realloc)
        },
        (None, None) => misuse::refuse("realloc", address, Misuse::NotOurs),
    };
    // SAFETY: as for `free`.
    unsafe { realloc(address.cast(), bytes) }.cast()
}
