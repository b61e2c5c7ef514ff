//! The discard modes: when the kernel receives advice on pages whose contents nobody needs, and which advice.
//!
//! A page is *discardable* if its contents are not needed. It is a free page of the cache, or it is in a
//! block whose owner, a collector, has declared the page empty (*vacated* it). The source (Cooper, Nettles
//! and Subramanian 1992, section 4) tried several kinds of advice on such pages. Each is a mode here, with
//! the kernel's own paging:
//!
//! | mode | the source's | marked (`MADV_FREE`) | flushed (`MADV_DONTNEED`) |
//! | --- | --- | --- | --- |
//! | `none` | no pager (NP) | never | never |
//! | `marks` | pager only (PO) | at once | never |
//! | `pager` | pager-initiated flushing (PP) | at once | when memory is short |
//! | `user` | user-initiated flushing (PU) | at once | after a major collection |
//! | `flush_only` | the simpler interface of section 6 | never | after a major collection |
//! | `auto` | | while memory is short | while memory is short, if that is cheaper; and by the rules in `release` |
//!
//! *Cheaper*: a mark costs next to nothing if the page is used again before the kernel takes its frame, but
//! the kernel chooses which pages it takes. A flushed page never displaces a needed page, but costs a frame
//! filled with zeros when it is used again. Discardable pages are flushed if bringing back a needed page
//! costs many times as much as filling a frame (from a disk), and marked if it costs little (from compressed
//! memory). The cost of filling a frame is measured here, once. The cost of bringing a page back is measured
//! by its first user, and recorded ([`Pages::note_refault`]).
//!
//! Departure: the source kept the free region non-discardable, since the first use of each page would have
//! trapped. Here the first write makes a page needed again.
//!
//! # Invariants
//! * Vacated memory is flushed only under the lock of its list (`vacant`), and [`Pages::occupy`] takes that
//!   lock: memory that an owner has taken back is never flushed.
//! * A thread that holds the list's lock waits for no other lock of this layer. Otherwise a collector that
//!   has stopped all threads, among them a holder of such a lock, could not take memory back.
//! * Memory that another layer pages ([`Elsewhere`]) is marked and flushed by that layer alone.

use crate::config::Discard;
use crate::pages::Pages;
use crate::reason::Reason;
use crate::state::KEPT;
use crate::tag::Kind;
use crate::units::PAGE;
use crate::vacant::Vacant;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use vellum_sys::lock::Guarded;
use vellum_sys::{Addr, Span, clock, map};
use vellum_wire::Counter;

/// A layer that pages memory itself: the functions of `vellum-pager` to notify of vacated memory.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere {
    /// True for an address of this layer.
    pub owns: fn(Addr) -> bool,
    /// Pages are not needed: their frames go before any others.
    pub mark: unsafe fn(Span),
    /// Pages are not needed, and their frames are free at once.
    pub flush: unsafe fn(Span),
    /// They are needed again.
    pub need: fn(Span),
}

/// Bytes flushed in one call: while it lasts, a thread that takes memory back waits.
const FLUSH_BYTES: usize = 4 << 20;
/// The inverse of the chance that the kernel takes a needed page although there are discardable ones.
const WRONG_CHOICE: u64 = 16;
/// The cost of bringing a page back until one was measured, in nanoseconds: a fast disk.
const REFAULT_NS: u64 = 100_000;
/// The cost of a frame filled with zeros where that cannot be measured.
const FILL_NS: u64 = 1500;
const FILL_PAGES: usize = 64;

/// Vacated memory, and the costs by which its treatment is chosen.
pub(crate) struct Vacated {
    runs: Guarded<Vacant>,
    /// True if there are runs: threads that take memory back skip an empty list.
    any: AtomicBool,
    /// Null, or a layer that lives for ever.
    elsewhere: AtomicPtr<Elsewhere>,
    refault_ns: AtomicU64,
    fill_ns: AtomicU64,
}

