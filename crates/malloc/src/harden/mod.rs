//! The hardened mode, which finds more misuse of memory and is slower. It is off unless `VELLUM_HARDEN=1`.
//!
//! In this mode every thread's fast paths find the empty heap, so that each request takes the slow path. The
//! thread's real heap is in a second thread-local variable. The mode costs nothing while it is off.
//!
//! ```text
//! malloc ─▶ zero bytes? ──▶ `zero`: an address without memory
//!        ─▶ a sample? ────▶ `guarded`: a page of its own between two that fault
//!        ─▶ small ────────▶ block of a slab, with a `tail`
//!                            └ free ─▶ zeroed ─▶ `quarantine` ─▶ slab
//!        ─▶ large ────────▶ extent with a `tail` and a page that faults
//!                            └ free ─▶ inaccessible ─▶ `quarantine` ─▶ page layer
//! ```
//!
//! | module | misuse that it catches |
//! | --- | --- |
//! | [`tail`] | writing past the requested size, even by one byte, found when the block is freed or resized; freeing twice while in quarantine; a size that is not the block's |
//! | [`quarantine`] | writing after free, found when the block leaves quarantine, or at the process's end |
//! | [`guarded`] | reading and writing out of bounds and after free, at that instant, of a few blocks |
//! | [`large`] | for large blocks, reading and writing past the last page and after free, at that instant |
//! | [`zero`] | any use of a block of zero bytes |
//!
//! Blocks are zero when handed out, and zeroed when freed: no mistaken read returns old data. `realloc`
//! always moves the block. Blocks that the loader got before the mode was switched on stay ordinary ones
//! ([`Slab::hardened`](crate::slab::Slab::hardened)); so do blocks of paged memory.

mod guarded;
mod large;
mod quarantine;
mod tail;
mod zero;

use crate::class::{GRANULE, REQUEST_MAX, SMALL_MAX, aligned_class_of, bytes_of, class_of};
use crate::errno::out_of_memory;
use crate::heap::LOST;
use crate::holder::Holder;
use crate::small::check_live;
use crate::space::Space;
use crate::{foreign, misuse, mode, paged, small as slabs, threads, tls};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use vellum_pages::{ALIGN_MAX, PAGE};
use vellum_sys::lock::Guarded;

/// The state of the mode, all zero at first. For the second static see `state`.
struct Harden {
    zeros: zero::Zeros,
    guards: guarded::Guards,
    quarantine: Guarded<quarantine::Quarantine>,
    random: AtomicU64,
    guarded: AtomicUsize,
}

// SAFETY: all fields are plain or atomic words, or locks that are free when zero.
static HARDEN: Harden = unsafe { core::mem::zeroed() };

/// Switches the mode on, for good. To be called while the process has one thread.
pub fn harden() {
    // Blocks handed out before stay in a heap that no thread uses any more.
    if let Some(heap) = tls::current() {
        tls::set_heap(tls::empty());
        heap.tenant.store(LOST, Relaxed);
    }
    Space::get();
    quarantine::begin();
    guarded::begin();
    mode::harden();
}

/// Allocates `bytes` zeroed bytes at a multiple of `align`, a power of two.
#[cold]
pub(crate) fn allocate(align: usize, bytes: usize) -> *mut u8 {
    if bytes > REQUEST_MAX || align > ALIGN_MAX {
        return out_of_memory();
    }
    if bytes == 0
        && let Some(address) = zero::allocate(align)
    {
        return address;
    }
    if bytes >= paged::PAGED_MIN && paged::serves(bytes) {
        return paged::alloc(bytes, align, true);
    }
    if let Some(block) = guarded::allocate(align, bytes) {
        return block;
    }
    let whole = bytes + tail::BYTES;
    let class = match align {
        _ if whole > SMALL_MAX || align > PAGE => None,
        _ if align > GRANULE => aligned_class_of(whole, align),
        _ => Some(class_of(whole)),
    };
    match class {
        Some(class) => small(class, bytes),
        None => large::allocate(align, bytes),
    }
}

fn small(class: usize, bytes: usize) -> *mut u8 {
    let Some(block) = threads::attached().and_then(|heap| heap.allocate(class)) else {
        // The thread may have no heap yet, a signal handler interrupted this very path, or memory is out: the
        // page layer knows.
        return large::allocate(GRANULE, bytes);
    };
    // SAFETY: the block has that many bytes, and is nobody's yet.
    unsafe {
        block.write_bytes(0, bytes);
        tail::write(block, bytes, bytes_of(class));
    }
    block
}

enum Place {
    /// A block of zero bytes.
    Zero,
    /// One of the sampled blocks.
    Guarded,
    /// A block with a tail, of that many bytes altogether, in a slab or not.
    Small(usize),
    Large(usize),
    /// A block without a tail: handed out before the mode was switched on, paged, or another allocator's.
    Plain(Holder),
}

