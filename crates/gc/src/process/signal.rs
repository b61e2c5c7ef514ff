//! The signal that stops the program's threads: its number, which the program may choose, and its handler.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering};

/// The signal lies this far below the highest one, where programs seldom look for a free one.
const BELOW_LAST: i32 = 5;

/// The signal whose handler is installed; 0: none yet.
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

/// Sets the signal that stops threads. False if a thread was registered before, or if there is no such
/// signal.
pub fn set_signal(signal: i32) -> bool {
    if !(1..=libc::SIGRTMAX()).contains(&signal) || SIGNAL.load(Ordering::Acquire) != 0 {
        return signal == self::signal();
    }
    WISH.store(signal, Ordering::Relaxed);
    true
}

/// Makes `handler` the signal's, once, and lets the calling thread receive the signal. The handler may be
/// called anywhere in the program.
pub(crate) fn prepare(handler: extern "C" fn(c_int)) {
    let signal = signal();
    if SIGNAL.swap(signal, Ordering::AcqRel) == 0 {
        // SAFETY: a zeroed action is a valid one.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the handler is async-signal-safe; other signals wait until the world goes on.
        unsafe {
            libc::sigfillset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, core::ptr::null_mut());
        }
    }
    // SAFETY: zeros are a valid set, which lives until the calls return; the mask is the calling thread's.
    unsafe {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, core::ptr::null_mut());
    }
}
