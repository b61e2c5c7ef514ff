//! A thread of the collector's own that uses the time in which the whole program waits.
//!
//! ```text
//!  mutator   ── blocking region ──────────────────────────────▶ out: a slice that runs gives way
//!                  │ pokes, if there is work                          ▲
//!  this      parked ──▶ is everybody blocked? ──▶ slices ──▶ gives way ┘ ──▶ parked
//! ```
//!
//! A program that waits in blocking regions need not call [`idle`](fn@crate::idle) itself: this does. It is made when a thread first enters such a
//! region, and only where the heap's settings ask for it; a forked child makes its own. Finalizers of what its collections find
//! dead run on it.
//!
//! # Invariants
//! * While it is parked it is blocked: nobody waits for it, and it is no mutator that runs.
//! * It begins no slice while another known thread runs. One that comes out of its region is waited for by the slice that
//!   runs ([`Waiting`](crate::budget::Waiting)), and not the other way round.
//! * The end of a collection, which cannot be cut short, is made when everybody has waited for as long as it should take.
//! * Whoever could be the last to run pokes it: on entering a blocking region, and on ending.
//!
//! Source: Bates, section "Improving the Results": slices while no thread is ready. There the scheduler runs them; a library has
//! no scheduler, and this thread stands in for it.

use crate::heap::Heap;
use crate::idle;
use crate::stop;
use crate::thread::{self, others_run};
use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use vellum_sys::{clock, thread as futex};

/// How long it sleeps between looks, if nobody pokes it.
const PARKED_MAX_NS: u64 = 3_600_000_000_000;
/// … and while everybody waits and there is something left to do.
const SOON_NS: u64 = 1_000_000;
/// The part of the room from which on there is work: half of it. Nobody has asked, so nothing is done long before it is due.
const WORTH_PART: usize = 2;

/// Nobody asks for it.
const UNWANTED: u32 = 0;
/// It is to be made.
const WANTED: u32 = 1;
/// It has been made.
const MADE: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(UNWANTED);
/// Changes when it is poked.
static POKES: AtomicU32 = AtomicU32::new(0);
/// Whether there may be something to do.
static WORK: AtomicBool = AtomicBool::new(false);

/// Has the thread made when it is first of use.
pub(crate) fn want() {
    STATE.store(WANTED, Ordering::Relaxed);
}

/// In a forked child: it has stayed with the parent.
pub(crate) fn forget() {
    if STATE.load(Ordering::Relaxed) == MADE {
        want();
    }
}

/// Makes it if it is wanted. Before the caller enters a blocking region.
#[inline]
pub(crate) fn ensure() {
    if STATE.load(Ordering::Relaxed) == WANTED {
        make();
    }
}

#[cold]
fn make() {
    if STATE.compare_exchange(WANTED, MADE, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return;
    }
    // The new thread inherits a mask in which everything is blocked, so that the program's signals go to the program's threads; but for the one that
    // stops: `pthread_create` takes locks of the C library's, which a thread that is stopped already may hold.
    // SAFETY: plain calls; the sets and attributes live here.
    let made = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigdelset(all.as_mut_ptr(), stop::signal());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
        let made = libc::pthread_create(thread.as_mut_ptr(), core::ptr::null(), run, core::ptr::null_mut());
        if made == 0 {
            libc::pthread_detach(thread.assume_init());
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        made
    };
    if made != 0 {
        // The next region tries again: threads may be short for a while only.
        STATE.store(WANTED, Ordering::Release);
    }
}

/// Wakes it if there is something to do. The caller is blocked, or no mutator any more.
#[inline]
pub(crate) fn poke() {
    if WORK.load(Ordering::Relaxed) && STATE.load(Ordering::Relaxed) == MADE {
        POKES.fetch_add(1, Ordering::Release);
        futex::wake(&POKES);
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let Some(thread) = thread::attached() else {
        STATE.store(WANTED, Ordering::Release);
        return core::ptr::null_mut();
    };
    let mut seen = POKES.load(Ordering::Acquire);
    let mut since = clock::now_ns();
    loop {
        let is_left = idle::unasked(clock::now_ns() - since, WORTH_PART);
        let is_quiet = !others_run();
        if !is_left && is_quiet {
            WORK.store(false, Ordering::Relaxed);
        }
        let sleep_ns = if is_left && is_quiet { SOON_NS } else { PARKED_MAX_NS };
        thread::parked(thread, || futex::wait(&POKES, seen, sleep_ns));
        let now = POKES.load(Ordering::Acquire);
        if now != seen {
            // Somebody has run since, and waits now.
            (seen, since) = (now, clock::now_ns());
        }
    }
}

impl Heap {
    /// Notes that enough was allocated for idle time to be used, if it is.
    #[inline]
    pub(crate) fn note_work(&self) {
        if self.config.idle_thread && self.used >= self.room / WORTH_PART && !WORK.load(Ordering::Relaxed) {
            WORK.store(true, Ordering::Relaxed);
        }
    }
}
