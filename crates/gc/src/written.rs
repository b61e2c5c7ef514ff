//! Looking again through what was written to, with the world stopped.
//!
//! An account (`dirty`) says which parts of the heap were written to since they were looked through. What marked objects there lead to is
//! marked, or moved and the fields changed. An account that was lost on the way means that everything counts as written.
//!
//! # Invariants
//! * Where the caller [drains](Written::drains), what was found waits on the mark stack for one stretch only: the stack is emptied before it is full.

use crate::block::Block;
use crate::dirty::{Dirty, Look, Which};
use crate::heap::Address;
use crate::mark::Marker;
use crate::movement::Movement;
use crate::space::Space;

/// What is looked through, and how.
pub(crate) struct Written {
    /// Blocks of this kind.
    pub which: Which,
    /// What is found is traced at once. Not where nothing may move yet.
    pub drains: bool,
}

impl Written {
    /// Looks through what `dirty` knows to be written, of `blocks`, which are all of the heap's.
    pub(crate) fn look_through<M: Movement>(
        &self,
        marker: &mut Marker<'_, M>,
        dirty: &mut Dirty,
        space: &Space,
        blocks: &[Address],
    ) {
        let mut again = |start, end| {
            marker.again(start, end);
            if self.drains {
                marker.drain(blocks);
            }
        };
        let mut from = 0;
        loop {
            match dirty.look(space, &mut from, false, self.which) {
                Look::Written(start, end) => again(start, end),
                Look::On => {}
                Look::End => break,
            }
        }
        if !dirty.is_lost() {
            return;
        }
        for &address in blocks {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block = unsafe { &*(address as *const Block) };
            if self.which.is(block) && block.extent.get() != 0 {
                again(block.base.get(), block.base.get() + block.extent.get());
            }
        }
    }
}
