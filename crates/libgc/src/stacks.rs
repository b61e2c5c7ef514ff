//! The ends (highest addresses) of stacks: of the calling thread, and of the thread that starts the heap.

use crate::variables::GC_stackbottom;
use crate::vel;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Relaxed, Release},
};

/// Records the stack of the thread that starts the heap. This thread may change stacks and then sets
/// [`GC_stackbottom`], possibly before the start.
pub(crate) fn heap_started() {
    let _ = GC_stackbottom.compare_exchange(0, stack_end().addr(), Relaxed, Relaxed);
    MAIN.store(handle(), Release);
    // SAFETY: the variable is a static, and holds the end of the stack that the thread is on.
    unsafe { vel::vel_gc_stack_end_at(GC_stackbottom.as_ptr().cast_const().cast()) };
}

/// The handle of the thread that [`GC_stackbottom`] belongs to.
pub(crate) static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

pub(crate) fn handle() -> *mut c_void {
    // SAFETY: any thread may call this function.
    unsafe { vel::vel_gc_thread() }
}

/// The highest address of the calling thread's stack; null if the C library cannot determine it.
pub(crate) fn stack_end() -> *mut c_void {
    // SAFETY: the first call initialises the attributes, and the last destroys them.
    unsafe {
        let mut attributes = core::mem::zeroed::<libc::pthread_attr_t>();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return null_mut();
        }
        let (mut lowest, mut bytes) = (null_mut(), 0);
        let told = libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attributes);
        if told == 0 { lowest.wrapping_byte_add(bytes) } else { null_mut() }
    }
}
