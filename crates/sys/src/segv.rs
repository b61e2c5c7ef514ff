//! The SIGSEGV handler by which [`crate::guard`] finds writes. It passes other faults on to the program's
//! action.
//!
//! ```text
//! fault ──▶ Vellum's handler ──▶ a page that `guard` made read-only: done
//!                            └─▶ anything else: [`pass_on`] to the program's action, as the kernel would
//! program's sigaction(SIGSEGV) ──▶ before [`open`]: the C library, as without Vellum
//!                              ──▶ after it: [`sigaction`] keeps the action, and Vellum's handler stays
//! ```
//!
//! The runtime directs the program's `sigaction` calls here. A program that bypasses this (another preloaded
//! library, a system call) replaces Vellum's handler: [`open`] detects that and returns an error.
//!
//! # Invariants
//! * A program sees its own action only, never Vellum's, in the form in which the kernel would return it.
//! * The program's handler runs with the mask and stack that it requested, and may return, change the
//!   context, or leave by a jump. The kernel chooses the stack when it delivers the signal, by the flags of
//!   Vellum's handler. These follow the program's, except as `alternate_stack_set` states.
//! * The handler reads the action, on any number of threads and without waiting, while another thread
//!   replaces it. Of its two copies, the one not in use is written and then made current by its version. If
//!   the version is still current after the read, no thread can have begun to write to the copy that was
//!   read. These accesses are all sequentially consistent.
//! * The holder of the lock has all signals blocked and touches none of the program's memory.
//! * A call on its way to the C library is counted before it reads the flag `IS_ON`. [`open`] reads the count
//!   after it has set the flag: either the call or `open` sees the other.
//! * A child that shares its parent's memory (`vfork`) has its own actions only in the kernel, and leaves the
//!   parent's record as it is. The same holds for a child made without the runtime: the lock may have been
//!   held at that moment.
//!
//! Source: Appel, Ellis and Li 1988 (title in `guard`). Faults are passed on as in libgc. Departure: also to
//! handlers that the program sets later.

use crate::thread::Undisturbed;
use crate::{Addr, Lock, Span};
use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize};
use rustix::io::Errno;

/// `sigaction`'s own signature.
pub type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
/// A signal handler, by `SA_SIGINFO`.
pub type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// The flags that Linux keeps on this architecture, beside [`RESTORER`]: all others read as 0.
const KEPT: c_int = libc::SA_NOCLDSTOP
    | libc::SA_NOCLDWAIT
    | libc::SA_SIGINFO
    | libc::SA_ONSTACK
    | libc::SA_RESTART
    | libc::SA_NODEFER
    | libc::SA_RESETHAND
    | EXPOSE_TAGBITS;
const EXPOSE_TAGBITS: c_int = 0x800;
/// `SA_RESTORER`, which C libraries add for the kernel.
const RESTORER: c_int = 0x0400_0000;
/// Signals that no mask of a handler has.
const UNMASKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
/// The place of the mask that the handler's return restores: behind the machine's part of 256 bytes.
const MASK_AT: usize = 40 + 256;

/// An action in the kernel's form.
#[derive(Clone, Copy)]
struct Action {
    function: usize,
    flags: c_int,
    mask: u64,
}

impl Action {
    fn of(given: &libc::sigaction) -> Action {
        // SAFETY: the C library's set begins with the kernel's, of eight bytes.
        let mask = unsafe { (&raw const given.sa_mask).cast::<u64>().read() };
        Action { function: given.sa_sigaction, flags: given.sa_flags, mask: mask & !UNMASKABLE }
    }

    fn is_function(self) -> bool {
        self.function != libc::SIG_DFL && self.function != libc::SIG_IGN
    }

    /// The flags of Vellum's handler in front of this action.
    fn flags_in_front(self) -> c_int {
        let followed = match self.function {
            libc::SIG_IGN => libc::SA_ONSTACK | libc::SA_RESTART,
            libc::SIG_DFL => libc::SA_ONSTACK,
            _ => self.flags & (libc::SA_ONSTACK | libc::SA_RESTART),
        };
        let spared = if SPARES_STACKS.load(SeqCst) { libc::SA_ONSTACK } else { 0 };
        libc::SA_SIGINFO | followed & !spared
    }
}

