//! Kept objects: objects that the program must free, and that keep alive the objects that they refer to.
//!
//! ```text
//! alloc_kept   small, if no object moves    a slot of kept objects  all objects of its blocks are roots
//!              else, and after `keep`       any slot                the object's address is in a root table
//! ```
//!
//! A *slot* is all objects of one size and pointer layout; a *block* is 16 KiB of them. Blocks of kept
//! objects exist because a program that frees every object itself has hundreds of thousands of kept objects.
//! (Example: C++ with a global `operator new` whose memory the collector scans.) A table entry for each kept
//! object would cost more than the object.
//!
//! # Invariants
//! * Every allocated object of a kept block stays. An object of such a block that the program frees is always
//!   on a list, until it is reused or a collection frees it (`explicit_free`).
//! * A thread allocates from a *run* of free objects. In a block of kept objects, the unused objects of a run
//!   are zero. They are freed when the thread ends or collects.
//!
//! Source: the uncollectable kinds of the Boehm-Demers-Weiser collector, whose blocks are roots as well.

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
