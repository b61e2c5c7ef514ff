//! Scanning the written parts of the heap again, with the world stopped.
//!
//! The heap's account (`write_tracking`) has the parts that were written to since their last scan. Marked
//! objects there are scanned: objects that they refer to are marked, or moved, and the fields updated. If
//! the account was lost on the way, everything counts as written.
//!
//! # Invariants
//! * If the caller [drains](Written::drains), the mark stack is emptied after each part.

use crate::space::address_table::AddressTable;
use crate::space::block::Block;
use crate::trace::mark::Marker;
use crate::trace::movement::Movement;
use crate::write_tracking::{Dirty, Look, Which};
use vellum_sys::Addr;

/// The blocks whose written parts are scanned, and how.
pub(crate) struct Written {
    /// Blocks of this kind.
    pub which: Which,
    /// Objects found are traced at once. False as long as no object may move.
    pub drains: bool,
}

impl Written {
    /// Scans the written parts of `blocks`, all of the heap's. Returns the written bytes that the account
    /// had.
    pub(crate) fn look_through<M: Movement>(
        &self,
        marker: &mut Marker<'_, M>,
        dirty: &mut Dirty,
        space: &AddressTable,
        blocks: &[&'static Block],
    ) -> usize {
        let mut again = |part| {
            marker.again(part);
            if self.drains {
                marker.drain(blocks);
            }
        };
        let (mut from, mut written) = (Addr::NULL, 0);
        loop {
            match dirty.look(space, &mut from, false, self.which) {
                Look::Written(part) => {
                    written += part.bytes;
                    again(part);
                }
                Look::On => {}
                Look::End => break,
            }
        }
        if !dirty.is_lost() {
            return written;
        }
        for &block in blocks {
            if self.which.is(block) && block.extent.get() != 0 {
                again(block.span());
            }
        }
        written
    }
}
