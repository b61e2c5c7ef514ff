//! `malloc`, `calloc` and `free`: fast paths that inline into the exported symbols, and the slow paths behind
//! them.
//!
//! The fast paths make no call, take no lock and test nothing that the slow path could: no *has this thread a
//! heap?* (the empty heap's lists are empty), no *is the size zero?* (class 0 is empty), no *is the address
//! null?* (it lies outside every span).

use crate::class::{CLASSES, COARSE_GRANULE, FINE_MAX, GRANULE, SMALL_MAX, class_of};
use crate::errno::out_of_memory;
use crate::heap::Heap;
use crate::mode::{self, Mode};
use crate::slab::{Block, Slab};
use crate::space::{Space, push_remote, slab_at};
use crate::{arch, foreign, harden, large, misuse, passthrough, threads, tls};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use misuse::Fault;

/// Allocates `bytes` bytes; null (and `ENOMEM`) when there are none.
#[inline(always)]
pub fn malloc(bytes: usize) -> *mut u8 {
    if bytes <= FINE_MAX {
        let heap = tls::heap();
        // SAFETY: the table has an entry for every number of granules up to FINE_MAX, a class below CLASSES.
        unsafe { pop(heap, usize::from(heap.fine.get_unchecked(bytes.div_ceil(GRANULE)).get()), bytes) }
    } else if bytes <= SMALL_MAX {
        let heap = tls::heap();
        // SAFETY: the table has an entry for every number of coarse granules below SMALL_MAX, a class below
        // CLASSES.
        unsafe {
            pop(heap, usize::from(heap.coarse.get_unchecked((bytes - 1) / COARSE_GRANULE).get()), bytes)
        }
    } else {
        large::malloc(bytes)
    }
}

/// # Safety
/// `class` is the class of `bytes`, or 0 in the empty heap.
#[inline(always)]
unsafe fn pop(heap: &Heap, class: usize, bytes: usize) -> *mut u8 {
    debug_assert!(class < CLASSES);
    // SAFETY: the caller vouches for `class`.
    let list = unsafe { heap.free.get_unchecked(class) };
    let block = list.get();
    if block.is_null() {
        return malloc_slow(bytes);
    }
    // SAFETY: a block on the list is free memory of at least two words.
    let free = unsafe { &*block };
    let Some(next) = free.sealed_next() else {
        return overwritten(block);
    };
    list.set(next);
    free.unseal();
    block.cast()
}

/// Never returns. Of a type that it can be jumped to.
#[cold]
#[inline(never)]
fn overwritten(block: *mut Block) -> *mut u8 {
    misuse::refuse_small("malloc", block.cast(), Fault::Overwritten)
}

/// Allocates and clears `count` times `bytes` bytes.
#[inline(always)]
pub fn calloc(count: usize, bytes: usize) -> *mut u8 {
    let Some(total) = count.checked_mul(bytes) else {
        return out_of_memory();
    };
    if total > SMALL_MAX {
        return large::calloc(total);
    }
    let block = malloc(total);
    if !block.is_null() {
        // SAFETY: the block has at least `total` bytes.
        unsafe { block.write_bytes(0, total) };
    }
    block
}

/// Frees a block.
///
/// # Safety
/// `address` is null or a block that was handed out and not freed since.
#[inline(always)]
pub unsafe fn free(address: *mut u8) {
    let heap = tls::heap();
    let offset = (address as usize).wrapping_sub(heap.base.get());
    if offset < heap.bytes.get() {
        // SAFETY: `offset` lies within the span.
        let slab = unsafe { slab_at(heap.side.get(), offset) };
        if slab.is_owned_by(heap) {
            // SAFETY: the block is the caller's to give up, and its slab this thread's.
            return unsafe { push_local(slab, address) };
        }
    }
    // SAFETY: passed on.
    unsafe { free_slow(address) }
}

/// # Safety
/// `address` is a block in use of `slab`, which belongs to the calling thread's heap.
#[inline(always)]
unsafe fn push_local(slab: &'static Slab, address: *mut u8) {
    // SAFETY: the slab is this thread's; a block has at least two words.
    if unsafe { !slab.is_own_start(address) || (*address.cast::<Block>()).may_be_sealed() } {
        // SAFETY: by this function's own condition; `push_suspect` checks a suspect block again.
        return unsafe { push_suspect(address, slab) };
    }
    // SAFETY: a block in use starts there.
    unsafe { push_checked(slab, address) };
}

