//! What a page costs, and making sure that the host behind a virtual machine has given it.

use crate::area::{Frames, Mapping, PAGE, touch as write};
use crate::clock;
use crate::params::{Params, WorkError};
use vellum_probe::campaign::Metrics;

/// The block whose pages are counted: beyond the caches, as the memory of the programs is.
const BLOCK: usize = 64 << 20;
/// Steps in which memory is backed, so that no limit is met with a single large block.
const STEP: usize = 64 << 20;

/// `touch_cpu_ns` and `unmap_cpu_ns`: CPU time of one page's first touch (fault, frame, clearing) and of giving it back.
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

/// Touches `bytes` of memory and lets go of it: in a virtual machine a page's first touch ever costs what the host
/// needs to find it, which is nobody's allocator's doing. In huge pages where possible, as what is freed whole is what the
/// kernel hands out next.
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
