//! A parser of ELF files, exported only for the fuzz targets (`vellum-fuzz`).

use crate::door;
use std::path::Path;

/// The address of the runtime's exported counters in an ELF file.
pub fn elf_door(path: &Path) -> Option<u64> {
    door::door_of(path, vellum_wire::COUNTERS_SYMBOL)
}
