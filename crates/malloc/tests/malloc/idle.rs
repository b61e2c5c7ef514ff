//! Tests that the helper loses no block of threads that take fast paths only, whichever thread frees the
//! block. The seed is printed; `VELLUM_TEST_SEED` repeats it.

use std::sync::atomic::{AtomicBool, Ordering};
use vellum_malloc as front;
use vellum_pages::Pages;
use vellum_random::{Rng, test_seed};
use vellum_wire::Counter;

const ROUNDS: usize = 40;
const BLOCKS: usize = 100_000;
const BYTES: usize = 16;

fn free_all(blocks: &[usize]) {
    // SAFETY: each block is in use, and freed once.
    blocks.iter().for_each(|&block| unsafe { front::free(block as *mut u8) });
}

fn live() -> u64 {
    Pages::global().slot().get(Counter::NowLive)
}

#[test]
fn the_helper_loses_nothing_of_a_thread_that_seems_idle() {
    vellum_skip::alone(|| {
        let first = test_seed(None);
        let over = AtomicBool::new(false);
        let before = live();
        std::thread::scope(|scope| {
            // Each trim looks twice at once, so that a thread between two of its slow paths seems idle.
            let helper = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    front::trim();
                }
            });
            for round in 0..ROUNDS {
                scope
                    .spawn(move || {
                        let mut random = Rng::new(first.wrapping_add(round as u64));
                        let (mut own, mut others) = (Vec::new(), Vec::new());
                        for _ in 0..BLOCKS {
                            let block = front::malloc(BYTES) as usize;
                            if random.below(2) == 0 { own.push(block) } else { others.push(block) }
                        }
                        let other = std::thread::spawn(move || free_all(&others));
                        free_all(&own);
                        other.join().expect("the other thread ends");
                    })
                    .join()
                    .expect("the thread ends");
            }
            over.store(true, Ordering::Relaxed);
            helper.join().expect("the helper ends");
        });
        front::trim();
        assert_eq!(front::validate(), Ok(()));
        let lost = live().saturating_sub(before);
        assert!(lost < 1 << 20, "{lost} bytes were never given back");
    });
}