impl Vacated {
    pub(crate) const fn new() -> Vacated {
        Vacated {
            runs: Guarded::new(Vacant::new()),
            any: AtomicBool::new(false),
            elsewhere: AtomicPtr::new(core::ptr::null_mut()),
            refault_ns: AtomicU64::new(REFAULT_NS),
            fill_ns: AtomicU64::new(0),
        }
    }

    /// In a forked child, where the lock's holder does not exist: drops the list, which may be half written.
    /// Vacated memory stays vacated there, but is not flushed.
    pub(crate) fn reset_after_fork(&self) {
        self.runs.raw().reset_after_fork();
        *self.runs.lock() = Vacant::new();
        self.any.store(false, Ordering::Relaxed);
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// The layer that pages the memory at `place`, if one does.
    fn layer_of(&self, place: Span) -> Option<&'static Elsewhere> {
        // SAFETY: null, or what `discards_elsewhere` was given, which lives for ever.
        unsafe { self.elsewhere.load(Ordering::Acquire).as_ref() }.filter(|layer| (layer.owns)(place.start))
    }

    /// The nanoseconds that it costs to fill a frame with zeros and to give it back: measured once.
    fn fill_ns(&self) -> u64 {
        let known = self.fill_ns.load(Ordering::Relaxed);
        if known != 0 {
            return known;
        }
        let measured = measure_fill().map_or(FILL_NS, |ns| ns.max(1));
        self.fill_ns.store(measured, Ordering::Relaxed);
        measured
    }
}

/// True if flushing is cheaper than marking, by the costs of filling a frame and of bringing a page back.
fn is_flush_cheaper(fill_ns: u64, refault_ns: u64) -> bool {
    fill_ns < refault_ns / WRONG_CHOICE
}

fn measure_fill() -> Option<u64> {
    let span = map::reserve_writable(FILL_PAGES * PAGE).ok()?;
    let before = clock::now_ns();
    // SAFETY: the span was mapped by this function, which alone has its address.
    let took = unsafe {
        span.pages().for_each(|page| page.ptr::<u8>().write_volatile(1));
        let _ = map::flush(span);
        let took = clock::now_ns() - before;
        let _ = map::release(span);
        took
    };
    Some(took / FILL_PAGES as u64)
}

impl Pages {
    /// The mode of advice on pages that nobody needs.
    pub fn discard_mode(&self) -> Discard {
        self.state.lock().config.discard
    }

    /// True if the cache decays, by the mode.
    pub fn decays(&self) -> bool {
        self.state.lock().decays()
    }

    /// Notifies `layer` of vacated memory that it pages itself.
    pub fn discards_elsewhere(&self, layer: &'static Elsewhere) {
        self.vacated.elsewhere.store(core::ptr::from_ref(layer).cast_mut(), Ordering::Release);
    }

    /// Records that bringing a page back took `ns` nanoseconds.
    pub fn note_refault(&self, ns: u64) {
        self.vacated.refault_ns.store(ns, Ordering::Relaxed);
    }

    /// Declares that nobody needs the contents of the whole pages in `memory` until [`Pages::occupy`]. They
    /// may be lost at any time from now on: reads there may return old data, new data or zeros.
    ///
    /// # Safety
    /// This is private anonymous memory, or another layer's ([`Elsewhere`]), that only the caller uses.
    pub unsafe fn vacate(&self, memory: Span) {
        let run = memory.whole(PAGE);
        let (mode, still) = {
            let state = self.state.lock();
            (state.config.discard, state.still)
        };
        if run.is_empty() || mode == Discard::None || still {
            return;
        }
        if let Some(layer) = self.vacated.layer_of(run) {
            if mode != Discard::FlushOnly {
                // SAFETY: `# Safety` of this function: nobody else uses the memory.
                unsafe { (layer.mark)(run) };
            }
            if !mode.flushes_after_collections() {
                return;
            }
        } else if mode.marks_at_once() {
            // SAFETY: `# Safety` of this function: private memory of the caller's, not needed.
            if unsafe { map::discard(run) }.is_ok() {
                self.state.lock().count(Counter::BytesDiscarded, run.bytes as u64);
            }
        }
        if mode == Discard::Marks {
            return;
        }
        self.vacated.runs.lock().add(run);
        self.vacated.any.store(true, Ordering::Release);
        if mode.follows_pressure() {
            self.request_helper();
        }
    }

