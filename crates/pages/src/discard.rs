//! Advice to the kernel on pages that nobody needs, and when it is given: the discard modes.
//!
//! A page is *discardable* if its contents are not needed: a free page of the cache, or a run of memory in
//! use that its owner, a collector, has *vacated* until it says otherwise. The source (Cooper, Nettles and
//! Subramanian 1992, section 4) tried what may be said of such pages; each of its settings is a mode here,
//! over the kernel's own paging:
//!
//! | mode | the source's | marked (`MADV_FREE`) | flushed (`MADV_DONTNEED`) |
//! | --- | --- | --- | --- |
//! | `none` | no pager (NP) | never | never |
//! | `marks` | pager only (PO) | at once | never |
//! | `pager` | pager-initiated flushing (PP) | at once | when memory is short |
//! | `user` | user-initiated flushing (PU) | at once | after a major collection |
//! | `flush_only` | the simpler interface of section 6 | never | after a major collection |
//! | `auto` | | while memory is short | while memory is short, if that is cheaper; and as `release` says |
//!
//! *Cheaper*: a mark costs next to nothing if the page is used again before the kernel wants its frame, and
//! leaves to the kernel which page goes first; a flushed page never makes a needed one go, and costs a frame
//! filled with zeros when it is used again. So where bringing a needed page back costs many times that (a
//! disk), discardable pages are flushed, and where it costs little (compressed memory), they are marked. The
//! one is measured here, once; the other by its first user, and recorded ([`Pages::note_refault`]).
//!
//! Departure: there the free region had to be kept non-discardable, as saying otherwise for each page would
//! trap. Here the first write does it.
//!
//! # Invariants
//! * What is vacated is flushed only under the list's lock, and [`Pages::occupy`] takes it: what an owner has
//!   taken back is its own.
//! * No other lock of this layer is waited for with the list's held: a thread that has stopped the world, and
//!   may have stopped one that has such a lock, can take memory back.
//! * Memory that another layer pages ([`Elsewhere`]) is that layer's to mark and to flush.

use crate::pages::Pages;
use crate::release::Reason;
use crate::state::KEPT;
use crate::tag::Kind;
use crate::units::{PAGE, round_down, round_up};
use crate::vacant::{Run, Vacant};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use vellum_sys::lock::Guarded;
use vellum_sys::{clock, map};
use vellum_wire::Counter;

/// Advice to the kernel on pages that nobody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Discard {
    /// Whatever is cheapest.
    #[default]
    Auto,
    /// Nothing (the source's NP).
    None,
    /// That they are not needed (PO).
    Marks,
    /// The same, and they are flushed when memory is short (PP).
    Pager,
    /// The same, and they are flushed after a major collection (PU).
    User,
    /// They are flushed after a major collection, and nothing is said before.
    FlushOnly,
}

impl Discard {
    /// The names by which users choose.
    pub const NAMES: [(&'static str, Discard); 6] = [
        ("auto", Discard::Auto),
        ("none", Discard::None),
        ("marks", Discard::Marks),
        ("pager", Discard::Pager),
        ("user", Discard::User),
        ("flush_only", Discard::FlushOnly),
    ];

    /// The mode called `name`.
    pub fn by_name(name: &[u8]) -> Option<Discard> {
        Discard::NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|&(_, mode)| mode)
    }

    /// Whether pages are marked as soon as nobody needs them.
    fn marks_at_once(self) -> bool {
        matches!(self, Discard::Marks | Discard::Pager | Discard::User)
    }

    /// Whether a major collection is followed by a flush.
    fn flushes_after_collections(self) -> bool {
        matches!(self, Discard::User | Discard::FlushOnly)
    }

    /// Whether memory that is short, or a limit that is near, makes pages go.
    pub(crate) fn heeds_pressure(self) -> bool {
        matches!(self, Discard::Auto | Discard::Pager)
    }

