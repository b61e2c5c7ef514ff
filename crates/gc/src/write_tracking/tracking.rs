//! The heap's record of writes (its *account*), between the collections that use it.

use crate::space::block::{Block, Region};
use crate::write_tracking::checksums::Sums;
use crate::write_tracking::{Dirty, EXPECT_MAX};

pub(crate) struct Tracking {
    /// The account of writes, between cycles.
    pub account: Option<Dirty>,
    /// Its tracking ends piece by piece.
    pub is_leaving: bool,
    /// The table of earlier accounts' checksums.
    pub sums: Option<Sums>,
}

impl Tracking {
    pub(crate) const fn new() -> Tracking {
        Tracking { account: None, is_leaving: false, sums: None }
    }
}

/// The block counts as written from now on.
pub(crate) fn untrack(block: &Block) {
    if block.is_tracked() {
        block.region.set(Region::New);
    }
}

impl Dirty {
    /// A thread is to allocate from a block that was there before; `next` leads to the next one with room.
    pub(crate) fn block_goes_out(&mut self, block: &Block, by_block: bool) {
        if by_block && !block.is_tracked() {
            return;
        }
        let (mut all, mut next) = (block.span(), block.next.get());
        while let Some(beside) = next.filter(|next| next.base.get() == all.end()) {
            if all.bytes >= EXPECT_MAX {
                break;
            }
            all.bytes += beside.extent.get();
            next = beside.next.get();
            if by_block {
                untrack(beside);
            }
        }
        if by_block {
            untrack(block);
            self.expect(all, all);
        } else {
            self.expect(block.span(), all);
        }
    }
}
