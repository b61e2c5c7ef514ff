//! Leak detection (`GC_find_leak`): the program frees its objects, and unreachable objects that it has not
//! freed are reported.
//!
//! Each object gets a finalizer that reports it. Freeing the object removes the finalizer; an object that
//! dies with it has leaked. If a collection finds many leaks, the first are reported one by one and the rest
//! in one line (`leak_round`). The program's own finalizers and links have no effect in this mode, as with
//! libgc.

use crate::collection::watch_leaks;
use crate::variables::{GC_find_leak, finds_leaks};
use crate::{headers, kinds, leak_round, say, state, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

/// The order in which all dead objects are reported at once.
const UNORDERED: c_int = 1;

/// Bytes of an object's description (`GC_TYPE_DESCR_LEN`).
const DESCRIPTION: usize = 40;

/// An object was made; null is let pass.
#[cold]
pub(crate) fn made(object: *mut c_void) -> *mut c_void {
    if finds_leaks() && !object.is_null() {
        // Without memory for it the object is not reported.
        // SAFETY: the function takes every object.
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
        // SAFETY: any address may be asked about.
        let room = || unsafe { vel::vel_gc_size(vel::vel_gc_base(object)) };
        return leak_round::count(headers::place_of(object).map_or_else(room, |(_, _, bytes)| bytes));
    }
    let mut place = [0; 20];
    let (mut address, mut size) = ([0; 16], [0; 20]);
    let (file, line, bytes) = match headers::place_of(object) {
        Some((file, line, bytes)) => (say::bytes(file), say::decimal(u64::from(line), &mut place), bytes),
        // SAFETY: any address may be asked about.
        None => (&b""[..], &b""[..], unsafe { vel::vel_gc_size(vel::vel_gc_base(object)) }),
    };
    let user = headers::seen_of(object);
    let between: &[u8] = if file.is_empty() { b"" } else { b":" };
    let mut text = [0; DESCRIPTION];
    // SAFETY: nothing is stored.
    if let Some(describe) = kinds::description(unsafe { kinds::GC_get_kind_and_size(object, null_mut()) }) {
        // SAFETY: the program's own function, and room for what it writes.
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

/// Whether leaks are looked for; to be said before the first object is made.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_find_leak(on: c_int) {
    GC_find_leak.store(on, Relaxed);
    if state::is_started() {
        watch_leaks();
    }
}

/// What [`GC_set_find_leak`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_find_leak() -> c_int {
    GC_find_leak.load(Relaxed)
}
