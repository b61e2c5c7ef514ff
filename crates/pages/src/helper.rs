//! The helper: one thread that gives memory back while the program sleeps, moves fences, and fetches frames ahead.
//!
//! It is started when there is something for it to do (half a MiB cached, a fence to watch, a hook) and lives until
//! the process ends; with nothing left to do it sleeps until woken. See [`vellum_sys::thread`] for what kind of thread
//! it is and what it must not touch. A forked child starts its own when it needs one.

use crate::advice::{self, Client};
use crate::discard;
use crate::fence::{Fence, NO_FENCES};
use crate::lows::DECAY_PARTS;
use crate::pace::Pace;
use crate::pages::Pages;
use crate::state::{Advice, KEPT};
use crate::tag::Kind;
use crate::units::{HUGE, PAGE, round_down};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use vellum_sys::pressure::{self, Trigger};
use vellum_sys::{Caps, caps, clock, map, thread};
use vellum_wire::Counter;

/// The shortest and the longest tick.
const TICK_MS: (u64, u64) = (10, 250);
/// A helper that sleeps longer than this has no more reason to stay on a processor.
const NEAR_NS: u64 = 1_000_000;
/// Sleep with nothing to do.
const IDLE_NS: u64 = 3_600_000_000_000;
/// Frames fetched ahead in one call.
const FETCH_BYTES: usize = HUGE;

/// What a look at the fences found.
#[derive(Clone, Copy)]
struct Looked {
    /// There are fences.
    any: bool,
    /// Some are of blocks that are being filled, as far as one can know.
    blocks: bool,
    /// One moved.
    moved: bool,
}

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; thread::HELPER_BYTES]>);
// SAFETY: only the helper thread uses it.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(UnsafeCell::new([0; thread::HELPER_BYTES]));
static TID: AtomicU32 = AtomicU32::new(0);
static STARTED: AtomicBool = AtomicBool::new(false);
static BELL: AtomicU32 = AtomicU32::new(0);
/// For how long the helper sleeps: whoever has something for it to do rings if that is too long.
static SLEEP: AtomicU32 = AtomicU32::new(LOOKING);
/// Till its next look at the fences.
const LOOKING: u32 = 0;
/// Till its next tick.
const TICKING: u32 = 1;
/// Till it is rung for.
const IDLE: u32 = 2;
/// Whether a fence was set since the helper looked last.
static FENCED: AtomicBool = AtomicBool::new(false);
static QUIT: AtomicBool = AtomicBool::new(false);
static FETCH_START: AtomicUsize = AtomicUsize::new(0);
static FETCH_END: AtomicUsize = AtomicUsize::new(0);

/// In a forked child there is no helper.
pub(crate) fn forget_after_fork() {
    TID.store(0, Ordering::Relaxed);
    STARTED.store(false, Ordering::Relaxed);
    SLEEP.store(LOOKING, Ordering::Relaxed);
    FETCH_END.store(0, Ordering::Relaxed);
}

impl Pages {
    /// Has `hook` called about every tick while memory is cached.
    ///
    /// The hook runs on the helper: it must not use thread-local storage (the C library's `errno` included) nor `malloc`.
    pub fn on_tick(&self, hook: fn()) {
        self.hook.store(hook as *mut (), Ordering::Release);
    }

    /// Makes sure that a helper will look after what is cached now.
    #[inline]
    pub(crate) fn want_helper(&self) {
        self.want_helper_from(IDLE);
    }

    /// Makes sure that a helper will look at the fences soon. A `new` one it looks at once.
    pub(crate) fn want_look(&self, new: bool) {
        if !new {
            return self.want_helper_from(TICKING);
        }
        FENCED.store(true, Ordering::Relaxed);
        let before = TID.load(Ordering::Relaxed);
        if before != 0 && caps::has(Caps::HELPER) {
            thread::bring_here(before);
        }
        self.want_helper_from(LOOKING);
        match TID.load(Ordering::Relaxed) {
            started if before == 0 && started != 0 => {
                thread::bring_here(started);
                thread::give_way();
            }
            _ => {}
        }
    }

