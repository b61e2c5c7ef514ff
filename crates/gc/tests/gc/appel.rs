//! Generations: an old object that was written to leads to new ones; others are not scanned by minor
//! collections; dead old ones go with the next major collection.

use crate::words::{at, read, write};
use vellum_gc as gc;

/// Old objects, of four words each: number, next, and two pointers besides.
const OLD: usize = 50_000;
const WORDS: usize = 4;
/// Minor collections after which a major one must have come.
const SOON: u64 = 400;

/// Where the table of old objects is, known to the collector by a precise range.
static mut TABLE: usize = 0;

fn begin() -> &'static gc::Layout {
    let config =
        gc::Config { plan: gc::Plan::Appel, tells_writes: true, paranoid: true, ..gc::Config::DEFAULT };
    gc::init(config).expect("the heap starts");
    gc::type_of(WORDS * 8, |_| 0b1110).expect("a small type")
}

/// Allocates what dies at once until `done`.
fn churn(layout: &'static gc::Layout, done: impl Fn(&gc::Stats) -> bool) -> gc::Stats {
    loop {
        let stats = gc::stats();
        if done(&stats) {
            return stats;
        }
        (0..1000).for_each(|_| _ = std::hint::black_box(gc::alloc_typed(layout)));
    }
}

/// The table's place for old object `index`, wherever the table is now.
fn place(index: usize) -> *mut usize {
    let table = &raw const TABLE;
    // SAFETY: the word is static, and leads to the table, which has a place for every old object.
    unsafe { at(table.read_volatile()).add(index) }
}

#[test]
fn old_objects_lead_to_new_ones_and_go_when_they_have_died() {
    vellum_skip::alone(|| {
        let layout = begin();
        let pointers = gc::type_of(8, |_| 1).expect("a small type");
        let root = &raw mut TABLE;
        // SAFETY: the word is static; only this test writes it.
        unsafe {
            gc::exclude_roots(root.cast(), root.add(1).cast()).expect("room for a range");
            gc::add_precise_roots(root.cast(), root.add(1).cast()).expect("room for a range");
            root.write_volatile(gc::alloc_array(pointers, OLD).expose_provenance());
        }
        for index in 0..OLD {
            let new = gc::alloc_typed(layout).expose_provenance();
            write(place(index), new);
            write(at(new), index);
        }
        assert!(gc::collect());
        let begun = gc::stats();
        // Each turn, new objects are hidden behind a few old ones, and must live through minor collections.
        for turn in 0..20 {
            for index in (turn..OLD).step_by(OLD / 50) {
                let new = gc::alloc_typed(layout).expose_provenance();
                write(at(new), turn * OLD + index);
                write(at(read(place(index))).wrapping_add(2), new);
            }
            let now = gc::stats();
            churn(layout, |stats| stats.collections > now.collections + 1);
            for index in (turn..OLD).step_by(OLD / 50) {
                let hidden = read(at(read(place(index))).wrapping_add(2));
                assert_eq!(read(at(hidden)), turn * OLD + index, "turn {turn}");
            }
        }
        for index in 0..OLD {
            assert_eq!(read(at(read(place(index)))), index);
        }
        let old = gc::stats();
        assert!(old.partial - begun.partial > 20, "minor collections: {begun:?} {old:?}");
        // Of what is old, little was looked at.
        assert!(old.marked_objects_last < OLD as u64 / 10, "{old:?}");

        // Nine in ten die: a minor collection does not see it, a major one does.
        for index in (0..OLD).filter(|index| index % 10 != 0) {
            write(place(index), 0);
        }
        let dead = gc::stats();
        let end = churn(layout, |stats| {
            stats.partial > dead.partial || stats.collections > dead.collections + SOON
        });
        assert!(end.live_bytes > old.live_bytes / 2, "{dead:?} {end:?}");
        assert!(gc::collect());
        let end = gc::stats();
        assert!(end.live_bytes < old.live_bytes / 2, "what died stays: {dead:?} {end:?}");
        for index in (0..OLD).step_by(10) {
            assert_eq!(read(at(read(place(index)))), index);
        }
        gc::validate().expect("the heap's invariants hold");
        assert_eq!(gc::remove_roots(root.cast(), root.wrapping_add(1).cast()), 1);
    });
}

