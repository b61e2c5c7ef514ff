//! The memory layout of the board, the file in which the processes of a job keep their counters.
//!
//! Invariants:
//! - `size_of::<Slot>() == SLOT_BYTES`;
//! - a slot below `Header::claimed` belongs to one process for ever: slots are not reused, so the counters of
//!   a dead process stay readable;
//! - when the board is full, a further process increments `Header::unseated` and has private counters.

use crate::counter::{Counter, PAUSE_BUCKETS, SIZE_BUCKETS};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The environment variable that holds the board's path.
pub const BOARD_ENV: &str = "VELLUM_BOARD";
/// The first eight bytes of a board.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VELLUM\0B");
/// The layout's version.
pub const VERSION: u32 = 8;
/// Bytes a slot takes.
pub const SLOT_BYTES: usize = 2048;
/// The default number of slots of a board, one for each process of a job.
pub const SLOTS_DEFAULT: u32 = 8192;
/// The most slots a board may have.
pub const SLOTS_MAX: u32 = 1 << 16;

/// The relation of a process to Vellum's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Attach {
    /// The slot is claimed; the process has not set its state yet.
    Claimed = 0,
    /// The process allocates from Vellum.
    Serving = 1,
    /// The program has its own allocator, which gets every request.
    OwnAllocator = 2,
    /// The program runs under a memory checker (AddressSanitizer, valgrind), which gets every request.
    MemoryChecker = 3,
    /// Switched off by `VELLUM_DISABLE`.
    Disabled = 4,
    /// The kernel's pages are larger than 4 KiB, or programs have too few addresses.
    Unsuited = 5,
}

impl Attach {
    /// The state stored as `value`, or `Claimed` if this version does not have it.
    pub const fn from_u32(value: u32) -> Attach {
        match value {
            1 => Attach::Serving,
            2 => Attach::OwnAllocator,
            3 => Attach::MemoryChecker,
            4 => Attach::Disabled,
            5 => Attach::Unsuited,
            _ => Attach::Claimed,
        }
    }
}

/// The head of a board.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// [`SLOT_BYTES`].
    pub slot_bytes: AtomicU32,
    /// Slots that follow.
    pub slots: AtomicU32,
    /// Slots claimed so far. May exceed `slots`; the excess got no slot.
    pub claimed: AtomicU32,
    /// Processes that got no slot because the board was full.
    pub unseated: AtomicU32,
}

/// The counters of a process.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Slot {
    /// The process id in the process's own namespace; 0 while unclaimed.
    pub pid: AtomicU32,
    /// An [`Attach`] value.
    pub attach: AtomicU32,
    /// `CLOCK_MONOTONIC` nanoseconds when the slot was claimed.
    pub since_ns: AtomicU64,
    /// The command's name (`comm`), NUL-padded, eight bytes a word.
    pub comm: [AtomicU64; 2],
    counters: [AtomicU64; Counter::ALL.len()],
    sizes: [AtomicU64; SIZE_BUCKETS],
    pauses: [AtomicU64; PAUSE_BUCKETS],
    reserved: [u8; SLOT_BYTES - 32 - 8 * (Counter::ALL.len() + SIZE_BUCKETS + PAUSE_BUCKETS)],
}

const _: () = assert!(size_of::<Header>() == 64);
const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);

impl Slot {
    /// A slot of zeros, for a process without a board.
    pub const fn new() -> Slot {
        Slot {
            pid: AtomicU32::new(0),
            attach: AtomicU32::new(0),
            since_ns: AtomicU64::new(0),
            comm: [const { AtomicU64::new(0) }; 2],
            counters: [const { AtomicU64::new(0) }; Counter::ALL.len()],
            sizes: [const { AtomicU64::new(0) }; SIZE_BUCKETS],
            pauses: [const { AtomicU64::new(0) }; PAUSE_BUCKETS],
            reserved: [0; SLOT_BYTES - 32 - 8 * (Counter::ALL.len() + SIZE_BUCKETS + PAUSE_BUCKETS)],
        }
    }

    /// The counter's word.
    #[inline]
    pub fn counter(&self, counter: Counter) -> &AtomicU64 {
        &self.counters[counter as usize]
    }

