//! C++ `operator new` and `operator delete`, every form, under their mangled names.
//!
//! The throwing forms follow the standard: without memory they call the installed new-handler repeatedly, and
//! without a handler they throw `std::bad_alloc`. Handler and exception come from libstdc++, which is looked
//! up at first need; a program without it ends with an error message. No exception may pass through Rust
//! frames, so the loop that calls the handler, or throws the exception, is assembly with unwind information.
//! The `nothrow` forms must catch a handler's exceptions, which only C++ code can do. If a handler is
//! installed, these forms call those of libstdc++, which call the throwing forms here.
//!
//! A program may replace some operators. The other operators must then call the program's: `new[]` calls
//! `new`, and a sized `delete` calls the plain one. A library may also replace operators: `libgccpp`, for
//! example, makes objects that the collector scans. The loader finds such a library before libstdc++, but
//! after Vellum if Vellum is preloaded. If any operator is replaced, each operator here therefore jumps to
//! the next definition (`choose`), in the library or libstdc++. Those definitions call each other by name. A
//! library that also defines `malloc` is an allocator, and Vellum replaces all of it.

use crate::attach::{first, name, next};
use crate::{arch, attach, loaded};
use core::ffi::{CStr, c_char, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use vellum_malloc as front;

/// Which operators serve: Vellum's ([`OWN`]) or the next ones.
static WHOSE: AtomicU32 = AtomicU32::new(UNDECIDED);
const OWN: u32 = 0;
const UNDECIDED: u32 = 1;
const NEXT: u32 = 2;

/// Returns the operator `name` that serves: `own`, or the next one, which is cached in `found`. The first
/// call decides; all objects loaded with the program are relocated by then.
extern "C" fn choose(
    name: *const c_char,
    own: *const c_void,
    found: &'static AtomicPtr<c_void>,
) -> *const c_void {
    const RUNTIME: &CStr = c"_ZSt15get_new_handlerv";
    const ALLOCATOR: &CStr = c"malloc";
    if WHOSE.load(Relaxed) == UNDECIDED {
        loaded::begin();
        let is_replaced = [news::NAMES, deletes::NAMES]
            .iter()
            .any(|names| loaded::is_replaced(names, attach::RECORDER, &[RUNTIME, ALLOCATOR]));
        WHOSE.store(if is_replaced { NEXT } else { OWN }, Relaxed);
    }
    if WHOSE.load(Relaxed) == OWN {
        return own;
    }
    // SAFETY: the macro `operator` passes names that end with a zero.
    let next = loaded::next_without(unsafe { CStr::from_ptr(name) }, ALLOCATOR).unwrap_or(own);
    found.store(next.cast_mut(), Relaxed);
    next
}

/// Defines the exported operator `$name`: a jump to Vellum's operator or to the next one.
macro_rules! operator {
    ($(#[$doc:meta])* $own:ident::$name:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The C++ standard's conditions apply.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            const TEXT: &str = concat!(stringify!($name), "\0");
            static NAME: [u8; TEXT.len()] = *TEXT.as_bytes().first_chunk().unwrap();
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            crate::arch::operator!(WHOSE, FOUND, $own::$name, NAME, choose)
        }
    };
}

extern "C" fn try_once(bytes: usize, align: usize) -> *mut c_void {
    front::aligned(align, bytes).cast()
}

type Handler = unsafe extern "C" fn();

/// The installed new-handler, if there is one.
extern "C" fn new_handler() -> Option<Handler> {
    let get = first(c"_ZSt15get_new_handlerv");
    if get.is_null() {
        return None;
    }
    // SAFETY: the signature is that of std::get_new_handler, whose result may be null.
    unsafe { transmute::<*const c_void, unsafe extern "C" fn() -> Option<Handler>>(get)() }
}

/// The C++ runtime's function that throws `std::bad_alloc`.
extern "C" fn thrower() -> *const c_void {
    let throw = first(c"_ZSt17__throw_bad_allocv");
    if throw.is_null() {
        front::Line::new().text("vellum: operator new: out of memory, and no C++ runtime to throw\n").write();
        // SAFETY: abort has no preconditions.
        unsafe { libc::abort() }
    }
    throw
}

/// `operator new` after the fast path has failed: never returns null.
#[unsafe(naked)]
extern "C" fn new_or_throw(bytes: usize, align: usize) -> *mut c_void {
    arch::try_or_throw!(try_once, new_handler, thrower)
}

/// The alignment of every block.
const PLAIN: usize = 16;

#[inline(always)]
fn new(bytes: usize) -> *mut c_void {
    let block = front::malloc(bytes);
    if block.is_null() { new_or_throw(bytes, PLAIN) } else { block.cast() }
}

#[inline(always)]
fn new_aligned(bytes: usize, align: usize) -> *mut c_void {
    let block = front::aligned(align, bytes);
    if block.is_null() { new_or_throw(bytes, align) } else { block.cast() }
}

#[inline(always)]
fn new_nothrow(bytes: usize, nothrow: *const c_void) -> *mut c_void {
    let block = front::malloc(bytes);
    if block.is_null() { catching(bytes, nothrow) } else { block.cast() }
}

#[inline(always)]
fn new_aligned_nothrow(bytes: usize, align: usize, nothrow: *const c_void) -> *mut c_void {
    let block = front::aligned(align, bytes);
    if block.is_null() { catching_aligned(bytes, align, nothrow) } else { block.cast() }
}

/// libstdc++'s `operator new(size_t, nothrow)`, if a handler is installed that it would call.
#[cold]
extern "C" fn catching(bytes: usize, nothrow: *const c_void) -> *mut c_void {
    let Some(next) = new_handler().and_then(|_| next(c"_ZnwmRKSt9nothrow_t")) else {
        return null_mut();
    };
    // SAFETY: the mangled name defines the signature.
    unsafe {
        transmute::<*const c_void, extern "C" fn(usize, *const c_void) -> *mut c_void>(next)(bytes, nothrow)
    }
}

/// libstdc++'s `operator new(size_t, align_val_t, nothrow)`, on the same condition.
#[cold]
extern "C" fn catching_aligned(bytes: usize, align: usize, nothrow: *const c_void) -> *mut c_void {
    type New = extern "C" fn(usize, usize, *const c_void) -> *mut c_void;
    let Some(next) = new_handler().and_then(|_| next(c"_ZnwmSt11align_val_tRKSt9nothrow_t")) else {
        return null_mut();
    };
    // SAFETY: the mangled name defines the signature.
    unsafe { transmute::<*const c_void, New>(next)(bytes, align, nothrow) }
}

macro_rules! operators {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> *mut c_void = $body:expr;)*) => {
        $(operator!($(#[$doc])* news::$name);)*
        mod news {
            use super::*;
            pub(super) const NAMES: &[&CStr] = &[$(name(concat!(stringify!($name), "\0"))),*];
            $(#[allow(non_snake_case)]
            pub(super) extern "C" fn $name($($argument: $type),*) -> *mut c_void {
                $body
            })*
        }
    };
}

operators! {
    /// `operator new(size_t)`
    fn _Znwm(bytes: usize) -> *mut c_void = new(bytes);
    /// `operator new[](size_t)`
    fn _Znam(bytes: usize) -> *mut c_void = new(bytes);
    /// `operator new(size_t, nothrow)`
    fn _ZnwmRKSt9nothrow_t(bytes: usize, nothrow: *const c_void) -> *mut c_void = new_nothrow(bytes, nothrow);
    /// `operator new[](size_t, nothrow)`
    fn _ZnamRKSt9nothrow_t(bytes: usize, nothrow: *const c_void) -> *mut c_void = new_nothrow(bytes, nothrow);
    /// `operator new(size_t, align_val_t)`
    fn _ZnwmSt11align_val_t(bytes: usize, align: usize) -> *mut c_void = new_aligned(bytes, align);
    /// `operator new[](size_t, align_val_t)`
    fn _ZnamSt11align_val_t(bytes: usize, align: usize) -> *mut c_void = new_aligned(bytes, align);
    /// `operator new(size_t, align_val_t, nothrow)`
    fn _ZnwmSt11align_val_tRKSt9nothrow_t(bytes: usize, align: usize, nothrow: *const c_void) -> *mut c_void =
        new_aligned_nothrow(bytes, align, nothrow);
    /// `operator new[](size_t, align_val_t, nothrow)`
    fn _ZnamSt11align_val_tRKSt9nothrow_t(bytes: usize, align: usize, nothrow: *const c_void) -> *mut c_void =
        new_aligned_nothrow(bytes, align, nothrow);
}

macro_rules! deletes {
    ($($(#[$doc:meta])* fn $name:ident($address:ident $(, $argument:ident: $type:ty)*) = $body:expr;)*) => {
        $(operator!($(#[$doc])* deletes::$name);)*
        mod deletes {
            use super::*;
            pub(super) const NAMES: &[&CStr] = &[$(name(concat!(stringify!($name), "\0"))),*];
            $(/// # Safety
            /// The conditions of `free` apply.
            #[allow(non_snake_case)]
            pub(super) unsafe extern "C" fn $name($address: *mut c_void $(, $argument: $type)*) {
                // SAFETY: the block may be freed, by the `# Safety` section.
                unsafe { $body }
            })*
        }
    };
}

deletes! {
    /// `operator delete(void*)`
    fn _ZdlPv(address) = front::free(address.cast());
    /// `operator delete[](void*)`
    fn _ZdaPv(address) = front::free(address.cast());
    /// `operator delete(void*, size_t)`
    fn _ZdlPvm(address, bytes: usize) = front::free_sized(address.cast(), bytes);
    /// `operator delete[](void*, size_t)`
    fn _ZdaPvm(address, bytes: usize) = front::free_sized(address.cast(), bytes);
    /// `operator delete(void*, nothrow)`
    fn _ZdlPvRKSt9nothrow_t(address, _nothrow: *const c_void) = front::free(address.cast());
    /// `operator delete[](void*, nothrow)`
    fn _ZdaPvRKSt9nothrow_t(address, _nothrow: *const c_void) = front::free(address.cast());
    /// `operator delete(void*, align_val_t)`
    fn _ZdlPvSt11align_val_t(address, _align: usize) = front::free(address.cast());
    /// `operator delete[](void*, align_val_t)`
    fn _ZdaPvSt11align_val_t(address, _align: usize) = front::free(address.cast());
    /// `operator delete(void*, size_t, align_val_t)`
    fn _ZdlPvmSt11align_val_t(address, bytes: usize, _align: usize) = front::free_sized(address.cast(), bytes);
    /// `operator delete[](void*, size_t, align_val_t)`
    fn _ZdaPvmSt11align_val_t(address, bytes: usize, _align: usize) = front::free_sized(address.cast(), bytes);
    /// `operator delete(void*, align_val_t, nothrow)`
    fn _ZdlPvSt11align_val_tRKSt9nothrow_t(address, _align: usize, _nothrow: *const c_void) = front::free(address.cast());
    /// `operator delete[](void*, align_val_t, nothrow)`
    fn _ZdaPvSt11align_val_tRKSt9nothrow_t(address, _align: usize, _nothrow: *const c_void) = front::free(address.cast());
}
