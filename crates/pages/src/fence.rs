//! Which cold memory may be filled by huge pages.
//!
//! A huge page makes a first touch ten to twenty times cheaper per byte, and costs 2 MiB where one byte is touched.
//! Whether a program will touch its memory densely is not known when the memory is handed out; it is known a little
//! later. So huge pages are granted a **window** at a time:
//!
//! ```text
//! block   start ──── proved ───▶ ──── window ───▶ fence ─ probe ───────── end
//!         huge pages, dense      huge pages        base pages until the fence moves
//! ```
//!
//! The first window comes from a small common grace. As its huge pages prove dense, by the contents found in them, the
//! fence moves on ahead of the program; a program that overtakes it touches base pages, and when enough of those (the
//! probe) are there, close together, the fence jumps past them. (To make those a huge page after the fact does not pay: the kernel
//! first waits for every processor.) The window grows with what has been proved. A program that touches one page here and there never moves its fences and so never pays more than the
//! grace: what is granted and not yet proved is at most [`GRACE`], or [`SETTLED_WINDOW`], and a twentieth of what was,
//! and 2 MiB of the dense arena where that is no more than a quarter of it.
//!
//! The kernel is told by advice on address ranges, which splits map entries at a fence: the number of fences is
//! limited, and one that reaches its block's end leaves no entry behind.

use crate::units::{HUGE, PAGE, round_down, round_up};
use vellum_sys::map;

/// Bytes that may be in huge pages without proof in a process that has proved nothing.
const GRACE: usize = 4 << 20;
/// A block that has proved so many bytes is granted …
const SETTLED: usize = 4 * HUGE;
/// … so many ahead: a huge page that is being filled, the next, and one whose grant waits for the first, as the kernel
/// lets nobody change a map entry in which a fault is being served.
const SETTLED_WINDOW: usize = 3 * HUGE;
/// The least an arena's own fence grants at a time. Its memory is handed out densely, so this is apart from the grace.
const ARENA_WINDOW: usize = HUGE;
/// An arena grants nothing before so much of it has proved dense: a process of a few megabytes would be up to twice as large with a huge page of which it uses
/// the beginning.
const ARENA_FROM: usize = 4 * HUGE;
/// The share of what is proved dense that may be granted on trust.
const TRUST: usize = 20;
/// The most fences at a time; a block beyond that gets base pages.
const FENCES_MAX: usize = 64;
/// Base pages touched behind a fence (of the 512 that make a huge page) that prove density, …
const PROBE_PAGES: usize = 64;
/// … if they are at least one in so many of the pages between the first of them and the last.
const PROBE_SPREAD: usize = 2;
/// The share of sampled places in a huge page that must have contents to prove density.
const WRITTEN_SAMPLES: usize = map::SAMPLES / 2;
/// A block's last, partial huge page is granted from this size: less would waste too much of it.
const TAIL_MIN: usize = HUGE - HUGE / 16;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Range {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Huge pages looked at in one go.
const LOOK_MAX: usize = 32;

/// One block whose huge pages are not all granted, or not all proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    start: usize,
    /// Up to here the block is dense.
    proved: usize,
    /// Up to here huge pages are granted.
    at: usize,
    end: usize,
    /// Bytes behind its block that may be granted as well: a block that grows by small steps is about to get there.
    ahead: usize,
    /// The fence of an arena: never forgotten with a block, and slower to trust.
    is_arena: bool,
}

impl Fence {
    /// Looks at memory, without a lock: at worst the block is gone and the answer unused. Returns up to where the block has
    /// proved dense, if that is further than known.
    pub(crate) fn look(&self) -> Option<usize> {
        let mut proved = self.proved;
        for _ in 0..LOOK_MAX {
            let dense = if proved < self.at {
                is_written(proved)
            } else {
                proved < self.end && is_touched(proved, self.end)
            };
            if !dense {
                break;
            }
            proved += HUGE;
        }
        if proved == self.proved && self.at < self.end && is_touched(self.at, self.end) {
            // The contents say nothing (a program that writes zeros), the pages behind the fence do.
            proved = self.at + HUGE;
        }
        let proved = proved.min(self.end);
        (proved > self.proved).then_some(proved)
    }

    fn unproved(&self) -> usize {
        self.at.saturating_sub(self.proved)
    }

    /// Whether it is a block's, and the block has more to be granted.
    pub(crate) fn is_open_block(&self) -> bool {
        !self.is_arena && self.at < self.end
    }
}

/// Whether a huge page is there and has contents in most places.
fn is_written(start: usize) -> bool {
    map::is_resident(start) == Some(true)
        && map::written_samples(start).is_some_and(|written| written >= WRITTEN_SAMPLES)
}

