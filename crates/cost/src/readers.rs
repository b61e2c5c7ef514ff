//! Entry points to the readers of untrusted bytes, for the fuzz targets (`vellum-fuzz`) only; see
//! `vellum_process::readers`.

use crate::{faults, held};
use vellum_process::ring::Ring;

/// A ring of page faults, as `vellum cost` reads it: how many stacks it has. The first two words are where it
/// is written and read next.
#[must_use]
pub fn ring_of_faults(bytes: &[u8], major_id: u64) -> usize {
    Ring::of_bytes(bytes).map_or(0, |mut ring| faults::of_ring(&mut ring, major_id).by_stack.len())
}

/// A process's part of a heap profile: how many stacks it has, and how many frames these have.
#[must_use]
pub fn part_of_profile(bytes: &[u8]) -> (usize, usize) {
    let stacks = held::holder(bytes).map_or(Vec::new(), |holder| holder.stacks);
    (stacks.len(), stacks.iter().map(|held| held.stack.len()).sum())
}