    /// Starts the helper, or wakes it if it sleeps as deeply as that.
    #[inline]
    fn want_helper_from(&self, sleep: u32) {
        if self.is_global() && (!STARTED.load(Ordering::Relaxed) || SLEEP.load(Ordering::Relaxed) >= sleep) {
            self.wake_helper();
        }
    }

    /// Starts the helper, or wakes it at once.
    #[cold]
    pub fn wake_helper(&self) {
        if !self.is_global() || !caps::has(Caps::HELPER) {
            return;
        }
        if !STARTED.swap(true, Ordering::AcqRel) {
            QUIT.store(false, Ordering::Relaxed);
            // SAFETY: STACK is zeroed at first and page-aligned; a second helper (in a forked child) finds only stale frames of
            // one that does not exist there. `run` makes raw system calls only.
            if unsafe { thread::start(run, 0, STACK.0.get().cast(), &TID) }.is_err() {
                caps::drop(Caps::HELPER);
            }
            return;
        }
        SLEEP.store(LOOKING, Ordering::Relaxed);
        thread::wake(&BELL);
    }

    /// Ends the helper for now. The next thing there is to do starts another, which has the identity (user, groups,
    /// namespaces) that the process has then.
    pub fn retire_helper(&self) {
        if !STARTED.load(Ordering::Acquire) {
            return;
        }
        QUIT.store(true, Ordering::Release);
        thread::wake(&BELL);
        loop {
            match TID.load(Ordering::Acquire) {
                0 => break,
                tid => thread::wait(&TID, tid, 1_000_000),
            }
        }
        STARTED.store(false, Ordering::Release);
    }

    /// Ends the helper and starts no other: for a process that is about to forbid itself system calls.
    pub fn dismiss_helper(&self) {
        caps::drop(Caps::HELPER);
        self.retire_helper();
    }

    /// Has the frames of a range fetched by the helper while the caller goes on (the source's section 4.2), if they are
    /// enough to be worth waking it. One range at a time; a second takes the place of what is left of the first. A range
    /// given back meanwhile is fetched for nothing: it is a matter of milliseconds and of memory just asked for.
    pub(crate) fn fetch_ahead(&self, start: usize, bytes: usize) {
        if !self.is_global() || !caps::has(Caps::HELPER.union(Caps::POPULATE)) || bytes < FETCH_BYTES {
            return;
        }
        FETCH_END.store(0, Ordering::Release);
        FETCH_START.store(start, Ordering::Release);
        FETCH_END.store(start + bytes, Ordering::Release);
        self.wake_helper();
    }

    /// Looks at every fence once.
    fn look_at_fences(&self) -> Looked {
        let mut seen = NO_FENCES;
        let count = self.state.lock().fences.snapshot(&mut seen);
        let mut looked = Looked { any: count > 0, blocks: false, moved: false };
        for (index, fence) in seen.iter().enumerate() {
            let Some(fence) = fence else { continue };
            looked.moved |= self.look_at_fence(index, fence);
            looked.blocks |= fence.is_open_block();
        }
        looked
    }

    /// Looks at the fence that decides on cold memory just handed out. The memory before it was handed out earlier, and
    /// has mostly proved itself by now: so where blocks come one after the other nothing waits for the helper.
    pub(crate) fn look_near(&self, start: usize, end: usize) {
        let near = self.state.lock().fences.near(start, end);
        if let Some((index, fence)) = near {
            self.look_at_fence(index, &fence);
        }
    }

    /// Looks at the fence at `index`, and moves it if it may; whether it did.
    fn look_at_fence(&self, index: usize, fence: &Fence) -> bool {
        let Some(proved) = fence.look() else { return false };
        let mut state = self.state.lock();
        let wanted = state.fences.advance(index, fence, proved);
        if let Some(range) = wanted
            && state.arena_at(range.start) == Some(crate::state::LARGE)
        {
            state.granted_to = state.granted_to.max(range.end);
        }
        drop(state);
        Advice::huge(wanted).give();
        true
    }