/// # Safety
/// As for [`push_local`], and a block does start there.
#[inline(always)]
unsafe fn push_checked(slab: &'static Slab, address: *mut u8) {
    let block = address.cast::<Block>();
    // SAFETY: the block is free memory now.
    unsafe { (*block).link(slab.free.get()) };
    slab.free.set(block);
    // SAFETY: nobody else writes that word of the slab now. Who sees the count sees the list: see
    // `Slab::live`.
    unsafe { arch::count_down::<Slab, { offset_of!(Slab, needed) }>(slab, || settle(slab)) };
}

/// # Safety
/// As for [`push_local`].
#[cold]
#[inline(never)]
unsafe fn push_suspect(address: *mut u8, slab: &'static Slab) {
    // SAFETY: a block in use starts there, once it has been checked.
    unsafe {
        check_live("free", slab, address);
        push_checked(slab, address);
    }
}

/// Ends the process if no block of `slab` starts at `address`, or it is free already.
///
/// # Safety
/// `address` lies in the unit of `slab`, which is one.
pub(crate) unsafe fn check_live(function: &str, slab: &Slab, address: *mut u8) {
    if !slab.is_start(address) {
        misuse::refuse_small(function, address, Fault::NoStart);
    }
    // What a block held on a vacated page is gone, and its seal too.
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

/// Free blocks that are compared with one that may be free.
const LOOKED_AT_MAX: usize = 64;

/// Whether `block` is among the newest of the free blocks of `slab` that the calling thread can look at:
/// those of its own slabs.
#[cold]
fn is_listed(slab: &Slab, block: *mut Block) -> bool {
    let is_own = |heap: &&Heap| slab.owner.load(Relaxed).cast_const() == core::ptr::from_ref(*heap);
    let Some(heap) = threads::current().filter(is_own) else {
        return false;
    };
    [&slab.free, &heap.free[usize::from(slab.class.get())]].into_iter().any(|list| {
        let mut next = list.get();
        for _ in 0..LOOKED_AT_MAX {
            if next.is_null() || next == block {
                break;
            }
            // SAFETY: the list's blocks are free, and end in null.
            next = unsafe { (*next).next() };
        }
        next == block
    })
}

#[cold]
#[inline(never)]
fn settle(slab: &'static Slab) {
    let Some(heap) = threads::current() else {
        return;
    };
    if heap.gate.enter() {
        heap.settle(slab);
        heap.gate.leave();
    } else {
        Heap::settle_later(slab);
    }
}

/// Allocates a small block when the thread's list is empty, or the thread has no heap.
#[cold]
#[inline(never)]
fn malloc_slow(bytes: usize) -> *mut u8 {
    match mode::special() {
        None => {}
        Some(Mode::Hardened) => return harden::allocate(GRANULE, bytes),
        Some(Mode::Profiled(hooks)) => {
            if let Some(block) = (hooks.allocate_small)(bytes) {
                return block;
            }
        }
    }
    let Some(heap) = threads::attached() else {
        return match passthrough::next() {
            // SAFETY: plain malloc.
            Some(next) => unsafe { (next.malloc)(bytes) }.cast(),
            // The thread may have no heap yet, or memory is out: the page layer serves it, or says so.
            None => large::malloc(bytes.max(1)),
        };
    };
    match take(heap, class_of(bytes.max(1))) {
        Some(block) => block,
        // A signal handler interrupted this very path: the page layer serves it.
        None if heap.gate.is_inside() => large::malloc(bytes.max(1)),
        None => out_of_memory(),
    }
}

/// Takes a block of `class` off the thread's list, which is filled if it is empty; `None` if memory is out,
/// or the thread is inside its heap's gate.
pub(crate) fn take(heap: &'static Heap, class: usize) -> Option<*mut u8> {
    let mut block = heap.free[class].get();
    if block.is_null() {
        if !heap.gate.enter() {
            return None;
        }
        block = heap.refill(class);
        heap.gate.leave();
    }
    // SAFETY: a block on the list is free memory of at least two words.
    let free = unsafe { block.as_ref() }?;
    heap.free[class].set(free.next());
    free.unseal();
    Some(block.cast())
}

/// Frees what is not a block of the calling thread's own slabs.
///
/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_slow(address: *mut u8) {
    if address.is_null() {
        return;
    }
    match mode::special() {
        None => {}
        // SAFETY: the caller gives the block up.
        Some(Mode::Hardened) => return unsafe { harden::free(address, None) },
        // SAFETY: as above.
        Some(Mode::Profiled(hooks)) if unsafe { (hooks.free_small)(address) } => return,
        Some(Mode::Profiled(_)) => {}
    }
    let Some(slab) = Space::get().slab_of(address) else {
        // SAFETY: passed on.
        return unsafe { foreign::free(address) };
    };
    if slab.owner.load(Relaxed).is_null() {
        // SAFETY: passed on.
        return unsafe { large::free(slab, address) };
    }
    // SAFETY: the block is the caller's to give up.
    unsafe {
        check_live("free", slab, address);
        if !push_remote(slab, address, address, 1) {
            misuse::refuse_small("free", address, Fault::AlreadyFree);
        }
    }
}

/// Frees a block whose size the program tells, as `operator delete` with a size does. A size that does not
/// fit in the block is refused; in the hardened mode, any but the one that was asked for.
///
/// # Safety
/// As for [`free`].
#[inline(always)]
pub unsafe fn free_sized(address: *mut u8, bytes: usize) {
    let heap = tls::heap();
    let offset = (address as usize).wrapping_sub(heap.base.get());
    if offset < heap.bytes.get() {
        // SAFETY: `offset` lies within the span.
        let slab = unsafe { slab_at(heap.side.get(), offset) };
        if slab.is_owned_by(heap) && bytes <= slab.bytes.get() as usize {
            // SAFETY: the block is the caller's to give up, and its slab this thread's.
            return unsafe { push_local(slab, address) };
        }
    }
    // SAFETY: the caller gives the block up.
    unsafe { free_sized_slow(address, bytes) }
}

/// # Safety
/// As for [`free`].
#[cold]
#[inline(never)]
unsafe fn free_sized_slow(address: *mut u8, bytes: usize) {
    // SAFETY: the caller gives the block up; a slab's description is that of the block's unit.
    unsafe {
        if mode::is_hardened() && !address.is_null() {
            return harden::free(address, Some(bytes));
        }
        if let Some(slab) = Space::get().slab_of(address).filter(|slab| !slab.owner.load(Relaxed).is_null()) {
            let has = slab.bytes.get() as usize;
            if bytes > has {
                check_live("free", slab, address);
                misuse::refuse_size(address, bytes, has);
            }
        }
        free_slow(address);
    }
}

/// Frees a block of any thread's slab, or one of the page layer, as it is without the hardened mode.
///
/// # Safety
/// As for [`free`]; `slab` describes the block's unit.
pub(crate) unsafe fn free_plain(slab: &'static Slab, address: *mut u8) {
    let owner = slab.owner.load(Relaxed);
    // SAFETY: as this function says; a block of the thread's own slab is on no list, as the caller has
    // checked.
    unsafe {
        if owner.is_null() {
            large::free(slab, address);
        } else if threads::current().is_some_and(|heap| core::ptr::eq(owner, heap)) {
            push_local(slab, address);
        } else if !push_remote(slab, address, address, 1) {
            misuse::refuse_small("free", address, Fault::AlreadyFree);
        }
    }
}

/// The bytes that may be used of a block; 0 for null.
///
/// # Safety
/// As for [`free`].
pub unsafe fn usable_size(address: *mut u8) -> usize {
    if address.is_null() {
        return 0;
    }
    if mode::is_hardened() {
        // SAFETY: the block is in use, by this function's condition.
        return unsafe { harden::usable_size("malloc_usable_size", address) };
    }
    let Some(slab) = Space::get().slab_of(address) else {
        // SAFETY: passed on.
        return unsafe { foreign::usable_size(address) };
    };
    if slab.owner.load(Relaxed).is_null() {
        return large::usable_size("malloc_usable_size", address);
    }
    // SAFETY: the slab is the block's.
    unsafe { check_live("malloc_usable_size", slab, address) };
    slab.bytes.get() as usize
}