struct Slot {
    function: AtomicUsize,
    flags: AtomicI32,
    mask: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot { function: AtomicUsize::new(libc::SIG_DFL), flags: AtomicI32::new(0), mask: AtomicU64::new(0) }
    }
}

/// The program's action, in the slot of [`VERSION`]'s lowest bit.
static SLOTS: [Slot; 2] = [Slot::new(), Slot::new()];
static VERSION: AtomicUsize = AtomicUsize::new(0);
/// Held while replacing the action or Vellum's handler.
static LOCK: Lock = Lock::new();
/// Vellum's handler was set.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The program's calls that are on their way to the C library.
static PASSING: AtomicUsize = AtomicUsize::new(0);
/// Alternate stacks are not used: see `alternate_stack_set`.
static SPARES_STACKS: AtomicBool = AtomicBool::new(false);
/// Whose actions these are.
static OWNER: AtomicUsize = AtomicUsize::new(0);
/// Vellum's handler, a [`Handler`].
static OURS: AtomicUsize = AtomicUsize::new(0);
/// The C library's function, a [`Sigaction`]; null for the public one.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Has `function`, the C library's own, called for the kernel. To be called where the program's calls, and so
/// this library's, do not reach it.
pub fn set_next(function: Sigaction) {
    NEXT.store(function as *mut c_void, Relaxed);
}

fn next(act: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let next = NEXT.load(Relaxed);
    let function = if next.is_null() {
        libc::sigaction
    } else {
        // SAFETY: stored by `set_next`.
        unsafe { transmute::<*mut c_void, Sigaction>(next) }
    };
    // SAFETY: callers' pointers are null, their own, or the program's for its own call.
    unsafe { function(libc::SIGSEGV, act, old) }
}

fn kernels() -> libc::sigaction {
    // SAFETY: zeros are a valid action.
    let mut now = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    next(core::ptr::null(), &raw mut now);
    now
}

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == OURS.load(SeqCst)
}

fn process() -> usize {
    // SAFETY: a plain call that cannot fail.
    unsafe { crate::raw::syscall(libc::SYS_getpid, [0; 6]) }.unwrap_or(0)
}

/// Runs `body` while nobody else replaces anything.
fn alone<T>(body: impl FnOnce() -> T) -> T {
    let _undisturbed = Undisturbed::new();
    LOCK.lock();
    let result = body();
    LOCK.unlock();
    result
}

fn current() -> Action {
    loop {
        let version = VERSION.load(SeqCst);
        let slot = &SLOTS[version % 2];
        let (function, flags, mask) =
            (slot.function.load(SeqCst), slot.flags.load(SeqCst), slot.mask.load(SeqCst));
        if VERSION.load(SeqCst) == version {
            return Action { function, flags, mask };
        }
    }
}

/// Makes `action` the program's, with the lock held.
fn publish(action: Action) {
    let version = VERSION.load(SeqCst).wrapping_add(1);
    let slot = &SLOTS[version % 2];
    slot.function.store(action.function, SeqCst);
    slot.flags.store(action.flags, SeqCst);
    slot.mask.store(action.mask, SeqCst);
    VERSION.store(version, SeqCst);
}

/// Sets Vellum's handler in front of `action`, with the lock held; whether that was done.
fn install(action: Action) -> bool {
    // SAFETY: zeros are a valid action.
    let mut ours = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    ours.sa_sigaction = OURS.load(SeqCst);
    ours.sa_flags = action.flags_in_front();
    // SAFETY: a set that lives here.
    unsafe { libc::sigfillset(&raw mut ours.sa_mask) };
    next(&raw const ours, core::ptr::null_mut()) == 0
}

/// Has `handler` called for the signal from now on, with all signals blocked, in front of the present action.
/// Later calls return whether that still holds. A process has one handler.
///
/// # Errors
/// `BUSY` if the program sets an action now, or has set one past [`sigaction`]; `INVAL` if refused.
pub fn open(handler: Handler) -> Result<(), Errno> {
    if IS_ON.load(SeqCst) {
        return if is_ours(&kernels()) { Ok(()) } else { Err(Errno::BUSY) };
    }
    // Where nobody has called `set_next` yet, the program's `sigaction` is reached, which does.
    kernels();
    alone(|| {
        if IS_ON.load(SeqCst) {
            return Ok(());
        }
        OURS.store(handler as *const () as usize, SeqCst);
        OWNER.store(process(), SeqCst);
        IS_ON.store(true, SeqCst);
        let taken = if PASSING.load(SeqCst) != 0 {
            Err(Errno::BUSY)
        } else {
            let before = Action::of(&kernels());
            publish(before);
            if install(before) { Ok(()) } else { Err(Errno::INVAL) }
        };
        if taken.is_err() {
            IS_ON.store(false, SeqCst);
        }
        taken
    })
}

