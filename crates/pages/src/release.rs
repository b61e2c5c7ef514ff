//! Gives cached frames back to the kernel: which frames, when, and by `MADV_FREE` (mark) or `MADV_DONTNEED`
//! (flush).
//!
//! | why | when | how |
//! | --- | --- | --- |
//! | decay | as many frames as were not needed during the whole decay time (`low_water`), marked or not | flush |
//! | peak | cold memory is wanted, here or by another allocator that maps it from the kernel (`elsewhere`), and the cache would raise the process's peak | flush |
//! | idle under a limit | not needed for a part of the decay time, in a cgroup with a limit: another process of the cgroup may need frames before the background thread's next check | mark |
//! | pressure | a limit's headroom no longer exceeds what is cached, or tasks stall on memory | mark; flush when the process's cgroup hits its limit |
//! | asked | `malloc_trim`, `munmap`, a block that was never touched | flush |
//!
//! These are the rules of the mode `auto`; `discard` lists the other modes, most of which have other rules.
//! Frames stay unmarked while there is headroom, because marking costs ten times as much as reusing them. A
//! *marked* page is the discardable page of Cooper, Nettles and Subramanian 1992: the kernel takes its frame
//! when it must, without write-back. A *flushed* page loses its frame now.

use crate::config::Severity;
use crate::holes::beside_whole_huge;
use crate::pages::Pages;
use crate::reason::{Reason, is_worth_checking};
use crate::state::{ARENAS, DENSE, KEPT, State, WARM};
use crate::tag::{Kind, PageNo, flag};
use crate::units::PAGE;
use core::sync::atomic::{AtomicU32, Ordering};
use vellum_sys::checks::{Check, Checks};
use vellum_sys::lock::Held;
use vellum_sys::thread::wait;
use vellum_sys::{Span, clock, limits, map};
use vellum_wire::Counter;

/// Extents taken out of the free lists at a time.
pub(crate) const VICTIMS: usize = 16;
/// Most pages flushed by one call into the kernel: 64 MiB, so that a lock on the map is not held for long.
const FLUSH_PAGES: u32 = (64usize << 20).div_euclid(PAGE) as u32;
/// The milliseconds for which a check of the limits is valid.
const CHECK_MS: u64 = 50;
/// Checks, and the time between two, while a thread without memory waits for others to return extents.
const RETURNS_CHECKS: u32 = 1000;
const RETURNS_NS: u64 = 200_000;
/// From this many pages a free is large enough to start the helper for.
const HELPER_MIN: u64 = (512usize << 10).div_euclid(PAGE) as u64;

/// A free extent taken out of its list while its frames are dealt with.
#[derive(Clone, Copy)]
pub(crate) struct Victim {
    pub(crate) arena: usize,
    pub(crate) page: PageNo,
    pub(crate) span: Span,
    pub(crate) flags: u8,
    pub(crate) kind: Kind,
}

impl Victim {
    const NONE: Victim = Victim { arena: 0, page: 0, span: Span::EMPTY, flags: 0, kind: Kind::Cold };

    pub(crate) fn pages(&self) -> u32 {
        self.span.page_count().get() as u32
    }
}

impl Pages {
    /// Does what follows when a block of `pages` pages was given back.
    pub(crate) fn after_free(&self, mut state: Held<'_, State>, pages: u32) {
        let cached = state.free_pages(Kind::Warm);
        let mode = state.config.discard;
        let at_once = state.config.decay_ms == 0 && state.decays();
        let large = u64::from(pages) >= HELPER_MIN;
        let mut is_due = false;
        if self.is_global() && is_worth_checking(cached) && mode.follows_pressure() {
            is_due = cached > state.harmless;
            if !is_due && large {
                let now = clock::now_ms();
                is_due = now.wrapping_sub(state.checked_ms) > CHECK_MS;
                if is_due {
                    state.checked_ms = now;
                }
            }
        }
        state.publish();
        drop(state);
        if at_once {
            self.trim(Severity::Flush);
            return;
        }
        if is_due {
            self.enforce_limits();
        }
        if is_worth_checking(cached) {
            self.mark_at_once(mode);
        }
        if cached >= HELPER_MIN {
            self.request_helper();
        }
    }

