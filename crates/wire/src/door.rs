//! Where a process keeps its counters, for another that looks into its memory.
//!
//! The runtime has one door, under a name that the dynamic linker knows. Who may read the process's memory (its owner, where the
//! system allows it) finds the library in its list of mappings, the name in the library's table, and through the door the
//! slot, on a board or not. It costs the process nothing.

use crate::board::{MAGIC, SLOT_BYTES, Slot, VERSION};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The door's name in the library.
pub const SYMBOL: &str = "vellum_door";

/// See the head of this file.
#[repr(C)]
#[derive(Debug)]
pub struct Door {
    magic: u64,
    version: u32,
    slot_bytes: u32,
    slot: AtomicPtr<Slot>,
}

impl Door {
    /// Bytes of a door.
    pub const BYTES: usize = size_of::<Door>();

    /// A door that leads nowhere yet.
    pub const fn new() -> Door {
        Door {
            magic: MAGIC,
            version: VERSION,
            slot_bytes: SLOT_BYTES as u32,
            slot: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Has it lead to `slot`.
    pub fn open(&self, slot: &'static Slot) {
        self.slot.store(core::ptr::from_ref(slot).cast_mut(), Relaxed);
    }

    /// Where the slot is, in the memory that `bytes`, the door's, were read from; `None` if this version cannot read it or it leads
    /// nowhere.
    pub fn read(bytes: &[u8; Door::BYTES]) -> Option<u64> {
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        let sizes = u64::from(VERSION) | (SLOT_BYTES as u64) << 32;
        (word(0) == MAGIC && word(8) == sizes && word(16) != 0).then(|| word(16))
    }
}

impl Default for Door {
    fn default() -> Self {
        Door::new()
    }
}

const _: () = assert!(Door::BYTES == 24 && cfg!(target_endian = "little"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_to_the_slot_that_was_named() {
        static SLOT: Slot = Slot::new();
        let door = Door::new();
        // SAFETY: a door is as many bytes as an array of that length, all of them written.
        let bytes = |door: &Door| unsafe { *core::ptr::from_ref(door).cast::<[u8; Door::BYTES]>() };
        assert_eq!(Door::read(&bytes(&door)), None);
        door.open(&SLOT);
        assert_eq!(Door::read(&bytes(&door)), Some(core::ptr::from_ref(&SLOT) as u64));
        let mut other = bytes(&door);
        other[8] += 1;
        assert_eq!(Door::read(&other), None, "another version");
    }
}
