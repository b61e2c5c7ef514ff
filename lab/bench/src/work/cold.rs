//! Workloads that measure the time and the memory of large blocks that a process uses for the first time.
//!
//! On a virtual machine the cost of a first touch depends on whether the host has backed the memory.
//! Therefore the workload `back` runs before each measurement, in its own process, so that all arms find
//! frames that the host already provides. The kernel keeps small and huge frames apart and hands out the
//! most recently freed ones first. `back` touches both kinds, the huge ones last.
//!
//! `sparse` measures the opposite case. Huge pages make first touches cheap, but make the whole block
//! resident if a program touches only a little of it.

use super::with_memory;
use crate::Metrics;
use vellum_campaign::worker::area::Area;
use vellum_campaign::worker::area::{PAGE, touch};
use vellum_campaign::worker::meter::Meter;
use vellum_campaign::worker::raw;
use vellum_campaign::worker::{Params, WorkError};

/// `sparse` touches one page in this many.
const SPARSE_PAGES: usize = 32;

/// `ns_per_page` of `count` blocks of `bytes`, each allocated, touched once and kept.
pub(super) fn blocks(params: &Params) -> Result<Metrics, WorkError> {
    // SAFETY: `keep` passes a live block and its size.
    keep(params, |block, bytes| unsafe { touch(block, bytes) })
}

/// The same with few of the pages touched; the result is `peak_bytes`.
pub(super) fn sparse(params: &Params) -> Result<Metrics, WorkError> {
    keep(params, |block, bytes| {
        for at in (0..bytes).step_by(SPARSE_PAGES * PAGE) {
            // SAFETY: inside the block, which is live and `bytes` long.
            unsafe { block.add(at).write_volatile(1) };
        }
    })
}

fn keep(params: &Params, use_it: impl Fn(*mut u8, usize)) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 4 << 20);
    let count = params.size("count", 16);
    let mut blocks = Area::<*mut u8>::new(count);
    let meter = Meter::start();
    for slot in blocks.iter_mut() {
        *slot = raw::malloc(bytes);
        use_it(*slot, bytes);
    }
    let mut metrics = meter.stop();
    let wall = metrics.get("wall_ns").unwrap_or(f64::NAN);
    metrics.set("ns_per_page", wall / (count * bytes.div_ceil(PAGE)) as f64);
    let metrics = with_memory(metrics);
    for block in blocks.iter() {
        // SAFETY: each allocated above and freed once.
        unsafe { raw::free(*block) };
    }
    Ok(metrics)
}
