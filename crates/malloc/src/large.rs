//! Blocks above [`SMALL_MAX`](crate::class::SMALL_MAX): extents of the page layer, of whole pages.
//!
//! A freed block of up to [`KEPT_PAGES_MAX`] pages waits in a magazine for the thread's next request
//! ([`crate::magazine`]). A table has blocks' lengths ([`crate::lengths`]). Most calls avoid the page layer.

use crate::errno::out_of_memory;
use crate::lengths::{KEPT, SAMPLED, length_in, length_of};
use crate::magazine::{KEPT_PAGES_MAX, give_back};
use crate::slab::Slab;
use crate::space::Space;
use crate::{misuse, mode, threads, tls};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_pages::{Extent, Misuse, PAGE, Pages, Request};
use vellum_sys::Addr;

fn pages_of(bytes: usize) -> usize {
    bytes.div_ceil(PAGE)
}

#[inline]
pub(crate) fn take_from_magazine(bytes: usize) -> Option<*mut u8> {
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
    let block: *mut u8 = address?.ptr();
    if let Some(length) = length_of(block) {
        length.store(pages as u32, Relaxed);
    }
    Some(block)
}

/// An extent of at least `bytes` bytes from the page layer, of zeros if `zero`. Null (and `ENOMEM`) when
/// there is none.
pub(crate) fn extent(bytes: usize, align: usize, zero: bool) -> *mut u8 {
    match Pages::global().alloc(Request { bytes: bytes.max(1), align: align.max(PAGE), zero }) {
        Ok(extent) => {
            remember(extent);
            extent.addr.as_ptr()
        }
        Err(_) => out_of_memory(),
    }
}

fn remember(extent: Extent) {
    let pages = extent.bytes / PAGE;
    if pages <= KEPT_PAGES_MAX
        && let Some(length) = length_of(extent.addr.as_ptr())
    {
        length.store(pages as u32, Relaxed);
    }
}

/// Frees a large block, or ends the process if it is none. Safety: the caller gives the block up; `slab`
/// describes its unit, which is no slab.
pub(crate) unsafe fn free(slab: &'static Slab, address: *mut u8) {
    let Some(length) = length_in(slab, address) else {
        // SAFETY: the caller gives the block up; the page layer refuses an address without a block.
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
        && let Some(heap) = tls::current()
        && heap.gate.enter()
    {
        length.store(pages | KEPT, Relaxed);
        heap.magazine.insert(Addr::of(address), pages as usize);
        heap.gate.leave();
        return;
    }
    // Where nothing was ever handed out the table can be read only.
    if pages != 0 {
        length.store(0, Relaxed);
    }
    // SAFETY: the caller gives the block up.
    unsafe { give_back("free", address) };
}

/// Drops the sampler's record of a block that is freed, and returns its word without the mark; `None` if the
/// block is freed later. Ends the process if the block is free already.
#[cold]
#[inline(never)]
fn unmark(length: &AtomicU32, address: *mut u8) -> Option<u32> {
    let pages = length.load(Relaxed);
    if pages & KEPT != 0 {
        misuse::refuse("free", address, Misuse::AlreadyFree);
    }
    if mode::sampler().is_some_and(|hooks| !(hooks.freed_large)(address)) {
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

/// Grows or shrinks a large block in place or by moving it; null (and `ENOMEM`) leaves it as it was. Safety:
/// `address` is a large block in use.
pub(crate) unsafe fn resize(address: *mut u8, bytes: usize) -> *mut u8 {
    // SAFETY: the block is large and in use, by this function's condition.
    change_extent(address, Some(bytes), |start| unsafe { Pages::global().resize(start, bytes) })
}

/// Changes the extent of a large block, and its length word; null (and `ENOMEM`) if `change` fails.
fn change_extent<E>(
    block: *mut u8,
    requested: Option<usize>,
    change: impl FnOnce(NonNull<u8>) -> Result<Extent, E>,
) -> *mut u8 {
    let Some(start) = NonNull::new(block) else { return null_mut() };
    let length = length_of(block);
    let word = unsampled(length.map_or(0, |length| length.swap(0, Relaxed)), block);
    match change(start) {
        Ok(extent) => {
            remember(extent);
            mode::sample_large(extent.addr.as_ptr(), requested.unwrap_or(extent.bytes))
        }
        Err(_) => {
            length.inspect(|length| length.store(word, Relaxed));
            out_of_memory()
        }
    }
}

/// A block's word without the mark of a sample, whose record is dropped.
#[inline]
fn unsampled(word: u32, address: *mut u8) -> u32 {
    if word & SAMPLED != 0
        && let Some(hooks) = mode::sampler()
    {
        (hooks.drop_record)(address);
    }
    word & !SAMPLED
}

/// Moves a large block to another address by moving its page tables; null leaves it where it was.
///
/// # Safety
/// `block` is in use; unless the result is null, only the result may be used afterwards.
pub unsafe fn relocate(block: *mut u8, align: usize) -> *mut u8 {
    if mode::is_hardened() || large_block(block).is_none() {
        return out_of_memory();
    }
    // SAFETY: the block is large and in use.
    change_extent(block, None, |start| unsafe { Pages::global().relocate(start, align) })
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

/// The length word of the block at `address`, if a large block in use starts there.
fn large_block(address: *mut u8) -> Option<&'static AtomicU32> {
    let slab = Space::get().slab_of(address).filter(|slab| !slab.is_slab())?;
    let length = length_in(slab, address)?;
    let is_kept = length.load(Relaxed) & KEPT != 0;
    (!is_kept && Pages::global().extent_at(address).is_ok()).then_some(length)
}
