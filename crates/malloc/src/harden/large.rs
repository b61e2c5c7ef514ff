//! Large blocks of the hardened mode: runs of pages that end with a `tail` (bytes that show an overflow) and
//! a guard page, which faults. They are inaccessible while they wait in quarantine.
//!
//! ```text
//! extent  ┌──────────────────────────┬──────┬────────────┐
//!         │ program's bytes          │ tail │ guard page │
//!         └──────────────────────────┴──────┴────────────┘
//! ```
//!
//! The length word of the extent's first page ([`Slab::lengths`]) has a mark of such a block. Another mark is
//! set if the last page is a guard. A guard costs a map entry, of which a process has some 65,000, so at most
//! [`GUARDED_MAX`] blocks have one. Other blocks end with an untouched page.

use super::{HARDEN, tail};
use crate::errno::out_of_memory;
use crate::lengths::{length_in, length_of};
use crate::misuse;
use crate::slab::Slab;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vellum_pages::{Misuse, PAGE, Pages, Request};
use vellum_sys::{Span, map, round_up};

/// Blocks with a guard, or inaccessible, at a time.
const GUARDED_MAX: usize = 4096;
const HARDENED: u32 = 1 << 30;
/// Mark of a block whose last page is inaccessible.
const GUARD: u32 = 1;
/// Mark of a block that is in quarantine.
const SHUT: u32 = 2;

/// A zeroed block of `bytes` bytes, or null.
pub(super) fn allocate(align: usize, bytes: usize) -> *mut u8 {
    let whole = round_up(bytes + tail::BYTES, PAGE);
    let request = Request { bytes: whole + PAGE, align: align.max(PAGE), zero: true };
    let Ok(extent) = Pages::global().alloc(request) else {
        return out_of_memory();
    };
    let start = extent.addr.as_ptr();
    let mut word = HARDENED;
    if HARDEN.guarded.fetch_add(1, Relaxed) < GUARDED_MAX
        // SAFETY: the last page of a block that was handed out a moment ago.
        && unsafe { map::make_inaccessible(Span::at(start.wrapping_add(whole), PAGE)) }.is_ok()
    {
        word |= GUARD;
    } else {
        HARDEN.guarded.fetch_sub(1, Relaxed);
    }
    if let Some(length) = length_of(start) {
        length.store(word, Relaxed);
    }
    // SAFETY: the block is that long.
    unsafe { tail::write(start, bytes, whole) };
    start
}

/// The bytes of the hardened block at `address` up to its tail's end, or the end of the process if it is
/// none; `None` if it is a large block of another kind.
pub(super) fn whole(function: &str, slab: &'static Slab, address: *mut u8) -> Option<usize> {
    let word = length_in(slab, address).map_or(0, |length| length.load(Relaxed));
    let extent = match Pages::global().extent_at(address) {
        Ok(extent) => extent,
        Err(misuse) => misuse::refuse(function, address, misuse),
    };
    if word & SHUT != 0 {
        misuse::refuse(function, address, Misuse::AlreadyFree);
    }
    (word & HARDENED != 0).then(|| extent.bytes - PAGE)
}

fn length(address: *mut u8) -> Option<&'static AtomicU32> {
    length_of(address)
}

/// Makes a freed block inaccessible and gives back its frames. False if that cannot be. Safety: the block is
/// nobody's.
pub(super) unsafe fn shut(address: *mut u8, whole: usize) -> bool {
    let Some(length) = length(address) else { return false };
    let word = length.load(Relaxed);
    // SAFETY: nobody uses the block, and what is in it is not needed.
    let is_shut = word & GUARD != 0
        && unsafe {
            let block = Span::at(address, whole);
            map::flush(block).is_ok() && map::make_inaccessible(block).is_ok()
        };
    if is_shut {
        length.store(word | SHUT, Relaxed);
    }
    is_shut
}

/// Gives a block back to the page layer. Safety: the block is nobody's.
pub(super) unsafe fn give_back(address: *mut u8, whole: usize) {
    let word = length(address).map_or(0, |length| length.load(Relaxed));
    if word & GUARD != 0 {
        // SAFETY: the block is nobody's.
        if unsafe { map::make_writable(Span::at(address, whole + PAGE)) }.is_err() {
            // No map entries left: the unusable part stays shut, for ever.
            return;
        }
        HARDEN.guarded.fetch_sub(1, Relaxed);
    }
    if let Some(length) = length(address) {
        length.store(0, Relaxed);
    }
    // SAFETY: the block was handed out by `alloc`, and is nobody's.
    let freed = NonNull::new(address).map(|start| unsafe { Pages::global().free(start) });
    if let Some(Err(misuse)) = freed {
        misuse::refuse("free", address, misuse);
    }
}
