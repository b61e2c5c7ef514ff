//! Small programs: the usual kinds of allocator benchmark, each written anew for this suite.
//!
//! The field has settled on a few dozen programs because each shows something else: many tiny short-lived
//! blocks, blocks freed by another thread, threads that come and go, false sharing, objects of an
//! interpreter. Each file here says which known program it resembles and what it stresses. None is a port;
//! figures are comparable between the arms of one run and with nothing else.
//!
//! Every one is deterministic in what it allocates, apart from the interleaving of threads, does a fixed
//! amount of work (so that CPU time compares), and checks its result. `permille` scales the work.

pub(super) mod alloc_test;
pub(super) mod barnes;
mod big;
pub(super) mod cache;
pub(super) mod cfrac;
pub(super) mod espresso;
pub(super) mod glibc;
pub(super) mod larson;
pub(super) mod lua;
pub(super) mod malloc_large;
pub(super) mod mleak;
pub(super) mod mstress;
pub(super) mod python;
pub(super) mod redis;
pub(super) mod rptest;
pub(super) mod smart_heap;
pub(super) mod xmalloc;

use super::{Failure, Params, with_memory};
use crate::Metrics;
use crate::area::Area;
use crate::meter::Meter;
use crate::raw::{self, Block};
use vellum_measure::Rng;

/// Most threads a workload may be asked for.
const THREADS_MAX: u64 = 64;

fn threads(params: &Params) -> u64 {
    params.get("threads", 2).clamp(1, THREADS_MAX)
}

/// Measures `work` and adds the memory figures.
fn measured(work: impl FnOnce() -> Result<(), Failure>) -> Result<Metrics, Failure> {
    let meter = Meter::start();
    work()?;
    Ok(with_memory(meter.stop()))
}

/// Runs `work` with the numbers 0 to `threads` - 1, each on a thread of its own, until all have ended.
fn on_threads(threads: u64, work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for number in 0..threads {
            let work = &work;
            scope.spawn(move || work(number));
        }
    });
}

/// Frees what is still in the table.
fn release_all(blocks: &mut [Block]) {
    for block in blocks {
        std::mem::replace(block, Block::NONE).release();
    }
}

/// A number whose logarithm is about evenly spread: an octave of `octaves` above `least`, then a number
/// inside it.
#[inline]
fn octaves(rng: &mut Rng, least: usize, octaves: u64) -> usize {
    let base = least << rng.below(octaves);
    base + rng.below(base as u64) as usize
}
