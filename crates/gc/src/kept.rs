//! Objects that stay until their users free them, and keep what they refer to.
//!
//! ```text
//! alloc_kept   small, where nothing moves   a slot of its own: its blocks are roots, whole         nothing is noted of an object
//!              else, and `keep`             any slot                                          the object's address is in a table
//! ```
//!
//! A program that frees all by itself (C++ with a global `operator new` that the collector looks through) has hundreds of thousands of them: an entry
//! each would cost more than the object.
//!
//! # Invariants
//! * Every allocated object of a kept block stays. One that is freed is remembered until it is taken back (`freed`), whatever that takes.
//! * What a thread has not used of its run in such a block reads zero, and goes back when the thread ends or collects.
//!
//! Source: the uncollectable kinds of the Boehm-Demers-Weiser collector, whose blocks are roots in the same way.

use crate::alloc::{self, ensure_started, with_heap};
use crate::block::{Block, Scan};
use crate::class::{CLASS_LAST, SMALL_MAX, class_of};
use crate::config::Plan;
use crate::frames::holding;
use crate::heap::{Address, Heap};
use crate::mark::Marker;
use crate::movement::Movement;
use crate::object::{Refused, address, look_with_room};
use crate::table::Table;
use crate::thread;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU16, Ordering};

/// Slots of kept objects by class, first of those with pointers; 0 where there is none yet. Set once each, under the heap's lock.
static SLOTS: [[AtomicU16; CLASS_LAST + 1]; 2] = [const { [const { AtomicU16::new(0) }; CLASS_LAST + 1] }; 2];

/// What is known of kept objects.
pub(crate) struct Kept {
    /// Those that do not lie in blocks of their own.
    table: Table<u8>,
    /// There are such blocks.
    any_blocks: bool,
}

impl Kept {
    pub(crate) const fn new() -> Kept {
        Kept { table: Table::new(), any_blocks: false }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    /// The object goes otherwise.
    pub(crate) fn forget(&mut self, object: Address) {
        self.table.remove(object);
    }

    /// Whether the object of `block` at `object` is kept.
    pub(crate) fn has(&self, block: &Block, object: Address) -> bool {
        block.is_kept() || self.table.get(object).is_some()
    }

    /// Calls `visit` with those in the table.
    pub(crate) fn each(&self, mut visit: impl FnMut(Address)) {
        self.table.each(|object, _| visit(object));
    }

    /// Marks them all. `blocks` are all blocks there are.
    pub(crate) fn mark(&self, marker: &mut Marker<'_, impl Movement>, blocks: &[Address]) {
        self.table.each(|object, _| marker.root(object));
        if self.any_blocks {
            for &block in blocks {
                // SAFETY: the list has the addresses of descriptors, which are never unmapped.
                let block: &'static Block = unsafe { &*(block as *const Block) };
                if block.is_kept() {
                    marker.whole(block);
                }
            }
        }
    }
}

impl Heap {
    /// The slot of kept objects of `class`, made if there is none; `None` where objects move, or if there are no more slots.
    fn kept_slot(&mut self, class: usize, atomic: bool) -> Option<u16> {
        let known = &SLOTS[usize::from(atomic)][class];
        if known.load(Ordering::Relaxed) == 0 {
            if !ensure_started(self) || self.config.plan != Plan::MarkSweep {
                return None;
            }
            let scan = if atomic { Scan::Nothing } else { Scan::Words };
            let slot = self.new_slot(class, scan, core::ptr::null())?;
            self.slots[usize::from(slot)].kept = true;
            self.kept.any_blocks = true;
            known.store(slot, Ordering::Relaxed);
        }
        Some(known.load(Ordering::Relaxed))
    }
}

fn slot(class: usize, atomic: bool) -> Option<usize> {
    let slot = match SLOTS[usize::from(atomic)][class].load(Ordering::Relaxed) {
        0 => with_heap(thread::attached()?, |heap| heap.kept_slot(class, atomic))?,
        slot => slot,
    };
    Some(usize::from(slot))
}

/// An object that stays until it is freed: untyped, reading zero, or `atomic`, without pointers and with undefined contents; null if there is no
/// memory.
pub fn alloc_kept(bytes: usize, atomic: bool) -> *mut u8 {
    if bytes <= SMALL_MAX
        && let Some(slot) = slot(class_of(bytes), atomic)
    {
        return alloc::small(slot, bytes);
    }
    let new = if atomic { alloc::alloc_atomic(bytes) } else { alloc::alloc(bytes) };
    if new.is_null() || keep(new).is_ok() { new } else { null_mut() }
}

/// Keeps the object at `pointer` until it is freed.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
pub fn keep(pointer: *mut u8) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        if block.is_kept() {
            return Ok(());
        }
        heap.kept.table.insert(object, 0).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[object], || look_with_room(|heap| heap.kept.table.bytes_to_grow(), work))
}