    /// Whether the cache decays and keeps to the peak: the rules of `release`. Of the source's modes, those
    /// that flush after collections do so by these where nothing is collected.
    pub fn decays(self) -> bool {
        self == Discard::Auto || self.flushes_after_collections() && !COLLECTS.load(Ordering::Relaxed)
    }
}

/// A layer that pages memory itself, outside the page layer's span: its notifications, by start and bytes.
/// See `vellum-pager`, whose functions these are.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere {
    /// Whether an address is its.
    pub owns: fn(usize) -> bool,
    /// Pages are not needed: their frames go before any others.
    pub mark: unsafe fn(usize, usize),
    /// The same, and their frames are free at once.
    pub flush: unsafe fn(usize, usize),
    /// They are needed again.
    pub need: fn(usize, usize),
}

/// Bytes flushed in one call: while it lasts, a thread that takes memory back waits.
const FLUSH_BYTES: usize = 4 << 20;
/// The inverse of the chance that the kernel takes a needed page although there are discardable ones.
const WRONG_CHOICE: u64 = 16;
/// What bringing a page back costs until somebody has met it, in nanoseconds: a fast disk.
const REFAULT_NS: u64 = 100_000;
/// What a frame filled with zeros costs where that cannot be measured.
const FILL_NS: u64 = 1500;
/// Pages with which it is measured.
const FILL_PAGES: usize = 64;

static VACANT: Guarded<Vacant> = Guarded::new(Vacant::new());
/// Whether there are vacated runs, for threads that take memory back and would find none.
static ANY: AtomicBool = AtomicBool::new(false);
/// Whether there has been a major collection.
static COLLECTS: AtomicBool = AtomicBool::new(false);
static ELSEWHERE: AtomicPtr<Elsewhere> = AtomicPtr::new(core::ptr::null_mut());
static REFAULT: AtomicU64 = AtomicU64::new(REFAULT_NS);
/// 0 until measured.
static FILL: AtomicU64 = AtomicU64::new(0);

/// In a forked child: the holder of the lock does not exist there. Vacated memory is vacated there, too, but
/// the list may be half written.
pub(crate) fn reset_after_fork() {
    VACANT.raw().reset_after_fork();
    *VACANT.lock() = Vacant::new();
    ANY.store(false, Ordering::Relaxed);
}

/// Whether there is something to flush when memory is short.
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

fn elsewhere(start: usize) -> Option<&'static Elsewhere> {
    // SAFETY: null, or what `discards_elsewhere` was given, which lives for ever.
    unsafe { ELSEWHERE.load(Ordering::Acquire).as_ref() }.filter(|layer| (layer.owns)(start))
}

/// Whether flushing is cheaper than marking, where bringing a page back costs `refault_ns` and filling a
/// frame `fill_ns`.
fn is_flush_cheaper(fill_ns: u64, refault_ns: u64) -> bool {
    fill_ns < refault_ns / WRONG_CHOICE
}

/// What it costs to fill a frame with zeros and to give it back, in nanoseconds: measured once.
fn fill_ns() -> u64 {
    let known = FILL.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let measured = measure_fill().map_or(FILL_NS, |ns| ns.max(1));
    FILL.store(measured, Ordering::Relaxed);
    measured
}

fn measure_fill() -> Option<u64> {
    let bytes = FILL_PAGES * PAGE;
    let start = map::reserve_readable(bytes).ok()?;
    // SAFETY: reserved a moment ago, and nobody else knows of it.
    let took = unsafe {
        map::make_writable(start, bytes).ok().map(|()| {
            let before = clock::now_ns();
            for page in 0..FILL_PAGES {
                ((start + page * PAGE) as *mut u8).write_volatile(1);
            }
            let _ = map::flush(start, bytes);
            clock::now_ns() - before
        })
    };
    // SAFETY: the same.
    let _ = unsafe { map::release(start, bytes) };
    took.map(|ns| ns / FILL_PAGES as u64)
}

impl Pages {
    /// How the kernel is advised on pages that nobody needs.
    pub fn discard_mode(&self) -> Discard {
        self.state.lock().config.discard
    }