    /// Gives the frames of free memory back, or marks it; returns its kind afterwards.
    pub(crate) fn let_go(&self, free: Span, flags: u8, mark: bool) -> Kind {
        let still = self.state.lock().still;
        if mark && !still {
            // SAFETY: the memory is free, and out of its list: no other thread uses it.
            return match unsafe { map::discard(free) } {
                Ok(true) => Kind::Marked,
                Ok(false) => Kind::Cold,
                Err(_) => Kind::Warm,
            };
        }
        // A filter on system calls that lets a program allocate lets it map.
        let anew = still || flags & flag::ENTRY != 0;
        // SAFETY: the memory is free, and out of its list: no other thread uses it.
        let gone = unsafe { if anew { map::renew(free) } else { map::flush(free) } };
        // A range that cannot be flushed (locked memory, a filter on system calls) is still good for reuse.
        if gone.is_ok() { Kind::Cold } else { Kind::Warm }
    }

    /// Takes up to `most` pages of kind `from` out of the free lists, lets go of their frames without the
    /// lock, and puts them back. Returns the pages dealt with.
    fn release(&self, from: Kind, most: u64, mark: bool, reason: Reason) -> u64 {
        let (mut victims, count) = self.take_victims(from, most);
        let victims = &mut victims[..count];
        for victim in &mut *victims {
            victim.kind = match self.let_go(victim.span, victim.flags, mark) {
                // Memory that the kernel refused (locked, a filter on system calls) is still good for reuse.
                Kind::Warm => from,
                kind => kind,
            };
        }
        if reason != Reason::Peak {
            self.flush_tables(victims);
        }
        let done = self.return_victims(victims, from);
        let state = self.state.lock();
        let counter = if mark { Counter::BytesDiscarded } else { reason.counter() };
        state.count(counter, done * PAGE as u64);
        state.publish();
        done
    }

    /// Takes up to `most` pages of kind `from` out of the free lists, largest and oldest first.
    pub(crate) fn take_victims(&self, from: Kind, most: u64) -> ([Victim; VICTIMS], usize) {
        let mut victims = [Victim::NONE; VICTIMS];
        let mut count = 0;
        let mut left = most;
        let mut state = self.state.lock();
        for arena in (0..ARENAS).rev() {
            while count < VICTIMS && left > 0 {
                let limit = u32::try_from(left).unwrap_or(u32::MAX).min(FLUSH_PAGES);
                let Some(taken) = state.arenas[arena].take_victim(from, limit) else { break };
                left -= u64::from(taken.pages);
                let span = state.arenas[arena].span_of(&taken);
                let (page, flags) = (taken.start, taken.flags);
                state.arenas[arena].set_flags(page, flags | flag::AWAY);
                victims[count] = Victim { arena, page, span, flags, kind: from };
                count += 1;
            }
        }
        state.note_low();
        state.away += count;
        (victims, count)
    }

    /// Puts victims back as what they are now; returns the pages that are no longer of kind `from`.
    pub(crate) fn return_victims(&self, victims: &[Victim], from: Kind) -> u64 {
        let mut changed = 0;
        let mut state = self.state.lock();
        state.away -= victims.len();
        for victim in victims {
            let mut flags = victim.flags;
            if victim.kind == Kind::Cold {
                state.entries = state.entries.saturating_sub(u32::from(flags & flag::ENTRY != 0));
                state.resident.shrink(u64::from(victim.pages()));
                flags = 0;
            }
            if victim.kind != from {
                changed += u64::from(victim.pages());
            }
            if victim.kind == Kind::Cold && victim.arena == DENSE {
                self.inside.note_holes(victim.span.start, beside_whole_huge(victim.span));
            }
            state.arenas[victim.arena].set_flags(victim.page, flags);
            state.arenas[victim.arena].free_extent(victim.page, victim.kind);
        }
        changed
    }

    /// Flushes about `pages` free pages of a kind; returns how many went.
    pub(crate) fn flush_some(&self, kind: Kind, pages: u64, reason: Reason) -> u64 {
        let mut gone = 0;
        while gone < pages {
            match self.release(kind, pages - gone, false, reason) {
                0 => break,
                more => gone += more,
            }
        }
        gone
    }

    pub(crate) fn mark_some(&self, pages: u64) -> u64 {
        let mut gone = 0;
        while gone < pages {
            match self.release(Kind::Warm, pages - gone, true, Reason::Pressure) {
                0 => break,
                more => gone += more,
            }
        }
        gone
    }

