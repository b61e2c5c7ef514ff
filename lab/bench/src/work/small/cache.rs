//! False sharing (after cache-scratch and cache-thrash of Berger's Hoard, 2000).
//!
//! Threads write into tiny blocks of their own again and again. If two of them lie in one cache line, the
//! line travels between the processors with each write. `thrash` shows an allocator that hands parts of a
//! line to two threads by itself; in `scratch` the blocks handed over by the main thread share a line to
//! begin with, and an allocator that recycles a freed one on the thread that freed it keeps the sharing
//! alive.

use super::{Area, Failure, Metrics, Params, measured, on_threads, raw, threads};

const BYTES: usize = 8;
const BLOCKS: u64 = 150;
const WRITES: u64 = 30_000_000;

pub(crate) fn thrash(params: &Params) -> Result<Metrics, Failure> {
    let writes = params.scaled(WRITES);
    measured(|| {
        on_threads(threads(params), |_| churn(writes));
        Ok(())
    })
}

pub(crate) fn scratch(params: &Params) -> Result<Metrics, Failure> {
    let (writes, threads) = (params.scaled(WRITES), threads(params));
    measured(|| {
        let mut given = Area::<usize>::new(threads as usize);
        given.iter_mut().for_each(|slot| *slot = raw::malloc(BYTES).expose_provenance());
        on_threads(threads, |number| {
            let block = std::ptr::with_exposed_provenance_mut::<u8>(given[number as usize]);
            write(block, writes);
            // SAFETY: allocated above, given to this thread alone, freed once.
            unsafe { raw::free(block) };
            churn(writes);
        });
        Ok(())
    })
}

fn churn(writes: u64) {
    for _ in 0..BLOCKS {
        let block = raw::malloc(BYTES);
        write(block, writes);
        // SAFETY: allocated above, freed once.
        unsafe { raw::free(block) };
    }
}

/// Counts up in the block, through memory each time.
fn write(block: *mut u8, writes: u64) {
    let word = block.cast::<u64>();
    // SAFETY: the block is live, eight bytes long and aligned; only this thread uses it.
    unsafe {
        word.write_volatile(0);
        (0..writes / 8).for_each(|_| word.write_volatile(word.read_volatile() + 1));
        assert_eq!(word.read_volatile(), writes / 8, "another thread wrote into this block");
    }
}
