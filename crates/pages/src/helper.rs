//! The background thread (the *helper*). It returns memory while the program sleeps, and moves the windows
//! in which huge pages are allowed (`huge_window`). It fetches frames before the program touches them.
//!
//! The helper is started when it has work (half a MiB cached, a window to scan, a hook of another layer). It
//! ends when the process ends, changes its identity, or forks, and is started again afterwards
//! ([`Lifecycle`], `rest`). A forked child starts its own helper when it has work. With nothing left to do
//! the helper sleeps until woken. [`vellum_sys::thread`] describes this kind of thread and its restrictions.

use crate::Severity;
use crate::advice::{self, Client};
use crate::decay_clock::{DecayClock, TICK_MS, tick_ms, ticks_of_part};
use crate::huge_window::{NO_WINDOWS, Window};
use crate::low_water::DECAY_PARTS;
use crate::pages::Pages;
use crate::rest::Rest;
use crate::scan_backoff::Backoff;
use crate::state::{Advice, KEPT};
use crate::tag::Kind;
use crate::units::{HUGE, PAGE};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use vellum_sys::lifecycle::{Crew, Lifecycle};
use vellum_sys::pressure::{self, Trigger};
use vellum_sys::thread::Undisturbed;
use vellum_sys::{Addr, Caps, Span, caps, clock, map, owner, thread};
use vellum_wire::Counter;

/// A helper that sleeps longer than this has no more reason to stay on a processor.
const NEAR_NS: u64 = 1_000_000;
const IDLE_NS: u64 = 3_600_000_000_000;
const FETCH_BYTES: usize = HUGE;

#[derive(Clone, Copy)]
struct Scanned {
    any: bool,
    /// Some are of blocks that are probably being filled.
    blocks: bool,
    moved: bool,
}

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; thread::HELPER_BYTES]>);
// SAFETY: only the helper thread uses it, and its starter before it begins; `Helper::life` allows one.
unsafe impl Sync for Stack {}

/// The helper's stack. A static of zeros takes no bytes of the library's file.
static STACK: Stack = Stack(UnsafeCell::new([0; thread::HELPER_BYTES]));

/// The helper sleeps until its next scan of the windows.
const SCANNING: u32 = 0;
const TICKING: u32 = 1;
const IDLE: u32 = 2;

/// The helper of a page layer. Only the process's own layer starts one.
pub(crate) struct Helper {
    /// The thread's id, 0 when it has ended.
    tid: AtomicU32,
    /// The id of the last that was started, for a thread that waits until it is gone.
    born: AtomicU32,
    life: Lifecycle,
    bell: AtomicU32,
    /// The depth of the helper's sleep: a thread with work for it rings the bell if that is too deep.
    sleep: AtomicU32,
    decay: DecayClock,
    rest: Rest,
    /// Set if a window was set since the last scan.
    is_watched: AtomicBool,
    /// The memory to fetch frames for: from where, up to where.
    fetch: [AtomicUsize; 2],
    /// Bars of forks that have begun: more than one if a signal handler forks on top of a fork.
    forks: AtomicU32,
}

impl Helper {
    pub(crate) const fn new() -> Helper {
        Helper {
            tid: AtomicU32::new(0),
            born: AtomicU32::new(0),
            life: Lifecycle::over(AtomicU32::new(0)),
            bell: AtomicU32::new(0),
            sleep: AtomicU32::new(SCANNING),
            decay: DecayClock::new(),
            rest: Rest::new(),
            is_watched: AtomicBool::new(false),
            fetch: [const { AtomicUsize::new(0) }; 2],
            forks: AtomicU32::new(0),
        }
    }

    pub(crate) fn reset_after_fork(&self) {
        self.tid.store(0, Ordering::Relaxed);
        self.life.reset_after_fork();
        self.decay.reset_after_fork();
        self.rest.reset_after_fork();
        self.forks.store(0, Ordering::Relaxed);
        self.sleep.store(SCANNING, Ordering::Relaxed);
        self.fetch[1].store(0, Ordering::Relaxed);
    }

