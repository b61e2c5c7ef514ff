//! The state of the process's malloc: one value.
//!
//! It is a static because the functions that a C program calls (`malloc`, `free`, `mmap`) have no argument
//! for it, and run before any initialisation. What the fast paths read is elsewhere: the thread's heap
//! (`tls`) and the key of seals (`seal`) are hidden symbols of their own, one operand away.
//!
//! The types here are plain words, as this file is below all others: the functions of each part are in its
//! file.

use crate::hooks::Hooks;
use crate::passthrough::Next;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU16, AtomicU32};
use vellum_sys::lock::Guarded;
use vellum_wire::door::{HeapDoor, PROFILED};

/// See the head of this file.
pub(crate) struct Malloc {
    /// The mode of the process, and another process's request (`mode`).
    pub(crate) door: HeapDoor,
    /// The sampler; null until it is installed.
    pub(crate) hooks: AtomicPtr<Hooks>,
    /// See `mode::epoch`.
    pub(crate) epoch: AtomicU32,
    /// The next allocator, in passthrough.
    pub(crate) next: AtomicPtr<Next>,
    /// The next allocator as this crate found it.
    pub(crate) found: Guarded<Option<Next>>,
}

/// The first mode: see `mode`.
pub(crate) const UNDECIDED: u16 = PROFILED + 2;

pub(crate) static MALLOC: Malloc = Malloc {
    door: {
        let mut door = HeapDoor::new();
        door.now = AtomicU16::new(UNDECIDED);
        door
    },
    hooks: AtomicPtr::new(null_mut()),
    epoch: AtomicU32::new(0),
    next: AtomicPtr::new(null_mut()),
    found: Guarded::new(None),
};
