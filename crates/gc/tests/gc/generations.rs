//! Tests of generations, by copying or by marks that stay. Collections of new objects scan only changed old
//! objects, and keep the new objects that those refer to. The next whole collection frees dead old ones.

use crate::words::{at, read, write};
use gc::{Config, Plan};
use vellum_gc as gc;
use vellum_sys::{Caps, caps};

/// Old objects, of four words each: number, next, and two pointers besides.
const OLD: usize = 50_000;
const WORDS: usize = 4;
/// Collections of new objects after which a whole one must have come, by copying and by marks that stay.
const SOON: u64 = 400;
const SOON_BY_MARKS: u64 = 20;

/// The address of the table of old objects; a root by a range.
static mut TABLE: usize = 0;

const APPEL: Config = Config { plan: Plan::Appel, tells_writes: true, paranoid: true, ..Config::DEFAULT };

rows! {
    appel => old_objects_lead_to_new_ones_and_go_when_they_have_died(APPEL);
    in_slices => {
        old_objects_lead_to_new_ones_and_go_when_they_have_died(Config { slice_ns: 1, ..Config::DEFAULT });
    };
    /// With random collections (next to none here) collections of new objects are tried at any heap size.
    at_one_go => old_objects_lead_to_new_ones_and_go_when_they_have_died(Config {
        sticky_marks: true,
        eager: u32::MAX,
        ..Config::DEFAULT
    });
    major_collections_come => major_collections_come_by_themselves();
    pinned => what_is_pinned_is_found_again_by_however_many_old_ones_lead_there();
}

fn begin(config: Config) -> &'static gc::Layout {
    gc::init(config).expect("the heap starts");
    gc::type_of(WORDS * 8, |_| 0b1110).expect("a small type")
}

/// A new object: of the type where objects move, else an untyped one.
fn make(config: &Config, layout: &'static gc::Layout) -> usize {
    let object = if config.plan == Plan::Appel { gc::alloc_typed(layout) } else { gc::alloc(WORDS * 8) };
    object.expose_provenance()
}

/// Calls `make` until `done`.
fn churn(make: impl Fn() -> usize, done: impl Fn(&gc::Stats) -> bool) -> gc::Stats {
    loop {
        let stats = gc::stats();
        if done(&stats) {
            return stats;
        }
        (0..1000).for_each(|_| _ = std::hint::black_box(make()));
    }
}

/// The table's place for old object `index`, wherever the table is now.
fn place(index: usize) -> *mut usize {
    let table = &raw const TABLE;
    // SAFETY: the word is static, and leads to the table, which has a place for every old object.
    unsafe { at(table.read_volatile()).add(index) }
}

