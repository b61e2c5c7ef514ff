//! Moves waiting entries of the mark stack to another marker, if several threads trace (`parallel`).
//!
//! ```text
//! stack   │ oldest … ┊ … newest │ ──give──▶ packet ──receive──▶ │ … │  another marker's empty stack
//!             half at most
//! ```
//!
//! A packet is a buffer for entries. The oldest entries are moved, because they lead furthest. The order of
//! entries has no meaning, but an entry of two words is never split.

use super::{Marker, PART};
use crate::trace::movement::Movement;

impl<M: Movement> Marker<'_, M> {
    /// Traces `objects` objects, or until nothing waits; returns whether nothing does. Objects that found no
    /// room on the stack are left out.
    pub(crate) fn trace_some(&mut self, objects: u32) -> bool {
        let mut left = objects;
        self.empty_stack(&mut || {
            let is_free = left > 0;
            left = left.saturating_sub(1);
            is_free
        })
    }

    /// Returns whether some objects found no room on the stack.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Words on the stack.
    pub(crate) fn waiting(&self) -> usize {
        self.depth
    }

    /// Moves the oldest entries, half of the stack at most, into `room`: they lead furthest. Returns how many
    /// words these are; 0 if there is no place to cut.
    pub(crate) fn give(&mut self, room: &mut [usize]) -> usize {
        /// An entry takes two words at most, so that one of these cuts is between entries at both ends.
        const CUTS: usize = 4;
        debug_assert_eq!(self.queued, 0);
        // SAFETY: the stack's memory up to its depth has been written, and belongs to this marker alone.
        let stack = unsafe { core::slice::from_raw_parts_mut(self.stack.start, self.depth) };
        let most = room.len().min(self.depth / 2);
        let is_cut = |at: usize| stack.get(at).is_none_or(|&word| word & PART == 0);
        let cut =
            (most.saturating_sub(CUTS) + 1..=most).rev().find(|&at| is_cut(at) && is_cut(self.depth - at));
        let Some(count) = cut else { return 0 };
        room[..count].copy_from_slice(&stack[..count]);
        // The newest entries fill the hole: the order of entries means nothing.
        stack.copy_within(self.depth - count.., 0);
        self.depth -= count;
        count
    }

    /// Pushes the entries that another marker gave.
    pub(crate) fn receive(&mut self, words: &[usize]) {
        debug_assert!(self.depth + words.len() <= self.stack.room);
        for &word in words {
            // SAFETY: a member receives when its stack is empty, which has room for more than a packet.
            unsafe { self.stack.start.add(self.depth).write(word) };
            self.depth += 1;
        }
    }
}