    /// Gives back unused memory, by severity. Returns the bytes marked or flushed.
    pub fn trim(&self, severity: Severity) -> usize {
        let pages = match severity {
            Severity::Mark => self.mark_some(u64::MAX),
            Severity::Flush => self.flush_some(Kind::Warm, u64::MAX, Reason::Asked),
            Severity::Everything => {
                KEPT.into_iter().map(|kind| self.flush_some(kind, u64::MAX, Reason::Asked)).sum()
            }
        };
        let mut state = self.state.lock();
        if state.is_init {
            for arena in &mut state.arenas {
                arena.retreat();
            }
        }
        pages as usize * PAGE
    }

    /// Waits until no free extent is out of its list: what another thread is dealing with is not memory that
    /// is used up. Bounded, as that thread may have been stopped for good.
    pub(crate) fn await_returns(&self) {
        let nobody = AtomicU32::new(0);
        for _ in 0..RETURNS_CHECKS {
            if self.state.lock().away == 0 {
                return;
            }
            wait(&nobody, 0, RETURNS_NS);
        }
    }

    /// Reads the limits and marks the cached frames that exceed their headroom: a process must never be
    /// killed for them. Half of the least recent headroom stays clear for others.
    pub(crate) fn enforce_limits(&self) {
        if !self.follows_limits() {
            return;
        }
        // A thread can free more while another one checks than the amount that check has found harmless.
        let now = || clock::now_ms() as u32;
        let mut due = self.limits.checks.request(now());
        while let Some(check) = due {
            self.check_limits(&check);
            due = self.limits.checks.done(&check, now());
        }
    }

    /// As [`Pages::enforce_limits`], for the helper, on which the program's threads do not rely: it has to
    /// wait for a processor while they allocate.
    pub(crate) fn enforce_limits_aside(&self) {
        if self.follows_limits() {
            self.check_limits(&self.limits.checks.aside());
        }
    }

    fn check_limits(&self, check: &Check) {
        let limits = self.limits.current();
        let of_group = limits.group_headroom();
        self.state.lock().note_group_headroom(of_group);
        self.apply_check(limits::machine_available().min(of_group.unwrap_or(u64::MAX)), Some(check));
    }

    fn follows_limits(&self) -> bool {
        let state = self.state.lock();
        !state.still && state.config.discard.follows_pressure()
    }

    /// Keeps the unmarked cache within half of `headroom` bytes.
    pub fn apply_limits(&self, headroom: u64) {
        self.apply_check(headroom, None);
    }

    fn apply_check(&self, headroom: u64, check: Option<&Check>) {
        let mut state = self.state.lock();
        let now = clock::now_ms();
        let mut least = headroom;
        if let Some(check) = check {
            if Checks::is_older(check.number, state.check) {
                return;
            }
            state.check = check.number;
            least = state.headroom.note(headroom, now);
        }
        let harmless = least / 2 / PAGE as u64;
        let cached = state.free_pages(Kind::Warm);
        state.harmless = harmless;
        state.checked_ms = now;
        drop(state);
        if cached > harmless {
            self.mark_some(cached - harmless);
        }
    }

    /// Under a control group's limit, marks frames that were not needed since the last tick. Another process
    /// of the group may take the rest of the limit before the next tick, and the kernel then kills unless it
    /// can take the cache.
    pub(crate) fn mark_idle(&self) {
        if self.limits.current().group_headroom().is_none() {
            return;
        }
        let idle = self.state.lock().low_water[WARM].idle();
        let marked = self.mark_some(idle);
        self.state.lock().low_water[WARM].gone(marked);
    }

    /// Returns whether the control group ran into a limit since the last call.
    pub(crate) fn is_in_distress(&self) -> bool {
        let now = self.limits.current().distress();
        let before = self.limits.distress.swap(now, Ordering::Relaxed);
        before != u64::MAX && now > before
    }

    /// Ends a part of the decay time: flushes frames, marked or not, that were not needed in all of it.
    pub fn decay(&self) -> usize {
        if !self.decays() {
            return 0;
        }
        let mut gone = 0;
        for (which, kind) in KEPT.into_iter().enumerate() {
            let surplus = {
                let mut state = self.state.lock();
                let pages = state.free_pages(kind);
                state.low_water[which].tick(pages)
            };
            let flushed = self.flush_some(kind, surplus, Reason::Decay);
            if flushed > 0 {
                self.state.lock().low_water[which].gone(flushed);
                gone += flushed;
            }
        }
        if gone > 0 {
            let mut state = self.state.lock();
            if state.is_init {
                for arena in &mut state.arenas {
                    arena.retreat();
                }
            }
        }
        gone as usize * PAGE
    }
}