fn old_objects_lead_to_new_ones_and_go_when_they_have_died(config: Config) {
    let layout = begin(config);
    let moves = config.plan == Plan::Appel;
    if !moves && !caps::has(Caps::TRACK) {
        return vellum_skip::skip("nobody tells what is written here");
    }
    let new = || make(&config, layout);
    let pointers = gc::type_of(8, |_| 1).expect("a small type");
    let root = &raw mut TABLE;
    let range = (root.cast_const().cast(), root.wrapping_add(1).cast_const().cast());
    // SAFETY: the word is static; only this test writes it, a table's address.
    unsafe {
        gc::exclude_roots(range.0, range.1).expect("room for a range");
        let added =
            if moves { gc::add_precise_roots(range.0, range.1) } else { gc::add_roots(range.0, range.1) };
        added.expect("room for a range");
        let table = if moves { gc::alloc_array(pointers, OLD) } else { gc::alloc(OLD * 8) };
        root.write_volatile(table.expose_provenance());
    }
    for index in 0..OLD {
        let object = new();
        write(place(index), object);
        write(at(object), index);
    }
    assert!(gc::collect());
    let begun = gc::stats();
    // However dear they may seem, they are tried again before twelve whole ones have been made.
    let tried = churn(new, |stats| stats.collections >= begun.collections + 12);
    assert!(tried.partial > begun.partial, "{tried:?}");
    // Each turn, new objects are hidden behind a few old ones, and must live through the next collections.
    for turn in 0..20 {
        for index in (turn..OLD).step_by(OLD / 50) {
            let hidden = new();
            write(at(hidden), turn * OLD + index);
            write(at(read(place(index))).wrapping_add(2), hidden);
        }
        let now = gc::stats();
        churn(new, |stats| stats.collections > now.collections + 1);
        for index in (turn..OLD).step_by(OLD / 50) {
            let hidden = read(at(read(place(index))).wrapping_add(2));
            assert_eq!(read(at(hidden)), turn * OLD + index, "turn {turn}");
        }
    }
    (0..OLD).for_each(|index| assert_eq!(read(at(read(place(index)))), index));
    let old = gc::stats();
    assert!(old.live_bytes as usize >= OLD * WORDS * 8, "{old:?}");
    if moves {
        assert!(old.partial - begun.partial > 20, "minor collections: {begun:?} {old:?}");
        // Of what is old, little was looked at.
        assert!(old.marked_objects_last < OLD as u64 / 10, "{old:?}");
    }

    // Nine in ten die: a collection of new objects does not see it, a whole one does.
    (0..OLD).filter(|index| index % 10 != 0).for_each(|index| write(place(index), 0));
    let dead = gc::stats();
    let soon = if moves { SOON } else { SOON_BY_MARKS };
    let is_over = |stats: &gc::Stats| stats.collections > dead.collections + soon;
    if moves {
        let end = churn(new, |stats| stats.partial > dead.partial || is_over(stats));
        assert!(end.live_bytes > old.live_bytes / 2, "{dead:?} {end:?}");
        assert!(gc::collect());
    }
    let end = churn(new, |stats| stats.live_bytes < old.live_bytes / 2 || moves || is_over(stats));
    assert!(end.live_bytes < old.live_bytes / 2, "what died stays: {dead:?} {end:?}");
    (0..OLD).step_by(10).for_each(|index| assert_eq!(read(at(read(place(index)))), index));
    gc::validate().expect("the heap's invariants hold");
    assert_eq!(gc::remove_roots(range.0, range.1), 1);
}

/// A heap that grows by surviving objects has major collections without a request, and few.
fn major_collections_come_by_themselves() {
    let layout = begin(APPEL);
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
}

/// Old objects lead to a new object that an ambiguous root pins: more of them than a minor collection can
/// record, and fewer.
fn what_is_pinned_is_found_again_by_however_many_old_ones_lead_there() {
    let layout = begin(APPEL);
    let pointers = gc::type_of(8, |_| 1).expect("a small type");
    let mut roots = [0usize; 1];
    let frame = gc::Frame::new();
    // SAFETY: the frame and its word are unlinked before they go.
    unsafe { frame.push(roots.as_mut_ptr(), roots.len()) };
    let root = roots.as_mut_ptr();
    for holders in [100, 10_000] {
        write(root, gc::alloc_array(pointers, holders).expose_provenance());
        let holder = |index: usize| at(read(root)).wrapping_add(index);
        assert!(gc::collect());
        let mut pinned = Box::new(0usize);
        let range = (&raw mut *pinned).cast::<u8>();
        // SAFETY: the box is there until the range is removed.
        unsafe { gc::add_roots(range, range.wrapping_add(8)) }.expect("room for a range");
        let new = gc::alloc_typed(layout).expose_provenance();
        write(at(new), holders);
        write(&raw mut *pinned, new);
        (0..holders).for_each(|index| write(holder(index), new));
        let now = gc::stats();
        churn(|| make(&APPEL, layout), |stats| stats.partial > now.partial);
        assert!((0..holders).all(|index| read(holder(index)) == new), "it is where the range says");
        // Now only the old ones hold it, and it may move.
        assert_eq!(gc::remove_roots(range, range.wrapping_add(8)), 1);
        for _ in 0..3 {
            let now = gc::stats();
            churn(|| make(&APPEL, layout), |stats| stats.collections > now.collections);
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
}