    /// Declares every page that `memory` touches needed again, before a write. The contents are undefined.
    pub fn occupy(&self, memory: Span) {
        let run = memory.touched(PAGE);
        if self.vacated.any.load(Ordering::Acquire) {
            let mut vacant = self.vacated.runs.lock();
            vacant.remove(run);
            self.vacated.any.store(!vacant.is_empty(), Ordering::Release);
        }
        if let Some(layer) = self.vacated.layer_of(memory) {
            (layer.need)(run);
        }
    }

    /// Reports that a major collection has ended, and that all memory it vacated has been reported. By the
    /// mode, discardable pages are flushed: the source's `FlushDiscardable`. `is_short` is whether the
    /// collector found memory short. Returns the bytes flushed.
    pub fn collected(&self, is_short: bool) -> usize {
        let mode = {
            let mut state = self.state.lock();
            state.has_collected = true;
            state.config.discard
        };
        match mode {
            mode if mode.flushes_after_collections() => self.flush_discardable(Reason::Asked),
            Discard::Auto if is_short => self.relieve(),
            _ => 0,
        }
    }

    /// True if pages could be flushed when memory is short.
    pub(crate) fn has_discardable(&self) -> bool {
        self.vacated.any()
            || self.discard_mode() == Discard::Pager && self.state.lock().free_pages(Kind::Marked) > 0
    }

    /// Flushes discardable pages, as the process's control group has run into its limit.
    pub(crate) fn flush_at_limit(&self) {
        match self.discard_mode() {
            Discard::Pager => {
                self.flush_discardable(Reason::Pressure);
            }
            // What is marked the kernel takes by itself.
            Discard::Auto => {
                self.flush_some(Kind::Warm, u64::MAX, Reason::Pressure);
                self.flush_vacant(Reason::Pressure);
            }
            _ => {}
        }
    }

    /// Flushes or marks discardable pages, whichever is cheaper. Returns the bytes flushed.
    pub(crate) fn relieve(&self) -> usize {
        match self.discard_mode() {
            Discard::Pager => return self.flush_discardable(Reason::Pressure),
            Discard::Auto => {}
            _ => return 0,
        }
        if is_flush_cheaper(self.vacated.fill_ns(), self.vacated.refault_ns.load(Ordering::Relaxed)) {
            return self.flush_discardable(Reason::Pressure);
        }
        self.mark_some(u64::MAX);
        // SAFETY: nobody needs vacated memory.
        self.empty_vacant(|run| unsafe { map::discard(run) }.is_ok(), Counter::BytesDiscarded);
        0
    }

    /// Gives the frames of all that is discardable back; how many bytes of address space that was.
    pub(crate) fn flush_discardable(&self, reason: Reason) -> usize {
        let free: u64 = KEPT.into_iter().map(|kind| self.flush_some(kind, u64::MAX, reason)).sum();
        free as usize * PAGE + self.flush_vacant(reason)
    }

    fn flush_vacant(&self, reason: Reason) -> usize {
        // SAFETY: nobody needs vacated memory.
        self.empty_vacant(|run| unsafe { map::flush(run) }.is_ok(), reason.counter())
    }

