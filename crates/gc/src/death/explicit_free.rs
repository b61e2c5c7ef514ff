//! Explicit frees: the reuse of objects that the program frees itself.
//!
//! ```text
//! large          ──▶ returned at once
//! small          ──▶ the thread's list for the slot ──▶ the thread's next objects of that slot (`reuses`)
//!                ──▶ else: the heap's list of freed objects, until the next collection
//! ```
//!
//! A *slot* is all objects of one size and pointer layout. A freed small object stays allocated at first:
//! only the thread that allocates from the object's block may change the block's allocation bits. Either the
//! thread that freed the object gets it again as a new object. Or the heap lists the object and frees it in
//! the next collection, even if some word still looks like its address. If the heap's list is full, the
//! object is ordinary garbage.
//!
//! # Invariants
//! * An object on a thread's list begins with the address of the next object on the list, and a *seal*. The
//!   other words are zero if the object has pointers. The seal (a constant mixed with the address) reveals a
//!   second free by the same thread. If a valid seal is found, the list is searched, as a program may write
//!   the same value by accident.
//! * Objects on threads' lists have no finalizer, link, disclaimer or ephemeron. All threads' lists are
//!   emptied when a trace begins, with the world stopped. Their objects are free from then on.

use crate::process::hooks::IMAGE;
use crate::space::address_table::AddressTable;
use crate::space::block::{Block, Scan};
use crate::space::size_class::{GRANULE, TYPED_FIRST, WORD};
use crate::world::World;
use crate::world::thread::Thread;
use vellum_sys::Addr;

/// Objects that are remembered at most: 64 KiB of addresses. Kept ones are always remembered: else they would
/// stay.
pub(crate) const REMEMBERED_MAX: usize = 8192;

/// A word that a program writes by accident only, mixed with the addresses of the library and the object.
const SEAL: usize = 0x5ea1_9ed0_f4ee_d0b1;

/// The first two words of an object that is on a thread's list.
#[repr(C)]
struct Freed {
    next: Addr,
    seal: usize,
}

const _: () = assert!(size_of::<Freed>() <= GRANULE && size_of::<Freed>() == 2 * WORD);

fn words(object: Addr) -> *mut Freed {
    object.ptr()
}

fn seal(object: Addr) -> usize {
    (&raw const IMAGE).addr().wrapping_mul(SEAL) ^ object.get()
}

/// Returns whether the thread, which is the caller, has freed the object and has it on its list.
pub(crate) fn is_listed(thread: &Thread, block: &Block, object: Addr) -> bool {
    // SAFETY: a small object has two words, which may be read.
    let may_be = unsafe { (*words(object)).seal } == seal(object);
    let mut is_there = false;
    if may_be {
        each(thread.cursors[usize::from(block.slot.get())].freed.get(), |this| is_there |= this == object);
    }
    is_there
}

/// Puts an object on the list of the thread, which is the caller, inside.
pub(crate) fn put(thread: &Thread, block: &Block, object: Addr) {
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
pub(crate) fn again(thread: &Thread, slot: usize) -> Option<Addr> {
    let cursor = &thread.cursors[slot];
    let object = cursor.freed.get();
    if object.is_null() {
        return None;
    }
    // SAFETY: the object is on the list: `put` has written its two words, and nobody else uses it.
    let Freed { next, .. } = unsafe { words(object).replace(Freed { next: Addr::NULL, seal: 0 }) };
    cursor.freed.set(next);
    thread.uncounted.set(thread.uncounted.get() + cursor.freed_size.get() as usize);
    Some(object)
}

/// Calls `visit` with the objects on the list that begins with `first`.
pub(crate) fn each(first: Addr, mut visit: impl FnMut(Addr)) {
    let mut object = first;
    while !object.is_null() {
        // SAFETY: the object is on the list: `put` has written its two words, and nobody else uses it.
        let next = unsafe { (*words(object)).next };
        visit(object);
        object = next;
    }
}

/// Ends all threads' lists: their objects are free. The world stands still, or nobody else allocates.
pub(crate) fn end_lists(world: &World, space: &AddressTable, slots: usize) {
    for thread in world.known() {
        for cursor in thread.cursors.iter().take(slots) {
            each(cursor.freed.take(), |object| {
                if let Some(block) = space.block_of(object) {
                    let index = block.index_at(object - block.base.get()).0;
                    block.clear_allocated(index, index + 1);
                }
            });
        }
    }
}
