//! Douglas 2011, the abstract's claims: 8 MiB are allocated, and a block of 128 KiB is resized to 256 KiB.
//!
//! With `source=malloc` the blocks come from the preloaded allocator. With `source=system` they are mappings
//! of the kernel, with which the paper compares. Every page is touched, also the new ones after a resize.

use crate::area::{Frames, Mapping};
use crate::clock;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::{Area, touch};
use vellum_campaign::worker::{Params, WorkError, middle, raw};

const KIB: usize = 1 << 10;

/// A block from malloc or from the system.
enum Block {
    Malloc(*mut u8),
    System(Mapping),
}

impl Block {
    #[inline(always)]
    fn new(system: bool, bytes: usize) -> Result<Self, WorkError> {
        Ok(if system {
            Self::System(Mapping::new(bytes, Frames::Faults)?)
        } else {
            Self::Malloc(raw::malloc(bytes))
        })
    }

    fn start(&self) -> *mut u8 {
        match self {
            Self::Malloc(start) => *start,
            Self::System(mapping) => mapping.start(),
        }
    }

    #[inline(always)]
    fn resize(&mut self, bytes: usize) -> Result<(), WorkError> {
        match self {
            Self::System(mapping) => mapping.resize(bytes),
            Self::Malloc(start) => {
                // SAFETY: `self` owns the live block; the new address replaces the old one.
                *start = unsafe { raw::realloc(*start, bytes) };
                Ok(())
            }
        }
    }

    #[inline(always)]
    fn give(self) {
        match self {
            // SAFETY: `self` owns the live block and is consumed here.
            Self::Malloc(start) => unsafe { raw::free(start) },
            Self::System(mapping) => drop(mapping),
        }
    }
}

/// For `op=allocate`: `first_cycles` (the process's first block: allocate, touch, free), then medians of the
/// later ones: `call_cycles` (allocate and free) and `used_cycles` (with touching). For `op=resize`: the same
/// for the resize alone and with the touching of the new pages.
pub(super) fn claim(params: &Params) -> Result<Metrics, WorkError> {
    let times = params.number("times")?.max(2);
    let system = match params.word("source") {
        "malloc" => false,
        "system" => true,
        _ => return Err(params.refused("source")),
    };
    let once: fn(bool) -> Result<[u64; 2], WorkError> = match params.word("op") {
        "allocate" => allocate,
        "resize" => resize,
        _ => return Err(params.refused("op")),
    };
    let (mut call, mut used) = (Area::<u64>::new(times), Area::<u64>::new(times));
    let base = clock::base();
    for time in 0..times {
        let spent = once(system)?;
        [call[time], used[time]] = spent.map(|cycles| cycles.saturating_sub(base));
    }
    let mut metrics = Metrics::new();
    metrics.set("first_cycles", used[0] as f64);
    metrics.set("call_cycles", middle(&mut call[1..]));
    metrics.set("used_cycles", middle(&mut used[1..]));
    Ok(metrics)
}

#[inline(always)]
fn allocate(system: bool) -> Result<[u64; 2], WorkError> {
    const BYTES: usize = 8 << 20;
    let start = clock::now();
    let block = Block::new(system, BYTES)?;
    let allocated = clock::now();
    // SAFETY: the block was just allocated with `BYTES` bytes.
    unsafe { touch(block.start(), BYTES) };
    let touched = clock::now();
    block.give();
    let end = clock::now();
    Ok([(allocated - start) + (end - touched), end - start])
}

#[inline(always)]
fn resize(system: bool) -> Result<[u64; 2], WorkError> {
    const BEFORE: usize = 128 * KIB;
    const AFTER: usize = 256 * KIB;
    let mut block = Block::new(system, BEFORE)?;
    // SAFETY: the block was just allocated with `BEFORE` bytes.
    unsafe { touch(block.start(), BEFORE) };
    let start = clock::now();
    block.resize(AFTER)?;
    let resized = clock::now();
    // SAFETY: the second half of the block, which now has `AFTER` bytes.
    unsafe { touch(block.start().add(BEFORE), AFTER - BEFORE) };
    let end = clock::now();
    block.give();
    Ok([resized - start, end - start])
}
