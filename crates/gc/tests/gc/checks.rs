//! Tests of the collector's self-checks: collections at random points, leftover words that look like
//! pointers to new objects, and a callback that allocates although it must not.

use crate::words::{at, read, write};
use std::hint::black_box;
use std::os::unix::process::ExitStatusExt;
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
            // Few sizes: each has a block after a collection, so that no collection is due for another
            // reason.
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

/// Words that were there before the object that they seem to lead to: what a program has left where it wrote
/// nothing since. Slices do not find such words, and need not; the heap's own checks must accept them.
///
/// So few that no slice falls due while they are allocated.
const OBJECTS: usize = 64;
/// Words of such an object: a class that is not used otherwise.
const WORDS: usize = 22;

/// The object that holds the leftover words; a root by a range.
static mut HOLDER: usize = 0;

fn alloc(words: usize) -> usize {
    gc::alloc(words * 8).expose_provenance()
}

/// The addresses of dead objects, except for objects that the stack kept alive. Turned around, so that
/// nothing leads there.
#[inline(never)]
fn dead() -> Vec<usize> {
    let mut hidden: Vec<usize> = (0..OBJECTS).map(|_| !alloc(WORDS)).collect();
    black_box([0usize; 256]);
    gc::collect();
    hidden.retain(|&turned| gc::base(std::ptr::with_exposed_provenance(!turned)).is_null());
    hidden
}

#[test]
fn what_was_left_over_leads_to_nothing_new() {
    vellum_skip::alone(|| {
        gc::init(gc::Config { slice_ns: 1, paranoid: true, ..gc::Config::DEFAULT }).expect("the heap starts");
        if !gc::can_slice() {
            vellum_skip::skip("nobody tells what is written here");
            return;
        }
        let root = &raw mut HOLDER;
        // SAFETY: the word is static; only this test writes it.
        unsafe { gc::add_roots(root.cast(), root.add(1).cast()) }.expect("room for a range");
        write(root, alloc(OBJECTS));
        let hidden = dead();
        assert!(hidden.len() > OBJECTS / 2, "{} of {OBJECTS} objects have died", hidden.len());
        for (index, turned) in hidden.iter().enumerate() {
            write(at(read(root)).wrapping_add(index), !turned);
        }
        // All but the last stop: the holder has been scanned, and later writes are tracked.
        let begun = gc::stats();
        assert!(gc::step(1 << 20), "the collection is not at its end yet");
        let mut again = 0;
        for _ in 0..OBJECTS {
            again += usize::from(hidden.contains(&!alloc(WORDS)));
        }
        assert!(again > hidden.len() / 2, "{again} objects came to lie where a dead one was");
        while gc::step(1 << 20) {}
        assert_eq!(gc::stats().collections, begun.collections + 1);
    });
}

unsafe extern "C" fn allocates(_visitor: *const gc::Visitor) {
    // Beyond what the thread still has in hand.
    (0..10_000).for_each(|_| _ = std::hint::black_box(gc::alloc(64)));
}

#[test]
fn a_procedure_for_roots_that_allocates_ends_the_process_with_a_word() {
    if vellum_skip::role().is_some() {
        gc::init(gc::Config::DEFAULT).expect("the heap starts");
        gc::on_roots(Some(allocates));
        gc::collect();
        return;
    }
    let mut child =
        vellum_skip::again(a_procedure_for_roots_that_allocates_ends_the_process_with_a_word, "allocates");
    let child = child.output().expect("a child");
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.signal(), Some(libc::SIGABRT), "{said}");
    assert!(said.contains("a mark procedure, a hook or a signal handler"), "{said}");
}
