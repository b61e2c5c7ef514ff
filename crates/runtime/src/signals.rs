//! `sigaction`, `signal` and the like, for programs that handle SIGSEGV.
//!
//! The collector detects writes by SIGSEGV where the kernel does not report written pages. A program's
//! handler in place of the collector's would be called for faults that are no errors. The program's action
//! is therefore only stored. The collector's handler runs it for all faults that are not the collector's:
//! see [`segv`].
//!
//! For every other signal, and until the collector handles SIGSEGV, each function only calls the C
//! library's. The C library's functions are looked up when this library is loaded, because signal handlers
//! call these functions and must not look anything up. `sigset` and `siginterrupt` remain the C library's,
//! because programs do not use them for faults.

use crate::attach;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{SIGSEGV, sighandler_t};
use vellum_malloc::set_errno;
use vellum_sys::Addr;
use vellum_sys::segv::{self, Sigaction};

type Signal = unsafe extern "C" fn(c_int, sighandler_t) -> sighandler_t;

/// A function of the C library, looked up once.
struct Theirs {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

/// Stored for a function that the C library lacks.
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
        // A library that is loaded before this one may call before the constructor ran `find`.
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

/// The C library's `sigaction`, also stored for the collector's handler before that is set.
fn their_sigaction() -> Option<Sigaction> {
    // SAFETY: the C library's function of that name has this signature.
    let function = unsafe { transmute::<*mut c_void, Sigaction>(SIGACTION.get()?) };
    segv::set_next(function);
    Some(function)
}

/// `sigaction`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    act: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    let Some(theirs) = their_sigaction() else { return -1 };
    if signal == SIGSEGV {
        // SAFETY: `act` and `old` are the program's, by the `# Safety` section.
        unsafe { segv::sigaction(act, old) }
    } else {
        // SAFETY: `act` and `old` are the program's, by the `# Safety` section.
        unsafe { theirs(signal, act, old) }
    }
}

/// Sets `handler` by the C library's function `theirs`. If the collector handles the signal, `flags` and a
/// mask of the signal are used.
///
/// # Safety
/// The conditions of the C library's `signal` apply.
unsafe fn set(theirs: &Theirs, signal: c_int, handler: sighandler_t, flags: c_int) -> sighandler_t {
    // SAFETY: the C library's functions of these names have this signature.
    let Some(theirs) = theirs.get().map(|found| unsafe { transmute::<*mut c_void, Signal>(found) }) else {
        return libc::SIG_ERR;
    };
    // SAFETY: the program passes a valid handler, by the `# Safety` section.
    let call = || unsafe { theirs(signal, handler) };
    // An invalid handler is an error for any signal, which the C library reports.
    if signal != SIGSEGV || handler == libc::SIG_ERR {
        return call();
    }
    if let Some(before) = segv::unless_on(call) {
        return before;
    }
    // SAFETY: `sigaction` is plain data, for which zeros are valid.
    let (mut act, mut old) = unsafe { MaybeUninit::<[libc::sigaction; 2]>::zeroed().assume_init() }.into();
    act.sa_sigaction = handler;
    act.sa_flags = flags;
    // SAFETY: both are locals; the program passes a valid handler, by the `# Safety` section.
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

/// `signal`, after which interrupted system calls are restarted.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the handler is valid, by the `# Safety` section.
    unsafe { set(&SIGNAL, signal, handler, libc::SA_RESTART) }
}

/// `bsd_signal`: another name of `signal`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bsd_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the handler is valid, by the `# Safety` section.
    unsafe { self::signal(signal, handler) }
}

/// `ssignal`: another name of `signal`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ssignal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the handler is valid, by the `# Safety` section.
    unsafe { self::signal(signal, handler) }
}

/// `__sysv_signal`: `signal` in programs compiled for the plain C standard. The handler is called once, with
/// no signal blocked. In musl it equals `signal`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    let flags = if SYSV_SIGNAL.get() == SIGNAL.get() {
        libc::SA_RESTART
    } else {
        libc::SA_RESETHAND | libc::SA_NODEFER
    };
    // SAFETY: the handler is valid, by the `# Safety` section.
    unsafe { set(&SYSV_SIGNAL, signal, handler, flags) }
}

/// `sysv_signal`: another name of `__sysv_signal`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sysv_signal(signal: c_int, handler: sighandler_t) -> sighandler_t {
    // SAFETY: the handler is valid, by the `# Safety` section.
    unsafe { __sysv_signal(signal, handler) }
}

/// `sigaltstack`, which also records the stack for the collector's handler: not every stack suits it.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    type Set = unsafe extern "C" fn(*const libc::stack_t, *mut libc::stack_t) -> c_int;
    let Some(found) = SIGALTSTACK.get() else { return -1 };
    // SAFETY: the C library's function of that name has this signature.
    let theirs = unsafe { transmute::<*mut c_void, Set>(found) };
    // SAFETY: `new` and `old` are the program's, by the `# Safety` section.
    let result = unsafe { theirs(new, old) };
    if result == 0 && !new.is_null() {
        // Queried, because `old` may be the same place as `new`.
        let mut set = libc::stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: null sets nothing; `set` is a local.
        let known = unsafe { theirs(core::ptr::null(), &raw mut set) };
        if known == 0 && set.ss_flags & libc::SS_DISABLE == 0 {
            let frame = 0u8;
            segv::alternate_stack_set(Addr::of(set.ss_sp), Addr::of(&raw const frame));
        }
    }
    result
}
