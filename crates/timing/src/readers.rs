//! Parsers of input from outside the process, exported only for the fuzz targets (`vellum-fuzz`); see
//! `vellum_process::readers`.

use crate::profile::{names, perf};
use std::path::Path;
use vellum_kernel::perf::Ring;

/// The numbers of samples and of lost samples in a ring.
#[must_use]
pub fn ring_of_samples(bytes: &[u8], own: u32) -> (usize, u64) {
    Ring::of_bytes(bytes).map_or((0, 0), |mut ring| perf::of_ring(&mut ring, own))
}

/// The function at an offset of an ELF file, by its symbol table.
#[must_use]
pub fn elf_table(path: &Path, offset: u64) -> Option<String> {
    names::by_table(path, offset)
}

/// Looks up a name in the text of `maps`, and one in the text of `kallsyms`.
pub fn symbol_texts(text: &str, address: u64) {
    let _ = names::by_maps(text, address);
    let _ = names::by_kallsyms(text, address);
}
