//! The hardened mode: slower, and far fewer ways to hurt oneself unnoticed. Off unless `VELLUM_HARDEN=1`.
//!
//! While it is on, threads keep the empty heap in front of the fast paths, so that every request falls
//! through to the slow paths, and those ask [`crate::mode`]. The heap that blocks really come from is in a
//! thread-local word of its own. So the mode costs nothing while it is off.
//!
//! ```text
//! malloc ─▶ zero bytes? ──▶ `zero`: an address without memory
//!        ─▶ a sample? ────▶ `guarded`: a page of its own between two that fault
//!        ─▶ small ────────▶ block of a slab, with a `tail`
//!                            └ free ─▶ filled ─▶ `quarantine` ─▶ slab
//!        ─▶ large ────────▶ extent with a `tail` and a page that faults
//!                            └ free ─▶ inaccessible ─▶ `quarantine` ─▶ page layer
//! ```
//!
//! | module | what it catches |
//! | --- | --- |
//! | [`tail`] | writing past the requested size, by one byte, when the block is freed or resized; freeing twice while in quarantine; a size that is not the block's |
//! | [`quarantine`] | writing after free, once the block leaves it, or at the end of the process |
//! | [`guarded`] | reading and writing out of bounds and after free, at that instant, of a few blocks |
//! | [`large`] | the same of all large blocks, past the last page |
//! | [`zero`] | any use of a block of zero bytes |
//!
//! Contents are zero when handed out, and zero from the moment of being freed: nothing that is read by
//! mistake is old data. `realloc` always moves. Blocks that were handed out before the mode was switched on,
//! by the loader, stay ordinary ones ([`Slab::hardened`]); so do those of paged memory.

mod guarded;
mod large;
mod quarantine;
mod tail;
mod zero;

use crate::class::{GRANULE, REQUEST_MAX, SMALL_MAX, aligned_class_of, bytes_of, class_of};
use crate::errno::out_of_memory;
use crate::heap::LOST;
use crate::holder::Holder;
use crate::misuse;
use crate::mode;
use crate::small::check_live;
use crate::space::Space;
use crate::{foreign, paged, small as slabs, threads, tls};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use vellum_pages::PAGE;
use vellum_sys::lock::Guarded;

/// The state of the mode. A static of its own, as `state` says.
struct Harden {
    zeros: zero::Zeros,
    guards: guarded::Guards,
    quarantine: Guarded<quarantine::Quarantine>,
    /// The state of the random numbers.
    random: AtomicU64,
    /// Large blocks with a guard page, or inaccessible.
    guarded: AtomicUsize,
}

static HARDEN: Harden = Harden {
    zeros: zero::Zeros::new(),
    guards: guarded::Guards::new(),
    quarantine: Guarded::new(quarantine::Quarantine::new()),
    random: AtomicU64::new(0),
    guarded: AtomicUsize::new(0),
};

/// Switches the mode on, for good. To be called while the process has one thread.
pub fn harden() {
    // What was handed out before stays in a heap that nobody uses any more.
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
    if bytes > REQUEST_MAX {
        return out_of_memory();
    }
    if bytes == 0
        && let Some(address) = zero::allocate(align)
    {
        return address;
    }
    if bytes >= paged::PAGED_MIN && paged::wants(bytes) {
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

/// What an address is.
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

/// Finds out what `address` is, and ends the process if no block starts there or it is free.
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

/// The requested size of a block, whose tail is checked; `None` for those that have none.
unsafe fn requested(function: &str, address: *mut u8, place: &Place) -> Option<usize> {
    match place {
        Place::Zero => Some(0),
        Place::Guarded => Some(guarded::requested(function, address)),
        // SAFETY: a block with a tail starts there.
        Place::Small(whole) | Place::Large(whole) => Some(unsafe { tail::check(function, address, *whole) }),
        Place::Plain(_) => None,
    }
}

/// Frees a block. `said` is the size that the program gives with it, if it does.
///
/// # Safety
/// As for [`crate::free`].
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

/// Frees a block of a slab that has left quarantine.
///
/// # Safety
/// It was put there, and is nobody's.
unsafe fn dismiss(address: *mut u8, whole: usize) {
    // SAFETY: as this function says.
    unsafe {
        tail::check_fill(address, whole);
        if let Some(slab) = Space::get().slab_of(address) {
            slabs::free(slab, address);
        }
    }
}

/// The bytes that may be used of a block: those asked for.
///
/// # Safety
/// As for [`crate::usable_size`].
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

/// Resizes a block, by moving it.
///
/// # Safety
/// As for [`crate::realloc`]; `address` is not null.
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

/// Looks at everything in quarantine, for a process that ends: a write after a free is reported then at the
/// latest.
pub fn check_quarantine() {
    if mode::is_hardened() {
        quarantine::check();
    }
}

/// Before `fork`, in the parent.
pub(crate) fn fork_prepare() {
    quarantine::lock().lock();
    guarded::lock().lock();
}

pub(crate) fn fork_parent() {
    guarded::lock().unlock();
    quarantine::lock().unlock();
}

pub(crate) fn fork_child() {
    guarded::lock().reset_after_fork();
    quarantine::lock().reset_after_fork();
}
