//! The helper: one thread that gives memory back while the program sleeps, moves windows, and fetches frames
//! ahead.
//!
//! It is started when there is something for it to do (half a MiB cached, a window to watch, a hook) and
//! lives until the process ends, changes who it is, or forks: then it is ended and started again
//! ([`Lifecycle`], `rest`). With nothing left to do it sleeps until woken. See [`vellum_sys::thread`] for
//! what kind of thread it is and what it must not touch. A forked child starts its own when it needs one.

use crate::Severity;
use crate::advice::{self, Client};
use crate::decay_clock::{DecayClock, TICK_MS, tick_ms, ticks_of_part};
use crate::discard;
use crate::huge_window::{NO_WINDOWS, Window};
use crate::low_water::DECAY_PARTS;
use crate::pages::Pages;
use crate::rest;
use crate::scan_backoff::Backoff;
use crate::shortage;
use crate::state::{Advice, KEPT};
use crate::tag::Kind;
use crate::units::{HUGE, PAGE, round_down};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use vellum_sys::lifecycle::{Crew, Lifecycle};
use vellum_sys::pressure::{self, Trigger};
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Caps, caps, clock, map, owner, thread};
use vellum_wire::Counter;

/// A helper that sleeps longer than this has no more reason to stay on a processor.
const NEAR_NS: u64 = 1_000_000;
/// Sleep with nothing to do.
const IDLE_NS: u64 = 3_600_000_000_000;
/// Frames fetched ahead in one call.
const FETCH_BYTES: usize = HUGE;

/// What a look at the windows found.
#[derive(Clone, Copy)]
struct Looked {
    /// There are windows.
    any: bool,
    /// Some are of blocks that are being filled, as far as one can know.
    blocks: bool,
    moved: bool,
}

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; thread::HELPER_BYTES]>);
// SAFETY: only the helper thread uses it, and its starter before it begins; `LIFE` lets there be one.
unsafe impl Sync for Stack {}

static STACK: Stack = Stack(UnsafeCell::new([0; thread::HELPER_BYTES]));
static TID: AtomicU32 = AtomicU32::new(0);
/// The id of the last that was started, for who waits until it is gone.
static BORN: AtomicU32 = AtomicU32::new(0);
static DECAY: DecayClock = DecayClock::new();
static LIFE: Lifecycle = Lifecycle::over(AtomicU32::new(0));
static BELL: AtomicU32 = AtomicU32::new(0);
/// For how long the helper sleeps: a thread with work for it rings if that is too long.
static SLEEP: AtomicU32 = AtomicU32::new(LOOKING);
/// Till its next look at the windows.
const LOOKING: u32 = 0;
/// Till its next tick.
const TICKING: u32 = 1;
/// Till it is rung for.
const IDLE: u32 = 2;
/// Whether a window was set since the helper looked last.
static WATCHED: AtomicBool = AtomicBool::new(false);
static FETCH_START: AtomicUsize = AtomicUsize::new(0);
static FETCH_END: AtomicUsize = AtomicUsize::new(0);

/// As seen by one who waits this long for its end, in nanoseconds.
struct Helper(u64);

impl Crew for Helper {
    fn ring(&self) {
        thread::wake(&BELL);
    }
    fn have_ended(&self) -> bool {
        TID.load(Ordering::Acquire) == 0
    }
    fn wait_until_gone(&self) -> bool {
        thread::wait_until_gone(&TID, BORN.load(Ordering::Relaxed), self.0)
    }
    fn wait(&self, word: &AtomicU32, seen: u32) {
        thread::wait(word, seen, MOMENT_NS);
    }
    fn wake(&self, word: &AtomicU32) {
        thread::wake_all(word);
    }
}

/// How long to wait for a start that is under way before looking again.
const MOMENT_NS: u64 = 1_000_000;

/// How long a fork may wait for the helper's end.
const FORK_NS: u64 = 1_000_000_000;
/// Less in the cache than this is not worth a system call before a fork.
const LEAST_BYTES: u64 = 256 << 10;
/// Bars of forks that have begun: more than one if a signal handler forks on top of a fork.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// In a forked child there is no helper.
pub(crate) fn reset_after_fork() {
    TID.store(0, Ordering::Relaxed);
    LIFE.reset_after_fork();
    DECAY.reset_after_fork();
    rest::reset_after_fork();
    FORKS.store(0, Ordering::Relaxed);
    SLEEP.store(LOOKING, Ordering::Relaxed);
    FETCH_END.store(0, Ordering::Relaxed);
}

impl Pages {
    /// Has `hook` called about every tick while memory is cached.
    ///
    /// The hook runs on the helper: it must not use thread-local storage (the C library's `errno` included)
    /// nor `malloc`.
    pub fn on_tick(&self, hook: fn()) {
        self.hook.store(hook as *mut (), Ordering::Release);
    }

    /// The ticks of the decay time: how often the hook is called in it.
    pub fn ticks_of_decay(&self) -> u32 {
        ticks_of_part(self.state.lock().config.decay_ms) * DECAY_PARTS as u32
    }

