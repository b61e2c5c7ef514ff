//! Scans an object: its words, its fields, or words that a callback names; a long object piece by piece.

use super::{Marker, PART};
use crate::process::visitor::Visitor;
use crate::space::block::{Block, Index, Scan};
use crate::space::size_class::{BLOCK, WORD};
use crate::trace::movement::Movement;
use core::ffi::c_void;
use vellum_sys::{Addr, Span};

/// Words of an object that are scanned at a time. A longer object is pushed again with the rest, so that it
/// does not fill the stack with its referents.
pub(super) const STRETCH: usize = 512;

impl<M: Movement> Marker<'_, M> {
    /// The visitor that passes a callback's words to this marker. The caller keeps the borrow during the
    /// visitor's use.
    pub(crate) fn visitor(&mut self) -> Visitor {
        /// # Safety
        /// `marker` is the visitor's; the words may be read.
        unsafe fn words<M: Movement>(marker: *mut c_void, span: Span) {
            // SAFETY: `visitor` stored it, and its borrow is kept up; the words by this function's condition.
            unsafe { (*marker.cast::<Marker<'_, M>>()).words(span, false) };
        }
        Visitor::new(words::<M>, core::ptr::from_mut(self).cast())
    }

    /// Marks the objects that the object at `address` points to, but not that itself.
    pub(crate) fn contents(&mut self, address: Addr) {
        if let Some(block) = self.space.block_of(address) {
            self.look_through_apart(block, address);
        }
    }

    /// [`Marker::contents`] without the object's pointers to itself. For traces in which no object moves.
    pub(crate) fn contents_but_itself(&mut self, address: Addr) {
        let Some(block) = self.space.block_of(address) else { return };
        let itself = Span::new(address, block.size.get());
        // SAFETY: an allocated object's words may be read.
        let read = |offset| unsafe { (address + offset).ptr::<Addr>().read_volatile() };
        let words = (0..itself.bytes).step_by(WORD).map(read);
        let is_clear = match block.scan.get() {
            Scan::Nothing => true,
            Scan::Words | Scan::Layout => words.clone().all(|word| !itself.contains(word)),
            Scan::Procedure => false,
        };
        if is_clear {
            return self.look_through_apart(block, address);
        }
        words.filter(|&word| !itself.contains(word)).for_each(|word| self.consider(word, self.only_starts));
    }

    /// Scans every marked object that has bytes in `span`: they were written to after they
    /// were marked.
    pub(crate) fn again(&mut self, span: Span) {
        let (mut at, end) = (span.start, span.end());
        while at < end {
            let Some(block) = self.space.block_of(at) else {
                at = at.round_down(BLOCK) + BLOCK;
                continue;
            };
            let Span { start: base, .. } = block.span();
            let to = end.min(block.span().end());
            if M::MOVES && !block.is_old() {
                at = block.span().end().round_up(BLOCK);
                continue;
            }
            if block.slot.get() == 0 {
                if to > at && block.is_marked(Index(0)) {
                    self.part(block, base, at, to.min(base + block.size.get()));
                }
                at = block.span().end().round_up(BLOCK);
                continue;
            }
            if block.scan.get() != Scan::Nothing {
                let last = block.index_at(to - base - 1).0.min(block.count.get() - 1);
                block.each_marked(block.index_at(at - base).0, last + 1, |index| {
                    self.look_through_apart(block, block.address(index));
                });
            }
            at = to;
        }
    }

    /// Scans a large object's words from `from` up to `to`.
    pub(super) fn part(&mut self, block: &Block, object: Addr, from: Addr, to: Addr) {
        match block.scan.get() {
            Scan::Nothing => {}
            // SAFETY: an allocated object's words may be read.
            Scan::Words => unsafe { self.words(Span::between(from, to), self.only_starts) },
            Scan::Layout => {
                // SAFETY: a block with layout has one, which lives for ever.
                let element = unsafe { (*block.layout.get()).words.get() as usize } * WORD;
                self.typed(block, object, object + (from - object) / element * element, to);
            }
            Scan::Procedure => self.by_procedure(block, object),
        }
    }

    /// [`Marker::look_through`], out of line.
    #[inline(never)]
    pub(super) fn look_through_apart(&mut self, block: &Block, object: Addr) {
        self.look_through(block, object);
    }

    #[inline(always)]
    pub(super) fn look_through(&mut self, block: &Block, object: Addr) {
        if block.size.get() > STRETCH * WORD && block.scan.get() != Scan::Procedure {
            return self.stretch(block, object, object);
        }
        let end = object + block.size.get();
        match block.scan.get() {
            // SAFETY: an allocated object's words may be read.
            Scan::Words => unsafe { self.words(Span::new(object, block.size.get()), self.only_starts) },
            Scan::Layout => self.typed(block, object, object, end),
            Scan::Procedure => self.by_procedure(block, object),
            Scan::Nothing => {}
        }
    }

    /// Scans the next stretch of a long object, and pushes the rest.
    #[inline(never)]
    pub(super) fn stretch(&mut self, block: &Block, object: Addr, from: Addr) {
        let end = object + block.size.get();
        let element = match block.scan.get() {
            // A callback is asked once for the whole object.
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
                // SAFETY: the stack has room for two more words, as was just tested.
                unsafe {
                    self.stack.start.add(self.depth).write(to.get());
                    self.stack.start.add(self.depth + 1).write(object.get() | PART);
                }
                self.depth += 2;
            }
        }
        if block.scan.get() == Scan::Words {
            // SAFETY: an allocated object's words may be read.
            unsafe { self.words(Span::between(from, to), self.only_starts) };
        } else {
            self.typed(block, object, from, to);
        }
    }

    /// Follows the words that the program's callback names of an object.
    #[cold]
    pub(super) fn by_procedure(&mut self, block: &Block, object: Addr) {
        // SAFETY: a block with layout has one, which lives for ever.
        let layout = unsafe { &*block.layout.get() };
        let Some((procedure, data)) = layout.procedure.get() else { return };
        let visitor = self.visitor();
        let data = core::ptr::with_exposed_provenance_mut(data);
        // SAFETY: the program vouched for the callback when it made the type. The visitor lives across the
        // call, during which nobody else uses this marker.
        unsafe { procedure(object.ptr(), block.size.get(), data, &raw const visitor) };
    }

    /// Follows the pointers of the elements from `from` up to `to`.
    #[inline(always)]
    pub(super) fn typed(&mut self, block: &Block, object: Addr, from: Addr, to: Addr) {
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
