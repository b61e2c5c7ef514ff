//! Decides which cold memory the kernel may fill with huge pages.
//!
//! A huge page makes a first touch ten to twenty times cheaper for each byte, but costs 2 MiB where one byte
//! is touched. The layer cannot predict whether a program will touch its memory densely, but can measure it
//! a little later. Each block has a **window**, the part of it that huge pages may reach:
//!
//! ```text
//! block   start ──── proved ───▶ ──── window ───▶ at ─── probe ────────── end
//!         huge pages, dense      huge pages          base pages until the window moves
//! ```
//!
//! The first window of every block is granted from a small amount for the whole process ([`GRACE`]). When the
//! contents of its huge pages prove dense, the window moves on ahead of the program. A program that overtakes
//! its window touches base pages beyond it. When enough of those pages (the *probe*) are touched, close
//! together, the window jumps past them. (Turning those pages into a huge page does not pay, as the kernel
//! first waits for every processor.) The window grows with the memory proved. A program that touches one page
//! here and there never moves its windows and never pays more than the grace. Granted memory that has not yet
//! proved dense has a bound, the sum of three amounts: [`GRACE`] or [`SETTLED_WINDOW`]; a twentieth of the
//! proved memory; 2 MiB for the dense arena (`state`) once 8 MiB there have proved dense.
//!
//! The kernel receives advice on address ranges, which splits map entries at a window's end. Therefore the
//! number of windows is limited, and a window that reaches its block's end leaves no entry behind.

use crate::huge_price::Price;
use crate::units::{HUGE, PAGE};
use vellum_sys::pagemap::PageMap;
use vellum_sys::{Addr, Span, map, round_down};

/// Bytes that may be in huge pages without proof in a process that has proved nothing.
const GRACE: usize = 4 << 20;
/// A block that has proved this many bytes is granted …
const SETTLED: usize = 4 * HUGE;
/// … this many ahead: a huge page that is being filled, the next, and one whose grant waits for the first.
/// The kernel allows no change of a map entry while it serves a fault there.
const SETTLED_WINDOW: usize = 3 * HUGE;
/// The least an arena's own window grants at a time. Its memory is dense, so this is apart from the grace.
const ARENA_WINDOW: usize = HUGE;
/// An arena grants nothing before this many bytes have proved dense: a process of a few megabytes could
/// double in size with a huge page of which it uses the beginning.
const ARENA_FROM: usize = 4 * HUGE;
/// The share of the proved memory that may be granted on trust.
const TRUST: usize = 20;
/// The most windows at a time; a block beyond that gets base pages.
const WINDOWS_MAX: usize = 64;
/// Base pages touched behind a window (of the 512 that make a huge page) that prove density, …
const PROBE_PAGES: usize = 64;
/// … if at least one in this many pages from the first to the last is touched.
const PROBE_SPREAD: usize = 2;
/// The share of sampled places in a huge page that must have contents to prove density.
const WRITTEN_SAMPLES: usize = map::SAMPLES / 2;
/// A block's last, partial huge page is granted from this size: less would waste too much of it.
const TAIL_MIN: usize = HUGE - HUGE / 16;

const SCAN_MAX: usize = 32;

/// A block whose huge pages are not all granted, or not all proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    start: Addr,
    proved: Addr,
    /// Up to here huge pages are granted.
    at: Addr,
    end: Addr,
    /// Bytes behind its block that may be granted as well, to a block that grows by small steps.
    ahead: usize,
    /// The window of an arena: never dropped with a block, and slower to trust.
    is_arena: bool,
}

impl Window {
    /// Scans memory without a lock; the result is dropped if the block is gone meanwhile. Returns the end of
    /// the memory that has proved dense, if it has moved.
    pub(crate) fn scan(&self) -> Option<Addr> {
        let mut proved = self.proved;
        for _ in 0..SCAN_MAX {
            let dense = if proved < self.at {
                is_written(proved)
            } else {
                proved < self.end && is_touched(Span::between(proved, self.end))
            };
            if !dense {
                break;
            }
            proved += HUGE;
        }
        if proved == self.proved && self.at < self.end && is_touched(self.ungranted()) {
            // The contents say nothing (a program that writes zeros), the pages behind the window do.
            proved = self.at + HUGE;
        }
        let proved = proved.min(self.end);
        (proved > self.proved).then_some(proved)
    }

    fn new(start: Addr, end: Addr) -> Window {
        Window { start, proved: start, at: start, end, ahead: 0, is_arena: false }
    }

    fn unproved(&self) -> usize {
        Span::between(self.proved, self.at).bytes
    }

    fn granted(&self) -> Span {
        Span::between(self.start, self.at)
    }

    fn ungranted(&self) -> Span {
        Span::between(self.at, self.end)
    }

