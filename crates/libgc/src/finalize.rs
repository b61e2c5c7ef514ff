//! Finalizers and disappearing links: libgc's interface over `vel_gc_replace_finalizer` and `vel_gc_link`.
//!
//! In libgc an ordered finalizer waits until nothing else that is dead refers to its object. Objects that
//! refer to themselves or to each other are therefore never finalized by one.

use crate::hooks::{AWAIT, Await};
use crate::variables::{self, GC_finalize_on_demand, GC_java_finalization, finds_leaks};
use crate::{lock, start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{Relaxed, Release};

/// `GC_finalization_proc`.
pub type Procedure = vel::Finalizer;

/// Results of the functions on links, from gc.h.
pub(crate) const SUCCESS: c_int = 0;
const DUPLICATE: c_int = 1;
pub(crate) const NO_MEMORY: c_int = 2;
const UNIMPLEMENTED: c_int = 3;
const NOT_FOUND: c_int = 4;

/// Orders of finalizers, as `vel_gc_set_finalizer` numbers them.
const UNORDERED: c_int = 1;
const IGNORING_ITSELF: c_int = 2;
const LAST: c_int = 3;

/// Sets `object`'s finalizer, and stores the old one.
///
/// # Safety
/// Those of a finalizer; `old` and `old_data` are null or can be written.
unsafe fn replace(
    object: *mut c_void,
    procedure: Option<Procedure>,
    data: *mut c_void,
    order: c_int,
    old: *mut Option<Procedure>,
    old_data: *mut *mut c_void,
) {
    start::ensure();
    // Other memory than objects has no finalizer: static data may be passed.
    // SAFETY: the caller vouches for the rest.
    unsafe {
        if !old.is_null() {
            old.write(None);
        }
        if !old_data.is_null() {
            old_data.write(null_mut());
        }
        if vel::vel_gc_base(object).is_null() || finds_leaks() {
            return;
        }
        vel::vel_gc_replace_finalizer(object, procedure, data, order, old, old_data);
    }
}

macro_rules! registrations {
    ($($(#[$doc:meta])* $name:ident: $order:expr;)*) => { $(
        $(#[$doc])*
        ///
        /// # Safety
        /// The procedure may be called with the object and `data` once the object has died; `old` and
        /// `old_data` are null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            object: *mut c_void,
            procedure: Option<Procedure>,
            data: *mut c_void,
            old: *mut Option<Procedure>,
            old_data: *mut *mut c_void,
        ) {
            // SAFETY: passed on.
            unsafe { replace(object, procedure, data, $order, old, old_data) };
        }
    )* };
}

registrations! {
    /// A finalizer that waits for all that refer to its object, unless the program wants Java's rules.
    GC_register_finalizer: c_int::from(GC_java_finalization.load(Relaxed) != 0);
    /// A finalizer that runs once its object can no longer be reached, whatever refers to it.
    GC_register_finalizer_no_order: UNORDERED;
    /// A finalizer that waits for all that refer to its object, finalizers that run in no order among them.
    GC_register_finalizer_unreachable: LAST;
    /// A finalizer that waits for all that refer to its object, except the object itself.
    GC_register_finalizer_ignore_self: if GC_java_finalization.load(Relaxed) != 0 { UNORDERED } else { IGNORING_ITSELF };
}

/// Runs the finalizers that are due; how many ran.
#[unsafe(no_mangle)]
pub extern "C" fn GC_invoke_finalizers() -> c_int {
    start::ensure();
    // SAFETY: may be called whenever.
    c_int::try_from(unsafe { vel::vel_gc_finalize() }).unwrap_or(c_int::MAX)
}

/// Whether any finalizer is due.
#[unsafe(no_mangle)]
pub extern "C" fn GC_should_invoke_finalizers() -> c_int {
    start::ensure();
    // SAFETY: may be called whenever.
    c_int::from(unsafe { vel::vel_gc_due() } != 0)
}

/// Runs every finalizer there is, until there is none: for a program's end.
#[unsafe(no_mangle)]
pub extern "C" fn GC_finalize_all() {
    start::ensure();
    // SAFETY: the program vouches for its finalizers.
    unsafe { vel::vel_gc_finalize_all() };
}

/// Whether finalizers run on demand only.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_finalize_on_demand(on: c_int) {
    GC_finalize_on_demand.store(on, Relaxed);
}

/// What [`GC_set_finalize_on_demand`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_finalize_on_demand() -> c_int {
    GC_finalize_on_demand.load(Relaxed)
}

