//! When to collect next, and how large the heap's regions are until then.
//!
//! ```text
//!   a collection ends ──▶ Seen: what it found, what collecting costs, the memory there is ──▶ Policy ──▶ Sizes
//!                                                                                                          │
//!   where everything stays (or little moves)     |- live -|------------ free ------------|                 ▼
//!   where all that lives is copied (regions)     |- old ───▶ old_max |          |- free ─|     the next collection
//! ```
//!
//! A policy is a pure function: `original`, `modified` (the two strategies of the source), `square_root`, and `knee`, the default, which needs
//! no parameter. `plenty` says what is best while memory is not short; `knee` is that then. `memory` is what it goes by otherwise, and `watch` finds
//! it out. What the user may choose is in `choice`; `rates` and `refault` smooth what is measured. `limits` keeps the heap within what it must never
//! exceed, whatever the policy says.
//!
//! Source: Cooper, Nettles and Subramanian 1992, sections 2 and 3. There one strategy was made for regions; here a policy sizes heaps of either
//! shape: where nothing is copied, all of the heap but what is alive is free.

mod choice;
mod knee;
mod limits;
mod memory;
mod modified;
mod original;
mod plenty;
mod rates;
mod refault;
#[cfg(test)]
mod simulation;
mod square_root;
mod watch;

use crate::config::{Config, Plan, ROOM_MIN};
use crate::heap::Heap;
pub use choice::Sizing;
pub(crate) use limits::cost_ns;
use memory::Memory;
pub(crate) use plenty::{Paid, cache_bytes};
pub(crate) use rates::Rates;
pub(crate) use watch::{Spent, Watch};

/// What a collection found, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// Bytes of blocks and large objects.
    pub bytes: usize,
    /// Bytes of objects alive.
    pub live: usize,
    /// Of these, bytes that a collection looks through.
    pub scanned: usize,
    /// Bytes of roots.
    pub roots: usize,
    /// Of what is alive, bytes in blocks that the next collection should empty.
    pub sparse: usize,
    /// Bytes of young objects that it met …
    pub young: usize,
    /// … and, if as many of the next live on, what is to be copied of them.
    pub young_to_copy: usize,
    /// What the next one should cost: [`cost_ns`].
    pub cost_ns: usize,
}

impl Found {
    /// There was nothing.
    pub(crate) const NOTHING: Found =
        Found { bytes: 0, live: 0, scanned: 0, roots: 0, sparse: 0, young: 0, young_to_copy: 0, cost_ns: 0 };
}

/// How a plan uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// What is alive stays where it is, but for so many bytes that the next collection copies.
    InPlace {
        /// Bytes to be copied.
        copies: usize,
    },
    /// An old region to which minor collections add, and a free one.
    Regions {
        /// Bytes that a major collection copies, at most.
        copies: usize,
    },
}

impl Shape {
    /// Regions of which major collections copy all that is alive.
    pub(crate) const COPIED: Shape = Shape::Regions { copies: usize::MAX };
}

/// What a policy goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Bytes that the last major collection found alive.
    pub live: usize,
    /// Bytes of the old region now: after a major collection what is alive.
    pub old: usize,
    /// Bytes of the blocks that what is alive is spread over.
    pub spread: usize,
    /// How the plan uses memory.
    pub shape: Shape,
    /// Bytes to hand out before the next major collection while memory is plenty.
    pub plenty: usize,
    /// What collecting and allocating costs.
    pub rates: Rates,
    /// What memory there is.
    pub memory: Memory,
}

/// How large the regions are until the next collection, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// What may be handed out before it.
    pub free: usize,
    /// It is a major one if the old region has come to this. Where there are no minor ones, nothing.
    pub old_max: usize,
}

/// How the last major collection left the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Major {
    /// Bytes alive.
    pub live: usize,
    /// What was decided then.
    pub sizes: Sizes,
}

/// Sizes regions. Pure: what it says depends on what it is told.
pub(crate) trait Policy {
    /// The sizes after a collection that has looked at everything.
    fn major(&self, seen: &Seen) -> Sizes;

    /// The sizes after one that has looked at new objects only; `last` is the major one before.
    fn minor(&self, seen: &Seen, last: &Major) -> Sizes;
}

