//! The random program of `program` on a heap that drifts, where vacated blocks are flushed after each major
//! collection: blocks that are in use again by then must not be.

mod program;

use vellum_gc as gc;
use vellum_pages::{Config, Discard, Pages};
use vellum_wire::Counter;

#[test]
fn what_is_left_behind_goes_and_what_is_used_again_stays() {
    Pages::global().configure(Config { discard: Discard::User, ..Config::DEFAULT });
    let config = gc::Config {
        plan: gc::Plan::Appel,
        restless: true,
        after_major: gc::AfterMajor::Drift,
        paranoid: true,
        ..gc::Config::DEFAULT
    };
    let moved = program::run(config, 12);
    let slot = Pages::global().slot();
    let (marked, flushed) = (slot.get(Counter::BytesDiscarded), slot.get(Counter::FlushedAsked));
    let stats = gc::stats();
    let majors = stats.collections - stats.partial;
    eprintln!("{moved} objects moved, {majors} major collections, {marked} bytes marked, {flushed} flushed");
    assert!(moved > 1000, "only {moved} objects moved");
    // Each leaves what it copied from: more than twice what a heap that were not told of would give back.
    assert!(marked > majors * gc::BLOCK as u64 * BLOCKS_LEFT, "only {marked} bytes marked in {majors}");
    assert!(flushed > marked / 2, "only {flushed} of {marked} bytes flushed");
}

/// Told of by each major collection, at least; some 40 blocks are given back without that.
const BLOCKS_LEFT: u64 = 64;