    /// Has `layer` told of what is vacated in memory that it pages itself.
    pub fn discards_elsewhere(&self, layer: &'static Elsewhere) {
        ELSEWHERE.store(core::ptr::from_ref(layer).cast_mut(), Ordering::Release);
    }

    /// Records that bringing a page back took `ns` nanoseconds.
    pub fn note_refault(&self, ns: u64) {
        REFAULT.store(ns, Ordering::Relaxed);
    }

    /// Says that nobody needs the contents of the whole pages from `start`, `bytes` long, until
    /// [`Pages::occupy`] says otherwise. They may be lost from now on, at any time: data read there
    /// meanwhile, or written, may be old, new or zero.
    ///
    /// # Safety
    /// The range is private anonymous memory in use by the caller, or another layer's ([`Elsewhere`]), and
    /// nobody else uses it.
    pub unsafe fn vacate(&self, start: usize, bytes: usize) {
        let run = Run { start: round_up(start, PAGE), end: round_down(start + bytes, PAGE) };
        let (mode, still) = {
            let state = self.state.lock();
            (state.config.discard, state.still)
        };
        if run.end <= run.start || mode == Discard::None || still {
            return;
        }
        if let Some(layer) = elsewhere(run.start) {
            // SAFETY: by this function's condition.
            unsafe {
                if mode != Discard::FlushOnly {
                    (layer.mark)(run.start, run.len());
                }
            }
            if !mode.flushes_after_collections() {
                return;
            }
        } else if mode.marks_at_once() {
            // SAFETY: by this function's condition.
            if unsafe { map::discard(run.start, run.len()) }.is_ok() {
                self.state.lock().count(Counter::BytesDiscarded, run.len() as u64);
            }
        }
        if mode == Discard::Marks {
            return;
        }
        VACANT.lock().add(run);
        ANY.store(true, Ordering::Release);
        if mode.heeds_pressure() {
            self.request_helper();
        }
    }

    /// Says that the contents of every page that the range touches are needed again, before anything is
    /// written there. They are undefined.
    pub fn occupy(&self, start: usize, bytes: usize) {
        let run = Run { start: round_down(start, PAGE), end: round_up(start + bytes, PAGE) };
        if ANY.load(Ordering::Acquire) {
            let mut vacant = VACANT.lock();
            vacant.remove(run);
            ANY.store(!vacant.is_empty(), Ordering::Release);
        }
        if let Some(layer) = elsewhere(start) {
            (layer.need)(run.start, run.len());
        }
    }

    /// Says that a major collection has ended, and all that it vacated has been reported. Where the mode says
    /// so, what is discardable is flushed: the source's `FlushDiscardable`. `is_short` says whether the
    /// collector found memory short. Returns the bytes flushed.
    pub fn collected(&self, is_short: bool) -> usize {
        COLLECTS.store(true, Ordering::Relaxed);
        match self.discard_mode() {
            mode if mode.flushes_after_collections() => self.flush_discardable(Reason::Asked),
            Discard::Auto if is_short => self.relieve(),
            _ => 0,
        }
    }

    /// Whether something could be flushed when memory is short.
    pub(crate) fn has_discardable(&self) -> bool {
        any() || self.discard_mode() == Discard::Pager && self.state.lock().free_pages(Kind::Marked) > 0
    }

