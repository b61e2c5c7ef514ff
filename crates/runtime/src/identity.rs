//! Calls that change the process's identity, or that need the process to have only one thread.
//!
//! The C library's `setuid` changes the threads that it has started, not Vellum's background threads. These
//! would keep their user, groups and rights when the program drops its own. `unshare` and `setns` refuse
//! some changes if the process has more than one thread. Around such a call:
//!
//! | threads | before | after, if it succeeded |
//! | --- | --- | --- |
//! | the page layer's background thread (`helper`), the collector's marking threads | ended, and none may start | started again on demand, by the calling thread and with its identity |
//! | the pager's, which all paged memory needs | | make the same call ([`Change`]), while the caller waits |
//!
//! These apply to the calling thread alone: calls by number (`syscall`), `capset`, `setfsuid`, `prctl`,
//! Landlock. Background threads are changed like the thread that called last.
//!
//! A child of `vfork` has no background threads: the threads in its memory belong to its parent, whose
//! identity does not change.
//!
//! Each function wraps the C library's, and fails with `ENOSYS` if the C library does not define it.

use crate::{attach, loaded};
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{gid_t, size_t, uid_t};
use vellum_malloc::{paged, set_errno};
use vellum_pages::Pages;
use vellum_sys::credentials::{self, Change, Groups};
use vellum_sys::{Caps, caps, owner, raw};

/// Leaves an id unchanged.
const SAME: usize = usize::MAX;

/// The action of the pager's threads after a successful call.
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// Make this call, too.
    Same(Change),
    /// Take the caller's supplementary groups.
    SameGroups,
}

/// True if this process has, or may start, background threads.
fn is_concerned() -> bool {
    let may_start = caps::has(Caps::HELPER);
    let may_be = may_start || Pages::global().has_helper() || !vellum_gc::are_helpers_absent();
    // A filter could forbid the calls below, so they are made only if necessary.
    (may_be || paged::is_paging()) && owner::is_here()
}

fn bar() -> bool {
    if !Pages::global().bar_helper() {
        return false;
    }
    let barred = vellum_gc::bar_helpers();
    if !barred {
        Pages::global().unbar_helper();
    }
    barred
}

/// Makes a call that changes the caller's identity. If a background thread cannot be ended, the call fails
/// with `EAGAIN`.
pub(crate) fn change(call: impl FnOnce() -> isize, after: impl FnOnce() -> After) -> isize {
    if !is_concerned() {
        return call();
    }
    if !bar() {
        set_errno(libc::EAGAIN);
        return -1;
    }
    let result = call();
    if result != -1 && paged::is_paging() {
        match after() {
            After::Nothing => {}
            After::Same(change) => paged::follow(change),
            After::SameGroups => match Groups::read() {
                Ok(groups) => paged::follow(groups.change()),
                // Without memory for the list: no groups, which gives fewer rights than the caller's.
                Err(_) => paged::follow(same(libc::SYS_setgroups, [0; 3])),
            },
        }
    }
    vellum_gc::unbar_helpers();
    Pages::global().unbar_helper();
    result
}

/// Makes the system call of that number, with `errno` as in the C library.
///
/// # Safety
/// The conditions of the system call apply.
pub(crate) unsafe fn kernel(number: c_long, args: [usize; 6]) -> isize {
    // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
    match unsafe { raw::syscall(number, args) } {
        Ok(result) => result.cast_signed(),
        Err(errno) => {
            set_errno(errno.raw_os_error());
            -1
        }
    }
}

fn same(number: c_long, [a, b, c]: [usize; 3]) -> Change {
    Change::plain(number, [a, b, c, 0, 0, 0])
}

/// `prctl`, which background threads follow if it changes the caller's privileges.
///
/// # Safety
/// The conditions of the system call apply.
pub(crate) unsafe fn prctl(args: [usize; 6]) -> isize {
    let [option, argument, ..] = args;
    // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
    let call = || unsafe { kernel(libc::SYS_prctl, args) };
    if credentials::is_privilege(option as c_int, argument) {
        change(call, || After::Same(Change::plain(libc::SYS_prctl, args)))
    } else {
        call()
    }
}

