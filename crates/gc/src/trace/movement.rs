//! Whether a trace may move objects: the part in which plans differ while they trace.

use crate::space::block::{Block, Index};

/// How a trace treats an object that it reaches for the first time, by a pointer that may be changed.
pub(crate) trait Movement {
    /// Whether anything moves. Where nothing does, a trace has no code for it.
    const MOVES: bool;

    /// Whether several threads trace at once, so that marks are set in
    /// [`mark_bytes`](crate::trace::mark_bytes).
    const SHARES: bool = false;

    /// Copies an object of a block that is being evacuated, and leaves its new address behind. `None` if
    /// there is no room: it must stay.
    fn copy(&mut self, block: &Block, index: Index) -> Option<usize>;

    /// A field at `at` leads to an object that stays where it is, in a block that is being emptied.
    fn note_pinned(&mut self, _at: usize) {}

    /// Address of the `index`th descriptor of a block that copies went to, if there is one.
    fn target(&self, index: usize) -> Option<usize>;
}

/// Nothing moves, and several threads trace (`parallel`).
pub(crate) struct Together;

impl Movement for Together {
    const MOVES: bool = false;
    const SHARES: bool = true;

    fn copy(&mut self, _block: &Block, _index: Index) -> Option<usize> {
        None
    }

    fn target(&self, _index: usize) -> Option<usize> {
        None
    }
}

/// Nothing moves.
pub(crate) struct InPlace;

impl Movement for InPlace {
    const MOVES: bool = false;

    fn copy(&mut self, _block: &Block, _index: Index) -> Option<usize> {
        None
    }

    fn target(&self, _index: usize) -> Option<usize> {
        None
    }
}
