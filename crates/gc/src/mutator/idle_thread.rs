//! The idle thread: a thread of the collector's that collects while all threads of the program wait.
//!
//! ```text
//!  program's ── blocking region ─────────────────────────────▶ leaves: a slice under way yields
//!                  │ wakes the idle thread, if there is work          ▲
//!  idle      asleep ──▶ all threads blocked? ────▶ slices ──▶ yields ─┘ ──▶ asleep
//! ```
//!
//! A *slice* is a piece of a collection. A *blocking region* is code in which a thread has promised not to
//! touch the heap. With the idle thread, a program that waits in such regions need not call
//! [`idle`](fn@crate::mutator::idle::idle). If the settings enable it, the idle thread is made when a thread
//! first enters such a region; a forked child makes a new one. The idle thread also runs the finalizers of
//! objects that its collections find dead.
//!
//! # Invariants
//! * While the idle thread sleeps it counts as blocked: no collection waits for it.
//! * It begins no slice while another registered thread runs. A slice yields to a thread that leaves its
//!   region ([`Waiting`](crate::world::budget::Waiting)).
//! * The last slice of a collection cannot be cut short. It is made only after all threads have been blocked
//!   for as long as this slice will take.
//! * Every thread that could be the last to run wakes the idle thread when entering a blocking region, and
//!   when ending.
//!
//! Source: Bates 1999, section "Improving the Results": slices while no thread is ready. There the scheduler
//! runs the slices; a library has no scheduler, so this thread does.

use crate::instance::world;
use crate::mutator::{attach, idle};
use crate::process::signal::signal;
use crate::world::idle_signal::WORTH_PART;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use vellum_sys::clock;

/// The thread's longest sleep without a poke.
const PARKED_MAX_NS: u64 = 3_600_000_000_000;
/// … and while all threads wait and there is something left to do.
const SOON_NS: u64 = 1_000_000;

/// Makes the thread if it was requested. Before the caller enters a blocking region.
#[inline]
pub(crate) fn ensure() {
    if world().idle.is_wanted() {
        make();
    }
}

#[cold]
fn make() {
    if !world().idle.is_claimed() {
        return;
    }
    // The new thread inherits a mask in which every signal is blocked, so that the program's signals go to
    // the program's threads. The exception is the signal that stops threads: `pthread_create` takes locks of
    // the C library's, which a thread that is stopped already may hold.
    // SAFETY: the sets and the thread's number live until the calls return, and `run` is a thread's function.
    let made = unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigdelset(all.as_mut_ptr(), signal());
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
        // The next region tries again: the lack of threads may pass.
        world().idle.want();
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    let Some(thread) = attach::attached() else {
        world().idle.want();
        return core::ptr::null_mut();
    };
    let mut seen = world().idle.pokes();
    let mut since = clock::now_ns();
    loop {
        let is_left = idle::unasked(clock::now_ns() - since, WORTH_PART);
        let is_quiet = !world().others_run();
        if !is_left && is_quiet {
            world().idle.no_work();
        }
        let sleep_ns = if is_left && is_quiet { SOON_NS } else { PARKED_MAX_NS };
        attach::parked(thread, || world().idle.wait(seen, sleep_ns));
        let now = world().idle.pokes();
        if now != seen {
            // Another thread has run since, and waits now.
            (seen, since) = (now, clock::now_ns());
        }
    }
}
