//! `GC_debug_*`: objects with a `headers` entry, which records where they were made and reveals writes just
//! before or behind them. Programs that are compiled with `GC_DEBUG` use these functions.

use crate::allocate::{GC_base, GC_free, GC_malloc, GC_malloc_atomic, GC_size, wipe};
use crate::allocate::{GC_malloc_atomic_uncollectable, GC_malloc_uncollectable};
use crate::headers::{ANY, END_MARK, HEADER, Header, MARK, header, look, whole};
use crate::variables::finds_leaks;
use crate::{finalize, kinds, say, state, vel};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    Ordering::{Relaxed, Release},
    compiler_fence,
};

const FREED: usize = 0x9e37_79b9_85eb_ca6b;

/// Makes what was allocated for `bytes` bytes at `base` such an object; what the program sees of it.
fn checked(base: *mut c_void, bytes: usize, file: *const c_char, line: c_int) -> *mut c_void {
    if base.is_null() {
        return base;
    }
    if !ANY.load(Relaxed) {
        ANY.store(true, Relaxed);
        state::watch_objects();
    }
    let seen = base.wrapping_byte_add(HEADER);
    let line = u64::from(line.unsigned_abs());
    // SAFETY: header, bytes and end were allocated.
    unsafe {
        seen.wrapping_byte_add(bytes).cast::<usize>().write_unaligned(END_MARK ^ base.addr());
        base.cast::<Header>().write(Header { mark: 0, file, line, bytes });
        // A thread may be stopped here, and its objects looked at.
        compiler_fence(Release);
        (&raw mut (*base.cast::<Header>()).mark).write_volatile(MARK ^ base.addr());
    }
    seen
}

/// The base of the checked object of which the program sees `seen`; null if it is none.
fn base_of(seen: *mut c_void) -> *mut c_void {
    let base = GC_base(seen);
    let is_checked = !base.is_null() && base.wrapping_byte_add(HEADER) == seen && header(base).is_some();
    if is_checked { base } else { null_mut() }
}

/// Bytes before what the program sees of an object of `GC_debug_malloc`.
#[unsafe(no_mangle)]
pub static GC_debug_header_size: usize = HEADER;

/// The same.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_debug_header_size() -> usize {
    HEADER
}

macro_rules! placed {
    ($($name:ident => $plain:ident;)*) => { $(
        /// The plain function's object, checked.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(bytes: usize, file: *const c_char, line: c_int) -> *mut c_void {
            checked($plain(whole(bytes)), bytes, file, line)
        }
    )* };
}

placed! {
    GC_debug_malloc => GC_malloc;
    GC_debug_malloc_atomic => GC_malloc_atomic;
    GC_debug_malloc_uncollectable => GC_malloc_uncollectable;
    GC_debug_malloc_atomic_uncollectable => GC_malloc_atomic_uncollectable;
    GC_debug_malloc_ignore_off_page => GC_malloc;
    GC_debug_malloc_atomic_ignore_off_page => GC_malloc_atomic;
    GC_debug_malloc_stubborn => GC_malloc;
}

/// A checked object of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_generic_malloc(
    bytes: usize,
    kind: c_int,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    GC_debug_generic_or_special_malloc(bytes, kind, file, line)
}

/// A checked object of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_generic_or_special_malloc(
    bytes: usize,
    kind: c_int,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    checked(kinds::GC_generic_malloc(whole(bytes), kind), bytes, file, line)
}

/// For programs that replace `malloc` by it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_malloc_replacement(bytes: usize) -> *mut c_void {
    GC_debug_malloc(bytes, c"unknown".as_ptr(), 0)
}

/// The same of objects that stay until they are freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_malloc_uncollectable_replacement(bytes: usize) -> *mut c_void {
    GC_debug_malloc_uncollectable(bytes, c"unknown".as_ptr(), 0)
}

