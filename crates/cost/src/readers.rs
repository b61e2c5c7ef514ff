//! Entry points for the fuzz targets (`vellum-fuzz`) only: the readers of bytes that other processes wrote.

use crate::{faults, held};
use vellum_kernel::perf::Ring;

/// Reads a ring of page faults like `vellum cost`; returns the number of stacks. The first two words are
/// the positions of the next write and the next read.
#[must_use]
pub fn ring_of_faults(bytes: &[u8], major_id: u64) -> usize {
    Ring::of_bytes(bytes).map_or(0, |mut ring| faults::of_ring(&mut ring, major_id).by_stack.len())
}

/// Reads a process's part of a heap profile; returns the numbers of stacks and of frames.
#[must_use]
pub fn part_of_profile(bytes: &[u8]) -> (usize, usize) {
    let stacks = held::holder(bytes).map_or(Vec::new(), |holder| holder.stacks);
    (stacks.len(), stacks.iter().map(|held| held.stack.len()).sum())
}
