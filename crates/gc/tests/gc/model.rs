//! Runs the random program (`program`) with every plan and every way to collect: one test for each heap.

use crate::heap::FEW;
use crate::program;
use gc::{AfterMajor, Config, Plan, Stats};
use vellum_gc as gc;
use vellum_sys::{Caps, caps};

const MARK_SWEEP: Config = Config::DEFAULT;
const COPYING: Config = Config { plan: Plan::MostlyCopying, restless: true, ..Config::DEFAULT };
const APPEL: Config = Config { plan: Plan::Appel, restless: true, ..Config::DEFAULT };
/// With every invariant checked in every phase, and the dead overwritten.
const fn strict(config: Config) -> Config {
    Config { paranoid: true, poison: true, ..config }
}
/// Collections in slices as short as can be.
const SLICED: Config = Config { slice_ns: 1, ..MARK_SWEEP };
/// Old marks stay from one collection at one go to the next.
const STICKY: Config = Config { sticky_marks: true, ..MARK_SWEEP };
/// Steps of a program where every allocation collects.
const EAGER: usize = 8_000;
const DRIFT: Config = Config { after_major: AfterMajor::Drift, paranoid: true, ..APPEL };

rows! {
    mark_sweep => still(MARK_SWEEP);
    mark_sweep_paged in FEW => still(MARK_SWEEP);
    copying => moving(COPYING);
    copying_paged in FEW => moving(COPYING);
    // Where the kernel can, it tracks writes.
    appel => moving(APPEL);
    appel_paged in FEW => moving(APPEL);
    appel_cards => moving(Config { tells_writes: true, ..APPEL });
    appel_cards_paged in FEW => moving(Config { tells_writes: true, ..APPEL });
    appel_drifts => moving(DRIFT);
    appel_drifts_paged in FEW => moving(DRIFT);
    appel_copies_back => moving(Config { after_major: AfterMajor::CopyBack, ..DRIFT });
    /// Dense blocks stay where they are, in both kinds of collection.
    appel_stays => {
        let config = Config { restless: false, after_major: AfterMajor::Stay, ..DRIFT };
        assert!(run(config, 100) > 100, "objects moved");
    };
    /// Most objects are untyped or atomic.
    appel_untyped => {
        let config = strict(Config { restless: false, after_major: AfterMajor::Reuse, ..APPEL });
        assert!(run(config, 5) > 1000, "objects moved");
    };

    sliced => _ = run(SLICED, 4);
    sliced_paged in FEW => _ = run(SLICED, 4);
    sliced_cards => _ = run(Config { tells_writes: true, ..SLICED }, 4);
    sliced_cards_paged in FEW => _ = run(Config { tells_writes: true, ..SLICED }, 4);
    /// Writes are found out by page protection.
    sliced_protected => {
        caps::drop(Caps::TRACK);
        run(SLICED, 4);
        expect(|stats| stats.protected > 3 && stats.partial == 0 && stats.unsliced == 0);
    };
    /// Writes cannot be tracked: collections are made at one go, and counted as such.
    sliced_untold => {
        caps::drop(Caps::TRACK | Caps::PROTECT);
        run(SLICED, 4);
        expect(|stats| !gc::can_slice() && stats.slices == 0 && stats.unsliced > 2);
    };
    /// The same: every collection is a whole one.
    sticky_untold => {
        caps::drop(Caps::TRACK | Caps::PROTECT);
        run(Config { eager: 60, ..STICKY }, 4);
        expect(|stats| stats.partial == 0 && stats.collections > 20);
    };
    /// The same: every collection is a major one.
    appel_untold => {
        caps::drop(Caps::TRACK | Caps::PROTECT);
        moving(APPEL);
        expect(|stats| stats.partial == 0 && stats.unsliced > 2);
    };

    // Every allocation collects.
    eager => still_for(EAGER, strict(Config { eager: 1, ..MARK_SWEEP }));
    eager_copying => moving_for(EAGER, strict(Config { eager: 1, ..COPYING }));
    eager_copying_paged in FEW => moving_for(EAGER / 2, strict(Config { eager: 1, ..COPYING }));
    /// Mostly new objects only, by the account of the kernel and of the program.
    eager_sticky => {
        still_for(EAGER, strict(Config { eager: 1, ..STICKY }));
        expect(|stats| stats.partial * 2 > stats.collections || !gc::can_slice());
    };
    eager_sticky_cards => {
        still_for(EAGER, strict(Config { eager: 1, tells_writes: true, ..STICKY }));
        expect(|stats| stats.partial * 2 > stats.collections);
    };
    eager_sliced => _ = program::run_steps(strict(Config { eager: 1, ..SLICED }), 4, EAGER);
    /// Mostly new objects only. The program reports its writes, so that minor collections are always
    /// possible.
    eager_appel => {
        moving_for(EAGER, strict(Config { eager: 1, tells_writes: true, ..APPEL }));
        expect(|stats| stats.partial * 2 > stats.collections && stats.unsliced == 0);
    };
    // Collections, or slices of random lengths, are at random points.
    random => still(strict(Config { eager: 60, ..MARK_SWEEP }));
    random_copying => moving(strict(Config { eager: 60, ..COPYING }));
    random_appel => moving(strict(Config { eager: 60, tells_writes: true, ..APPEL }));
    random_sticky => still(strict(Config { eager: 60, ..STICKY }));
    random_sticky_cards => still(strict(Config { eager: 60, tells_writes: true, ..STICKY }));
    random_sliced => _ = run(strict(Config { eager: 20, ..SLICED }), 4);

    two_markers => marked_by(2);
    three_markers => marked_by(3);
}

fn run(config: Config, kinds: usize) -> usize {
    let moved = program::run(config, kinds);
    tell(moved);
    moved
}

fn tell(moved: usize) {
    let stats = gc::stats();
    eprintln!("{moved} objects moved, {} of {} collections were partial", stats.partial, stats.collections);
}

fn still(config: Config) {
    assert_eq!(run(config, 4), 0, "objects moved");
}

fn still_for(steps: usize, config: Config) {
    assert_eq!(program::run_steps(config, 4, steps), 0, "objects moved");
}

fn moving(config: Config) {
    let moved = run(config, 12);
    assert!(moved > 1000, "only {moved} objects moved");
}

fn moving_for(steps: usize, config: Config) {
    let moved = program::run_steps(config, 12, steps);
    tell(moved);
    assert!(moved > 1000, "only {moved} objects moved");
}

/// Several threads mark at once, however little lives.
fn marked_by(markers: u32) {
    run(Config { markers, paranoid: true, ..MARK_SWEEP }, 4);
    let is_alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
    expect(|stats| stats.parallel > 20 || is_alone);
}

fn expect(holds: impl Fn(&Stats) -> bool) {
    let stats = gc::stats();
    assert!(holds(&stats), "{stats:?}");
}
