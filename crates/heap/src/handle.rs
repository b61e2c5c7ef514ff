//! Handles: copyable pointers to objects that a scope keeps alive.

use crate::object::Object;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A pointer to an object. The object lives and stays in place at least as long as the scope `'s`.
///
/// A handle can be copied, stored anywhere and sent to other threads, but cannot leave its scope:
///
/// ```compile_fail
/// # use vellum_heap::Heap;
/// let escaped = Heap::get().scope(|scope| scope.alloc(7u64).unwrap());
/// ```
///
/// ```compile_fail,E0521
/// # use vellum_heap::Heap;
/// let mut kept = Vec::new();
/// Heap::get().scope(|scope| kept.push(scope.alloc(7u64).unwrap()));
/// ```
///
/// References from a handle cannot leave the scope either:
///
/// ```compile_fail
/// # use vellum_heap::Heap;
/// let number: &u64 = Heap::get().scope(|scope| scope.alloc(7u64).unwrap().as_ref());
/// ```
pub struct Gc<'s, T> {
    object: NonNull<T>,
    scope: PhantomData<&'s T>,
}

// SAFETY: a handle is a shared reference to a `T: Sync`; the scope that keeps the object outlives the handle
// on every thread.
unsafe impl<T: Sync> Send for Gc<'_, T> {}
// SAFETY: sharing the handle shares the reference to a T, which is `Sync`.
unsafe impl<T: Sync> Sync for Gc<'_, T> {}

impl<T> Clone for Gc<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Gc<'_, T> {}

impl<'s, T: Object> Gc<'s, T> {
    /// A handle to an object that the scope `'s` keeps.
    ///
    /// # Safety
    /// The scope keeps the object, and the object is a `T`.
    #[inline(always)]
    pub(crate) unsafe fn new(object: NonNull<T>) -> Gc<'s, T> {
        Gc { object, scope: PhantomData }
    }

    /// The object's address, which does not change while any handle exists.
    #[inline]
    pub fn as_ptr(self) -> *mut T {
        self.object.as_ptr()
    }

    pub(crate) fn object(self) -> NonNull<T> {
        self.object
    }

    /// The object, as long as the scope lasts.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "the trait's would last as long as the handle only")]
    pub fn as_ref(self) -> &'s T {
        // SAFETY: the scope keeps the object alive and in place, and no `&mut` to an object is ever made.
        unsafe { self.object.as_ref() }
    }

    /// True if both lead to the same object.
    #[inline]
    pub fn is(self, other: Gc<'_, T>) -> bool {
        self.object == other.object
    }
}

impl<T: Object> Deref for Gc<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.as_ref()
    }
}

impl<T: Object + fmt::Debug> fmt::Debug for Gc<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(formatter)
    }
}
