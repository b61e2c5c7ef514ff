//! Exported functions that start the heap, make types, register threads, handle forks, and begin and end
//! blocking regions (code that does not touch the heap).

use crate::config::Config;
use crate::config::sizing::Sizing;
use crate::config::strict::Strict;
use crate::instance::{Collector, INSTANCE, world};
use crate::mutator::access::with_collector;
use crate::mutator::{attach, idle_thread};
use crate::process::visitor::TraceFn;
use crate::process::{helpers, loader};
use crate::space::layout::{Layout, Shape};
use crate::space::size_class::WORD;
use crate::world::thread::current;

/// Why the heap was not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Already {
    /// The heap has started.
    Started,
    /// There is no memory.
    OutOfMemory,
    /// A setting is not served: its name.
    NotServed(&'static str),
}

/// Sizes the heap by the user's choice, which overrides the program's. Called before the heap starts.
pub fn ask_sizing(sizing: Sizing) {
    INSTANCE.collector.lock().heap.sizing_asked = Some(sizing);
}

/// Checks the heap by the user's choice, which overrides the program's. Called before the heap starts.
pub fn ask_strict(strict: Strict) {
    INSTANCE.collector.lock().heap.strict_asked = Some(strict);
}

/// Starts the heap with `config`.
///
/// # Errors
/// [`Already`]; nothing has changed then.
pub fn init(config: Config) -> Result<(), Already> {
    config.sizing.check().map_err(Already::NotServed)?;
    let thread = attach::attached().ok_or(Already::OutOfMemory)?;
    with_collector(thread, |collector| {
        if collector.heap.started {
            return Err(Already::Started);
        }
        if collector.start(config) { Ok(()) } else { Err(Already::OutOfMemory) }
    })
}

/// The type of objects of `bytes` bytes, 1 to [`TYPE_MAX`](crate::TYPE_MAX), whose word `i` may hold a
/// pointer if bit `i % 64` of `bitmap(i / 64)` is set. Equal types are one. `None` if the size is not served
/// or there is no memory.
pub fn type_of(bytes: usize, bitmap: impl Fn(usize) -> u64) -> Option<&'static Layout> {
    let shape = Shape::new(bytes, bitmap)?;
    let thread = attach::attached()?;
    with_collector(thread, |collector| {
        if !collector.start(Config::DEFAULT) {
            return None;
        }
        collector.layout(shape, None)
    })
}

/// The type of objects of any size whose references `procedure` names, with `data` as its argument: they are
/// made as arrays of words. `None` under a plan that moves objects, or if there is no memory.
///
/// # Safety
/// The callback may be called with any object of the type, from its allocation on, whenever collections
/// happen.
pub unsafe fn type_by(procedure: TraceFn, data: usize) -> Option<&'static Layout> {
    let shape = Shape { procedure: Some((procedure as usize, data)), ..Shape::new(WORD, |_| 1)? };
    let thread = attach::attached()?;
    with_collector(thread, |collector| {
        if !collector.start(Config::DEFAULT) || collector.heap.moves {
            return None;
        }
        collector.layout(shape, Some((procedure, data)))
    })
}

/// Calls `body` from within a blocking region, and suspends the region for it: `body` may touch the heap, and
/// collections stop it. Outside such a region, it is just called.
pub fn active<R>(body: impl FnOnce() -> R) -> R {
    match attach::attached() {
        Some(thread) => attach::active(thread, body),
        None => body(),
    }
}

/// Registers the calling thread; false if there is no memory.
pub fn enter() -> bool {
    attach::attached().is_some()
}

/// Stops here if a collection waits for this thread: with [`Config::safepoints`] that is how it stops.
#[inline]
pub fn safepoint() {
    if let Some(thread) = current() {
        thread.stop_if_asked();
    }
}

/// Calls `body`, which does not touch the heap, without collections waiting for it or interrupting it.
pub fn blocking<R>(body: impl FnOnce() -> R) -> R {
    match attach::attached() {
        Some(thread) => {
            idle_thread::ensure();
            attach::parked(thread, || {
                world().idle.poke();
                body()
            })
        }
        None => body(),
    }
}

/// Before a fork: nobody changes the heap until [`fork_parent`] or [`fork_child`].
pub fn fork_prepare() {
    let _waiting = world().waiters.wait();
    let mut collector = match current() {
        // It waits as every thread does, blocked: under safepoints no signal would stop it.
        Some(thread) if thread.is_running() => {
            thread.enter();
            thread.lock()
        }
        _ => INSTANCE.collector.lock(),
    };
    // The child may not be able to read the list again (`loader`).
    if collector.heap.started && loader::is_free_before_fork() {
        let _ = collector.heap.roots.refresh();
    }
    core::mem::forget(collector);
}

/// Ends the state in which [`fork_prepare`] has put the calling thread.
fn fork_ended() {
    if let Some(thread) = current().filter(|thread| thread.is_inside()) {
        thread.leave();
    }
}

/// After a fork, in the parent.
pub fn fork_parent() {
    INSTANCE.collector.raw().unlock();
    fork_ended();
}

/// After a fork, in the child, which has one thread.
pub fn fork_child() {
    INSTANCE.collector.raw().reset_after_fork();
    vellum_sys::segv::fork_child();
    world().waiters.forget();
    world().idle.forget();
    // The account of writes is the parent's.
    let mut collector = INSTANCE.collector.lock();
    let Collector { heap, plan } = &mut *collector;
    loader::look_after_fork();
    if loader::is_stuck() {
        heap.roots.keep_readable();
    }
    plan.drop_cycle(heap);
    plan.end_account(heap);
    helpers::forget();
    heap.publish_anew();
    heap.sizing.watch.forget();
    if let Some(thread) = current() {
        heap.roots.other_threads_end(thread.key());
    }
    drop(collector);
    world().forget_stop();
    world().forget_others();
    fork_ended();
}
