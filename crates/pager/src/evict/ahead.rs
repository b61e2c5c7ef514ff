//! Reads pages of the store before the program touches them.
//!
//! The kernel's own readahead is off (`MADV_RANDOM`), because its folios of many pages stay in memory while
//! any page of the folio is used. This file searches for streams instead. A *stream* is a run of neighbouring
//! pages that came into memory between two searches, each by a separate fault. The pages that follow a stream
//! are read some at a time, and more at a time while the program reaches the pages read.
//!
//! After a search without a result the next search is delayed, so random access costs little.

use super::{Evictor, in_store};
use crate::units::{PAGE, STEP};
use vellum_sys::pagemap::PageMap;
use vellum_sys::{Addr, Span};

/// Neighbours that have arrived together make a stream: at random that many hardly come.
const RUN: u32 = 8;
const STREAMS: usize = 8;
const WINDOW_MIN: u32 = 8;
const WINDOW_MAX: u32 = 256;
/// The part of the frames that a window may take.
const PART: u32 = 16;
/// Arrivals between two searches, at least and at most.
const GAP_MIN: u32 = 32;
const GAP_MAX: u32 = 2048;
/// Looks without progress after which a stream has ended.
const PATIENCE: u32 = 64;

/// A program that goes through memory in order.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The page behind those that were read ahead, and their number.
    next: u32,
    window: u32,
    waited: u32,
}

/// The known streams, and when to search for more.
#[derive(Debug)]
pub(super) struct Ahead {
    streams: [Option<Stream>; STREAMS],
    arrived: u32,
    gap: u32,
    pages: Option<PageMap>,
}

impl Ahead {
    pub(super) fn new() -> Ahead {
        Ahead { streams: [None; STREAMS], arrived: 0, gap: GAP_MIN, pages: PageMap::open().ok() }
    }

    /// True if the program has reached `page`. False if that cannot be found out: then no stream goes on.
    fn has_reached(&self, page: Addr) -> bool {
        let mut is_mapped = false;
        if let Some(pages) = &self.pages {
            let _ = pages.for_each(Span::new(page, PAGE), |_, entry| {
                is_mapped = entry.is_there();
                false
            });
        }
        is_mapped
    }
}

impl Evictor {
    /// Reads ahead of the known streams, and searches for more if enough has arrived.
    pub(super) fn read_ahead(&mut self, arrived: u32) {
        for index in 0..STREAMS {
            let Some(mut stream) = self.ahead.streams[index] else { continue };
            // Half way through the last window.
            let mark = stream.next - (stream.window / 2).max(1);
            if self.ahead.has_reached(self.pager.address(mark)) {
                stream.window = (stream.window * 2).min(self.window_max());
                self.ahead.streams[index] = self.extend(stream);
                continue;
            }
            stream.waited += 1;
            self.ahead.streams[index] = (stream.waited < PATIENCE).then_some(stream);
        }
        self.ahead.arrived = self.ahead.arrived.saturating_add(arrived);
        if self.ahead.arrived >= self.ahead.gap {
            // A stream has a good part of what arrived in one place; random arrivals are spread out.
            let part = (self.ahead.arrived / (2 * STREAMS as u32)).max(RUN);
            self.ahead.arrived = 0;
            let found = self.search(part);
            let most = GAP_MAX.max(self.places * 8);
            self.ahead.gap = if found { GAP_MIN } else { (self.ahead.gap * 2).min(most) };
        }
    }

    fn window_max(&self) -> u32 {
        (self.frames / PART).min(WINDOW_MAX)
    }

    /// Looks at the steps where at least `part` pages have come; whether a stream was found.
    pub(super) fn search(&mut self, part: u32) -> bool {
        let mut is_found = false;
        for place in 0..self.places {
            let step = self.step_at(place);
            let (first, end) = (step * STEP, (step + 1) * STEP);
            if self.count_step(step) < self.pager.tables().cached().count(first, end) + part {
                continue;
            }
            let (_, newly) = self.scan_step(step);
            let is_new = |page: u32| newly[(page / u64::BITS) as usize] >> (page % u64::BITS) & 1 != 0;
            let mut run = 0;
            for page in 0..STEP {
                run = if is_new(page) { run + 1 } else { 0 };
                if run >= RUN && (page + 1 == STEP || !is_new(page + 1)) {
                    is_found |= self.found(first + page + 1);
                }
            }
        }
        is_found
    }

    /// A run has ended before page `next`: whether it goes on in the store.
    fn found(&mut self, next: u32) -> bool {
        let is_known = |stream: &Stream| stream.next >= next && stream.next - next <= 2 * WINDOW_MAX;
        if self.ahead.streams.iter().flatten().any(is_known) {
            return true;
        }
        let window = WINDOW_MIN.min(self.window_max());
        let Some(stream) = self.extend(Stream { next, window, waited: 0 }) else { return false };
        // The one that has waited longest makes room.
        let waited = |stream: &Option<Stream>| stream.map_or(u32::MAX, |stream| stream.waited);
        if let Some(place) = self.ahead.streams.iter_mut().max_by_key(|stream| waited(stream)) {
            *place = Some(stream);
        }
        true
    }

    /// Reads the next window of a stream; `None` if nothing in the store follows.
    fn extend(&mut self, stream: Stream) -> Option<Stream> {
        let Stream { next, window, .. } = stream;
        let end = (next + window).min((next / STEP + 1) * STEP).min(self.pager.high());
        if next >= end || !self.pager.tables().contents().has(next) {
            return None;
        }
        self.store.read_ahead(in_store(self.pager, next), end - next);
        self.level += end - next;
        Some(Stream { next: end, window: end - next, waited: 0 })
    }
}