/// Has `procedure` called with each object whose finalizer is about to run, with the world stopped.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_await_finalize_proc(procedure: Option<Await>) {
    AWAIT.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Release);
}

/// What [`GC_set_await_finalize_proc`] set.
#[unsafe(no_mangle)]
pub extern "C" fn GC_get_await_finalize_proc() -> Option<Await> {
    // SAFETY: null or what was set.
    unsafe { variables::function::<Await>(&AWAIT) }
}

/// # Safety
/// As [`vel::vel_gc_link`].
unsafe fn link(link: *mut *mut c_void, object: *const c_void, late: bool) -> c_int {
    start::ensure();
    if finds_leaks() {
        return UNIMPLEMENTED;
    }
    // SAFETY: the caller vouches for the link.
    unsafe {
        let before = vel::vel_gc_unlink(link);
        match vel::vel_gc_link(link, object.cast_mut(), c_int::from(late)) {
            0 if before.is_null() => SUCCESS,
            0 => DUPLICATE,
            _ => {
                // What there was stays: its place in the table has just become free.
                if !before.is_null() {
                    let _ = vel::vel_gc_link(link, before, c_int::from(late));
                }
                NO_MEMORY
            }
        }
    }
}

/// Has `*place`, a pointer to an object, become null when the object dies.
///
/// # Safety
/// `place` holds a pointer to an object, and may be written until that dies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_register_disappearing_link(place: *mut *mut c_void) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe { link(place, *place, false) }
}

/// Has `*place` become null when `object` becomes unreachable, before it is finalized.
///
/// # Safety
/// `place` may be written until that dies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_general_register_disappearing_link(
    place: *mut *mut c_void,
    object: *const c_void,
) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe { link(place, object, false) }
}

/// Has `*place` become null when `object` is gone, after it was finalized.
///
/// # Safety
/// `place` may be written until that dies.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_register_long_link(place: *mut *mut c_void, object: *const c_void) -> c_int {
    // SAFETY: the caller vouches for it.
    unsafe { link(place, object, true) }
}

/// Undoes a link's registration; whether there was one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_unregister_disappearing_link(place: *mut *mut c_void) -> c_int {
    start::ensure();
    // SAFETY: any address may be named.
    c_int::from(!unsafe { vel::vel_gc_unlink(place) }.is_null())
}

/// Undoes a link's registration; whether there was one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_unregister_long_link(place: *mut *mut c_void) -> c_int {
    GC_unregister_disappearing_link(place)
}

/// Has the link at `from` be at `to`; the program copies the pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_move_disappearing_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int {
    start::ensure();
    lock::GC_alloc_lock();
    // SAFETY: any addresses may be named. A link that is moved to where it is stays, so that this tells
    // whether there is one.
    let (is_there, is_taken) =
        unsafe { (vel::vel_gc_move_link(from, from) == 1, from != to && vel::vel_gc_move_link(to, to) == 1) };
    let moved = match (is_there, is_taken) {
        (false, _) => NOT_FOUND,
        (true, true) => DUPLICATE,
        // SAFETY: as above.
        (true, false) if unsafe { vel::vel_gc_move_link(from, to) } == 1 => SUCCESS,
        (true, false) => NO_MEMORY,
    };
    lock::GC_alloc_unlock();
    moved
}

/// Has the link at `from` be at `to`; the program copies the pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_move_long_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int {
    GC_move_disappearing_link(from, to)
}
