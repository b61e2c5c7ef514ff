//! Leak detection (`GC_find_leak`): the program frees its objects, and unreachable objects that it has not
//! freed are reported.
//!
//! Each object gets a finalizer that reports it. Freeing the object removes the finalizer; an object that
//! dies with its finalizer has leaked. If a collection finds many leaks, the first are reported one by one,
//! the rest as a number (`leak_round`). The program's finalizers and links have no effect in this mode, as
//! with libgc.

use crate::collection::watch_leaks;
use crate::forms::values;
use crate::variables::{GC_find_leak, finds_leaks};
use crate::{headers, kinds, leak_round, say, state, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

/// The order in which all dead objects are reported at once.
const UNORDERED: c_int = 1;

/// Bytes of an object's description (`GC_TYPE_DESCR_LEN`).
const DESCRIPTION: usize = 40;

/// Watches a new object; accepts null.
#[cold]
pub(crate) fn made(object: *mut c_void) -> *mut c_void {
    if finds_leaks() && !object.is_null() {
        // Without memory for its finalizer, the object is not reported.
        // SAFETY: `leaked` accepts every object, and null places are not written.
        unsafe {
            vel::vel_gc_replace_finalizer(
                object,
                Some(leaked),
                null_mut(),
                UNORDERED,
                null_mut(),
                null_mut(),
            );
        }
    }
    object
}

unsafe extern "C" fn leaked(object: *mut c_void, _data: *mut c_void) {
    if !leak_round::is_reported() {
        // SAFETY: both functions accept any address.
        let room = || unsafe { vel::vel_gc_size(vel::vel_gc_base(object)) };
        return leak_round::count(headers::place_of(object).map_or_else(room, |(_, _, bytes)| bytes));
    }
    let mut place = [0; 20];
    let (mut address, mut size) = ([0; 16], [0; 20]);
    let (file, line, bytes) = match headers::place_of(object) {
        Some((file, line, bytes)) => (say::bytes(file), say::decimal(u64::from(line), &mut place), bytes),
        // SAFETY: both functions accept any address.
        None => (&b""[..], &b""[..], unsafe { vel::vel_gc_size(vel::vel_gc_base(object)) }),
    };
    let user = headers::seen_of(object);
    let between: &[u8] = if file.is_empty() { b"" } else { b":" };
    let mut text = [0; DESCRIPTION];
    // SAFETY: the function accepts any object, and stores nothing at a null pointer.
    if let Some(describe) = kinds::description(unsafe { kinds::GC_get_kind_and_size(object, null_mut()) }) {
        // SAFETY: a `Describe` writes at most 40 bytes, the size of `text`.
        unsafe { describe(user, text.as_mut_ptr().cast()) };
    }
    let described = &text[..text.iter().position(|&byte| byte == 0).unwrap_or(DESCRIPTION)];
    say::line(&[
        b"libgc (Vellum): leaked: 0x",
        say::hex(user.addr(), &mut address),
        b", ",
        say::decimal(bytes as u64, &mut size),
        b" bytes ",
        file,
        between,
        line,
        b" ",
        described,
    ]);
}

/// Enables leak detection; to be called before the first object is made.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_find_leak(on: c_int) {
    GC_find_leak.store(on, Relaxed);
    if state::is_started() {
        watch_leaks();
    }
}

values! {
    /// The value of [`GC_set_find_leak`].
    GC_get_find_leak: c_int = GC_find_leak.load(Relaxed);
}
