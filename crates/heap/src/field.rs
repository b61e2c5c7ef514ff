//! Fields: pointers from one heap object to another.

use crate::handle::Gc;
use crate::object::{Object, Pointers};
use crate::scope::Scope;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A pointer to a `T`, or null, as a part of an object.
///
/// Null at first; set by [`Scope::set`] once it lies in an object, and never anywhere else. A value stored by
/// one thread is seen whole by others.
///
/// A field by itself cannot be set, as the collector would not know of it:
///
/// ```should_panic
/// # use vellum_heap::{Field, Heap, object};
/// # object! { #[derive(Default)] struct Pair { head: Field<Pair> } }
/// Heap::get().scope(|scope| {
///     let pair = scope.alloc(Pair::default()).unwrap();
///     let outside: Box<Field<Pair>> = Box::default();
///     scope.set(pair, &outside, Some(pair));
/// });
/// ```
#[repr(transparent)]
pub struct Field<T>(AtomicPtr<T>);

// SAFETY: one word, which is a field.
unsafe impl<T: Object> Object for Field<T> {
    const POINTERS: Pointers = Pointers::ONE;
}

impl<T: Object> Field<T> {
    /// Null.
    pub const fn null() -> Field<T> {
        Field(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// A handle to what it leads to; `None` if it is null.
    #[inline]
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Option<Gc<'s, T>> {
        NonNull::new(self.0.load(Ordering::Acquire)).map(|object| scope.root(object))
    }

    /// Whether it is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// Whether it leads to the object of `handle`.
    #[inline]
    pub fn is(&self, handle: Gc<'_, T>) -> bool {
        std::ptr::eq(self.0.load(Ordering::Relaxed), handle.as_ptr())
    }

    /// Leads to `object` from now on.
    #[inline(always)]
    pub(crate) fn store(&self, object: *mut T) {
        self.0.store(object, Ordering::Release);
    }
}

impl<T: Object> Default for Field<T> {
    fn default() -> Self {
        Field::null()
    }
}

impl<T> fmt::Debug for Field<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:p}", self.0.load(Ordering::Relaxed))
    }
}
