//! Tests which blocks of a heap with generations are marked as discardable or flushed, and when (section 4.1
//! of Cooper, Nettles and Subramanian 1992).

use crate::heap::{begin_with, wipe};
use crate::nodes::{NODE, check, layout, list};
use crate::program;
use std::sync::atomic::{AtomicU64, Ordering};
use vellum_gc as gc;
use vellum_pages::{Config, Discard, Pages};
use vellum_wire::Counter;

/// Modes, and whether blocks are marked and flushed in each.
const MODES: [(Discard, bool, bool); 5] = [
    (Discard::None, false, false),
    (Discard::Marks, true, false),
    (Discard::Pager, true, false),
    (Discard::User, true, true),
    (Discard::FlushOnly, false, true),
];
/// `VEL_GC_EVENT_MARK_BEGIN`: after all reports that precede a collection.
const MARK_BEGIN: i32 = 1;

/// Bytes marked and flushed by the time that the last major collection looked for what lives.
static MARKED: AtomicU64 = AtomicU64::new(0);
static FLUSHED: AtomicU64 = AtomicU64::new(0);

/// Bytes marked and flushed.
fn counts() -> [u64; 2] {
    let slot = Pages::global().slot();
    [slot.get(Counter::BytesDiscarded), slot.get(Counter::FlushedAsked)]
}

unsafe extern "C" fn watch(event: i32, _value: usize) {
    if event == MARK_BEGIN {
        let [marked, flushed] = counts();
        MARKED.store(marked, Ordering::Relaxed);
        FLUSHED.store(flushed, Ordering::Relaxed);
    }
}

/// Before a major collection the free region's blocks are reported; after it, the blocks for copies.
#[test]
fn free_blocks_go_at_the_sources_moments() {
    vellum_skip::alone(|| {
        const NODES: usize = (4 << 20) / NODE;
        const TURNS: usize = 3;
        /// How many there are at most until all that a mode does has been seen: the heap's rules measure
        /// times, and a turn may leave nothing to report.
        const TURNS_MAX: usize = 30;
        // A rule that measures no times: with another the free region may be as good as empty now and then.
        let sizing = gc::Sizing::Original { mem_limit: 1 << 30, ratio: gc::Sizing::RATIO };
        let after_major = gc::AfterMajor::Reuse;
        begin_with(gc::Plan::Appel, gc::Config { after_major, sizing, ..gc::Config::DEFAULT });
        let layout = layout();
        gc::on_event(Some(watch));
        for (mode, marks, flushes) in MODES {
            Pages::global().configure(Config { discard: mode, ..Config::DEFAULT });
            // What the last mode has left is used up.
            assert!(gc::collect() && gc::collect());
            let (mut before, mut after) = ([0; 2], [0; 2]);
            let is_seen = |before: [u64; 2], after: [u64; 2]| {
                [before[0] > 0, after[0] > 0, after[1] > 0] == [marks, marks, flushes]
            };
            let mut turns = 0;
            while turns < TURNS || (turns < TURNS_MAX && !is_seen(before, after)) {
                turns += 1;
                let head = list(layout, NODES);
                // A word left on the stack would keep a whole list, and no region would be free.
                wipe();
                // From here on there is a free region.
                assert!(gc::collect());
                let begun = counts();
                assert!(gc::collect());
                let ended = counts();
                let amid = [MARKED.load(Ordering::Relaxed), FLUSHED.load(Ordering::Relaxed)];
                for of in 0..2 {
                    before[of] += amid[of] - begun[of];
                    after[of] += ended[of] - amid[of];
                }
                // The live list, and one made next in blocks that were discardable.
                check(head, NODES, &mode);
                check(list(layout, NODES), NODES, &mode);
                check(head, NODES, &mode);
            }
            println!(
                "{mode:?}: [marked, flushed] {before:?} before major collections, {after:?} after them, {turns} turns"
            );
            assert!(is_seen(before, after) && before[1] == 0, "{mode:?}: {before:?}, {after:?}");
        }
        gc::on_event(None);
    });
}

/// Blocks that a heap has left behind by drifting are marked or flushed by the mode; blocks in use are not.
#[test]
fn blocks_left_behind_go_as_the_mode_says() {
    vellum_skip::alone(|| {
        const NODES: usize = (4 << 20) / NODE;
        /// Major collections in each mode: enough to reach the first blocks left behind again.
        const MAJORS: usize = 12;
        begin_with(gc::Plan::Appel, gc::Config { after_major: gc::AfterMajor::Drift, ..gc::Config::DEFAULT });
        let layout = layout();
        for (mode, marks, flushes) in MODES {
            Pages::global().configure(Config { discard: mode, ..Config::DEFAULT });
            let before = counts();
            let mut head = list(layout, NODES);
            for _ in 0..MAJORS {
                assert!(gc::collect());
                check(head, NODES, &mode);
                head = list(layout, NODES);
            }
            check(head, NODES, &mode);
            let after = counts();
            let [marked, flushed] = [after[0] - before[0], after[1] - before[1]];
            println!("{mode:?}: {marked} bytes marked, {flushed} flushed");
            assert_eq!([marked > 0, flushed > 0], [marks, flushes], "{mode:?}: {marked}, {flushed} bytes");
        }
    });
}

/// Blocks that a drifting heap uses again by the time that vacated blocks are flushed are not flushed.
#[test]
fn blocks_used_again_stay() {
    vellum_skip::alone(|| {
        /// Given back by each major collection, at least; about 40 blocks go without a report.
        const BLOCKS_LEFT: u64 = 64;
        Pages::global().configure(Config { discard: Discard::User, ..Config::DEFAULT });
        let config = gc::Config {
            plan: gc::Plan::Appel,
            restless: true,
            after_major: gc::AfterMajor::Drift,
            paranoid: true,
            ..gc::Config::DEFAULT
        };
        let moved = program::run(config, 12);
        let [marked, flushed] = counts();
        let stats = gc::stats();
        let majors = stats.collections - stats.partial;
        eprintln!(
            "{moved} objects moved, {majors} major collections, {marked} bytes marked, {flushed} flushed"
        );
        assert!(moved > 1000, "only {moved} objects moved");
        assert!(marked > majors * gc::BLOCK as u64 * BLOCKS_LEFT, "only {marked} bytes marked in {majors}");
        assert!(flushed > marked / 2, "only {flushed} of {marked} bytes flushed");
    });
}
