//! What happens to the dead: finalizers, and when links ([`links`](crate::links)) are cleared.
//!
//! Order of a collection's last steps, with everything that is reachable marked:
//!
//! 1. links (the early ones) to what is not marked become null, the others follow their objects;
//! 2. of the dead with finalizers, the unordered are due; then what the ordered ones refer to is traced, and those still
//!    not marked are due: nobody else who is to be finalized refers to them;
//! 3. what is due is traced: it stays until its finalizer has run;
//! 4. the late links to what is not marked become null.
//!
//! The table knows an object by its address, and its finalizer will be told that: objects with finalizers do not move.

use crate::alloc::with_heap;
use crate::block::Block;
use crate::frames::holding_cells;
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::table::Table;
use crate::{procedure, thread};
use core::cell::Cell;
use vellum_pages::Plain;

/// What runs when an object has died: the object, and what was given with it.
pub type Function = unsafe extern "C" fn(object: *mut core::ffi::c_void, data: *mut core::ffi::c_void);

/// Which of several dead objects that refer to each other are finalized first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Order {
    /// What refers to others comes before them; what is in a ring, never.
    Ordered = 0,
    /// All at once.
    Unordered = 1,
    /// As [`Ordered`](Order::Ordered), but an object may refer to itself.
    IgnoringItself = 2,
}

impl From<bool> for Order {
    /// Whether unordered.
    fn from(unordered: bool) -> Order {
        if unordered { Order::Unordered } else { Order::Ordered }
    }
}

/// An object's finalizer.
#[derive(Clone, Copy)]
pub(crate) struct Finalizer {
    pub function: Function,
    pub data: Address,
    pub order: Order,
    /// The object has died; the finalizer is to run.
    pub due: bool,
}

// SAFETY: numbers, flags and a pointer to code; a filler is copied from a value, never made from bits.
unsafe impl Plain for Finalizer {}

/// Roots that the tables hold: what is due, and the finalizers' data.
pub(crate) fn mark_roots(finalizers: &Table<Finalizer>, marker: &mut Marker<'_, impl Movement>) {
    finalizers.each(|object, finalizer| {
        marker.root(finalizer.data);
        if finalizer.due {
            marker.root(object);
        }
    });
}

/// Finds whose finalizers are due, and keeps them alive. Returns how many became due.
pub(crate) fn find_due<M: Movement>(
    finalizers: &mut Table<Finalizer>,
    marker: &mut Marker<'_, M>,
    blocks: &[Address],
) -> usize {
    let mut found = 0;
    let mut judge = |finalizers: &mut Table<Finalizer>, marker: &Marker<'_, M>, unordered: bool| {
        finalizers.retain(|object, finalizer| {
            if !finalizer.due
                && (finalizer.order == Order::Unordered) == unordered
                && !marker.is_marked(object)
            {
                finalizer.due = true;
                found += 1;
            }
            true
        });
    };
    judge(finalizers, marker, true);
    finalizers.each(|object, finalizer| {
        if !finalizer.due && !marker.is_marked(object) {
            if finalizer.order == Order::IgnoringItself && !M::MOVES {
                marker.contents_but_itself(object);
            } else {
                marker.contents(object);
            }
            marker.drain(blocks);
        }
    });
    judge(finalizers, marker, false);
    finalizers.each(|object, finalizer| {
        if finalizer.due {
            marker.root(object);
        }
    });
    marker.drain(blocks);
    found
}

impl Heap {
    /// Takes finalizers that are due out of the table, as many as there is room for; returns how many.
    pub(crate) fn take_due(&mut self, taken: &mut [Option<(Address, Finalizer)>]) -> usize {
        if self.due == 0 {
            return 0;
        }
        let mut count = 0;
        self.finalizers.retain(|object, finalizer| {
            if finalizer.due && count < taken.len() {
                taken[count] = Some((object, *finalizer));
                count += 1;
                return false;
            }
            true
        });
        self.due -= count;
        count
    }

    /// The block whose object starts at `object`, if one does.
    pub(crate) fn block_starting(&self, object: Address) -> Option<&'static Block> {
        let block = self.space.block_of(object)?;
        let index = block.index_at(object - block.base.get());
        (index.0 < block.count.get() && block.address(index) == object && block.is_allocated(index))
            .then_some(block)
    }
}

/// Finalizers taken out of the table at a time.
const BATCH: usize = 32;

/// Runs the finalizers that are due; returns how many.
pub fn run() -> usize {
    let Some(thread) = thread::attached() else { return 0 };
    let mut ran = 0;
    loop {
        let mut batch: [Option<(Address, Finalizer)>; BATCH] = [None; BATCH];
        // The objects stay until their turn, and so does what is given with them.
        let held = [const { Cell::new(0) }; BATCH * 2];
        let count = holding_cells(&held, || {
            let count = with_heap(thread, |heap| {
                let count = heap.take_due(&mut batch);
                for ((object, finalizer), held) in batch.iter().flatten().zip(held.chunks_exact(2)) {
                    held[0].set(*object);
                    held[1].set(finalizer.data);
                }
                count
            });
            let due = batch.iter_mut().filter_map(Option::take);
            for ((object, finalizer), held) in due.zip(held.chunks_exact(2)) {
                let object = core::ptr::with_exposed_provenance_mut(object);
                let data = core::ptr::with_exposed_provenance_mut(finalizer.data);
                // SAFETY: who set the finalizer vouches that it may be called so.
                unsafe { (finalizer.function)(object, data) };
                held.iter().for_each(|held| held.set(0));
            }
            count
        });
        ran += count;
        if count < BATCH {
            return ran;
        }
    }
}

/// Runs what is due after a collection, unless that is to be done on demand or this is within a finalizer.
#[cold]
pub(crate) fn run_after_collection() {
    let Some(thread) = thread::attached() else { return };
    let (wanted, told) = with_heap(thread, |heap| {
        let is_due = heap.due > 0;
        (is_due && !heap.finalize_on_demand, is_due && heap.finalize_on_demand)
    });
    if told {
        procedure::tell_due();
    }
    if wanted && !thread.finalizing.replace(true) {
        run();
        thread.finalizing.set(false);
    }
}

/// Whether finalizers run in [`run`] only.
pub fn on_demand(on: bool) {
    if let Some(thread) = thread::attached() {
        with_heap(thread, |heap| heap.finalize_on_demand = on);
    }
}
