//! Kept objects: they stay until their users free them, and keep the objects that they refer to.
//!
//! ```text
//! alloc_kept   small, where nothing moves   a slot of its own    its blocks are roots, whole
//!              else, and `keep`             any slot             the object's address is in a table
//! ```
//!
//! A program that frees every object itself (C++ with a global `operator new` that the collector scans) has
//! hundreds of thousands of kept objects. An entry for each would cost more than the object.
//!
//! # Invariants
//! * Every allocated object of a kept block stays. A freed object is always listed until it is taken back
//!   (`explicit_free`).
//! * Unused objects of a run in such a block read zero, and are freed when the thread ends or collects.
//!
//! Source: the uncollectable kinds of the Boehm-Demers-Weiser collector, whose blocks are roots, too.

use crate::death::table::Table;
use crate::space::block::Block;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use vellum_sys::Addr;

/// The kept objects.
pub(crate) struct Kept {
    /// Kept objects outside of kept blocks.
    pub table: Table<u8>,
    /// There are such blocks.
    pub any_blocks: bool,
}

impl Kept {
    pub(crate) const fn new() -> Kept {
        Kept { table: Table::new(), any_blocks: false }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.table.bytes()
    }

    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Drops the object's entry, if it has one.
    pub(crate) fn forget(&mut self, object: Addr) {
        self.table.remove(object);
    }

    pub(crate) fn has(&self, block: &Block, object: Addr) -> bool {
        block.is_kept() || self.table.get(object).is_some()
    }

    /// Calls `visit` with those in the table.
    pub(crate) fn each(&self, mut visit: impl FnMut(Addr)) {
        self.table.each(|object, _| visit(object));
    }

    /// Marks them all. `blocks` is all blocks there are.
    pub(crate) fn mark(&self, marker: &mut Marker<'_, impl Movement>, blocks: &[&'static Block]) {
        self.table.each(|object, _| marker.root(object));
        if self.any_blocks {
            for &block in blocks {
                if block.is_kept() {
                    marker.whole(block);
                }
            }
        }
    }
}
