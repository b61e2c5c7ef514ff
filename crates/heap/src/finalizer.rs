//! Finalizers: functions that are called once after an object has died.

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::heap::refused;
use crate::object::Object;
use crate::scope::Scope;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use vellum_gc as gc;

/// The order of finalizers among dead objects that refer to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// After the finalizers of all objects that refer to this one. Cycles are never finalized.
    Ordered,
    /// Together with all others, in any order.
    Unordered,
}

type Finalizer = Box<dyn FnOnce(*mut c_void) + Send>;

/// # Safety
/// `data` is a boxed finalizer for this object, which no other function takes.
unsafe extern "C" fn run(object: *mut c_void, data: *mut c_void) {
    // SAFETY: `data` came from `Box::into_raw`, and the collector calls `run` once, by this function's
    // condition.
    let finalizer = unsafe { Box::from_raw(data.cast::<Finalizer>()) };
    finalizer(object);
}

impl<T: Object> Gc<'_, T> {
    /// Sets the finalizer, which is called once after this object has died, and replaces an earlier one. A
    /// thread whose allocation has collected calls it, or [`Heap::finalize`](crate::Heap::finalize). The
    /// finalizer sees the object with all its referents; a panic in it ends the process.
    ///
    /// # Errors
    /// [`OutOfMemory`]; nothing has changed then.
    pub fn on_death(
        self,
        _scope: &Scope<'_>,
        order: Order,
        finalizer: impl for<'d> FnOnce(&Scope<'d>, Gc<'d, T>) + Send + 'static,
    ) -> Result<(), OutOfMemory> {
        let finalizer: Finalizer = Box::new(move |object| {
            Scope::with(|scope| {
                let object = NonNull::new(object.cast::<T>()).expect("a finalizer has an object");
                let object = scope.root(object);
                finalizer(scope, object);
            });
        });
        let data = Box::into_raw(Box::new(finalizer));
        // SAFETY: `run` may be called with the object and `data`: it takes the box once, and the closure is
        // `Send`.
        let set = unsafe {
            gc::set_finalizer(self.as_ptr().cast(), Some(run), data.cast(), order == Order::Unordered)
        };
        if set.is_err() {
            // SAFETY: the collector did not take the box, so this is its only owner.
            drop(unsafe { Box::from_raw(data) });
        }
        drop_old(set.map_err(refused)?);
        Ok(())
    }

    /// Removes the finalizer; returns whether there was one.
    pub fn forget_death(self, _scope: &Scope<'_>) -> bool {
        // SAFETY: without a function, nothing will be called.
        let set = unsafe { gc::set_finalizer(self.as_ptr().cast(), None, null_mut(), false) };
        set.is_ok_and(drop_old)
    }
}

fn drop_old(old: Option<(gc::Function, *mut u8)>) -> bool {
    match old {
        // Only `on_death` stores data with this function.
        Some((function, data)) if std::ptr::fn_addr_eq(function, run as gc::Function) => {
            // SAFETY: `on_death` made `data` from a box, and the finalizer was replaced before it could run.
            drop(unsafe { Box::from_raw(data.cast::<Finalizer>()) });
            true
        }
        _ => false,
    }
}
