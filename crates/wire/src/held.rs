//! The layout of the file for `vellum heap`, in which processes record the stacks that hold their memory.
//!
//! The command creates the file, sparse, and removes it at the end. Each process served by Vellum claims a
//! **part** when it samples its first block, and maps only that part and the head. The part holds the whole
//! profile except the table of the sampled blocks in use, so a killed process loses nothing.
//!
//! ```text
//! file  ┌──────┬────────┬────────┬─ ─ ─┐      part  ┌──────────┬───────┬───────┬────────┬─ ─ ─┐
//!       │ Head │ part 0 │ part 1 │     │            │ PartHead │ stack │ stack │ module │     │
//!       └──────┴────────┴────────┴─ ─ ─┘            └──────────┴───────┴───────┴────────┴─ ─ ─┘
//!         a page  PART_BYTES each                      a page     entries, `used` words of them
//! ```
//!
//! All fields are words, written by one process under its own lock, and read by any. The entries are those of
//! [`crate::log`]; `used` is written after an entry and publishes it.
//!
//! # The exact peak
//! Each stack stores the amount that it held at one peak, and that peak's number. When the sum of all stacks
//! exceeds the peak, only the number in the head grows. Before a stack's amount changes for the first time
//! after that, the amount and the number are stored with the stack. If a stack has the head's peak number,
//! the stored amount is therefore that at the peak. If not, the stack's present amount is that at the peak,
//! as it has not changed since ([`Held::at_peak`]).

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed},
};

/// The environment variable that holds the file's path.
pub const HELD_ENV: &str = "VELLUM_HEAP_PROFILE";
/// The first eight bytes of the file.
pub const HELD_MAGIC: u64 = u64::from_le_bytes(*b"VELLUM\0H");
/// The layout's version.
pub const HELD_VERSION: u32 = 5;
/// Bytes of the head of the file, and of the head of a part.
pub const HEAD_BYTES: usize = 4096;
/// Bytes of a part.
pub const PART_BYTES: usize = 64 << 20;
/// The number of parts.
pub const PARTS: usize = 1 << 14;
/// The size of the file in bytes; nearly all of it stays untouched.
pub const HELD_BYTES: u64 = HEAD_BYTES as u64 + PARTS as u64 * PART_BYTES as u64;
/// Words for entries in a part.
pub const ENTRY_WORDS: usize = (PART_BYTES - HEAD_BYTES) / 8;
/// Counts of blocks are in units of one block divided by this.
pub const BLOCK: u64 = 256;
/// The usual average of bytes between two samples; its least and largest value follow.
pub const INTERVAL_USUAL: u64 = 512 << 10;
/// See [`INTERVAL_USUAL`].
pub const INTERVAL_MIN: u64 = 1;
/// See [`INTERVAL_USUAL`].
pub const INTERVAL_MAX: u64 = 1 << 30;

/// The head of the file.
#[repr(C)]
#[derive(Debug)]
pub struct HeldHead {
    /// [`HELD_MAGIC`].
    pub magic: AtomicU64,
    /// [`HELD_VERSION`].
    pub version: AtomicU32,
    /// Parts claimed so far, including claims beyond the last part.
    pub parts: AtomicU32,
    /// Bytes between two samples, on average.
    pub interval: AtomicU64,
}

impl HeldHead {
    /// True if this is the head of a file that this version reads.
    pub fn is_known(&self) -> bool {
        self.magic.load(Acquire) == HELD_MAGIC && self.version.load(Relaxed) == HELD_VERSION
    }
}

/// Estimates: bytes, blocks in units of 1 / [`BLOCK`], and the number of samples behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes.
    pub bytes: u64,
    /// Blocks, times [`BLOCK`].
    pub blocks: u64,
    /// Samples.
    pub samples: u64,
}

