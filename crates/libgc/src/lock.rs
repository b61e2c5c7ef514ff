//! libgc's allocation lock: its holder excludes all other holders, and no collection runs while it is held.
//!
//! Programs take it to turn a disguised pointer into a real one: a collection at that moment could clear the
//! disguised pointer. The heap has a separate lock, so the holder may call any function and may take the lock
//! again.

use crate::forks::{put, take};
use crate::{start, vel};
use core::ffi::{c_int, c_void};

/// Takes the lock.
#[unsafe(no_mangle)]
pub extern "C" fn GC_alloc_lock() {
    start::ensure();
    take();
    // SAFETY: holds nest, and `GC_alloc_unlock` undoes this one.
    unsafe { vel::vel_gc_hold() };
}

/// Undoes [`GC_alloc_lock`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_alloc_unlock() {
    // SAFETY: this undoes the hold of `GC_alloc_lock`.
    unsafe { vel::vel_gc_let() };
    put();
}

/// Calls `function(argument)` with the lock held.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_alloc_lock(function: vel::Body, argument: *mut c_void) -> *mut c_void {
    GC_alloc_lock();
    // SAFETY: the program passes a function that accepts the argument.
    let result = unsafe { function(argument) };
    GC_alloc_unlock();
    result
}

/// [`GC_call_with_alloc_lock`]: readers also exclude each other here, so `release` has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_call_with_reader_lock(
    function: vel::Body,
    argument: *mut c_void,
    _release: c_int,
) -> *mut c_void {
    GC_call_with_alloc_lock(function, argument)
}
