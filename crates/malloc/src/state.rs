//! The statics of the process's malloc: `DOOR` (the mode, and another process's request) and `MALLOC`.
//!
//! They are statics because the functions that a C program calls (`malloc`, `free`, `mmap`) have no argument
//! for them, and run before any initialisation. Data of the fast paths is not here: the thread's heap (`tls`)
//! and the key of seals (`seal`) are hidden symbols, which one instruction can address.
//!
//! All other files use this one, so it uses few: its types' functions are in files that comments name.

use crate::backoff::Backoff;
use crate::hooks::Hooks;
use crate::passthrough::Next;
use core::mem::{MaybeUninit, zeroed};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicUsize};
use vellum_sys::Lock;
use vellum_sys::lock::Guarded;
use vellum_wire::door::{HeapDoor, PROFILED};

pub(crate) struct Malloc {
    /// The sampler; null until it is installed.
    pub(crate) hooks: AtomicPtr<Hooks>,
    /// The number of times that sampling began, changed its rate or ended: drawn numbers hold for one value.
    pub(crate) epoch: AtomicU32,
    pub(crate) next: AtomicPtr<Next>,
    /// The next allocator as this crate found it.
    pub(crate) found: Guarded<MaybeUninit<Next>>,
    pub(crate) space: Space,
    pub(crate) heaps: Heaps,
    pub(crate) helper: Helper,
    pub(crate) paging: Paging,
    /// True if the program's mappings are served (`mmap`).
    pub(crate) serves_mappings: AtomicBool,
    /// True if the kernel may have divided mappings that left Vellum's memory (`mmap`).
    pub(crate) divided: AtomicBool,
    /// The key whose destructor runs when a thread ends, plus one; 0 before it is made (`threads`).
    pub(crate) exit_key: AtomicU32,
    /// The first address of the C library's heap, or 0 (`foreign`).
    pub(crate) break_start: AtomicUsize,
    /// Bytes returned to the kernel out of slabs (`pass`).
    pub(crate) returned: AtomicUsize,
    /// When the figures are published next (`gauges`).
    pub(crate) publishing: Guarded<Backoff>,
}

/// The span that all blocks lie in (`space`).
pub(crate) struct Space {
    pub(crate) base: AtomicUsize,
    /// 0 before the span is placed.
    pub(crate) bytes: AtomicUsize,
    pub(crate) side: AtomicPtr<u8>,
}

/// All heaps (`registry`).
pub(crate) struct Heaps {
    /// The newest `Heap`, which leads to the others.
    pub(crate) newest: AtomicPtr<()>,
    pub(crate) orphans: AtomicUsize,
    pub(crate) nursery: Guarded<Nursery>,
}

/// The unit that new heaps are cut from.
pub(crate) struct Nursery {
    pub(crate) unit: *mut u8,
    /// Bytes of it that are not heaps yet.
    pub(crate) left: usize,
}

// SAFETY: the unit is memory of the whole process, reached under the lock.
unsafe impl Send for Nursery {}

/// The background work (`background`).
pub(crate) struct Helper {
    /// Held by one round of the helper, or one fork.
    pub(crate) round: Lock,
    /// A `fn()` that runs after each round, under its lock; or null.
    pub(crate) after_round: AtomicPtr<()>,
    pub(crate) ticks: AtomicU32,
    /// Ticks until huge pages may be withdrawn again.
    pub(crate) resting: AtomicU32,
}

/// The source of the units for small blocks (`units`).
pub(crate) struct Paging {
    pub(crate) unpaged: AtomicUsize,
    /// See the constants of `units`.
    pub(crate) whole: AtomicU32,
    /// True once a unit was the pager's.
    pub(crate) has_units: AtomicBool,
}

/// The first mode: see `mode`.
pub(crate) const UNDECIDED: u16 = PROFILED + 2;

/// The mode of the process, and another process's request (`mode`).
pub static DOOR: HeapDoor = {
    let mut door = HeapDoor::new();
    door.now = AtomicU16::new(UNDECIDED);
    door
};

// SAFETY: all fields are atomic words, locks that are free when zero, or guarded plain words.
pub(crate) static MALLOC: Malloc = unsafe { zeroed() };