impl Amount {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Amount) -> Amount {
        self.with(other, u64::wrapping_add)
    }

    /// The difference of both.
    #[must_use]
    pub fn minus(self, other: Amount) -> Amount {
        self.with(other, u64::wrapping_sub)
    }

    fn with(self, other: Amount, change: fn(u64, u64) -> u64) -> Amount {
        Amount {
            bytes: change(self.bytes, other.bytes),
            blocks: change(self.blocks, other.blocks),
            samples: change(self.samples, other.samples),
        }
    }
}

/// An [`Amount`] in a file.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SharedAmount([AtomicU64; 3]);

impl SharedAmount {
    /// Its value.
    pub fn get(&self) -> Amount {
        let [bytes, blocks, samples] = self.0.each_ref().map(|word| word.load(Relaxed));
        Amount { bytes, blocks, samples }
    }

    /// Sets it to `amount`.
    pub fn set(&self, amount: Amount) {
        for (word, value) in self.0.iter().zip([amount.bytes, amount.blocks, amount.samples]) {
            word.store(value, Relaxed);
        }
    }
}

/// The amounts of a stack, or of the process: held now, held at the peak, and ever allocated.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Held {
    /// In use now.
    pub now: SharedAmount,
    /// Ever allocated.
    pub ever: SharedAmount,
    /// For a stack: the amount it held at the peak of number `peak`. For the process: the peak.
    pub noted: SharedAmount,
    /// The number of the peak that `noted` belongs to.
    pub peak: AtomicU64,
}

impl Held {
    /// The amount held at the last peak, whose number is `peak`.
    pub fn at_peak(&self, peak: u64) -> Amount {
        if self.peak.load(Relaxed) == peak { self.noted.get() } else { self.now.get() }
    }

    /// Saves the amount held if the last peak, of number `peak`, is new. Call this before `now` changes.
    pub fn note(&self, peak: u64) {
        if self.peak.load(Relaxed) != peak {
            self.noted.set(self.now.get());
            self.peak.store(peak, Relaxed);
        }
    }

    /// Adds a block to this stack and to the process, `all`, or subtracts it.
    pub fn change(&self, all: &Held, amount: Amount, is_allocated: bool) {
        self.note(all.peak.load(Relaxed));
        let new = |old: Amount| if is_allocated { old.plus(amount) } else { old.minus(amount) };
        self.now.set(new(self.now.get()));
        let sum = new(all.now.get());
        all.now.set(sum);
        if !is_allocated {
            return;
        }
        self.ever.set(self.ever.get().plus(amount));
        all.ever.set(all.ever.get().plus(amount));
        Self::rise(all, sum);
    }

    /// Adds a just subtracted amount again, in a new size. Only the increase, `grown`, counts as allocated.
    pub fn regain(&self, all: &Held, amount: Amount, grown: u64) {
        self.note(all.peak.load(Relaxed));
        self.now.set(self.now.get().plus(amount));
        let sum = all.now.get().plus(amount);
        all.now.set(sum);
        for held in [self, all] {
            let grown = Amount { bytes: grown, ..Amount::default() };
            held.ever.set(held.ever.get().plus(grown));
        }
        Self::rise(all, sum);
    }

    /// Records a new peak of the process if `sum` exceeds the last one.
    fn rise(all: &Held, sum: Amount) {
        if sum.bytes > all.noted.get().bytes {
            all.noted.set(sum);
            all.peak.store(all.peak.load(Relaxed) + 1, Relaxed);
        }
    }
}

/// The head of a part.
#[repr(C)]
#[derive(Debug)]
pub struct PartHead {
    /// The process id in its own namespace; 0 until the part is claimed.
    pub pid: AtomicU32,
    /// 1 if a profiled process forked this one, which has not executed a program since.
    pub is_forked: AtomicU32,
    /// The name of the process's command, ended by a zero.
    pub name: [AtomicU64; 2],
    /// Words of entries in use.
    pub used: AtomicU64,
    /// Samples lost for lack of space, or because too many others came at the same time.
    pub lost: AtomicU64,
    /// The process's sums.
    pub held: Held,
    /// The resident memory by kind, at the last count.
    pub resident: Resident,
}

