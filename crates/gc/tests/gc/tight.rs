//! Heaps of a given size: twice the live data is enough, and no sort of object is starved by another.

use crate::heap::begin_with;
use vellum_gc as gc;

const MIB: usize = 1 << 20;
/// The heap, and the bytes of it that are alive.
const HEAP: usize = 8 * MIB;
const LIVE: usize = HEAP / 2;
/// Bytes of a node.
const NODE: usize = 32;
/// Objects made while so much is alive: many times the heap.
const CHURN: usize = 4_000_000;

/// Half of the heap is filled about thirty times; a sort that had to collect for each of its blocks would do
/// so far more often.
const COLLECTIONS_MAX: u64 = 300;

/// A list of typed nodes: number, next, and two words besides.
struct Nodes {
    layout: &'static gc::Layout,
    head: *mut [usize; 4],
}

impl Nodes {
    fn push(&mut self, number: usize) {
        let node = gc::alloc_typed(self.layout).cast::<[usize; 4]>();
        assert!(!node.is_null(), "no memory for node {number}: {:?}", gc::stats());
        // SAFETY: a new object of four words.
        unsafe { node.write([number, self.head.expose_provenance(), 0, 0]) };
        self.head = node;
    }

    /// The numbers, newest first.
    fn each(&self) -> impl Iterator<Item = usize> {
        let mut at = self.head;
        std::iter::from_fn(move || {
            // SAFETY: null, or a node that the list holds.
            let [number, next, ..] = unsafe { at.as_ref() }.copied()?;
            at = std::ptr::with_exposed_provenance_mut(next);
            Some(number)
        })
    }
}

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
    let layout = gc::type_of(NODE, |_| 1 << 1).expect("a small type");
    let mut kept = Nodes { layout, head: std::ptr::null_mut() };
    let count = LIVE / NODE;
    // Between two nodes that live there are many that do not: they fill the heap, and leave something alive
    // nearly everywhere.
    for number in 0..count {
        kept.push(number);
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
    assert!(kept.each().eq((0..count).rev()), "the list is as it was made");
    let stats = gc::stats();
    assert!(stats.heap_peak_bytes <= HEAP as u64, "{stats:?}");
    assert!((10..COLLECTIONS_MAX).contains(&stats.collections), "{stats:?}");
    gc::validate().expect("the heap's invariants hold");
}
