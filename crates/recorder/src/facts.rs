//! A table of computed facts, such as the owner of an instruction: each maps a key to a word.
//!
//! The table is in private memory, which a forked child inherits. All threads read it without a lock.
//!
//! Invariants: a key is written once, by compare-and-swap, before its value. A value of 0 is not yet filled
//! in; another thread that finds it computes the value too.

use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use rustix::mm::{MapFlags, ProtFlags};

/// Places in a table.
const SLOTS: usize = 1 << 17;
/// Probes before an insertion fails.
const PROBES_MAX: usize = 64;

struct Slot {
    key: AtomicU64,
    value: AtomicU64,
}

/// A table, mapped when it is first filled.
pub(crate) struct Facts(AtomicPtr<Slot>);

impl Facts {
    pub(crate) const fn new() -> Facts {
        Facts(AtomicPtr::new(null_mut()))
    }

    /// The word of `key`, which is not 0; computed if it is missing. `None` if there is no room for it. No
    /// word is 0.
    pub(crate) fn of(&self, key: u64, work_out: impl FnOnce() -> u64) -> Option<u64> {
        let slot = self.slot_of(key)?;
        let value = slot.value.load(Acquire);
        if value != 0 {
            return Some(value);
        }
        let value = work_out();
        slot.value.store(value, Release);
        Some(value)
    }

    /// The word of `key`, if it has been computed and is in its first slot or the next.
    #[inline(always)]
    pub(crate) fn known(&self, key: u64) -> Option<u64> {
        let table = self.0.load(Relaxed);
        if table.is_null() {
            return None;
        }
        let start = start(key);
        // SAFETY: both indices are below `SLOTS`, and the table is never unmapped.
        let slots = unsafe { [&*table.add(start), &*table.add((start + 1) % SLOTS)] };
        let slot = slots.into_iter().find(|slot| slot.key.load(Relaxed) == key)?;
        let value = slot.value.load(Acquire);
        (value != 0).then_some(value)
    }

    /// The key's slot, claimed for the key if it has none yet.
    fn slot_of(&self, key: u64) -> Option<&Slot> {
        let table = self.table()?;
        let start = start(key);
        for probe in 0..PROBES_MAX {
            // SAFETY: the index is below `SLOTS`, and the table is never unmapped.
            let slot = unsafe { &*table.add((start + probe) % SLOTS) };
            match slot.key.load(Relaxed) {
                there if there == key => return Some(slot),
                0 => match slot.key.compare_exchange(0, key, Relaxed, Relaxed) {
                    Err(theirs) if theirs != key => {}
                    _ => return Some(slot),
                },
                _ => {}
            }
        }
        None
    }

    fn table(&self) -> Option<*const Slot> {
        let table = self.0.load(Acquire);
        if !table.is_null() {
            return Some(table);
        }
        let bytes = SLOTS * size_of::<Slot>();
        // SAFETY: a new private mapping at an address of the kernel's choice; zeroed slots are empty.
        let fresh = unsafe {
            rustix::mm::mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let fresh = fresh.ok()?.cast::<Slot>();
        match self.0.compare_exchange(null_mut(), fresh, Release, Acquire) {
            Ok(_) => Some(fresh),
            Err(theirs) => {
                // SAFETY: the mapping was just made, and no other thread has its address.
                let _ = unsafe { rustix::mm::munmap(fresh.cast(), bytes) };
                Some(theirs)
            }
        }
    }
}

fn start(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % SLOTS
}
