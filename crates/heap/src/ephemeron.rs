//! Ephemerons: values attached to objects that have no field for them. A value lives as long as its object.

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::heap::refused;
use crate::object::Object;
use crate::scope::Scope;
use std::ptr::NonNull;
use vellum_gc as gc;

/// Objects with a value: an object of the type [`Keyed::Value`]. The value lives as long as its key and does
/// not keep the key alive, even if it refers to it.
pub trait Keyed: Object {
    /// The type of the values.
    type Value: Object;
}

impl<T: Keyed> Gc<'_, T> {
    /// Attaches `value` to this object, or nothing, in place of the old value.
    ///
    /// # Errors
    /// [`OutOfMemory`]; nothing has changed then.
    pub fn know<'a>(
        self,
        _scope: &Scope<'_>,
        value: impl Into<Option<Gc<'a, T::Value>>>,
    ) -> Result<(), OutOfMemory> {
        let value = value.into().map_or(std::ptr::null_mut(), Gc::as_ptr);
        gc::set_ephemeron(self.as_ptr().cast(), value.cast()).map_err(refused)
    }

    /// The value attached to this object.
    pub fn known<'s>(self, scope: &Scope<'s>) -> Option<Gc<'s, T::Value>> {
        let value = gc::ephemeron(self.as_ptr().cast_const().cast());
        // Only `know` sets the value, and only to an object of this type.
        NonNull::new(value.cast::<T::Value>()).map(|value| scope.root(value))
    }
}
