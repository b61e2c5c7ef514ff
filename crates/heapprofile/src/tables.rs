//! The large tables of a profile: known instructions and lines, the index of stacks, and buffers for counting
//! resident memory.
//!
//! All are zero at first, and are cleared for each new part. Clearing drops their pages, since writing zeros
//! would make all of them resident.

use super::index::Index;
use super::part::Part;
use super::python::Finder;
use super::resident::Desk;
use super::walk::Walker;
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
        // SAFETY: the tables are a mapping that nobody else reaches.
        let is_zero = unsafe { map::flush(Span::at(tables, size_of::<Tables>())) }.is_ok();
        if !is_zero {
            // Memory that is locked keeps its frames.
            // SAFETY: the tables are mapped there, nobody else reaches them, and all zero is a valid value.
            unsafe { tables.write_bytes(0, 1) };
        }
    }

    /// The entries of all stacks.
    pub(super) fn stacks(&self, part: &Part) -> impl Iterator<Item = u32> {
        self.index.entries().filter(|&at| part.is_stack(at))
    }

    /// The entry of the calling thread's stack, made if there is none; `None` if there is no room.
    pub(super) fn find_or_add(&mut self, part: &mut Part, finder: &Finder) -> Option<u32> {
        let Tables { walker, index, .. } = self;
        let mut stack = walker.walk(part);
        finder.add_lines(&mut stack, &mut walker.lines, |hash, line| index.find_or_add(part, hash, line));
        let hash = stack.hash();
        index.find_or_add(part, hash, &stack.entry())
    }
}
