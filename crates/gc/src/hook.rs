//! Hooks: places for the program's functions, which it may set and take away at any time.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A place for one of the program's functions, or none.
pub(crate) struct Hook<F>(AtomicPtr<c_void>, PhantomData<F>);

// SAFETY: a pointer to code, read and written atomically.
unsafe impl<F> Sync for Hook<F> {}

impl<F: Copy> Hook<F> {
    pub(crate) const fn none() -> Hook<F> {
        const { assert!(size_of::<Option<F>>() == size_of::<*mut c_void>(), "a pointer to a function") };
        Hook(AtomicPtr::new(null_mut()), PhantomData)
    }

    /// Stores `hook`; returns the previous one.
    pub(crate) fn set(&self, hook: Option<F>) -> Option<F> {
        // SAFETY: an option of a pointer to a function has the size and bits of a pointer, null for none: see
        // `none`.
        let hook = unsafe { core::mem::transmute_copy::<Option<F>, *mut c_void>(&hook) };
        Self::from(self.0.swap(hook, Ordering::AcqRel))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<F> {
        Self::from(self.0.load(Ordering::Acquire))
    }

    #[inline]
    fn from(pointer: *mut c_void) -> Option<F> {
        // SAFETY: only `set` writes it, from such an option.
        unsafe { core::mem::transmute_copy::<*mut c_void, Option<F>>(&pointer) }
    }
}
