//! Frees of small blocks, by the slab's owner or by another thread, with the checks before each.

use crate::heap::Heap;
use crate::misuse::{self, Fault};
use crate::remote::Pushed;
use crate::slab::{Block, Slab};
use crate::space::{block_at, granule_of};
use crate::{arch, tls};
use core::mem::offset_of;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;
use vellum_pages::{Pages, UNIT};

/// Free blocks compared with a block that may be free.
const COMPARED_MAX: usize = 64;

/// Frees a block to a slab of the calling thread. Safety: `address` is a block in use of `slab`, which
/// belongs to the calling thread's heap.
#[inline(always)]
pub(crate) unsafe fn push_local(slab: &'static Slab, address: *mut u8) {
    // SAFETY: the slab is this thread's; a block has at least two words.
    if unsafe { !slab.is_own_start(address) || (*address.cast::<Block>()).may_be_sealed() } {
        // SAFETY: the slab is this thread's, by this function's condition; `push_suspect` checks that a block
        // starts there.
        return unsafe { push_suspect(address, slab) };
    }
    // SAFETY: a block of the slab starts there, by the test above, and the caller gives it up.
    unsafe { push_checked(slab, address) };
}

/// Safety: the conditions of [`push_local`], and a block does start there.
#[inline(always)]
unsafe fn push_checked(slab: &'static Slab, address: *mut u8) {
    let block = address.cast::<Block>();
    // SAFETY: the block is free memory now.
    unsafe { (*block).link(slab.free.get()) };
    slab.free.set(block);
    // SAFETY: only the owner's thread writes that word of the slab while its gate is open, and this is that
    // thread. Who sees the count sees the list: see `Slab::live`.
    unsafe { arch::count_down::<Slab, { offset_of!(Slab, needed) }>(slab, || place(slab)) };
}

/// Safety: the conditions of [`push_local`].
#[cold]
#[inline(never)]
unsafe fn push_suspect(address: *mut u8, slab: &'static Slab) {
    // SAFETY: `check_live` returns only if a block in use starts there; the caller gives it up.
    unsafe {
        check_live("free", slab, address);
        push_checked(slab, address);
    }
}

/// Places a slab whose count of frees has reached zero.
#[cold]
#[inline(never)]
fn place(slab: &'static Slab) {
    let Some(heap) = tls::current() else {
        return;
    };
    if heap.gate.enter() {
        heap.place(slab);
        heap.gate.leave();
    } else {
        Heap::place_later(slab);
    }
}

/// Frees a block of a slab, which may be any thread's. Safety: `address` is a block in use of `slab`, and the
/// caller gives it up.
pub(crate) unsafe fn free(slab: &'static Slab, address: *mut u8) {
    // SAFETY: the block is in use and given up; `push_local` is called for a slab of this thread's heap only.
    unsafe {
        if tls::current().is_some_and(|heap| slab.is_of(heap)) {
            push_local(slab, address);
        } else {
            free_remote(slab, address);
        }
    }
}

/// Frees a block of a slab that is not the calling thread's, or ends the process if it was freed just before.
/// Safety: the conditions of [`free`].
pub(crate) unsafe fn free_remote(slab: &'static Slab, address: *mut u8) {
    // SAFETY: a chain of one block, which the caller gives up.
    if !unsafe { push_remote(slab, address, address, 1) } {
        misuse::refuse_small("free", address, Fault::AlreadyFree);
    }
}

/// Puts a chain of blocks of `slab`, from `first` to `last`, on the slab's remote list, and puts the slab on
/// its owner's stack if that is due. Returns false if the chain's first block was freed just before. Safety:
/// the blocks belong to `slab`, are in use, and lead from one to the next.
#[inline]
pub(crate) unsafe fn push_remote(slab: &Slab, first: *mut u8, last: *mut u8, blocks: u32) -> bool {
    let unit = (first as usize) & !(UNIT - 1);
    let owner = slab.owner.load(Relaxed);
    let pushed = slab.remote.push(granule_of(first), blocks, u32::from(slab.remote_wake.get()), |head| {
        let next = match head {
            Some(granule) => block_at(core::ptr::with_exposed_provenance_mut(unit), granule),
            None => null_mut(),
        };
        // SAFETY: the caller gives `last` up, and it is on no list yet.
        unsafe { (*last.cast::<Block>()).link(next) };
    });
    if pushed == Pushed::Notify {
        // SAFETY: heaps are never unmapped. If the slab has changed hands meanwhile, the old owner passes it
        // on; it is not given back before it has been drained.
        unsafe { (*owner.cast::<Heap>()).woken.push(slab) };
        Pages::global().ensure_helper();
    }
    pushed != Pushed::Twice
}

/// Ends the process if no block of `slab` starts at `address`, or it is free already. Safety: `address` lies
/// in the unit of `slab`, which is one.
pub(crate) unsafe fn check_live(function: &str, slab: &Slab, address: *mut u8) {
    if !slab.is_start(address) {
        misuse::refuse_small(function, address, Fault::NoStart);
    }
    // A vacated page has lost its blocks' seals.
    if slab.vacated() != 0 && slab.is_vacated(address) {
        misuse::refuse_small(function, address, Fault::AlreadyFree);
    }
    // SAFETY: a block starts there.
    if unsafe { (*address.cast::<Block>()).is_sealed() }
        && (!slab.unclean.get() || is_listed(slab, address.cast()))
    {
        misuse::refuse_small(function, address, Fault::AlreadyFree);
    }
}

/// True if `slab` is the calling thread's and `block` among its newest free blocks. Other threads' lists
/// cannot be read.
#[cold]
fn is_listed(slab: &Slab, block: *mut Block) -> bool {
    let Some(heap) = tls::current().filter(|heap| slab.is_of(heap)) else {
        return false;
    };
    [&slab.free, &heap.free[usize::from(slab.class.get())]].into_iter().any(|list| {
        let mut next = list.get();
        for _ in 0..COMPARED_MAX {
            if next.is_null() || next == block {
                break;
            }
            // SAFETY: the list's blocks are free, and end in null.
            next = unsafe { (*next).next() };
        }
        next == block
    })
}
