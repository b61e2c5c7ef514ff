//! The interface of objects that stay until they are freed ([`uncollectable`](crate::death::uncollectable)).

use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding, with_heap};
use crate::mutator::collect::{ensure_started, look_with_room};
use crate::mutator::{alloc, attach};
use crate::space::block::Scan;
use crate::space::size_class::{CLASS_LAST, SMALL_MAX, class_of};
use core::ptr::null_mut;
use core::sync::atomic::AtomicU16;
use core::sync::atomic::Ordering;

/// Slots of kept objects by class, first of those with pointers; 0 where there is none yet. Set once each,
/// under the heap's lock.
static SLOTS: [[AtomicU16; CLASS_LAST + 1]; 2] = [const { [const { AtomicU16::new(0) }; CLASS_LAST + 1] }; 2];

impl Heap {
    /// The slot of kept objects of `class`, made if there is none; `None` where objects move, or if there are
    /// no more slots.
    fn kept_slot(&mut self, class: usize, atomic: bool) -> Option<u16> {
        let known = &SLOTS[usize::from(atomic)][class];
        if known.load(Ordering::Relaxed) == 0 {
            if !ensure_started(self) || self.config.plan.moves() {
                return None;
            }
            let scan = if atomic { Scan::Nothing } else { Scan::Words };
            let slot = self.new_slot(class, scan, core::ptr::null())?;
            self.space.slots[usize::from(slot)].kept = true;
            self.deaths.kept.any_blocks = true;
            known.store(slot, Ordering::Relaxed);
        }
        Some(known.load(Ordering::Relaxed))
    }
}

fn slot(class: usize, atomic: bool) -> Option<usize> {
    let slot = match SLOTS[usize::from(atomic)][class].load(Ordering::Relaxed) {
        0 => with_heap(attach::attached()?, |heap| heap.kept_slot(class, atomic))?,
        slot => slot,
    };
    Some(usize::from(slot))
}

/// An object that stays until it is freed: untyped, reading zero, or `atomic`, without pointers and with
/// undefined contents; null if there is no memory.
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
        heap.deaths.kept.table.insert(object, 0).map_err(|_| Refused::OutOfMemory)
    };
    holding(&[object], || look_with_room(|heap| heap.deaths.kept.table.bytes_to_grow(), work))
}
