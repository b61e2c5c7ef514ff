//! `GC_debug_*`: checked objects, whose header (`headers`) records where they were made and reveals writes
//! just before or behind them. Programs that are compiled with `GC_DEBUG` use these functions.

use crate::allocate::{GC_base, GC_free, GC_malloc, GC_malloc_atomic, GC_size, wipe};
use crate::allocate::{GC_malloc_atomic_uncollectable, GC_malloc_uncollectable};
use crate::forms::{nothing, passes, same, values};
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

/// Makes a checked object of `base`, allocated for `bytes` bytes; returns the program's pointer to it.
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
    // SAFETY: the caller allocated `whole(bytes)` bytes at `base`: header, bytes and end mark.
    unsafe {
        seen.wrapping_byte_add(bytes).cast::<usize>().write_unaligned(END_MARK ^ base.addr());
        base.cast::<Header>().write(Header { mark: 0, file, line, bytes });
        // The header must be complete before the mark, because a collection may stop the thread here.
        compiler_fence(Release);
        (&raw mut (*base.cast::<Header>()).mark).write_volatile(MARK ^ base.addr());
    }
    seen
}

/// The base of the checked object at the program's pointer `seen`; null if it is not a checked object.
fn base_of(seen: *mut c_void) -> *mut c_void {
    let base = GC_base(seen);
    let is_checked = !base.is_null() && base.wrapping_byte_add(HEADER) == seen && header(base).is_some();
    if is_checked { base } else { null_mut() }
}

/// Bytes before the program's part of an object of `GC_debug_malloc`.
#[unsafe(no_mangle)]
pub static GC_debug_header_size: usize = HEADER;

values! {
    /// The value of [`GC_debug_header_size`].
    GC_get_debug_header_size: usize = HEADER;
}

macro_rules! placed {
    ($($name:ident => $plain:ident;)*) => { $(
        /// Allocates a checked object by the plain function.
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

same! {
    /// Allocates a checked object of a kind.
    GC_debug_generic_malloc(
        bytes: usize, kind: c_int, file: *const c_char, line: c_int
    ) -> *mut c_void = GC_debug_generic_or_special_malloc;
}

/// Allocates a checked object of a kind.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_generic_or_special_malloc(
    bytes: usize,
    kind: c_int,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    checked(kinds::GC_generic_malloc(whole(bytes), kind), bytes, file, line)
}

/// Replaces `malloc` in programs that request it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_malloc_replacement(bytes: usize) -> *mut c_void {
    GC_debug_malloc(bytes, c"unknown".as_ptr(), 0)
}

/// Replaces `malloc` with objects that stay until they are freed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_malloc_uncollectable_replacement(bytes: usize) -> *mut c_void {
    GC_debug_malloc_uncollectable(bytes, c"unknown".as_ptr(), 0)
}

/// Resizes a checked object.
///
/// # Safety
/// The conditions of [`GC_realloc`](crate::allocate::GC_realloc) apply.
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
        // SAFETY: the object is not used any more, by the `# Safety` section.
        unsafe { GC_debug_free(object) };
        return null_mut();
    }
    let base = base_of(object);
    let Some(header) = header(base) else {
        // SAFETY: the old object is not used after it has moved, by the `# Safety` section.
        return unsafe { crate::allocate::GC_realloc(object, bytes) };
    };
    let old = header.bytes;
    // SAFETY: the function accepts any object, and stores nothing at a null pointer.
    let kind = unsafe { kinds::GC_get_kind_and_size(base, null_mut()) };
    let new = GC_debug_generic_or_special_malloc(bytes, kind, file, line);
    if !new.is_null() {
        // SAFETY: both have that many bytes; the old object is not used any more (`# Safety`).
        unsafe {
            new.copy_from_nonoverlapping(object, old.min(bytes));
            GC_debug_free(object);
        }
    }
    new
}

passes! {
    /// Replaces `realloc` in programs that request it.
    "The conditions of [`GC_debug_realloc`] apply."
    GC_debug_realloc_replacement(object: *mut c_void, bytes: usize) -> *mut c_void
        = GC_debug_realloc(object, bytes, c"unknown".as_ptr(), 0);
    /// Replaces `reallocf` in programs that request it.
    "The conditions of [`GC_debug_reallocf`] apply."
    GC_debug_reallocf_replacement(object: *mut c_void, bytes: usize) -> *mut c_void
        = GC_debug_reallocf(object, bytes, c"unknown".as_ptr(), 0);
    /// Makes a checked copy of a C string.
    "The conditions of [`GC_strdup`](crate::allocate::GC_strdup) apply."
    GC_debug_strdup(text: *const c_char, file: *const c_char, line: c_int) -> *mut c_char
        = GC_debug_strndup(text, usize::MAX, file, line);
    /// Makes a checked copy of a C string's first bytes.
    "The conditions of [`GC_strndup`](crate::allocate::GC_strndup) apply."
    GC_debug_strndup(text: *const c_char, bytes: usize, file: *const c_char, line: c_int) -> *mut c_char
        = crate::allocate::copy(text, bytes, |bytes| GC_debug_malloc_atomic(bytes, file, line));
    /// Makes a checked copy of a wide string.
    "The conditions of [`GC_wcsdup`](crate::allocate::GC_wcsdup) apply."
    GC_debug_wcsdup(text: *const libc::wchar_t, file: *const c_char, line: c_int) -> *mut libc::wchar_t
        = crate::allocate::copy_wide(text, |bytes| GC_debug_malloc_atomic(bytes, file, line));
    /// Stores a pointer into an object.
    "`place` can be written."
    GC_debug_ptr_store_and_dirty(place: *mut c_void, value: *const c_void)
        = crate::allocate::GC_ptr_store_and_dirty(place, value);
}

