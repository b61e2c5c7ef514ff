//! How the program's threads reach the heap: under its lock, and with the objects that the caller holds kept
//! in place.

use crate::heap::Heap;
use crate::mutator::attach;
use crate::mutator::thread::Thread;
use crate::trace::frames::InHand;
use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address is not the start of an object.
    NoObject,
    /// There is no memory.
    OutOfMemory,
}

/// Runs `work` inside the collector, with the heap's lock.
pub(crate) fn with_heap<R>(thread: &'static Thread, work: impl FnOnce(&mut Heap) -> R) -> R {
    thread.expect_not_collecting();
    thread.enter();
    let mut heap = thread.lock();
    let result = work(&mut heap);
    drop(heap);
    thread.leave();
    result
}

pub(crate) fn address(pointer: *const u8) -> usize {
    pointer.expose_provenance()
}

/// Runs `work` with the heap's lock; `None` if memory for the thread's record is out.
pub(crate) fn look<R>(work: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    attach::attached().map(|thread| with_heap(thread, work))
}

/// Runs `work` while the objects that `words` lead to are pinned.
pub(crate) fn holding<R>(words: &[usize], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr(), words.len(), work)
}

/// The same for words that change meanwhile.
pub(crate) fn holding_cells<R>(words: &[Cell<usize>], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr().cast(), words.len(), work)
}

fn hold<R>(words: *const usize, count: usize, work: impl FnOnce() -> R) -> R {
    let Some(thread) = attach::attached() else { return work() };
    let start = words.expose_provenance();
    let below = thread.held.get();
    let held = InHand { below, start, end: start + count * size_of::<usize>() };
    thread.held.set(&raw const held);
    core::hint::black_box(words);
    compiler_fence(Ordering::SeqCst);
    let result = work();
    compiler_fence(Ordering::SeqCst);
    core::hint::black_box(words);
    thread.held.set(below);
    result
}
