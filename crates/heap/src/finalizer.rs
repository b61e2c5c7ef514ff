//! Finalizers: functions that are called once after an object has died.

use crate::OutOfMemory;
use crate::handle::Gc;
use crate::heap::refused;
use crate::object::Object;
use crate::scope::Scope;
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use vellum_gc as gc;

/// When a finalizer runs, where dead objects that have some refer to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// After those whose objects refer to its own. Cycles are never finalized.
    Ordered,
    /// With the others.
    Unordered,
}

type Finalizer = Box<dyn FnOnce(*mut c_void) + Send>;

/// # Safety
/// `data` is a boxed finalizer, which is for this object, and given to nobody else.
unsafe extern "C" fn run(object: *mut c_void, data: *mut c_void) {
    // SAFETY: by this function's condition.
    let finalizer = unsafe { Box::from_raw(data.cast::<Finalizer>()) };
    finalizer(object);
}

impl<T: Object> Gc<'_, T> {
    /// Has `finalizer` called once after this object has died, in place of the one it had: on a thread whose
    /// allocation has collected, or in [`Heap::finalize`](crate::Heap::finalize). It sees the object and all
    /// that refers from it; a panic in it ends the process.
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
        // SAFETY: `run` takes the box, once; all that it does may be done on any thread.
        let set = unsafe {
            gc::set_finalizer(self.as_ptr().cast(), Some(run), data.cast(), order == Order::Unordered)
        };
        if set.is_err() {
            // SAFETY: nobody took it.
            drop(unsafe { Box::from_raw(data) });
        }
        drop_old(set.map_err(refused)?);
        Ok(())
    }

    /// Takes the finalizer away; whether there was one.
    pub fn forget_death(self, _scope: &Scope<'_>) -> bool {
        // SAFETY: there is no function that could be called.
        let set = unsafe { gc::set_finalizer(self.as_ptr().cast(), None, null_mut(), false) };
        set.is_ok_and(drop_old)
    }
}

fn drop_old(old: Option<(gc::Function, *mut u8)>) -> bool {
    match old {
        // Only `on_death` gives data to this function.
        Some((function, data)) if std::ptr::fn_addr_eq(function, run as gc::Function) => {
            // SAFETY: a boxed finalizer that will not run any more.
            drop(unsafe { Box::from_raw(data.cast::<Finalizer>()) });
            true
        }
        _ => false,
    }
}