/// The kind of the block at `address`. Ends the process if no block starts there or it is free.
unsafe fn place(function: &str, address: *mut u8) -> Place {
    if zero::owns(address) {
        zero::check(function, address);
        return Place::Zero;
    }
    if guarded::owns(address) {
        return Place::Guarded;
    }
    match Holder::of(address) {
        Holder::Extent(unit) => match large::whole(function, unit, address) {
            Some(whole) => Place::Large(whole),
            None => Place::Plain(Holder::Extent(unit)),
        },
        Holder::Slab(slab) => {
            // SAFETY: the address lies in the slab's unit.
            unsafe { check_live(function, slab, address) };
            match slab.hardened.get() {
                true => Place::Small(slab.bytes.get() as usize),
                false => Place::Plain(Holder::Slab(slab)),
            }
        }
        holder => Place::Plain(holder),
    }
}

/// The requested size of a block, whose tail is checked; `None` for a block without a tail.
unsafe fn requested(function: &str, address: *mut u8, place: &Place) -> Option<usize> {
    match place {
        Place::Zero => Some(0),
        Place::Guarded => Some(guarded::requested(function, address)),
        // SAFETY: a block with a tail starts there.
        Place::Small(whole) | Place::Large(whole) => Some(unsafe { tail::check(function, address, *whole) }),
        Place::Plain(_) => None,
    }
}

/// Frees a block. `said` is the size that the program gives with it, if it does. Safety: the conditions of
/// [`crate::free`].
#[cold]
pub(crate) unsafe fn free(address: *mut u8, said: Option<usize>) {
    // SAFETY: an address that is no block ends the process; the caller gives up what is one.
    unsafe {
        let place = place("free", address);
        let requested = requested("free", address, &place);
        if let (Some(requested), Some(said)) = (requested, said)
            && requested != said
        {
            misuse::refuse_size(address, said, requested);
        }
        match place {
            Place::Zero => zero::free(address),
            Place::Guarded => guarded::free(address),
            Place::Small(whole) => {
                tail::fill(address, whole);
                quarantine::push_small(address, whole);
            }
            Place::Large(whole) => {
                if !large::shut(address, whole) || !quarantine::push_large(address, whole) {
                    large::give_back(address, whole);
                }
            }
            Place::Plain(holder) => free_plain(holder, address),
        }
    }
}

#[inline(never)]
unsafe fn free_plain(holder: Holder, address: *mut u8) {
    // SAFETY: the caller gives the block up.
    unsafe { holder.free(address) };
}

/// Frees a block of a slab that has left quarantine. Safety: the block was in quarantine, and nothing else
/// refers to it.
unsafe fn dismiss(address: *mut u8, whole: usize) {
    // SAFETY: the block was in quarantine, and nothing else refers to it.
    unsafe {
        tail::check_fill(address, whole);
        if let Some(slab) = Space::get().slab_of(address) {
            slabs::free(slab, address);
        }
    }
}

/// The bytes that may be used of a block: the requested size. Safety: the conditions of
/// [`crate::usable_size`].
pub(crate) unsafe fn usable_size(function: &str, address: *mut u8) -> usize {
    // SAFETY: an address that is no block ends the process.
    unsafe {
        let place = place(function, address);
        match (requested(function, address, &place), place) {
            (Some(bytes), _) => bytes,
            (None, Place::Plain(holder)) => holder.usable_size(function, address),
            (None, _) => 0,
        }
    }
}

/// Resizes a block, by moving it. Safety: the conditions of [`crate::realloc`]; `address` is not null.
pub(crate) unsafe fn realloc(address: *mut u8, bytes: usize) -> *mut u8 {
    if !zero::owns(address) && !guarded::owns(address) {
        match Holder::of(address) {
            // SAFETY: the block is in use, by this function's condition.
            Holder::Other => return unsafe { foreign::realloc(address, bytes) },
            // SAFETY: the block is paged and in use.
            Holder::Paged if unsafe { paged::resize(address, bytes) } => return address,
            _ => {}
        }
    }
    // SAFETY: the block is in use; it is given up once its contents are in the new one, which is at least as
    // long as what is copied.
    unsafe {
        let old = usable_size("realloc", address);
        if bytes == 0 {
            free(address, None);
            return core::ptr::null_mut();
        }
        let new = allocate(GRANULE, bytes);
        if !new.is_null() {
            new.copy_from_nonoverlapping(address, old.min(bytes));
            free(address, None);
        }
        new
    }
}

/// Checks all blocks in quarantine, before the process ends: the last report of writes after a free.
pub fn check_quarantine() {
    if mode::is_hardened() {
        quarantine::check();
    }
}

pub(crate) fn fork_prepare() {
    HARDEN.quarantine.raw().lock();
    HARDEN.guards.pool.raw().lock();
}

pub(crate) fn fork_parent() {
    HARDEN.guards.pool.raw().unlock();
    HARDEN.quarantine.raw().unlock();
}

pub(crate) fn fork_child() {
    HARDEN.guards.pool.raw().reset_after_fork();
    HARDEN.quarantine.raw().reset_after_fork();
}