    /// Adds `amount` to `counter`.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        self.counter(counter).fetch_add(amount, Relaxed);
    }

    /// The counter's value now.
    #[inline]
    pub fn get(&self, counter: Counter) -> u64 {
        self.counter(counter).load(Relaxed)
    }

    /// Sets a gauge.
    #[inline]
    pub fn set(&self, counter: Counter, value: u64) {
        self.counter(counter).store(value, Relaxed);
    }

    /// Counts `blocks` blocks of `bytes` bytes in the size histogram.
    #[inline]
    pub fn count_size(&self, bytes: usize, blocks: u64) {
        self.sizes[crate::size_bucket(bytes)].fetch_add(blocks, Relaxed);
    }

    /// Blocks counted in size bucket `bucket` (`bucket < SIZE_BUCKETS`).
    pub fn size_count(&self, bucket: usize) -> u64 {
        self.sizes[bucket].load(Relaxed)
    }

    /// Counts a pause of `ns` nanoseconds that a collector made.
    #[inline]
    pub fn count_pause(&self, ns: u64) {
        self.pauses[crate::pause_bucket(ns)].fetch_add(1, Relaxed);
    }

    /// Pauses counted in bucket `bucket` (`bucket < PAUSE_BUCKETS`).
    pub fn pause_count(&self, bucket: usize) -> u64 {
        self.pauses[bucket].load(Relaxed)
    }

    /// Raises a peak to `value` if the peak is lower.
    #[inline]
    pub fn raise(&self, counter: Counter, value: u64) {
        self.counter(counter).fetch_max(value, Relaxed);
    }

    /// Copies every counter, size and pause of `from` into this slot (identity fields stay).
    pub fn copy_counts(&self, from: &Slot) {
        let counters = self.counters.iter().zip(&from.counters).chain(self.sizes.iter().zip(&from.sizes));
        for (to, from) in counters.chain(self.pauses.iter().zip(&from.pauses)) {
            to.store(from.load(Relaxed), Relaxed);
        }
    }

    /// Stores the command's name, cut to 16 bytes.
    pub fn set_comm(&self, name: &[u8]) {
        let mut bytes = [0u8; 16];
        let len = name.len().min(16);
        bytes[..len].copy_from_slice(&name[..len]);
        let both = u128::from_le_bytes(bytes);
        self.comm[0].store(both as u64, Relaxed);
        self.comm[1].store((both >> 64) as u64, Relaxed);
    }

    /// The command's name, NUL-padded to 16 bytes.
    pub fn comm_bytes(&self) -> [u8; 16] {
        let [low, high] = self.comm.each_ref().map(|word| u128::from(word.load(Relaxed)));
        (low | high << 64).to_le_bytes()
    }

    /// The relation of the process to Vellum's allocator.
    pub fn attach(&self) -> Attach {
        Attach::from_u32(self.attach.load(Relaxed))
    }
}

impl Default for Slot {
    fn default() -> Self {
        Slot::new()
    }
}

/// A view of a mapped board.
#[derive(Clone, Copy, Debug)]
pub struct Board<'a> {
    header: &'a Header,
    slots: &'a [Slot],
}

impl<'a> Board<'a> {
    /// Bytes a board of `slots` slots takes.
    pub const fn bytes(slots: u32) -> usize {
        size_of::<Header>() + slots as usize * SLOT_BYTES
    }

