//! Paged blocks and mappings: objects of Vellum's own pager, used if the user has limited the page frames of
//! the program's memory.
//!
//! - A block of [`PAGED_MIN`] bytes or more is an object of the pager instead of an extent of the page layer.
//! - Once all memory is paged (`units`), every block that is not small is an object, and so is every mapping
//!   that Vellum serves.
//! - Objects lie outside the span of small blocks, so that the fast paths need no test for them.
//! - The page layer's own records are not paged.

use crate::class::SMALL_MAX;
use crate::errno::out_of_memory;
use crate::{misuse, units};
use core::ffi::c_int;
use core::ptr::NonNull;
use vellum_pager::{MAPPING_MAX, PAGE, process};
use vellum_pages::Misuse;
use vellum_sys::{Addr, Span, round_up};

/// Advice that the `libc` crate does not name.
const MADV_DONTNEED_LOCKED: c_int = 24;
const MADV_COLLAPSE: c_int = 25;

pub use process::{count_paging_in, follow, fork_child, fork_parent, fork_prepare, is_paging};

/// Pages memory from now on, in page frames of `bytes` bytes together, to a store at `path`. False if there
/// are too few frames or too many, or no such path can be.
pub fn page_to(path: &[u8], bytes: u64) -> bool {
    let is_possible = process::page_to(path, bytes);
    if is_possible {
        units::page_all();
    }
    is_possible
}

/// The smallest block that is paged before all memory is. Smaller blocks move in and out of magazines, and
/// would be cut off from their neighbours.
pub const PAGED_MIN: usize = (256 << 10) + 1;

/// True if `address` lies where paged blocks are.
#[inline]
pub fn owns(address: *const u8) -> bool {
    process::pager().owns(address)
}

#[inline]
pub(crate) fn serves(bytes: usize) -> bool {
    match bytes >= PAGED_MIN {
        true => process::ready().is_some(),
        false => bytes > SMALL_MAX && units::are_paged_next(bytes),
    }
}

/// A mapping of zeros, if mappings are paged and there is room.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    if bytes > MAPPING_MAX || !units::are_paged_next(bytes) {
        return None;
    }
    process::pager().map(bytes).ok().map(NonNull::as_ptr)
}

/// Replaces paged memory by a mapping at a fixed place, as `mmap` with `MAP_FIXED` does: `None` if no part of
/// the place is paged. Only private, anonymous mappings can be there.
pub(crate) fn map_at(addr: *mut u8, bytes: usize, prot: c_int, is_plain: bool) -> Option<Result<(), c_int>> {
    if !overlaps(addr, bytes) {
        return None;
    }
    let bytes = round_up(bytes, PAGE);
    if !is_plain || !owns(addr) || !owns(addr.wrapping_add(bytes - 1)) {
        return Some(Err(libc::ENOMEM));
    }
    process::pager().note_changes();
    // SAFETY: what a program replaces it needs no more.
    unsafe { process::pager().zero(Span::at(addr, bytes)) };
    let args = [addr as usize, bytes, prot as usize, 0, 0, 0];
    // SAFETY: the program's own memory, and its own wish.
    let changed = unsafe { vellum_sys::raw::syscall(libc::SYS_mprotect, args) };
    Some(changed.map(drop).map_err(|errno| errno.raw_os_error()))
}

fn overlaps(addr: *mut u8, bytes: usize) -> bool {
    let (span, start) = (process::pager().span(), Addr::of(addr));
    !span.is_empty() && start < span.end() && start.saturating_add(bytes) > span.start
}

/// The program changes attributes of a range, of which some may be paged.
pub(crate) fn note_changes(addr: *mut u8, bytes: usize) -> bool {
    let concerns = overlaps(addr, bytes);
    if concerns {
        process::pager().note_changes();
    }
    concerns
}

