//! Lists of numbered nodes that one pointer keeps, for tests of what becomes of the memory around them.

use vellum_gc as gc;

/// Bytes of a node.
pub(crate) const NODE: usize = 64;

/// Number, next, something, and the number's complement.
pub(crate) type Node = [usize; NODE / 8];

/// The nodes' type.
pub(crate) fn layout() -> &'static gc::Layout {
    gc::type_of(NODE, |_| 0b10).expect("a type")
}

/// A list of `count` nodes, the last number first.
pub(crate) fn list(layout: &'static gc::Layout, count: usize) -> *mut Node {
    let mut head = std::ptr::null_mut::<Node>();
    for number in 0..count {
        let node = gc::alloc_typed(layout).cast::<Node>();
        assert!(!node.is_null(), "no memory for node {number}");
        // SAFETY: a new object of a node's size.
        unsafe { node.write([number, head.expose_provenance(), 1, 2, 3, 4, 5, !number]) };
        head = node;
    }
    head
}

/// Whether the list is whole.
pub(crate) fn check(head: *mut Node, count: usize, what: &dyn std::fmt::Debug) {
    let (mut at, mut met) = (head, 0);
    // SAFETY: null, or a node that the list holds.
    while let Some(node) = unsafe { at.as_ref() } {
        met += 1;
        let number = count - met;
        assert_eq!((node[0], node[7]), (number, !number), "{what:?}");
        at = std::ptr::with_exposed_provenance_mut(node[1]);
    }
    assert_eq!(met, count, "{what:?}");
}
