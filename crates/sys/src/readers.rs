//! Parsers of the kernel's text files, each for given bytes, for the fuzz targets (`vellum-fuzz`) only.

use crate::{limits, usage};

/// Bytes paged out, by the text of `status`.
#[must_use]
pub fn swapped(status: &[u8]) -> u64 {
    usage::swapped_in(status)
}

/// The number of control groups, this process's and those above, in the texts of `cgroup` and `mountinfo`.
#[must_use]
pub fn groups(membership: &[u8], mounts: &[u8]) -> usize {
    limits::Limits::of_texts(membership, mounts).levels()
}

/// The reclaimable memory and the limits met, by the texts of `memory.stat` and `memory.events`.
#[must_use]
pub fn group_texts(text: &[u8]) -> [u64; 4] {
    let reclaimable = [false, true].map(|v2| limits::reclaimable_in(text, v2));
    [reclaimable[0], reclaimable[1], limits::distress_in(text), limits::available_in(text).unwrap_or(0)]
}
