//! The exported symbol of a process's counters, for other processes that read its memory.
//!
//! The runtime exports one symbol that leads to the counters. A process that may read this one's memory
//! (often one of the same user) finds the library among the mappings, and the symbol in its table. The symbol
//! holds the counters' address, on a board or private. This costs nothing.

use crate::board::{MAGIC, SLOT_BYTES, Slot, VERSION};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The symbol's name in the library.
pub const SYMBOL: &str = "vellum_counters";

/// The address of the slot; see the head of this file.
#[repr(C)]
#[derive(Debug)]
pub struct ExportedCounters {
    magic: u64,
    version: u32,
    slot_bytes: u32,
    slot: AtomicPtr<Slot>,
}

impl ExportedCounters {
    /// The size in bytes.
    pub const BYTES: usize = size_of::<ExportedCounters>();

    /// No slot yet.
    pub const fn new() -> ExportedCounters {
        ExportedCounters {
            magic: MAGIC,
            version: VERSION,
            slot_bytes: SLOT_BYTES as u32,
            slot: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Sets the address of `slot`.
    pub fn point_to(&self, slot: &'static Slot) {
        self.slot.store(core::ptr::from_ref(slot).cast_mut(), Relaxed);
    }

    /// The address of the slot, in the memory from which `bytes`, the symbol's, were read. `None` if there is
    /// no slot, or if this version cannot read it.
    pub fn read(bytes: &[u8; ExportedCounters::BYTES]) -> Option<u64> {
        let word = |at: usize| u64::from_ne_bytes(core::array::from_fn(|byte| bytes[at + byte]));
        let sizes = u64::from(VERSION) | (SLOT_BYTES as u64) << 32;
        (word(0) == MAGIC && word(8) == sizes && word(16) != 0).then(|| word(16))
    }
}

impl Default for ExportedCounters {
    fn default() -> Self {
        ExportedCounters::new()
    }
}

const _: () = assert!(ExportedCounters::BYTES == 24 && cfg!(target_endian = "little"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbol_has_the_address_of_its_slot() {
        static SLOT: Slot = Slot::new();
        let counters = ExportedCounters::new();
        // SAFETY: the structure has exactly BYTES bytes, and all are initialised.
        let bytes = |counters: &ExportedCounters| unsafe {
            *core::ptr::from_ref(counters).cast::<[u8; ExportedCounters::BYTES]>()
        };
        assert_eq!(ExportedCounters::read(&bytes(&counters)), None);
        counters.point_to(&SLOT);
        assert_eq!(ExportedCounters::read(&bytes(&counters)), Some(core::ptr::from_ref(&SLOT) as u64));
        let mut other = bytes(&counters);
        other[8] += 1;
        assert_eq!(ExportedCounters::read(&other), None, "another version");
    }
}
