//! The heap's part of explicit frees ([`explicit_free`](crate::death::explicit_free)): decides which freed
//! objects may be reused at once, and lists those that the next collection frees.

use crate::death::explicit_free::{REMEMBERED_MAX, each, end_lists};
use crate::heap::Heap;
use crate::space::block::{Block, Scan};
use crate::world::thread::Thread;
use vellum_sys::Addr;

impl Heap {
    /// Returns whether a freed object of the block may be the thread's next one. Links may lead to a freed
    /// object or lie in it, so that there must be none. Heaps that are checked, or whose program reports its
    /// writes, never reuse one. Where old marks stay, an old object is not reused, as a new object has no
    /// mark. The caller has made sure that no collection in slices is under way.
    pub(crate) fn reuses(&self, block: &Block, object: Addr) -> bool {
        let config = &self.config;
        block.slot.get() != 0
            && block.scan.get() != Scan::Procedure
            && !self.moves
            && !(config.eager != 0 || config.poison || config.tells_writes)
            && (self.tracking.account.is_none()
                || !block.is_marked(block.index_at(object - block.base.get())))
            && self.deaths.links.len() == 0
    }

    /// The thread, which is the caller, ends: the objects that it has freed are remembered, with the unused
    /// ones of its runs in kept blocks.
    pub(crate) fn remember_freed(&mut self, thread: &Thread) {
        thread.each_left(self.slots_in_use(), |object| {
            let _ = self.deaths.freed.push(object);
        });
        for cursor in thread.cursors.iter().take(self.slots_in_use()) {
            each(cursor.freed.take(), |object| {
                let is_kept = self.space.table.block_of(object).is_some_and(|block| block.is_kept());
                if self.deaths.freed.len() < REMEMBERED_MAX || is_kept {
                    let _ = self.deaths.freed.push(object);
                }
            });
        }
    }

    /// Takes back freed objects. The world stands still, or nobody else allocates.
    pub(crate) fn take_back_freed(&mut self) {
        end_lists(&self.shared.world, &self.space.table, self.slots_in_use());
        for &object in self.deaths.freed.iter() {
            if let Some(block) = self.block_starting(object) {
                let index = block.index_at(object - block.base.get()).0;
                block.clear_allocated(index, index + 1);
            }
        }
        self.deaths.freed.truncate(0);
    }
}