/// Whether enough base pages from `start` are there, close to each other.
fn is_touched(start: usize, end: usize) -> bool {
    let pages = ((end - start) / PAGE).min(map::RESIDENCY_MAX);
    map::residency(start, pages).is_some_and(|found| {
        found.pages >= PROBE_PAGES.min(pages) && found.pages * PROBE_SPREAD >= found.span
    })
}

/// The fences of a process.
pub(crate) struct Fences {
    list: [Option<Fence>; FENCES_MAX],
    proved: usize,
}

impl Fences {
    pub(crate) const fn new() -> Fences {
        Fences { list: [None; FENCES_MAX], proved: 0 }
    }

    fn unproved(&self) -> usize {
        self.list.iter().flatten().filter(|fence| !fence.is_arena).map(Fence::unproved).sum()
    }

    /// Bytes that may be granted now without proof.
    fn allowance(&self) -> usize {
        (GRACE + self.proved / TRUST).saturating_sub(self.unproved())
    }

    /// Sets up the fence of an arena, whose memory is handed out from the low end.
    pub(crate) fn watch_arena(&mut self, arena: Range) {
        let (start, end) = (round_up(arena.start, HUGE), round_down(arena.end, HUGE));
        if let Some(place) = self.list.iter().position(Option::is_none).filter(|_| start < end) {
            self.list[place] = Some(Fence { start, proved: start, at: start, end, ahead: 0, is_arena: true });
        }
    }

    /// The part of a cold `block` to be given huge pages from the start. The rest follows as the fence moves.
    pub(crate) fn watch_block(&mut self, block: Range) -> Option<Range> {
        self.grant(block)
    }

    fn grant(&mut self, block: Range) -> Option<Range> {
        let start = round_up(block.start, HUGE);
        let tail = block.end % HUGE;
        let end = if tail >= TAIL_MIN { round_up(block.end, HUGE) } else { round_down(block.end, HUGE) };
        if start >= end {
            return None;
        }
        if self.allowance() < (end - start).min(GRACE) {
            // Older grants may have proved themselves meanwhile.
            for index in 0..FENCES_MAX {
                if let Some(fence) = self.list[index]
                    && fence.at == fence.end
                    && let Some(proved) = fence.look()
                {
                    self.advance(index, &fence, proved);
                }
            }
        }
        let place = self.list.iter().position(Option::is_none)?;
        let window = round_down(self.allowance(), HUGE).min(GRACE).min(end - start);
        let at = start + window;
        self.list[place] = Some(Fence { start, proved: start, at, end, ahead: 0, is_arena: false });
        (window > 0).then_some(Range { start, end: at })
    }

    /// Drops the fences of the blocks in `gone`.
    pub(crate) fn forget(&mut self, gone: Range) {
        for slot in &mut self.list {
            if slot
                .is_some_and(|fence| !fence.is_arena && fence.start >= gone.start && fence.start < gone.end)
            {
                *slot = None;
            }
        }
    }

    /// A block grew to end at `end`: its fence, if it still has one, has more to grant.
    pub(crate) fn extend(&mut self, block: Range) -> bool {
        let own = self
            .list
            .iter_mut()
            .flatten()
            .find(|fence| fence.start >= block.start && fence.start < block.end);
        match own {
            Some(fence) if !fence.is_arena => {
                fence.end = fence.end.max(round_down(block.end + fence.ahead, HUGE));
                true
            }
            _ => false,
        }
    }

    /// Sets a fence where a block that grew by small steps became cold: nothing is granted before the steps have shown that
    /// they are touched.
    pub(crate) fn watch_growth(&mut self, block: Range, cold_from: usize) -> bool {
        let start = round_down(cold_from, HUGE);
        let place = self
            .list
            .iter()
            .position(Option::is_none)
            .filter(|_| start >= block.start && block.len() >= HUGE);
        if let Some(place) = place {
            let end = round_down(block.end + GRACE, HUGE);
            self.list[place] =
                Some(Fence { start, proved: start, at: start, end, ahead: GRACE, is_arena: false });
        }
        place.is_some()
    }

    /// Whether `taken` memory of an arena reaches its fence, or comes near.
    pub(crate) fn is_near_arena_fence(&self, taken: Range) -> bool {
        self.list
            .iter()
            .flatten()
            .any(|fence| fence.is_arena && taken.end + HUGE > fence.at && taken.start < fence.end)
    }

    /// The fence that decides on the memory before `end`, if it is near: of the block from `start` on, or of its arena.
    pub(crate) fn near(&self, start: usize, end: usize) -> Option<(usize, Fence)> {
        let mut all = self.list.iter().enumerate();
        all.find_map(|(index, fence)| {
            let fence = (*fence)?;
            let covers = if fence.is_arena {
                fence.start <= start && end <= fence.end
            } else {
                (start..end).contains(&fence.start)
            };
            (covers && end + HUGE > fence.at).then_some((index, fence))
        })
    }

