//! Blocks above [`SMALL_MAX`](crate::class::SMALL_MAX): extents of the page layer, exact to the page.
//!
//! The shorter ones wait in the thread's magazine when they are freed ([`crate::magazine`]), and their
//! lengths are remembered beside slabs ([`crate::lengths`]), so that most requests need nothing of the page
//! layer.

use crate::class::{GRANULE, REQUEST_MAX};
use crate::errno::out_of_memory;
use crate::lengths::{KEPT, SAMPLED, length_in, length_of};
use crate::magazine::{KEPT_PAGES_MAX, give_back};
use crate::mode::{self, Mode};
use crate::slab::Slab;
use crate::space::Space;
use crate::{harden, misuse, paged, passthrough, threads};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use libc::c_void;
use vellum_pages::{Extent, Misuse, PAGE, Pages, Request};

fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(PAGE)
}

/// Allocates a large block.
#[cold]
#[inline(never)]
pub(crate) fn malloc(bytes: usize) -> *mut u8 {
    match mode::special() {
        None => usual_malloc(bytes),
        Some(Mode::Hardened) => harden::allocate(GRANULE, bytes),
        Some(Mode::Profiled(_)) => mode::consider(usual_malloc(bytes), bytes),
    }
}

#[inline]
fn usual_malloc(bytes: usize) -> *mut u8 {
    if let Some(block) = kept(bytes) {
        return block;
    }
    if let Some(next) = passthrough::next() {
        // SAFETY: plain malloc.
        return unsafe { (next.malloc)(bytes) }.cast();
    }
    block(bytes, PAGE, false)
}

/// Allocates a large block of zeros.
#[cold]
#[inline(never)]
pub(crate) fn calloc(bytes: usize) -> *mut u8 {
    match mode::special() {
        None => usual_calloc(bytes),
        Some(Mode::Hardened) => harden::allocate(GRANULE, bytes),
        Some(Mode::Profiled(_)) => mode::consider(usual_calloc(bytes), bytes),
    }
}

#[inline]
fn usual_calloc(bytes: usize) -> *mut u8 {
    if let Some(block) = kept(bytes) {
        // SAFETY: the block has at least `bytes` bytes.
        unsafe { block.write_bytes(0, bytes) };
        return block;
    }
    if let Some(next) = passthrough::next() {
        // SAFETY: plain calloc.
        return unsafe { (next.calloc)(1, bytes) }.cast();
    }
    block(bytes, PAGE, true)
}

/// A block out of the thread's magazine.
#[inline]
fn kept(bytes: usize) -> Option<*mut u8> {
    if bytes > KEPT_PAGES_MAX * PAGE {
        return None;
    }
    let heap = threads::attached()?;
    if !heap.gate.enter() {
        return None;
    }
    let pages = pages_of(bytes);
    let address = heap.magazine.take(pages);
    heap.gate.leave();
    let block: *mut u8 = core::ptr::with_exposed_provenance_mut(address?);
    if let Some(length) = length_of(block) {
        length.store(pages as u32, Relaxed);
    }
    Some(block)
}

/// A large block from the pager or the page layer; `zero` asks for zeros. Null (and `ENOMEM`) when there is
/// none.
pub(crate) fn block(bytes: usize, align: usize, zero: bool) -> *mut u8 {
    if bytes > REQUEST_MAX {
        return out_of_memory();
    }
    if paged::wants(bytes) {
        return paged::alloc(bytes, align, zero);
    }
    extent(bytes, align, zero).map_or_else(out_of_memory, |extent| extent.addr.as_ptr())
}

/// An extent of at least `bytes` bytes from the page layer; `zero` asks for one known to be zero.
fn extent(bytes: usize, align: usize, zero: bool) -> Option<Extent> {
    let extent = Pages::global().alloc(Request { bytes: bytes.max(1), align: align.max(PAGE), zero }).ok()?;
    remember(extent);
    Some(extent)
}

fn remember(extent: Extent) {
    let pages = extent.bytes / PAGE;
    if pages <= KEPT_PAGES_MAX
        && let Some(length) = length_of(extent.addr.as_ptr())
    {
        length.store(pages as u32, Relaxed);
    }
}

/// Frees a large block, or ends the process if it is none.
///
/// # Safety
/// Nobody uses the block any more; `slab` describes its unit, which is no slab.
pub(crate) unsafe fn free(slab: &'static Slab, address: *mut u8) {
    let Some(length) = length_in(slab, address) else {
        // SAFETY: passed on, to be refused.
        return unsafe { give_back("free", address) };
    };
    let mut pages = length.load(Relaxed);
    if pages & (KEPT | SAMPLED) != 0 {
        match unmark(length, address) {
            Some(unmarked) => pages = unmarked,
            None => return,
        }
    }
    if pages != 0
        && let Some(heap) = threads::current()
        && heap.gate.enter()
    {
        length.store(pages | KEPT, Relaxed);
        heap.magazine.keep(address as usize, pages as usize);
        heap.gate.leave();
        return;
    }
    // Where nothing was ever handed out the table can be read only.
    if pages != 0 {
        length.store(0, Relaxed);
    }
    // SAFETY: passed on.
    unsafe { give_back("free", address) };
}

