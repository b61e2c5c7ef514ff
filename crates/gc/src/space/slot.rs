//! Slots (sets of all objects of one size and one arrangement of pointers) and their statistics.

use crate::space::block::{Block, Scan};
use crate::space::layout::Layout;
use crate::space::survivor_statistics::{ALL, Young};
use core::ptr::null;
use vellum_pages::Plain;

/// Objects of one size whose pointers lie alike.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub size: usize,
    pub scan: Scan,
    pub layout: *const Layout,
    /// Its objects stay until they are freed.
    pub kept: bool,
    /// Blocks with room.
    pub roomy: Option<&'static Block>,
    /// Survivors among [`ALL`] young objects, by the last collection.
    pub survival: u32,
    /// Survivors lie apart from each other.
    pub scattered: bool,
    pub young: Young,
}

// SAFETY: a record of numbers and of pointers that own nothing.
unsafe impl Plain for Slot {}

impl Slot {
    /// Puts a block among those with room, as the first.
    pub(crate) fn put_roomy(&mut self, block: &'static Block) {
        block.next.set(self.roomy);
        self.roomy = Some(block);
    }
}

/// A slot that is not in use.
pub(crate) const NO_SLOT: Slot = Slot {
    size: 0,
    scan: Scan::Nothing,
    layout: null(),
    kept: false,
    roomy: None,
    survival: ALL,
    scattered: false,
    young: Young { met: 0, left: 0, reached: 0, runs: 0 },
};
