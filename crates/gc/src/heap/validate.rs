//! Checks the heap's invariants, one by one. The checks are slow, as they read every bitmap. All threads
//! must be stopped.

use crate::heap::Heap;
use crate::space::block::{Block, Scan, pairs_of};
use crate::space::size_class::{BLOCK, WORD};
use crate::trace::mark;
use vellum_sys::Addr;

impl Heap {
    /// In paranoid heaps, ends the process if `check` fails, naming the phase. The world stands still.
    #[inline]
    pub(crate) fn check_after(&self, phase: &str, check: impl FnOnce(&Heap) -> Result<(), &'static str>) {
        if self.config.paranoid
            && let Err(broken) = check(self)
        {
            end(phase, broken);
        }
    }

    /// Checks the invariants that do not depend on the plan. `in_cycle`: a collection in slices is under way.
    ///
    /// # Errors
    /// Names the first that is broken.
    pub(crate) fn check(&self, in_cycle: bool) -> Result<(), &'static str> {
        let mut bytes = 0;
        for &block in self.space.blocks.iter() {
            if block.extent.get() == 0 {
                continue;
            }
            bytes += block.extent.get();
            self.check_block(block, in_cycle)?;
        }
        check(bytes == self.space.bytes, "the heap's bytes are those of its blocks")?;
        self.check_limits()?;
        for &unit in self.space.pool.iter() {
            check(self.space.table.block_of(unit).is_none(), "a free block has no descriptor")?;
        }
        for (slot, entry) in self.space.slots.iter().enumerate() {
            let mut next = entry.roomy;
            while let Some(block) = next {
                check(usize::from(block.slot.get()) == slot, "a block with room is its slot's")?;
                check(block.allocated_count() < block.count.get(), "a block with room has room")?;
                next = block.next.get();
            }
        }
        self.check_tables()?;
        self.check_threads()
    }

    /// Checks that the tables' addresses are those of objects.
    fn check_tables(&self) -> Result<(), &'static str> {
        let mut result = Ok(());
        let is_object = |address| self.block_starting(address).is_some();
        let mut expect = |holds: bool, invariant| {
            if !holds {
                result = Err(invariant);
            }
        };
        let mut due = 0;
        self.deaths.finalizers.each(|object, finalizer| {
            due += usize::from(finalizer.due);
            expect(is_object(object), "finalizers are of objects");
        });
        expect(due == self.deaths.due, "as many finalizers are due as are counted");
        expect(self.deaths.disclaimers.is_counted(), "as many disclaimers are due as are counted");
        self.deaths.kept.each(|object| expect(is_object(object), "what is kept are objects"));
        self.deaths.ephemerons.each(|key, _| expect(is_object(key), "keys of ephemerons are objects"));
        self.deaths.samples.each(|object| expect(is_object(object), "samples are objects"));
        self.deaths.links.each(|_, link| expect(is_object(link.object), "links are to objects"));
        result
    }

    /// Checks that the first `old_count` blocks are the old region, and that everything in it is marked.
    ///
    /// # Errors
    /// Names what is broken.
    pub(crate) fn check_old_region(&self, old_count: usize) -> Result<(), &'static str> {
        for (at, &block) in self.space.blocks.iter().enumerate() {
            if block.extent.get() == 0 {
                continue;
            }
            let all = (0..block.pairs.get()).all(|pair| block.marks(pair).get() == !0);
            check(
                block.is_old() == (at < old_count),
                "the old region is the first part of the list of blocks",
            )?;
            check(!block.is_old() || all, "everything in the old region is marked")?;
        }
        Ok(())
    }

    /// Checks that live objects lead to live ones only, at their present addresses, except in blocks that
    /// `leave_out` names. Copies went to the blocks of `targets`.
    ///
    /// # Errors
    /// Names what is broken.
    pub(crate) fn check_reach(
        &self,
        targets: &[&'static Block],
        leave_out: impl Fn(&Block) -> bool,
    ) -> Result<(), &'static str> {
        for &block in self.space.blocks.iter().chain(targets) {
            if leave_out(block) {
                continue;
            }
            let mut result = Ok(());
            block.each(true, |index| {
                let object = block.address(index);
                let mut look = |word| {
                    // SAFETY: a word of an allocated object may be read.
                    let word = unsafe { (object + word * WORD).ptr::<Addr>().read_volatile() };
                    let Some((block, index)) = mark::find(&self.space.table, word, self.config.only_starts)
                    else {
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
                    // Only the callback knows its references.
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

    fn check_block(&self, block: &'static Block, in_cycle: bool) -> Result<(), &'static str> {
        let is_found = |at| self.space.table.block_of(at).is_some_and(|found| core::ptr::eq(found, block));
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
        check(in_cycle || !block.overflowed.get(), "nothing marked was left out")
    }

    fn check_threads(&self) -> Result<(), &'static str> {
        for thread in self.shared.world.known() {
            for (slot, (run, cursor)) in thread.runs.iter().zip(&thread.cursors).enumerate() {
                let (next, end) = (run.next.get(), run.end.get());
                if next == end {
                    continue;
                }
                let block = cursor.block.get().ok_or("a run has a block")?;
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

/// Prints which invariant is broken, and ends the process: the heap cannot be relied on.
#[cold]
fn end(phase: &str, broken: &str) -> ! {
    for part in ["vellum: gc: after ", phase, " this is not so: ", broken, "\n"] {
        // SAFETY: the bytes live across the call; if it is refused, only the message is lost.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    panic!("an invariant of the collected heap");
}