/// A call of `syscall` that changes the caller's identity.
///
/// # Safety
/// The conditions of the system call apply.
pub(crate) unsafe extern "C" fn by_number(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    // SAFETY: the program makes this call with these arguments, by the `# Safety` section.
    let call = || unsafe { kernel(number, [a, b, c, d, e, f]) };
    match number {
        libc::SYS_unshare | libc::SYS_setns => change(call, || After::Nothing),
        libc::SYS_setgroups => change(call, || After::SameGroups),
        // SAFETY: the closure runs only after the kernel has read both structures.
        libc::SYS_capset => change(call, || After::Same(unsafe { Change::capset(a as _, b as _) })),
        _ => change(call, || After::Same(same(number, [a, b, c]))),
    }
}

/// The C library's function of that name, cached in `found`.
pub(crate) fn find(name: &CStr, found: &AtomicPtr<c_void>) -> Option<*const c_void> {
    let known = found.load(Relaxed);
    if !known.is_null() {
        return Some(known);
    }
    let next = loaded::next(name).or_else(|| attach::next(name));
    match next {
        Some(function) => found.store(function.cast_mut(), Relaxed),
        None => set_errno(libc::ENOSYS),
    }
    next
}

macro_rules! forwarded {
    ($($name:ident($($argument:ident: $kind:ty),*) = $text:literal, $after:expr;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The conditions of the C library's function apply.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let Some(function) = find($text, &FOUND) else { return -1 };
            // SAFETY: the C library's function of this name has this signature.
            let function = unsafe {
                core::mem::transmute::<*const c_void, unsafe extern "C" fn($($kind),*) -> c_int>(function)
            };
            // SAFETY: the program passes these arguments, by the `# Safety` section.
            change(|| unsafe { function($($argument),*) } as isize, || $after) as c_int
        }
    )* };
}

forwarded! {
    setuid(user: uid_t) = c"setuid", After::Same(same(libc::SYS_setuid, [user as usize, 0, 0]));
    setgid(group: gid_t) = c"setgid", After::Same(same(libc::SYS_setgid, [group as usize, 0, 0]));
    seteuid(user: uid_t) = c"seteuid", After::Same(same(libc::SYS_setresuid, [SAME, user as usize, SAME]));
    setegid(group: gid_t) = c"setegid", After::Same(same(libc::SYS_setresgid, [SAME, group as usize, SAME]));
    setreuid(real: uid_t, effective: uid_t) = c"setreuid",
        After::Same(same(libc::SYS_setreuid, [real as usize, effective as usize, 0]));
    setregid(real: gid_t, effective: gid_t) = c"setregid",
        After::Same(same(libc::SYS_setregid, [real as usize, effective as usize, 0]));
    setresuid(real: uid_t, effective: uid_t, saved: uid_t) = c"setresuid",
        After::Same(same(libc::SYS_setresuid, [real as usize, effective as usize, saved as usize]));
    setresgid(real: gid_t, effective: gid_t, saved: gid_t) = c"setresgid",
        After::Same(same(libc::SYS_setresgid, [real as usize, effective as usize, saved as usize]));
    setfsuid(user: uid_t) = c"setfsuid", After::Same(same(libc::SYS_setfsuid, [user as usize, 0, 0]));
    setfsgid(group: gid_t) = c"setfsgid", After::Same(same(libc::SYS_setfsgid, [group as usize, 0, 0]));
    setgroups(count: size_t, groups: *const gid_t) = c"setgroups", After::SameGroups;
    initgroups(user: *const c_char, group: gid_t) = c"initgroups", After::SameGroups;
    unshare(flags: c_int) = c"unshare", After::Nothing;
    setns(file: c_int, kind: c_int) = c"setns", After::Nothing;
}

/// `capset`.
///
/// # Safety
/// The conditions of the system call apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn capset(header: *mut u32, data: *const u32) -> c_int {
    // SAFETY: the pointers meet the conditions of the system call, by the `# Safety` section.
    unsafe { by_number(libc::SYS_capset, header as usize, data as usize, 0, 0, 0, 0) as c_int }
}