    /// One tick: decay, limits, pressure, the hook.
    fn tick(&self, trigger: Option<&Trigger>) {
        self.decay();
        let cached = self.state.lock().free_pages(Kind::Warm);
        let is_worth_a_look = || crate::release::is_worth_a_look(cached) || self.has_discardable();
        if self.discard_mode().heeds_pressure() && is_worth_a_look() {
            self.respect_limits();
            // Somebody's stall: the kernel may have what is cached. Our own group at its limit: it needs it now.
            if self.is_in_distress() {
                self.give_way();
            } else if trigger.map_or_else(pressure::is_stalled, Trigger::fired) {
                self.relieve();
            }
        }
        let hook = self.hook.load(Ordering::Acquire);
        if !hook.is_null() {
            // SAFETY: the pointer was stored by `on_tick` from a `fn()`.
            let hook: fn() = unsafe { core::mem::transmute(hook) };
            hook();
        }
    }

    /// Fetches a piece of what was asked for; whether more is left.
    fn fetch_piece(&self) -> bool {
        let (start, end) = (FETCH_START.load(Ordering::Acquire), FETCH_END.load(Ordering::Acquire));
        if start >= end {
            return false;
        }
        let stop = round_down(start + FETCH_BYTES, FETCH_BYTES).min(end);
        // Whoever asked may have replaced the range meanwhile: then this piece is the last of the old one.
        if FETCH_START.compare_exchange(start, stop, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && map::populate(start & !(PAGE - 1), stop - start).is_ok()
        {
            self.state.lock().count(Counter::BytesPrefetched, (stop - start) as u64);
            return true;
        }
        stop < end
    }
}

extern "C" fn run(_argument: usize) -> ! {
    thread::close_inherited();
    thread::be_prompt();
    let pages = Pages::global();
    // Set at the first tick: it takes the kernel a while, and the first thing to do may be a fence.
    let mut trigger = None;
    let mut client = Client::default();
    let mut ticked = clock::now_ms();
    let mut heard = 0;
    let mut pace = Pace::new();
    // Whether the helper was brought to the processor of a thread that is about to touch memory.
    let mut is_near = false;
    while !QUIT.load(Ordering::Acquire) {
        let rung = BELL.load(Ordering::Acquire);
        if pages.fetch_piece() {
            continue;
        }
        let fenced = FENCED.swap(false, Ordering::Relaxed);
        is_near |= fenced;
        let looked = pages.look_at_fences();
        let now = clock::now_ms();
        if looked.any {
            let now_ns = clock::now_ns();
            match looked {
                _ if fenced => pace.begin(now_ns),
                Looked { moved: true, .. } => pace.moved(now_ns),
                _ if rung != heard => pace.resume(),
                _ => pace.stood_still(),
            }
            if !looked.blocks {
                pace.relax();
            }
        }
        heard = rung;
        let (decay_ms, kept) = {
            let state = pages.state.lock();
            (u64::from(state.config.decay_ms), KEPT.map(|kind| state.free_pages(kind)).iter().sum::<u64>())
        };
        let tick_ms = (decay_ms / DECAY_PARTS as u64).clamp(TICK_MS.0, TICK_MS.1);
        if now.wrapping_sub(ticked) >= tick_ms {
            if trigger.is_none() && caps::has(Caps::PRESSURE) {
                trigger = Trigger::set();
            }
            pages.tick(trigger.as_ref());
            ticked = now;
        }
        client.attend(pages, now);
        let ticks = kept > 0 || discard::any() || !pages.hook.load(Ordering::Relaxed).is_null();
        let (depth, sleep_ns) = match pace.next_ns().filter(|_| looked.any) {
            Some(look_ns) => (LOOKING, look_ns),
            None if ticks => (TICKING, tick_ms * 1_000_000),
            None if looked.any => (TICKING, TICK_MS.1 * 1_000_000),
            None if advice::is_wanted() => (TICKING, advice::REPORT_MS * 1_000_000),
            None => (IDLE, IDLE_NS),
        };
        if is_near && sleep_ns > NEAR_NS {
            thread::roam();
            is_near = false;
        }
        SLEEP.store(depth, Ordering::Release);
        thread::wait(&BELL, rung, sleep_ns);
        SLEEP.store(LOOKING, Ordering::Release);
    }
    thread::exit()
}