    /// The own control group has run into its limit: it needs now what is discardable.
    pub(crate) fn give_way(&self) {
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

    /// Memory is short: does with what is discardable what is cheaper. Returns the bytes flushed.
    pub(crate) fn relieve(&self) -> usize {
        match self.discard_mode() {
            Discard::Pager => return self.flush_discardable(Reason::Pressure),
            Discard::Auto => {}
            _ => return 0,
        }
        if is_flush_cheaper(fill_ns(), REFAULT.load(Ordering::Relaxed)) {
            return self.flush_discardable(Reason::Pressure);
        }
        self.mark_some(u64::MAX);
        // SAFETY: nobody needs vacated memory.
        self.empty_vacant(
            |start, bytes| unsafe { map::discard(start, bytes) }.is_ok(),
            Counter::BytesDiscarded,
        );
        0
    }

    /// Gives the frames of all that is discardable back; how many bytes of address space that was.
    pub(crate) fn flush_discardable(&self, reason: Reason) -> usize {
        let free: u64 = KEPT.into_iter().map(|kind| self.flush_some(kind, u64::MAX, reason)).sum();
        free as usize * PAGE + self.flush_vacant(reason)
    }

    fn flush_vacant(&self, reason: Reason) -> usize {
        // SAFETY: nobody needs vacated memory.
        self.empty_vacant(|start, bytes| unsafe { map::flush(start, bytes) }.is_ok(), reason.counter())
    }

    /// Does `way` with all that is vacated, which is on the list no more then, and counts it. Returns how
    /// many bytes that was. A piece at a time: threads that take memory back wait.
    fn empty_vacant(&self, way: impl Fn(usize, usize) -> bool, counter: Counter) -> usize {
        let mut gone = 0;
        loop {
            let mut vacant = VACANT.lock();
            let Some(run) = vacant.take(FLUSH_BYTES) else {
                ANY.store(false, Ordering::Release);
                return gone;
            };
            let done = match elsewhere(run.start) {
                Some(layer) => {
                    // SAFETY: vacated, and its owner cannot take it back while the list is locked.
                    unsafe { (layer.flush)(run.start, run.len()) };
                    false
                }
                None => way(run.start, run.len()),
            };
            drop(vacant);
            if done {
                gone += run.len();
                let mut state = self.state.lock();
                state.resident.shrink((run.len() / PAGE) as u64);
                state.count(counter, run.len() as u64);
            }
        }
    }

    /// The treatment of this many free pages that have just been given back, for their mode's sake.
    pub(crate) fn mark_at_once(&self, mode: Discard) {
        if mode.marks_at_once() {
            self.mark_some(u64::MAX);
        }
    }

    /// Whether free memory is marked or kept as it is, by what it is now.
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
    use std::sync::Mutex;
    use vellum_wire::Slot;

    const BYTES: usize = 8 << 20;
    /// The list of what is vacated is the process's.
    static ALONE: Mutex<()> = Mutex::new(());

    fn layer(discard: Discard) -> Box<Pages> {
        let pages = Box::new(Pages::new());
        pages.configure(Config { discard, ..Config::DEFAULT });
        pages.attach_new_slot(Box::leak(Box::new(Slot::new())));
        pages
    }

    fn resident(start: usize) -> usize {
        (start..start + BYTES)
            .step_by(map::RESIDENCY_MAX * PAGE)
            .map(|at| map::residency(at, map::RESIDENCY_MAX).expect("mincore").pages * PAGE)
            .sum()
    }

    /// Kilobytes of a mapping that are lazily freed, by `/proc/self/smaps`.
    fn lazily_free(start: usize) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        let mut sum = 0;
        for line in text.lines() {
            if let Some((range, _)) = line.split_once(' ')
                && let Some((from, to)) = range.split_once('-')
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                inside = from < start + BYTES && start < to;
            } else if inside && let Some(kib) = line.strip_prefix("LazyFree:") {
                sum += kib.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
            }
        }
        sum
    }

    /// Whether nearly all of it is. The kernel leaves out a page that it has just then in hand.
    fn is_marked(start: usize) -> bool {
        let bytes = lazily_free(start);
        assert!(bytes == 0 || bytes > BYTES / 16 * 15, "{bytes} bytes are marked");
        bytes > 0
    }

    /// A block of a new layer, written, and vacated.
    fn vacated(mode: Discard) -> (Box<Pages>, usize) {
        let pages = layer(mode);
        let extent =
            pages.alloc(Request { bytes: BYTES, align: map::RESIDENCY_MAX * PAGE, zero: false }).unwrap();
        let start = extent.addr.as_ptr() as usize;
        // SAFETY: a block of this test alone.
        unsafe {
            extent.addr.write_bytes(7, BYTES);
            pages.vacate(start, BYTES);
        }
        (pages, start)
    }

    fn counted(pages: &Pages) -> [u64; 3] {
        [Counter::BytesDiscarded, Counter::FlushedAsked, Counter::FlushedPressure]
            .map(|counter| pages.slot().get(counter))
    }

    /// What each mode does with vacated memory: at once, after a collection, and when memory is short.
    #[test]
    fn vacated_memory_goes_as_its_mode_says() {
        let _alone = ALONE.lock().unwrap();
        const ALL: u64 = BYTES as u64;
        for (mode, marked, after_collection, under_pressure) in [
            (Discard::None, false, BYTES, BYTES),
            (Discard::Marks, true, BYTES, BYTES),
            (Discard::Pager, true, BYTES, 0),
            (Discard::User, true, 0, 0),
            (Discard::FlushOnly, false, 0, 0),
            (Discard::Auto, false, BYTES, 0),
        ] {
            let (pages, start) = vacated(mode);
            let before = counted(&pages);
            assert_eq!(resident(start), BYTES, "{mode:?}");
            assert_eq!(is_marked(start), marked, "{mode:?}");
            pages.collected(false);
            assert_eq!(resident(start), after_collection, "{mode:?}");
            pages.give_way();
            assert_eq!(resident(start), under_pressure, "{mode:?}");
            let counts = counted(&pages);
            let flushed = counts[1] + counts[2] - before[1] - before[2];
            assert_eq!(flushed, ALL - under_pressure as u64, "{mode:?}");
            assert!(!any(), "{mode:?}");
        }
    }

    #[test]
    fn what_is_taken_back_is_not_flushed() {
        let _alone = ALONE.lock().unwrap();
        for mode in [Discard::Pager, Discard::User, Discard::FlushOnly, Discard::Auto] {
            let (pages, start) = vacated(mode);
            let (mine, bytes) = (start + BYTES / 4, BYTES / 2);
            pages.occupy(mine, bytes);
            // SAFETY: a part of the block, taken back.
            unsafe { (mine as *mut u8).write_bytes(9, bytes) };
            pages.collected(false);
            pages.flush_discardable(Reason::Pressure);
            assert_eq!(resident(start), bytes, "{mode:?}");
            // SAFETY: the same.
            let kept = unsafe { core::slice::from_raw_parts(mine as *const u8, bytes) };
            assert!(kept.iter().all(|&byte| byte == 9), "{mode:?}");
        }
    }

    #[test]
    fn free_pages_of_the_cache_go_as_their_mode_says() {
        let _alone = ALONE.lock().unwrap();
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
            let left = if mode.decays() { 0 } else { after_collection };
            assert_eq!(free(Kind::Warm) + free(Kind::Marked), left, "{mode:?}");
        }
        COLLECTS.store(false, Ordering::Relaxed);
        let decaying = Discard::NAMES.map(|(_, mode)| mode).into_iter().filter(|mode| mode.decays());
        assert_eq!(
            decaying.collect::<std::vec::Vec<_>>(),
            [Discard::Auto, Discard::User, Discard::FlushOnly]
        );
    }

    #[test]
    fn the_cheaper_way_is_chosen() {
        assert!(is_flush_cheaper(1500, 100_000), "a disk");
        assert!(!is_flush_cheaper(1500, 4000), "compressed memory");
        assert!(fill_ns() > 0);
        let _alone = ALONE.lock().unwrap();
        let (pages, start) = vacated(Discard::Auto);
        pages.note_refault(1);
        assert_eq!(pages.collected(true), 0);
        assert_eq!((resident(start), is_marked(start)), (BYTES, true));
        assert!(!any(), "what is marked the kernel takes by itself");
        let (pages, start) = vacated(Discard::Auto);
        pages.note_refault(u64::MAX);
        assert_eq!(pages.collected(true), BYTES);
        assert_eq!(resident(start), 0, "flushed");
        pages.note_refault(REFAULT_NS);
    }
}
