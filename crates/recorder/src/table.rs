//! A thread's table of records: open-addressed, one record in each cache line. Slot 0 is the table's head.
//!
//! A table that is three quarters full is left unchanged, for the command to add up, and a larger table
//! starts from zero. Records are never moved, so each count appears once even if the process is killed.
//!
//! Invariants: only the owning thread writes. `place`, a record's key, is written last when a record is made.
//! The head's first word, read as a place, is neither 0 (the kind is written first) nor a return address.

use crate::thread::Thread;
use crate::{process, record};
use core::sync::atomic::Ordering::{Relaxed, Release};
use vellum_wire::cost::{ChunkHead, ChunkKind, GRAIN, Record};

/// Grains of the largest table: a quarter of a million records.
const GRAINS_MAX: usize = 1 << 10;
/// An odd multiplier with mixed bits, to spread addresses.
const SPREAD: u32 = 0x9e37_79b1;
/// Low bits of a product, which are badly mixed.
const LOW_BITS: u32 = u32::BITS - (GRAINS_MAX * (GRAIN / size_of::<Record>())).ilog2();

/// The record of `place` and `what` in the thread's table, if there is one. The thread must have a table.
#[inline(always)]
pub(crate) fn find(thread: &Thread, place: u64, what: u64) -> Option<&'static Record> {
    let (slots, mask) = (thread.table.get().cast::<Record>(), thread.mask.get());
    let mut index = first_slot(place, what, mask);
    loop {
        // SAFETY: `mask` keeps the index within the table, which is never unmapped.
        let record = unsafe { &*slots.add(index) };
        let there = record.place.load(Relaxed);
        if there == place && record.what.load(Relaxed) == what {
            return Some(record);
        }
        if there == 0 {
            return None;
        }
        index = following(index, mask);
    }
}

/// The record of `place` and `what` if it is in its first slot or the next, as nearly all are. The thread
/// must have a table.
#[inline(always)]
pub(crate) fn find_near(thread: &Thread, place: u64, what: u64) -> Option<&'static Record> {
    let first = first_slot(place, what, thread.mask.get());
    let is_it = |record: &Record| record.place.load(Relaxed) == place && record.what.load(Relaxed) == what;
    // SAFETY: the index is within the table. The slot behind the last is still in the ledger, whose last
    // grain is never claimed. Its words cannot match a record: no other chunk begins with an address of code.
    let (record, further) = unsafe {
        let slot = thread.table.get().cast::<Record>().add(first);
        (&*slot, &*slot.add(1))
    };
    if is_it(record) {
        return Some(record);
    }
    is_it(further).then_some(further)
}

/// The record of `place` and `what`, made if it is missing; `None` without room for it.
pub(crate) fn find_or_add(thread: &Thread, place: u64, what: u64) -> Option<(&'static Record, bool)> {
    if let Some(record) = find(thread, place, what) {
        return Some((record, false));
    }
    // SAFETY: the thread has a table, which is never unmapped.
    let head = unsafe { &*thread.table.get() };
    let used = head.count.load(Relaxed) as usize;
    if used >= thread.mask.get() / 4 * 3 {
        let grains = (head.grains.load(Relaxed) as usize * 2).min(GRAINS_MAX);
        take(thread, claim(grains)?);
        return find_or_add(thread, place, what);
    }
    let (slots, mask) = (thread.table.get().cast::<Record>(), thread.mask.get());
    let mut index = first_slot(place, what, mask);
    loop {
        // SAFETY: `mask` keeps the index within the table, which is never unmapped.
        let free = unsafe { &*slots.add(index) };
        if free.place.load(Relaxed) == 0 {
            head.count.store(used as u32 + 1, Relaxed);
            record::prepare(free);
            free.what.store(what, Relaxed);
            free.place.store(place, Release);
            return Some((free, true));
        }
        index = following(index, mask);
    }
}

/// Claims a new table of `grains` grains for this process.
pub(crate) fn claim(grains: usize) -> Option<*mut ChunkHead> {
    process::claim(grains, ChunkKind::Table)
}

pub(crate) fn take(thread: &Thread, table: *mut ChunkHead) {
    // SAFETY: a table is never unmapped.
    let grains = unsafe { &*table }.grains.load(Relaxed) as usize;
    thread.mask.set(grains * (GRAIN / size_of::<Record>()) - 1);
    thread.table.set(table);
}

/// The first slot to probe. May be slot 0: the head's first words match no record.
#[inline(always)]
fn first_slot(place: u64, what: u64, mask: usize) -> usize {
    // The factors are multiplied separately: the low bits of a product, which index a small table, do not
    // depend on the high bits of its factors.
    let mixed = (place as u32 ^ (what as u32).wrapping_mul(SPREAD)).wrapping_mul(SPREAD);
    (mixed >> LOW_BITS) as usize & mask
}

#[inline(always)]
fn following(index: usize, mask: usize) -> usize {
    (index + 1) & mask
}
