//! Readers of bytes that others have written, each from a slice or a file: for the fuzz targets
//! (`vellum-fuzz`) only.
//!
//! The readers stay private to their modules. Their results are dropped here or reduced to a word: a target
//! checks that they end, do not panic, and do not read or allocate more than they may.

use crate::{door, ring, stat};
use std::path::Path;

/// The runtime's exported counters symbol in an ELF file.
#[must_use]
pub fn elf_door(path: &Path) -> Option<u64> {
    door::door_of(path, vellum_wire::COUNTERS_SYMBOL)
}

/// The kernel's texts about processes and processors, read from the same bytes.
pub fn texts(bytes: &[u8]) {
    let _ = stat::Stat::parse(bytes);
    let _ = stat::statm_resident(bytes);
    let _ = stat::child_pids(bytes).count();
    let text = String::from_utf8_lossy(bytes);
    let _ = ring::numbers(&text);
    let _ = door::libraries(&text).count();
}
