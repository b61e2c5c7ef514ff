//! The cost of the first touch of a page, and memory made resident in the host of a virtual machine.

use crate::area::{Frames, Mapping, PAGE, touch as write};
use crate::clock;
use crate::params::{Params, WorkError};
use vellum_campaign::Metrics;

/// The block whose pages are counted: beyond the caches, as the memory of the programs is.
const BLOCK: usize = 64 << 20;
/// Steps in which memory is backed, so that no limit is met with a single large block.
const STEP: usize = 64 << 20;

/// `touch_cpu_ns` and `unmap_cpu_ns`: CPU time of one page's first touch (fault, frame, clearing) and of
/// giving it back.
pub(super) fn touch(_: &Params) -> Result<Metrics, WorkError> {
    let pages = (BLOCK / PAGE) as f64;
    let mapping = Mapping::of_base_pages(BLOCK)?;
    let start = clock::cpu();
    // SAFETY: the block just mapped.
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
/// host's time to back it, which no allocator can change. In huge pages where possible, as the kernel hands
/// out blocks freed whole next.
pub(super) fn back(params: &Params) -> Result<Metrics, WorkError> {
    let mut held = Vec::new();
    for _ in 0..params.number("bytes")?.div_ceil(STEP) {
        let mapping = Mapping::new(STEP, Frames::Huge)?;
        // SAFETY: the block just mapped.
        unsafe { write(mapping.start(), STEP) };
        held.push(mapping);
    }
    let mut metrics = Metrics::new();
    metrics.set("backed_bytes", (held.len() * STEP) as f64);
    Ok(metrics)
}