/// A kind of resident memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Kind {
    /// Blocks in use.
    Live = 0,
    /// Free beside blocks in use, in slabs and on threads' lists.
    Holes = 1,
    /// Free pages kept for the next requests.
    Cached = 2,
    /// Free pages that the kernel may take when it needs them.
    Marked = 3,
    /// The allocator's own tables, and the profile's.
    Tables = 4,
    /// The program's and its libraries' files, and their static data.
    Code = 5,
    /// Threads' stacks.
    Stacks = 6,
    /// Other files.
    Files = 7,
    /// Memory shared with other processes.
    Shared = 8,
    /// Memory that the program maps without the allocator.
    Other = 9,
}

/// The number of kinds.
pub const KINDS: usize = 10;
/// The most size classes.
pub const CLASSES_MAX: usize = 128;

/// A process's whole resident memory, in bytes.
#[repr(C)]
#[derive(Debug)]
pub struct Resident {
    /// The number of counts; 0 if it was never counted.
    pub counted: AtomicU64,
    /// By kind.
    pub kinds: [AtomicU64; KINDS],
    /// By size class.
    pub classes: [ResidentClass; CLASSES_MAX],
}

/// The resident memory of the slabs of a size class.
#[repr(C)]
#[derive(Debug)]
pub struct ResidentClass {
    /// Bytes of a block; 0 if there is no such class.
    pub block: AtomicU64,
    /// Bytes of blocks in use.
    pub live: AtomicU64,
    /// All other bytes.
    pub holes: AtomicU64,
}

/// A stack's entry before its frames.
#[repr(C)]
#[derive(Debug)]
pub struct StackHead {
    /// [`crate::log::Entry::head`].
    pub entry: AtomicU64,
    /// The hash of the frames.
    pub hash: AtomicU64,
    /// Its amounts.
    pub held: Held,
    /// Bytes of holes that its blocks in use keep from being returned, at the last count.
    pub pins: AtomicU64,
}

/// Words of a stack's entry before its frames.
pub const STACK_WORDS: usize = size_of::<StackHead>() / 8;
/// The module number of a frame without a module; the other bits are the address.
pub const NO_MODULE: u64 = 0x7fff;
/// Bits of a frame below its module's number, which is the number of module entries before that module's own.
pub const OFFSET_BITS: u32 = 48;

/// A frame: the return address less its module's bias.
pub fn frame(module: u64, offset: u64) -> u64 {
    module << OFFSET_BITS | offset & ((1 << OFFSET_BITS) - 1)
}

const _: () = assert!(size_of::<PartHead>() <= HEAD_BYTES && size_of::<HeldHead>() <= HEAD_BYTES);
const _: () = assert!(HELD_BYTES <= i64::MAX as u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: u64) -> Amount {
        Amount { bytes, blocks: BLOCK, samples: 1 }
    }

    #[test]
    fn stacks_have_their_amount_at_the_peak() {
        let (all, a, b) = (Held::default(), Held::default(), Held::default());
        a.change(&all, bytes(100), true);
        b.change(&all, bytes(50), true);
        b.change(&all, bytes(50), false);
        a.change(&all, bytes(100), false);
        b.change(&all, bytes(120), true);
        let peak = all.peak.load(Relaxed);
        assert_eq!((all.noted.get().bytes, a.at_peak(peak).bytes, b.at_peak(peak).bytes), (150, 100, 50));
        a.change(&all, bytes(31), true);
        let peak = all.peak.load(Relaxed);
        assert_eq!((all.noted.get().bytes, a.at_peak(peak).bytes, b.at_peak(peak).bytes), (151, 31, 120));
        assert_eq!((a.ever.get().bytes, b.ever.get().samples, all.now.get().bytes), (131, 2, 151));
    }
}
