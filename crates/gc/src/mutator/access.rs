//! Access to the heap for the program's threads: takes the heap's lock, and pins the objects that the caller
//! passes (keeps them at their addresses).

use crate::heap::Heap;
use crate::instance::Collector;
use crate::mutator::attach;
use crate::world::thread::{InHand, Thread};
use core::cell::Cell;
use core::sync::atomic::{Ordering, compiler_fence};
use vellum_sys::{Addr, Span};

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address is not the start of an object.
    NoObject,
    /// There is no memory.
    OutOfMemory,
}

/// Runs `work` inside the collector, with its lock.
pub(crate) fn with_collector<R>(thread: &'static Thread, work: impl FnOnce(&mut Collector) -> R) -> R {
    thread.expect_not_collecting();
    thread.enter();
    let mut collector = thread.lock();
    let result = work(&mut collector);
    drop(collector);
    thread.leave();
    result
}

/// [`with_collector`] for work on the heap alone.
pub(crate) fn with_heap<R>(thread: &'static Thread, work: impl FnOnce(&mut Heap) -> R) -> R {
    with_collector(thread, |collector| work(&mut collector.heap))
}

pub(crate) fn address(pointer: *const u8) -> Addr {
    Addr::of(pointer)
}

/// Runs `work` with the heap's lock; `None` if memory for the thread's record is out.
pub(crate) fn look<R>(work: impl FnOnce(&mut Heap) -> R) -> Option<R> {
    attach::attached().map(|thread| with_heap(thread, work))
}

/// [`look`] for work on the whole collector.
pub(crate) fn look_at_all<R>(work: impl FnOnce(&mut Collector) -> R) -> Option<R> {
    attach::attached().map(|thread| with_collector(thread, work))
}

/// Runs `work` while the objects that `words` lead to are pinned.
pub(crate) fn holding<R>(words: &[Addr], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr(), words.len(), work)
}

/// [`holding`] for words that `work` changes.
pub(crate) fn holding_cells<R>(words: &[Cell<Addr>], work: impl FnOnce() -> R) -> R {
    hold(words.as_ptr().cast(), words.len(), work)
}

fn hold<R>(words: *const Addr, count: usize, work: impl FnOnce() -> R) -> R {
    let Some(thread) = attach::attached() else { return work() };
    let below = thread.held.get();
    let held = InHand { below, words: Span::at(words, count * size_of::<Addr>()) };
    thread.held.set(&raw const held);
    core::hint::black_box(words);
    compiler_fence(Ordering::SeqCst);
    let result = work();
    compiler_fence(Ordering::SeqCst);
    core::hint::black_box(words);
    thread.held.set(below);
    result
}
