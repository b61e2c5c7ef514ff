//! When free blocks are reported as discardable (section 4.1 of Cooper, Nettles and Subramanian 1992), under
//! every mode: before a major collection the free region's; after it, those that only copies go to.

mod nodes;
mod plan;

use nodes::{NODE, check, list};
use std::sync::atomic::{AtomicU64, Ordering};
use vellum_gc as gc;
use vellum_pages::{Config, Discard, Pages};
use vellum_wire::Counter;

/// Nodes of the live list: 4 MiB.
const NODES: usize = (4 << 20) / NODE;
const TURNS: usize = 6;
/// `VEL_GC_EVENT_MARK_BEGIN`: when all that comes before a collection has been said.
const MARK_BEGIN: i32 = 1;

/// Bytes marked and flushed by the time that the last major collection looked for what lives.
static MARKED: AtomicU64 = AtomicU64::new(0);
static FLUSHED: AtomicU64 = AtomicU64::new(0);

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

#[test]
fn free_blocks_go_at_the_sources_moments() {
    // A rule that measures no times: with another the free region may be as good as empty now and then.
    let sizing = gc::Sizing::Original { mem_limit: 1 << 30, ratio: gc::Sizing::RATIO };
    plan::begin_with(gc::Config { after_major: gc::AfterMajor::Reuse, sizing, ..gc::Config::DEFAULT });
    let layout = nodes::layout();
    gc::on_event(Some(watch));
    for (mode, marks, flushes) in [
        (Discard::None, false, false),
        (Discard::Marks, true, false),
        (Discard::Pager, true, false),
        (Discard::User, true, true),
        (Discard::FlushOnly, false, true),
    ] {
        Pages::global().configure(Config { discard: mode, ..Config::DEFAULT });
        // What the last mode has left is used up.
        assert!(gc::collect() && gc::collect());
        let (mut before, mut after) = ([0; 2], [0; 2]);
        for _ in 0..TURNS {
            let head = list(layout, NODES);
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
        println!("{mode:?}: [marked, flushed] {before:?} before major collections, {after:?} after them");
        assert_eq!([before[0] > 0, after[0] > 0], [marks, marks], "{mode:?}: marked {before:?}, {after:?}");
        assert_eq!(
            [before[1] > 0, after[1] > 0],
            [false, flushes],
            "{mode:?}: flushed {before:?}, {after:?}"
        );
    }
    gc::on_event(None);
}
