//! What a heap that drifts has left behind is marked or flushed as the mode of discarding says, and never what it uses.

mod plan;

use vellum_gc as gc;
use vellum_pages::{Config, Discard, Pages};
use vellum_wire::Counter;

const NODE: usize = 64;
/// A list of so many nodes lives: 8 MiB.
const NODES: usize = (8 << 20) / NODE;
/// Major collections in each mode: enough to come round to what was left behind first.
const MAJORS: usize = 12;

type Node = [usize; NODE / 8];

fn fill(layout: &'static gc::Layout) -> *mut Node {
    let mut head = std::ptr::null_mut::<Node>();
    for number in 0..NODES {
        let node = gc::alloc_typed(layout).cast::<Node>();
        assert!(!node.is_null(), "no memory for node {number}");
        // SAFETY: a new object of so many words.
        unsafe { node.write([number, head.expose_provenance(), 1, 2, 3, 4, 5, !number]) };
        head = node;
    }
    head
}

fn check(head: *mut Node, mode: Discard) {
    let (mut at, mut count) = (head, 0);
    // SAFETY: null, or a node that the list holds.
    while let Some(node) = unsafe { at.as_ref() } {
        count += 1;
        let number = NODES - count;
        assert_eq!((node[0], node[7]), (number, !number), "{mode:?}");
        at = std::ptr::with_exposed_provenance_mut(node[1]);
    }
    assert_eq!(count, NODES, "{mode:?}");
}

#[test]
fn what_is_left_behind_goes_as_the_mode_says() {
    plan::begin_with(gc::Config { after_major: gc::AfterMajor::Drift, ..gc::Config::DEFAULT });
    let layout = gc::type_of(NODE, |_| 0b10).expect("a type");
    for (mode, marks, flushes) in [
        (Discard::None, false, false),
        (Discard::Marks, true, false),
        (Discard::Pager, true, false),
        (Discard::User, true, true),
        (Discard::FlushOnly, false, true),
    ] {
        Pages::global().configure(Config { discard: mode, ..Config::DEFAULT });
        let slot = Pages::global().slot();
        let counts = || [slot.get(Counter::BytesDiscarded), slot.get(Counter::FlushedAsked)];
        let before = counts();
        let mut head = fill(layout);
        for _ in 0..MAJORS {
            assert!(gc::collect());
            check(head, mode);
            head = fill(layout);
        }
        check(head, mode);
        let after = counts();
        let [marked, flushed] = [after[0] - before[0], after[1] - before[1]];
        println!("{mode:?}: {marked} bytes marked, {flushed} flushed");
        assert_eq!(marked > 0, marks, "{mode:?}: {marked} bytes marked");
        assert_eq!(flushed > 0, flushes, "{mode:?}: {flushed} bytes flushed");
    }
}
