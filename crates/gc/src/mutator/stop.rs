//! Stopping the world, by signal or at safepoints.
//!
//! The collector holds the heap's lock. It signals every known thread that is running; the handler saves
//! where the thread's stack ends (its registers are above, where the kernel put them), and waits for the
//! epoch to change. A thread that is inside the collector stops itself when it leaves. Threads that are
//! blocked already need nothing.
//!
//! With safepoints, the user's choice, there is no signal: the collector sets a flag. The thread stops when
//! it next leaves the collector or comes to [`safepoint`](crate::safepoint). The stop may come one safepoint
//! late: the thread reads the flag without a barrier.
//!
//! One signal serves for stopping and for going on: waiting is a futex. The handler touches nothing of the C
//! library.

use crate::mutator::thread::{self, BLOCKED, INSIDE, RUNNING, STOPPED, Thread};
use crate::mutator::tls;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use vellum_sys::thread as futex;

/// The signal lies this far below the highest one, where programs seldom look for a free one.
const BELOW_LAST: i32 = 5;
/// How long the collector waits between two tests of a thread that has not stopped yet.
const WAIT_NS: u64 = 1_000_000;
/// How long a stopped thread sleeps between two tests of the epoch.
const WAIT_MAX_NS: u64 = 3_600_000_000_000;
/// Tests before the collector sleeps.
const SPINS: u32 = 200;

/// Changes when the world goes on.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// Changes when a thread has stopped.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// Whether a stop is wanted: a signal that comes late finds it false.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Whether threads stop at safepoints only.
static SAFEPOINTS: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The signal that the program has chosen; 0: none.
static WISH: AtomicI32 = AtomicI32::new(0);

/// The signal that stops threads.
pub fn signal() -> i32 {
    match WISH.load(Ordering::Relaxed) {
        0 => libc::SIGRTMAX() - BELOW_LAST,
        wish => wish,
    }
}

/// Sets the signal that stops threads. False if it is too late, as the collector knows a thread, or if there
/// is no such signal.
pub fn set_signal(signal: i32) -> bool {
    if !(1..=libc::SIGRTMAX()).contains(&signal) || SIGNAL.load(Ordering::Acquire) != 0 {
        return signal == self::signal();
    }
    WISH.store(signal, Ordering::Relaxed);
    true
}

/// Installs the handler, once, and lets the calling thread receive the signal.
pub(crate) fn prepare() {
    let signal = signal();
    if SIGNAL.swap(signal, Ordering::AcqRel) == 0 {
        // SAFETY: a zeroed action is a valid one.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler is async-signal-safe; other signals wait until the world goes on.
        unsafe {
            libc::sigfillset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        }
    }
    // SAFETY: plain calls on a set that lives here.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut());
    }
}

extern "C" fn on_signal(_signal: libc::c_int) {
    let Some(thread) = tls::current() else { return };
    match thread.state.load(Ordering::Relaxed) {
        RUNNING => stop_here(thread),
        // It stops on leaving only if that is still wanted: the thread may have been blocked when it was
        // sent.
        INSIDE => thread.stop_asked.store(true, Ordering::Relaxed),
        _ => {}
    }
}

/// Stops the calling thread until the world goes on, if it is to stop.
#[inline(never)]
pub(crate) fn stop_here(thread: &Thread) {
    thread.stop_asked.store(false, Ordering::Relaxed);
    let mut registers = tls::NO_REGISTERS;
    let low = thread.stops_at(tls::spill(&mut registers).min(registers.as_ptr() as usize));
    loop {
        let epoch = EPOCH.load(Ordering::SeqCst);
        // Together with the collector's store and load in `world`: either the stop is seen here, or the
        // collector sees this thread running.
        if !WANTED.load(Ordering::SeqCst) && !thread.suspended.load(Ordering::SeqCst) {
            break;
        }
        thread.stack_low.store(low, Ordering::Relaxed);
        thread.state.store(STOPPED, Ordering::SeqCst);
        futex::wake(&ARRIVED);
        while EPOCH.load(Ordering::Acquire) == epoch {
            futex::wait(&EPOCH, epoch, WAIT_MAX_NS);
        }
        // The next collection may have begun already, and have taken this thread for stopped.
        thread.state.store(RUNNING, Ordering::SeqCst);
    }
    thread.aside.set((0, 0));
    core::hint::black_box(&registers);
}

/// Makes threads stop at safepoints only. Called before any thread is known.
pub(crate) fn at_safepoints() {
    SAFEPOINTS.store(true, Ordering::Relaxed);
}

/// Stops every known thread but the caller, who holds the heap's lock.
pub(crate) fn world() {
    WANTED.store(true, Ordering::SeqCst);
    // SAFETY: plain call.
    let process = unsafe { libc::getpid() } as u32;
    let signal = signal();
    let is_still = |thread: &Thread| matches!(thread.state.load(Ordering::SeqCst), BLOCKED | STOPPED);
    for thread in thread::known().filter(|thread| !thread.is_current()) {
        if !is_still(thread) && SAFEPOINTS.load(Ordering::Relaxed) {
            thread.stop_asked.store(true, Ordering::SeqCst);
        } else if !is_still(thread) {
            let tid = thread.tid.load(Ordering::Relaxed);
            // SAFETY: sends a signal whose handler is installed.
            unsafe { libc::syscall(libc::SYS_tgkill, process, tid, signal) };
        }
    }
    for thread in thread::known().filter(|thread| !thread.is_current()) {
        let mut looks = 0;
        loop {
            let arrived = ARRIVED.load(Ordering::Acquire);
            if is_still(thread) || thread.tid.load(Ordering::Acquire) == 0 {
                break;
            }
            looks += 1;
            if looks > SPINS {
                futex::wait(&ARRIVED, arrived, WAIT_NS);
            } else {
                core::hint::spin_loop();
            }
        }
    }
}

/// Lets the world go on.
pub(crate) fn go_on() {
    WANTED.store(false, Ordering::SeqCst);
    futex::wake(&EPOCH);
}

/// Makes stopped threads test whether they are still to stand still. The caller holds the heap's lock.
pub(crate) fn look_again() {
    futex::wake(&EPOCH);
}

/// Drops a stop that was under way in the parent, in a forked child.
pub(crate) fn forget() {
    WANTED.store(false, Ordering::Relaxed);
}
