//! Objects that their users free.
//!
//! ```text
//! large          ──▶ goes at once
//! small          ──▶ a list of the thread's, by slot ──▶ the thread's next objects of that size      where nobody else has a word on it
//!                ──▶ remembered until the next collection                                          elsewhere
//! ```
//!
//! A small object cannot be given back to its block at once, as the block's bits may be another thread's to change: it stays allocated. So either the
//! thread that freed it has it again, as it is; or it is remembered until the next collection, so that it goes even if something still seems to refer to it.
//! Those that find no room on that list are garbage like any other, which nothing should refer to.
//!
//! # Invariants
//! * An object on a thread's list reads zero but for its first two words (if it has pointers at all): the next one's address, and its *seal*. By that
//!   a second free of it by the thread is found at once; what looks like a seal and is not on the list was left there by accident.
//! * Objects on threads' lists have no finalizer, link, disclaimer or ephemeron. All lists end when a trace begins, with the world stopped: what is on them is free then.

use crate::block::{Block, Scan};
use crate::class::{GRANULE, TYPED_FIRST, WORD};
use crate::config::Plan;
use crate::finalize::Finalizer;
use crate::frames::holding;
use crate::heap::{Address, HEAP, Heap};
use crate::object::{Refused, address, look};
use crate::space::Space;
use crate::survey::free_large;
use crate::thread::{self, Thread};
use crate::tls;

/// Objects that are remembered at most: 64 KiB of addresses. Kept ones are remembered whatever that takes: they would stay.
const REMEMBERED_MAX: usize = 8192;

/// What a program writes by accident only: turned around by where the library and the object are.
const SEAL: usize = 0x5ea1_9ed0_f4ee_d0b1;

/// The first two words of an object that is on a thread's list.
#[repr(C)]
struct Freed {
    next: Address,
    seal: usize,
}

const _: () = assert!(size_of::<Freed>() <= GRANULE && size_of::<Freed>() == 2 * WORD);

fn words(object: Address) -> *mut Freed {
    core::ptr::with_exposed_provenance_mut(object)
}

fn seal(object: Address) -> usize {
    (&raw const HEAP).addr().wrapping_mul(SEAL) ^ object
}

/// Gives an object back.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// Nobody uses the object any more.
pub unsafe fn free(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: by this function's condition.
    unsafe { free_as(pointer, true) }
}

/// The same; but a small object's memory is not used again before the next collection, and holds what it held: who notes there that it was freed finds the
/// note when it is freed once more.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// As [`free`].
pub unsafe fn free_later(pointer: *mut u8) -> Result<(), Refused> {
    // SAFETY: by this function's condition.
    unsafe { free_as(pointer, false) }
}

/// [`free`], or [`free_later`] unless `soon`.
///
/// # Safety
/// As [`free`].
unsafe fn free_as(pointer: *mut u8, soon: bool) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        let small = (soon && heap.reuses(block)).then(tls::current).flatten();
        if small.is_some_and(|thread| is_listed(thread, block, object)) {
            return Err(Refused::NoObject);
        }
        heap.stats.freed_bytes += block.size.get() as u64;
        heap.kept.forget(object);
        heap.ephemerons.remove(object);
        heap.disclaimers.forget(object);
        if heap.finalizers.remove(object).is_some_and(|Finalizer { due, .. }| due) {
            heap.due -= 1;
        }
        if let Some(thread) = small {
            heap.count_taken(thread);
            heap.used = heap.used.saturating_sub(block.size.get());
            put(thread, block, object);
        } else if block.slot.get() == 0 && heap.cycle.is_none() && heap.clear_links_to(object) {
            // A trace in slices would perhaps be about to look through it.
            free_large(heap, block);
        } else if heap.freed.len() < REMEMBERED_MAX || block.is_kept() {
            // Without memory for the list it is garbage, too; or stays, if it is kept.
            let _ = heap.freed.push(object);
        }
        Ok(())
    };
    let freed = holding(&[object], || look(work));
    freed.unwrap_or(Err(Refused::NoObject))
}

