//! A workload whose working set fits its page frames: random numbers in one block of base pages, sorted
//! and then read in order.
//!
//! No page need ever be evicted. Paging therefore costs only the faults of first touches, which the
//! process handles itself, and any unneeded work of the pager.

use super::paged::Block;
use crate::Metrics;
use vellum_campaign::worker::meter::Meter;
use vellum_campaign::worker::{Params, WorkError};
use vellum_measure::Rng;

/// Bytes of a page, and of a number.
const PAGE: usize = 4096;
const NUMBER: usize = size_of::<u64>();

/// Sorts `bytes` bytes of numbers.
pub(super) fn run(params: &Params) -> Result<Metrics, WorkError> {
    let bytes = params.size("bytes", 48 << 20) / PAGE * PAGE;
    let wrong = |what: &str| WorkError::Wrong { workload: "fits", what: what.to_owned() };
    let mut rng = Rng::new(params.seed());
    let meter = Meter::start();
    let mut block = Block::new(bytes)?;
    let numbers = block.numbers();
    debug_assert_eq!(numbers.len() * NUMBER, bytes);
    let mut sum = 0u64;
    for number in numbers.iter_mut() {
        let drawn = rng.below(u64::MAX);
        sum = sum.wrapping_add(drawn);
        number.write(drawn);
    }
    // SAFETY: the loop above has written all numbers.
    let numbers = unsafe { numbers.assume_init_mut() };
    numbers.sort_unstable();
    let is_sorted = numbers.is_sorted();
    let found = numbers.iter().fold(0u64, |sum, &number| sum.wrapping_add(number));
    let metrics = meter.stop();
    if is_sorted && found == sum { Ok(metrics) } else { Err(wrong("what was sorted is not what was made")) }
}
