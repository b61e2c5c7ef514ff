//! The heaps of threads: a thread gets a heap with its first request, and gives the heap up at its end.
//!
//! The next thread can adopt the heap ([`registry`]). In the hardened mode the fast paths always find the
//! empty heap, and the thread's own heap is in a second variable ([`tls::inner_heap`]).

use crate::heap::Heap;
use crate::passthrough::Next;
use crate::state::MALLOC;
use crate::{background, foreign, mode, modules, registry, tls};
use core::sync::atomic::Ordering;
use vellum_pages::Pages;
use vellum_sys::barrier;

/// The calling thread's heap, which it gets now if it has none; `None` if Vellum passes requests through, has
/// not decided on that, or memory is out.
pub(crate) fn attached() -> Option<&'static Heap> {
    tls::current().or_else(attach)
}

#[cold]
fn attach() -> Option<&'static Heap> {
    if !mode::gives_heaps() {
        return None;
    }
    let heap = registry::adopt().or_else(create)?;
    // First the pointer: what follows may allocate.
    if mode::is_hardened() {
        tls::set_inner_heap(Some(heap));
    } else {
        tls::set_heap(heap);
    }
    watch_exit(heap);
    Some(heap)
}

fn create() -> Option<&'static Heap> {
    let heap = registry::create()?;
    Pages::global().on_tick(background::tick);
    Some(heap)
}

/// Prepares the process before the program runs: this costs least while there is one thread.
pub fn start() {
    make_key();
    MALLOC.break_start.store(foreign::program_break(), Ordering::Relaxed);
    modules::prepare();
    barrier::register();
}

/// Forwards every further request to `next`.
pub fn pass_through(next: &'static Next) {
    mode::pass_through(next);
    detach();
}

/// Gives up the calling thread's heap. Its free blocks stay for the next thread, or until the helper comes.
pub(crate) fn detach() {
    let Some(heap) = tls::current().filter(|heap| heap.gate.enter()) else {
        return;
    };
    tls::set_heap(tls::empty());
    tls::set_inner_heap(None);
    heap.drain();
    heap.flush_counts();
    heap.home.set(registry::processor());
    let is_worth_a_helper = heap.units() >= WORTH_A_HELPER;
    heap.gate.leave();
    registry::orphan(heap);
    if is_worth_a_helper {
        Pages::global().ensure_helper();
    }
}

/// Units of an orphan from which the helper is started, if it was not, to look after it.
const WORTH_A_HELPER: usize = 8;

/// Makes the key, early, while keys are cheap: the C library allocates to store a value under a late one.
fn make_key() {
    if MALLOC.exit_key.load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut key = 0;
    // SAFETY: `key` lives during the call; the destructor ignores its argument's target.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_exit)) } == 0
        && MALLOC.exit_key.compare_exchange(0, key + 1, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        // SAFETY: the key was made above and nobody knows it.
        unsafe { libc::pthread_key_delete(key) };
    }
}

fn watch_exit(heap: &Heap) {
    make_key();
    if let Some(key) = MALLOC.exit_key.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key exists. Failure only means that the heap is not adopted.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(heap).cast()) };
    }
}

extern "C" fn on_exit(_heap: *mut libc::c_void) {
    detach();
}
