//! `gc_gcj.h`: objects that begin with a pointer to a structure (such as a class table), which contains the
//! object's mark descriptor.

use crate::forms::same;
use crate::kinds::{self, MarkProc};
use crate::variables::{GC_gcj_debug_kind, GC_gcj_kind};
use crate::{checked, start};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::Ordering::{Acquire, Release};

/// The descriptor's offset in the structure: behind one word.
const DESCRIPTOR_AT: isize = size_of::<usize>() as isize;
/// The descriptor of a kind whose objects have theirs there: see `GC_DS_PER_OBJECT` in gc_mark.h.
const BY_FIRST_WORD: usize = (-DESCRIPTOR_AT - kinds::INDIRECT_BIAS).cast_unsigned() | kinds::PER_OBJECT;

/// Defines the two kinds. `procedure` gets this number, by which descriptors may name it, and marks objects
/// of [`GC_debug_gcj_malloc`]. A second call has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn GC_init_gcj_malloc(number: c_int, procedure: Option<MarkProc>) {
    start::ensure();
    crate::lock::GC_alloc_lock();
    if GC_gcj_kind.load(Acquire) == 0 {
        if let (Some(procedure), Ok(number)) = (procedure, usize::try_from(number)) {
            kinds::reserve(number, procedure);
        }
        let list = core::ptr::null_mut();
        let plain = kinds::GC_new_kind(list, BY_FIRST_WORD, 0, 1);
        let checked = kinds::GC_new_kind(list, kinds::procedure_descriptor(number as usize, 1), 0, 1);
        GC_gcj_debug_kind.store(checked as c_int, Release);
        GC_gcj_kind.store(plain as c_int, Release);
    }
    crate::lock::GC_alloc_unlock();
}

/// [`GC_init_gcj_malloc`] for a structure whose descriptor lies at `offset`, which must be behind one word,
/// as in gc_gcj.h.
#[unsafe(no_mangle)]
pub extern "C" fn GC_init_gcj_malloc_mp(number: c_uint, procedure: Option<MarkProc>, offset: usize) {
    if offset != DESCRIPTOR_AT.cast_unsigned() {
        crate::abort::give_up(c"libgc: GC_init_gcj_malloc_mp: the descriptor must lie behind one word");
    }
    GC_init_gcj_malloc(number.cast_signed(), procedure);
}

/// The kind that [`GC_init_gcj_malloc`] defined.
fn kind() -> c_int {
    match GC_gcj_kind.load(Acquire) {
        0 => crate::abort::give_up(c"libgc: GC_gcj_malloc: GC_init_gcj_malloc was not called"),
        kind => kind,
    }
}

/// Allocates an object whose first word points to `class`.
#[unsafe(no_mangle)]
pub extern "C" fn GC_gcj_malloc(bytes: usize, class: *mut c_void) -> *mut c_void {
    let object = kinds::GC_generic_malloc(bytes.max(size_of::<usize>()), kind());
    if object.is_null() {
        return object;
    }
    // SAFETY: the object is new and has at least a word.
    unsafe { object.cast::<*mut c_void>().write(class) };
    object
}

same! {
    /// Like [`GC_gcj_malloc`].
    GC_gcj_malloc_ignore_off_page(bytes: usize, class: *mut c_void) -> *mut c_void = GC_gcj_malloc;
}

/// Allocates a checked object. Its mark procedure is called with an environment of 1 and the object's base.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_gcj_malloc(
    bytes: usize,
    class: *mut c_void,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    let _ = kind();
    let bytes = bytes.max(size_of::<usize>());
    let kind = GC_gcj_debug_kind.load(Acquire);
    let object = checked::GC_debug_generic_or_special_malloc(bytes, kind, file, line);
    if !object.is_null() {
        // SAFETY: the object is new, and its program's part has at least a word.
        unsafe { object.cast::<*mut c_void>().write(class) };
    }
    object
}
