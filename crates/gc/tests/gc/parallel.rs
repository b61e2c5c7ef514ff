//! Tests of marking by several threads: of large, wide, deep and long structures, while other threads hold
//! objects, and in forked children.

use crate::heap::forked;
use crate::words::{at, free, read, write};
use std::collections::HashSet;
use vellum_gc as gc;

/// Nodes of the tree: each has two children, a number and nothing.
const DEPTH: usize = 20;
/// Collections after which a helper must have found something to do on more than one processor.
const TRIES: usize = 400;

fn new() -> *mut [usize; 4] {
    let object = gc::alloc(32).cast::<[usize; 4]>();
    assert!(!object.is_null());
    object
}

fn tree(depth: usize, number: usize) -> usize {
    let node = new();
    let children =
        if depth == 0 { [0, 0] } else { [tree(depth - 1, number * 2), tree(depth - 1, number * 2 + 1)] };
    // SAFETY: a new object of four words; the children are on the stack until here.
    unsafe { node.write([children[0], children[1], number, 0]) };
    node.expose_provenance()
}

fn check_tree(node: usize, depth: usize, number: usize) -> usize {
    // SAFETY: the tree keeps its nodes.
    let [left, right, found, _] = unsafe { std::ptr::with_exposed_provenance::<[usize; 4]>(node).read() };
    assert_eq!(found, number, "at depth {depth}");
    if depth == 0 {
        1
    } else {
        1 + check_tree(left, depth - 1, number * 2) + check_tree(right, depth - 1, number * 2 + 1)
    }
}

#[test]
fn several_threads_mark_what_one_would() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { markers: 3, percent: 400, ..gc::Config::DEFAULT }).expect("the heap starts");
        let root = tree(DEPTH, 1);
        // One object that leads to very many, and a list that nobody can share.
        let wide = gc::alloc(100_000 * 8).cast::<usize>();
        let mut list = 0;
        for index in 0..100_000 {
            let (leaf, cell) = (new(), new());
            // SAFETY: new objects; the table has a word for each leaf.
            unsafe {
                leaf.write([0, 0, index, 0]);
                wide.add(index).write(leaf.expose_provenance());
                cell.write([list, 0, index, 0]);
            }
            list = cell.expose_provenance();
        }
        assert!(gc::collect());
        let before = gc::stats();
        for _ in 0..TRIES {
            assert!(gc::collect());
            if gc::stats().helped_objects > before.helped_objects {
                break;
            }
        }
        let stats = gc::stats();
        if std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
            assert_eq!(stats.parallel, 0, "nobody helps on one processor: {stats:?}");
        } else {
            assert!(stats.parallel > before.parallel && stats.helped_objects > 0, "{stats:?}");
        }
        check(root, wide, list);
        gc::validate().expect("the heap's invariants hold");

        // Threads that hold objects on their stacks alone, and a child that makes helpers of its own.
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                std::thread::spawn(move || {
                    for _ in 0..3 {
                        let root = tree(14, thread + 1);
                        assert_eq!(check_tree(root, 14, thread + 1), (2 << 14) - 1);
                    }
                })
            })
            .collect();
        (0..5).for_each(|_| assert!(gc::collect()));
        threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        let status = forked(|| {
            (0..3).for_each(|_| assert!(gc::collect()));
            check(root, wide, list);
        });
        assert_eq!(status, 0);
        check(root, wide, list);
    });
}

fn check(root: usize, wide: *mut usize, list: usize) {
    assert_eq!(check_tree(root, DEPTH, 1), (2 << DEPTH) - 1);
    let mut seen = HashSet::new();
    let mut cell = list;
    for index in (0..100_000).rev() {
        assert_eq!(read(at(read(wide.wrapping_add(index))).wrapping_add(2)), index);
        assert_eq!(read(at(cell).wrapping_add(2)), index);
        assert!(seen.insert(cell));
        cell = read(at(cell));
    }
}

/// Objects that one object leads to.
const LED_TO: usize = 4000;

/// Several threads mark a block that lies where a large object was freed: the collector's records of that
/// object must not take the marks of the block's first objects.
#[test]
fn what_lies_where_a_large_object_was_freed_stays() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { markers: 2, paranoid: true, ..gc::Config::DEFAULT }).expect("the heap starts");
        for _ in 0..50 {
            // Nothing is collected until all of it is there: freed objects are remembered until then.
            gc::hold(true);
            let large: Vec<_> = (0..20).map(|_| gc::alloc_atomic(gc::BLOCK)).collect();
            for object in large {
                free(object);
            }
            // Blocks for these are taken where the large objects were.
            let table = gc::alloc(LED_TO * 8).cast::<usize>();
            for index in 0..LED_TO {
                let object = gc::alloc(64).cast::<usize>();
                write(object, index);
                write(table.wrapping_add(index), object.expose_provenance());
            }
            gc::hold(false);
            assert!(gc::collect());
            for index in 0..LED_TO {
                assert_eq!(read(at(read(table.wrapping_add(index)))), index);
            }
        }
    });
}