    /// Starts the helper, if that is possible now and no other thread does.
    #[cold]
    fn start(&'static self) {
        if !owner::is_here() || self.rest.is_on() {
            return;
        }
        let _undisturbed = Undisturbed::new();
        if !self.life.begin(&Awaited(self, 0)) {
            return;
        }
        // SAFETY: STACK is zeroed at first and page-aligned; a later helper finds only stale frames of one
        // that has ended, or does not exist in this process. `run` makes raw system calls only.
        let is_running = unsafe { thread::start(run, 0, STACK.0.get().cast(), &self.tid) }.is_ok();
        if is_running {
            self.born.store(self.tid.load(Ordering::Relaxed), Ordering::Relaxed);
        } else {
            caps::drop(Caps::HELPER);
        }
        self.life.began(&Awaited(self, 0), is_running);
    }
}

/// The helper, for a thread that waits at most this number of nanoseconds for its end.
struct Awaited<'h>(&'h Helper, u64);

impl Crew for Awaited<'_> {
    fn ring(&self) {
        thread::wake(&self.0.bell);
    }
    fn have_ended(&self) -> bool {
        self.0.tid.load(Ordering::Acquire) == 0
    }
    fn wait_until_gone(&self) -> bool {
        thread::wait_until_gone(&self.0.tid, self.0.born.load(Ordering::Relaxed), self.1)
    }
    fn wait(&self, word: &AtomicU32, seen: u32) {
        thread::wait(word, seen, MOMENT_NS);
    }
    fn wake(&self, word: &AtomicU32) {
        thread::wake_all(word);
    }
}

/// The wait for a start that is under way before checking again.
const MOMENT_NS: u64 = 1_000_000;

/// The longest wait of a fork for the helper's end.
const FORK_NS: u64 = 1_000_000_000;
/// Less in the cache than this is not worth a system call before a fork.
const LEAST_BYTES: u64 = 256 << 10;

impl Pages {
    /// Has `hook` called about every tick while memory is cached.
    ///
    /// The hook runs on the helper: it must use neither thread-local storage (nor `errno`) nor `malloc`.
    pub fn on_tick(&self, hook: fn()) {
        self.hook.store(hook as *mut (), Ordering::Release);
    }

    /// The ticks of the decay time: how often the hook is called in it.
    pub fn ticks_of_decay(&self) -> u32 {
        ticks_of_part(self.state.lock().config.decay_ms) * DECAY_PARTS as u32
    }

    /// Makes sure that a helper will give back the memory that is cached now.
    #[inline]
    pub(crate) fn request_helper(&self) {
        self.request_helper_from(IDLE);
    }

    /// Makes sure that a helper will scan the windows soon, or at once if there is a `new` one.
    pub(crate) fn request_scan(&self, new: bool) {
        if !new {
            return self.request_helper_from(TICKING);
        }
        self.helper.is_watched.store(true, Ordering::Relaxed);
        let before = self.helper.tid.load(Ordering::Relaxed);
        if before != 0 && caps::has(Caps::HELPER) {
            thread::bring_here(before);
        }
        self.request_helper_from(SCANNING);
        match self.helper.tid.load(Ordering::Relaxed) {
            started if before == 0 && started != 0 => {
                thread::bring_here(started);
                thread::yield_now();
            }
            _ => {}
        }
    }

    /// Starts the helper, or wakes it if it sleeps as deeply as that.
    #[inline]
    fn request_helper_from(&self, sleep: u32) {
        let is_late = || !self.has_helper() || self.helper.sleep.load(Ordering::Relaxed) >= sleep;
        if self.is_global() && is_late() {
            self.wake_helper();
        }
    }

    /// Starts the helper, or wakes it at once.
    #[cold]
    pub fn wake_helper(&self) {
        if !self.is_global() || !caps::has(Caps::HELPER) {
            return;
        }
        let helper = &Pages::global().helper;
        if !self.has_helper() {
            return helper.start();
        }
        helper.sleep.store(SCANNING, Ordering::Relaxed);
        thread::wake(&helper.bell);
    }

    /// Makes sure that there is a helper, as there is memory that only it can give back.
    #[inline]
    pub fn ensure_helper(&self) {
        if !self.has_helper() {
            self.wake_helper();
        }
    }

    /// True if there is a helper, or will be in a moment.
    #[inline]
    pub fn has_helper(&self) -> bool {
        self.helper.life.is_started()
    }

