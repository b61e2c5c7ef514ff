//! The order of scanning: the stack, the queue in front of it, and what to do when the stack is full.
//!
//! A stack entry is one of three things. (1) The address of a small object, with the object's map of
//! pointers. (2) The address of a field whose object may have to move. (3) For the rest of a long object, the
//! address at which its scan continues and, on top, the object's address. The head of [`mark`](super) has the
//! invariants.

use super::{ADDRESS, FIELD, MAP_SHIFT, Marker, PART, QUEUE};
use crate::space::block::{Block, Scan};
use crate::space::size_class::WORD;
use crate::trace::movement::Movement;
use vellum_sys::Addr;

impl<M: Movement> Marker<'_, M> {
    #[inline(always)]
    pub(super) fn push(&mut self, entry: usize) {
        if self.depth == self.stack.room {
            return self.overflow(Addr::new(entry & ADDRESS));
        }
        // SAFETY: the depth is below the stack's room, as was just tested.
        unsafe { self.stack.start.add(self.depth).write(entry) };
        self.depth += 1;
    }

    /// Records the block of an object that finds no room.
    #[cold]
    pub(super) fn overflow(&mut self, object: Addr) {
        // SAFETY: objects that are marked lie in blocks.
        unsafe { (*self.space.within_bounds(object)).note_overflow() };
        self.overflowed = true;
    }

    /// Traces until no marked object is left to scan. `blocks` is all blocks there are.
    pub(crate) fn drain(&mut self, blocks: &[&'static Block]) {
        let done = self.drain_while(blocks, || true);
        debug_assert!(done);
    }

    /// [`Marker::drain`] as long as `go_on`, which is called before each object, returns true. Returns
    /// whether nothing is left. A trace that moves objects always finishes.
    #[inline(always)]
    pub(crate) fn drain_while(&mut self, blocks: &[&'static Block], mut go_on: impl FnMut() -> bool) -> bool {
        loop {
            if !self.empty_stack(&mut go_on) {
                return false;
            }
            if !self.overflowed {
                return true;
            }
            self.overflowed = false;
            self.overflows += 1;
            if !blocks.iter().all(|&block| self.look_again(block, &mut go_on)) {
                // Later blocks may still be recorded.
                self.overflowed = true;
                return false;
            }
            let mut copied = 0;
            while let Some(block) = self.movement.target(copied) {
                self.look_again(block, &mut go_on);
                copied += 1;
            }
        }
    }

    /// Scans the marked objects of `block` if some may have been left out; false if the scan had to stop.
    pub(super) fn look_again(&mut self, block: &Block, go_on: &mut impl FnMut() -> bool) -> bool {
        if !block.overflowed.replace(false) {
            return true;
        }
        if M::MOVES && block.is_old() && block.scan.get() == Scan::Words {
            // Of the other objects, only written words had their targets pinned.
            block.each_copy(|index| self.look_through_apart(block, block.address(index)));
            return self.empty_stack(go_on);
        }
        // The referents of a block's objects mostly find room on the empty stack; else more blocks are
        // recorded.
        block.each(true, |index| self.look_through_apart(block, block.address(index)));
        self.empty_stack(go_on)
    }

    /// Scans everything on the stack and in the queue; false, with the queue empty, if it had to stop. Nearly
    /// all of a trace is in here. Inlining would make the library larger, with a copy for each caller, and no
    /// faster.
    #[inline(never)]
    pub(super) fn empty_stack(&mut self, go_on: &mut impl FnMut() -> bool) -> bool {
        loop {
            if !go_on() {
                self.put_back();
                return false;
            }
            if self.can_run() {
                self.run(go_on);
            }
            if self.depth == 0 {
                if self.queued == 0 {
                    return true;
                }
                let entry = self.queue[self.head];
                self.head = (self.head + 1) % QUEUE;
                self.queued -= 1;
                self.dispatch(entry);
                continue;
            }
            self.deepest = self.deepest.max(self.depth);
            self.depth -= 1;
            // SAFETY: below the depth, so written.
            let entry = unsafe { self.stack.start.add(self.depth).read() };
            if entry & PART != 0 {
                self.depth -= 1;
                // SAFETY: below the depth, so written: a part's entry lies above the address at which it goes
                // on.
                let from = unsafe { self.stack.start.add(self.depth).read() };
                self.go_on(Addr::new(entry - PART), Addr::new(from));
            } else if self.near || self.queued + self.depth == 0 {
                if entry >> MAP_SHIFT == 0 {
                    self.dispatch(entry);
                } else if !self.chain(entry, go_on) {
                    return false;
                }
            } else if self.queued == QUEUE {
                self.prefetch(entry);
                let next = core::mem::replace(&mut self.queue[self.head], entry);
                self.head = (self.head + 1) % QUEUE;
                self.dispatch(next);
            } else {
                self.prefetch(entry);
                self.queue[(self.head + self.queued) % QUEUE] = entry;
                self.queued += 1;
            }
        }
    }

    /// Scans the object of a stack entry that has a map; false if it had to stop. The scan goes on with the
    /// object found last if that is the only one, as in a list, or if live objects are in the cache. There
    /// the queue would only add its delay. On the stack, an object's address would wait for its block's
    /// descriptor, which takes three times as long as to load it.
    #[inline(always)]
    pub(super) fn chain(&mut self, entry: usize, go_on: &mut impl FnMut() -> bool) -> bool {
        let (mut object, mut map) = (Addr::new(entry & ADDRESS), entry >> MAP_SHIFT);
        loop {
            let mut next = (Addr::NULL, 0);
            while map != 0 {
                let at = object + map.trailing_zeros() as usize * WORD;
                map &= map - 1;
                if let Some(found) = self.follow(at) {
                    let (before, its_map) = core::mem::replace(&mut next, found);
                    if its_map != 0 {
                        self.push(before.get() | its_map << MAP_SHIFT);
                    }
                }
            }
            (object, map) = next;
            if map == 0 {
                return true;
            }
            let is_free = go_on();
            if (self.depth > 0 && !self.near) || !is_free {
                self.push(object.get() | map << MAP_SHIFT);
                return is_free;
            }
        }
    }

    /// Prefetches the memory that the entry's turn will read.
    #[inline(always)]
    pub(super) fn prefetch(&self, entry: usize) {
        let ahead = if M::MOVES && entry & FIELD != 0 {
            // SAFETY: a field that waits may be read.
            unsafe { ((entry - FIELD) as *const usize).read_volatile() }
        } else {
            entry & ADDRESS
        };
        vellum_sys::prefetch(ahead as *const u8);
    }

    /// Empties the queue onto the stack.
    pub(super) fn put_back(&mut self) {
        while self.queued > 0 {
            let entry = self.queue[self.head];
            self.head = (self.head + 1) % QUEUE;
            self.queued -= 1;
            self.push(entry);
        }
    }

    /// Scans the object of a stack entry that is no part.
    #[inline(always)]
    pub(super) fn dispatch(&mut self, entry: usize) {
        let entry = match entry {
            field if M::MOVES && field & FIELD != 0 => match self.settle(Addr::new(field - FIELD)) {
                Some(entry) => entry,
                None => return,
            },
            entry => entry,
        };
        let mut map = entry >> MAP_SHIFT;
        if map == 0 {
            // SAFETY: objects on the stack lie in blocks.
            let block = unsafe { &*self.space.within_bounds(Addr::new(entry)) };
            return self.look_through(block, Addr::new(entry));
        }
        while map != 0 {
            // The map has bits for the object's words only.
            self.field(Addr::new(entry & ADDRESS) + map.trailing_zeros() as usize * WORD);
            map &= map - 1;
        }
    }

    /// Scans a large object from `from` on.
    pub(super) fn go_on(&mut self, object: Addr, from: Addr) {
        // SAFETY: objects on the stack lie in blocks.
        let block = unsafe { &*self.space.within_bounds(object) };
        self.stretch(block, object, from);
    }
}
