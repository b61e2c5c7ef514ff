//! Douglas 2011, the first experiment: a block is allocated, written (one byte of every page) and freed.
//!
//! The writing is also timed alone, and so are the calls without writing. `method` is the block's source:
//!
//! | method | block | in the paper |
//! | --- | --- | --- |
//! | `paged` | mmap; a fault on each page's first touch | "paged" |
//! | `populated` | mmap with `MAP_POPULATE` | "non-paged" (Linux) |
//! | `huge` | mmap, with a request for huge pages | |
//! | `retained` | one block, mapped and touched once, then reused: the least possible cost | |
//! | `warm` | Vellum's page layer, with frames in its cache | the user mode page allocator |
//! | `cold` | Vellum's page layer, its cache emptied before each block | |

use crate::area::{Frames, Mapping};
use crate::clock;
use std::ptr::NonNull;
use vellum_campaign::Metrics;
use vellum_campaign::worker::area::{Area, PAGE, touch};
use vellum_campaign::worker::{Params, WorkError, middle};
use vellum_pages::{Pages, Request, Severity};

/// First uses of a block, which do not count: they find the kernel and the caches cold. This holds for cold
/// blocks too, since only the page layer's cache is emptied for them.
const WARMING: usize = 1;
/// Smaller blocks are timed in groups of about this many bytes,
const GROUP_BYTES: usize = 1 << 20;
/// and of at most this many blocks.
const GROUP_MAX: usize = 16;

enum Source {
    Mapped(Frames, Option<Mapping>),
    Retained(Mapping),
    Layer(Option<NonNull<u8>>),
}

impl Source {
    #[inline(always)]
    fn take(&mut self, bytes: usize) -> Result<*mut u8, WorkError> {
        match self {
            Self::Mapped(frames, held) => Ok(held.insert(Mapping::new(bytes, *frames)?).start()),
            Self::Retained(mapping) => Ok(mapping.start()),
            Self::Layer(held) => {
                let extent = Pages::global().alloc(Request { bytes, align: PAGE, zero: false });
                let extent = extent.map_err(|_| WorkError::Memory { call: "Pages::alloc", bytes })?;
                Ok(held.insert(extent.addr).as_ptr())
            }
        }
    }

    #[inline(always)]
    fn give(&mut self) {
        match self {
            Self::Mapped(_, held) => drop(held.take()),
            Self::Retained(_) => {}
            Self::Layer(held) => {
                if let Some(block) = held.take() {
                    // SAFETY: `block` came from `take`, and is not used after this.
                    let freed = unsafe { Pages::global().free(block) };
                    debug_assert!(freed.is_ok(), "{freed:?}");
                }
            }
        }
    }
}

/// Medians for a whole block: `touch_cycles` (the writing, and one reading of the counter, which dominates
/// for the smallest blocks) and `total_cycles` (allocate, write, free). Except for cold and populated blocks
/// also `call_cycles` (allocate and free, without writing). `best_cycles` is the least total.
pub(super) fn block(params: &Params) -> Result<Metrics, WorkError> {
    let (bytes, times) = (params.number("bytes")?, params.number("times")?.max(1));
    let cold = params.word("method") == "cold";
    let mut source = match params.word("method") {
        "paged" => Source::Mapped(Frames::Faults, None),
        "populated" => Source::Mapped(Frames::Populated, None),
        "huge" => Source::Mapped(Frames::Huge, None),
        "retained" => Source::Retained(Mapping::of_base_pages(bytes)?),
        "warm" | "cold" => Source::Layer(None),
        _ => return Err(params.refused("method")),
    };
    // Small blocks are timed in groups, since a single one costs less than reading the counter.
    let group = if cold { 1 } else { (GROUP_BYTES / bytes).clamp(1, GROUP_MAX) };
    let (mut touching, mut spent) = (Area::<u64>::new(times), Area::<u64>::new(times));
    for time in 0..WARMING + times {
        if cold {
            Pages::global().trim(Severity::Everything);
        }
        let start = clock::now();
        let block = source.take(bytes)?;
        let taken = clock::now();
        // SAFETY: the block was just taken and has `bytes` bytes.
        unsafe { touch(block, bytes) };
        let touched = clock::now();
        source.give();
        let given = clock::now();
        if let Some(slot) = time.checked_sub(WARMING) {
            (touching[slot], spent[slot]) = (touched - taken, given - start);
        }
    }
    if group > 1 {
        for slot in spent.iter_mut() {
            let start = clock::now();
            for _ in 0..group {
                let block = source.take(bytes)?;
                // SAFETY: the block was just taken and has `bytes` bytes.
                unsafe { touch(block, bytes) };
                source.give();
            }
            *slot = clock::now() - start;
        }
    }
    let base = clock::base() as f64;
    let each = |spent: f64| (spent - base).max(0.0) / group as f64;
    let mut metrics = Metrics::new();
    metrics.set("touch_cycles", middle(&mut touching));
    metrics.set("total_cycles", each(middle(&mut spent)));
    metrics.set("best_cycles", each(spent.iter().min().map_or(f64::NAN, |least| *least as f64)));
    // The cost of populating includes the writing; that of calls with empty caches is in the total.
    if !cold && params.word("method") != "populated" {
        let mut spent = Area::<u64>::new(times);
        for slot in spent.iter_mut() {
            let start = clock::now();
            for _ in 0..GROUP_MAX {
                std::hint::black_box(source.take(bytes)?);
                source.give();
            }
            *slot = clock::now() - start;
        }
        metrics.set("call_cycles", (middle(&mut spent) - base).max(0.0) / GROUP_MAX as f64);
    }
    Ok(metrics)
}
