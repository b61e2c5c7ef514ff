//! Whether a process has its background threads of one kind: who may start them, when they must go, and who
//! waits for whom.
//!
//! ```text
//!             begin                began(true)              bar
//!   absent ──────────▶ starting ───────────────▶ running ─────────▶ retiring ──┐
//!    ▲ ▲  (no bars)       │ began(false)                                       │ all of them are gone
//!    │ └──────────────────┘                                                    │
//!    └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One word has the state, how many *bars* there are, and whether somebody wanted the threads while they were
//! barred. A bar is held around a call that changes who the process is: with one there, nobody starts a
//! thread, so none can be born with what the process is about to give up. A start that has begun is waited
//! for, and what runs is ended, before [`Lifecycle::bar`] returns.
//!
//! # Invariants
//! * Between the first bar and the last *unbar* the state never becomes starting; so what is absent once
//!   stays absent.
//! * A thread whose start has begun has every signal held off until it is over. So a signal handler that bars
//!   never finds its own thread in a start, and nobody waits for a start that waits for him.
//! * Everybody who bars can finish what another has begun: retiring ends when the threads are gone, whichever
//!   side sees it first. So a handler may bar on top of the thread that it interrupted in the middle of the
//!   same.
//! * Only the process that the threads belong to asks ([`crate::owner`]).
//!
//! The tests explore the interleavings over `loom`'s atomics (`tests/loom.rs`), by building this file in a
//! crate whose `atomics` are those.

use crate::atomics::{AtomicU32, Ordering};

const ABSENT: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const RETIRING: u32 = 3;
const STATE: u32 = 3;
/// Somebody wanted the threads while they were barred, or they ran when they were: the last unbar says so.
const WANTED: u32 = 1 << 2;
const BAR: u32 = 1 << 3;

/// The threads, as [`Lifecycle`] needs to know them.
pub trait Crew {
    /// Has them look whether they are to end.
    fn ring(&self);
    /// Whether all have ended; says at once.
    fn have_ended(&self) -> bool;
    /// Waits until all have ended, but not for ever. Whether they have.
    fn wait_until_gone(&self) -> bool;
    /// Waits until `word` is not `seen` any more, for a moment at most.
    fn wait(&self, word: &AtomicU32, seen: u32);
    /// Wakes who waits for `word`.
    fn wake(&self, word: &AtomicU32);
}

/// See the head of this file.
#[derive(Debug)]
pub struct Lifecycle(AtomicU32);

impl Lifecycle {
    /// No threads and no bars, if `word` is 0.
    pub const fn over(word: AtomicU32) -> Lifecycle {
        Lifecycle(word)
    }

    /// In a forked child, which has neither threads nor bars.
    pub fn reset_after_fork(&self) {
        self.0.store(ABSENT, Ordering::Release);
    }

    /// Whether there is nothing to start: they run, or soon will.
    #[inline]
    pub fn is_started(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed) & STATE, STARTING | RUNNING)
    }

    /// Whether there are none, and none is being started.
    #[inline]
    pub fn is_absent(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == ABSENT
    }

    /// For the threads themselves: whether they are to end.
    #[inline]
    pub fn is_retiring(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == RETIRING
    }

    /// Whether the caller, who has all signals held off, is to start the threads now, and to say so by
    /// [`Lifecycle::began`]. Not if somebody else has; nor with a bar there, which is remembered.
    #[must_use]
    pub fn begin(&self, crew: &impl Crew) -> bool {
        let mut seen = self.0.load(Ordering::Acquire);
        loop {
            let (new, begins) = match seen & STATE {
                ABSENT if seen < BAR => (seen & !WANTED | STARTING, true),
                ABSENT | RETIRING if seen >= BAR => (seen | WANTED, false),
                // Nobody waits any more for these to end.
                RETIRING if self.collect(crew) => {
                    seen = self.0.load(Ordering::Acquire);
                    continue;
                }
                _ => return false,
            };
            match self.0.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return begins,
                Err(now) => seen = now,
            }
        }
    }

    /// Notes the end of threads whose retirement was given up. Whether they have ended. With a bar of its
    /// own, so that what has ended are not the threads before those that end now.
    fn collect(&self, crew: &impl Crew) -> bool {
        self.0.fetch_add(BAR, Ordering::AcqRel);
        let ended = crew.have_ended();
        if ended {
            self.note_gone();
        }
        self.0.fetch_sub(BAR, Ordering::AcqRel);
        ended
    }

    /// They run, or could not be started. Only after [`Lifecycle::begin`] has said that the caller is to
    /// start them.
    pub fn began(&self, crew: &impl Crew, run: bool) {
        // From starting, which only the caller ends: the sum is the state wanted.
        let step = if run { RUNNING - STARTING } else { ABSENT.wrapping_sub(STARTING) };
        let before = self.0.fetch_add(step, Ordering::AcqRel);
        debug_assert!(before & STATE == STARTING, "only the starter ends a start");
        if before >= BAR {
            crew.wake(&self.0);
        }
    }

    /// Holds the threads off until [`Lifecycle::unbar`]: ends them if they run. False if they did not end for
    /// long; then nothing is held off.
    #[must_use]
    pub fn bar(&self, crew: &impl Crew) -> bool {
        self.0.fetch_add(BAR, Ordering::AcqRel);
        loop {
            let seen = self.0.load(Ordering::Acquire);
            match seen & STATE {
                ABSENT => return true,
                STARTING => crew.wait(&self.0, seen),
                RUNNING => {
                    let retiring = (seen & !STATE) | RETIRING | WANTED;
                    if self.0.compare_exchange(seen, retiring, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                        crew.ring();
                    }
                }
                _ if crew.wait_until_gone() => self.note_gone(),
                _ => {
                    // What still runs ends when it can, and somebody else will note it.
                    self.0.fetch_sub(BAR, Ordering::AcqRel);
                    return false;
                }
            }
        }
    }

    /// The threads of a retirement have ended.
    fn note_gone(&self) {
        let mut seen = self.0.load(Ordering::Relaxed);
        // Somebody else may have noted it; with a bar there nobody has started new ones since.
        while seen & STATE == RETIRING {
            let absent = seen & !STATE | ABSENT;
            match self.0.compare_exchange(seen, absent, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Ends a bar. Whether the threads are wanted and may be started again.
    #[must_use]
    pub fn unbar(&self) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            // A forked child has none of the bars that there were.
            if seen < BAR {
                return false;
            }
            let last = seen < 2 * BAR;
            let new = if last { (seen - BAR) & !WANTED } else { seen - BAR };
            match self.0.compare_exchange(seen, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return last && seen & WANTED != 0,
                Err(now) => seen = now,
            }
        }
    }
}
