//! `gc_disclaim.h`: procedures called for objects that were found dead, registered by kind or for one object.
//!
//! The heap stores the procedures and orders their calls (`vel_gc_set_disclaimer`). They run right after a
//! collection, with the world running and no lock held. libgc's run during the sweep, with the allocation
//! lock held.

use crate::variables::finds_leaks;
use crate::visitor::VISITOR;
use crate::{allocate, kinds, settings, start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicI32, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};

/// `GC_disclaim_proc`: whether an object stays.
pub type Disclaim = unsafe extern "C" fn(object: *mut c_void) -> c_int;

/// `struct GC_finalizer_closure`.
#[repr(C)]
pub struct Closure {
    procedure: crate::finalize::Procedure,
    data: *mut c_void,
}

/// The procedures of kinds, and whether what their objects refer to stays for them.
static PROCEDURES: [AtomicPtr<c_void>; kinds::KINDS] = [const { AtomicPtr::new(null_mut()) }; kinds::KINDS];
static FOLLOWS: [AtomicI32; kinds::KINDS] = [const { AtomicI32::new(0) }; kinds::KINDS];

/// Nothing is to be made ready.
#[unsafe(no_mangle)]
pub extern "C" fn GC_init_finalized_malloc() {
    start::ensure();
}

/// Has `procedure` asked of objects of `kind`, made from now on, that were found dead: anything but 0 has an
/// object stay until the next collection. If `follows`, what the dead refer to stays at least as long.
#[unsafe(no_mangle)]
pub extern "C" fn GC_register_disclaim_proc(kind: c_int, procedure: Option<Disclaim>, follows: c_int) {
    start::ensure();
    let kind = usize::try_from(kind).unwrap_or(usize::MAX);
    let (Some(place), Some(flag)) = (PROCEDURES.get(kind), FOLLOWS.get(kind)) else { return };
    flag.store(follows, Relaxed);
    place.store(procedure.map_or(null_mut(), |procedure| procedure as *mut c_void), Release);
}

/// An object of a kind was made: it is asked if its kind is. If there is no memory for that, what the program
/// has for such a case.
pub(crate) fn made(object: *mut c_void, bytes: usize, kind: usize) -> *mut c_void {
    unsafe extern "C" fn ask(object: *mut c_void, procedure: *mut c_void) -> c_int {
        // SAFETY: `GC_register_disclaim_proc` was given it.
        unsafe { core::mem::transmute::<*mut c_void, Disclaim>(procedure)(object) }
    }
    let procedure = PROCEDURES[kind].load(Acquire);
    if procedure.is_null() || object.is_null() || finds_leaks() {
        return object;
    }
    let follows = FOLLOWS[kind].load(Relaxed);
    // SAFETY: the program vouches for its procedure.
    if unsafe { vel::vel_gc_set_disclaimer(object, Some(ask), procedure, follows) } != 0 {
        // SAFETY: nobody else knows it.
        unsafe { vel::vel_gc_free(object) };
        return settings::out_of_memory(bytes);
    }
    object
}

/// An object of which the closure's procedure is called, once, when it was found dead. What it refers to is
/// still there then.
///
/// # Safety
/// The closure stays as long as the object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_finalized_malloc(bytes: usize, closure: *const Closure) -> *mut c_void {
    unsafe extern "C" fn end(object: *mut c_void, closure: *mut c_void) -> c_int {
        // SAFETY: the caller vouched for the closure.
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
    // SAFETY: as above.
    if unsafe { vel::vel_gc_set_disclaimer(object, Some(end), closure.cast_mut().cast(), 1) } != 0 {
        // SAFETY: nobody else knows it.
        unsafe { vel::vel_gc_free(object) };
        return settings::out_of_memory(bytes);
    }
    object
}

/// Whether an object was alive at the last collection, or is newer, or was said to be wanted by
/// [`GC_set_mark_bit`] since it was found dead. Within a procedure for roots nothing is known: 0.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_marked(object: *const c_void) -> c_int {
    if !VISITOR.load(Relaxed).is_null() {
        return 0;
    }
    // SAFETY: any address may be asked about.
    unsafe { vel::vel_gc_is_marked(object) }
}

/// In a procedure for further roots: keeps the object, with what it refers to. Elsewhere: says that it is
/// wanted, for its disclaim procedure to see.
#[unsafe(no_mangle)]
pub extern "C" fn GC_set_mark_bit(object: *const c_void) {
    let visitor = VISITOR.load(Relaxed);
    // SAFETY: a procedure is being called with the visitor; any address may be named.
    unsafe {
        if visitor.is_null() {
            vel::vel_gc_want(object, 1);
        } else {
            vel::vel_gc_visit(visitor, object);
        }
    }
}

/// Takes [`GC_set_mark_bit`] back, where that has not kept the object already.
#[unsafe(no_mangle)]
pub extern "C" fn GC_clear_mark_bit(object: *const c_void) {
    if VISITOR.load(Relaxed).is_null() {
        // SAFETY: any address may be named.
        unsafe { vel::vel_gc_want(object, 0) };
    }
}
