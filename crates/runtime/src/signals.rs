//! `sigaction`, `signal` and the like, for programs that handle SIGSEGV.
//!
//! Where the kernel does not report written pages, the collector detects writes by SIGSEGV. A program's
//! handler in place of the collector's would be called for faults that are no errors. The program's action is
//! therefore stored, and called for all other faults: see [`segv`].
//!
//! For every other signal, and until the collector handles SIGSEGV, each function only calls the C library's.
//! The C library's functions are looked up when this library is loaded, because signal handlers call these
//! functions and must not look anything up. `sigset` and `siginterrupt` remain the C library's, because
//! programs do not use them for faults.

use crate::attach;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{SIGSEGV, sighandler_t};
use vellum_malloc::set_errno;
use vellum_sys::segv::{self, Sigaction};

type Signal = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;

/// A function of the C library's.
struct Theirs {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

/// What is kept of a function that the C library does not have.
const NONE: *mut c_void = without_provenance_mut(1);

static SIGACTION: Theirs = Theirs::of(c"sigaction");
static SIGNAL: Theirs = Theirs::of(c"signal");
static SYSV_SIGNAL: Theirs = Theirs::of(c"__sysv_signal");
static SIGALTSTACK: Theirs = Theirs::of(c"sigaltstack");

impl Theirs {
    const fn of(name: &'static CStr) -> Theirs {
        Theirs { name, found: AtomicPtr::new(null_mut()) }
    }

    fn find(&self) -> *mut c_void {
        let found = attach::c_librarys(self.name).map_or(NONE, <*const c_void>::cast_mut);
        self.found.store(found, Relaxed);
        found
    }

    fn get(&self) -> Option<*mut c_void> {
        let known = self.found.load(Relaxed);
        // A library that is loaded before this one may call before `find`.
        let known = if known.is_null() { self.find() } else { known };
        if known == NONE {
            set_errno(libc::ENOSYS);
            return None;
        }
        Some(known)
    }
}

/// Looks up the C library's functions.
pub(crate) fn find() {
    for function in [&SIGACTION, &SIGNAL, &SYSV_SIGNAL, &SIGALTSTACK] {
        function.find();
    }
    their_sigaction();
}

/// The C library's `sigaction`, which the collector's handler learns too, before it can be set.
fn their_sigaction() -> Option<Sigaction> {
    // SAFETY: the function of that name has this signature.
    let function = unsafe { transmute::<*mut c_void, Sigaction>(SIGACTION.get()?) };
    segv::set_next(function);
    Some(function)
}

/// `sigaction`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    act: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(theirs) = their_sigaction() else { return -1 };
    if signal == SIGSEGV {
        // SAFETY: the program's own call, with its own arguments.
        unsafe { segv::sigaction(act, old) }
    } else {
        // SAFETY: as above.
        unsafe { theirs(signal, act, old) }
    }
}

/// Sets `handler` by `theirs`, or by `flags` and with a mask of the signal itself if the collector handles
/// it.
///
/// # Safety
/// As for the C library's `signal`.
unsafe fn set(theirs: &Theirs, signal: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    // SAFETY: the functions of these names have this signature.
    let Some(theirs) = theirs.get().map(|found| unsafe { transmute::<*mut c_void, Signal>(found) }) else {
        return libc::SIG_ERR;
    };
    // SAFETY: the program's own call, with its own arguments.
    let call = || unsafe { theirs(signal, handler) };
    // An error of the handler's is one for any handler of the signal.
    if signal != SIGSEGV || handler == libc::SIG_ERR {
        return call();
    }
    if let Some(before) = segv::unless_on(call) {
        return before;
    }
    // SAFETY: zeros are a valid action.
    let (mut act, mut old) = unsafe { MaybeUninit::<[libc::sigaction; 2]>::zeroed().assume_init() }.into();
    act.sa_sigaction = handler;
    act.sa_flags = flags;
    // SAFETY: both live here; what the handler does is the program's concern.
    unsafe {
        if flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&raw mut act.sa_mask, signal);
        }
        if segv::sigaction(&raw const act, &raw mut old) != 0 {
            return libc::SIG_ERR;
        }
    }
    old.sa_sigaction
}

/// `signal`, by which system calls go on.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's condition.
    unsafe { set(&SIGNAL, signal, handler, libc::SA_RESTART) }
}

/// `bsd_signal`: the same.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's condition.
    unsafe { self::signal(signal, handler) }
}

/// `ssignal`: the same.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's condition.
    unsafe { self::signal(signal, handler) }
}

/// `__sysv_signal`, which `signal` is for programs compiled by the standard alone: once, and nothing is
/// blocked. musl's is `signal`.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    let flags = if SYSV_SIGNAL.get() == SIGNAL.get() {
        libc::SA_RESTART
    } else {
        libc::SA_RESETHAND | libc::SA_NODEFER
    };
    // SAFETY: by this function's condition.
    unsafe { set(&SYSV_SIGNAL, signal, handler, flags) }
}

/// `sysv_signal`: the same.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: by this function's condition.
    unsafe { __sysv_signal(signal, handler) }
}

/// `sigaltstack`, which the collector's handler learns: it cannot use every one.
///
/// # Safety
/// As for the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    type Set = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    let Some(found) = SIGALTSTACK.get() else { return -1 };
    // SAFETY: the function of that name has this signature.
    let theirs = unsafe { transmute::<*mut c_void, Set>(found) };
    // SAFETY: the program's own call, with its own arguments.
    let result = unsafe { theirs(new, old) };
    if result == 0 && !new.is_null() {
        // Asked for: `old` may be the same place.
        let mut set = libc::stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: nothing is set; the answer lives here.
        let known = unsafe { theirs(core::ptr::null(), &raw mut set) };
        if known == 0 && set.ss_flags & libc::SS_DISABLE == 0 {
            let frame = 0u8;
            segv::alternate_stack_set(set.ss_sp as usize, (&raw const frame).addr());
        }
    }
    result
}
