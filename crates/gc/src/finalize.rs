//! What happens to the dead: finalizers, and when links ([`links`](crate::links)) are cleared.
//!
//! Order of a collection's last steps, with everything that is reachable marked:
//!
//! 1. links (the early ones) to what is not marked become null, the others follow their objects;
//! 2. of the dead with finalizers, the unordered are due; then what the ordered ones refer to is traced, and those still
//!    not marked are due: nobody else who is to be finalized refers to them; what is due is traced, and of the rest those that wait for
//!    all others ([`Order::Last`]) are due;
//! 3. what is due is traced: it stays until its finalizer has run;
//! 4. the late links to what is not marked become null.
//!
//! The table knows an object by its address, and its finalizer will be told that: objects with finalizers do not move.

use crate::alloc::with_heap;
use crate::block::Block;
use crate::event::{self, Event};
use crate::frames::holding_cells;
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::table::{Step, Table};
use crate::{disclaim, procedure, thread};
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
    /// As [`Ordered`](Order::Ordered), and what unordered ones are to see waits, too.
    Last = 3,
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
    let mut last = false;
    let mut judge =
        |finalizers: &mut Table<Finalizer>, marker: &Marker<'_, M>, is_meant: fn(Order) -> bool| {
            finalizers.retain(|object, finalizer| {
                if !finalizer.due && is_meant(finalizer.order) && !marker.is_marked(object) {
                    finalizer.due = true;
                    found += 1;
                    event::tell_value(Event::Due, object);
                }
                true
            });
        };
    judge(finalizers, marker, |order| order == Order::Unordered);
    finalizers.each(|object, finalizer| {
        if !finalizer.due && !marker.is_marked(object) {
            last |= finalizer.order == Order::Last;
            if finalizer.order == Order::IgnoringItself && !M::MOVES {
                marker.contents_but_itself(object);
            } else {
                marker.contents(object);
            }
            marker.drain(blocks);
        }
    });
    judge(finalizers, marker, |order| matches!(order, Order::Ordered | Order::IgnoringItself));
    keep_due(finalizers, marker, blocks);
    if last {
        judge(finalizers, marker, |order| order == Order::Last);
        keep_due(finalizers, marker, blocks);
    }
    found
}

/// Traces what is due.
fn keep_due(finalizers: &Table<Finalizer>, marker: &mut Marker<'_, impl Movement>, blocks: &[Address]) {
    finalizers.each(|object, finalizer| {
        if finalizer.due {
            marker.root(object);
        }
    });
    marker.drain(blocks);
}

impl Heap {
    /// Takes finalizers that are due out of the table, as many as there is room for; returns how many.
    pub(crate) fn take_due(&mut self, taken: &mut [Option<(Address, Finalizer)>]) -> usize {
        if self.due == 0 {
            return 0;
        }
        let mut count = 0;
        // Twice at most: the table may have been made anew since the last step, and those that are left lie before.
        for _ in 0..2 {
            self.due_from = self.finalizers.step(self.due_from, |object, finalizer| {
                if !finalizer.due {
                    return Step::Keep;
                }
                let Some(place) = taken.get_mut(count) else { return Step::Stop };
                *place = Some((object, *finalizer));
                count += 1;
                Step::Remove
            });
            if count > 0 {
                break;
            }
            self.due_from = 0;
        }
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
        if count == 0 {
            return ran;
        }
    }
}

/// Runs what is due after a collection, unless that is to be done on demand or this is within a finalizer.
#[cold]
pub(crate) fn run_after_collection() {
    let Some(thread) = thread::attached() else { return };
    let (wanted, told, asked) = with_heap(thread, |heap| {
        let is_due = heap.due > 0;
        (is_due && !heap.finalize_on_demand, is_due && heap.finalize_on_demand, heap.disclaimers.any_due())
    });
    if told {
        procedure::tell_due();
    }
    if (wanted || asked) && !thread.finalizing.replace(true) {
        if asked {
            disclaim::run();
        }
        if wanted {
            run();
        }
        thread.finalizing.set(false);
    }
}

/// Runs the finalizers that are due, unless the calling thread is in a finalizer; returns how many ran.
pub fn run_unless_within() -> usize {
    let Some(thread) = thread::attached() else { return 0 };
    if thread.finalizing.replace(true) {
        return 0;
    }
    let ran = run();
    thread.finalizing.set(false);
    ran
}

/// Finalizers that are due.
pub fn due() -> usize {
    thread::attached().map_or(0, |thread| with_heap(thread, |heap| heap.due))
}

/// Runs every finalizer there is, those of objects that are alive, too, until there is none; returns how many ran.
pub fn run_all() -> usize {
    let Some(thread) = thread::attached() else { return 0 };
    let mut ran = 0;
    loop {
        with_heap(thread, |heap| {
            heap.finalizers.retain(|_, finalizer| {
                finalizer.due = true;
                true
            });
            heap.due = heap.finalizers.len();
        });
        match run() {
            0 => return ran,
            some => ran += some,
        }
    }
}

/// Whether finalizers run in [`run`] only.
pub fn on_demand(on: bool) {
    if let Some(thread) = thread::attached() {
        with_heap(thread, |heap| heap.finalize_on_demand = on);
    }
}