/// Whether the thread, which is the caller, has freed the object already, and it is on its list still.
fn is_listed(thread: &Thread, block: &Block, object: Address) -> bool {
    // SAFETY: a small object has two words.
    let may_be = unsafe { (*words(object)).seal } == seal(object);
    let mut is_there = false;
    if may_be {
        each(thread.cursors[usize::from(block.slot.get())].freed.get(), |this| is_there |= this == object);
    }
    is_there
}

/// Puts an object on the list of the thread, which is the caller, inside.
fn put(thread: &Thread, block: &Block, object: Address) {
    let (slot, size) = (usize::from(block.slot.get()), block.size.get());
    let cursor = &thread.cursors[slot];
    // SAFETY: its user has given up an object of so many bytes, which nobody else uses.
    unsafe {
        if block.scan.get() != Scan::Nothing || slot >= TYPED_FIRST {
            words(object).cast::<u8>().write_bytes(0, size);
        }
        words(object).write(Freed { next: cursor.freed.get(), seal: seal(object) });
    }
    cursor.freed.set(object);
    cursor.freed_size.set(size as u32);
}

/// An object of `slot` that the thread, which is the caller, has freed; as a new one.
#[inline]
pub(crate) fn again(thread: &Thread, slot: usize) -> Option<Address> {
    let cursor = &thread.cursors[slot];
    let object = cursor.freed.get();
    if object == 0 {
        return None;
    }
    // SAFETY: on the list, by `put`.
    let Freed { next, .. } = unsafe { words(object).replace(Freed { next: 0, seal: 0 }) };
    cursor.freed.set(next);
    thread.uncounted.set(thread.uncounted.get() + cursor.freed_size.get() as usize);
    Some(object)
}

/// Calls `visit` with the objects on the list that begins with `first`.
fn each(first: Address, mut visit: impl FnMut(Address)) {
    let mut object = first;
    while object != 0 {
        // SAFETY: on the list, by `put`.
        let next = unsafe { (*words(object)).next };
        visit(object);
        object = next;
    }
}

/// Ends all threads' lists: what is on them is free. The world stands still, or nobody else allocates.
pub(crate) fn end_lists(space: &Space, slots: usize) {
    for thread in thread::known() {
        for cursor in thread.cursors.iter().take(slots) {
            each(cursor.freed.replace(0), |object| {
                if let Some(block) = space.block_of(object) {
                    let index = block.index_at(object - block.base.get()).0;
                    block.clear_allocated(index, index + 1);
                }
            });
        }
    }
}

impl Heap {
    /// Whether what is freed of a block may be the thread's next object. Not where somebody keeps an account of what is new or written, where links may lead to it
    /// or lie in it, nor where errors are looked for.
    fn reuses(&self, block: &Block) -> bool {
        let config = &self.config;
        block.slot.get() != 0
            && block.scan.get() != Scan::Procedure
            && config.plan == Plan::MarkSweep
            && !(config.eager != 0 || config.poison || config.tells_writes)
            && self.cycle.is_none()
            && self.dirty.is_none()
            && self.links.len() == 0
    }

    /// The thread, which is the caller, ends: what it has freed is remembered, and what it has not used in kept blocks.
    pub(crate) fn remember_freed(&mut self, thread: &Thread) {
        thread.each_left(self.slots_in_use(), |object| {
            let _ = self.freed.push(object);
        });
        for cursor in thread.cursors.iter().take(self.slots_in_use()) {
            each(cursor.freed.replace(0), |object| {
                let is_kept = self.space.block_of(object).is_some_and(|block| block.is_kept());
                if self.freed.len() < REMEMBERED_MAX || is_kept {
                    let _ = self.freed.push(object);
                }
            });
        }
    }

    /// Takes back what users have freed. The world stands still, or nobody else allocates.
    pub(crate) fn take_back_freed(&mut self) {
        end_lists(&self.space, self.slots_in_use());
        for &object in self.freed.iter() {
            if let Some(block) = self.block_starting(object) {
                let index = block.index_at(object - block.base.get()).0;
                block.clear_allocated(index, index + 1);
            }
        }
        self.freed.truncate(0);
    }
}