/// Sets `action` for a while, whatever Vellum keeps of the program's; returns the action that was set. The
/// handler passes on the faults of others by setting that one again.
pub fn exchange(action: &libc::sigaction) -> libc::sigaction {
    // SAFETY: zeros are a valid action.
    let mut before = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    next(action, &raw mut before);
    before
}

/// Makes `call`, which sets or reads the action. `None` if Vellum's handler is set: use [`sigaction`] then.
pub fn unless_on<T>(call: impl FnOnce() -> T) -> Option<T> {
    PASSING.fetch_add(1, SeqCst);
    let result = if IS_ON.load(SeqCst) { None } else { Some(call()) };
    PASSING.fetch_sub(1, SeqCst);
    result
}

/// `sigaction` of SIGSEGV for the program.
///
/// # Safety
/// The conditions of the C library's function.
pub unsafe fn sigaction(act: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // Read here, and written below: a program's pointer may fault, and its handler may leave by a jump.
    // SAFETY: `act` is null or leads to an action (`# Safety`).
    let given = unsafe { act.as_ref() }.copied();
    let act = given.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    loop {
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        let place = if old.is_null() { core::ptr::null_mut() } else { before.as_mut_ptr() };
        // SAFETY: both are null or lead to what lives here.
        let Some(result) = (unsafe { act_once(act, place) }) else { continue };
        if result == 0 && !old.is_null() {
            // SAFETY: `old` may be written to (`# Safety`), and the action here was written with that result.
            unsafe { old.write(before.assume_init()) };
        }
        return result;
    }
}

/// The same with memory that does not fault; `None` if Vellum's handler was set or refused meanwhile.
///
/// # Safety
/// As [`sigaction`].
unsafe fn act_once(act: *const libc::sigaction, old: *mut libc::sigaction) -> Option<c_int> {
    if let Some(result) = unless_on(|| next(act, old)) {
        return Some(result);
    }
    if process() != OWNER.load(SeqCst) {
        let result = next(act, old);
        // SAFETY: `old` is not null, may be read (`# Safety`), and was just written to.
        if result == 0 && !old.is_null() && is_ours(unsafe { &*old }) {
            // SAFETY: `old` is not null, and may be written to (`# Safety`).
            unsafe { tell(current(), kernels().sa_restorer, old) };
        }
        return Some(result);
    }
    // SAFETY: `act` is null or leads to an action (`# Safety`).
    let wanted = unsafe { act.as_ref() }.map(Action::of);
    let told = alone(|| {
        let now = kernels();
        if !IS_ON.load(SeqCst) {
            return Told::Again;
        }
        if !is_ours(&now) {
            return Told::Past;
        }
        let before = current();
        if let Some(mut wanted) = wanted
            && wanted.function != now.sa_sigaction
        {
            wanted.flags = wanted.flags & KEPT | now.sa_flags & RESTORER;
            publish(wanted);
            if wanted.flags_in_front() != now.sa_flags & KEPT {
                install(wanted);
            }
        }
        Told::Kept(before, now.sa_restorer)
    });
    match told {
        Told::Again => None,
        Told::Past => Some(next(act, old)),
        Told::Kept(before, restorer) => {
            if !old.is_null() {
                // SAFETY: `old` is not null, and may be written to (`# Safety`).
                unsafe { tell(before, restorer, old) };
            }
            Some(0)
        }
    }
}

/// The result of setting an action of the program's.
enum Told {
    /// Vellum's handler could not be set after all: the action is the C library's to set, counted.
    Again,
    /// Somebody has set another past this.
    Past,
    /// The program's action is set; the old one, and the C library's function by which a handler returns.
    Kept(Action, Option<extern "C" fn()>),
}

/// The distance above the caller's frame within which an array in a frame is searched: an alternate stack, a
/// few frames, and their other contents.
const FRAMES: usize = 64 << 10;

