//! Objects that their users free.
//!
//! A large object goes at once. A small one waits for the next collection, as its block's bits may be another thread's to change; it is
//! remembered until then, so that it goes even if something still seems to refer to it. Those that find no room on the list are
//! garbage like any other, which nothing should refer to.

use crate::finalize::Finalizer;
use crate::frames::holding;
use crate::heap::Heap;
use crate::object::{Refused, address, look};
use crate::survey::free_large;

/// Objects that are remembered at most: 64 KiB of addresses.
const REMEMBERED_MAX: usize = 8192;

/// Gives an object back.
///
/// # Errors
/// [`Refused::NoObject`]; nothing has changed then.
///
/// # Safety
/// Nobody uses the object any more.
pub unsafe fn free(pointer: *mut u8) -> Result<(), Refused> {
    let object = address(pointer);
    let work = |heap: &mut Heap| {
        let block = heap.block_starting(object).ok_or(Refused::NoObject)?;
        heap.stats.freed_bytes += block.size.get() as u64;
        heap.kept.remove(object);
        heap.ephemerons.remove(object);
        heap.disclaimers.forget(object);
        if heap.finalizers.remove(object).is_some_and(|Finalizer { due, .. }| due) {
            heap.due -= 1;
        }
        // A trace in slices may be about to look through it.
        if block.slot.get() == 0 && heap.cycle.is_none() && heap.clear_links_to(object) {
            free_large(heap, block);
        } else if heap.freed.len() < REMEMBERED_MAX {
            // Without memory for the list it is garbage, too.
            let _ = heap.freed.push(object);
        }
        Ok(())
    };
    let freed = holding(&[object], || look(work));
    freed.unwrap_or(Err(Refused::NoObject))
}

impl Heap {
    /// Takes back what users have freed. The world stands still, or nobody else allocates.
    pub(crate) fn take_back_freed(&mut self) {
        for &object in self.freed.iter() {
            if let Some(block) = self.block_starting(object) {
                let index = block.index_at(object - block.base.get()).0;
                block.clear_allocated(index, index + 1);
            }
        }
        self.freed.truncate(0);
    }
}
