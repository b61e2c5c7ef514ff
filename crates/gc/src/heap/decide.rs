//! Calls the sizing policy, which sets the budget (bytes to allocate before the next collection): after each
//! collection, and partway through a large budget.

use crate::config::Config;
use crate::config::sizing::Sizing;
use crate::heap::Heap;
use crate::process::ground::is_paged;
use crate::sizing::policy::{Found, Major, Memory, Seen, Shape, Sizes};
use crate::sizing::watch::TRUST_ALL;
use crate::sizing::{growth, knee, limits};
use crate::space::block_source;
use crate::space::size_class::BLOCK;
use vellum_pages::{AvailableMemory, Pages};
use vellum_sys::{clock, pressure, usage};

/// Bytes below which a heap does not sample memory: it is too small to matter.
const LOOK_MIN: usize = 1 << 20;
/// Bytes of a budget to be handed out before memory is sampled again, at least.
const STEP_MIN: usize = 4 << 20;
/// The age at which a sample is taken anew, in milliseconds.
const LOOK_MS: u64 = 100;
/// Memory is plenty under two conditions. The heap is to grow by less than one part in `PLENTY_PART` of the
/// available memory; and the available memory is more than one part in `LEFT_PART` of the heap's footprint.
const PLENTY_PART: u64 = 2;
const LEFT_PART: u64 = 8;
/// A slot without a block takes from the reserve before one part in this many of the budget is used.
const EARLY_PART: usize = 4;

impl Heap {
    /// Sets when to collect next, by the last collection's findings. For plans that trace the whole heap.
    pub(crate) fn set_room(&mut self, found: Found) {
        let used = core::mem::take(&mut self.sizing.used);
        if self.config.divisor != 0 {
            // A collection in slices begins by its budget, however large the heap is by then: its size must
            // not be the next one's budget.
            let reached = if self.config.slice_ns == 0 { self.sizing.reached } else { 0 };
            self.sizing.paid.collected(self.config.divisor as usize, found, used, reached);
        }
        self.sizing.found = found;
        let config = limits::under(self.config, self.limit());
        self.sizing.reserve = limits::reserve(&config, found);
        self.sizing.room = self.room_for(found);
    }

    /// The allocation budget until the next collection, in bytes.
    pub(crate) fn room_for(&mut self, found: Found) -> usize {
        let config = limits::under(self.config, self.limit());
        let plenty = self.plenty(&config, found);
        let copies = match config.sizing {
            Sizing::Knee => limits::copies(found, plenty),
            _ => limits::for_copies(&config, found),
        };
        let seen = Seen {
            live: found.live,
            old: found.live,
            spread: found.bytes.max(found.live),
            shape: Shape::InPlace { copies },
            plenty,
            rates: self.sizing.watch.rates(),
            memory: Memory::PLENTY,
        };
        self.sizes(seen, None).free
    }

    /// The allocation budget while memory is plenty, in bytes.
    pub(crate) fn plenty(&self, config: &Config, found: Found) -> usize {
        let room = match config.divisor {
            0 => growth::room(config, self.sizing.cache_bytes, found),
            _ if config.slice_ns == 0 => self.sizing.paid.room(self.sizing.cache_bytes, found),
            // Half of the holes will be filled.
            _ => {
                let spread = found.live.midpoint(found.bytes.max(found.live));
                self.sizing.paid.room(self.sizing.cache_bytes, Found { live: spread, ..found })
            }
        };
        room.max(growth::room_told(config, self.sizing.cache_bytes, found))
    }

    /// The sizes. The available memory is found out first if the policy depends on it.
    pub(crate) fn sizes(&mut self, mut seen: Seen, last: Option<&Major>) -> Sizes {
        if self.config.sizing == Sizing::Knee {
            seen.memory = self.memory_for(knee::footprint(&seen, seen.plenty), seen.plenty);
        }
        let sizes = self.config.sizing.sizes(&seen, last);
        self.sizing.watch.decided(knee::footprint(&seen, sizes.free) <= seen.memory.target);
        sizes
    }

    /// Bytes of this heap that may be backed by frames: in use, free blocks, and the page layer's cache.
    fn held(&self) -> u64 {
        let cached = if is_paged() { 0 } else { Pages::global().cached() };
        (self.space.bytes + self.space.pool.len() * BLOCK) as u64 + cached
    }

    /// The memory for a heap that is to have a footprint of `footprint` bytes with a budget of `room`.
    fn memory_for(&mut self, footprint: usize, room: usize) -> Memory {
        (self.sizing.watch.check_at, self.sizing.watch.check_every) = (usize::MAX, usize::MAX);
        if footprint < LOOK_MIN {
            (self.sizing.watch.is_short, self.sizing.watch.counts) = (false, false);
            return Memory::PLENTY;
        }
        let held = self.held();
        let enough = (footprint as u64)
            .saturating_sub(held)
            .saturating_mul(PLENTY_PART)
            .max(footprint as u64 / LEFT_PART);
        let now_ms = clock::now_ms();
        let watch = &mut self.sizing.watch;
        let looked = watch.looked_ms == 0 || now_ms.wrapping_sub(watch.looked_ms) >= LOOK_MS;
        if looked {
            // Blocks that the process pages itself have the pager's frames, whatever other memory there is.
            watch.outlook = match block_source::frames() {
                Some(frames) => AvailableMemory { available: frames.free, swap: u64::MAX, is_given: true },
                None => Pages::global().available_memory(enough),
            };
            watch.looked_ms = now_ms.max(1);
            watch.held = held;
        }
        let available = watch.available(held);
        let advised = Pages::global().advised(held);
        // So what others take meanwhile is seen before the heap has taken a quarter of what is left.
        let step = usize::try_from(available / 4).unwrap_or(usize::MAX).max(STEP_MIN);
        if step < room {
            (watch.check_at, watch.check_every) = (step, step);
        }
        let is_plenty = enough <= available && advised.is_none_or(|bytes| footprint as u64 <= bytes);
        let was_short = watch.is_short;
        watch.is_short = !is_plenty || watch.trust < TRUST_ALL;
        watch.counts = watch.is_short || watch.outlook.is_given || advised.is_some();
        if !watch.counts {
            (watch.swapped, watch.is_stalled) = (0, false);
            return Memory::PLENTY;
        }
        if looked || watch.is_short && !was_short {
            watch.swapped = block_source::frames().map_or_else(usage::swapped, |frames| frames.stored);
            watch.is_stalled = watch.is_short && pressure::is_stalled();
        }
        watch.memory(held, advised)
    }

    /// Returns whether the heap is so large that it collects instead of growing by `bytes` bytes.
    pub(crate) fn is_large_enough(&self, bytes: usize) -> bool {
        let after = self.space.bytes.saturating_add(bytes);
        self.config.divisor != 0
            && self.config.slice_ns == 0
            && after > self.config.least_bytes
            && self.sizing.paid.is_enough(after, self.sizing.used)
    }

    /// Returns whether a slot without room may have a new block; if not, it is time to collect.
    pub(crate) fn may_have_block(&self) -> bool {
        if self.is_large_enough(BLOCK) {
            return false;
        }
        let (after, limit) = (self.space.bytes + BLOCK, self.limit());
        after + self.sizing.reserve <= limit
            || (after <= limit && self.sizing.used < self.sizing.room / EARLY_PART)
    }
}
