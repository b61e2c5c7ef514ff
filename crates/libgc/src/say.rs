//! Lines on standard error, and warnings, which a program may take to itself.
//!
//! Written without allocating: most are said when memory is short.

use core::ffi::{c_char, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// `GC_warn_proc`: a message in the manner of `printf` with one place for a word, and the word.
pub type WarnProc = unsafe extern "C" fn(message: *mut c_char, argument: usize);

/// Null: warnings go to standard error.
static WARN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Writes the parts and the end of the line, at once.
pub(crate) fn line(parts: &[&[u8]]) {
    let mut text = [0; 256];
    let mut length = 0;
    for part in parts.iter().copied().chain([&b"\n"[..]]) {
        let room = text.len() - length;
        let taken = part.len().min(room);
        text[length..length + taken].copy_from_slice(&part[..taken]);
        length += taken;
    }
    // SAFETY: so many bytes are there. What cannot be written is lost.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length) };
}

/// The bytes of a C string; none for null.
pub(crate) fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return b"";
    }
    // SAFETY: the callers pass C strings of the program, which stay for the call.
    unsafe { core::ffi::CStr::from_ptr(text) }.to_bytes()
}

/// Warns of something that a program's user may want to know; `message` ends with a zero.
pub(crate) fn warn(message: &'static core::ffi::CStr, argument: usize) {
    match warn_proc() {
        // SAFETY: the program's procedure takes these.
        Some(procedure) => unsafe { procedure(message.as_ptr().cast_mut(), argument) },
        None => line(&[message.to_bytes()]),
    }
}

fn warn_proc() -> Option<WarnProc> {
    // SAFETY: null or what was set, and an option of a function has null for none.
    unsafe { core::mem::transmute::<*mut c_void, Option<WarnProc>>(WARN.load(Relaxed)) }
}

/// Has warnings go to `procedure`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_warn_proc(procedure: Option<WarnProc>) {
    WARN.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Relaxed);
}

/// Where warnings go.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_warn_proc() -> WarnProc {
    warn_proc().unwrap_or(to_standard_error)
}

/// A procedure for `GC_set_warn_proc` that says nothing.
#[unsafe(no_mangle)]
pub extern "C" fn GC_ignore_warn_proc(_message: *mut c_char, _argument: usize) {}

extern "C" fn to_standard_error(message: *mut c_char, _argument: usize) {
    line(&[bytes(message)]);
}
