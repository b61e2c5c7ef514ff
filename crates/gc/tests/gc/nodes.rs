//! Lists of numbered nodes. Tests check that a list is whole while the memory around it is collected.

use vellum_gc as gc;

/// Bytes of a node.
pub(crate) const NODE: usize = 64;

/// Number, next, something, and the number's complement.
pub(crate) type Node = [usize; NODE / 8];

/// The nodes' type.
pub(crate) fn layout() -> &'static gc::Layout {
    gc::type_of(NODE, |_| 0b10).expect("a type")
}

/// A new node that leads to `next`.
pub(crate) fn push(layout: &'static gc::Layout, next: *mut Node, number: usize) -> *mut Node {
    let node = gc::alloc_typed(layout).cast::<Node>();
    assert!(!node.is_null(), "no memory for node {number}: {:?}", gc::stats());
    // SAFETY: a new object of a node's size.
    unsafe { node.write([number, next.expose_provenance(), 1, 2, 3, 4, 5, !number]) };
    node
}

/// A list of `count` nodes, the last number first.
pub(crate) fn list(layout: &'static gc::Layout, count: usize) -> *mut Node {
    (0..count).fold(std::ptr::null_mut(), |head, number| push(layout, head, number))
}

/// Returns whether the list is whole.
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
