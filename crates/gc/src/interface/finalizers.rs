//! The interface of finalizers ([`finalizers`](crate::death::finalizers)).

use crate::death::finalizers::{Finalizer, Function, Order};
use crate::heap::Heap;
use crate::mutator::access::{Refused, address, holding};
use crate::mutator::collect::look_with_room;

/// Sets, or with `None` takes away, the finalizer of the object at `pointer`. Returns the previous one with
/// its data; if that was due, it will not run.
///
/// # Errors
/// [`Refused`]; nothing has changed then.
///
/// # Safety
/// The function may be called with the object and `data` on any thread, at any time after the object has
/// died.
pub unsafe fn set_finalizer(
    pointer: *mut u8,
    function: Option<Function>,
    data: *mut u8,
    order: impl Into<Order>,
) -> Result<Option<(Function, *mut u8)>, Refused> {
    let (object, data) = (address(pointer), address(data));
    let needs = |heap: &Heap| if function.is_some() { heap.deaths.finalizers.bytes_to_grow() } else { 0 };
    let work = |heap: &mut Heap| {
        heap.block_starting(object).ok_or(Refused::NoObject)?;
        let before = match function {
            Some(function) => {
                let finalizer = Finalizer { function, data, order: order.into(), due: false };
                let (before, keys) = (heap.deaths.finalizers.get(object), heap.deaths.finalizers.len());
                heap.deaths.finalizers.insert(object, finalizer).map_err(|_| Refused::OutOfMemory)?;
                heap.count_entries::<Finalizer>(keys, heap.deaths.finalizers.len());
                before
            }
            None => heap.deaths.finalizers.remove(object),
        };
        heap.deaths.due -= usize::from(before.is_some_and(|before| before.due));
        Ok(before)
    };
    let before = holding(&[object, data], || look_with_room(needs, work))?;
    Ok(before.map(|before| (before.function, core::ptr::with_exposed_provenance_mut(before.data))))
}
