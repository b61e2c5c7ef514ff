//! Whether a trace moves objects, and where to: the part of a trace that depends on the heap's plan.

use crate::space::block::{Block, Index};
use crate::trace::mark_bytes::Bytes;
use vellum_sys::Addr;

/// The treatment of an object that a trace reaches for the first time, by a pointer that may be changed.
pub(crate) trait Movement {
    /// Objects may move. If not, a trace has no code for moves.
    const MOVES: bool;

    /// Marks an object; false if it was marked already or is not allocated.
    #[inline(always)]
    fn mark(&self, block: &Block, index: Index) -> bool {
        block.mark(index)
    }

    /// Copies an object of a block that is being evacuated, and leaves its new address behind. `None` if
    /// there is no room: it must stay.
    fn copy(&mut self, block: &Block, index: Index) -> Option<Addr>;

    /// A field at `at` leads to an object that stays where it is, in a block that is being emptied.
    fn note_pinned(&mut self, _at: Addr) {}

    /// The `index`th block that copies went to, if there is one.
    fn target(&self, index: usize) -> Option<&'static Block>;
}

/// No object moves, and several threads trace (`parallel`): marks are set in these bytes.
pub(crate) struct Together(pub Bytes);

impl Movement for Together {
    const MOVES: bool = false;

    #[inline(always)]
    fn mark(&self, block: &Block, index: Index) -> bool {
        self.0.mark(block, index)
    }

    fn copy(&mut self, _block: &Block, _index: Index) -> Option<Addr> {
        None
    }

    fn target(&self, _index: usize) -> Option<&'static Block> {
        None
    }
}

/// Nothing moves.
pub(crate) struct InPlace;

impl Movement for InPlace {
    const MOVES: bool = false;

    fn copy(&mut self, _block: &Block, _index: Index) -> Option<Addr> {
        None
    }

    fn target(&self, _index: usize) -> Option<&'static Block> {
        None
    }
}
