//! The quarantine: freed blocks wait before their memory is used again, so that uses after free are found.
//!
//! ```text
//! small ─▶ a random one of 256 slots ─ the block that was there ─▶ queue ─▶ its slab
//! large ─────────────────────────────────────────────────────────▶ queue ─▶ the page layer
//! ```
//!
//! A freed small block takes a random slot; the block that was there moves on to the queue. Both queues are
//! bounded by number and by bytes. Blocks are checked and returned outside the lock.

use super::{HARDEN, dismiss, tail};
use core::sync::atomic::Ordering::Relaxed;
use vellum_sys::Addr;

const SHUFFLED: usize = 256;
const SMALL_MAX: usize = 8192;
const SMALL_BYTES_MAX: usize = 16 << 20;
const LARGE_MAX: usize = 256;
/// Their bytes: address space, as their frames have been given back. Longer blocks do not wait.
const LARGE_BYTES_MAX: usize = 64 << 20;

/// A block: its address and its length. The address 0 means no block.
#[derive(Clone, Copy)]
struct Entry {
    address: Addr,
    whole: usize,
}

impl Entry {
    fn start(&self) -> *mut u8 {
        self.address.ptr()
    }
}

struct Queue<const LENGTH: usize> {
    entries: [Entry; LENGTH],
    first: usize,
    count: usize,
    bytes: usize,
}

impl<const LENGTH: usize> Queue<LENGTH> {
    /// The oldest entry, if there is no room for one more of `whole` bytes.
    fn make_room(&mut self, whole: usize, bytes_max: usize) -> Option<Entry> {
        let is_full = self.count == LENGTH || self.bytes + whole > bytes_max;
        if !is_full || self.count == 0 {
            return None;
        }
        let entry = self.entries[self.first];
        self.first = (self.first + 1) % LENGTH;
        self.count -= 1;
        self.bytes -= entry.whole;
        Some(entry)
    }

    /// Appends an entry. False if the queue is full.
    fn push(&mut self, entry: Entry) -> bool {
        if self.count == LENGTH {
            return false;
        }
        self.entries[(self.first + self.count) % LENGTH] = entry;
        self.count += 1;
        self.bytes += entry.whole;
        true
    }

    fn iter(&self) -> impl Iterator<Item = Entry> {
        (0..self.count).map(|index| self.entries[(self.first + index) % LENGTH])
    }
}

pub(super) struct Quarantine {
    shuffled: [Entry; SHUFFLED],
    small: Queue<SMALL_MAX>,
    large: Queue<LARGE_MAX>,
}

pub(super) fn begin() {
    HARDEN.random.store(crate::seal::random() as u64 | 1, Relaxed);
}

/// A random number below `bound`, good enough for places. Threads that draw at the same time may draw the
/// same.
pub(super) fn random(bound: usize) -> usize {
    let mut state = HARDEN.random.load(Relaxed);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    HARDEN.random.store(state, Relaxed);
    (state >> 16) as usize % bound
}

/// Puts a freed block of a slab in quarantine. Safety: the block is nobody's, and filled.
pub(super) unsafe fn push_small(address: *mut u8, whole: usize) {
    let place = random(SHUFFLED);
    let entry = Entry { address: Addr::of(address), whole };
    let entry = core::mem::replace(&mut HARDEN.quarantine.lock().shuffled[place], entry);
    if entry.address.is_null() {
        return;
    }
    loop {
        let mut quarantine = HARDEN.quarantine.lock();
        let leaving = match quarantine.small.make_room(entry.whole, SMALL_BYTES_MAX) {
            Some(leaving) => leaving,
            None if quarantine.small.push(entry) => return,
            None => entry,
        };
        drop(quarantine);
        // SAFETY: the block was in quarantine until now.
        unsafe { dismiss(leaving.start(), leaving.whole) };
    }
}

/// Puts a freed large block in quarantine. False if it is too long for that.
pub(super) fn push_large(address: *mut u8, whole: usize) -> bool {
    let entry = Entry { address: Addr::of(address), whole };
    if whole > LARGE_BYTES_MAX {
        return false;
    }
    loop {
        let mut quarantine = HARDEN.quarantine.lock();
        match quarantine.large.make_room(whole, LARGE_BYTES_MAX) {
            Some(leaving) => {
                drop(quarantine);
                // SAFETY: the block was in quarantine until now.
                unsafe { super::large::give_back(leaving.start(), leaving.whole) };
            }
            None => return quarantine.large.push(entry),
        }
    }
}

/// Ends the process if a small block in quarantine was written to.
pub(super) fn check() {
    let quarantine = HARDEN.quarantine.lock();
    let waiting = quarantine.shuffled.iter().copied().chain(quarantine.small.iter());
    // SAFETY: the blocks are in quarantine, where the lock keeps them.
    let written = waiting
        .filter(|entry| !entry.address.is_null())
        .find(|entry| unsafe { tail::written_at(entry.start(), entry.whole) }.is_some());
    drop(quarantine);
    if let Some(entry) = written {
        // SAFETY: the memory of a block from quarantine stays mapped, and the process ends here.
        unsafe { tail::check_fill(entry.start(), entry.whole) };
    }
}
