//! The functions of `libvellum.so` that this library uses; `include/vellum_gc.h` documents each.

use core::arch::asm;
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{Ordering::Release, compiler_fence};
pub(crate) use vellum_wire::interface::{Config, Stats};

/// `struct vel_gc_layout`.
#[repr(C)]
pub(crate) struct Layout {
    pub slot: u32,
    pub bytes: u32,
}

/// `struct vel_gc_run`.
#[repr(C)]
struct Run {
    next: *mut u8,
    end: *mut u8,
}

pub(crate) type Finalizer = unsafe extern "C" fn(object: *mut c_void, data: *mut c_void);
pub(crate) type Body = unsafe extern "C" fn(argument: *mut c_void) -> *mut c_void;
pub(crate) type Visit = unsafe extern "C" fn(object: *mut c_void, bytes: usize, argument: *mut c_void);

pub(crate) type Trace = unsafe extern "C" fn(*mut c_void, usize, *mut c_void, *const Visitor);
pub(crate) type Roots = unsafe extern "C" fn(*const Visitor);
pub(crate) type Disclaimer = unsafe extern "C" fn(object: *mut c_void, data: *mut c_void) -> c_int;
pub(crate) type Event = unsafe extern "C" fn(event: c_int, value: usize);
pub(crate) type Need = unsafe extern "C" fn() -> c_int;
pub(crate) type Image =
    unsafe extern "C" fn(library: *const c_char, start: *const c_void, bytes: usize) -> c_int;
pub(crate) type Told = unsafe extern "C" fn();

/// `struct vel_gc_visitor`, which is opaque.
#[repr(C)]
pub(crate) struct Visitor {
    inside: [u8; 0],
}

/// Sorts of objects, as `vel_gc_sort` numbers them.
pub(crate) const ATOMIC: c_int = 1;
pub(crate) const BY_PROCEDURE: c_int = 3;
/// A flag beside the sorts.
pub(crate) const KEPT: c_int = 4;

pub(crate) const TYPE_MAX: usize = 4096;
pub(crate) const GRANULE: usize = 16;
const INLINE_MAX: usize = 512;
const ATOMIC_SLOTS: usize = 64;