    /// Makes sure that a helper will look after what is cached now.
    #[inline]
    pub(crate) fn request_helper(&self) {
        self.request_helper_from(IDLE);
    }

    /// Makes sure that a helper will look at the windows soon. A `new` one it looks at once.
    pub(crate) fn request_look(&self, new: bool) {
        if !new {
            return self.request_helper_from(TICKING);
        }
        WATCHED.store(true, Ordering::Relaxed);
        let before = TID.load(Ordering::Relaxed);
        if before != 0 && caps::has(Caps::HELPER) {
            thread::bring_here(before);
        }
        self.request_helper_from(LOOKING);
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
    fn request_helper_from(&self, sleep: u32) {
        if self.is_global() && (!LIFE.is_started() || SLEEP.load(Ordering::Relaxed) >= sleep) {
            self.wake_helper();
        }
    }

    /// Starts the helper, or wakes it at once.
    #[cold]
    pub fn wake_helper(&self) {
        if !self.is_global() || !caps::has(Caps::HELPER) {
            return;
        }
        if !LIFE.is_started() {
            return start();
        }
        SLEEP.store(LOOKING, Ordering::Relaxed);
        thread::wake(&BELL);
    }

    /// Makes sure that there is a helper, as there is memory that only it can give back.
    #[inline]
    pub fn want_helper(&self) {
        if !self.has_helper() {
            self.wake_helper();
        }
    }

    /// Whether there is a helper, or will be in a moment.
    #[inline]
    pub fn has_helper(&self) -> bool {
        LIFE.is_started()
    }

    /// Ends the helper, and has none started until [`Pages::unbar_helper`]: for a call that changes who the
    /// process is (user, groups, rights, namespaces). A helper keeps what it was born with, so none may be
    /// born between the two either. Only by the process whose helper it is ([`owner::is_here`]). False, and
    /// nothing is barred, if the helper does not end: somebody has stopped it, or the caller is a signal
    /// handler on top of what it waits for.
    #[must_use]
    pub fn bar_helper(&self) -> bool {
        LIFE.bar(&Helper(thread::END_NS))
    }

    /// Ends a [`Pages::bar_helper`], and starts a helper if there was one or one was wanted: it is then what
    /// the calling thread is now.
    pub fn unbar_helper(&self) {
        if LIFE.unbar() && caps::has(Caps::HELPER) {
            start();
        }
    }

    /// Ends the helper and starts no other: for a process that is about to forbid itself system calls.
    pub fn dismiss_helper(&self) {
        caps::drop(Caps::HELPER);
        if owner::is_here() && self.bar_helper() {
            self.unbar_helper();
        }
    }

    /// Ends the helper of a program with one thread, so that it forks as such (`rest`), and gives the cache
    /// back: nobody would look after it while the program sleeps, a fork has to copy its page tables, and to
    /// write to it afterwards costs a fault either way. Call it before [`Pages::fork_prepare`], with no lock
    /// held.
    pub fn fork_approach(&self) {
        let is_concerned = self.is_global() && (self.has_helper() || rest::is_on());
        if !is_concerned || !owner::is_here() || !thread::is_only_one() {
            return;
        }
        if LIFE.bar(&Helper(FORK_NS)) {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        let cached = self.state.lock().free_pages(Kind::Warm) * PAGE as u64;
        if cached >= LEAST_BYTES {
            self.trim(Severity::Flush);
        }
    }

    /// In the parent, whether the fork succeeded or not.
    pub(crate) fn end_fork(&self) {
        if self.is_global() && FORKS.load(Ordering::Relaxed) > 0 {
            FORKS.fetch_sub(1, Ordering::Relaxed);
            rest::begin();
            // Who wants a helper after the rest starts one.
            let _ = LIFE.unbar();
        }
    }

    /// Has the frames of a range fetched by the helper while the caller goes on (the source's section 4.2),
    /// if they are enough to be worth waking it. One range at a time; a second takes the place of what is
    /// left of the first. A range given back meanwhile is fetched for nothing: it is a matter of milliseconds
    /// and of memory just asked for.
    pub(crate) fn fetch_ahead(&self, start: usize, bytes: usize) {
        if !self.is_global() || !caps::has(Caps::HELPER.union(Caps::POPULATE)) || bytes < FETCH_BYTES {
            return;
        }
        FETCH_END.store(0, Ordering::Release);
        FETCH_START.store(start, Ordering::Release);
        FETCH_END.store(start + bytes, Ordering::Release);
        self.wake_helper();
    }

    /// Looks at every window once.
    fn look_at_fences(&self) -> Looked {
        let mut seen = NO_WINDOWS;
        let (count, can_grant) = {
            let mut state = self.state.lock();
            (state.windows.snapshot(&mut seen), state.windows.can_grant())
        };
        let mut looked = Looked { any: count > 0, blocks: false, moved: false };
        for (index, window) in seen.iter().enumerate() {
            let Some(window) = window else { continue };
            looked.moved |= self.look_at_window(index, window) && can_grant;
            looked.blocks |= window.is_open_block() && can_grant;
        }
        looked
    }

    /// Looks at the window that decides on cold memory just handed out. The memory before it was handed out
    /// earlier, and has mostly proved itself by now: so where blocks come one after the other nothing waits
    /// for the helper.
    pub(crate) fn look_near(&self, start: usize, end: usize) {
        let near = self.state.lock().windows.near(start, end);
        if let Some((index, window)) = near {
            self.look_at_window(index, &window);
        }
    }

    /// Looks at the window at `index`, and moves it if it may; whether it did.
    fn look_at_window(&self, index: usize, window: &Window) -> bool {
        let Some(proved) = window.look() else { return false };
        let mut state = self.state.lock();
        let wanted = state.windows.advance(index, window, proved);
        self.inside.note_granted(state.windows.arena_granted());
        if let Some(range) = wanted
            && state.arena_at(range.start) == Some(crate::state::LARGE)
        {
            state.granted_to = state.granted_to.max(range.end);
        }
        // An arena's is tried where its memory is taken.
        let is_trial = !window.is_arena() && state.windows.is_tried();
        let advice = Advice { is_trial, ..Advice::huge(wanted) };
        drop(state);
        self.heed(&advice);
        true
    }

    /// One tick: decay, limits, pressure, the hook.
    fn tick(&self, trigger: Option<&Trigger>, part_is_over: bool) {
        if part_is_over {
            self.decay();
        }
        let cached = self.state.lock().free_pages(Kind::Warm);
        let is_worth_a_look =
            || crate::release::is_worth_a_look(cached) || self.has_discardable() || shortage::is_sparse();
        if self.discard_mode().heeds_pressure() && is_worth_a_look() {
            self.respect_limits_aside();
            self.mark_idle();
            // Somebody's stall: the kernel may have what is cached. Our own group at its limit: it needs it
            // now.
            if self.is_in_distress() {
                shortage::note_short();
                self.give_way();
            } else if trigger.map_or_else(pressure::is_stalled, Trigger::fired) {
                shortage::note_short();
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
        // The requester may have replaced the range meanwhile: then this piece is the last of the old one.
        if FETCH_START.compare_exchange(start, stop, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            && map::populate(start & !(PAGE - 1), stop - start).is_ok()
        {
            self.state.lock().count(Counter::BytesPrefetched, (stop - start) as u64);
            return true;
        }
        stop < end
    }
}

/// Starts the helper, if that is possible now and nobody else does.
#[cold]
fn start() {
    if !owner::is_here() || rest::is_on() {
        return;
    }
    let _undisturbed = Undisturbed::new();
    if !LIFE.begin(&Helper(0)) {
        return;
    }
    // SAFETY: STACK is zeroed at first and page-aligned; a later helper finds only stale frames of one that
    // has ended, or does not exist in this process. `run` makes raw system calls only.
    let run = unsafe { thread::start(run, 0, STACK.0.get().cast(), &TID) }.is_ok();
    if run {
        BORN.store(TID.load(Ordering::Relaxed), Ordering::Relaxed);
    } else {
        caps::drop(Caps::HELPER);
    }
    LIFE.began(&Helper(0), run);
}

extern "C" fn run(_argument: usize) -> ! {
    thread::close_inherited();
    thread::be_prompt();
    let pages = Pages::global();
    // Set at the first tick: it takes the kernel a while, and the first thing to do may be a window.
    let mut trigger = None;
    let mut client = Client::default();
    DECAY.begin(clock::now_ms());
    let mut heard = 0;
    let mut backoff = Backoff::new();
    // Whether the helper was brought to the processor of a thread that is about to touch memory.
    let mut is_near = false;
    loop {
        // The bell before the look: who asks for the end rings after it.
        let rung = BELL.load(Ordering::Acquire);
        if LIFE.is_retiring() {
            thread::exit();
        }
        if pages.fetch_piece() {
            continue;
        }
        let is_watched = WATCHED.swap(false, Ordering::Relaxed);
        is_near |= is_watched;
        let looked = pages.look_at_fences();
        let now = clock::now_ms();
        if looked.any {
            let now_ns = clock::now_ns();
            match looked {
                _ if is_watched => backoff.begin(now_ns),
                Looked { moved: true, .. } => backoff.moved(now_ns),
                _ if rung != heard => backoff.resume(),
                _ => backoff.stood_still(),
            }
            if !looked.blocks {
                backoff.relax();
            }
        }
        heard = rung;
        let (decay_ms, kept) = {
            let state = pages.state.lock();
            (state.config.decay_ms, KEPT.map(|kind| state.free_pages(kind)).iter().sum::<u64>())
        };
        if let Some(part_is_over) = DECAY.tick(now, decay_ms) {
            if trigger.is_none() && caps::has(Caps::PRESSURE) {
                trigger = Trigger::set();
            }
            pages.tick(trigger.as_ref(), part_is_over);
        }
        client.attend(pages, now);
        let ticks = kept > 0 || discard::any() || !pages.hook.load(Ordering::Relaxed).is_null();
        let (depth, sleep_ns) = match backoff.next_ns().filter(|_| looked.any) {
            Some(look_ns) => (LOOKING, look_ns),
            None if ticks => (TICKING, tick_ms(decay_ms) * 1_000_000),
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
}
