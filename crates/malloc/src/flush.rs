//! Returns free blocks on a heap's lists to their slabs, and slabs with no block in use to the page layer.
//!
//! Used at a thread's end, by `malloc_trim` and by the helper thread, always in the heap's gate (its lock).

use crate::class::CLASSES;
use crate::heap::{Bin, Heap};
use crate::slab::Block;
use core::ptr::null_mut;

impl Heap {
    /// Gives the list `free[class]` back to its slab. Inside the gate.
    pub(crate) fn give_back(&'static self, class: usize) {
        let blocks = self.give_back_list(self.free[class].replace(null_mut()));
        self.countdown.returned(class, blocks);
        self.give_back_list(self.countdown.withheld[class].replace(null_mut()));
    }

    /// Returns a list to its slab. The number of its blocks.
    fn give_back_list(&'static self, first: *mut Block) -> u32 {
        let Some(slab) = self.space().slab_of(first.cast()) else {
            return 0;
        };
        let mut blocks = 0;
        let mut block = first;
        while !block.is_null() {
            blocks += 1;
            // SAFETY: the list's blocks are free, belong to the slab, and end in null.
            block = unsafe { (*block).next() };
        }
        self.credit(slab, Some(crate::space::granule_of(first.cast())), blocks);
        blocks
    }

    pub(crate) fn flush(&'static self) {
        self.drain();
        (1..CLASSES).for_each(|class| self.give_back(class));
        self.flush_counts();
        self.sweep();
        self.return_spares(0);
        self.magazine.flush();
    }

    /// Gives back slabs whose last blocks were freed by other threads, too few to wake it. Inside the gate.
    pub(crate) fn sweep(&'static self) {
        for bin in &self.bins {
            let mut next = bin.awake.get();
            // SAFETY: slabs on a bin's list are live descriptions; `next` is read before a slab can leave.
            while let Some(slab) = unsafe { next.as_ref() } {
                next = slab.next.get();
                self.reclaim(slab);
            }
            self.drop_unused(bin);
        }
    }

    /// Gives back a slab being carved of whose few blocks none is in use: too few to wake it.
    fn drop_unused(&'static self, bin: &Bin) {
        // SAFETY: the slab being carved is a live description.
        let Some(slab) = (unsafe { bin.carving.get().as_ref() }) else { return };
        if slab.awake.get() || slab.remote.is_notified() {
            return;
        }
        if slab.is_finished() {
            self.reclaim(slab);
        } else if slab.live() == 0 && slab.remote.blocks() == 0 {
            self.wake(bin, slab, 0);
            self.release(bin, slab);
        }
    }
}
