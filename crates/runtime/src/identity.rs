//! Calls that change who the process is, or need it to have one thread.
//!
//! Vellum's helper is a thread that the C library does not know, so it would keep the user and groups it was born with
//! when the program gives up privileges, and `unshare` and `setns` refuse some changes to a process with two threads.
//! The helper is ended before such a call; one that is needed later starts with the new identity.
//!
//! Each function is the C library's with that in front. Where the C library does not define it, neither does the
//! program call it.

use crate::standing;
use core::ffi::{CStr, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
use libc::{gid_t, size_t, uid_t};
use vellum_malloc::set_errno;
use vellum_pages::Pages;

/// Ends the helper and finds the C library's function of that name.
fn before(name: &CStr, found: &AtomicPtr<c_void>) -> Option<*const c_void> {
    Pages::global().retire_helper();
    let known = found.load(Relaxed);
    if !known.is_null() {
        return Some(known);
    }
    let next = standing::next(name);
    match next {
        Some(function) => found.store(function.cast_mut(), Relaxed),
        None => set_errno(libc::ENOSYS),
    }
    next
}

macro_rules! forwarded {
    ($($name:ident($($argument:ident: $kind:ty),*) = $text:literal;)*) => { $(
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> c_int {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let Some(function) = before($text, &FOUND) else { return -1 };
            // SAFETY: the C library's function of this name has this signature.
            let function = unsafe {
                core::mem::transmute::<*const c_void, unsafe extern "C" fn($($kind),*) -> c_int>(function)
            };
            // SAFETY: the program's own call, with its own arguments.
            unsafe { function($($argument),*) }
        }
    )* };
}

forwarded! {
    setuid(user: uid_t) = c"setuid";
    setgid(group: gid_t) = c"setgid";
    seteuid(user: uid_t) = c"seteuid";
    setegid(group: gid_t) = c"setegid";
    setreuid(real: uid_t, effective: uid_t) = c"setreuid";
    setregid(real: gid_t, effective: gid_t) = c"setregid";
    setresuid(real: uid_t, effective: uid_t, saved: uid_t) = c"setresuid";
    setresgid(real: gid_t, effective: gid_t, saved: gid_t) = c"setresgid";
    setgroups(count: size_t, groups: *const gid_t) = c"setgroups";
    unshare(flags: c_int) = c"unshare";
    setns(file: c_int, kind: c_int) = c"setns";
}
