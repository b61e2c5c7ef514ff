//! Partial collections: an old object stays without being traced, leads to new ones if it was written to, and
//! goes with the next whole collection when it has died.

use crate::words::{at, read};
use vellum_gc as gc;
use vellum_sys::{Caps, caps};

/// Old objects, of four words each.
const OLD: usize = 100_000;
const WORDS: usize = 4;
/// Partial collections after which a whole one must have come.
const SOON: u64 = 20;

/// Where the table of old objects is, known to the collector by a range of its own.
static mut TABLE: usize = 0;

fn alloc(words: usize) -> usize {
    gc::alloc(words * 8).expose_provenance()
}

/// Allocates what dies at once until `done`.
fn churn(done: impl Fn(&gc::Stats) -> bool) -> gc::Stats {
    loop {
        let stats = gc::stats();
        if done(&stats) {
            return stats;
        }
        (0..1000).for_each(|_| _ = std::hint::black_box(alloc(WORDS)));
    }
}

fn old_objects_lead_to_new_ones_and_go_when_they_have_died(config: gc::Config) {
    gc::init(config).expect("the heap starts");
    if !caps::has(Caps::TRACK) {
        vellum_skip::skip("nobody tells what is written here");
        return;
    }
    let root = &raw mut TABLE;
    // SAFETY: the word is static; only this test writes it.
    unsafe { gc::add_roots(root.cast(), root.add(1).cast()) }.expect("room for a range");
    // SAFETY: the word is static; only this test writes it.
    unsafe { root.write_volatile(alloc(OLD)) };
    // SAFETY: the table has `OLD` words, and stays where it is.
    let place = |index: usize| unsafe { at(root.read_volatile()).add(index) };
    for index in 0..OLD {
        // SAFETY: a word of the table, which is a live object.
        unsafe { place(index).write_volatile(alloc(WORDS)) };
    }
    let begun = gc::stats();
    let old = churn(|stats| stats.collections >= begun.collections + 12);
    // However dear they may seem here, they are tried again before twelve whole ones have been made.
    assert!(old.partial > begun.partial, "{old:?}");
    assert!(old.live_bytes as usize >= OLD * WORDS * 8, "{old:?}");

    // Each turn, new objects are hidden behind a few old ones, and must live through partial collections.
    for turn in 0..30 {
        for index in (turn..OLD).step_by(OLD / 50) {
            let new = at(alloc(WORDS));
            // SAFETY: a new object, and one that the table keeps.
            unsafe {
                new.add(1).write_volatile(turn * OLD + index);
                at(place(index).read_volatile()).add(2).write_volatile(new.expose_provenance());
            }
        }
        let now = gc::stats();
        churn(|stats| stats.collections > now.collections);
        for index in (turn..OLD).step_by(OLD / 50) {
            let hidden = read(at(read(place(index))).wrapping_add(2));
            assert_eq!(read(at(hidden).wrapping_add(1)), turn * OLD + index, "turn {turn}");
        }
    }

    // Nine in ten die.
    for index in (0..OLD).filter(|index| index % 10 != 0) {
        // SAFETY: a word of the table.
        unsafe { place(index).write_volatile(0) };
    }
    let dead = gc::stats();
    let end =
        churn(|stats| stats.live_bytes < old.live_bytes / 2 || stats.collections > dead.collections + SOON);
    assert!(end.live_bytes < old.live_bytes / 2, "what died stays: {dead:?} {end:?}");
    gc::validate().expect("the heap's invariants hold");
}

#[test]
fn in_slices() {
    let config = gc::Config { slice_ns: 1, ..gc::Config::DEFAULT };
    vellum_skip::alone(|| old_objects_lead_to_new_ones_and_go_when_they_have_died(config));
}

#[test]
fn at_one_go() {
    // They are tried at any size where collections are made at random; that is next to never here.
    let config = gc::Config { sticky_marks: true, eager: u32::MAX, ..gc::Config::DEFAULT };
    vellum_skip::alone(|| old_objects_lead_to_new_ones_and_go_when_they_have_died(config));
}