unsafe extern "C" {
    pub(crate) fn vel_gc_init(config: *const Config) -> c_int;
    fn vel_gc_slow(bytes: usize) -> *mut c_void;
    fn vel_gc_slow_atomic(bytes: usize) -> *mut c_void;
    fn vel_gc_slow_type(layout: *const Layout) -> *mut c_void;
    pub(crate) fn vel_gc_type_of(bytes: usize, pointers: *const u64) -> *const Layout;
    pub(crate) fn vel_gc_type_by(procedure: Trace, data: *mut c_void) -> *const Layout;
    pub(crate) fn vel_gc_visit(visitor: *const Visitor, pointer: *const c_void);
    pub(crate) fn vel_gc_visit_words(visitor: *const Visitor, start: *const c_void, end: *const c_void);
    pub(crate) fn vel_gc_on_roots(hook: Option<Roots>) -> Option<Roots>;
    pub(crate) fn vel_gc_on_begin(hook: Option<Told>) -> Option<Told>;
    pub(crate) fn vel_gc_on_due(hook: Option<Told>) -> Option<Told>;
    pub(crate) fn vel_gc_active(function: Body, argument: *mut c_void) -> *mut c_void;
    pub(crate) fn vel_gc_new_array(layout: *const Layout, count: usize) -> *mut c_void;
    pub(crate) fn vel_gc_alloc_aligned(bytes: usize, align: usize, atomic: c_int) -> *mut c_void;
    pub(crate) fn vel_gc_alloc_uncollectable(bytes: usize) -> *mut c_void;
    pub(crate) fn vel_gc_alloc_atomic_uncollectable(bytes: usize) -> *mut c_void;
    pub(crate) fn vel_gc_keep(object: *mut c_void) -> c_int;
    pub(crate) fn vel_gc_realloc(object: *mut c_void, bytes: usize) -> *mut c_void;
    pub(crate) fn vel_gc_free(object: *mut c_void);
    pub(crate) fn vel_gc_free_later(object: *mut c_void);
    pub(crate) fn vel_gc_collect() -> c_int;
    pub(crate) fn vel_gc_idle(us: c_uint) -> c_int;
    pub(crate) fn vel_gc_hold();
    pub(crate) fn vel_gc_let();
    pub(crate) fn vel_gc_set_limit(bytes: usize);
    pub(crate) fn vel_gc_set_least(bytes: usize);
    pub(crate) fn vel_gc_roots_add(start: *const c_void, end: *const c_void) -> c_int;
    pub(crate) fn vel_gc_roots_remove(start: *const c_void, end: *const c_void) -> usize;
    pub(crate) fn vel_gc_roots_exclude(start: *const c_void, end: *const c_void) -> c_int;
    pub(crate) fn vel_gc_thread_enter() -> c_int;
    pub(crate) fn vel_gc_blocking(function: Body, argument: *mut c_void) -> *mut c_void;
    pub(crate) fn vel_gc_base(address: *const c_void) -> *mut c_void;
    pub(crate) fn vel_gc_size(object: *const c_void) -> usize;
    pub(crate) fn vel_gc_get_stats(stats: *mut Stats, bytes: usize);
    pub(crate) fn vel_gc_walk(visit: Visit, argument: *mut c_void);
    pub(crate) fn vel_gc_replace_finalizer(
        object: *mut c_void,
        finalizer: Option<Finalizer>,
        data: *mut c_void,
        unordered: c_int,
        old_finalizer: *mut Option<Finalizer>,
        old_data: *mut *mut c_void,
    ) -> c_int;
    pub(crate) fn vel_gc_finalize() -> usize;
    pub(crate) fn vel_gc_finalize_on_demand(on: c_int);
    pub(crate) fn vel_gc_finalize_all() -> usize;
    pub(crate) fn vel_gc_finalize_unless_within() -> usize;
    pub(crate) fn vel_gc_due() -> usize;
    pub(crate) fn vel_gc_set_disclaimer(
        object: *mut c_void,
        disclaimer: Option<Disclaimer>,
        data: *mut c_void,
        follows: c_int,
    ) -> c_int;
    pub(crate) fn vel_gc_want(address: *const c_void, wanted: c_int);
    pub(crate) fn vel_gc_is_marked(address: *const c_void) -> c_int;
    pub(crate) fn vel_gc_sort(object: *const c_void, data: *mut *mut c_void) -> c_int;
    pub(crate) fn vel_gc_on_event(hook: Option<Event>) -> Option<Event>;
    pub(crate) fn vel_gc_on_need(hook: Option<Need>) -> Option<Need>;
    pub(crate) fn vel_gc_on_image(hook: Option<Image>) -> Option<Image>;
    pub(crate) fn vel_gc_roots_include(start: *const c_void, end: *const c_void) -> usize;
    pub(crate) fn vel_gc_stop_world() -> c_int;
    pub(crate) fn vel_gc_start_world();
    pub(crate) fn vel_gc_thread() -> *mut c_void;
    pub(crate) fn vel_gc_set_stack_end(thread: *mut c_void, end: *const c_void) -> c_int;
    pub(crate) fn vel_gc_stack_end_at(place: *const *const c_void) -> c_int;
    pub(crate) fn vel_gc_suspend(thread: libc::pthread_t) -> c_int;
    pub(crate) fn vel_gc_resume(thread: libc::pthread_t) -> c_int;
    pub(crate) fn vel_gc_signal() -> c_int;
    pub(crate) fn vel_gc_set_signal(signal: c_int) -> c_int;
    pub(crate) fn vel_gc_link(link: *mut *mut c_void, object: *mut c_void, after_finalizer: c_int) -> c_int;
    pub(crate) fn vel_gc_unlink(link: *mut *mut c_void) -> *mut c_void;
    pub(crate) fn vel_gc_move_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int;
    pub(crate) fn vel_trim(severity: c_int) -> usize;
}