    /// True for the window of `block`.
    fn is_of(&self, block: Span) -> bool {
        !self.is_arena && block.contains(self.start)
    }

    pub(crate) fn is_arena(&self) -> bool {
        self.is_arena
    }

    /// True for a block's window with more to grant.
    pub(crate) fn is_open_block(&self) -> bool {
        !self.is_arena && self.at < self.end
    }
}

/// True if a huge page is there and has contents in most places.
fn is_written(start: Addr) -> bool {
    map::is_resident(start) == Some(true)
        && map::written_samples(start).is_some_and(|written| written >= WRITTEN_SAMPLES)
}

/// True if enough base pages of the first huge page's worth of `rest` are there, close to each other.
fn is_touched(rest: Span) -> bool {
    let [probe, _] = rest.split_at(HUGE);
    let least = PROBE_PAGES.min(probe.page_count().get());
    let is_dense = |touched: usize, spread: usize| touched >= least && touched * PROBE_SPREAD >= spread;
    map::residency(probe).is_some_and(|found| is_dense(found.pages, found.spread)) && {
        // The shared page of zeros, which a read maps, is no touch.
        let (mut touched, mut reach) = (0, Span::EMPTY);
        let scanned = PageMap::open().and_then(|map| {
            map.for_each(probe, |page, entry| {
                if entry.is_own() {
                    let start = if touched == 0 { page } else { reach.start };
                    reach = Span::between(start, page + PAGE);
                    touched += 1;
                }
                true
            })
        });
        scanned.is_err() || is_dense(touched, reach.page_count().get())
    }
}

pub(crate) struct Windows {
    list: [Option<Window>; WINDOWS_MAX],
    proved: usize,
    price: Price,
    /// The arena's last grant, until its price is measured.
    untried: Option<Span>,
}

impl Windows {
    pub(crate) const fn new() -> Windows {
        Windows { list: [None; WINDOWS_MAX], proved: 0, price: Price::new(), untried: None }
    }

    fn unproved(&self) -> usize {
        self.list.iter().flatten().filter(|window| !window.is_arena).map(Window::unproved).sum()
    }

    fn allowance(&self) -> usize {
        (GRACE + self.proved / TRUST).saturating_sub(self.unproved())
    }

    /// True if the price allows huge pages at all.
    pub(crate) fn can_grant(&mut self) -> bool {
        self.price.limit(self.proved) > 0
    }

    /// True if granted huge pages must show that they are cheap.
    pub(crate) fn is_tried(&mut self) -> bool {
        self.price.is_tried()
    }

    /// The part of what the arena was granted last that has to show its price, now that `taken` memory
    /// reaches it. An earlier trial would fill memory that nobody takes.
    pub(crate) fn arena_trial(&mut self, taken: Span) -> Option<Span> {
        let granted = self.untried.filter(|granted| !taken.is_empty() && taken.end() > granted.start)?;
        self.untried = None;
        granted.from(taken.start).non_empty()
    }

    /// A huge page that was tried took `ns` of processor time. Returns true if that was too much.
    pub(crate) fn paid(&mut self, ns: u64) -> bool {
        self.price.paid(ns, self.proved)
    }

    /// Sets up the window of an arena, whose memory is handed out from the low end.
    pub(crate) fn watch_arena(&mut self, arena: Span) {
        let huge = arena.whole(HUGE);
        if let Some(place) = self.list.iter_mut().find(|place| place.is_none() && !huge.is_empty()) {
            *place = Some(Window { is_arena: true, ..Window::new(huge.start, huge.end()) });
        }
    }

    pub(crate) fn arena_granted(&self) -> Option<Span> {
        self.list.iter().flatten().find(|window| window.is_arena).map(Window::granted)
    }

    #[cfg(test)]
    pub(crate) fn grant_arena_for_test(&mut self, end: Addr) {
        for window in self.list.iter_mut().flatten().filter(|window| window.is_arena) {
            self.proved += Span::between(window.proved, end).bytes;
            window.proved = window.proved.max(end);
            window.at = window.at.max(end);
        }
    }

    /// Moves an arena's window back to its beginning, when its memory has become sparse. Returns the memory
    /// that loses its huge pages: otherwise the kernel would fill its holes in time.
    pub(crate) fn withdraw_arena(&mut self) -> Option<Span> {
        let is_granted = |window: &&mut Window| window.is_arena && window.at > window.start;
        let window = self.list.iter_mut().flatten().find(is_granted)?;
        let granted = window.granted();
        self.proved -= window.proved - window.start;
        (window.proved, window.at) = (window.start, window.start);
        self.untried = None;
        Some(granted)
    }

