//! Pointer checks that a program may call: whether two pointers lead into one object, whether a pointer keeps
//! its object alive, whether the collector scans a place.

use crate::abort::give_up;
use crate::allocate::GC_base;
use crate::variables;
use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;

/// Called by `GC_same_obj` with two pointers into different objects.
#[unsafe(no_mangle)]
pub static GC_same_obj_print_proc: AtomicPtr<c_void> = AtomicPtr::new(not_same as *mut c_void);
/// Called by `GC_is_valid_displacement` with a pointer that keeps nothing.
#[unsafe(no_mangle)]
pub static GC_is_valid_displacement_print_proc: AtomicPtr<c_void> = AtomicPtr::new(not_valid as *mut c_void);
/// Called by `GC_is_visible` with an address that is not looked at.
#[unsafe(no_mangle)]
pub static GC_is_visible_print_proc: AtomicPtr<c_void> = AtomicPtr::new(not_visible as *mut c_void);

/// `GC_same_obj_print_proc_t`.
pub type NotSame = unsafe extern "C" fn(p: *mut c_void, q: *mut c_void);
/// `GC_valid_ptr_print_proc_t`.
pub type NotValid = unsafe extern "C" fn(p: *mut c_void);

variables::procedures! {
    NotSame, GC_same_obj_print_proc: GC_set_same_obj_print_proc, GC_get_same_obj_print_proc;
    NotValid, GC_is_valid_displacement_print_proc: GC_set_is_valid_displacement_print_proc, GC_get_is_valid_displacement_print_proc;
    NotValid, GC_is_visible_print_proc: GC_set_is_visible_print_proc, GC_get_is_visible_print_proc;
}

/// [`GC_same_obj_print_proc`] as it is at first.
extern "C" fn not_same(_p: *mut c_void, _q: *mut c_void) {
    give_up(c"libgc: GC_same_obj: the two point into different objects")
}

/// `GC_is_valid_displacement_print_proc` as it is at first.
extern "C" fn not_valid(_p: *mut c_void) {
    give_up(c"libgc: GC_is_valid_displacement: a pointer that keeps nothing")
}

/// `GC_is_visible_print_proc` as it is at first.
extern "C" fn not_visible(_p: *mut c_void) {
    give_up(c"libgc: GC_is_visible: the collector does not look there")
}

/// `address`: pointers into an object keep it, wherever in it they lead.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_valid_displacement(address: *mut c_void) -> *mut c_void {
    address
}

/// `address`, which is a place in an object, or one that looks like those that are checked.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_visible(address: *mut c_void) -> *mut c_void {
    address
}

/// `p`, after a check that it and `q` point into one object, if either points into any: a pointer just past
/// an object's end counts as into it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_same_obj(p: *mut c_void, q: *mut c_void) -> *mut c_void {
    if GC_base(p) != GC_base(q) {
        // SAFETY: the variable holds a function of this type.
        if let Some(print) = unsafe { variables::function::<NotSame>(&GC_same_obj_print_proc) } {
            // SAFETY: the program's own function, or the one above.
            unsafe { print(p, q) };
        }
    }
    p
}

/// Adds `bytes` to `*place`, within the object; what it is then.
///
/// # Safety
/// `place` holds a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pre_incr(place: *mut *mut c_void, bytes: isize) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    unsafe {
        let next = GC_same_obj((*place).wrapping_byte_offset(bytes), *place);
        place.write(next);
        next
    }
}

/// Adds `bytes` to `*place`, within the object; what it was before.
///
/// # Safety
/// `place` holds a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_post_incr(place: *mut *mut c_void, bytes: isize) -> *mut c_void {
    // SAFETY: the caller vouches for it.
    unsafe {
        let before = *place;
        place.write(GC_same_obj(before.wrapping_byte_offset(bytes), before));
        before
    }
}