    /// The fences there are, with their places, for looking at without the lock.
    pub(crate) fn snapshot(&self, into: &mut [Option<Fence>; FENCES_MAX]) -> usize {
        *into = self.list;
        self.list.iter().flatten().count()
    }

    /// Believes that the fence at `index`, if it is still `seen`, is dense up to `proved`, and moves it. Returns the range to
    /// give huge pages.
    pub(crate) fn advance(&mut self, index: usize, seen: &Fence, proved: usize) -> Option<Range> {
        let fence = self.list[index].as_mut().filter(|fence| *fence == seen)?;
        self.proved += proved - fence.proved;
        fence.proved = proved;
        let least = match proved - fence.start {
            ..ARENA_FROM if fence.is_arena => 0,
            _ if fence.is_arena => ARENA_WINDOW,
            SETTLED.. => SETTLED_WINDOW,
            _ => GRACE,
        };
        let window = round_down((proved - fence.start) / TRUST, HUGE).max(least);
        let range = Range { start: fence.at.max(proved), end: (proved + window).clamp(fence.at, fence.end) };
        fence.at = range.end.max(proved);
        if proved >= fence.end {
            self.list[index] = None;
        }
        (range.start < range.end).then_some(range)
    }
}

/// Room for [`Fences::snapshot`].
pub(crate) type Snapshot = [Option<Fence>; FENCES_MAX];
/// An empty [`Snapshot`].
pub(crate) const NO_FENCES: Snapshot = [None; FENCES_MAX];

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: usize = 1 << 40;

    fn fence_of(fences: &Fences, index: usize) -> Fence {
        fences.list[index].expect("a fence")
    }

    #[test]
    fn the_first_blocks_share_the_grace() {
        let mut fences = Fences::new();
        let block =
            |index: usize| Range { start: BASE + (index << 30), end: BASE + (index << 30) + (1 << 29) };
        let first = fences.watch_block(block(0)).expect("the grace");
        assert_eq!(first.len(), GRACE);
        // These ranges are not mapped, so nothing can have proved itself.
        assert_eq!(fences.watch_block(block(1)), None);
        fences.forget(block(0));
        assert!(fences.watch_block(block(2)).is_some());
    }

    #[test]
    fn proof_moves_a_fence_to_its_end() {
        let mut fences = Fences::new();
        let block = Range { start: BASE, end: BASE + (64 << 20) };
        fences.watch_block(block);
        let mut granted = GRACE;
        while let Some(fence) = fences.list[0] {
            if let Some(more) = fences.advance(0, &fence, fence.proved + HUGE) {
                assert_eq!(more.start, fence.at);
                granted += more.len();
            }
            let ahead = fences.list[0].map_or(0, |fence| fence.unproved());
            assert!(ahead <= SETTLED_WINDOW);
        }
        assert_eq!(granted, 64 << 20);
        assert_eq!(fences.proved, 64 << 20);
    }

    #[test]
    fn an_overtaken_fence_jumps_and_stale_looks_change_nothing() {
        let mut fences = Fences::new();
        fences.watch_block(Range { start: BASE, end: BASE + (64 << 20) });
        let seen = fence_of(&fences, 0);
        let more = fences.advance(0, &seen, BASE + GRACE + HUGE).expect("a window");
        assert_eq!(more.start, BASE + GRACE + HUGE);
        assert_eq!(fences.advance(0, &seen, BASE + GRACE + 2 * HUGE), None);
        assert_eq!(fences.unproved(), more.len());
    }

    #[test]
    fn an_arena_grants_nothing_before_much_has_proved_dense() {
        let mut fences = Fences::new();
        fences.watch_arena(Range { start: BASE, end: BASE + (1 << 30) });
        for proved in 1..8 {
            let seen = fence_of(&fences, 0);
            let granted = fences.advance(0, &seen, BASE + proved * HUGE);
            let expected = Range { start: BASE + proved * HUGE, end: BASE + (proved + 1) * HUGE };
            assert_eq!(granted, (proved * HUGE >= ARENA_FROM).then_some(expected), "{proved}");
        }
    }

    #[test]
    fn small_tails_stay_base_pages() {
        let mut fences = Fences::new();
        let got =
            fences.watch_block(Range { start: BASE, end: BASE + HUGE + HUGE / 2 }).expect("one huge page");
        assert_eq!(got, Range { start: BASE, end: BASE + HUGE });
        assert_eq!(fences.watch_block(Range { start: BASE + PAGE, end: BASE + HUGE }), None);
    }
}
