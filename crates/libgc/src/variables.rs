//! The exported variables, which older programs set and read directly; newer programs call functions.
//!
//! Assigning to a variable has the effect of calling its setter. A value set before the heap starts applies
//! from the start, a later one from the next collection. `docs/libgc.md` lists the variables without effect.
//!
//! A program that is not position-independent has its own copy of a variable, and the loader makes the
//! library use that copy. Variables must therefore be read by their symbol, and no Rust reference to one may
//! be kept.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed},
};

macro_rules! variables {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub static $name: $type = <$type>::new($value);
    )* };
}

variables! {
    /// The number of collections.
    GC_gc_no: AtomicUsize = 0;
    /// How many times collection is held off; see [`GC_disable`](crate::collect::GC_disable).
    GC_dont_gc: AtomicI32 = 0;
    /// Enables leak detection; see [`leaks`](crate::leaks).
    GC_find_leak: AtomicI32 = 0;
    /// Makes pointers into an object, and just past it, keep it alive.
    GC_all_interior_pointers: AtomicI32 = 1;
    /// Makes finalizers run in `GC_invoke_finalizers` only.
    GC_finalize_on_demand: AtomicI32 = 0;
    /// Makes finalizers of `GC_register_finalizer` unordered.
    GC_java_finalization: AtomicI32 = 0;
    /// Excludes libraries' data from the roots.
    GC_no_dls: AtomicI32 = 0;
    /// Prints figures at the end.
    GC_print_stats: AtomicI32 = 0;
    /// 0: the collector chooses the number of marking threads.
    GC_parallel: AtomicI32 = 0;
    /// Before the start: the divisor that sets how much is allocated between collections.
    GC_free_space_divisor: AtomicUsize = 3;
    /// Stored and returned; has no effect.
    GC_dont_expand: AtomicI32 = 0;
    /// Stored and returned; has no effect.
    GC_use_entire_heap: AtomicI32 = 0;
    /// Stored and returned; has no effect.
    GC_full_freq: AtomicI32 = 19;
    /// Stored and returned; has no effect.
    GC_non_gc_bytes: AtomicUsize = 0;
    /// Stored and returned; has no effect.
    GC_max_retries: AtomicUsize = 0;
    /// Stored and returned; has no effect.
    GC_dont_precollect: AtomicI32 = 0;
    /// Stored and returned; has no effect.
    GC_time_limit: AtomicUsize = 50;
    /// The end of the stack of the thread that started the heap; null before the start.
    GC_stackbottom: AtomicUsize = 0;
    /// `GC_oom_func`: called when there is no memory; its result is returned to the program.
    GC_oom_fn: AtomicPtr<c_void> = null as *mut c_void;
    /// `GC_finalizer_notifier_proc`: called when finalizers that run on demand are due.
    GC_finalizer_notifier: AtomicPtr<c_void> = null_mut();
    /// `GC_on_heap_resize_proc`: called with the heap's size after it has grown.
    GC_on_heap_resize: AtomicPtr<c_void> = null_mut();
    /// The kind of objects of `gc_gcj.h`.
    GC_gcj_kind: AtomicI32 = 0;
    /// The kind of objects of `GC_debug_gcj_malloc`.
    GC_gcj_debug_kind: AtomicI32 = 0;
    /// The lowest possible address of an object, which macros of `gc_mark.h` read; here any address.
    GC_least_plausible_heap_addr: AtomicUsize = 0;
    /// The highest possible address of an object.
    GC_greatest_plausible_heap_addr: AtomicUsize = usize::MAX;
}

/// The default of `GC_oom_fn`.
extern "C" fn null(_bytes: usize) -> *mut c_void {
    null_mut()
}

pub(crate) fn finds_leaks() -> bool {
    GC_find_leak.load(Relaxed) != 0
}

/// The function in a variable; `None` for null.
///
/// # Safety
/// `F` is a pointer to a function, and the variable holds null or an `F`.
pub(crate) unsafe fn function<F: Copy>(variable: &AtomicPtr<c_void>) -> Option<F> {
    const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>()) };
    let held = variable.load(Acquire);
    // SAFETY: an `Option` of a function pointer has the layout of a pointer, with null for `None`.
    unsafe { core::mem::transmute_copy::<*mut c_void, Option<F>>(&held) }
}

/// Functions that set and return a variable.
macro_rules! plain {
    ($($type:ty, $variable:ident: $set:ident, $get:ident;)*) => { $(
        #[doc = concat!("Sets [`", stringify!($variable), "`].")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(value: $type) {
            $variable.store(value as _, Relaxed);
        }
        #[doc = concat!("What [`", stringify!($variable), "`] is.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> $type {
            $variable.load(Relaxed) as $type
        }
    )* };
}

plain! {
    c_int, GC_all_interior_pointers: GC_set_all_interior_pointers, GC_get_all_interior_pointers;
    c_int, GC_finalize_on_demand: GC_set_finalize_on_demand, GC_get_finalize_on_demand;
    c_int, GC_java_finalization: GC_set_java_finalization, GC_get_java_finalization;
    usize, GC_free_space_divisor: GC_set_free_space_divisor, GC_get_free_space_divisor;
    c_int, GC_dont_expand: GC_set_dont_expand, GC_get_dont_expand;
    c_int, GC_full_freq: GC_set_full_freq, GC_get_full_freq;
    usize, GC_non_gc_bytes: GC_set_non_gc_bytes, GC_get_non_gc_bytes;
    usize, GC_max_retries: GC_set_max_retries, GC_get_max_retries;
    c_int, GC_dont_precollect: GC_set_dont_precollect, GC_get_dont_precollect;
    core::ffi::c_ulong, GC_time_limit: GC_set_time_limit, GC_get_time_limit;
}

/// Functions that set and return a variable with a function.
macro_rules! procedures {
    ($($type:ty, $variable:ident: $set:ident, $get:ident;)*) => { $(
        #[doc = concat!("Sets what `", stringify!($get), "` returns.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(procedure: Option<$type>) {
            let held = procedure.map_or(core::ptr::null_mut(), |procedure| procedure as *mut core::ffi::c_void);
            $variable.store(held, core::sync::atomic::Ordering::Release);
        }
        #[doc = concat!("What `", stringify!($set), "` was given last.")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $get() -> Option<$type> {
            // SAFETY: the setter alone stores here, or programs by gc.h's type: null or this type.
            unsafe { $crate::variables::function::<$type>(&$variable) }
        }
    )* };
}
pub(crate) use procedures;

/// `GC_oom_func`.
pub type OomFunction = unsafe extern "C" fn(bytes: usize) -> *mut c_void;
/// `GC_finalizer_notifier_proc`.
pub type Notifier = unsafe extern "C" fn();
/// `GC_on_heap_resize_proc`.
pub type Resized = unsafe extern "C" fn(bytes: usize);

procedures! {
    OomFunction, GC_oom_fn: GC_set_oom_fn, GC_get_oom_fn;
    Notifier, GC_finalizer_notifier: GC_set_finalizer_notifier, GC_get_finalizer_notifier;
    Resized, GC_on_heap_resize: GC_set_on_heap_resize, GC_get_on_heap_resize;
}
