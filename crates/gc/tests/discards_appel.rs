//! What a heap that drifts has left behind is marked or flushed as the mode of discarding says, and never
//! what it uses.

mod nodes;
mod plan;

use nodes::{NODE, check, list};
use vellum_gc as gc;
use vellum_pages::{Config, Discard, Pages};
use vellum_wire::Counter;

/// Nodes of the live list: 8 MiB.
const NODES: usize = (8 << 20) / NODE;
/// Major collections in each mode: enough to come round to what was left behind first.
const MAJORS: usize = 12;

#[test]
fn what_is_left_behind_goes_as_the_mode_says() {
    plan::begin_with(gc::Config { after_major: gc::AfterMajor::Drift, ..gc::Config::DEFAULT });
    let layout = nodes::layout();
    for (mode, marks, flushes) in [
        (Discard::None, false, false),
        (Discard::Marks, true, false),
        (Discard::Pager, true, false),
        (Discard::User, true, true),
        (Discard::FlushOnly, false, true),
    ] {
        Pages::global().configure(Config { discard: mode, ..Config::DEFAULT });
        let slot = Pages::global().slot();
        let counts = || [slot.get(Counter::BytesDiscarded), slot.get(Counter::FlushedAsked)];
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
        assert_eq!(marked > 0, marks, "{mode:?}: {marked} bytes marked");
        assert_eq!(flushed > 0, flushes, "{mode:?}: {flushed} bytes flushed");
    }
}