/// The calling thread's runs of free memory, which the header's inline functions also read.
#[inline(always)]
fn runs() -> *mut Run {
    let runs;
    // SAFETY: the asm only reads a thread-local variable of `libvellum.so`, which is never null.
    unsafe {
        asm!(
            "mov {runs}, qword ptr [rip + vel_gc_local@GOTTPOFF]",
            "mov {runs}, qword ptr fs:[{runs}]",
            runs = out(reg) runs,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    runs
}

/// Takes `bytes` bytes, a multiple of the granule, from run `slot`; null if the run has too little.
#[inline(always)]
fn off(slot: usize, bytes: usize) -> *mut c_void {
    // SAFETY: every thread has a run for each slot, and only that thread uses it. The run is read and written
    // once and in order, because a collection may stop the thread in between.
    unsafe {
        let run = runs().add(slot);
        let object = (&raw const (*run).next).read_volatile();
        if (*run).end as usize - object as usize >= bytes {
            (&raw mut (*run).next).write_volatile(object.wrapping_add(bytes));
            object.cast()
        } else {
            core::ptr::null_mut()
        }
    }
}

/// An untyped object; null without memory.
#[inline(always)]
pub(crate) fn alloc(bytes: usize) -> *mut c_void {
    if bytes.wrapping_sub(1) < INLINE_MAX {
        let granules = bytes.div_ceil(GRANULE);
        let object = off(granules, granules * GRANULE);
        if !object.is_null() {
            return object;
        }
    }
    // SAFETY: `vel_gc_slow` accepts any size.
    unsafe { vel_gc_slow(bytes) }
}

/// Takes up to `most` untyped objects of `bytes` bytes from the thread's run, chained by their first words;
/// the last word is `then`. Returns the first and their number, or null and 0 if the run has none.
#[inline]
pub(crate) fn chain(bytes: usize, most: usize, then: *mut c_void) -> (*mut c_void, usize) {
    if bytes.wrapping_sub(1) >= INLINE_MAX {
        return (core::ptr::null_mut(), 0);
    }
    let granules = bytes.div_ceil(GRANULE);
    let each = granules * GRANULE;
    // SAFETY: only this thread uses its run. `count` objects of at least a word lie between `next` and the
    // run's end. They are chained before they are taken: a collection that stops the thread in between finds
    // either none taken, or a chain with all.
    unsafe {
        let run = runs().add(granules);
        let first = (&raw const (*run).next).read_volatile();
        let count = (((*run).end as usize - first as usize) / each).min(most);
        if count == 0 {
            return (core::ptr::null_mut(), 0);
        }
        for index in 1..count {
            let next = first.wrapping_add(index * each);
            next.wrapping_sub(each).cast::<*mut u8>().write(next);
        }
        let end = first.wrapping_add(count * each);
        end.wrapping_sub(each).cast::<*mut c_void>().write(then);
        compiler_fence(Release);
        (&raw mut (*run).next).write_volatile(end);
        (first.cast(), count)
    }
}

/// An object without pointers, not cleared; null without memory.
#[inline(always)]
pub(crate) fn alloc_atomic(bytes: usize) -> *mut c_void {
    if bytes.wrapping_sub(1) < INLINE_MAX {
        let granules = bytes.div_ceil(GRANULE);
        let object = off(ATOMIC_SLOTS + granules, granules * GRANULE);
        if !object.is_null() {
            return object;
        }
    }
    // SAFETY: `vel_gc_slow_atomic` accepts any size.
    unsafe { vel_gc_slow_atomic(bytes) }
}

/// An object of a type; null without memory.
#[inline(always)]
pub(crate) fn alloc_typed(layout: &Layout) -> *mut c_void {
    let object = off(layout.slot as usize, layout.bytes as usize);
    if !object.is_null() {
        return object;
    }
    // SAFETY: a `&Layout` comes only from `libvellum.so`, which never frees layouts.
    unsafe { vel_gc_slow_type(layout) }
}

pub(crate) fn stats() -> Stats {
    let mut stats = Stats::default();
    // SAFETY: `stats` has exactly the bytes that are passed as its size.
    unsafe { vel_gc_get_stats(&raw mut stats, size_of::<Stats>()) };
    stats
}