/// [`GC_debug_realloc`], which frees the object if there is no memory.
///
/// # Safety
/// The old object is not used any more, whatever the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_reallocf(
    object: *mut c_void,
    bytes: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    // SAFETY: the old object is not used any more, by the `# Safety` section.
    unsafe {
        let new = GC_debug_realloc(object, bytes, file, line);
        if new.is_null() && bytes != 0 {
            GC_debug_free(object);
        }
        new
    }
}

/// [`GC_debug_free`] after overwriting the first `bytes` bytes with zeros.
///
/// # Safety
/// The conditions of [`GC_debug_free`] apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_freezero(object: *mut c_void, bytes: usize) {
    let room = header(base_of(object)).map_or(0, |header| header.bytes);
    // SAFETY: the length is within the object, which is not used any more, by the `# Safety` section.
    unsafe {
        wipe(object, bytes.min(room));
        GC_debug_free(object);
    }
}

/// Frees an object, checked or not; ignores null. A second free is reported and has no effect.
///
/// # Safety
/// The conditions of [`GC_free`] apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_debug_free(object: *mut c_void) {
    if object.is_null() {
        return;
    }
    let base = GC_base(object);
    // SAFETY: `base` is the start of an object, which has at least two words.
    if !base.is_null() && unsafe { base.cast::<usize>().read() } == FREED ^ base.addr() {
        let mut address = [0; 16];
        say::line(&[b"libgc (Vellum): freed twice: 0x", say::hex(object.addr(), &mut address)]);
        return;
    }
    let whole = base_of(object);
    if whole.is_null() {
        // SAFETY: the object is not used any more, by the `# Safety` section.
        return unsafe { GC_free(object) };
    }
    look(whole, GC_size(whole));
    // SAFETY: the object is not used any more (`# Safety`); its memory stays until the next collection.
    unsafe {
        whole.cast::<usize>().write(FREED ^ whole.addr());
        vel::vel_gc_free_later(whole);
    }
}

/// The procedure and data of a checked object's finalizer.
#[repr(C)]
struct Closure {
    procedure: finalize::Procedure,
    data: *mut c_void,
}

/// Calls the program's finalizer with the program's pointer to the object.
unsafe extern "C" fn call(base: *mut c_void, closure: *mut c_void) {
    // SAFETY: `register` allocated the closure, which is reachable during this call.
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
/// The conditions of the plain function apply.
unsafe fn register(
    plain: Register,
    object: *mut c_void,
    procedure: Option<finalize::Procedure>,
    data: *mut c_void,
    old: *mut Option<finalize::Procedure>,
    old_data: *mut *mut c_void,
) {
    let base = base_of(object);
    // Leak detection runs no finalizers, and would report the closure as a leak.
    if base.is_null() || finds_leaks() {
        // SAFETY: `plain` has the conditions of this function's `# Safety` section.
        return unsafe { plain(object, procedure, data, old, old_data) };
    }
    let (mut before, mut before_data) = (None, null_mut());
    // SAFETY: the closure is new and large enough. `before` and `before_data` are locals; `old` and
    // `old_data` are null or can be written, by the `# Safety` section.
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
        /// The plain function, for a checked object.
        ///
        /// # Safety
        /// The conditions of the plain function apply.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            object: *mut c_void,
            procedure: Option<finalize::Procedure>,
            data: *mut c_void,
            old: *mut Option<finalize::Procedure>,
            old_data: *mut *mut c_void,
        ) {
            // SAFETY: the plain function has the conditions of this `# Safety` section.
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

nothing! {
    /// Has no effect: see [`GC_register_displacement`](crate::allocate::GC_register_displacement).
    GC_debug_register_displacement(usize);
    /// Has no effect: the collector detects writes.
    GC_debug_change_stubborn(*const c_void);
    /// Has no effect: the collector detects writes.
    GC_debug_end_stubborn_change(*const c_void);
}