/// A heap that grows by what lives on has major collections without being asked for them, and few.
#[test]
fn major_collections_come_by_themselves() {
    vellum_skip::alone(|| {
        let layout = begin();
        let before = gc::stats();
        let mut head = 0;
        let frame = gc::Frame::new();
        // SAFETY: the frame and the word are unlinked before they go.
        unsafe { frame.push(&raw mut head, 1) };
        let (mut made, mut kept) = (0, 0);
        loop {
            let stats = gc::stats();
            let major = (stats.collections - before.collections) - (stats.partial - before.partial);
            if major >= 3 {
                assert!(stats.partial - before.partial > major, "{before:?} {stats:?}");
                break;
            }
            assert!(stats.collections - before.collections < SOON, "{before:?} {stats:?}");
            for _ in 0..1000 {
                let new = gc::alloc_typed(layout).expose_provenance();
                made += 1;
                if made % 20 == 0 {
                    write(at(new), kept);
                    write(at(new).wrapping_add(1), head);
                    head = new;
                    kept += 1;
                }
            }
        }
        let mut at_head = head;
        for number in (0..kept).rev() {
            assert_eq!(read(at(at_head)), number);
            at_head = read(at(at_head).wrapping_add(1));
        }
        assert_eq!(at_head, 0);
        // SAFETY: linked above.
        unsafe { frame.pop() };
        gc::validate().expect("the heap's invariants hold");
    });
}

/// More old objects lead to a new one that something ambiguous pins than a minor collection remembers; and
/// fewer.
#[test]
fn what_is_pinned_is_found_again_by_however_many_old_ones_lead_there() {
    vellum_skip::alone(|| {
        let layout = begin();
        let pointers = gc::type_of(8, |_| 1).expect("a small type");
        let mut roots = [0usize; 1];
        let frame = gc::Frame::new();
        // SAFETY: the frame and its word are unlinked before they go.
        unsafe { frame.push(roots.as_mut_ptr(), roots.len()) };
        let root = roots.as_mut_ptr();
        for holders in [100, 10_000] {
            // SAFETY: the frame's word.
            unsafe { root.write_volatile(gc::alloc_array(pointers, holders).expose_provenance()) };
            // SAFETY: the frame's word, which holds the array's address.
            let holder = |index: usize| unsafe { at(root.read_volatile()).wrapping_add(index) };
            assert!(gc::collect());
            let mut pinned = Box::new(0usize);
            let range = (&raw mut *pinned).cast::<u8>();
            // SAFETY: the box is there until the range is removed.
            unsafe { gc::add_roots(range, range.wrapping_add(8)) }.expect("room for a range");
            let new = gc::alloc_typed(layout).expose_provenance();
            write(at(new), holders);
            // SAFETY: the box's word, which the collector reads.
            unsafe { (&raw mut *pinned).write_volatile(new) };
            (0..holders).for_each(|index| write(holder(index), new));
            let now = gc::stats();
            churn(layout, |stats| stats.partial > now.partial);
            assert!((0..holders).all(|index| read(holder(index)) == new), "it is where the range says");
            // Now only the old ones hold it, and it may move.
            assert_eq!(gc::remove_roots(range, range.wrapping_add(8)), 1);
            for _ in 0..3 {
                let now = gc::stats();
                churn(layout, |stats| stats.collections > now.collections);
                let there = read(holder(0));
                assert_eq!(read(at(there)), holders);
                assert!((0..holders).all(|index| read(holder(index)) == there), "{holders} ways");
            }
            assert!(gc::collect());
            let there = read(holder(holders - 1));
            assert_eq!((read(at(there)), read(holder(0))), (holders, there));
        }
        // SAFETY: linked above.
        unsafe { frame.pop() };
        gc::validate().expect("the heap's invariants hold");
    });
}
