//! Producers and consumers: every block is freed by a thread that did not allocate it (after Lever and
//! Boreham's xmalloc-test, 2000).
//!
//! Producers fill batches, themselves allocated, and put them into a shelf of a few places; consumers take
//! them out and free everything. An allocator that parks remote frees without giving them back grows here
//! without end.

use super::{Failure, Metrics, Params, Rng, measured, on_threads, raw, threads};
use std::sync::{Condvar, Mutex};

const BATCH: usize = 120;
const PLACES: usize = 16;
const BATCHES: u64 = 120_000;

pub(crate) fn run(params: &Params) -> Result<Metrics, Failure> {
    let pairs = threads(params).div_ceil(2);
    let batches = params.scaled(BATCHES);
    let seed = params.seed();
    let shelf = Shelf::default();
    measured(|| {
        on_threads(2 * pairs, |number| {
            if number % 2 == 0 {
                let mut rng = Rng::new(seed + number);
                (0..batches).for_each(|_| shelf.put(produce(&mut rng)));
            } else {
                (0..batches).for_each(|_| consume(shelf.take()));
            }
        });
        Ok(())
    })
}

/// A block that holds pointers to `BATCH` blocks, each of which begins with its own address.
#[derive(Clone, Copy)]
struct Batch(*mut *mut u8);

// SAFETY: a batch is owned by one thread at a time, handed over under the shelf's lock.
unsafe impl Send for Batch {}

fn produce(rng: &mut Rng) -> Batch {
    let items = raw::malloc(BATCH * size_of::<*mut u8>()).cast::<*mut u8>();
    for place in 0..BATCH {
        let block = raw::malloc(8 * (1 + rng.below(32) as usize));
        // SAFETY: the block holds at least a word, the batch `BATCH` pointers.
        unsafe {
            block.cast::<usize>().write(block.addr());
            items.add(place).write(block);
        }
    }
    Batch(items)
}

fn consume(batch: Batch) {
    for place in 0..BATCH {
        // SAFETY: `produce` filled all places with live blocks that hold their address; each is freed once.
        unsafe {
            let block = batch.0.add(place).read();
            assert!(
                block.cast::<usize>().read() == block.addr(),
                "xmalloc: a block lost its contents on the way"
            );
            raw::free(block);
        }
    }
    // SAFETY: the batch's own block, not used after.
    unsafe { raw::free(batch.0.cast()) };
}

#[derive(Default)]
struct Shelf {
    places: Mutex<(usize, [Option<Batch>; PLACES])>,
    changed: Condvar,
}

impl Shelf {
    fn put(&self, batch: Batch) {
        let held = self.places.lock().expect("no holder of the shelf panics");
        let mut held =
            self.changed.wait_while(held, |(filled, _)| *filled == PLACES).expect("no holder panics");
        let (filled, places) = &mut *held;
        places[*filled] = Some(batch);
        *filled += 1;
        self.changed.notify_all();
    }

    fn take(&self) -> Batch {
        let held = self.places.lock().expect("no holder of the shelf panics");
        let mut held = self.changed.wait_while(held, |(filled, _)| *filled == 0).expect("no holder panics");
        let (filled, places) = &mut *held;
        *filled -= 1;
        self.changed.notify_all();
        places[*filled].take().expect("places below `filled` are taken")
    }
}
