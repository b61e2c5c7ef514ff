//! Exported functions by which a program stops all threads or single ones, and reports the ends of stacks.
//!
//! The collector scans a thread's stack from the stack pointer to the stack's *end*. The C library reports
//! that end only for the stack that the thread was started with. A program whose threads switch to other
//! stacks must therefore report each switch.
//!
//! # Invariants
//! * Between [`stop`](fn@stop) and [`start`](fn@start) the caller counts as inside the collector
//!   (`world::thread`) and holds the heap's lock.
//! * A suspended thread is stopped, or stops when it next leaves the collector or a blocking region.

use crate::instance::{INSTANCE, world};
use crate::mutator::attach;
use crate::world::thread::{Thread, current};
use core::ffi::c_void;
use core::sync::atomic::Ordering;
use vellum_sys::Addr;

/// Stops every registered thread but the caller, until [`start`](fn@start). In between the caller calls
/// nothing else of the collector. False if memory for its record is out.
pub fn stop() -> bool {
    let Some(thread) = attach::attached() else { return false };
    thread.enter();
    core::mem::forget(thread.lock());
    world().stop();
    true
}

/// Undoes [`stop`](fn@stop), on the same thread.
pub fn start() {
    let Some(thread) = current() else { return };
    world().go_on();
    INSTANCE.collector.raw().unlock();
    thread.leave();
}

/// The calling thread's handle; null if memory for its record is out.
pub fn handle() -> *mut c_void {
    attach::attached().map_or(core::ptr::null_mut(), |thread| core::ptr::from_ref(thread).cast_mut().cast())
}

fn of(handle: *const c_void) -> Option<&'static Thread> {
    world().known().find(|thread| core::ptr::addr_eq(core::ptr::from_ref(*thread), handle))
}

/// Sets where the stack ends (one beyond its highest byte) on which a thread runs. The thread is the caller
/// or is stopped, or does not change stacks during the call. False if there is no such thread.
///
/// # Safety
/// The stack can be read from the thread's stack pointer up to `end`. A handle is good for as long as its
/// thread lives; later it may be another's.
pub unsafe fn set_stack_end(handle: *const c_void, end: *const c_void) -> bool {
    let Some(thread) = of(handle) else { return false };
    thread.stack_high.set(Addr::of(end));
    true
}

/// Makes the collector read at `place` where the calling thread's stack ends, from now on; null: the end
/// stays as it was set. False if memory for its record is out.
///
/// # Safety
/// `place` can be read as long as the thread lives, and holds the stack's end, as in [`set_stack_end`],
/// whenever the thread can be stopped.
pub unsafe fn stack_end_at(place: *const usize) -> bool {
    attach::attached().is_some_and(|thread| {
        thread.stack_by.set(place.cast());
        true
    })
}

/// Suspends the thread of this number, as `pthread_self` gives it, until [`resume`]; false if no such thread
/// is registered.
pub fn suspend(number: usize) -> bool {
    let Some(this) = attach::attached() else { return false };
    if this.number.get() == number {
        this.suspended.store(true, Ordering::SeqCst);
        this.stop_here();
        return true;
    }
    this.enter();
    let held = this.lock();
    let found = world().known().find(|thread| thread.number.get() == number);
    if let Some(thread) = found {
        thread.suspended.store(true, Ordering::SeqCst);
        // It may be blocked now: it tests the flag when it comes out.
        thread.stop_asked.store(true, Ordering::SeqCst);
        world().stop();
        world().go_on();
    }
    drop(held);
    this.leave();
    found.is_some()
}

/// Lets the thread of this number go on; false if no such thread is registered.
pub fn resume(number: usize) -> bool {
    let Some(this) = attach::attached() else { return false };
    this.enter();
    let held = this.lock();
    let found = world().known().find(|thread| thread.number.get() == number);
    if let Some(thread) = found {
        thread.suspended.store(false, Ordering::SeqCst);
        world().look_again();
    }
    drop(held);
    this.leave();
    found.is_some()
}
