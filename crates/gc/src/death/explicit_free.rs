//! Objects that their users free.
//!
//! ```text
//! large          ──▶ goes at once
//! small          ──▶ a list of the thread's, by slot ──▶ the thread's next objects of that size (`reuses`)
//!                ──▶ else: remembered until the next collection
//! ```
//!
//! A small object cannot be given back to its block at once, as the block's bits may be another thread's to
//! change: it stays allocated. Either the thread that freed it gets it again as a new object. Or it is
//! remembered until the next collection, so that it goes even if something still seems to refer to it.
//! Objects that find no room on that list are ordinary garbage, which nothing should refer to.
//!
//! # Invariants
//! * An object on a thread's list reads zero except for its first two words (if it has pointers at all): the
//!   next one's address, and its *seal*. The seal shows a second free of it by the thread at once. A seal on
//!   an object that is not on the list is an accident.
//! * Objects on threads' lists have no finalizer, link, disclaimer or ephemeron. All lists end when a trace
//!   begins, with the world stopped: their objects are free then.

use crate::heap::{HEAP, Heap};
use crate::mutator::thread::{self, Thread};
use crate::space::address_table::AddressTable;
use crate::space::block::{Address, Block, Scan};
use crate::space::size_class::{GRANULE, TYPED_FIRST, WORD};

/// Objects that are remembered at most: 64 KiB of addresses. Kept ones are always remembered, as they would
/// stay otherwise.
pub(crate) const REMEMBERED_MAX: usize = 8192;

/// A word that a program writes by accident only, mixed with the addresses of the library and the object.
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

/// Whether the thread, which is the caller, has freed the object already, and still has it on its list.
pub(crate) fn is_listed(thread: &Thread, block: &Block, object: Address) -> bool {
    // SAFETY: a small object has two words, which may be read.
    let may_be = unsafe { (*words(object)).seal } == seal(object);
    let mut is_there = false;
    if may_be {
        each(thread.cursors[usize::from(block.slot.get())].freed.get(), |this| is_there |= this == object);
    }
    is_there
}

/// Puts an object on the list of the thread, which is the caller, inside.
pub(crate) fn put(thread: &Thread, block: &Block, object: Address) {
    let (slot, size) = (usize::from(block.slot.get()), block.size.get());
    let cursor = &thread.cursors[slot];
    // SAFETY: its user has given up an object of `size` bytes, which nobody else uses.
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
    // SAFETY: the object is on the list: `put` has written its two words, and nobody else uses it.
    let Freed { next, .. } = unsafe { words(object).replace(Freed { next: 0, seal: 0 }) };
    cursor.freed.set(next);
    thread.uncounted.set(thread.uncounted.get() + cursor.freed_size.get() as usize);
    Some(object)
}

/// Calls `visit` with the objects on the list that begins with `first`.
fn each(first: Address, mut visit: impl FnMut(Address)) {
    let mut object = first;
    while object != 0 {
        // SAFETY: the object is on the list: `put` has written its two words, and nobody else uses it.
        let next = unsafe { (*words(object)).next };
        visit(object);
        object = next;
    }
}

/// Ends all threads' lists: their objects are free. The world stands still, or nobody else allocates.
pub(crate) fn end_lists(space: &AddressTable, slots: usize) {
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
    /// Whether a freed object of the block may be the thread's next one. Not where links may lead to it or
    /// lie in it, where errors are searched for, or where the program reports its writes; nor an old object
    /// where old marks stay, as a new one has none.
    pub(crate) fn reuses(&self, block: &Block, object: Address) -> bool {
        let config = &self.config;
        block.slot.get() != 0
            && block.scan.get() != Scan::Procedure
            && config.plan.constraints().reuses_freed
            && !(config.eager != 0 || config.poison || config.tells_writes)
            && self.incremental.cycle.is_none()
            && (self.tracking.account.is_none()
                || !block.is_marked(block.index_at(object - block.base.get())))
            && self.deaths.links.len() == 0
    }

    /// The thread, which is the caller, ends: the objects that it has freed are remembered, and those that it
    /// has not used in kept blocks.
    pub(crate) fn remember_freed(&mut self, thread: &Thread) {
        thread.each_left(self.slots_in_use(), |object| {
            let _ = self.deaths.freed.push(object);
        });
        for cursor in thread.cursors.iter().take(self.slots_in_use()) {
            each(cursor.freed.replace(0), |object| {
                let is_kept = self.space.table.block_of(object).is_some_and(|block| block.is_kept());
                if self.deaths.freed.len() < REMEMBERED_MAX || is_kept {
                    let _ = self.deaths.freed.push(object);
                }
            });
        }
    }

    /// Takes back freed objects. The world stands still, or nobody else allocates.
    pub(crate) fn take_back_freed(&mut self) {
        end_lists(&self.space.table, self.slots_in_use());
        for &object in self.deaths.freed.iter() {
            if let Some(block) = self.block_starting(object) {
                let index = block.index_at(object - block.base.get()).0;
                block.clear_allocated(index, index + 1);
            }
        }
        self.deaths.freed.truncate(0);
    }
}
