//! Memos: each holds the last stack of an instruction of a library, so that it need not be walked again.
//!
//! A library's instruction has no record, as its operations are recorded under a stack's hash. Its slot in
//! the thread's table is therefore free for a memo, which is as large as a record. A memo has the positions
//! of the next return addresses on the stack, these addresses, and the record to which they led. If the same
//! words are found at these positions, the stack is the same.
//!
//! ```text
//! Record:  place  what  count  due  bytes    sum       squares, timed  extremes
//! memo:    place  what  0      0    record   offsets   pc 1            pc 2
//! ```
//!
//! Invariants:
//!
//! - A memo's count is 0, and readers of the ledger skip it.
//! - Its `due` is 0, unlike any record's, so the fast path leaves it without a separate check.

use crate::table;
use crate::thread::Thread;
use core::sync::atomic::Ordering::Relaxed;
use vellum_wire::cost::Record;

/// The number of return addresses in a memo, beyond the first.
pub(crate) const STEPS: usize = 2;

#[inline(always)]
pub(crate) fn is_memo(slot: &Record) -> bool {
    slot.due.load(Relaxed) == 0
}

/// The record for `slot`, whose place is the return address at `frame`. A record is returned itself; a memo
/// gives the record it names if the stack is the same.
#[inline(always)]
pub(crate) fn recall(slot: &'static Record, frame: *const u64) -> Option<&'static Record> {
    if !is_memo(slot) {
        return Some(slot);
    }
    let offsets = slot.sum.load(Relaxed);
    let (first, second) = (offsets as u32, (offsets >> 32) as u32);
    // SAFETY: the instruction is the memo's, so its frame has the same layout: the first word is in that
    // frame and is a return address. If it matches, the second word is in the next frame for the same reason.
    unsafe {
        let at = |offset: u32| *frame.byte_add(offset as usize);
        if at(first) != slot.squares_timed.load(Relaxed)
            || (second != 0 && at(second) != slot.extremes.load(Relaxed))
        {
            return None;
        }
        Some(&*(slot.bytes.load(Relaxed) as *const Record))
    }
}

/// Stores a memo: below `place`, a stack with the return addresses in `steps` leads to `record`.
pub(crate) fn remember(
    thread: &Thread,
    place: u64,
    what: u64,
    record: &'static Record,
    steps: [(u32, u64); STEPS],
) {
    // If the table is replaced at this moment, record and memos are both in the old table, which is no
    // longer searched.
    let table = thread.table.get();
    let Some((slot, _)) = table::find_or_add(thread, place, what) else { return };
    if table != thread.table.get() {
        return;
    }
    let [(first, first_pc), (second, second_pc)] = steps;
    slot.due.store(0, Relaxed);
    slot.bytes.store(core::ptr::from_ref(record) as u64, Relaxed);
    slot.sum.store(u64::from(first) | u64::from(second) << 32, Relaxed);
    slot.squares_timed.store(first_pc, Relaxed);
    slot.extremes.store(second_pc, Relaxed);
}
