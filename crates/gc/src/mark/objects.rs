//! Looking through an object: its words, its fields, or what a procedure of the program's names of it; long ones by stretches.

use super::{Marker, PART};
use crate::block::{Block, Index, Scan};
use crate::class::{BLOCK, WORD};
use crate::movement::Movement;
use crate::procedure::Visitor;

/// Words of an object that are looked through at a time: a longer object goes back to the stack with what is left, so that it
/// does not fill the stack with its referents.
pub(super) const STRETCH: usize = 512;

impl<M: Movement> Marker<'_, M> {
    /// Marks what the object at `address` points to, but not the object itself.
    pub(crate) fn contents(&mut self, address: usize) {
        if let Some(block) = self.space.block_of(address) {
            self.look_through_apart(block, address);
        }
    }

    /// Marks what the object at `address` points to other than itself. Where nothing moves.
    pub(crate) fn contents_but_itself(&mut self, address: usize) {
        let Some(block) = self.space.block_of(address) else { return };
        let itself = address..address + block.size.get();
        let is_clear = match block.scan.get() {
            Scan::Nothing => true,
            // SAFETY: an allocated object's words may be read.
            Scan::Words | Scan::Layout => itself
                .clone()
                .step_by(WORD)
                .all(|at| !itself.contains(&unsafe { (at as *const usize).read_volatile() })),
            Scan::Procedure => false,
        };
        if is_clear {
            return self.look_through_apart(block, address);
        }
        for at in itself.clone().step_by(WORD) {
            // SAFETY: as above.
            let word = unsafe { (at as *const usize).read_volatile() };
            if !itself.contains(&word) {
                self.consider(word, self.only_starts);
            }
        }
    }

    /// Looks through every marked object that has bytes from `start` up to `end`: they were written to after they were marked.
    pub(crate) fn again(&mut self, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let Some(block) = self.space.block_of(at) else {
                at = (at / BLOCK + 1) * BLOCK;
                continue;
            };
            let base = block.base.get();
            let to = end.min(base + block.extent.get());
            if M::MOVES && !block.is_old() {
                at = (base + block.extent.get()).next_multiple_of(BLOCK);
                continue;
            }
            if block.slot.get() == 0 {
                if to > at && block.is_marked(Index(0)) {
                    self.part(block, base, at, to.min(base + block.size.get()));
                }
                at = (base + block.extent.get()).next_multiple_of(BLOCK);
                continue;
            }
            if block.scan.get() != Scan::Nothing {
                let last = block.index_at(to - 1 - base).0.min(block.count.get() - 1);
                block.each_marked(block.index_at(at - base).0, last + 1, |index| {
                    self.look_through_apart(block, block.address(index));
                });
            }
            at = to;
        }
    }

    /// Looks at a large object's words from `from` up to `to`.
    pub(super) fn part(&mut self, block: &Block, object: usize, from: usize, to: usize) {
        match block.scan.get() {
            Scan::Nothing => {}
            // SAFETY: an allocated object's words may be read.
            Scan::Words => unsafe { self.words(from, to, self.only_starts) },
            Scan::Layout => {
                // SAFETY: a block with layout has one, which lives for ever.
                let element = unsafe { (*block.layout.get()).words.get() as usize } * WORD;
                self.typed(block, object, object + (from - object) / element * element, to);
            }
            Scan::Procedure => self.by_procedure(block, object),
        }
    }

    /// [`Marker::look_through`], not within the caller.
    #[inline(never)]
    pub(super) fn look_through_apart(&mut self, block: &Block, object: usize) {
        self.look_through(block, object);
    }

    #[inline(always)]
    pub(super) fn look_through(&mut self, block: &Block, object: usize) {
        if block.size.get() > STRETCH * WORD && block.scan.get() != Scan::Procedure {
            return self.stretch(block, object, object);
        }
        let end = object + block.size.get();
        match block.scan.get() {
            // SAFETY: an allocated object's words may be read.
            Scan::Words => unsafe { self.words(object, end, self.only_starts) },
            Scan::Layout => self.typed(block, object, object, end),
            Scan::Procedure => self.by_procedure(block, object),
            Scan::Nothing => {}
        }
    }

    /// Looks through the next stretch of a long object, and puts the rest back.
    #[inline(never)]
    pub(super) fn stretch(&mut self, block: &Block, object: usize, from: usize) {
        let end = object + block.size.get();
        let element = match block.scan.get() {
            // A procedure is asked once for the whole object.
            Scan::Nothing | Scan::Procedure => return,
            Scan::Words => 1,
            // SAFETY: a block with layout has one, which lives for ever.
            Scan::Layout => unsafe { (*block.layout.get()).words.get() as usize },
        };
        // Whole elements, so that each stretch begins with one.
        let step = STRETCH.div_ceil(element) * element * WORD;
        let to = end.min(from + step);
        if to < end {
            if self.depth + 2 > self.stack.room {
                block.note_overflow();
                self.overflowed = true;
            } else {
                // SAFETY: there is room for two words.
                unsafe {
                    self.stack.start.add(self.depth).write(to);
                    self.stack.start.add(self.depth + 1).write(object | PART);
                }
                self.depth += 2;
            }
        }
        if block.scan.get() == Scan::Words {
            // SAFETY: an allocated object's words may be read.
            unsafe { self.words(from, to, self.only_starts) };
        } else {
            self.typed(block, object, from, to);
        }
    }

    /// Follows what the program's procedure names of an object.
    #[cold]
    pub(super) fn by_procedure(&mut self, block: &Block, object: usize) {
        // SAFETY: a block with layout has one, which lives for ever.
        let layout = unsafe { &*block.layout.get() };
        let Some((procedure, data)) = layout.procedure.get() else { return };
        let visitor = Visitor::of(self);
        let object = core::ptr::with_exposed_provenance_mut(object);
        let data = core::ptr::with_exposed_provenance_mut(data);
        // SAFETY: who made the type vouches for it; the visitor lives across the call, in which this trace is nobody else's.
        unsafe { procedure(object, block.size.get(), data, &raw const visitor) };
    }

    /// Looks at the pointers of the elements from `from` up to `to`.
    #[inline(always)]
    pub(super) fn typed(&mut self, block: &Block, object: usize, from: usize, to: usize) {
        debug_assert!(from >= object);
        // SAFETY: a block with layout has one, which lives for ever.
        let layout = unsafe { &*block.layout.get() };
        let words = layout.words.get() as usize;
        let mut element = from;
        while element < to {
            for part in 0..words.div_ceil(64) {
                let mut bits = layout.pointers(part);
                while bits != 0 {
                    let at = element + (part * 64 + bits.trailing_zeros() as usize) * WORD;
                    bits &= bits - 1;
                    if at + WORD > to {
                        return;
                    }
                    self.field(at);
                }
            }
            element += words * WORD;
        }
    }
}
