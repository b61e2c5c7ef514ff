//! Pointer checks that a program may call: whether two pointers lead into one object, whether a pointer
//! keeps its object alive, whether the collector scans an address.

use crate::abort::give_up;
use crate::allocate::GC_base;
use crate::variables;
use core::ffi::c_void;
use core::sync::atomic::AtomicPtr;

/// Called by `GC_same_obj` for two pointers into different objects.
#[unsafe(no_mangle)]
pub static GC_same_obj_print_proc: AtomicPtr<c_void> = AtomicPtr::new(not_same as *mut c_void);
/// Called by `GC_is_valid_displacement` for a pointer that keeps no object alive.
#[unsafe(no_mangle)]
pub static GC_is_valid_displacement_print_proc: AtomicPtr<c_void> = AtomicPtr::new(not_valid as *mut c_void);
/// Called by `GC_is_visible` for an address that is not scanned.
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

/// The default of [`GC_same_obj_print_proc`].
extern "C" fn not_same(_p: *mut c_void, _q: *mut c_void) {
    give_up(c"libgc: GC_same_obj: the two point into different objects")
}

/// The default of `GC_is_valid_displacement_print_proc`.
extern "C" fn not_valid(_p: *mut c_void) {
    give_up(c"libgc: GC_is_valid_displacement: a pointer that keeps nothing")
}

/// The default of `GC_is_visible_print_proc`.
extern "C" fn not_visible(_p: *mut c_void) {
    give_up(c"libgc: GC_is_visible: the collector does not look there")
}

/// Returns `address`: a pointer to any place in an object keeps it alive.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_valid_displacement(address: *mut c_void) -> *mut c_void {
    address
}

/// Returns `address` without a check.
#[unsafe(no_mangle)]
pub extern "C" fn GC_is_visible(address: *mut c_void) -> *mut c_void {
    address
}

/// Returns `p` after checking that `p` and `q` point into one object, or neither into any. A pointer just
/// past an object's end counts as into it.
#[unsafe(no_mangle)]
pub extern "C" fn GC_same_obj(p: *mut c_void, q: *mut c_void) -> *mut c_void {
    if GC_base(p) != GC_base(q) {
        // SAFETY: gc.h gives the variable this type.
        if let Some(print) = unsafe { variables::function::<NotSame>(&GC_same_obj_print_proc) } {
            // SAFETY: the procedure accepts any two pointers.
            unsafe { print(p, q) };
        }
    }
    p
}

/// Adds `bytes` to `*place`, within the object; returns the new value.
///
/// # Safety
/// `place` holds a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_pre_incr(place: *mut *mut c_void, bytes: isize) -> *mut c_void {
    // SAFETY: `place` holds a pointer, by the `# Safety` section.
    unsafe {
        let next = GC_same_obj((*place).wrapping_byte_offset(bytes), *place);
        place.write(next);
        next
    }
}

/// Adds `bytes` to `*place`, within the object; returns the old value.
///
/// # Safety
/// `place` holds a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn GC_post_incr(place: *mut *mut c_void, bytes: isize) -> *mut c_void {
    // SAFETY: `place` holds a pointer, by the `# Safety` section.
    unsafe {
        let before = *place;
        place.write(GC_same_obj(before.wrapping_byte_offset(bytes), before));
        before
    }
}
