//! `gc_disclaim.h`: procedures that are called for dead objects. A procedure is registered for one object or
//! for a kind of objects.
//!
//! The heap stores the procedures and orders their calls (`vel_gc_set_disclaimer`). Here they run right
//! after a collection, with the world running and no lock held. In libgc they run during the sweep,
//! with the allocation lock held.

use crate::variables::finds_leaks;
use crate::visitor::VISITOR;
use crate::{allocate, kinds, settings, start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// `GC_disclaim_proc`: returns nonzero to keep the object.
pub type Disclaim = unsafe extern "C" fn(object: *mut c_void) -> c_int;

/// `struct GC_finalizer_closure`.
#[repr(C)]
pub struct Closure {
    procedure: crate::finalize::Procedure,
    data: *mut c_void,
}

/// The procedures of kinds, and whether a dead object's referents stay for them.
static PROCEDURES: [AtomicPtr<c_void>; kinds::KINDS] = [const { AtomicPtr::new(null_mut()) }; kinds::KINDS];
static FOLLOWS: [AtomicI32; kinds::KINDS] = [const { AtomicI32::new(0) }; kinds::KINDS];

/// Has no effect: no preparation is needed.
#[unsafe(no_mangle)]
pub extern "C" fn GC_init_finalized_malloc() {
    start::ensure();
}

/// Sets the procedure for dead objects of `kind`, for objects made from now on. A nonzero result keeps the
/// object until the next collection. If `follows`, a dead object's referents stay at least as long.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_disclaim_proc(kind: c_int, procedure: Option<Disclaim>, follows: c_int) {
    start::ensure();
    let kind = usize::try_from(kind).unwrap_or(usize::MAX);
    let (Some(place), Some(flag)) = (PROCEDURES.get(kind), FOLLOWS.get(kind)) else { return };
    flag.store(follows, Relaxed);
    place.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Release);
}

/// Registers the disclaim procedure of a new object's kind, if there is one. Returns the object, or the
/// out-of-memory procedure's result.
pub(crate) fn made(object: *mut c_void, bytes: usize, kind: usize) -> *mut c_void {
    unsafe extern "C" fn ask(object: *mut c_void, procedure: *mut c_void) -> c_int {
        // SAFETY: `made` passes a pointer that `GC_register_disclaim_proc` stored, which is a `Disclaim`.
        unsafe { core::mem::transmute::<*mut c_void, Disclaim>(procedure)(object) }
    }
    let procedure = PROCEDURES[kind].load(Acquire);
    if procedure.is_null() || object.is_null() || finds_leaks() {
        return object;
    }
    let follows = FOLLOWS[kind].load(Relaxed);
    // SAFETY: a `Disclaim` accepts any object of its kind.
    if unsafe { vel::vel_gc_set_disclaimer(object, Some(ask), procedure, follows) } != 0 {
        // SAFETY: the object is new, and no pointer to it has been returned.
        unsafe { vel::vel_gc_free(object) };
        return settings::out_of_memory(bytes);
    }
    object
}

/// Allocates an object whose closure's procedure is called once when the object was found dead. Its referents
/// still exist then.
///
/// # Safety
/// The closure exists as long as the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_finalized_malloc(bytes: usize, closure: *const Closure) -> *mut c_void {
    unsafe extern "C" fn end(object: *mut c_void, closure: *mut c_void) -> c_int {
        // SAFETY: the closure exists as long as the object, by the `# Safety` section below.
        unsafe {
            let Closure { procedure, data } = closure.cast::<Closure>().read();
            procedure(object, data);
        }
        0
    }
    let object = allocate::GC_malloc(bytes);
    if object.is_null() || finds_leaks() {
        return object;
    }
    // SAFETY: the closure exists as long as the object, by the `# Safety` section.
    if unsafe { vel::vel_gc_set_disclaimer(object, Some(end), closure.cast_mut().cast(), 1) } != 0 {
        // SAFETY: the object is new, and no pointer to it has been returned.
        unsafe { vel::vel_gc_free(object) };
        return settings::out_of_memory(bytes);
    }
    object
}

/// Returns 1 if an object was alive at the last collection, is newer, or was marked by [`GC_set_mark_bit`]
/// since it was found dead. Within a procedure for roots the result is always 0.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_marked(object: *const c_void) -> c_int {
    if !VISITOR.load(Relaxed).is_null() {
        return 0;
    }
    // SAFETY: the function accepts any address.
    unsafe { vel::vel_gc_is_marked(object) }
}

/// In a procedure for further roots: keeps the object and its referents alive. Elsewhere: marks the object as
/// needed, for its disclaim procedure.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_mark_bit(object: *const c_void) {
    let visitor = VISITOR.load(Relaxed);
    // SAFETY: a set visitor belongs to the running procedure; both functions accept any address.
    unsafe {
        if visitor.is_null() {
            vel::vel_gc_want(object, 1);
        } else {
            vel::vel_gc_visit(visitor, object);
        }
    }
}

/// Undoes [`GC_set_mark_bit`], unless the object was already kept by it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_mark_bit(object: *const c_void) {
    if VISITOR.load(Relaxed).is_null() {
        // SAFETY: the function accepts any address.
        unsafe { vel::vel_gc_want(object, 0) };
    }
}