    /// Ends the helper, and has none started until [`Pages::unbar_helper`]: for a call that changes who the
    /// process is (user, groups, rights, namespaces). A helper keeps the identity it was started with, so
    /// none may be started between the two either. Only by the process whose helper it is
    /// ([`owner::is_here`]). False, with nothing barred, if the helper does not end: it was stopped, or the
    /// caller is a signal handler on top of the thread it waits for.
    #[must_use]
    pub fn bar_helper(&self) -> bool {
        self.helper.life.bar(&Awaited(&self.helper, thread::END_NS))
    }

    /// Ends a [`Pages::bar_helper`], and starts a helper, with the present identity, if one was there or due.
    pub fn unbar_helper(&self) {
        if self.helper.life.unbar() && caps::has(Caps::HELPER) && self.is_global() {
            Pages::global().helper.start();
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
    /// back. Nothing would give it back while the program sleeps, a fork has to copy its page tables, and
    /// writing to it afterwards costs a fault either way. Call it before [`Pages::fork_prepare`], with no
    /// lock held.
    pub fn fork_approach(&self) {
        let is_concerned = self.is_global() && (self.has_helper() || self.helper.rest.is_on());
        if !is_concerned || !owner::is_here() || !thread::is_only_one() {
            return;
        }
        if self.helper.life.bar(&Awaited(&self.helper, FORK_NS)) {
            self.helper.forks.fetch_add(1, Ordering::Relaxed);
        }
        let cached = self.state.lock().free_pages(Kind::Warm) * PAGE as u64;
        if cached >= LEAST_BYTES {
            self.trim(Severity::Flush);
        }
    }

    /// In the parent, whether the fork succeeded or not.
    pub(crate) fn end_fork(&self) {
        if self.is_global() && self.helper.forks.load(Ordering::Relaxed) > 0 {
            self.helper.forks.fetch_sub(1, Ordering::Relaxed);
            self.helper.rest.begin();
            // The first request for a helper after the rest starts one.
            let _ = self.helper.life.unbar();
        }
    }

    /// Has the helper fetch the frames of a span while the caller goes on (the source's section 4.2), if
    /// there are enough to be worth waking it. A second span replaces the rest of the first. If a span is
    /// given back meanwhile, a few milliseconds of work are lost.
    pub(crate) fn fetch_ahead(&self, span: Span) {
        if !self.is_global() || !caps::has(Caps::HELPER.union(Caps::POPULATE)) || span.bytes < FETCH_BYTES {
            return;
        }
        let [start, end] = &self.helper.fetch;
        end.store(0, Ordering::Release);
        start.store(span.start.get(), Ordering::Release);
        end.store(span.end().get(), Ordering::Release);
        self.wake_helper();
    }

    fn scan_windows(&self) -> Scanned {
        let mut seen = NO_WINDOWS;
        let (count, can_grant) = {
            let mut state = self.state.lock();
            (state.windows.snapshot(&mut seen), state.windows.can_grant())
        };
        let mut scanned = Scanned { any: count > 0, blocks: false, moved: false };
        for (index, window) in seen.iter().enumerate() {
            let Some(window) = window else { continue };
            scanned.moved |= self.scan_window(index, window) && can_grant;
            scanned.blocks |= window.is_open_block() && can_grant;
        }
        scanned
    }

    /// Scans the window that decides on cold memory of `block`, just handed out. The memory before it was
    /// handed out earlier, and has mostly proved dense. So consecutive blocks do not wait for the helper.
    pub(crate) fn scan_near(&self, block: Span) {
        let near = self.state.lock().windows.near(block);
        if let Some((index, window)) = near {
            self.scan_window(index, &window);
        }
    }

    /// Scans the window at `index`, and moves it if it may move. Returns whether it did.
    fn scan_window(&self, index: usize, window: &Window) -> bool {
        let Some(proved) = window.scan() else { return false };
        let mut state = self.state.lock();
        let wanted = state.windows.advance(index, window, proved);
        self.inside.note_granted(state.windows.arena_granted());
        if let Some(span) = wanted
            && state.arena_at(span.start) == Some(crate::state::LARGE)
        {
            state.granted_to = state.granted_to.max(span.end());
        }
        // An arena's is tried where its memory is taken.
        let is_trial = !window.is_arena() && state.windows.is_tried();
        let advice = Advice { is_trial, ..Advice::huge(wanted) };
        drop(state);
        self.apply_advice(&advice);
        true
    }

    /// Does the work of one tick: decay, limits, pressure, the hook.
    fn tick(&self, trigger: Option<&Trigger>, part_is_over: bool) {
        if part_is_over {
            self.decay();
        }
        let cached = self.state.lock().free_pages(Kind::Warm);
        let is_worth_checking = || {
            crate::reason::is_worth_checking(cached) || self.has_discardable() || self.shortage.is_sparse()
        };
        if self.discard_mode().follows_pressure() && is_worth_checking() {
            self.enforce_limits_aside();
            self.mark_idle();
            // If a task stalls, the kernel may take cached frames. The own group at its limit needs them.
            if self.is_in_distress() {
                self.shortage.note_short();
                self.flush_at_limit();
            } else if trigger.map_or_else(pressure::is_stalled, Trigger::fired) {
                self.shortage.note_short();
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

    /// Fetches a piece of the requested span. Returns whether more is left.
    fn fetch_piece(&self) -> bool {
        let [from, to] = &self.helper.fetch;
        let [start, end] = [from, to].map(|word| Addr::new(word.load(Ordering::Acquire)));
        if start >= end {
            return false;
        }
        let stop = (start + FETCH_BYTES).round_down(FETCH_BYTES).min(end);
        // The requester may have replaced the span meanwhile: then this piece is the last of the old one.
        let is_same =
            from.compare_exchange(start.get(), stop.get(), Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_same && map::populate(Span::new(start.round_down(PAGE), stop - start)).is_ok() {
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
    let helper = &pages.helper;
    // Set at the first tick: it takes the kernel a while, and the first thing to do may be a window.
    let mut trigger = None;
    let mut client = Client::default();
    helper.decay.begin(clock::now_ms());
    let mut last_rung = 0;
    let mut backoff = Backoff::new();
    // Whether the helper was brought to the processor of a thread that is about to touch memory.
    let mut is_near = false;
    loop {
        // The bell is read before the state, as a thread that ends the helper changes the state first.
        let rung = helper.bell.load(Ordering::Acquire);
        if helper.life.is_retiring() {
            thread::exit();
        }
        if pages.fetch_piece() {
            continue;
        }
        let is_watched = helper.is_watched.swap(false, Ordering::Relaxed);
        is_near |= is_watched;
        let scanned = pages.scan_windows();
        let now = clock::now_ms();
        if scanned.any {
            let now_ns = clock::now_ns();
            match scanned {
                _ if is_watched => backoff.begin(now_ns),
                Scanned { moved: true, .. } => backoff.moved(now_ns),
                _ if rung != last_rung => backoff.resume(),
                _ => backoff.stood_still(),
            }
            if !scanned.blocks {
                backoff.relax();
            }
        }
        last_rung = rung;
        let (decay_ms, kept) = {
            let state = pages.state.lock();
            (state.config.decay_ms, KEPT.map(|kind| state.free_pages(kind)).iter().sum::<u64>())
        };
        if let Some(part_is_over) = helper.decay.tick(now, decay_ms) {
            if trigger.is_none() && caps::has(Caps::PRESSURE) {
                trigger = Trigger::set();
            }
            pages.tick(trigger.as_ref(), part_is_over);
        }
        client.attend(pages, now);
        let ticks = kept > 0 || pages.vacated.any() || !pages.hook.load(Ordering::Relaxed).is_null();
        let (depth, sleep_ns) = match backoff.next_ns().filter(|_| scanned.any) {
            Some(scan_ns) => (SCANNING, scan_ns),
            None if ticks => (TICKING, tick_ms(decay_ms) * 1_000_000),
            None if scanned.any => (TICKING, TICK_MS.1 * 1_000_000),
            None if pages.advised.is_on() => (TICKING, advice::REPORT_MS * 1_000_000),
            None => (IDLE, IDLE_NS),
        };
        if is_near && sleep_ns > NEAR_NS {
            thread::roam();
            is_near = false;
        }
        helper.sleep.store(depth, Ordering::Release);
        thread::wait(&helper.bell, rung, sleep_ns);
        helper.sleep.store(SCANNING, Ordering::Release);
    }
}
