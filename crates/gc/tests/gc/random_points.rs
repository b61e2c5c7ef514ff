//! Where allocations collect at random: one in a given number, whatever their size and way.

use vellum_gc as gc;

/// On average one allocation in this many collects.
const MEAN: u64 = 100;
const ALLOCATIONS: u64 = 400_000;

#[test]
fn one_allocation_in_so_many_collects() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { eager: MEAN as u32, seed: 12, ..gc::Config::DEFAULT })
            .expect("the heap starts");
        let typed = gc::type_of(48, |_| 5).expect("a small type");
        for index in 0..ALLOCATIONS {
            // Few sizes: each has a block after a collection, and no collection is to be due for
            // another reason.
            let object = match index % 8 {
                0..5 => gc::alloc_typed_inline(typed),
                5 => gc::alloc(64),
                6 => gc::alloc_atomic(100),
                _ => gc::alloc_array(typed, 3),
            };
            assert!(!object.is_null());
        }
        // The count's standard deviation is 63.
        let (collections, expected) = (gc::stats().collections, ALLOCATIONS / MEAN);
        assert!(collections.abs_diff(expected) < expected / 10, "{collections}, not {expected}");
    });
}
