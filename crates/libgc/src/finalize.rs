//! Finalizers and disappearing links: libgc's interface over `vel_gc_replace_finalizer` and `vel_gc_link`.
//!
//! As in libgc, an object's ordered finalizer waits while any dead object with a waiting finalizer leads to
//! that object, directly or through others. If an object leads back to itself, its ordered finalizer never
//! runs. `GC_register_finalizer_ignore_self` excepts direct references from an object to itself.

use crate::forms::{passes, same};
use crate::hooks::{AWAIT, Await};
use crate::variables::{self, GC_java_finalization, finds_leaks};
use crate::{lock, start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

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
/// `procedure` may be called with `object` and `data`; `old` and `old_data` are null or can be written.
unsafe fn replace(
    object: *mut c_void,
    procedure: Option<Procedure>,
    data: *mut c_void,
    order: c_int,
    old: *mut Option<Procedure>,
    old_data: *mut *mut c_void,
) {
    start::ensure();
    // Only objects have finalizers, but programs also pass static data.
    // SAFETY: the `# Safety` section covers all pointers and the procedure.
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
            // SAFETY: the `# Safety` section covers the procedure and both places.
            unsafe { replace(object, procedure, data, $order, old, old_data) };
        }
    )* };
}

registrations! {
    /// Registers a finalizer that waits until nothing refers to its object, unless Java's rules are set.
    GC_register_finalizer: c_int::from(GC_java_finalization.load(Relaxed) != 0);
    /// Registers a finalizer that runs once its object is unreachable, even if dead objects refer to it.
    GC_register_finalizer_no_order: UNORDERED;
    /// Registers a finalizer that waits until nothing refers to its object, even with unordered finalizers.
    GC_register_finalizer_unreachable: LAST;
    /// Registers a finalizer that waits until nothing but the object refers to it.
    GC_register_finalizer_ignore_self: if GC_java_finalization.load(Relaxed) != 0 { UNORDERED } else { IGNORING_ITSELF };
}

/// Runs the finalizers that are due; returns their number.
#[unsafe(no_mangle)]
pub extern "C" fn GC_invoke_finalizers() -> c_int {
    start::ensure();
    // SAFETY: the function has no preconditions.
    c_int::try_from(unsafe { vel::vel_gc_finalize() }).unwrap_or(c_int::MAX)
}

/// Returns 1 if any finalizer is due.
#[unsafe(no_mangle)]
pub extern "C" fn GC_should_invoke_finalizers() -> c_int {
    start::ensure();
    // SAFETY: the function has no preconditions.
    c_int::from(unsafe { vel::vel_gc_due() } != 0)
}

/// Runs all registered finalizers, also new ones: for the end of a program.
#[unsafe(no_mangle)]
pub extern "C" fn GC_finalize_all() {
    start::ensure();
    // SAFETY: the program registered a callable finalizer (`GC_register_finalizer`).
    unsafe { vel::vel_gc_finalize_all() };
}

// The procedure is called, with the world stopped, for each object whose finalizer is about to run.
variables::procedures! { Await, AWAIT: GC_set_await_finalize_proc, GC_get_await_finalize_proc; }

/// # Safety
/// `link` may be written until the object dies.
unsafe fn link(link: *mut *mut c_void, object: *const c_void, late: bool) -> c_int {
    start::ensure();
    if finds_leaks() {
        return UNIMPLEMENTED;
    }
    // SAFETY: `link` may be written until the object dies, by the `# Safety` section.
    unsafe {
        let before = vel::vel_gc_unlink(link);
        match vel::vel_gc_link(link, object.cast_mut(), c_int::from(late)) {
            0 if before.is_null() => SUCCESS,
            0 => DUPLICATE,
            _ => {
                // The old link stays: its place in the table was just freed.
                if !before.is_null() {
                    let _ = vel::vel_gc_link(link, before, c_int::from(late));
                }
                NO_MEMORY
            }
        }
    }
}

passes! {
    /// Makes `*place`, a pointer to an object, null when the object dies.
    "`place` holds a pointer to an object, and may be written until that dies."
    GC_register_disappearing_link(place: *mut *mut c_void) -> c_int = link(place, *place, false);
    /// Makes `*place` null when `object` becomes unreachable, before its finalizer runs.
    "`place` may be written until the object dies."
    GC_general_register_disappearing_link(place: *mut *mut c_void, object: *const c_void) -> c_int
        = link(place, object, false);
    /// Makes `*place` null when `object` is gone, after its finalizer has run.
    "`place` may be written until the object dies."
    GC_register_long_link(place: *mut *mut c_void, object: *const c_void) -> c_int
        = link(place, object, true);
}

/// Removes a link; returns 1 if there was one.
#[unsafe(no_mangle)]
pub extern "C" fn GC_unregister_disappearing_link(place: *mut *mut c_void) -> c_int {
    start::ensure();
    // SAFETY: the function accepts any address.
    c_int::from(!unsafe { vel::vel_gc_unlink(place) }.is_null())
}

same! {
    /// Removes a link; returns 1 if there was one.
    GC_unregister_long_link(place: *mut *mut c_void) -> c_int = GC_unregister_disappearing_link;
    /// Moves the link at `from` to `to`; the program copies the pointer.
    GC_move_long_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int = GC_move_disappearing_link;
}

/// Moves the link at `from` to `to`; the program copies the pointer.
#[unsafe(no_mangle)]
pub extern "C" fn GC_move_disappearing_link(from: *mut *mut c_void, to: *mut *mut c_void) -> c_int {
    start::ensure();
    lock::GC_alloc_lock();
    // SAFETY: the function accepts any addresses. Moving a link to its own place has no effect, so the result
    // shows whether there is one.
    let (is_there, is_taken) =
        unsafe { (vel::vel_gc_move_link(from, from) == 1, from != to && vel::vel_gc_move_link(to, to) == 1) };
    let moved = match (is_there, is_taken) {
        (false, _) => NOT_FOUND,
        (true, true) => DUPLICATE,
        // SAFETY: `to` may be written until the object dies, as gc.h requires of the caller.
        (true, false) if unsafe { vel::vel_gc_move_link(from, to) } == 1 => SUCCESS,
        (true, false) => NO_MEMORY,
    };
    lock::GC_alloc_unlock();
    moved
}
