//! Addresses outside Vellum's span: paged blocks, another allocator's, or nobody's.
//!
//! Those of others reach us in two ways. Vellum passes requests through and everything but its own early
//! blocks is the next allocator's. Or a library loaded with `RTLD_DEEPBIND` took its block from the C
//! library's `malloc` directly and hands it to code that frees it with ours. Such blocks lie in the C
//! library's own heap, between the program's break at start and now, or have the headers that glibc gives its
//! mappings and the arenas of threads; they go back there. Anything else is refused.

use crate::{misuse, paged, passthrough};
use core::ffi::CStr;
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use libc::c_void;
use vellum_pages::{Misuse, PAGE};
use vellum_sys::map;

static BREAK_START: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Notes where the C library's heap begins.
pub(crate) fn note_break() {
    BREAK_START.store(program_break(), Relaxed);
}

fn program_break() -> usize {
    // SAFETY: asks for the break without moving it.
    unsafe { libc::sbrk(0) as usize }
}

/// The largest part of an arena of a thread, at which each starts.
const ARENA: usize = 64 << 20;

/// Two words at `from`, which need not be memory.
fn words(from: usize) -> Option<[usize; 2]> {
    let mut bytes = [[0u8; 8]; 2];
    let is_there = map::copy_from(from, bytes.as_flattened_mut()) == 16;
    is_there.then(|| bytes.map(usize::from_ne_bytes))
}

/// Whether the C library's `free` would take this address for a block's, by the tests that glibc's makes.
fn is_c_librarys(address: usize) -> bool {
    const MAPPED: usize = 2;
    const NOT_MAIN: usize = 4;
    if (BREAK_START.load(Relaxed)..program_break()).contains(&address) {
        return true;
    }
    let Some([before, size]) = address.checked_sub(16).and_then(words) else { return false };
    let bytes = size & !7;
    match size & (MAPPED | NOT_MAIN) {
        MAPPED => {
            bytes > 0
                && ((address - 16).wrapping_sub(before) | before.wrapping_add(bytes)).is_multiple_of(PAGE)
        }
        NOT_MAIN => {
            let start = address & !(ARENA - 1);
            // Its arena and the part before; how much is used of it, and may be.
            let (Some([arena, _]), Some([used, usable])) = (words(start), words(start + 16)) else {
                return false;
            };
            arena != 0 && (used | usable).is_multiple_of(PAGE) && address - start < used && used <= usable
        }
        _ => false,
    }
}

/// The C library's own function `name`, if `address` is a block of its.
fn c_library(name: &CStr, address: *mut u8) -> Option<*mut c_void> {
    if !(address as usize).is_multiple_of(16) || !is_c_librarys(address as usize) {
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
