//! Attaches threads to the heap, takes its lock for them, runs blocking regions (code that does not touch
//! the heap), and detaches ended threads.
//!
//! # Invariants
//! * A thread that waits for the heap's lock counts as blocked, so that a collection, which holds the
//!   lock, does not wait for the thread.
//! * A collection ignores a thread that is attaching, as the thread can hold no pointer to an object before
//!   it has had the lock.

use crate::instance::{Collector, INSTANCE, world};
use crate::process::{loader, local, signal, thread_key, tid};
use crate::world::stack;
use crate::world::stop::on_signal;
use crate::world::thread::{BLOCKED, INSIDE, RECORD_BYTES, RUNNING, Thread, current, set_current};
use crate::write_tracking::Dirty;
use core::ptr::null;
use core::sync::atomic::Ordering;
use vellum_sys::guard;
use vellum_sys::lock::Held;

impl Thread {
    /// Takes the heap's lock; the thread is inside, and counts as blocked while it waits.
    pub(crate) fn lock(&self) -> Held<'static, Collector> {
        if let Some(held) = INSTANCE.collector.try_lock() {
            return held;
        }
        let held = local::spilled(|low| {
            self.block(low);
            wait_for_heap()
        });
        self.state.store(INSIDE, Ordering::Relaxed);
        held
    }
}

/// The calling thread's record, made now if it has none; `None` if memory is out.
#[inline]
pub(crate) fn attached() -> Option<&'static Thread> {
    match current() {
        Some(thread) => Some(thread),
        None => attach(),
    }
}

#[cold]
fn attach() -> Option<&'static Thread> {
    // Before the thread has a record, and without the lock: these call the C library, which may allocate.
    loader::look_for_mutex();
    let stack = stack::of_this_thread()?;
    let data = stack::thread_data(stack);
    signal::prepare(on_signal);
    if Dirty::may_protect() {
        guard::let_through();
    }
    let unused = world().all().find(|thread| !thread.taken.swap(true, Ordering::Acquire));
    let thread =
        unused.or_else(|| wait_for_heap().heap.may_take(RECORD_BYTES).then(|| world().create())?)?;
    // A record that a fork has freed still has the state of its thread.
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.finalizing.set(false);
    thread.large.set(None);
    thread.stack_high.set(stack.end());
    thread.first_stack.set(stack);
    thread.stack_by.set(null());
    // SAFETY: `pthread_self` has no arguments and cannot fail.
    thread.number.set(unsafe { libc::pthread_self() } as usize);
    thread.suspended.store(false, Ordering::Relaxed);
    thread.data.set(data);
    thread.frames.set(local::frames());
    thread.held.set(null());
    thread.handed.take();
    // A collection that runs now leaves this thread out, so that it must not hold pointers before the lock.
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.stack_low.store(stack.end().get(), Ordering::Relaxed);
    thread.tid.store(tid(), Ordering::Release);
    let held = wait_for_heap();
    // Before the lock is free: a signal that found no record would be lost, and the collection wait for ever
    // if the thread waits for one that has stopped.
    set_current(Some(thread));
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    thread_key::set(detach, core::ptr::from_ref(thread).cast());
    Some(thread)
}

/// The thread ends: its runs go back, its record is free for another. A later destructor that allocates
/// attaches the thread once more.
extern "C" fn detach(_thread: *mut libc::c_void) {
    let Some(thread) = current() else { return };
    thread.enter();
    let mut collector = thread.lock();
    let heap = &mut collector.heap;
    heap.count_taken(thread);
    heap.remember_freed(thread);
    thread.retire_runs(heap.slots_in_use(), false);
    heap.roots.thread_ends(thread.key());
    set_current(None);
    thread.tid.store(0, Ordering::Release);
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.taken.store(false, Ordering::Release);
    drop(collector);
    world().idle.poke();
}

/// Takes the heap's lock; a slice that runs in idle time yields to the caller.
fn wait_for_heap() -> Held<'static, Collector> {
    INSTANCE.collector.try_lock().unwrap_or_else(|| {
        let _waiting = world().waiters.wait();
        INSTANCE.collector.lock()
    })
}

/// Calls `body` with the thread blocked: collections do not wait for it.
pub(crate) fn parked<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    let result = local::spilled(|low| {
        thread.block(low);
        body()
    });
    let held = wait_for_heap();
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    thread.stop_if_asked();
    result
}

/// Runs `body` within a blocking region as if outside it.
pub(crate) fn active<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    if thread.state.load(Ordering::Relaxed) != BLOCKED {
        return body();
    }
    let held = wait_for_heap();
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    thread.stop_if_asked();
    let result = body();
    // The scan from here covers the stack of the rest of the region, too: it lies above.
    local::spilled(|low| {
        thread.block(low);
        world().idle.poke();
    });
    result
}
