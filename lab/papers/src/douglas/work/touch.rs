//! The cost of the first touch of a page, and memory made resident in the host of a virtual machine.

use crate::area::{Frames, Mapping, PAGE, touch as write};
use crate::clock;
use crate::params::{Params, WorkError};
use vellum_campaign::Metrics;

/// Bytes of the block whose pages are counted: larger than the caches, like the memory of the programs.
const BLOCK: usize = 64 << 20;
/// Bytes of each step of `back`, so that no single block is too large for a limit.
const STEP: usize = 64 << 20;

/// `touch_cpu_ns` and `unmap_cpu_ns`: CPU time of one page's first touch (fault, frame, clearing) and of its
/// unmapping.
pub(super) fn touch(_: &Params) -> Result<Metrics, WorkError> {
    let pages = (BLOCK / PAGE) as f64;
    let mapping = Mapping::of_base_pages(BLOCK)?;
    let start = clock::cpu();
    // SAFETY: the mapping has `BLOCK` bytes, which no other code uses.
    unsafe { write(mapping.start(), BLOCK) };
    let touched = clock::cpu();
    drop(mapping);
    let unmapped = clock::cpu();
    let mut metrics = Metrics::new();
    metrics.set("touch_cpu_ns", (touched - start).as_nanos() as f64 / pages);
    metrics.set("unmap_cpu_ns", (unmapped - touched).as_nanos() as f64 / pages);
    Ok(metrics)
}

/// Touches `bytes` of memory and frees it. In a virtual machine the very first touch of a page includes the
/// host's time to back it, which no allocator can change. Uses huge pages if possible, since the kernel hands
/// out blocks freed as a whole next.
pub(super) fn back(params: &Params) -> Result<Metrics, WorkError> {
    let mut held = Vec::new();
    for _ in 0..params.number("bytes")?.div_ceil(STEP) {
        let mapping = Mapping::new(STEP, Frames::Huge)?;
        // SAFETY: the mapping has `STEP` bytes, which no other code uses.
        unsafe { write(mapping.start(), STEP) };
        held.push(mapping);
    }
    let mut metrics = Metrics::new();
    metrics.set("backed_bytes", (held.len() * STEP) as f64);
    Ok(metrics)
}
