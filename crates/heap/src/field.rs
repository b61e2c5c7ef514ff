//! Fields: pointers from one heap object to another.

use crate::handle::Gc;
use crate::object::{Object, Pointers};
use crate::scope::Scope;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A pointer to a `T`, or null, as a part of an object.
///
/// A field is null at first. Only [`Scope::set`] sets it, once it lies in an object. Other threads see a
/// stored value as a whole.
///
/// A field outside an object cannot be set, because the collector would not see it:
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

// SAFETY: the type is one word, and that word is the field.
unsafe impl<T: Object> Object for Field<T> {
    const POINTERS: Pointers = Pointers::ONE;
}

impl<T: Object> Field<T> {
    /// A null field.
    pub const fn null() -> Field<T> {
        Field(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// A handle to the field's object; `None` if the field is null.
    #[inline]
    pub fn get<'s>(&self, scope: &Scope<'s>) -> Option<Gc<'s, T>> {
        NonNull::new(self.0.load(Ordering::Acquire)).map(|object| scope.root(object))
    }

    /// True if the field is null.
    #[inline]
    pub fn is_null(&self) -> bool {
        self.0.load(Ordering::Relaxed).is_null()
    }

    /// True if the field leads to the object of `handle`.
    #[inline]
    pub fn is(&self, handle: Gc<'_, T>) -> bool {
        std::ptr::eq(self.0.load(Ordering::Relaxed), handle.as_ptr())
    }

    /// Makes the field lead to `object`.
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
