//! Guarded blocks: a few blocks, chosen at random, each on a page of its own between two pages that fault.
//!
//! ```text
//! ┌ ─ ─ ─ ┬───────────────┬ ─ ─ ─ ┬───────────────┬ ─ ─ ─ ┐
//!  guard  │         block │ guard │ block         │ guard      slots: block at the end, block at the start
//! └ ─ ─ ─ ┴───────────────┴ ─ ─ ─ ┴───────────────┴ ─ ─ ─ ┘
//! ```
//!
//! - Reading or writing past the block's end (in half of the blocks: before its start) faults at that
//!   instant.
//! - Any use after free faults: the block's page (its slot) is inaccessible until the page's next use, which
//!   comes late.
//! - The rest of the page holds a pattern that is checked when the block is freed.
//! - On average, one allocation in [`RARITY`] is guarded: of many processes with the same bug, some find it.
//!
//! Source: GWP-ASan, and Electric Fence before it.

use super::HARDEN;
use super::quarantine::random;
use crate::misuse;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vellum_pages::{Misuse, PAGE};
use vellum_sys::lock::Guarded;
use vellum_sys::{Addr, Span, map};

const SLOTS: usize = 512;
/// Allocations per sample, on average.
const RARITY: usize = 500;
/// The address space: a guard before each slot, and one behind the last.
const BYTES: usize = (2 * SLOTS + 1) * PAGE;
const PATTERN: u8 = 0xa5;

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    #[expect(dead_code, reason = "the state of all slots at first")]
    Fresh,
    Used,
    Freed,
}

#[derive(Clone, Copy)]
struct Slot {
    state: State,
    offset: u16,
    bytes: u16,
}

pub(super) struct Pool {
    slots: [Slot; SLOTS],
    /// The slot to be tried next; a freed one waits for a whole round.
    next: usize,
}

pub(super) struct Guards {
    pub(super) pool: Guarded<Pool>,
    /// The address of the slots; 0 before the first is used.
    base: AtomicUsize,
    left: AtomicUsize,
}

pub(super) fn begin() {
    HARDEN.guards.left.store(RARITY / 2, Relaxed);
}

pub(super) fn owns(address: *const u8) -> bool {
    let base = HARDEN.guards.base.load(Relaxed);
    base != 0 && (address as usize).wrapping_sub(base) < BYTES
}

fn is_due() -> bool {
    // Not exact where threads meet, and need not be.
    match HARDEN.guards.left.load(Relaxed) {
        0 => {
            HARDEN.guards.left.store(random(2 * RARITY), Relaxed);
            true
        }
        left => {
            HARDEN.guards.left.store(left - 1, Relaxed);
            false
        }
    }
}

fn page_of(base: usize, slot: usize) -> usize {
    base + (2 * slot + 1) * PAGE
}

/// A block, if this allocation is to be a sample and there is a slot.
pub(super) fn allocate(align: usize, bytes: usize) -> Option<*mut u8> {
    if bytes == 0 || bytes > PAGE || align > PAGE || !is_due() {
        return None;
    }
    let mut pool = HARDEN.guards.pool.lock();
    if HARDEN.guards.base.load(Relaxed) == 0 {
        HARDEN.guards.base.store(map::reserve_inaccessible(BYTES).ok()?.start.get(), Relaxed);
    }
    let index = pool.next;
    if pool.slots[index].state == State::Used {
        // Looked at one a sample: in a program that keeps its blocks, samples become rare.
        pool.next = (index + 1) % SLOTS;
        return None;
    }
    let page = page_of(HARDEN.guards.base.load(Relaxed), index);
    // SAFETY: a slot that is nobody's.
    unsafe { map::make_writable(Span::new(Addr::new(page), PAGE)) }.ok()?;
    pool.next = (index + 1) % SLOTS;
    let step = align.max(crate::class::GRANULE);
    let offset = if random(2) == 0 { (PAGE - bytes) & !(step - 1) } else { 0 };
    pool.slots[index] = Slot { state: State::Used, offset: offset as u16, bytes: bytes as u16 };
    drop(pool);
    let start: *mut u8 = core::ptr::with_exposed_provenance_mut(page);
    // SAFETY: within the page, which nobody else knows of.
    unsafe {
        start.write_bytes(PATTERN, PAGE);
        start.add(offset).write_bytes(0, bytes);
        Some(start.add(offset))
    }
}

/// The slot whose block in use starts at `address`; ends the process if no slot has one there.
fn find(function: &str, address: *mut u8) -> (usize, usize, Slot) {
    let base = HARDEN.guards.base.load(Relaxed);
    let page = (address as usize - base) / PAGE;
    let index = (page.saturating_sub(1) / 2).min(SLOTS - 1);
    let slot = HARDEN.guards.pool.lock().slots[index];
    let start = page_of(base, index) + usize::from(slot.offset);
    match slot.state {
        State::Used if start == address as usize => (index, page_of(base, index), slot),
        State::Used => misuse::refuse(function, address, Misuse::InsideBlock { start: Addr::new(start) }),
        State::Freed => misuse::refuse(function, address, Misuse::AlreadyFree),
        State::Fresh => misuse::refuse(function, address, Misuse::NotOurs),
    }
}

pub(super) fn requested(function: &str, address: *mut u8) -> usize {
    usize::from(find(function, address).2.bytes)
}

/// Frees a block. Safety: the program gives it up.
pub(super) unsafe fn free(address: *mut u8) {
    let (index, page, slot) = find("free", address);
    let (start, end) = (usize::from(slot.offset), usize::from(slot.offset) + usize::from(slot.bytes));
    // SAFETY: the slot's page is accessible while its block is in use.
    let bytes = unsafe { core::slice::from_raw_parts(page as *const u8, PAGE) };
    if bytes[..start].iter().chain(&bytes[end..]).any(|&byte| byte != PATTERN) {
        let mut line = misuse::begin("free", address);
        line.text("bytes around the block were written to (").decimal(u64::from(slot.bytes));
        misuse::end(line.text(" bytes, on a page of its own)"));
    }
    let span = Span::new(Addr::new(page), PAGE);
    // SAFETY: nobody uses the page until it is handed out again.
    let is_shut = unsafe { map::make_inaccessible(span).is_ok() && map::flush(span).is_ok() };
    HARDEN.guards.pool.lock().slots[index].state = if is_shut { State::Freed } else { State::Used };
}
