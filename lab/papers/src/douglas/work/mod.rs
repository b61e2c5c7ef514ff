//! The measurements that worker processes make, one file for each kind of work.
//!
//! The end of a figure's name gives its unit: `_cycles` ([`crate::clock::UNIT`]) or `_ns`. The cost of
//! reading the counter is subtracted. A worker prints its figures as one line of JSON.

mod block;
mod claim;
mod list;
mod mix;
mod moves;
mod vector;

use crate::area::Mapping;
use crate::clock;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::{PAGE, touch as write};
use vellum_campaign::worker::{self, Params, Work, WorkError};

/// The bins of the work `mix`: they hold sizes from `2^BIN_FIRST` to `2^BIN_LAST` bytes.
pub(super) use mix::{BIN_FIRST, BIN_LAST};

const WORKS: [(&str, Work); 8] = [
    ("back", worker::back),
    ("block", block::block),
    ("claim", claim::claim),
    ("list", list::list),
    ("mix", mix::mix),
    ("moves", moves::moves),
    ("touch", touch),
    ("vector", vector::vector),
];

/// Does the work with this name in this process, and returns its figures as one line.
///
/// # Errors
/// [`WorkError`] if malloc is not the expected one, a parameter is invalid or memory is short.
pub fn work<S: AsRef<str>>(name: &str, words: &[S]) -> Result<String, WorkError> {
    worker::work(WORKS, name, words)
}

/// `touch_cpu_ns` and `unmap_cpu_ns`: CPU time of one page's first touch (fault, frame, clearing) and of its
/// unmapping. The block is larger than the caches, like the memory of the programs.
fn touch(_: &Params) -> Result<Metrics, WorkError> {
    const BLOCK: usize = 64 << 20;
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
