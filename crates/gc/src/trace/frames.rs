//! Marks objects listed in [`frames`](crate::process::frames), and objects that the collector's code uses.

use crate::process::frames::BOTTOM;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use crate::world::World;
use core::cell::Cell;
use core::ptr::null;
use vellum_sys::Span;

/// Marks the objects that the collector's own functions hold, on all threads.
pub(crate) fn mark_held<M: Movement>(marker: &mut Marker<'_, M>, world: &World) {
    for thread in world.known() {
        marker.root(thread.handed.get());
        let mut next = thread.held.get();
        // SAFETY: null, or on the stack of a thread that is stopped below it, or of this one.
        while let Some(held) = unsafe { next.as_ref() } {
            // SAFETY: the record describes words of the same stack, which live as long as it does.
            unsafe { marker.words(held.words, false) };
            next = held.below;
        }
    }
}

/// Returns whether any frame is linked.
pub(crate) fn any(world: &World) -> bool {
    world.known().any(|thread| {
        // SAFETY: the variable is its thread's own, and lives as long as the thread is known.
        let top = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        !top.is_null() && !core::ptr::addr_eq(top, &raw const BOTTOM)
    })
}

/// Marks what frames lead to, on all threads, after everything ambiguous. Returns how many words they have.
pub(crate) fn mark<M: Movement>(marker: &mut Marker<'_, M>, world: &World) -> usize {
    let mut words = 0;
    for thread in world.known() {
        // SAFETY: the variable lives as long as its thread is known; a frame as long as it is linked.
        let mut next = unsafe { thread.frames.get().as_ref() }.map_or(null(), Cell::get);
        // SAFETY: null, `BOTTOM`, or a frame that its function keeps as long as it is linked; its thread is
        // stopped.
        while let Some(frame) = unsafe { next.as_ref() } {
            words += frame.count.get();
            let roots = Span::at(frame.roots.get(), frame.count.get() * size_of::<usize>());
            // SAFETY: the program vouched for the frame's words when it linked it.
            unsafe { marker.fields(roots) };
            next = frame.below.get();
        }
    }
    words
}
