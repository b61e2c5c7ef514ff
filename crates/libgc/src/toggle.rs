//! The functions for toggle references (the program switches each between strong and weak); `toggle_cells`
//! holds the references.

use crate::finalize::{NO_MEMORY, SUCCESS};
use crate::forms::callbacks;
use crate::toggle_cells::{CALLBACK, Toggle, empty_cell};
use crate::{lock, start, vel};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::Ordering::Relaxed;

callbacks! {
    /// Sets the procedure that decides which references are strong, at each collection, with the world
    /// stopped.
    Toggle, CALLBACK: GC_set_toggleref_func, GC_get_toggleref_func;
}

/// Adds a reference, strong or weak until the callback changes it. Returns a result of gc.h.
#[unsafe(no_mangle)]
pub extern "C" fn GC_toggleref_add(object: *mut c_void, is_strong: c_int) -> c_int {
    start::ensure();
    lock::GC_alloc_lock();
    let added = empty_cell().is_some_and(|cell| {
        cell.is_strong.store(is_strong != 0, Relaxed);
        cell.object.store(object, Relaxed);
        // SAFETY: cells are never freed, so the link may be written until the object has died.
        let linked = unsafe { vel::vel_gc_link(cell.object.as_ptr(), object, 1) } == 0;
        if !linked {
            cell.object.store(null_mut(), Relaxed);
        }
        linked
    });
    lock::GC_alloc_unlock();
    if added { SUCCESS } else { NO_MEMORY }
}

/// [`GC_toggleref_add`] for a checked object.
#[unsafe(no_mangle)]
pub extern "C" fn GC_debug_toggleref_add(object: *mut c_void, is_strong: c_int) -> c_int {
    GC_toggleref_add(crate::allocate::GC_base(object), is_strong)
}
