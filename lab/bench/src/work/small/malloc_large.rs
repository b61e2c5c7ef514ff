//! A few big buffers that are replaced in turn (after mimalloc-bench's malloc-large).
//!
//! Twenty buffers of 5 to 25 MiB live at a time; each new one replaces a random old one and is cleared in
//! full, as a buffer of a fresh container is. What counts is how the pages come and go.

use super::{Area, Block, Failure, Metrics, Params, Rng, measured, raw, release_all};

const LIVE: usize = 20;
const REPLACED: u64 = 200;
const MIB: u64 = 1 << 20;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let replaced = params.scaled(REPLACED);
    measured(|| {
        let mut rng = Rng::new(params.seed());
        let mut table = Area::<Block>::new(LIVE);
        for _ in 0..replaced {
            let slot = &mut table[rng.below(LIVE as u64) as usize];
            std::mem::replace(slot, Block::NONE).release();
            let bytes = (5 * MIB + rng.below(20 * MIB)) as usize;
            let block = Block { at: raw::malloc(bytes), bytes };
            // SAFETY: the block is live and `bytes` long.
            unsafe { raw::opaque(block.at).write_bytes(0, bytes) };
            block.stamp();
            *slot = block;
        }
        release_all(&mut table);
        Ok(())
    })
}
