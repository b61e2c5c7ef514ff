//! The large tables of a profile: known instructions and lines, the index of stacks, and the buffers for
//! counting resident memory.
//!
//! All are zero at first, and when a part begins. Unmapping clears them: a write would allocate every page.

use super::index::Index;
use super::part::Part;
use super::resident::Desk;
use super::walk::{Stack, Walker};
use core::sync::atomic::Ordering::Relaxed;
use vellum_sys::{Span, map};

#[repr(C)]
pub(super) struct Tables {
    pub(super) walker: Walker,
    pub(super) desk: Desk,
    index: Index,
}

impl Tables {
    pub(super) fn map() -> rustix::io::Result<*mut Tables> {
        map::reserve_writable(size_of::<Tables>()).map(|memory| memory.start.ptr())
    }

    /// Clears everything: a new part has no modules, lines or stacks. Safety: `tables` is null, or was
    /// [mapped](Tables::map) and is reached by nobody else.
    pub(super) unsafe fn clear(tables: *mut Tables) {
        if tables.is_null() {
            return;
        }
        // SAFETY: by this function's condition.
        let is_zero = unsafe { map::flush(Span::at(tables, size_of::<Tables>())) }.is_ok();
        if !is_zero {
            // Memory that is locked keeps its frames.
            // SAFETY: the tables are mapped there, nobody else reaches them, and all zero is a valid value.
            unsafe { tables.write_bytes(0, 1) };
        }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = u32> {
        self.index.entries()
    }

    /// The entry of a stack, which this adds if the part has none; `None` if there is no room.
    pub(super) fn find_or_add(&mut self, part: &mut Part, stack: &Stack) -> Option<u32> {
        match self.index.find(stack.hash, |at| part.stack(at).hash.load(Relaxed) == stack.hash) {
            Ok(at) => Some(at),
            Err(place) => {
                let place = place?;
                let at = part.add_stack(stack.hash, stack.frames())?;
                self.index.fill(place, at);
                Some(at)
            }
        }
    }
}