    /// Does `way` with all that is vacated, which is on the list no more then, and counts it. Returns how
    /// many bytes that was. A piece at a time: threads that take memory back wait.
    fn empty_vacant(&self, way: impl Fn(Span) -> bool, counter: Counter) -> usize {
        let mut gone = 0;
        loop {
            let mut vacant = self.vacated.runs.lock();
            let Some(run) = vacant.take(FLUSH_BYTES) else {
                self.vacated.any.store(false, Ordering::Release);
                return gone;
            };
            let done = match self.vacated.layer_of(run) {
                Some(layer) => {
                    // SAFETY: vacated, and its owner cannot take it back while the list is locked.
                    unsafe { (layer.flush)(run) };
                    false
                }
                None => way(run),
            };
            drop(vacant);
            if done {
                gone += run.bytes;
                let mut state = self.state.lock();
                state.resident.shrink(run.page_count().get() as u64);
                state.count(counter, run.bytes as u64);
            }
        }
    }

    /// The treatment of this many free pages that have just been given back, for their mode's sake.
    pub(crate) fn mark_at_once(&self, mode: Discard) {
        if mode.marks_at_once() {
            self.mark_some(u64::MAX);
        }
    }

    #[cfg(test)]
    fn free_bytes(&self, kind: Kind) -> u64 {
        self.state.lock().free_pages(kind) * PAGE as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Request};
    use std::boxed::Box;
    use vellum_wire::Slot;

    const BYTES: usize = 8 << 20;

    fn layer(discard: Discard) -> Box<Pages> {
        let pages = Box::new(Pages::new());
        pages.configure(Config { discard, ..Config::DEFAULT });
        pages.attach_new_slot(Box::leak(Box::new(Slot::new())));
        pages
    }

    fn resident(block: Span) -> usize {
        let pieces = block.pieces(map::RESIDENCY_MAX * PAGE);
        pieces.map(|piece| map::residency(piece).expect("mincore").pages * PAGE).sum()
    }

