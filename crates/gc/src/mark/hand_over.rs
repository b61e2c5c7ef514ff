//! Handing over what waits from one marker to another, where several trace (`parallel`).
//!
//! ```text
//! stack   │ oldest … ┊ … newest │ ──give──▶ packet ──receive──▶ │ … │  another's, which is empty
//!             half at most
//! ```
//!
//! What has waited longest leads furthest, so that is what is given. In which order things wait means nothing, but an entry of two words stays
//! whole: it is never cut.

use super::{Marker, PART};
use crate::movement::Movement;

impl<M: Movement> Marker<'_, M> {
    /// Traces `objects` objects, or until nothing waits; whether nothing does. What found no room on the stack is left out.
    pub(crate) fn trace_some(&mut self, objects: u32) -> bool {
        let mut left = objects;
        self.empty_stack(&mut || {
            let is_free = left > 0;
            left = left.saturating_sub(1);
            is_free
        })
    }

    /// Whether some found no room on the stack.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Words on the stack.
    pub(crate) fn waiting(&self) -> usize {
        self.depth
    }

    /// Moves what has waited longest, half of the stack at most, into `room`: it leads furthest. How many words that were; none if there is no
    /// place to cut.
    pub(crate) fn give(&mut self, room: &mut [usize]) -> usize {
        /// An entry takes two words at most, so that one of these cuts is between entries at both ends.
        const CUTS: usize = 4;
        debug_assert_eq!(self.queued, 0);
        // SAFETY: the stack's memory up to its depth has been written.
        let stack = unsafe { core::slice::from_raw_parts_mut(self.stack.start, self.depth) };
        let most = room.len().min(self.depth / 2);
        let is_cut = |at: usize| stack.get(at).is_none_or(|&word| word & PART == 0);
        let cut =
            (most.saturating_sub(CUTS) + 1..=most).rev().find(|&at| is_cut(at) && is_cut(self.depth - at));
        let Some(count) = cut else { return 0 };
        room[..count].copy_from_slice(&stack[..count]);
        // What is on top fills the hole: in which order things wait means nothing.
        stack.copy_within(self.depth - count.., 0);
        self.depth -= count;
        count
    }

    /// Has what another marker gave wait here.
    pub(crate) fn receive(&mut self, words: &[usize]) {
        debug_assert!(self.depth + words.len() <= self.stack.room);
        for &word in words {
            // SAFETY: a member receives when its stack is empty, which has room for more than a packet.
            unsafe { self.stack.start.add(self.depth).write(word) };
            self.depth += 1;
        }
    }
}
