//! `dlopen` without the flag `RTLD_DEEPBIND`.
//!
//! A library that is loaded with this flag calls the C library's `free`, even for blocks that the program
//! got from Vellum. Vellum therefore clears the flag. `dlopen` continues by a jump that keeps the caller's
//! return address, because the loader's behaviour depends on the caller (relative search paths).

use crate::{arch, attach};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The flags of `dlopen` that are passed on.
static KEPT: AtomicU32 = AtomicU32::new(!(libc::RTLD_DEEPBIND as u32));
/// The C library's `dlopen`, after it was looked up.
static LOADER: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Passes all flags on, because Vellum does not serve this process.
pub(crate) fn leave_alone() {
    KEPT.store(!0, Relaxed);
}

/// Looks up the C library's `dlopen`.
extern "C" fn find() -> *const c_void {
    let loader = attach::next(c"dlopen").unwrap_or(nothing as *const c_void);
    LOADER.store(loader.cast_mut(), Relaxed);
    loader
}

/// Stands for `dlopen` in a C library without it, and returns null.
extern "C" fn nothing() -> *mut c_void {
    core::ptr::null_mut()
}

/// `dlopen`.
///
/// # Safety
/// The conditions of the C library's function apply.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen() {
    arch::load!(KEPT, LOADER, find)
}
