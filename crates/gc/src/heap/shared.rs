//! The part of a heap's state that threads read without holding the heap's lock.

use crate::heap::event::Seen;
use crate::observer::Observer;
use crate::space::size_class::CLASS_LAST;
use crate::world::World;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering};

pub(crate) struct Shared {
    pub world: World,
    pub observer: Observer,
    /// True if new objects must be unmarked: a cycle is on, or marks stay. Changes while the heap's lock is
    /// held; read inside. A thread that does not see it yet allocates before the world first stands still in
    /// the cycle that has set it.
    pub white: AtomicBool,
    /// Slots of kept objects by class, first of those with pointers; 0 until the slot is made. Set once each,
    /// under the heap's lock.
    pub kept_slots: [[AtomicU16; CLASS_LAST + 1]; 2],
    pub seen: Seen,
}

impl Shared {
    pub(crate) const fn new() -> Shared {
        // SAFETY: every field is made of numbers, flags, atomic or not, and pointers that may be null.
        unsafe { core::mem::zeroed() }
    }

    #[inline]
    pub(crate) fn is_white(&self) -> bool {
        self.white.load(Ordering::Relaxed)
    }
}