    /// Writes the header of a fresh, zeroed board of `slots` slots.
    ///
    /// # Safety
    /// `base` points to [`Board::bytes`]`(slots)` bytes of zeroed, writable memory, 64-byte aligned, that
    /// live for `'a` and are only accessed through boards.
    pub unsafe fn create(base: *mut u8, slots: u32) -> Board<'a> {
        // SAFETY: by `# Safety`, `base` points to enough aligned memory for `'a`; a zeroed Header is valid.
        let header = unsafe { &*base.cast::<Header>() };
        header.version.store(VERSION, Relaxed);
        header.slot_bytes.store(SLOT_BYTES as u32, Relaxed);
        header.slots.store(slots, Relaxed);
        header.magic.store(MAGIC, core::sync::atomic::Ordering::Release);
        // SAFETY: the slots follow the header within the same [`Board::bytes`]; a zeroed Slot is valid.
        let slots =
            unsafe { core::slice::from_raw_parts(base.add(size_of::<Header>()).cast(), slots as usize) };
        Board { header, slots }
    }

    /// Views the board in `len` mapped bytes at `base`, or `None` if this version cannot read it.
    ///
    /// # Safety
    /// `base` points to `len` bytes of readable and writable memory, 64-byte aligned, that live for `'a` and
    /// are only accessed through boards.
    pub unsafe fn open(base: *mut u8, len: usize) -> Option<Board<'a>> {
        if len < size_of::<Header>() {
            return None;
        }
        // SAFETY: `len` is at least a Header's size, checked above; any bit pattern is a valid Header.
        let header = unsafe { &*base.cast::<Header>() };
        let slots = header.slots.load(Relaxed);
        let known = header.magic.load(core::sync::atomic::Ordering::Acquire) == MAGIC
            && header.version.load(Relaxed) == VERSION
            && header.slot_bytes.load(Relaxed) as usize == SLOT_BYTES
            && slots <= SLOTS_MAX
            && Board::bytes(slots) <= len;
        if !known {
            return None;
        }
        // SAFETY: `len` includes the bytes of `slots` slots, checked above; any bit pattern is a valid Slot.
        let slots =
            unsafe { core::slice::from_raw_parts(base.add(size_of::<Header>()).cast(), slots as usize) };
        Some(Board { header, slots })
    }

    /// Claims the next free slot; `None` if the board is full, which is counted.
    pub fn claim(&self) -> Option<&'a Slot> {
        let index = self.header.claimed.fetch_add(1, Relaxed);
        let slot = self.slots.get(index as usize);
        if slot.is_none() {
            self.header.claimed.fetch_sub(1, Relaxed);
            self.header.unseated.fetch_add(1, Relaxed);
        }
        slot
    }

    /// The slots claimed so far.
    pub fn claimed(&self) -> &'a [Slot] {
        let claimed = self.header.claimed.load(Relaxed) as usize;
        &self.slots[..claimed.min(self.slots.len())]
    }

    /// Processes that got no slot.
    pub fn unseated(&self) -> u32 {
        self.header.unseated.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[repr(align(64))]
    struct Space([u8; Board::bytes(3)]);

    #[test]
    fn claims_each_slot_once_then_counts_the_rest() {
        let mut space = std::boxed::Box::new(Space([0; Board::bytes(3)]));
        let base = space.0.as_mut_ptr();
        // SAFETY: `space` is zeroed, aligned and outlives both boards.
        let board = unsafe { Board::create(base, 3) };
        // SAFETY: `space` is aligned, holds a board of three slots, and outlives both boards.
        let reader = unsafe { Board::open(base, Board::bytes(3)) }.expect("a board just created opens");
        for pid in 1..=3 {
            board.claim().expect("three seats").pid.store(pid, Relaxed);
        }
        assert!(board.claim().is_none());
        assert_eq!(reader.claimed().len(), 3);
        assert_eq!(reader.unseated(), 1);
        reader.claimed()[1].add(Counter::CacheHits, 5);
        assert_eq!(board.claimed()[1].get(Counter::CacheHits), 5);
    }

    #[test]
    fn open_refuses_other_memory() {
        let mut space = std::boxed::Box::new(Space([0; Board::bytes(3)]));
        let base = space.0.as_mut_ptr();
        // SAFETY: `space` is aligned, has room for three slots, and outlives the board.
        assert!(unsafe { Board::open(base, Board::bytes(3)) }.is_none());
        // SAFETY: `space` is zeroed, aligned and outlives the board.
        unsafe { Board::create(base, 3) };
        // SAFETY: `space` is aligned and outlives the board; a length too short for the slots is refused
        // before they are touched.
        assert!(unsafe { Board::open(base, Board::bytes(2)) }.is_none());
    }

    #[test]
    fn names_are_cut_and_padded() {
        let slot = Slot::new();
        slot.set_comm(b"a-name-longer-than-sixteen");
        assert_eq!(&slot.comm_bytes(), b"a-name-longer-th");
        slot.set_comm(b"cc1plus");
        assert_eq!(&slot.comm_bytes()[..8], b"cc1plus\0");
    }
}
