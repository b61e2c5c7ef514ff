//! Words that were there before the object that they seem to lead to: what a program has left where it wrote
//! nothing since. Slices find it nowhere, and need not; the heap's own checks must know.

use std::hint::black_box;
use vellum_gc as gc;

/// So few that no slice falls due while they are allocated.
const OBJECTS: usize = 64;
/// Words of such an object: a class that nothing else here asks for.
const WORDS: usize = 22;

/// The object that holds the leftover words, known to the collector by a range of its own.
static mut HOLDER: usize = 0;

fn alloc(words: usize) -> usize {
    gc::alloc(words * 8).expose_provenance()
}

/// Where objects were that have died; what of them was found on the stack is left out. Turned around, so that
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
        // SAFETY: the word is static; only this test writes it.
        unsafe { root.write_volatile(alloc(OBJECTS)) };
        let hidden = dead();
        assert!(hidden.len() > OBJECTS / 2, "{} of {OBJECTS} objects have died", hidden.len());
        for (index, turned) in hidden.iter().enumerate() {
            // SAFETY: the holder has a word for each hidden object, and is kept.
            unsafe {
                std::ptr::with_exposed_provenance_mut::<usize>(root.read_volatile())
                    .add(index)
                    .write_volatile(!turned);
            }
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
