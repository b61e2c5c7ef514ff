//! Which cold memory may be filled by huge pages.
//!
//! A huge page makes a first touch ten to twenty times cheaper per byte, and costs 2 MiB where one byte is touched.
//! Whether a program will touch its memory densely is not known when the memory is handed out; it is known a little
//! later. So huge pages are granted a **window** at a time:
//!
//! ```text
//! block   start ───── granted ─────▶ fence ─ probe ─────────────────── end
//!         huge pages                  base pages until the fence moves
//! ```
//!
//! The first window comes from a small common grace. When the window has proved dense, by contents found in its
//! last huge page or by base pages touched behind the fence (the probe), the fence moves on by a window that grows
//! with what has been proved. A program that touches one page here and there never moves its fences and so never pays
//! more than the grace. What is granted and not yet proved is at most [`GRACE`] and a sixteenth of what was.
//!
//! The kernel is told by advice on address ranges, which splits map entries at a fence: the number of fences is
//! limited, and one that reaches its block's end leaves no entry behind.

use crate::units::{HUGE, PAGE, round_down, round_up};
use vellum_sys::map;

/// Bytes that may be in huge pages without proof in a process that has proved nothing.
const GRACE: usize = 4 << 20;
/// The share of what is proved dense that may be granted on trust.
const TRUST: usize = 16;
/// The most fences at a time; a block beyond that gets base pages.
const FENCES_MAX: usize = 64;
/// Base pages touched behind a fence (of the 512 that make a huge page) that prove density.
const PROBE_PAGES: usize = 64;
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

/// One block whose huge pages are not all granted, or not all proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    start: usize,
    at: usize,
    end: usize,
    /// Bytes before `at` proved dense.
    proved: usize,
    /// The fence of an arena: never forgotten with a block, and slower to trust.
    is_arena: bool,
}

/// What was found by looking at a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// Nothing yet.
    None,
    /// The granted part is dense; the memory behind the fence is not touched yet.
    Contents,
    /// Pages behind the fence are being touched densely.
    Probe,
}

impl Fence {
    /// Looks at memory, without a lock: at worst the block is gone and the answer unused.
    pub(crate) fn look(&self) -> Evidence {
        if self.at < self.end {
            let pages = ((self.end - self.at) / PAGE).min(map::RESIDENCY_MAX);
            if map::resident_pages(self.at, pages).is_some_and(|there| there >= PROBE_PAGES.min(pages)) {
                return Evidence::Probe;
            }
        }
        let last = self.at.saturating_sub(HUGE);
        let dense = self.at > self.start
            && last >= self.start + self.proved
            && map::resident_pages(last, 1) == Some(1)
            && map::written_samples(last).is_some_and(|written| written >= WRITTEN_SAMPLES);
        if dense { Evidence::Contents } else { Evidence::None }
    }

    fn unproved(&self) -> usize {
        self.at - self.start - self.proved
    }
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
        self.list.iter().flatten().map(Fence::unproved).sum()
    }

    /// Bytes that may be granted now without proof.
    fn allowance(&self) -> usize {
        (GRACE + self.proved / TRUST).saturating_sub(self.unproved())
    }

    /// Sets up the fence of an arena, whose memory is handed out from the low end.
    pub(crate) fn watch_arena(&mut self, arena: Range) -> Option<Range> {
        self.grant(arena, true)
    }

    /// The part of a cold `block` to be given huge pages from the start. The rest follows as the fence moves.
    pub(crate) fn watch_block(&mut self, block: Range) -> Option<Range> {
        self.grant(block, false)
    }

    fn grant(&mut self, block: Range, is_arena: bool) -> Option<Range> {
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
                    && !fence.is_arena
                    && fence.look() == Evidence::Contents
                {
                    self.prove(index);
                }
            }
        }
        let place = self.list.iter().position(Option::is_none)?;
        let window = round_down(self.allowance(), HUGE).min(GRACE).min(end - start);
        let at = start + window;
        self.list[place] = Some(Fence { start, at, end, proved: 0, is_arena });
        (window > 0).then_some(Range { start, end: at })
    }

    /// Believes in what is granted to the fence at `index`; one that has nothing left to grant is done.
    fn prove(&mut self, index: usize) {
        if let Some(fence) = &mut self.list[index] {
            self.proved += fence.unproved();
            fence.proved = fence.at - fence.start;
            if fence.at >= fence.end {
                self.list[index] = None;
            }
        }
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
        let end = round_down(block.end, HUGE);
        let own = self
            .list
            .iter_mut()
            .flatten()
            .find(|fence| fence.start >= block.start && fence.start < block.end);
        match own {
            Some(fence) if !fence.is_arena => {
                fence.end = fence.end.max(end);
                true
            }
            _ => false,
        }
    }

    /// The fences there are, with their places, for looking at without the lock.
    pub(crate) fn snapshot(&self, into: &mut [Option<Fence>; FENCES_MAX]) -> usize {
        *into = self.list;
        self.list.iter().flatten().count()
    }

    /// Moves the fence at `index`, if it is still `seen`, as `evidence` allows. Returns the range to give huge pages.
    pub(crate) fn advance(&mut self, index: usize, seen: &Fence, evidence: Evidence) -> Option<Range> {
        if self.list[index].as_ref() != Some(seen) || evidence == Evidence::None {
            return None;
        }
        self.prove(index);
        let fence = self.list[index].as_mut()?;
        // The probed piece has base pages already.
        let start = if evidence == Evidence::Probe { (fence.at + HUGE).min(fence.end) } else { fence.at };
        let trusted = if fence.is_arena { fence.proved / TRUST } else { fence.proved / (TRUST / 2) };
        let window = round_down(trusted, HUGE).max(GRACE);
        fence.at = (start + window).min(fence.end);
        // What was passed over is neither granted nor unproved.
        fence.proved += start.saturating_sub(fence.start + fence.proved);
        let range = Range { start, end: fence.at };
        if range.start >= range.end {
            self.prove(index);
            return None;
        }
        Some(range)
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
        let mut rounds = 0;
        while fences.list[0].is_some() {
            let fence = fence_of(&fences, 0);
            if let Some(more) = fences.advance(0, &fence, Evidence::Contents) {
                assert_eq!(more.start, fence.at);
                granted += more.len();
            }
            rounds += 1;
            assert!(rounds < 100);
        }
        assert_eq!(granted, 64 << 20);
        assert_eq!(fences.proved, 64 << 20);
    }

    #[test]
    fn a_probe_skips_its_piece_and_stale_looks_change_nothing() {
        let mut fences = Fences::new();
        fences.watch_block(Range { start: BASE, end: BASE + (64 << 20) });
        let seen = fence_of(&fences, 0);
        let more = fences.advance(0, &seen, Evidence::Probe).expect("a window");
        assert_eq!(more.start, BASE + GRACE + HUGE);
        assert_eq!(fences.advance(0, &seen, Evidence::Probe), None);
        assert_eq!(fences.unproved(), more.len());
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