/// Records that the calling thread, with its last frame at `frame`, has set an alternate stack at `start`.
///
/// An alternate stack in a frame is often left set after its function has returned. That has no effect until
/// the program crashes. But Vellum's handler is called all the time, and its frames would overwrite the
/// thread's live ones. The handler stays off alternate stacks from then on, and a handler of stack overflows
/// is not called any more. A stack close above another one counts as such, too.
pub fn alternate_stack_set(start: Addr, frame: Addr) {
    let is_in_frame = Span::new(frame, FRAMES).contains(start);
    if is_in_frame
        && !SPARES_STACKS.swap(true, SeqCst)
        && IS_ON.load(SeqCst)
        && process() == OWNER.load(SeqCst)
    {
        alone(|| {
            if is_ours(&kernels()) {
                install(current());
            }
        });
    }
}

/// Writes `action` to `old`, as C libraries do, with the part of the mask that the kernel has.
///
/// # Safety
/// `old` may be written to.
unsafe fn tell(action: Action, restorer: Option<extern "C" fn()>, old: *mut libc::sigaction) {
    // SAFETY: `old` may be written to (`# Safety`).
    unsafe {
        (*old).sa_sigaction = action.function;
        (&raw mut (*old).sa_mask).cast::<u64>().write(action.mask);
        (*old).sa_flags = action.flags;
        (*old).sa_restorer = restorer.filter(|_| action.flags & RESTORER != 0);
    }
}

/// After a fork, in the child, which has one thread and its parent's actions.
pub fn fork_child() {
    LOCK.reset_after_fork();
    PASSING.store(0, SeqCst);
    // A program's filter may forbid the call.
    if IS_ON.load(SeqCst) {
        OWNER.store(process(), SeqCst);
    }
}

/// The program's action for a signal that is delivered now: once, if it was set for one.
fn delivered() -> Action {
    let is_once = |action: Action| action.flags & libc::SA_RESETHAND != 0 && action.is_function();
    let action = current();
    if !is_once(action) {
        return action;
    }
    if process() != OWNER.load(SeqCst) {
        set_default();
        return action;
    }
    alone(|| {
        let action = current();
        if is_once(action) {
            publish(Action { function: libc::SIG_DFL, ..action });
        }
        action
    })
}

/// Has the kernel take the default action.
fn set_default() {
    // SAFETY: zeros are the default action, without flags.
    let default = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
    next(&raw const default, core::ptr::null_mut());
}

/// Passes a signal on from Vellum's handler to the program's action, with the handler's arguments.
pub(crate) fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let action = delivered();
    // The mask that it would have had: the interrupted one, what it asked for, and its own signal.
    let own = if action.flags & libc::SA_NODEFER == 0 { 1 << (signal - 1) } else { 0u64 };
    // SAFETY: the kernel passed the context.
    let mask = unsafe { context.cast::<u8>().add(MASK_AT).cast::<u64>().read() } | action.mask | own;
    let block = [libc::SIG_SETMASK as usize, &raw const mask as usize, 0, size_of::<u64>(), 0, 0];
    // SAFETY: plain rt_sigprocmask with a set of eight bytes that lives here.
    let _ = unsafe { crate::raw::syscall(libc::SYS_rt_sigprocmask, block) };
    // SAFETY: the kernel passed it.
    let was_sent = unsafe { (*info).si_code } <= 0;
    match action.function {
        libc::SIG_IGN if was_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            set_default();
            if was_sent {
                // It was sent, and nothing will fault again: it waits until this handler returns.
                let ids = [libc::SYS_getpid, libc::SYS_gettid]
                    // SAFETY: getpid and gettid take no pointers and change nothing.
                    .map(|call| unsafe { crate::raw::syscall(call, [0; 6]) }.unwrap_or(0));
                // SAFETY: sends a signal to this thread.
                let _ = unsafe {
                    crate::raw::syscall(libc::SYS_tgkill, [ids[0], ids[1], signal as usize, 0, 0, 0])
                };
            }
        }
        function if action.flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with that flag, the action's function takes the three.
            unsafe { transmute::<usize, Handler>(function)(signal, info, context) };
        }
        function => {
            // SAFETY: without the flag, the action's function takes the signal.
            unsafe { transmute::<usize, extern "C" fn(c_int)>(function)(signal) };
        }
    }
}