/// Changes a checked object's size.
///
/// # Safety
/// As [`GC_realloc`](crate::allocate::GC_realloc).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_realloc(
    object: *mut c_void,
    bytes: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    if object.is_null() {
        return GC_debug_malloc(bytes, file, line);
    }
    if bytes == 0 {
        // SAFETY: passed on.
        unsafe { GC_debug_free(object) };
        return null_mut();
    }
    let base = base_of(object);
    let Some(header) = header(base) else {
        // SAFETY: passed on.
        return unsafe { crate::allocate::GC_realloc(object, bytes) };
    };
    let old = header.bytes;
    // SAFETY: nothing is stored.
    let kind = unsafe { kinds::GC_get_kind_and_size(base, null_mut()) };
    let new = GC_debug_generic_or_special_malloc(bytes, kind, file, line);
    if !new.is_null() {
        // SAFETY: both have that many bytes, and the old one is not used any more.
        unsafe {
            new.copy_from_nonoverlapping(object, old.min(bytes));
            GC_debug_free(object);
        }
    }
    new
}

/// For programs that replace `realloc` by it.
///
/// # Safety
/// As [`GC_debug_realloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_realloc_replacement(object: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { GC_debug_realloc(object, bytes, c"unknown".as_ptr(), 0) }
}

/// [`GC_debug_realloc`]; if there is no memory, the object is freed.
///
/// # Safety
/// As there, and nobody uses the old object any more in either case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_reallocf(
    object: *mut c_void,
    bytes: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    // SAFETY: passed on.
    unsafe {
        let new = GC_debug_realloc(object, bytes, file, line);
        if new.is_null() && bytes != 0 {
            GC_debug_free(object);
        }
        new
    }
}

/// For programs that replace `reallocf` by it.
///
/// # Safety
/// As [`GC_debug_reallocf`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_reallocf_replacement(object: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: passed on.
    unsafe { GC_debug_reallocf(object, bytes, c"unknown".as_ptr(), 0) }
}

/// [`GC_debug_free`] of an object whose first `bytes` bytes are overwritten by zeros before.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_freezero(object: *mut c_void, bytes: usize) {
    let room = header(base_of(object)).map_or(0, |header| header.bytes);
    // SAFETY: the caller's object, which has that many bytes.
    unsafe {
        wipe(object, bytes.min(room));
        GC_debug_free(object);
    }
}

/// Frees an object, checked or not; null is let pass. One that was freed already is reported and let be.
///
/// # Safety
/// As [`GC_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_free(object: *mut c_void) {
    if object.is_null() {
        return;
    }
    let base = GC_base(object);
    // SAFETY: the start of an object, of two words at least.
    if !base.is_null() && unsafe { base.cast::<usize>().read() } == FREED ^ base.addr() {
        let mut address = [0; 16];
        say::line(&[b"libgc (Vellum): freed twice: 0x", say::hex(object.addr(), &mut address)]);
        return;
    }
    let whole = base_of(object);
    if whole.is_null() {
        // SAFETY: passed on.
        return unsafe { GC_free(object) };
    }
    look(whole, GC_size(whole));
    // SAFETY: the caller's object, which nobody uses any more.
    unsafe {
        whole.cast::<usize>().write(FREED ^ whole.addr());
        vel::vel_gc_free_later(whole);
    }
}

/// A checked copy of a C string.
///
/// # Safety
/// As [`GC_strdup`](crate::allocate::GC_strdup).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_strdup(
    text: *const c_char,
    file: *const c_char,
    line: c_int,
) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { GC_debug_strndup(text, usize::MAX, file, line) }
}

/// A checked copy of a C string's first bytes.
///
/// # Safety
/// As [`GC_strndup`](crate::allocate::GC_strndup).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_strndup(
    text: *const c_char,
    bytes: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_char {
    // SAFETY: passed on.
    unsafe { crate::allocate::copy(text, bytes, |bytes| GC_debug_malloc_atomic(bytes, file, line)) }
}