    /// The part of a cold `block` that gets huge pages at once. The rest follows as the window moves.
    pub(crate) fn watch_block(&mut self, block: Span) -> Option<Span> {
        let start = block.start.round_up(HUGE);
        let tail = block.end() - block.end().round_down(HUGE);
        let end = if tail >= TAIL_MIN { block.end().round_up(HUGE) } else { block.end().round_down(HUGE) };
        if start >= end {
            return None;
        }
        if self.allowance() < (end - start).min(GRACE) {
            // Older grants may have proved themselves meanwhile.
            for index in 0..WINDOWS_MAX {
                if let Some(window) = self.list[index]
                    && window.at == window.end
                    && let Some(proved) = window.scan()
                {
                    self.advance(index, &window, proved);
                }
            }
        }
        let place = self.list.iter().position(Option::is_none)?;
        let affordable = self.allowance().min(self.price.limit(self.proved));
        let window = round_down(affordable, HUGE).min(GRACE).min(end - start);
        self.list[place] = Some(Window { at: start + window, ..Window::new(start, end) });
        Span::new(start, window).non_empty()
    }

    /// Grants all of `block` that has no huge pages yet, without proof; `None` if that is nothing.
    pub(crate) fn grant_all(&mut self, block: Span) -> Option<Span> {
        let own = self.list.iter_mut().find(|window| window.is_some_and(|window| window.is_of(block)))?;
        own.take()?.ungranted().non_empty()
    }

    pub(crate) fn drop_within(&mut self, gone: Span) {
        for slot in &mut self.list {
            if slot.is_some_and(|window| window.is_of(gone)) {
                *slot = None;
            }
        }
    }

    /// `block` has grown to this: its window, if it still has one, has more to grant.
    pub(crate) fn extend(&mut self, block: Span) -> bool {
        let own = self.list.iter_mut().flatten().find(|window| window.is_of(block));
        if let Some(window) = own {
            window.end = window.end.max((block.end() + window.ahead).round_down(HUGE));
            return true;
        }
        false
    }

    /// Sets a window where a block that grew by small steps became cold, without a grant before a touch.
    pub(crate) fn watch_growth(&mut self, block: Span, cold_from: Addr) -> bool {
        let start = cold_from.round_down(HUGE);
        if start < block.start || block.bytes < HUGE {
            return false;
        }
        let Some(place) = self.list.iter_mut().find(|place| place.is_none()) else { return false };
        let end = (block.end() + GRACE).round_down(HUGE);
        *place = Some(Window { ahead: GRACE, ..Window::new(start, end) });
        true
    }

    /// True if `taken` memory of an arena reaches its window, or comes near.
    pub(crate) fn is_near_arena_window(&self, taken: Span) -> bool {
        self.list
            .iter()
            .flatten()
            .any(|window| window.is_arena && taken.end() + HUGE > window.at && taken.start < window.end)
    }

    /// The window for the memory before the end of `block`, if it is near: the block's or its arena's.
    pub(crate) fn near(&self, block: Span) -> Option<(usize, Window)> {
        let mut all = self.list.iter().enumerate();
        all.find_map(|(index, window)| {
            let window = (*window)?;
            let is_inside = window.start <= block.start && block.end() <= window.end;
            let covers = if window.is_arena { is_inside } else { window.is_of(block) };
            (covers && block.end() + HUGE > window.at).then_some((index, window))
        })
    }

    /// Copies the windows there are, with their places, to be scanned without the lock. Returns their number.
    pub(crate) fn snapshot(&self, into: &mut [Option<Window>; WINDOWS_MAX]) -> usize {
        *into = self.list;
        self.list.iter().flatten().count()
    }

    /// Moves the window at `index`, if it is still `seen`, whose block has proved dense up to `proved`.
    /// Returns the memory to give huge pages.
    pub(crate) fn advance(&mut self, index: usize, seen: &Window, proved: Addr) -> Option<Span> {
        let window = self.list[index].as_mut().filter(|window| *window == seen)?;
        self.proved += proved - window.proved;
        window.proved = proved;
        let least = match proved - window.start {
            ..ARENA_FROM if window.is_arena => 0,
            _ if window.is_arena => ARENA_WINDOW,
            SETTLED.. => SETTLED_WINDOW,
            _ => GRACE,
        };
        let length = round_down((proved - window.start) / TRUST, HUGE).max(least);
        let length = length.min(self.price.limit(self.proved));
        let granted = Span::between(window.at.max(proved), (proved + length).clamp(window.at, window.end));
        window.at = granted.end();
        let is_arena = window.is_arena;
        if proved >= window.end {
            self.list[index] = None;
        }
        let granted = granted.non_empty();
        if is_arena && granted.is_some() && self.price.is_tried() {
            self.untried = granted;
        }
        granted
    }
}

