//! Blocks of other allocators that are passed to Vellum's functions. There are two kinds:
//!
//! - In passthrough mode, the program's own allocator made all blocks, except those made earlier by Vellum.
//! - A library loaded with `RTLD_DEEPBIND` calls the C library's `malloc` directly, and other code frees the
//!   block by Vellum's `free`. Such a block lies in the `brk` heap: between the program's first break and its
//!   present one. Or it has the header that glibc gives to blocks in mappings or in threads' arenas.
//!
//! The call is forwarded to the block's allocator. An address of neither kind ends the process.

use crate::passthrough::Next;
use crate::state::MALLOC;
use crate::{misuse, mode};
use core::ffi::CStr;
use core::mem::transmute_copy;
use core::sync::atomic::Ordering::Relaxed;
use libc::c_void;
use vellum_pages::{Misuse, PAGE};
use vellum_sys::{Addr, map};

pub(crate) fn program_break() -> usize {
    // SAFETY: asks for the break without moving it.
    unsafe { libc::sbrk(0) as usize }
}

/// The largest part of an arena of a thread, at which each starts.
const ARENA: usize = 64 << 20;

/// Two words at `from`, which need not be memory.
fn words(from: usize) -> Option<[usize; 2]> {
    let mut bytes = [[0u8; 8]; 2];
    let is_there = map::copy_from(Addr::new(from), bytes.as_flattened_mut()) == 16;
    is_there.then(|| bytes.map(usize::from_ne_bytes))
}

/// True if the C library's `free` accepts this address as a block, by the tests of glibc's `free`.
fn is_c_librarys(address: usize) -> bool {
    const MAPPED: usize = 2;
    const NOT_MAIN: usize = 4;
    let start = MALLOC.break_start.load(Relaxed);
    if start != 0 && (start..program_break()).contains(&address) {
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
    // SAFETY: a C string, and a handle that `dlsym` takes.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    (!function.is_null()).then_some(function)
}

/// The function of the allocator that has the block at `address`: the next allocator's `of_next`, or the C
/// library's `name`. Ends the process, for a call of `function`, if neither has the block. Safety: `F` is the
/// type of the C library's function of that name.
unsafe fn function<F: Copy>(
    function: &str,
    address: *mut u8,
    of_next: impl Fn(&Next) -> F,
    name: &CStr,
) -> F {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    if let Some(next) = mode::next() {
        return of_next(next);
    }
    match c_library(name, address) {
        // SAFETY: a function's address, of the type that the caller names.
        Some(found) => unsafe { transmute_copy(&found) },
        None => misuse::refuse(function, address, Misuse::NotOurs),
    }
}

/// Frees another allocator's block. Safety: the caller gives the block up.
pub(crate) unsafe fn free(address: *mut u8) {
    // SAFETY: the type of `free`; the block is that allocator's, as far as its address shows.
    unsafe { function("free", address, |next| next.free, c"__libc_free")(address.cast()) }
}

/// The usable size of another allocator's block. Safety: the block is in use.
pub(crate) unsafe fn usable_size(address: *mut u8) -> usize {
    let name = c"malloc_usable_size";
    // SAFETY: the type of `malloc_usable_size`; the block is that allocator's, as far as its address shows.
    unsafe { function("malloc_usable_size", address, |next| next.malloc_usable_size, name)(address.cast()) }
}

/// Resizes another allocator's block, by that allocator. Safety: the block is in use, and given up if the
/// result is not null.
pub(crate) unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the type of `realloc`; the block is that allocator's, as far as its address shows.
    unsafe {
        function("realloc", address, |next| next.realloc, c"__libc_realloc")(address.cast(), bytes).cast()
    }
}
