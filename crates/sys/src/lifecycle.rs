//! The states of a process's background threads: starting them, ending them, and waiting for both.
//!
//! ```text
//!             begin                began(true)              bar                   (functions of this file)
//!   absent ──────────▶ starting ───────────────▶ running ─────────▶ retiring ──┐
//!    ▲ ▲  (no bars)       │ began(false)                                       │ all threads are gone
//!    │ └──────────────────┘                                                    │
//!    └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! One word holds the state, the number of *bars*, and whether threads were requested during a bar. A bar is
//! held around a call that changes the process's user or rights. No thread is started during a bar, so none
//! can keep rights that the process gives up. [`Lifecycle::bar`] waits for a start that has begun, and ends
//! the running threads, before it returns.
//!
//! # Invariants
//! * Between the first bar and the last *unbar* the state never becomes starting: absent threads stay absent.
//! * The thread that starts background threads has every signal blocked until the start is over. A signal
//!   handler that calls `bar` never interrupts a start on its own thread, so no wait is circular.
//! * Every caller of `bar` can complete the retiring that another caller began, when the threads are gone. A
//!   signal handler may therefore call `bar` on a thread that it interrupted in `bar`.
//! * Only the process that owns the threads ([`crate::owner`]) uses this type.
//!
//! The tests build this file over `loom`'s atomics and explore the interleavings (`tests/loom.rs`).

use crate::atomics::{AtomicU32, Ordering};

const ABSENT: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const RETIRING: u32 = 3;
const STATE: u32 = 3;
/// The threads were requested while they were barred, or ran when they were: the last unbar returns true.
const WANTED: u32 = 1 << 2;
const BAR: u32 = 1 << 3;

/// The operations on the threads that [`Lifecycle`] needs.
pub trait Crew {
    /// Has them look whether they are to end.
    fn ring(&self);
    /// True if all have ended; returns at once.
    fn have_ended(&self) -> bool;
    /// Waits until all have ended, but not for ever. Returns whether they have.
    fn wait_until_gone(&self) -> bool;
    /// Waits until `word` is not `seen` any more, for a moment at most.
    fn wait(&self, word: &AtomicU32, seen: u32);
    /// Wakes a waiter on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// The state of the background threads, and the bars.
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

    /// True if the threads run, or soon will.
    #[inline]
    pub fn is_started(&self) -> bool {
        matches!(self.0.load(Ordering::Relaxed) & STATE, STARTING | RUNNING)
    }

    /// True if there are none, and none is being started.
    #[inline]
    pub fn is_absent(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == ABSENT
    }

    /// For the threads themselves: whether they are to end.
    #[inline]
    pub fn is_retiring(&self) -> bool {
        self.0.load(Ordering::Acquire) & STATE == RETIRING
    }

    /// Returns true if the caller, with all signals held off, must start the threads now, and then call
    /// [`Lifecycle::began`]. False if another thread does, or there is a bar.
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

    /// Notes the end of threads whose retirement was given up. Returns whether they have ended. Holds a bar
    /// meanwhile, so that no threads are started in between.
    fn collect(&self, crew: &impl Crew) -> bool {
        self.0.fetch_add(BAR, Ordering::AcqRel);
        let ended = crew.have_ended();
        if ended {
            self.note_gone();
        }
        self.0.fetch_sub(BAR, Ordering::AcqRel);
        ended
    }

    /// They run, or could not be started. Only after [`Lifecycle::begin`] has returned true.
    pub fn began(&self, crew: &impl Crew, run: bool) {
        // From starting, which only the caller ends: the sum is the state wanted.
        let step = if run { RUNNING - STARTING } else { ABSENT.wrapping_sub(STARTING) };
        let before = self.0.fetch_add(step, Ordering::AcqRel);
        debug_assert!(before & STATE == STARTING, "only the starter ends a start");
        if before >= BAR {
            crew.wake(&self.0);
        }
    }

    /// Bars the threads until [`Lifecycle::unbar`], and ends them. False, without a bar, if they did not end.
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

    /// Ends a bar. Returns true if the threads were requested and may be started again.
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
