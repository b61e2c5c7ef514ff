//! Tests of the policy `knee` by simulation: its cost must be close to the lowest cost that a search over
//! the parameters of `original` and `modified` finds.
//!
//! The simulated memory replaces the least recently used page. The simulated program allocates pages in
//! order, and at times reads a live page; the number of live pages rises and falls. When the budget is used
//! up, live pages are scanned, and dead ones become free, to be reused from the lowest address on.
//!
//! The total time is that of the program, of the collections, and S for each use of a page that was paged
//! out. (Dead pages are not marked as discardable, so their reuse costs S as well.)

use super::policy::Memory;
use super::rates::Rates;
use crate::config::sizing::Sizing;
use crate::sizing::policy::{Seen, Shape};
use std::collections::BTreeSet;
use std::vec::Vec;
use vellum_pages::PAGE;

/// A simulated world. Sizes are in pages.
#[derive(Clone, Copy, Debug)]
struct World {
    frames: usize,
    /// The cost of a fault, in nanoseconds.
    refault_ns: u64,
    /// The cost of scanning a live page.
    trace_ns: u64,
    /// The program's own time for each page that it is handed.
    program_ns: u64,
    /// Pages handed out in total.
    pages: usize,
    /// The live pages swing between these …
    live: (usize, usize),
    /// … once while this many pages are handed out.
    period: usize,
    /// Pages handed out for each live page that the program reads.
    look_every: usize,
}

/// Frames with the times of their last use.
struct Frames {
    room: usize,
    used: Vec<u64>,
    by_time: BTreeSet<(u64, usize)>,
    now: u64,
    faults: u64,
}

impl Frames {
    fn new(room: usize) -> Frames {
        Frames { room, used: Vec::new(), by_time: BTreeSet::new(), now: 0, faults: 0 }
    }

    fn touch(&mut self, page: usize) {
        self.now += 1;
        if self.used.len() <= page {
            self.used.resize(page + 1, 0);
        }
        if !self.by_time.remove(&(self.used[page], page)) {
            // The first use of all brings zeros, which cost next to nothing.
            self.faults += u64::from(self.used[page] != 0);
            if self.by_time.len() == self.room {
                self.by_time.pop_first();
            }
        }
        self.used[page] = self.now;
        self.by_time.insert((self.now, page));
    }
}

impl World {
    /// How many pages are to be alive when `handed` have been handed out.
    fn wanted(&self, handed: usize) -> usize {
        let (least, most) = self.live;
        let at = handed % self.period;
        // Up for three quarters of a period, and down at a stroke: the saw teeth of the source's Figure 1.
        least
            + (most - least) * (at * 4 / 3).min(self.period) / self.period
                * usize::from(at * 4 < self.period * 3)
    }

    /// Nanoseconds that the program takes, where `room` returns how many pages may be handed out with the
    /// given number alive.
    fn run(&self, room: impl Fn(usize) -> usize) -> u64 {
        let mut frames = Frames::new(self.frames);
        let mut live: Vec<usize> = Vec::new();
        let mut free: BTreeSet<usize> = BTreeSet::new();
        let (mut top, mut handed, mut cost, mut seed) = (0, 0, 0_u64, 1_u64);
        while handed < self.pages {
            for page in &live {
                frames.touch(*page);
            }
            cost += self.trace_ns * live.len() as u64;
            let mut dead = Vec::new();
            for _ in 0..room(live.len()).max(1) {
                let page = free.pop_first().unwrap_or_else(|| {
                    top += 1;
                    top - 1
                });
                frames.touch(page);
                handed += 1;
                if live.len() < self.wanted(handed) {
                    live.push(page);
                } else {
                    dead.push(page);
                }
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if handed % self.look_every == 0 && !live.is_empty() {
                    frames.touch(live[(seed >> 33) as usize % live.len()]);
                }
            }
            free.extend(dead);
            free.extend(live.drain(self.wanted(handed).min(live.len())..));
        }
        cost + handed as u64 * self.program_ns + frames.faults * self.refault_ns
    }

    /// The result of [`World::run`] with budgets by `sizing`.
    fn run_sized(&self, sizing: Sizing) -> u64 {
        self.run(|live| self.room(sizing, live))
    }

    /// Pages that `sizing` gives.
    fn room(&self, sizing: Sizing, live: usize) -> usize {
        let bytes = live * PAGE;
        let mut rates = Rates::UNKNOWN;
        rates.learn(PAGE, PAGE, self.trace_ns, self.program_ns);
        let (target, refault_ns) = (self.frames * PAGE, self.refault_ns);
        let memory = Memory { target, is_given: true, paged: 1 << 40, refault_ns };
        let plenty = bytes / 4 * 3;
        let shape = Shape::InPlace { copies: 0 };
        let seen = Seen { live: bytes, old: bytes, spread: bytes, shape, plenty, rates, memory };
        sizing.sizes(&seen, None).free / PAGE
    }

    /// The least cost of the two strategies of the source, with any parameters of a fine grid.
    fn best(&self) -> (u64, Sizing) {
        let mut tried = Vec::new();
        for eighths in (1..=32).step_by(2) {
            let bytes = self.frames * PAGE / 8 * eighths;
            for ratio in [2, 3, 4, 7, 100] {
                tried.push(Sizing::Original { mem_limit: bytes, ratio });
            }
            for part in [1, 2, 4, 8] {
                tried.push(Sizing::Modified {
                    mem_limit: bytes,
                    min_new_size: bytes / part,
                    min_old_incr: 0,
                });
            }
            for quarters in 1..=4 {
                let mem_limit = self.frames * PAGE / 4 * quarters;
                tried.push(Sizing::Modified { mem_limit, min_new_size: bytes, min_old_incr: 0 });
            }
        }
        tried
            .into_iter()
            .map(|sizing| (self.run_sized(sizing), sizing))
            .min_by_key(|tried| tried.0)
            .expect("some")
    }
}

/// A program like the source's Compiler: saw teeth, above half of memory for more than half of the time.
const COMPILER: World = World {
    frames: 800,
    refault_ns: 100_000,
    trace_ns: 1300,
    program_ns: 4000,
    pages: 36_000,
    live: (120, 600),
    period: 12_000,
    look_every: 4,
};

/// Tests that the knee is within a tenth of the best that searching finds, in a world each.
macro_rules! untuned_it_is_within_a_tenth_of_the_best {
    ($($name:ident: $world:expr;)*) => {
        mod untuned_it_is_within_a_tenth_of_the_best {
            use super::*;
            $(
                #[test]
                #[cfg_attr(miri, ignore = "pages by the million, and nothing unsafe")]
                fn $name() {
                    let world = $world;
                    let (best, how) = world.best();
                    let knee = world.run_sized(Sizing::Knee);
                    assert!(knee <= best + best / 10, "knee {knee} ns, best {best} ns ({how:?})");
                }
            )*
        }
    };
}

/// Large enough that live pages do not fit at times.
const TIGHT: World = World { live: (400, 760), ..COMPILER };

untuned_it_is_within_a_tenth_of_the_best! {
    compiler: COMPILER;
    // Like the source's Sort: in the end the live pages do not fit.
    sort: World { live: (40, 1040), period: 45_000, ..COMPILER };
    roomy: World { frames: 2400, ..COMPILER };
    tight: TIGHT;
    compressed: World { refault_ns: 4000, ..TIGHT };
    disk: World { refault_ns: 5_000_000, ..TIGHT };
}
