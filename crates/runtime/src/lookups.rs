//! `dlsym` and `dlvsym`, which return Vellum's memory functions in place of the C library's.
//!
//! `dlsym` on a handle of the C library would find that library's `free`. This cannot free the blocks of
//! `strdup`, which come from Vellum's `malloc`. A lookup that would find a memory function of the C library
//! therefore returns Vellum's. All other lookups continue by a jump that keeps the caller's return address,
//! by which the linker identifies the caller. Two handles need no such treatment: `RTLD_DEFAULT` finds
//! Vellum's functions anyway, and `RTLD_NEXT` finds the C library's only from a library after Vellum.
//!
//! Only functions that Vellum implements itself are returned. Vellum's `setuid`, for example, calls the next
//! library's. If that library looked up `setuid` and got Vellum's, the two would call each other for ever.

use crate::attach::{first, object_of};
use crate::{arch, c, loaded, mmap, stats};
use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The C library's load address while Vellum serves, else null.
static C_LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Starts to return Vellum's functions.
pub(crate) fn begin() {
    C_LIBRARY.store(object_of(first(c"__libc_start_main")).cast_mut(), Relaxed);
}

macro_rules! functions {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Vellum's memory function of this name, if there is one.
        fn own(name: &[u8]) -> Option<*const c_void> {
            $($(if name == stringify!($name).as_bytes() {
                return Some($module::$name as *const c_void);
            })*)*
            None
        }
    };
}

functions! {
    c: malloc calloc free cfree free_sized free_aligned_sized realloc reallocarray memalign aligned_alloc
        posix_memalign valloc pvalloc malloc_usable_size;
    stats: malloc_trim mallopt mallinfo2 mallinfo malloc_stats malloc_info;
    mmap: mmap mmap64 munmap mremap mprotect pkey_mprotect madvise posix_madvise mlock mlock2 mlockall;
}

/// The target of lookups that return Vellum's function.
extern "C" fn answer(_handle: *mut c_void, name: *const c_char) -> *const c_void {
    // SAFETY: callers of `dlsym` pass a C string, and `choose` has excluded null.
    own(unsafe { CStr::from_ptr(name) }.to_bytes()).unwrap_or(null())
}

/// Stands for a lookup function that the C library lacks.
extern "C" fn nothing() -> *const c_void {
    null()
}

/// The target of a lookup's jump: the C library's `look_up`, or [`answer`].
fn choose(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: *const c_void,
    look_up: (&CStr, &AtomicPtr<c_void>),
) -> *const c_void {
    type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *const c_void;
    let mut real = look_up.1.load(Relaxed).cast_const();
    if real.is_null() {
        // Not by `dlsym`, which may be the caller.
        loaded::begin();
        real = loaded::other(look_up.0).unwrap_or(nothing as *const c_void);
        look_up.1.store(real.cast_mut(), Relaxed);
    }
    let library = C_LIBRARY.load(Relaxed);
    if library.is_null() || handle == libc::RTLD_DEFAULT || name.is_null() {
        return real;
    }
    // SAFETY: callers of `dlsym` pass null or a C string, and null was excluded above.
    let text = unsafe { CStr::from_ptr(name) };
    let found = if own(text.to_bytes()).is_none() {
        null()
    } else if handle == libc::RTLD_NEXT {
        loaded::next_of(object_of(caller).addr(), text).unwrap_or(null())
    } else {
        // SAFETY: `real` is `dlvsym`, or a function that ignores the last arguments.
        unsafe { transmute::<*const c_void, Dlsym>(real)(handle, name, version) }
    };
    if !found.is_null() && object_of(found) == library { answer as *const c_void } else { real }
}

macro_rules! lookups {
    ($($choose:ident: $name:ident = $text:literal;)*) => {$(
        extern "C" fn $choose(
            handle: *mut c_void,
            name: *const c_char,
            version: *const c_char,
            caller: *const c_void,
        ) -> *const c_void {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            choose(handle, name, version, caller, ($text, &FOUND))
        }

        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// The conditions of the C library's function apply.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            arch::go_to!($choose)
        }
    )*};
}

lookups! {
    choose_plain: dlsym = c"dlsym";
    choose_version: dlvsym = c"dlvsym";
}