/// Forgets the stack of a block that is freed, and returns its word without the mark; `None` if it must be
/// freed later. Ends the process if the block is free already.
#[cold]
#[inline(never)]
fn unmark(length: &AtomicU32, address: *mut u8) -> Option<u32> {
    let pages = length.load(Relaxed);
    if pages & KEPT != 0 {
        misuse::refuse("free", address, Misuse::AlreadyFree);
    }
    if mode::profiled().is_some_and(|hooks| !(hooks.freed_large)(address)) {
        return None;
    }
    length.store(pages & !SAMPLED, Relaxed);
    Some(pages & !SAMPLED)
}

/// The length of the large block at `address`, or the end of the process if it is none.
pub(crate) fn usable_size(function: &str, address: *mut u8) -> usize {
    match length_of(address).map_or(0, |length| length.load(Relaxed)) {
        0 | SAMPLED => match Pages::global().extent_at(address) {
            Ok(extent) => extent.bytes,
            Err(misuse) => misuse::refuse(function, address, misuse),
        },
        pages if pages & KEPT != 0 => misuse::refuse(function, address, Misuse::AlreadyFree),
        pages => (pages & !SAMPLED) as usize * PAGE,
    }
}

/// Grows or shrinks a large block of `old` bytes, in place or by moving it; null leaves it as it was.
///
/// # Safety
/// `address` is a large block in use.
pub(crate) unsafe fn resize(address: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    if bytes > REQUEST_MAX {
        return out_of_memory();
    }
    if pages_of(bytes) * PAGE == old {
        return address;
    }
    if paged::wants(bytes) {
        // SAFETY: passed on.
        return unsafe { move_to_pager(address, old, bytes) };
    }
    let Some(start) = NonNull::new(address) else {
        return null_mut();
    };
    let length = length_of(address);
    let remembered = unsampled(length.map_or(0, |length| length.swap(0, Relaxed)), address);
    // SAFETY: the caller vouches for the block.
    match unsafe { Pages::global().resize(start, bytes) } {
        Ok(extent) => {
            remember(extent);
            mode::consider(extent.addr.as_ptr(), bytes)
        }
        Err(_) => {
            if let Some(length) = length {
                length.store(remembered, Relaxed);
            }
            out_of_memory()
        }
    }
}

/// The word of a block without the mark of a sampled one, whose stack is forgotten.
#[inline]
fn unsampled(word: u32, address: *mut u8) -> u32 {
    if word & SAMPLED != 0
        && let Some(hooks) = mode::profiled()
    {
        (hooks.drop_record)(address);
    }
    word & !SAMPLED
}

/// # Safety
/// As [`resize`].
unsafe fn move_to_pager(address: *mut u8, old: usize, bytes: usize) -> *mut u8 {
    let new = paged::alloc(bytes, PAGE, false);
    if !new.is_null() {
        // SAFETY: two different blocks, of at least the shorter length; the old one is given up then.
        unsafe {
            new.copy_from_nonoverlapping(address, old.min(bytes));
            crate::free(address);
        }
    }
    new
}

/// Moves a large block to a place of its own by moving its page tables; null leaves it where it was.
///
/// # Safety
/// `block` is in use; unless the result is null, only the result may be used afterwards.
pub unsafe fn relocate(block: *mut u8, align: usize) -> *mut u8 {
    let Some(length) = large_block(block).filter(|_| !mode::is_hardened()) else {
        return out_of_memory();
    };
    let Some(start) = NonNull::new(block) else {
        return null_mut();
    };
    let remembered = unsampled(length.swap(0, Relaxed), block);
    // SAFETY: the block is large and in use.
    match unsafe { Pages::global().relocate(start, align) } {
        Ok(extent) => {
            remember(extent);
            mode::consider(extent.addr.as_ptr(), extent.bytes)
        }
        Err(_) => {
            length.store(remembered, Relaxed);
            out_of_memory()
        }
    }
}

/// Exchanges the contents of two large blocks of one length by exchanging their page tables. False if they
/// are not such blocks, or address space is out; nothing has changed then.
///
/// # Safety
/// Both blocks are in use by the caller alone.
pub unsafe fn swap(a: *mut u8, b: *mut u8) -> bool {
    let (Some(start_a), Some(start_b)) = (NonNull::new(a), NonNull::new(b)) else {
        return false;
    };
    let are_large = !mode::is_hardened() && large_block(a).is_some() && large_block(b).is_some();
    // SAFETY: the blocks are large, and the caller's.
    are_large && unsafe { Pages::global().swap(start_a, start_b) }.is_ok()
}

/// The word that remembers the block at `address`, if that starts a large block in use.
fn large_block(address: *mut u8) -> Option<&'static AtomicU32> {
    let slab = Space::get().slab_of(address).filter(|slab| slab.owner.load(Relaxed).is_null())?;
    let length = length_in(slab, address)?;
    let is_kept = length.load(Relaxed) & KEPT != 0;
    (!is_kept && Pages::global().extent_at(address).is_ok()).then_some(length)
}

/// An aligned block from the next allocator, when Vellum passes requests through.
pub(crate) fn passthrough_aligned(next: &passthrough::Next, align: usize, bytes: usize) -> *mut u8 {
    let mut block: *mut c_void = null_mut();
    // SAFETY: plain posix_memalign.
    match unsafe { (next.posix_memalign)(&raw mut block, align, bytes) } {
        0 => block.cast(),
        _ => out_of_memory(),
    }
}
