//! The heap's invariants, checked one by one. Slow: reads every bitmap. The world must stand still.

use crate::block::{Block, Scan, pairs_of};
use crate::class::{BLOCK, WORD};
use crate::config::Plan;
use crate::heap::Heap;
use crate::mark;
use crate::thread;

impl Heap {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Names the first that is broken.
    pub(crate) fn validate(&self) -> Result<(), &'static str> {
        let mut bytes = 0;
        for &address in self.blocks.iter() {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block: &'static Block = unsafe { &*(address as *const Block) };
            if block.extent.get() == 0 {
                continue;
            }
            bytes += block.extent.get();
            self.check_block(block)?;
        }
        check(bytes == self.bytes, "the heap's bytes are those of its blocks")?;
        self.check_limits()?;
        for &unit in self.pool.iter() {
            check(self.space.block_of(unit).is_none(), "a free block has no descriptor")?;
        }
        for (slot, entry) in self.slots.iter().enumerate() {
            let mut next = entry.roomy;
            // SAFETY: null, or a descriptor.
            while let Some(block) = unsafe { next.as_ref() } {
                check(usize::from(block.slot.get()) == slot, "a block with room is its slot's")?;
                check(block.allocated_count() < block.count.get(), "a block with room has room")?;
                next = block.next.get();
            }
        }
        if self.config.plan == Plan::Appel {
            self.check_regions()?;
        }
        self.check_tables()?;
        self.check_threads()
    }

    /// Checks that what the tables know by their objects' addresses are objects.
    fn check_tables(&self) -> Result<(), &'static str> {
        let mut result = Ok(());
        let is_object = |address| self.block_starting(address).is_some();
        let mut expect = |holds: bool, invariant| {
            if !holds {
                result = Err(invariant);
            }
        };
        let mut due = 0;
        self.finalizers.each(|object, finalizer| {
            due += usize::from(finalizer.due);
            expect(is_object(object), "finalizers are of objects");
        });
        expect(due == self.due, "so many finalizers are due as are counted");
        expect(self.disclaimers.is_counted(), "so many disclaimers are due as are counted");
        self.kept.each(|object| expect(is_object(object), "what is kept are objects"));
        self.ephemerons.each(|key, _| expect(is_object(key), "keys of ephemerons are objects"));
        self.links.each(|_, link| expect(is_object(link.object), "links are to objects"));
        result
    }

    /// Checks that what is alive leads to what is alive only, and to where that is now. Within a collection, when all is traced.
    ///
    /// # Errors
    /// Names what is broken.
    pub(crate) fn check_traced(&self) -> Result<(), &'static str> {
        // Where they were not written to, what the words of old ones seem to say of new objects is an accident.
        self.check_reach(|block| self.appel.is_minor && block.is_old() && block.scan.get() == Scan::Words)
    }

    /// The same of a trace in slices.
    ///
    /// # Errors
    /// Names what is broken.
    pub(crate) fn check_traced_in_slices(&self) -> Result<(), &'static str> {
        // A word that was looked through, and not written since, may seem to lead to an object that came after that (`sums`).
        self.check_reach(|block| block.scan.get() == Scan::Words)
    }

    /// Checks that what is alive leads to what is alive only, but for blocks that `leave_out` names.
    fn check_reach(&self, leave_out: impl Fn(&Block) -> bool) -> Result<(), &'static str> {
        for &address in self.blocks.iter().chain(self.copies.targets.iter()) {
            // SAFETY: the list has the addresses of descriptors, which are never unmapped.
            let block: &'static Block = unsafe { &*(address as *const Block) };
            if leave_out(block) {
                continue;
            }
            let mut result = Ok(());
            block.each(true, |index| {
                let object = block.address(index);
                let mut look = |word: usize| {
                    // SAFETY: a word of an allocated object may be read.
                    let word = unsafe { ((object + word * WORD) as *const usize).read_volatile() };
                    let Some((block, index)) = mark::find(&self.space, word, self.config.only_starts) else {
                        return;
                    };
                    if block.has_moved(index) {
                        result = Err("no object in reach leads to where another was before it moved");
                    } else if block.is_allocated(index) && !block.is_marked(index) {
                        result = Err("what an object in reach leads to is marked");
                    }
                };
                let words = block.size.get() / WORD;
                match block.scan.get() {
                    // What a procedure names, only it knows.
                    Scan::Nothing | Scan::Procedure => {}
                    Scan::Words => (0..words).for_each(look),
                    // SAFETY: a block with layout has one, which lives for ever.
                    Scan::Layout => unsafe { (*block.layout.get()).each(words, &mut look) },
                }
            });
            result?;
        }
        Ok(())
    }

    fn check_block(&self, block: &'static Block) -> Result<(), &'static str> {
        let is_found = |at| self.space.block_of(at).is_some_and(|found| core::ptr::eq(found, block));
        let base = block.base.get();
        check(is_found(base) && is_found(base + block.extent.get() - 1), "the table leads to every block")?;
        check(block.pairs.get() == pairs_of(block.count.get()), "bitmaps fit the block")?;
        check(
            block.count.get() as usize * block.size.get() <= block.extent.get().max(BLOCK),
            "objects fit the block",
        )?;
        for pair in 0..block.pairs.get() {
            let beyond = u64::from(block.count.get()).saturating_sub(u64::from(pair) * 64);
            let beyond = if beyond >= 64 { 0 } else { !0 << beyond };
            check(block.allocated(pair).get() & beyond == 0, "nothing is allocated beyond a block's end")?;
        }
        check(!block.evacuating.get(), "nothing moves between collections")?;
        check(u32::from(block.survivors.get()) <= block.count.get(), "no more survive than there are")?;
        check(self.cycle.is_some() || !block.overflowed.get(), "nothing marked was left out")
    }

    fn check_threads(&self) -> Result<(), &'static str> {
        for thread in thread::known() {
            for (slot, (run, cursor)) in thread.runs.iter().zip(&thread.cursors).enumerate() {
                let (next, end) = (run.next.get(), run.end.get());
                if next == end {
                    continue;
                }
                // SAFETY: null, or a descriptor.
                let block = unsafe { cursor.block.get().as_ref() }.ok_or("a run has a block")?;
                check(usize::from(block.slot.get()) == slot, "a run is of its slot")?;
                let (from, to) = (next - block.base.get(), end - block.base.get());
                check(
                    from.is_multiple_of(block.size.get()) && to <= block.extent.get(),
                    "a run lies in its block",
                )?;
                let index = block.index_at(from);
                check(block.is_allocated(index), "a run counts as allocated")?;
            }
        }
        Ok(())
    }
}

fn check(holds: bool, invariant: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(invariant) }
}
