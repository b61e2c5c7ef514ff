//! How threads join the heap: their attachment, the lock, blocking regions, and their end.
//!
//! # Invariants
//! * A thread that waits for the heap's lock counts as blocked, so that the collection that holds it does not
//!   wait for the thread.
//! * A collection that runs while a thread attaches does not know that thread: it holds no pointer until it
//!   has had the lock.

use crate::heap::{self, Heap};
use crate::mutator::budget::Waiting;
use crate::mutator::thread::{BLOCKED, INSIDE, RECORD_BYTES, RUNNING, Thread, all, create};
use crate::mutator::{idle_signal, tls};
use crate::trace::{loader, stack};
use crate::write_tracking::Dirty;
use core::ptr::null;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering;
use vellum_sys::guard;
use vellum_sys::lock::Held;

/// The key whose destructor is [`detach`], plus 1; 0: not made yet.
static KEY: AtomicU32 = AtomicU32::new(0);

impl Thread {
    /// Takes the heap's lock; the thread is inside, and counts as blocked while it waits.
    pub(crate) fn lock(&self) -> Held<'static, Heap> {
        if let Some(held) = heap::HEAP.try_lock() {
            return held;
        }
        let mut registers = tls::NO_REGISTERS;
        self.block(tls::spill(&mut registers).min(registers.as_ptr() as usize));
        let held = wait_for_heap();
        core::hint::black_box(&registers);
        self.state.store(INSIDE, Ordering::Relaxed);
        held
    }
}

/// The calling thread's record, made now if it has none; `None` if memory is out.
#[inline]
pub(crate) fn attached() -> Option<&'static Thread> {
    match tls::current() {
        Some(thread) => Some(thread),
        None => attach(),
    }
}

#[cold]
fn attach() -> Option<&'static Thread> {
    // Made before the thread counts as known, and without the heap's lock: these call the C library, which
    // may allocate.
    loader::look_for_mutex();
    let stack = stack::of_this_thread()?;
    let data = stack::thread_data(&stack);
    crate::mutator::stop::prepare();
    if Dirty::may_protect() {
        guard::let_through();
    }
    let unused = all().find(|thread| !thread.taken.swap(true, Ordering::Acquire));
    let thread = unused.or_else(|| wait_for_heap().may_take(RECORD_BYTES).then(create)?)?;
    // A record that a fork has freed still has the state of its thread.
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.finalizing.set(false);
    thread.large.set(null());
    thread.stack_high.set(stack.end);
    thread.first_stack.set((stack.start, stack.end));
    thread.stack_by.set(null());
    // SAFETY: plain call.
    thread.number.set(unsafe { libc::pthread_self() } as usize);
    thread.suspended.store(false, Ordering::Relaxed);
    thread.data.set(data);
    thread.frames.set(tls::frames());
    thread.held.set(null());
    thread.handed.set(0);
    // A collection that runs now does not know this thread, so it must not hold pointers yet: it enters with
    // the lock.
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.stack_low.store(stack.end, Ordering::Relaxed);
    thread.tid.store(stack::tid(), Ordering::Release);
    let held = wait_for_heap();
    // Before the lock is free: a signal that found no record would be lost, and the collection wait for ever
    // if the thread waits for one that has stopped.
    tls::set_current(Some(thread));
    thread.state.store(RUNNING, Ordering::Relaxed);
    drop(held);
    watch_exit(thread);
    Some(thread)
}

/// Arranges that [`detach`] is called when the thread ends; if that fails, its record stays taken.
fn watch_exit(thread: &'static Thread) {
    let mut key = KEY.load(Ordering::Acquire);
    if key == 0 {
        let mut made = 0;
        // SAFETY: plain call with a destructor that ignores its argument's target.
        if unsafe { libc::pthread_key_create(&raw mut made, Some(detach)) } != 0 {
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
    unsafe { libc::pthread_setspecific(key - 1, core::ptr::from_ref(thread).cast()) };
}

/// The thread ends: its runs go back, its record is free for another. If it allocates once more, from a later
/// destructor, it is attached anew.
extern "C" fn detach(_thread: *mut libc::c_void) {
    let Some(thread) = tls::current() else { return };
    thread.enter();
    let mut heap = thread.lock();
    heap.count_taken(thread);
    heap.remember_freed(thread);
    thread.retire_runs(heap.slots_in_use(), false);
    heap.roots.thread_ends(thread.key());
    tls::set_current(None);
    thread.tid.store(0, Ordering::Release);
    thread.stop_asked.store(false, Ordering::Relaxed);
    thread.state.store(BLOCKED, Ordering::Relaxed);
    thread.taken.store(false, Ordering::Release);
    drop(heap);
    idle_signal::poke();
}

/// Takes the heap's lock; a slice that runs in idle time yields to the caller.
fn wait_for_heap() -> Held<'static, Heap> {
    heap::HEAP.try_lock().unwrap_or_else(|| {
        let _waiting = Waiting::new();
        heap::HEAP.lock()
    })
}

/// Calls `body` with the thread blocked: collections do not wait for it.
pub(crate) fn parked<R>(thread: &'static Thread, body: impl FnOnce() -> R) -> R {
    let mut registers = tls::NO_REGISTERS;
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.block(low);
    let result = body();
    core::hint::black_box(&registers);
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
    let mut registers = tls::NO_REGISTERS;
    let low = tls::spill(&mut registers).min(registers.as_ptr() as usize);
    thread.block(low);
    idle_signal::poke();
    core::hint::black_box(&registers);
    result
}