impl Sizing {
    /// Calls `with` with the policy that this names.
    fn policy<R>(self, with: impl FnOnce(&dyn Policy) -> R) -> R {
        match self {
            Sizing::Knee => with(&knee::Knee),
            Sizing::Original { mem_limit, ratio } => with(&original::Original { mem_limit, ratio }),
            Sizing::Modified { mem_lim, min_new_size, min_old_incr } => {
                with(&modified::Modified { mem_lim, min_new_size, min_old_incr })
            }
            Sizing::SquareRoot { c } => with(&square_root::SquareRoot { c }),
        }
    }

    /// The sizes after a collection; `last` is the major one before if this was a minor one. However small what the policy says, some of the
    /// heap is free: a collection for each object is what nobody means.
    pub(crate) fn sizes(self, seen: &Seen, last: Option<&Major>) -> Sizes {
        let Sizes { free, old_max } = self.policy(|policy| match last {
            Some(last) => policy.minor(seen, last),
            None => policy.major(seen),
        });
        Sizes { free: free.max(ROOM_MIN), old_max: old_max.max(seen.live.saturating_add(ROOM_MIN)) }
    }
}

impl Heap {
    /// Sets when to collect next, by what the last collection found. For plans whose collections look at everything.
    pub(crate) fn set_room(&mut self, found: Found) {
        self.used = 0;
        let found = match self.copies.too_dear {
            true => Found { sparse: 0, young_to_copy: 0, ..found },
            false => found,
        };
        self.found = found;
        let config = limits::under(self.config, self.limit());
        self.reserve = limits::reserve(&config, found);
        self.room = self.room_for(found);
    }

    /// Bytes to hand out before the next collection.
    fn room_for(&mut self, found: Found) -> usize {
        let config = limits::under(self.config, self.limit());
        let plenty = self.plenty(&config, found);
        let copies = match config.sizing {
            Sizing::Knee => limits::copies(config.plan, found, plenty),
            _ => limits::for_copies(&config, found),
        };
        let seen = Seen {
            live: found.live,
            old: found.live,
            spread: found.bytes.max(found.live),
            shape: Shape::InPlace { copies },
            plenty,
            rates: self.watch.rates(),
            memory: Memory::PLENTY,
        };
        self.sizes(seen, None).free
    }

    /// The sizes of a heap of regions after a collection that left `live` bytes, as far as the last major one knew, and an old region of `old`;
    /// `last` is that major one if this was a minor one.
    pub(crate) fn size_regions(&mut self, live: usize, old: usize, last: Option<&Major>) -> Sizes {
        let config = limits::under(self.config, self.limit());
        // What is between two major collections is not what fits the cache, however little minor ones cost.
        let found = Found { live: live.min(self.appel.major_live), cost_ns: usize::MAX, ..Found::default() };
        let plenty = self.plenty(&config, found);
        let (rates, memory) = (self.watch.rates(), Memory::PLENTY);
        let shape = match self.stays() {
            true => Shape::Regions { copies: self.appel.sparse },
            false => Shape::COPIED,
        };
        self.sizes(Seen { live, old, spread: live, shape, plenty, rates, memory }, last)
    }

    /// Bytes to hand out before the next collection while memory is plenty.
    fn plenty(&mut self, config: &Config, found: Found) -> usize {
        let room = match config.divisor {
            0 => plenty::room(config, self.cache_bytes, found),
            divisor => self.paid.room(divisor as usize, found),
        };
        room.max(plenty::room_told(config, self.cache_bytes, found))
    }

    /// Has the heap be of `bytes` bytes at least before it collects, from now on.
    pub(crate) fn tell_least(&mut self, bytes: usize) {
        self.config.least_bytes = bytes;
        // Regions are sized anew by the next major collection.
        if self.config.plan != Plan::Appel {
            self.room = self.room_for(self.found).max(self.used);
        }
    }

    /// The sizes, with the memory there is found out where the policy goes by it.
    fn sizes(&mut self, mut seen: Seen, last: Option<&Major>) -> Sizes {
        if self.config.sizing == Sizing::Knee {
            seen.memory = self.memory_for(knee::footprint(&seen, seen.plenty), seen.plenty);
        }
        let sizes = self.config.sizing.sizes(&seen, last);
        self.watch.decided(knee::footprint(&seen, sizes.free) <= seen.memory.target);
        sizes
    }

    /// Looks again, in the middle of a large room, whether there is still the memory that it was given for; the collection comes sooner if not.
    #[cold]
    pub(crate) fn look_again(&mut self) {
        let used = self.used;
        let room = match self.config.plan {
            Plan::Appel => self.free_region(),
            _ => self.room_for(self.found),
        };
        self.room = self.room.min(room.max(used));
        self.watch.check_after(used);
    }
}