/// Serves an `mremap` of a paged mapping that names no new place: by another mapping, into which is copied.
/// `None` if `address` lies in none. Safety: the conditions of `mremap`.
pub(crate) unsafe fn remap(
    address: *mut u8,
    old: usize,
    new: usize,
    may_move: bool,
) -> Option<Result<usize, c_int>> {
    let pager = process::pager();
    let whole = pager.mapped_from(address)?;
    let (old, new) = (round_up(old, PAGE), round_up(new, PAGE));
    if !(address as usize).is_multiple_of(PAGE) || new == 0 {
        return Some(Err(libc::EINVAL));
    }
    if old == 0 || old > whole {
        return Some(Err(libc::EFAULT));
    }
    if new <= old {
        // SAFETY: the program gives up what is cut off.
        unsafe { pager.unmap(Span::at(address.wrapping_add(new), old - new)) };
        return Some(Ok(address.expose_provenance()));
    }
    if !may_move {
        return Some(Err(libc::ENOMEM));
    }
    let moved = pager.map(new).map_err(|_| libc::ENOMEM);
    Some(moved.map(|to| {
        // SAFETY: two mappings, of at least `old` bytes; the old one is the program's to give up.
        unsafe {
            to.as_ptr().copy_from_nonoverlapping(address, old);
            pager.unmap(Span::at(address, old));
        }
        to.as_ptr().expose_provenance()
    }))
}

/// A block of at least `bytes` bytes; null (and `ENOMEM`) if there is no room in the store.
pub(crate) fn alloc(bytes: usize, align: usize, zero: bool) -> *mut u8 {
    process::pager().create(bytes, align.max(PAGE), zero).map_or_else(|_| out_of_memory(), NonNull::as_ptr)
}

/// Serves an `madvise` of paged memory: the pager drops pages itself, as it would take a hole for a lost
/// page, and ignores advice on huge pages, as frames move singly. `None` leaves the call to the kernel.
///
/// # Safety
/// The conditions of `madvise`.
pub unsafe fn advise(address: *mut u8, bytes: usize, advice: c_int) -> Option<Result<(), c_int>> {
    if !owns(address) {
        return None;
    }
    if !(address as usize).is_multiple_of(PAGE) {
        return Some(Err(libc::EINVAL));
    }
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => {
            // SAFETY: the caller may discard these bytes of a paged block; the kernel too counts whole pages.
            unsafe { process::pager().zero(Span::at(address, round_up(bytes, PAGE))) };
            Some(Ok(()))
        }
        libc::MADV_HUGEPAGE | libc::MADV_NOHUGEPAGE | MADV_COLLAPSE => Some(Ok(())),
        _ => None,
    }
}

/// Serves an `munmap` of paged memory. If a program unmaps a block, the contents go, and the address space
/// stays the pager's until the block is freed. `None` leaves the call to the kernel.
///
/// # Safety
/// The conditions of `munmap`.
pub unsafe fn unmap(address: *mut u8, bytes: usize) -> Option<Result<(), c_int>> {
    if !owns(address) {
        return None;
    }
    if !(address as usize).is_multiple_of(PAGE) || bytes == 0 {
        return Some(Err(libc::EINVAL));
    }
    // SAFETY: the caller may unmap these bytes of a paged block, and does not use them any more.
    unsafe { process::pager().unmap(Span::at(address, round_up(bytes, PAGE))) };
    Some(Ok(()))
}

/// Why `address`, which lies where paged blocks are, is none.
fn wrong(address: *mut u8) -> Misuse {
    match (address as usize).is_multiple_of(PAGE) {
        true => Misuse::AlreadyFree,
        false => Misuse::NotOurs,
    }
}

/// Frees a paged block, or ends the process if it is none. Safety: the caller gives the block up.
pub(crate) unsafe fn free(address: *mut u8) {
    // SAFETY: the caller gives the block up.
    let freed = NonNull::new(address).map(|start| unsafe { process::pager().destroy(start) });
    if !matches!(freed, Some(Ok(_))) {
        misuse::refuse("free", address, wrong(address));
    }
}

/// The bytes that may be used of a paged block, or the end of the process if it is none.
pub(crate) fn usable_size(function: &str, address: *mut u8) -> usize {
    match process::pager().len(address) {
        Some(bytes) => bytes,
        None => misuse::refuse(function, address, wrong(address)),
    }
}

/// Resizes a paged block in its place. False, with nothing done, if that cannot be, or the new size is below
/// [`PAGED_MIN`]. Safety: the block is in use, and the caller gives up the part that is cut off.
pub(crate) unsafe fn resize(address: *mut u8, bytes: usize) -> bool {
    bytes >= PAGED_MIN
        && NonNull::new(address)
            // SAFETY: the block is in use, and the caller gives up the part that is cut off.
            .is_some_and(|start| unsafe { process::pager().resize(start, bytes) }.is_ok())
}