/// A checked copy of a wide string.
///
/// # Safety
/// As [`GC_wcsdup`](crate::allocate::GC_wcsdup).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_wcsdup(
    text: *const libc::wchar_t,
    file: *const c_char,
    line: c_int,
) -> *mut libc::wchar_t {
    // SAFETY: passed on.
    unsafe { crate::allocate::copy_wide(text, |bytes| GC_debug_malloc_atomic(bytes, file, line)) }
}

/// What a finalizer of a checked object is to be called with.
#[repr(C)]
struct Closure {
    procedure: finalize::Procedure,
    data: *mut c_void,
}

/// Calls the program's finalizer with what the program sees of the object.
unsafe extern "C" fn call(base: *mut c_void, closure: *mut c_void) {
    // SAFETY: `register` made the closure, which stays for this call.
    unsafe {
        let Closure { procedure, data } = closure.cast::<Closure>().read();
        procedure(base.wrapping_byte_add(HEADER), data);
    }
}

type Register = unsafe extern "C" fn(
    *mut c_void,
    Option<finalize::Procedure>,
    *mut c_void,
    *mut Option<finalize::Procedure>,
    *mut *mut c_void,
);

/// # Safety
/// As the plain function's.
unsafe fn register(
    plain: Register,
    object: *mut c_void,
    procedure: Option<finalize::Procedure>,
    data: *mut c_void,
    old: *mut Option<finalize::Procedure>,
    old_data: *mut *mut c_void,
) {
    let base = base_of(object);
    // What looks for leaks serves no finalizers: a closure would be one more.
    if base.is_null() || finds_leaks() {
        // SAFETY: passed on.
        return unsafe { plain(object, procedure, data, old, old_data) };
    }
    let (mut before, mut before_data) = (None, null_mut());
    // SAFETY: the closure is new and has room; the places are this function's, or null or the caller's to be
    // written.
    unsafe {
        match procedure {
            Some(procedure) => {
                let closure = GC_malloc(size_of::<Closure>()).cast::<Closure>();
                if !closure.is_null() {
                    closure.write(Closure { procedure, data });
                    plain(base, Some(call), closure.cast(), &raw mut before, &raw mut before_data);
                }
            }
            None => plain(base, None, null_mut(), &raw mut before, &raw mut before_data),
        }
        let is_ours = before.is_some_and(|before| core::ptr::fn_addr_eq(before, call as finalize::Procedure));
        if is_ours {
            let Closure { procedure, data } = before_data.cast::<Closure>().read();
            (before, before_data) = (Some(procedure), data);
        }
        if !old.is_null() {
            old.write(before);
        }
        if !old_data.is_null() {
            old_data.write(before_data);
        }
    }
}

macro_rules! finalizers {
    ($($name:ident => $plain:ident;)*) => { $(
        /// The plain function's, of a checked object.
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
            unsafe { register(finalize::$plain, object, procedure, data, old, old_data) };
        }
    )* };
}

finalizers! {
    GC_debug_register_finalizer => GC_register_finalizer;
    GC_debug_register_finalizer_no_order => GC_register_finalizer_no_order;
    GC_debug_register_finalizer_ignore_self => GC_register_finalizer_ignore_self;
    GC_debug_register_finalizer_unreachable => GC_register_finalizer_unreachable;
}

/// Says nothing: see [`GC_register_displacement`](crate::allocate::GC_register_displacement).
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_register_displacement(_bytes: usize) {}

/// Says nothing to a collector that sees writes by itself.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_change_stubborn(_object: *const c_void) {}

/// Says nothing to a collector that sees writes by itself.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_end_stubborn_change(_object: *const c_void) {}

/// Stores a pointer into an object.
///
/// # Safety
/// `place` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_ptr_store_and_dirty(place: *mut c_void, value: *const c_void) {
    // SAFETY: passed on.
    unsafe { crate::allocate::GC_ptr_store_and_dirty(place, value) };
}
