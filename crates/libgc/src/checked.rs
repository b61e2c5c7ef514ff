//! `GC_debug_*`: what programs call that are compiled with `GC_DEBUG`. The place in the source is let pass: objects are not
//! surrounded by marks, and `vellum cost` tells where they are made.

use crate::{allocate, finalize};
use core::ffi::{c_char, c_int, c_void};

macro_rules! placed {
    ($($name:ident => $plain:ident;)*) => { $(
        /// The plain function's; the place is let pass.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(bytes: usize, _file: *const c_char, _line: c_int) -> *mut c_void {
            allocate::$plain(bytes)
        }
    )* };
}

placed! {
    GC_debug_malloc => GC_malloc;
    GC_debug_malloc_atomic => GC_malloc_atomic;
    GC_debug_malloc_uncollectable => GC_malloc_uncollectable;
    GC_debug_malloc_atomic_uncollectable => GC_malloc_atomic_uncollectable;
    GC_debug_malloc_ignore_off_page => GC_malloc_ignore_off_page;
    GC_debug_malloc_atomic_ignore_off_page => GC_malloc_atomic_ignore_off_page;
    GC_debug_malloc_stubborn => GC_malloc_stubborn;
}

/// For programs that replace `malloc` by it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_malloc_replacement(bytes: usize) -> *mut c_void {
    allocate::GC_malloc(bytes)
}

/// The plain function's.
///
/// # Safety
/// As [`allocate::GC_realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_realloc(
    object: *mut c_void,
    bytes: usize,
    _file: *const c_char,
    _line: c_int,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { allocate::GC_realloc(object, bytes) }
}

/// For programs that replace `realloc` by it.
///
/// # Safety
/// As [`allocate::GC_realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_realloc_replacement(object: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { allocate::GC_realloc(object, bytes) }
}

/// The plain function's.
///
/// # Safety
/// As [`allocate::GC_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_free(object: *mut c_void) {
    // SAFETY: passed on.
    unsafe { allocate::GC_free(object) };
}

/// The plain function's.
///
/// # Safety
/// As [`allocate::GC_strdup`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_strdup(
    text: *const c_char,
    _file: *const c_char,
    _line: c_int,
) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { allocate::GC_strdup(text) }
}

/// The plain function's.
///
/// # Safety
/// As [`allocate::GC_strndup`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_strndup(
    text: *const c_char,
    bytes: usize,
    _file: *const c_char,
    _line: c_int,
) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { allocate::GC_strndup(text, bytes) }
}

macro_rules! finalizers {
    ($($name:ident => $plain:ident;)*) => { $(
        /// The plain function's.
        ///
        /// # Safety
        /// As the plain function's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            object: *mut c_void,
            procedure: Option<finalize::Procedure>,
            data: *mut c_void,
            old: *mut Option<finalize::Procedure>,
            old_data: *mut *mut c_void,
        ) {
            // SAFETY: passed on.
            unsafe { finalize::$plain(object, procedure, data, old, old_data) };
        }
    )* };
}

finalizers! {
    GC_debug_register_finalizer => GC_register_finalizer;
    GC_debug_register_finalizer_no_order => GC_register_finalizer_no_order;
    GC_debug_register_finalizer_ignore_self => GC_register_finalizer_ignore_self;
}

/// Says nothing: see [`allocate::GC_register_displacement`].
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_register_displacement(_bytes: usize) {}