pub(crate) type Snapshot = [Option<Window>; WINDOWS_MAX];
pub(crate) const NO_WINDOWS: Snapshot = [None; WINDOWS_MAX];

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Addr = Addr::new(1 << 40);
    const BLOCK: Span = Span::new(BASE, 64 << 20);

    /// Windows of a machine whose free memory is its own.
    fn trusting() -> Windows {
        let mut windows = Windows::new();
        windows.price.trust_for_test();
        windows
    }

    fn window_of(windows: &Windows, index: usize) -> Window {
        windows.list[index].expect("a window")
    }

    #[test]
    fn the_first_blocks_share_the_grace() {
        let mut windows = trusting();
        let block = |index: usize| Span::new(BASE + (index << 30), 1 << 29);
        let first = windows.watch_block(block(0)).expect("the grace");
        assert_eq!(first.bytes, GRACE);
        // These blocks are not mapped, so nothing can have proved itself.
        assert_eq!(windows.watch_block(block(1)), None);
        windows.drop_within(block(0));
        assert!(windows.watch_block(block(2)).is_some());
    }

    #[test]
    fn proof_moves_a_window_to_its_end() {
        let mut windows = trusting();
        windows.watch_block(BLOCK);
        let mut granted = GRACE;
        while let Some(window) = windows.list[0] {
            if let Some(more) = windows.advance(0, &window, window.proved + HUGE) {
                assert_eq!(more.start, window.at);
                granted += more.bytes;
            }
            let ahead = windows.list[0].map_or(0, |window| window.unproved());
            assert!(ahead <= SETTLED_WINDOW);
        }
        assert_eq!(granted, 64 << 20);
        assert_eq!(windows.proved, 64 << 20);
    }

    #[test]
    fn an_overtaken_window_jumps_and_stale_scans_change_nothing() {
        let mut windows = trusting();
        windows.watch_block(BLOCK);
        let seen = window_of(&windows, 0);
        let more = windows.advance(0, &seen, BASE + GRACE + HUGE).expect("a window");
        assert_eq!(more.start, BASE + GRACE + HUGE);
        assert_eq!(windows.advance(0, &seen, BASE + GRACE + 2 * HUGE), None);
        assert_eq!(windows.unproved(), more.bytes);
    }

    #[test]
    fn an_arena_grants_nothing_before_much_has_proved_dense() {
        let mut windows = trusting();
        windows.watch_arena(Span::new(BASE, 1 << 30));
        for proved in 1..8 {
            let seen = window_of(&windows, 0);
            let granted = windows.advance(0, &seen, BASE + proved * HUGE);
            let expected = Span::new(BASE + proved * HUGE, HUGE);
            assert_eq!(granted, (proved * HUGE >= ARENA_FROM).then_some(expected), "{proved}");
        }
    }

    #[test]
    fn small_tails_stay_base_pages() {
        let mut windows = trusting();
        let got = windows.watch_block(Span::new(BASE, HUGE + HUGE / 2)).expect("one huge page");
        assert_eq!(got, Span::new(BASE, HUGE));
        assert_eq!(windows.watch_block(Span::new(BASE + PAGE, HUGE - PAGE)), None);
    }

    #[test]
    fn where_free_memory_is_lent_out_nothing_is_granted_on_trust() {
        let mut windows = Windows::new();
        windows.price.try_for_test();
        assert_eq!(windows.watch_block(BLOCK), None);
        let (mut granted, mut first) = (0, None);
        for proved in 1.. {
            let Some(window) = windows.list[0] else { break };
            if let Some(more) = windows.advance(0, &window, (BASE + proved * HUGE).min(BLOCK.end())) {
                granted += more.bytes;
                first.get_or_insert(proved * HUGE);
                assert!(!windows.paid(0));
            }
        }
        assert_eq!(first, Some(16 << 20));
        assert_eq!(granted, 48 << 20);
    }

    #[test]
    fn an_arena_is_tried_where_its_memory_is_taken() {
        let mut windows = Windows::new();
        windows.price.try_for_test();
        windows.watch_arena(Span::new(BASE, 1 << 30));
        let proved = BASE + (16 << 20);
        let seen = window_of(&windows, 0);
        let range = windows.advance(0, &seen, proved).expect("a grant");
        assert_eq!(range.start, proved);
        let taken = |from: usize, to: usize| Span::between(proved + from - PAGE, proved + to - PAGE);
        assert_eq!(windows.arena_trial(taken(0, PAGE)), None, "memory before it");
        let trial = windows.arena_trial(taken(PAGE * 3, PAGE * 9)).expect("memory in it");
        assert_eq!(trial, range.from(proved + 2 * PAGE));
        assert_eq!(windows.arena_trial(taken(PAGE * 9, PAGE * 12)), None, "once");
    }
}
