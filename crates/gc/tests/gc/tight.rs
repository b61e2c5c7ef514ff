//! Tests of heaps of a fixed size: twice the live bytes is enough, and each sort of object gets its share.

use crate::heap::begin_with;
use crate::nodes::{NODE, check, layout, push};
use vellum_gc as gc;

const MIB: usize = 1 << 20;
/// The heap, and the bytes of it that are alive.
const HEAP: usize = 8 * MIB;
const LIVE: usize = HEAP / 2;
/// Objects made beside the live ones: many times the heap.
const CHURN: usize = 2_000_000;

/// Half of the heap is filled about thirty times; a sort that had to collect for each of its blocks would do
/// so far more often.
const COLLECTIONS_MAX: u64 = 300;

/// Page frames for a heap all of which is in use all the time, in bytes.
const TIGHT: Option<u64> = Some(8 << 20);

rows! {
    mark_sweep => twice_what_lives_is_enough_and_sorts_share(gc::Plan::MarkSweep);
    mark_sweep_paged in TIGHT => twice_what_lives_is_enough_and_sorts_share(gc::Plan::MarkSweep);
    copying => twice_what_lives_is_enough_and_sorts_share(gc::Plan::MostlyCopying);
    copying_paged in TIGHT => twice_what_lives_is_enough_and_sorts_share(gc::Plan::MostlyCopying);
    appel => twice_what_lives_is_enough_and_sorts_share(gc::Plan::Appel);
}

fn twice_what_lives_is_enough_and_sorts_share(plan: gc::Plan) {
    let sized = gc::Config { limit_bytes: HEAP, fixed_bytes: HEAP, ..gc::Config::DEFAULT };
    begin_with(plan, gc::Config { only_starts: true, ..sized });
    let (layout, mut head) = (layout(), std::ptr::null_mut());
    let count = LIVE / NODE;
    // Between two nodes that live there are many that do not: they fill the heap, and leave something alive
    // nearly everywhere.
    for number in 0..count {
        head = push(layout, head, number);
        for _ in 0..CHURN / count {
            let passing = gc::alloc_typed(layout);
            assert!(!passing.is_null(), "no memory beside node {number}: {:?}", gc::stats());
        }
    }
    // Now sorts that have no block yet.
    for size in [16, 48, 64, 100, 200, 400] {
        for number in 0..10_000 {
            let text = gc::alloc_atomic(size);
            assert!(!text.is_null(), "no memory for {number} objects of {size} bytes: {:?}", gc::stats());
        }
    }
    check(head, count, &plan);
    let stats = gc::stats();
    assert!(stats.heap_peak_bytes <= HEAP as u64, "{stats:?}");
    assert!((10..COLLECTIONS_MAX).contains(&stats.collections), "{stats:?}");
    gc::validate().expect("the heap's invariants hold");
}
