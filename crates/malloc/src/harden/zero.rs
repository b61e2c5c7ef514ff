//! Blocks of zero bytes: different addresses without memory, at which reading and writing fault.
//!
//! They are [`SPACING`] bytes apart in a range that is never accessible. Each address has a bit, set while
//! the address is in use. If a short search finds no free address, or the request needs more alignment, the
//! request gets an ordinary block with a tail (`tail`).

use super::HARDEN;
use crate::misuse;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use vellum_pages::Misuse;
use vellum_sys::map;

/// Bytes between two.
const SPACING: usize = 16;
const SLOTS: usize = 1 << 16;
const BYTES: usize = SLOTS * SPACING;
const WORDS: usize = SLOTS / u64::BITS as usize;

/// The range, with a bit for each block in use. All zero: the range is not reserved.
pub(super) struct Zeros {
    base: AtomicUsize,
    out: [AtomicU64; WORDS],
    /// The word to search for a free bit first.
    next: AtomicUsize,
}

/// Words searched before an ordinary block serves.
const PATIENCE: usize = 64;

fn base() -> Option<usize> {
    match HARDEN.zeros.base.load(Relaxed) {
        0 => {}
        base => return Some(base),
    }
    let span = map::reserve_inaccessible(BYTES).ok()?;
    let start = span.start.get();
    match HARDEN.zeros.base.compare_exchange(0, start, Relaxed, Relaxed) {
        Ok(_) => Some(start),
        Err(theirs) => {
            // SAFETY: reserved a moment ago, and known to nobody.
            let _ = unsafe { map::release(span) };
            Some(theirs)
        }
    }
}

pub(super) fn owns(address: *const u8) -> bool {
    let base = HARDEN.zeros.base.load(Relaxed);
    base != 0 && (address as usize).wrapping_sub(base) < BYTES
}

pub(super) fn allocate(align: usize) -> Option<*mut u8> {
    if align > SPACING {
        return None;
    }
    let base = base()?;
    for _ in 0..PATIENCE {
        let word = HARDEN.zeros.next.load(Relaxed) % WORDS;
        let taken = HARDEN.zeros.out[word].load(Relaxed);
        if taken == u64::MAX {
            HARDEN.zeros.next.store(word + 1, Relaxed);
            continue;
        }
        let bit = taken.trailing_ones();
        if HARDEN.zeros.out[word].fetch_or(1 << bit, Relaxed) & 1 << bit == 0 {
            let slot = word * u64::BITS as usize + bit as usize;
            return Some(core::ptr::without_provenance_mut(base + slot * SPACING));
        }
    }
    None
}

fn bit(address: *const u8) -> (&'static AtomicU64, u64) {
    let slot = (address as usize - HARDEN.zeros.base.load(Relaxed)) / SPACING;
    (&HARDEN.zeros.out[slot / u64::BITS as usize], 1 << (slot % u64::BITS as usize))
}

/// Ends the process if no block at `address` is out.
pub(super) fn check(function: &str, address: *mut u8) {
    let (word, bit) = bit(address);
    if !(address as usize).is_multiple_of(SPACING) {
        misuse::refuse(function, address, Misuse::NotOurs);
    }
    if word.load(Relaxed) & bit == 0 {
        misuse::refuse(function, address, Misuse::AlreadyFree);
    }
}

/// Frees a block that has been checked.
pub(super) fn free(address: *mut u8) {
    let (word, bit) = bit(address);
    if word.fetch_and(!bit, Relaxed) & bit == 0 {
        misuse::refuse("free", address, Misuse::AlreadyFree);
    }
}
