//! Assigns tables of records to threads. A thread gets a table with its first operation. When the thread
//! ends, the next new thread takes the table over.

use crate::process::{self, EPOCH, State, ledger, state};
use crate::spent::{self, spending};
use crate::table;
use crate::thread::{self, Thread};
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use vellum_wire::cost::ChunkHead;

/// Grains of a thread's first table: few, so that a thousand processes take little memory, but enough to
/// make collisions rare.
const TABLE_GRAINS: usize = 2;

/// The key whose destructor runs when threads end, plus one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Gives the thread a table of this process, or updates the epoch of its table. False without a table.
#[cold]
pub(crate) fn attach(thread: &Thread) -> bool {
    let now = state().now();
    if thread.word.get() as u32 == now as u32 && now != 0 {
        thread.word.set(now);
        thread.epoch.set(now & !(EPOCH - 1));
        return true;
    }
    spending(|| attach_anew(thread))
}

fn attach_anew(thread: &Thread) -> bool {
    if !process::is_ready() {
        return false;
    }
    if let Some(ledger) = ledger() {
        ledger.head().spent.fetch_add(spent::early(), Relaxed);
    }
    let state = state();
    let table = idle_table(state).or_else(|| table::claim(TABLE_GRAINS));
    let Some(table) = table else {
        if let Some(ledger) = ledger() {
            ledger.head().lost.fetch_add(1, Relaxed);
        }
        return false;
    };
    table::take(thread, table);
    let now = state.now();
    thread.word.set(now);
    thread.epoch.set(now & !(EPOCH - 1));
    watch_end();
    true
}

/// A table of this process that no thread has.
fn idle_table(state: &State) -> Option<*mut ChunkHead> {
    if state.idle.load(Relaxed).is_null() {
        return None;
    }
    state.lock.lock();
    let table = state.idle.load(Relaxed);
    // SAFETY: the list holds null or tables, which are never unmapped; its lock is held.
    if let Some(head) = unsafe { table.as_ref() } {
        state.idle.store(head.next.load(Relaxed) as *mut ChunkHead, Relaxed);
    }
    state.lock.unlock();
    (!table.is_null()).then_some(table)
}

/// Registers [`thread_ends`] to run when this thread ends.
fn watch_end() {
    let mut key = KEY.load(Acquire);
    if key == 0 {
        let mut fresh: libc::pthread_key_t = 0;
        // SAFETY: the destructor has the right signature, and the library is never unloaded.
        if unsafe { libc::pthread_key_create(&raw mut fresh, Some(thread_ends)) } != 0 {
            return;
        }
        key = fresh + 1;
        if let Err(theirs) = KEY.compare_exchange(0, key, Release, Acquire) {
            // SAFETY: the key was just made, and no thread has used it.
            unsafe { libc::pthread_key_delete(fresh) };
            key = theirs;
        }
    }
    // SAFETY: the key was made above. Any non-null value makes its destructor run.
    unsafe { libc::pthread_setspecific(key - 1, NonNull::<c_void>::dangling().as_ptr()) };
}

/// Puts the ending thread's table into the list of idle tables.
unsafe extern "C" fn thread_ends(_: *mut c_void) {
    let (thread, state) = (thread::this(), state());
    let table = thread.table.get();
    if table.is_null() || thread.word.get() as u32 != state.generation() {
        return;
    }
    thread.forget_table();
    state.lock.lock();
    // SAFETY: a table is never unmapped.
    unsafe { &*table }.next.store(state.idle.load(Relaxed) as u64, Relaxed);
    state.idle.store(table, Relaxed);
    state.lock.unlock();
}