    /// Kilobytes of a mapping that are lazily freed, by `/proc/self/smaps`.
    fn lazily_free(block: Span) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let mut sum = 0;
        for line in text.lines() {
            if let Some((range, _)) = line.split_once(' ')
                && let Some((from, to)) = range.split_once('-')
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                let mapping = Span::between(Addr::new(from), Addr::new(to));
                inside = !mapping.intersect(block).is_empty();
            } else if inside && let Some(kib) = line.strip_prefix("LazyFree:") {
                sum += kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
            }
        }
        sum
    }

    /// True if nearly all of it is. The kernel leaves out a page that it has just then in hand.
    fn is_marked(block: Span) -> bool {
        let bytes = lazily_free(block);
        assert!(bytes == 0 || bytes > BYTES / 16 * 15, "{bytes} bytes are marked");
        bytes > 0
    }

    /// A block of a new layer, written, and vacated.
    fn vacated(mode: Discard) -> (Box<Pages>, Span) {
        let pages = layer(mode);
        let extent =
            pages.alloc(Request { bytes: BYTES, align: map::RESIDENCY_MAX * PAGE, zero: false }).unwrap();
        // SAFETY: a block of this test alone.
        unsafe {
            extent.addr.write_bytes(7, BYTES);
            pages.vacate(extent.span());
        }
        (pages, extent.span())
    }

    fn counted(pages: &Pages) -> [u64; 3] {
        [Counter::BytesDiscarded, Counter::FlushedAsked, Counter::FlushedPressure]
            .map(|counter| pages.slot().get(counter))
    }

    /// Each mode treats vacated memory as specified at once, after a collection, and under pressure.
    #[test]
    fn vacated_memory_goes_as_its_mode_says() {
        const ALL: u64 = BYTES as u64;
        for (mode, marked, after_collection, under_pressure) in [
            (Discard::None, false, BYTES, BYTES),
            (Discard::Marks, true, BYTES, BYTES),
            (Discard::Pager, true, BYTES, 0),
            (Discard::User, true, 0, 0),
            (Discard::FlushOnly, false, 0, 0),
            (Discard::Auto, false, BYTES, 0),
        ] {
            let (pages, block) = vacated(mode);
            let before = counted(&pages);
            assert_eq!(resident(block), BYTES, "{mode:?}");
            assert_eq!(is_marked(block), marked, "{mode:?}");
            pages.collected(false);
            assert_eq!(resident(block), after_collection, "{mode:?}");
            pages.flush_at_limit();
            assert_eq!(resident(block), under_pressure, "{mode:?}");
            let counts = counted(&pages);
            let flushed = counts[1] + counts[2] - before[1] - before[2];
            assert_eq!(flushed, ALL - under_pressure as u64, "{mode:?}");
            assert!(!pages.vacated.any(), "{mode:?}");
        }
    }

    #[test]
    fn what_is_taken_back_is_not_flushed() {
        for mode in [Discard::Pager, Discard::User, Discard::FlushOnly, Discard::Auto] {
            let (pages, block) = vacated(mode);
            let mine = Span::new(block.start + BYTES / 4, BYTES / 2);
            pages.occupy(mine);
            // SAFETY: a part of the block, taken back.
            unsafe { mine.start.ptr::<u8>().write_bytes(9, mine.bytes) };
            pages.collected(false);
            pages.flush_discardable(Reason::Pressure);
            assert_eq!(resident(block), mine.bytes, "{mode:?}");
            // SAFETY: the part of this test's block that it has just written.
            let kept = unsafe { core::slice::from_raw_parts(mine.start.ptr::<u8>(), mine.bytes) };
            assert!(kept.iter().all(|&byte| byte == 9), "{mode:?}");
        }
    }

    #[test]
    fn free_pages_of_the_cache_go_as_their_mode_says() {
        for (mode, kept, marked, after_collection) in [
            (Discard::None, BYTES, 0, BYTES),
            (Discard::Marks, 0, BYTES, BYTES),
            (Discard::Pager, 0, BYTES, BYTES),
            (Discard::User, 0, BYTES, 0),
            (Discard::FlushOnly, BYTES, 0, 0),
            (Discard::Auto, BYTES, 0, BYTES),
        ] {
            let pages = layer(mode);
            let extent = pages.alloc(Request { bytes: BYTES, align: PAGE, zero: false }).unwrap();
            // SAFETY: a block of this test alone, given back.
            unsafe {
                extent.addr.write_bytes(7, BYTES);
                pages.free(extent.addr).unwrap();
            }
            let free = |kind| pages.free_bytes(kind) as usize;
            assert_eq!([free(Kind::Warm), free(Kind::Marked)], [kept, marked], "{mode:?}");
            pages.collected(false);
            assert_eq!(free(Kind::Warm) + free(Kind::Marked), after_collection, "{mode:?}");
            for _ in 0..8 {
                pages.decay();
            }
            let left = if pages.decays() { 0 } else { after_collection };
            assert_eq!(free(Kind::Warm) + free(Kind::Marked), left, "{mode:?}");
        }
        let decaying = Discard::NAMES.map(|(_, mode)| mode).into_iter().filter(|mode| mode.decays(false));
        assert_eq!(
            decaying.collect::<std::vec::Vec<_>>(),
            [Discard::Auto, Discard::User, Discard::FlushOnly]
        );
    }

    #[test]
    fn the_cheaper_way_is_chosen() {
        assert!(is_flush_cheaper(1500, 100_000), "a disk");
        assert!(!is_flush_cheaper(1500, 4000), "compressed memory");
        let (pages, block) = vacated(Discard::Auto);
        assert!(pages.vacated.fill_ns() > 0);
        pages.note_refault(1);
        assert_eq!(pages.collected(true), 0);
        assert_eq!((resident(block), is_marked(block)), (BYTES, true));
        assert!(!pages.vacated.any(), "what is marked the kernel takes by itself");
        let (pages, block) = vacated(Discard::Auto);
        pages.note_refault(u64::MAX);
        assert_eq!(pages.collected(true), BYTES);
        assert_eq!(resident(block), 0, "flushed");
    }
}
