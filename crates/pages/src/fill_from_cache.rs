//! Moves cached frames into a block of cold memory, so that the block needs no new frames from the kernel.
//!
//! This is done if no cached extent is large enough for the block. A move costs hundreds of nanoseconds for
//! each page; a flush of the cached frame and a fault in the block cost more than a thousand. The source's
//! free-page cache does the same (Douglas 2011, section 4.2): frames are mapped to wherever they are needed.
//! Moving frames also keeps the rule of the peak (`resident`) at no cost. Frames over the peak that cannot
//! be moved (no `UFFDIO_MOVE`, pages shared with a forked child) are flushed. Huge pages move whole, to
//! aligned addresses, or not at all.

use crate::arena::Taken;
use crate::pages::Pages;
use crate::reason::Reason;
use crate::release::Victim;
use crate::state::DENSE;
use crate::tag::{Kind, flag};
use crate::units::{HUGE, PAGE, bytes_of};
use vellum_sys::transfer::Inlet;
use vellum_sys::{Caps, Span, caps, round_down};
use vellum_wire::Counter;

/// Below this many cold pages, or cached ones, faults cost less than opening an inlet.
const FILL_MIN: u32 = 64;

fn is_in_huge_pages(victim: &Victim) -> bool {
    victim.flags & flag::HUGE != 0 || victim.arena == DENSE
}

impl Pages {
    /// Moves cached frames into the cold end of a block just taken.
    pub(crate) fn fill_from_cache(&self, arena: usize, taken: &mut Taken) {
        let cold = taken.end() - taken.cold_from;
        let (cached, place) = {
            let state = self.state.lock();
            (state.free_pages(Kind::Warm), state.arenas[arena].span(taken.cold_from, cold))
        };
        let most = u64::from(cold).min(cached) as u32;
        if most >= FILL_MIN && caps::has(Caps::MOVE) {
            let (moved, flags) = self.move_frames(place.split_at(bytes_of(most))[0]);
            taken.flags |= flags & flag::HUGE;
            taken.of[Kind::Cold.index()] -= moved;
            taken.of[Kind::Warm.index()] += moved;
            taken.cold_from += moved;
        }
    }

    /// Flushes cached memory beyond the peak after a block was taken, and marked pages near a limit.
    pub(crate) fn limit_to_peak(&self, taken: &Taken) {
        let (over, decays, is_tight) = {
            let mut state = self.state.lock();
            let over = state.excess(0, u64::from(taken.growth()));
            (over, state.decays(), state.resident.is_tight)
        };
        if is_tight {
            self.flush_some(Kind::Marked, u64::from(taken.cold()), Reason::Pressure);
        }
        if over > 0 && decays {
            self.flush_some(Kind::Warm, over, Reason::Peak);
        }
    }

    /// Cuts a victim down to its whole huge pages, at most `most` pages; the rest goes back to the cache.
    fn reduce_to_huge_pages(&self, victim: &mut Victim, most: u32) -> bool {
        let [span, _] = victim.span.whole(HUGE).split_at(round_down(bytes_of(most), HUGE));
        if span.is_empty() {
            return false;
        }
        let [lead, pages] = [span.start - victim.span.start, span.bytes].map(|bytes| (bytes / PAGE) as u32);
        let mut state = self.state.lock();
        let arena = &mut state.arenas[victim.arena];
        if lead > 0 {
            arena.split(victim.page, lead);
            arena.free_extent(victim.page, Kind::Warm);
        }
        let page = victim.page + lead;
        if lead + pages < victim.pages() {
            arena.split(page, pages);
            arena.free_extent(page + pages, Kind::Warm);
        }
        *victim = Victim { page, span, ..*victim };
        true
    }

    /// Moves pages from the cache to the empty memory at `to`. Returns the pages from there on that may have
    /// contents now, and the flags that came with them.
    fn move_frames(&self, to: Span) -> (u32, u8) {
        // SAFETY: a block that nobody has been given yet, whose cold pages have no contents.
        let Ok(inlet) = (unsafe { Inlet::open(to) }) else { return (0, 0) };
        let most = to.page_count().get() as u32;
        let (mut filled, mut flags) = (0, 0);
        loop {
            let (mut victims, count) = self.take_victims(Kind::Warm, u64::from(most - filled));
            let victims = &mut victims[..count];
            let before = filled;
            // Whole huge pages first: they need aligned places.
            for huge in [true, false] {
                for victim in &mut *victims {
                    if victim.kind == Kind::Cold || is_in_huge_pages(victim) != huge {
                        continue;
                    }
                    let mut place = to.start + bytes_of(filled);
                    if huge {
                        // Memory before the first aligned place stays cold.
                        place = place.round_up(HUGE);
                    }
                    let skipped = ((place - to.start) / PAGE) as u32;
                    let Some(left) = most.checked_sub(skipped) else { continue };
                    if huge && !self.reduce_to_huge_pages(victim, left) || victim.pages() > left {
                        continue;
                    }
                    // SAFETY: the victim is in nobody's hands, and the place is within the inlet and empty.
                    match unsafe { inlet.take(victim.span, place) } {
                        Ok(()) => {
                            victim.kind = Kind::Cold;
                            filled = skipped + victim.pages();
                            flags |= victim.flags;
                        }
                        Err((_, 0)) => {}
                        // What did move left zeros behind.
                        Err((_, done)) => filled = skipped + (done / PAGE) as u32,
                    }
                }
            }
            self.return_victims(victims, Kind::Warm);
            if filled == before || filled >= most {
                break;
            }
        }
        drop(inlet);
        let mut state = self.state.lock();
        // They were booked as memory without frames, and, when they left the cache, as gone.
        state.resident.move_in(u64::from(filled));
        state.count(Counter::BytesRemapped, bytes_of(filled) as u64);
        state.count(Counter::BytesWarm, bytes_of(filled) as u64);
        (filled, flags)
    }
}
